//! JSON output of `status`.

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

pub(super) fn answer<'a>(pictures: &'a [Picture], trees: &'a [TreePicture]) -> impl Serialize + 'a {
    Answer {
        groups: pictures.iter().map(Status::of).collect(),
        pod_groups: trees.iter().map(PodGroupStatus::of).collect(),
    }
}
