//! KAI PodGroups that place their pods: how many have a node, and why the others are held.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::live::TreePicture;
use crate::cli::terminal::{Style, counted, shown};

/// A PodGroup.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodGroupStatus<'a> {
    namespace: &'a str,
    name: &'a str,
    pods: usize,
    scheduled: usize,
    held: usize,
    sub_groups: BTreeMap<&'a str, SubGroup>,
    holds: Vec<Hold<'a>>,
    /// Pods that may go now.
    due: usize,
    /// Why it is not known what becomes of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// The pods of a leaf, which has no name in a PodGroup without subgroups.
#[derive(Default, Serialize)]
struct SubGroup {
    pods: usize,
    scheduled: usize,
}

#[derive(Serialize)]
struct Hold<'a> {
    reason: &'static str,
    message: &'a str,
    pods: usize,
}

impl<'a> PodGroupStatus<'a> {
    /// What is seen of it.
    pub(super) fn of(picture: &'a TreePicture) -> Self {
        let pods = &picture.snapshot.pods;
        let mut sub_groups: BTreeMap<&str, SubGroup> = BTreeMap::new();
        for pod in pods {
            let leaf = sub_groups.entry(pod.leaf.as_deref().unwrap_or_default()).or_default();
            leaf.pods += 1;
            leaf.scheduled += usize::from(pod.scheduled);
        }
        let decision = picture.decision.as_ref();
        let holds = decision.map(|decision| decision.held.as_slice()).unwrap_or_default().iter();
        let plan = decision.ok().and_then(|decision| decision.plan.as_ref());
        Self {
            namespace: &picture.snapshot.key.namespace,
            name: &picture.snapshot.key.name,
            pods: pods.len(),
            scheduled: pods.iter().filter(|pod| pod.scheduled).count(),
            held: picture.snapshot.held().count(),
            sub_groups,
            holds: holds
                .map(|held| Hold { reason: held.reason.as_str(), message: &held.message, pods: held.pods.len() })
                .collect(),
            due: plan.map_or(0, |plan| plan.pods.len()),
            error: decision.err().map(String::as_str),
        }
    }

    /// `prod/train  PodGroup  6/8 pods have a node  2 pods held`, a line for each subgroup, and what is held.
    pub(super) fn text(&self, style: Style) -> String {
        let name = shown(&format!("{}/{}", self.namespace, self.name));
        let mut text =
            format!("{}{name}{}  PodGroup  {}/{} pods have a node", style.strong, style.end, self.scheduled, self.pods);
        let count = |count: usize| counted(u32::try_from(count).unwrap_or(u32::MAX), "pod");
        // Writing to a string does not fail.
        if self.held > 0 {
            _ = write!(text, "  {} held", count(self.held));
        }
        text.push('\n');
        for (leaf, SubGroup { pods, scheduled }) in self.sub_groups.iter().filter(|(leaf, _)| !leaf.is_empty()) {
            _ = writeln!(text, "  {}: {scheduled} of {} on nodes", shown(leaf), count(*pods));
        }
        for Hold { reason, message, pods } in &self.holds {
            _ = writeln!(text, "  {}{reason}{}: {} ({})", style.moving, style.end, shown(message), count(*pods));
        }
        if self.due > 0 {
            _ = writeln!(text, "  {} may go now: rolegate lifts the gates while it runs", count(self.due));
        }
        if let Some(error) = self.error {
            _ = writeln!(text, "  {}not known{}: {}", style.bad, style.end, shown(error));
        }
        text
    }
}

/// For people, each a paragraph.
pub(super) fn text(pictures: &[TreePicture]) -> String {
    let style = Style::of_stdout();
    pictures.iter().map(|picture| PodGroupStatus::of(picture).text(style)).collect::<Vec<_>>().join("\n")
}
