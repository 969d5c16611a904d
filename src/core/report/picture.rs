//! A group, or a PodGroup that places its pods, with its current decision, as the loop would make it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::api::status::{Condition, Summary};
use crate::fit::{Cluster, Fitted, fit};
use crate::model::{Fact, Group, GroupKey, HoldReason, LetGo, WorkloadKey};
use crate::plan::decide::acceptance::AcceptanceWait;
use crate::plan::decide::pod_groups::awaited;
use crate::plan::elastic::ElasticContext;
use crate::plan::gangs::{self, TreeDecision, TreeSnapshot};
use crate::plan::placement::{Capacity, Line, Placer, Sight};
use crate::plan::recovery::{PAUSED, RecoveryContext};
use crate::plan::rollout::Edit;
use crate::plan::status::conditions::{says_behind_held, says_stalled};
use crate::plan::{
    Batch, Decision, DecisionContext, Diagnosis, Evaluation, GroupPods, Held, HeldPod, LackWhat, MissingOwned,
    Observation, PodFacts, Snapshot, evaluate,
};

/// Largest number of batches whose fit is reported.
const MOST_FITTED: usize = 100;

/// A group with its current decision.
#[derive(Debug)]
pub struct Picture {
    pub key: GroupKey,
    pub snapshot: Snapshot,
    /// The observed state, and the current decision.
    pub seen: Evaluation,
    pub batches: Vec<Batch>,
    /// The fit of its batches, where they go only where there is room; empty before [`Self::fitted_into`].
    pub fitted: Vec<Fitted>,
    /// The workloads of the roles that lack pods, in the decision's order; empty until set.
    pub makers: Vec<Option<WorkloadKey>>,
    /// Pods that would be held if the namespace were in mode `enforce`; only for an observed one.
    pub would_hold: Vec<Held>,
}

/// Findings on a group beyond its pods and workloads.
#[derive(Debug, Default)]
pub struct Findings {
    /// Reasons for which released pods do not appear.
    pub diagnoses: Vec<Diagnosis>,
    /// PodGroups of other makers that do not exist yet.
    pub missing_owned: Vec<MissingOwned>,
}

impl Picture {
    /// Returns the picture of a group, even if only pods name it.
    pub fn of(key: &GroupKey, snapshot: Snapshot) -> Self {
        Self::decided(key, snapshot, &Findings::default(), None)
    }

    /// Returns the picture with further findings, and with placement where `room` is given.
    #[must_use]
    pub fn with(self, findings: &Findings, room: Option<Sight<'_>>) -> Self {
        Self { fitted: self.fitted, makers: self.makers, ..Self::decided(&self.key, self.snapshot, findings, room) }
    }

    /// Returns the picture with the fit of coordinations whose batches share domains.
    #[must_use]
    pub fn fitted_into(mut self, cluster: &Cluster) -> Self {
        let keys = self.snapshot.domain_keys.iter().cloned().collect();
        self.fitted = self.group().map(|group| fit(group, &keys, cluster, MOST_FITTED)).unwrap_or_default();
        self.fitted.retain(|fitted| fitted.key.is_some() || fitted.batching.placed_in().is_some());
        self
    }

    fn decided(key: &GroupKey, snapshot: Snapshot, findings: &Findings, room: Option<Sight<'_>>) -> Self {
        let Some(claims) = &snapshot.claims else {
            let seen = Evaluation::of_missing(key, &snapshot);
            let (batches, fitted, makers) = (Vec::new(), Vec::new(), Vec::new());
            let would_hold =
                if snapshot.lets_go() == Some(LetGo::Observed) { of_unready(key, &snapshot) } else { Vec::new() };
            return Self { key: key.clone(), batches, seen, snapshot, fitted, makers, would_hold };
        };
        let group = &claims.group;
        // Only the loop knows when it first saw an edit.
        let observation = Observation::of(group, &snapshot, snapshot.now, |_| None, |_| Edit::long_ago());
        let stalled = says_stalled(&group.status);
        let behind = group.roles.iter().map(|role| role.name.clone());
        let behind: Vec<_> = behind.filter(|role| says_behind_held(&group.status, role)).collect();
        let recovery = RecoveryContext { off: !behind.is_empty(), ..RecoveryContext::default() };
        let context = DecisionContext {
            faults: &snapshot.faults,
            missing_layers: &snapshot.missing_layers,
            domain_keys: &snapshot.domain_keys,
            stalled,
            behind: Some(&behind),
            recovery: &recovery,
            missing_owned: &findings.missing_owned,
            diagnoses: &findings.diagnoses,
            elastic: ElasticContext { workloads: &snapshot.scaled, ..ElasticContext::default() },
            ..DecisionContext::default()
        };
        // Only the loop knows which other groups wait for room, and since when.
        let mut line = Line::default();
        let mut placer = room.map(|room| Placer::new(key.clone(), room, &mut line, false, Duration::ZERO));
        let mut seen = evaluate(group, observation, context, placer.as_mut());
        if snapshot.lets_go().is_none() {
            seen.decision.held.extend(told_by_loop(group, &seen));
            if !snapshot.objects.are_known() {
                told_of_objects(group, &mut seen);
            }
        }
        let is_of_loop = |condition: &Condition| condition.r#type == PAUSED;
        seen.status.conditions.retain(|condition| !is_of_loop(condition));
        seen.status.conditions.extend(group.status.conditions.iter().filter(|told| is_of_loop(told)).cloned());
        let batches = seen.batches(group);
        let would_hold = would_hold(group, &snapshot);
        Self { key: key.clone(), batches, seen, snapshot, fitted: Vec::new(), makers: Vec::new(), would_hold }
    }

    /// Reports whether a pod may go, of a batch that goes only where there is room.
    pub fn needs_room(&self) -> bool {
        let is_placed = |group: &Arc<Group>, role: &str| {
            group.batchings_of(role).any(|(_, batching)| batching.placed_in().is_some())
        };
        let mut release = self.seen.decision.release.iter();
        self.group().is_some_and(|group| release.any(|release| is_placed(group, release.pod.role()))) || self.grows()
    }

    /// Reports whether new batches would be made that go only where there is room.
    fn grows(&self) -> bool {
        let roles = &self.seen.view.roles;
        let more = |(role, count): (&String, &u32)| roles.get(role).is_some_and(|role| *count > role.released());
        self.seen.decision.elastic.is_some() && self.is_placed() && self.seen.decision.released.iter().any(more)
    }

    /// Reports whether batches go only where there is room.
    pub fn is_placed(&self) -> bool {
        self.group().is_some_and(|group| group.batched().any(|(_, batching)| batching.placed_in().is_some()))
    }

    /// Reports whether pods are held, or batches are to be made, while batches share domains. Their fit is of interest even
    /// while other groups go first.
    pub fn may_need_room(&self) -> bool {
        self.is_placed() && (self.snapshot.pods.held().next().is_some() || self.grows())
    }

    /// Returns the PodGroups of other makers that pods of the next release wait for.
    pub fn awaited_pod_groups(&self) -> BTreeMap<String, ObjectKind> {
        self.group().map(|group| awaited(group, &self.seen.view, &self.seen.decision.release)).unwrap_or_default()
    }

    /// Returns the group as its controlling object carries it.
    pub fn group(&self) -> Option<&Arc<Group>> {
        Some(&self.snapshot.claims.as_ref()?.group)
    }

    /// Returns the number of pods that stay held, as the status of the group counts them: pods with the gate, less those that
    /// go now.
    pub fn held_pods(&self) -> u32 {
        self.seen.decision.held.iter().map(Held::count).fold(0, u32::saturating_add)
    }

    /// Returns the summary in the status, which kubectl shows; `None` without one, or where nothing is held.
    pub fn told(&self) -> Option<&Summary> {
        self.group()?.status.summary.as_ref().filter(|_| self.snapshot.lets_go().is_none())
    }

    /// Returns kind and name of the carrier, for kubectl.
    pub fn carrier(&self) -> Option<(&'static str, &str)> {
        let carrier = &self.group()?.carrier;
        Some((carrier.kind.kind, &carrier.name))
    }

    /// Reports whether the group or its carrier has this name.
    pub fn is_named(&self, name: &str) -> bool {
        *self.key.name == *name || self.group().is_some_and(|group| group.carrier.name == name)
    }

    /// Reports whether rolegate coordinates anything in the group, or holds any of its pods.
    pub fn concerns_us(&self) -> bool {
        self.held_pods() > 0 || self.group().is_some_and(|group| !group.coordinations.is_empty())
    }
}

/// Returns the hold that the status reports for a reason only the loop can know. Its pods are the releasable ones, as many as
/// the status counts beyond the other holds.
fn told_by_loop(group: &Group, seen: &Evaluation) -> Option<Held> {
    let told = group.status.summary.as_ref()?;
    let reason = HoldReason::of_word(&told.reason).filter(|reason| reason.is(Fact::ByLoop))?;
    let held = &seen.decision.held;
    if held.iter().any(|held| held.reason == reason) {
        return None;
    }
    let others = held.iter().map(Held::count).fold(0, u32::saturating_add);
    let mut pods: Vec<HeldPod> = seen.decision.release.iter().map(|release| release.pod.clone()).collect();
    pods.sort_by_key(|pod| !told.message.contains(&format!("{:?}", &*pod.pod.name)));
    pods.truncate(usize::try_from(told.held.saturating_sub(others)).unwrap_or(usize::MAX));
    // The wait may be over by now.
    if pods.is_empty() && !reason.is(Fact::WithoutPods) {
        return None;
    }
    let message = if told.message.is_empty() { "the status says so" } else { &told.message };
    Some(Held::new(reason, message.to_owned(), pods))
}

/// Sets what the status reports of an object that is waited for, and that only the loop has looked at.
fn told_of_objects(group: &Group, seen: &mut Evaluation) {
    let told = group.status.summary.as_ref().filter(|told| told.reason == HoldReason::SegmentNotAccepted.as_str());
    let Some(told) = told.filter(|told| !told.message.is_empty()) else { return };
    let Decision { held, targets, .. } = &mut seen.decision;
    let Some(held) = held.iter_mut().find(|held| held.reason == HoldReason::SegmentNotAccepted) else { return };
    let index = held.coordination.as_ref().map(|of| of.index);
    let target = targets.coordinations.iter_mut().find(|target| Some(target.index) == index);
    // What the loop found is known by its sentence alone.
    if let Some(AcceptanceWait::Object(lack)) = target.and_then(|target| target.acceptance.wait.as_mut())
        && matches!(lack.what, LackWhat::Look | LackWhat::List)
        && held.message != told.message
    {
        lack.what = LackWhat::Look;
        held.message.clone_from(&told.message);
    }
}

/// Returns the holds that mode `enforce` would cause for pods that are not ready: the same decision about the same group,
/// of which an observed namespace holds nothing.
fn would_hold(group: &Arc<Group>, snapshot: &Snapshot) -> Vec<Held> {
    if snapshot.lets_go() != Some(LetGo::Observed) {
        return Vec::new();
    }
    let enforced = Snapshot { pods: held_unless_ready(snapshot), ..snapshot.clone() };
    let observation = Observation::of(group, &enforced, enforced.now, |_| None, |_| Edit::long_ago());
    let context = DecisionContext {
        faults: &snapshot.spared,
        missing_layers: &snapshot.missing_layers,
        domain_keys: &snapshot.domain_keys,
        elastic: ElasticContext { workloads: &snapshot.scaled, ..ElasticContext::default() },
        ..DecisionContext::default()
    };
    let held = evaluate(group, observation, context, None).decision.held;
    held.into_iter().filter(|held| !held.pods.is_empty()).collect()
}

/// Returns the hold of a missing group in mode `enforce`.
fn of_unready(key: &GroupKey, snapshot: &Snapshot) -> Vec<Held> {
    let held = Held::of_missing_group(key, &held_unless_ready(snapshot));
    if held.pods.is_empty() { Vec::new() } else { vec![held] }
}

fn held_unless_ready(snapshot: &Snapshot) -> GroupPods {
    snapshot.pods.iter().map(|pod| PodFacts { held: !pod.ready, ..PodFacts::clone(pod) }).collect()
}

/// A KAI PodGroup that places its pods, with its current decision.
#[derive(Debug)]
pub struct TreePicture {
    pub snapshot: TreeSnapshot,
    /// The decision on its held pods; `Err` holds why it is unknown.
    pub decision: Result<TreeDecision, String>,
}

impl TreePicture {
    /// Returns the picture of a PodGroup, even if only pods name it. Only the loop knows which others wait for room, and
    /// since when.
    pub fn of(snapshot: TreeSnapshot, room: Result<&Capacity, &str>) -> Self {
        let decision = room.map(|room| gangs::decide(&snapshot, room, &[])).map_err(str::to_owned);
        Self { snapshot, decision }
    }

    /// Returns the picture of a PodGroup without held pods, for which room does not matter.
    pub fn at_rest(snapshot: TreeSnapshot) -> Self {
        Self { snapshot, decision: Ok(TreeDecision::default()) }
    }
}
