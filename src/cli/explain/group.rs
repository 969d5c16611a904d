//! Explains why a group waits, for each of its coordinations.

use std::fmt::Write as _;

use serde::Serialize;

use super::advice::advice;
use super::replicas::{self, Awaited};
use crate::cli::status;
use crate::cli::terminal::{Style, shown};
use crate::model::Queued;
use crate::model::wording::counted;
use crate::plan::Held;
use crate::report::{Picture, Status};

#[derive(Serialize)]
struct Answer<'a> {
    group: Status<'a>,
    explanations: Vec<Explanation<'a>>,
}

/// The reason why a coordination holds pods.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    coordination: Option<&'a str>,
    /// Index, counted from 0.
    batch: Option<u32>,
    reason: &'static str,
    message: &'a str,
    pods: u32,
    waits_for: Vec<Awaited>,
    next: &'static str,
    you_can: Vec<String>,
}

fn explanations(picture: &Picture) -> Vec<Explanation<'_>> {
    picture.seen.decision.held.iter().filter(|held| held.is_told()).map(|held| explanation(picture, held)).collect()
}

fn explanation<'a>(picture: &'a Picture, held: &'a Held) -> Explanation<'a> {
    let advice = advice(held.reason);
    Explanation {
        coordination: held.coordination_name(),
        batch: held.batch,
        reason: held.reason.as_str(),
        message: &held.message,
        pods: held.count(),
        waits_for: replicas::awaited(picture, held),
        next: advice.next,
        you_can: advice.you_can(&picture.key),
    }
}

pub fn answer(picture: &Picture) -> impl Serialize + '_ {
    Answer { group: Status::of(picture), explanations: explanations(picture) }
}

pub fn text(picture: &Picture) -> String {
    let style = Style::of_stdout();
    let mut text = status::one(picture);
    for found in explanations(picture) {
        // Writing to a string does not fail.
        let name = found.coordination.map_or_else(String::new, |name| format!("coordination {name:?}: "));
        _ = writeln!(text, "\n{}{}{}{}", style.strong, shown(&name), found.reason, style.end);
        let pods = if found.pods == 0 { String::new() } else { format!(" ({} held)", counted(found.pods, "pod")) };
        _ = writeln!(text, "  {}{pods}", shown(found.message));
        if !found.waits_for.is_empty() {
            _ = write!(text, "  waits for\n{}", replicas::lines(&found.waits_for, 4));
        }
        _ = writeln!(text, "  next     {}", found.next);
        for line in found.you_can {
            _ = writeln!(text, "  you can  {line}");
        }
    }
    if !picture.seen.decision.held.iter().any(Held::is_told) {
        _ = writeln!(text, "  nothing is held back");
    }
    let in_queue = picture.snapshot.pods.iter().filter(|pod| !pod.held && pod.queued == Queued::Waits).count();
    if in_queue > 0 {
        let pods = counted(u32::try_from(in_queue).unwrap_or(u32::MAX), "pod");
        _ = writeln!(text, "\n{pods} held by Kueue only: see `kubectl get workloads.kueue.x-k8s.io`");
    }
    text
}
