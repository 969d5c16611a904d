//! Explains why a group waits, for each of its coordinations.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use super::advice;
use super::replicas::{self, Awaited};
use crate::cli::status;
use crate::cli::terminal::{Style, shown};
use crate::model::Queued;
use crate::model::wording::counted;
use crate::plan::Held;
use crate::plan::reconcile::rollout_events::HELD;
use crate::plan::rollout::{Stage, stage_text};
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
    message: Cow<'a, str>,
    pods: u32,
    waits_for: Vec<Awaited>,
    next: &'static str,
    you_can: Vec<String>,
}

fn explanations(picture: &Picture) -> Vec<Explanation<'_>> {
    let held = picture.seen.decision.held.iter().filter(|held| held.is_told());
    let steps = picture.seen.rollouts.stages.iter().filter_map(|stage| of_step(picture, stage));
    held.map(|held| explanation(picture, held)).chain(steps).collect()
}

/// Explains a step of a rollout that waits for its object.
fn of_step<'a>(picture: &'a Picture, stage: &'a Stage) -> Option<Explanation<'a>> {
    let advice = advice::of_step(stage.lacks.as_ref()?);
    Some(Explanation {
        coordination: Some(&stage.name),
        batch: None,
        reason: HELD,
        message: stage_text(stage, &picture.seen.rollouts.roles).into(),
        pods: 0,
        waits_for: Vec::new(),
        next: advice.next,
        you_can: advice.you_can(&picture.key),
    })
}

fn explanation<'a>(picture: &'a Picture, held: &'a Held) -> Explanation<'a> {
    let advice = advice::of_held(&picture.seen.decision, held);
    Explanation {
        coordination: held.coordination_name(),
        batch: held.batch,
        reason: held.reason.as_str(),
        message: held.message.as_str().into(),
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
    let explanations = explanations(picture);
    let pauses = picture.seen.rollouts.stages.iter().any(|stage| stage.pause.is_some());
    if explanations.is_empty() && !pauses {
        _ = writeln!(text, "  nothing is held back");
    }
    for found in explanations {
        let name = found.coordination.map_or_else(String::new, |name| format!("coordination {name:?}: "));
        _ = writeln!(text, "\n{}{}{}{}", style.strong, shown(&name), found.reason, style.end);
        let pods = if found.pods == 0 { String::new() } else { format!(" ({} held)", counted(found.pods, "pod")) };
        _ = writeln!(text, "  {}{pods}", shown(&found.message));
        if !found.waits_for.is_empty() {
            _ = write!(text, "  waits for\n{}", replicas::lines(&found.waits_for, 4));
        }
        _ = writeln!(text, "  next     {}", found.next);
        for line in found.you_can {
            _ = writeln!(text, "  you can  {line}");
        }
    }
    let in_queue = picture.snapshot.pods.iter().filter(|pod| !pod.held && pod.queued == Queued::Waits).count();
    if in_queue > 0 {
        let pods = counted(u32::try_from(in_queue).unwrap_or(u32::MAX), "pod");
        _ = writeln!(
            text,
            "\n{pods} held by Kueue only: see `kubectl get workloads.kueue.x-k8s.io -n {}`",
            picture.key.namespace
        );
    }
    text
}
