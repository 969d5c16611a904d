//! Text output for KAI PodGroups that place their pods.

use std::fmt::Write as _;

use super::text::may_go;
use crate::cli::terminal::{Style, shown};
use crate::model::wording::counted;
use crate::report::{PodGroupStatus, SubGroup, TreeHold, TreePicture};

/// Formats a PodGroup: `prod/train  PodGroup  6/8 pods have a node  2 pods held`, a line per subgroup, and the holds.
pub(super) fn one(group: &PodGroupStatus<'_>, style: Style) -> String {
    let PodGroupStatus { pods, scheduled, held, due, .. } = group;
    let name = shown(&format!("{}/{}", group.namespace, group.name));
    let mut text = format!("{}{name}{}  PodGroup  {scheduled}/{pods} pods have a node", style.strong, style.end);
    if *held > 0 {
        _ = write!(text, "  {} held", counted(*held, "pod"));
    }
    text.push('\n');
    for (leaf, SubGroup { pods, scheduled }) in group.sub_groups.iter().filter(|(leaf, _)| !leaf.is_empty()) {
        _ = writeln!(text, "  {}: {scheduled} of {} on nodes", shown(leaf), counted(*pods, "pod"));
    }
    for TreeHold { reason, message, pods } in &group.holds {
        _ = writeln!(text, "  {}{reason}{}: {} ({})", style.moving, style.end, shown(message), counted(*pods, "pod"));
    }
    text.push_str(&may_go(*due));
    if let Some(error) = group.error {
        _ = writeln!(text, "  {}not known{}: {}", style.bad, style.end, shown(error));
    }
    text
}

/// Formats each PodGroup as a paragraph.
pub(super) fn text(pictures: &[TreePicture]) -> String {
    let style = Style::of_stdout();
    pictures.iter().map(|picture| one(&PodGroupStatus::of(picture), style)).collect::<Vec<_>>().join("\n")
}
