//! One JSON object, for tools.

use serde::Serialize;

use crate::report::{Picture, PodGroupStatus, Status, TreePicture};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    groups: Vec<Status<'a>>,
    /// KAI PodGroups that place their pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_groups: Vec<PodGroupStatus<'a>>,
}

pub(super) fn render(pictures: &[Picture], trees: &[TreePicture], on_one_line: bool) -> String {
    let answer = Answer {
        groups: pictures.iter().map(Status::of).collect(),
        pod_groups: trees.iter().map(PodGroupStatus::of).collect(),
    };
    let text = if on_one_line { serde_json::to_string(&answer) } else { serde_json::to_string_pretty(&answer) };
    text.unwrap_or_default() + "\n"
}
