//! A group and its batches, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::hold::Hold;
use super::{InPart, OutdatedEngine, Picture, Segments, Story, Would, coordination};
use crate::api::status::{Condition, ProvisioningState, RecoveryState};
use crate::model::{Group, LetGo};
use crate::plan::rollout::{RoleRollout, Stage, StepNumber, stage_text, waits_for};
use crate::plan::{Batch, WaitsFor};

#[derive(Serialize)]
pub struct Status<'a> {
    namespace: &'a str,
    name: &'a str,
    /// The carrier; absent when there is none.
    carrier: Option<Carrier<'a>>,
    segments: &'a str,
    ready: &'a str,
    held: u32,
    reason: &'a str,
    /// True when the namespace has opted out.
    ignored: bool,
    /// Mode of its namespace, as far as known: `enforce`, `warn` or `observe`.
    mode: &'static str,
    /// Why none of its pods is held: `OptedOut`, `NotSelected` or `Observed`; `OfOther` where another installation serves the
    /// namespace.
    #[serde(rename = "letsGo", skip_serializing_if = "Option::is_none")]
    lets_go: Option<&'static str>,
    /// Effects of mode `enforce`; absent in that mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<Would<'a>>,
    conditions: &'a [Condition],
    coordinations: Vec<Coordination<'a>>,
    holds: Vec<Hold<'a>>,
    rollouts: Vec<Rollout<'a>>,
    /// Steps under way of rollouts in steps.
    #[serde(rename = "rolloutSteps", skip_serializing_if = "Vec::is_empty")]
    rollout_steps: Vec<RolloutStep<'a>>,
    /// The wanted segments of a group whose workloads are scaled together.
    #[serde(skip_serializing_if = "Option::is_none")]
    elastic: Option<Segments>,
    /// Batches that broke within the window, from the status.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recoveries: &'a [RecoveryState],
    /// Pods whose engine counts pods that are no longer as many.
    #[serde(rename = "outdatedEngines", skip_serializing_if = "Vec::is_empty")]
    outdated_engines: Vec<OutdatedEngine<'a>>,
    /// Released batches of which some pods cannot be scheduled, where batches go in part.
    #[serde(rename = "inPart", skip_serializing_if = "Vec::is_empty")]
    in_part: Vec<InPart>,
    /// Requests for nodes, from the status.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    provisioning: &'a [ProvisioningState],
    /// The fit of coordinations whose batches wait for room, as `rolegate fit` reports it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fit: Vec<Value>,
}

/// The step under way of a rollout in steps.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RolloutStep<'a> {
    coordination: &'a str,
    #[serde(flatten)]
    number: StepNumber,
    /// True during the pause after the step.
    paused: bool,
    sentence: String,
}

/// The open rollout of a role.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rollout<'a> {
    role: &'a str,
    desired: u32,
    updated: u32,
    updated_ready: u32,
    /// Ordinals from here on may be updated.
    partition: u32,
    state: &'static str,
    /// The cause of the wait, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

#[derive(Serialize)]
struct Carrier<'a> {
    kind: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Coordination<'a> {
    name: String,
    strategy: &'static str,
    progression: &'static str,
    state: &'static str,
    /// The first replica that the coordination waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'a WaitsFor>,
    batches: Vec<Segment<'a>>,
}

#[derive(Serialize)]
struct Segment<'a> {
    index: u32,
    state: &'static str,
    reason: Option<&'static str>,
    roles: BTreeMap<&'a str, Share>,
}

#[derive(Serialize)]
struct Share {
    ordinals: [u32; 2],
    released: u32,
    ready: u32,
}

impl<'a> Status<'a> {
    pub fn of(picture: &'a Picture) -> Self {
        let (status, story) = (&picture.seen.status, Story::of(picture));
        let summary = status.summary.as_ref();
        Self {
            namespace: &picture.key.namespace,
            name: &picture.key.name,
            carrier: picture.carrier().map(|(kind, name)| Carrier { kind, name }),
            segments: summary.map_or("", |summary| &summary.segments),
            ready: summary.map_or("", |summary| &summary.ready),
            held: picture.held_pods(),
            reason: picture
                .seen
                .decision
                .held
                .iter()
                .map(|held| held.reason)
                .min()
                .map_or("", |reason| reason.as_str()),
            ignored: picture.snapshot.lets_go() == Some(LetGo::OptedOut),
            mode: picture.snapshot.stance.mode.as_str(),
            lets_go: picture.snapshot.stance.unserved(),
            would: story.would(),
            conditions: &status.conditions,
            coordinations: picture.group().map(|group| coordinations(group, picture)).unwrap_or_default(),
            holds: picture.seen.decision.held.iter().map(Hold::of).collect(),
            rollouts: rollouts(picture),
            rollout_steps: rollout_steps(picture),
            elastic: story.segments(),
            recoveries: &status.recoveries,
            outdated_engines: story.engines(),
            in_part: story.in_part(),
            provisioning: &status.provisioning,
            fit: picture.fitted.iter().map(coordination).collect(),
        }
    }
}

fn coordinations<'a>(group: &'a Group, picture: &'a Picture) -> Vec<Coordination<'a>> {
    let targets = &picture.seen.decision.targets;
    let entry = |(coordination, batching): (&'a crate::model::Coordination, &'a crate::model::Batching)| {
        let target = targets.coordination(coordination.index);
        let own = picture.batches.iter().filter(|batch| batch.coordination == coordination.index);
        Coordination {
            name: coordination.display_name(),
            strategy: batching.kind.as_str(),
            progression: batching.progression().as_str(),
            state: target.map_or("", |target| target.state.as_str()),
            waits_for: target.and_then(|target| target.waits_for.as_ref()),
            batches: own.map(segment).collect(),
        }
    };
    group.batched().map(entry).collect()
}

fn rollouts<'a>(picture: &'a Picture) -> Vec<Rollout<'a>> {
    let roles = &picture.seen.rollouts.roles;
    let entry = |(name, role): (&'a String, &RoleRollout)| {
        let plan = picture.seen.decision.rollout.get(name)?;
        Some(Rollout {
            role: name,
            desired: role.desired(),
            updated: role.at_template(),
            updated_ready: role.ready_at_template(),
            partition: plan.partition.min(role.desired()),
            state: plan.state.as_str(),
            waits: plan.waits.as_ref().map(|wait| waits_for(name, wait, &picture.seen.rollouts)),
        })
    };
    roles.iter().filter_map(entry).collect()
}

fn rollout_steps<'a>(picture: &'a Picture) -> Vec<RolloutStep<'a>> {
    let rollouts = &picture.seen.rollouts;
    let entry = |stage: &'a Stage| RolloutStep {
        coordination: &stage.name,
        number: stage.number,
        paused: stage.pause.is_some(),
        sentence: stage_text(stage, &rollouts.roles),
    };
    rollouts.stages.iter().filter(|stage| stage.is_told()).map(entry).collect()
}

fn segment(batch: &Batch) -> Segment<'_> {
    let share = |share: &crate::plan::decide::batches::Share| Share {
        ordinals: [*share.ordinals.start(), *share.ordinals.end()],
        released: share.released,
        ready: share.ready,
    };
    Segment {
        index: batch.index,
        state: batch.state.as_str(),
        reason: batch.reason.map(crate::model::HoldReason::as_str),
        roles: batch.roles.iter().map(|(role, found)| (role.as_str(), share(found))).collect(),
    }
}
