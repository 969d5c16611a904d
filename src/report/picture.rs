//! A group, or a PodGroup that places its pods, with what would be decided about it now: the same decision as the loop's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::api::status::{Condition, Summary};
use crate::fit::{Cluster, Fitted, fit};
use crate::model::{Group, GroupKey, HoldReason, LetGo, WorkloadKey};
use crate::plan::decide::pod_groups::awaited;
use crate::plan::elastic::ElasticContext;
use crate::plan::gangs::{self, TreeDecision, TreeSnapshot};
use crate::plan::placement::{Capacity, Line, Placer, Sight};
use crate::plan::recovery::PAUSED;
use crate::plan::rollout::Edit;
use crate::plan::status::conditions::says_stalled;
use crate::plan::{
    Batch, DecisionContext, Diagnosis, Evaluation, GroupPods, Held, HeldPod, MissingPodGroup, Observation, PodFacts,
    Snapshot, evaluate,
};

/// Batches of which it is said how many fit.
const MOST_FITTED: usize = 100;

/// A group with what would be decided about it now.
#[derive(Debug)]
pub struct Picture {
    /// Its name.
    pub key: GroupKey,
    /// What is seen of it.
    pub snapshot: Snapshot,
    /// What is observed of it, and what would be decided now.
    pub seen: Evaluation,
    /// Its batches.
    pub batches: Vec<Batch>,
    /// How many of its batches fit, where they go only where there is room; empty where nobody has looked.
    pub fitted: Vec<Fitted>,
    /// The workloads of the roles that lack pods, in the decision's order; empty where nobody has looked.
    pub makers: Vec<Option<WorkloadKey>>,
    /// Why pods would be held, were its namespace served in mode `enforce` and not only observed.
    pub would_hold: Vec<Held>,
}

/// What was found out about a group beside its pods and workloads.
#[derive(Debug, Default)]
pub struct Findings {
    /// Why pods do not appear that may run.
    pub diagnoses: Vec<Diagnosis>,
    /// PodGroups that others make, and that are not there yet.
    pub missing_pod_groups: Vec<MissingPodGroup>,
}

impl Picture {
    /// What the index knows of a group, whether its object is there or only pods that name it.
    pub fn of(key: &GroupKey, snapshot: Snapshot) -> Self {
        Self::decided(key, snapshot, &Findings::default(), None)
    }

    /// The same with what else was found out, and what room there is where that was looked at.
    #[must_use]
    pub fn with(self, findings: &Findings, room: Option<Sight<'_>>) -> Self {
        Self { fitted: self.fitted, makers: self.makers, ..Self::decided(&self.key, self.snapshot, findings, room) }
    }

    /// The same with how many batches fit into a cluster, of coordinations whose batches share domains.
    #[must_use]
    pub fn fitted_into(mut self, cluster: &Cluster) -> Self {
        let keys = self.snapshot.domain_keys.iter().cloned().collect();
        self.fitted = self.group().map(|group| fit(group, &keys, cluster, MOST_FITTED)).unwrap_or_default();
        self.fitted.retain(|fitted| fitted.key.is_some());
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
        // When the loop first saw an edit, nobody else knows.
        let observation = Observation::of(group, &snapshot, snapshot.now, |_| None, |_| Edit::long_ago());
        let stalled = says_stalled(&group.status);
        let context = DecisionContext {
            faults: &snapshot.faults,
            missing_layers: &snapshot.missing_layers,
            domain_keys: &snapshot.domain_keys,
            stalled,
            missing_pod_groups: &findings.missing_pod_groups,
            diagnoses: &findings.diagnoses,
            elastic: ElasticContext { workloads: &snapshot.scaled, ..ElasticContext::default() },
            ..DecisionContext::default()
        };
        // Who else waits for room, and for how long, only the loop knows.
        let mut line = Line::default();
        let mut placer = room.map(|room| Placer::new(key.clone(), room, &mut line, false, Duration::ZERO));
        let mut seen = evaluate(group, observation, context, placer.as_mut());
        if snapshot.lets_go().is_none() {
            seen.decision.held.extend(told_by_loop(group, &seen));
        }
        let is_of_loop = |condition: &Condition| condition.r#type == PAUSED;
        seen.status.conditions.retain(|condition| !is_of_loop(condition));
        seen.status.conditions.extend(group.status.conditions.iter().filter(|told| is_of_loop(told)).cloned());
        let batches = seen.batches(group);
        let would_hold = would_hold(group, &snapshot);
        Self { key: key.clone(), batches, seen, snapshot, fitted: Vec::new(), makers: Vec::new(), would_hold }
    }

    /// True when a pod may go, of a batch that goes only where there is room for it.
    pub fn needs_room(&self) -> bool {
        let is_placed = |group: &Arc<Group>, role: &str| {
            group.batchings_of(role).any(|(_, batching)| batching.placed_in().is_some())
        };
        let mut release = self.seen.decision.release.iter();
        self.group().is_some_and(|group| release.any(|release| is_placed(group, release.pod.role()))) || self.grows()
    }

    /// True when batches would be made that go only where there is room for them.
    fn grows(&self) -> bool {
        let roles = &self.seen.view.roles;
        let more = |(role, count): (&String, &u32)| roles.get(role).is_some_and(|role| *count > role.released());
        self.seen.decision.elastic.is_some() && self.is_placed() && self.seen.decision.released.iter().any(more)
    }

    /// True when batches go only where there is room for them.
    pub fn is_placed(&self) -> bool {
        self.group().is_some_and(|group| group.batched().any(|(_, batching)| batching.placed_in().is_some()))
    }

    /// True when pods are held, and batches share domains: how many fit is worth saying also while others go before them.
    pub fn may_need_room(&self) -> bool {
        self.is_placed() && (self.snapshot.pods.held().next().is_some() || self.grows())
    }

    /// PodGroups that others make and that pods of the next release wait for.
    pub fn awaited_pod_groups(&self) -> BTreeMap<String, ObjectKind> {
        self.group().map(|group| awaited(group, &self.seen.decision.release)).unwrap_or_default()
    }

    /// The group, as its controlling object carries it.
    pub fn group(&self) -> Option<&Arc<Group>> {
        Some(&self.snapshot.claims.as_ref()?.group)
    }

    /// Pods that stay held, as the status of the group counts them: of those with our gate all but the ones that go now.
    pub fn held_pods(&self) -> u32 {
        self.seen.decision.held.iter().map(Held::count).fold(0, u32::saturating_add)
    }

    /// What kubectl shows of it: how the loop has decided last. `None` where it says nothing, or nothing is held.
    pub fn told(&self) -> Option<&Summary> {
        self.group()?.status.summary.as_ref().filter(|_| self.snapshot.lets_go().is_none())
    }

    /// `RoleBasedGroup pd`: what to look at with kubectl.
    pub fn carrier(&self) -> Option<(&'static str, &str)> {
        let carrier = &self.group()?.carrier;
        Some((carrier.kind.kind, &carrier.name))
    }

    /// True when it is of this name, or carried by an object of this name.
    pub fn is_named(&self, name: &str) -> bool {
        *self.key.name == *name || self.group().is_some_and(|group| group.carrier.name == name)
    }

    /// True when rolegate coordinates anything in it, or holds any of its pods.
    pub fn concerns_us(&self) -> bool {
        self.held_pods() > 0 || self.group().is_some_and(|group| !group.coordinations.is_empty())
    }
}

/// Why the status says that something waits, where nobody else can find that out: of the pods that may go as far as we see, as many
/// as it counts beyond the others.
fn told_by_loop(group: &Group, seen: &Evaluation) -> Option<Held> {
    let told = group.status.summary.as_ref()?;
    let reason = HoldReason::of_word(&told.reason).filter(|reason| reason.is_of_loop())?;
    let held = &seen.decision.held;
    if held.iter().any(|held| held.reason == reason) {
        return None;
    }
    let others = held.iter().map(Held::count).fold(0, u32::saturating_add);
    let mut pods: Vec<HeldPod> = seen.decision.release.iter().map(|release| release.pod.clone()).collect();
    pods.sort_by_key(|pod| !told.message.contains(&format!("{:?}", &*pod.pod.name)));
    pods.truncate(usize::try_from(told.held.saturating_sub(others)).unwrap_or(usize::MAX));
    // What it waited for may be over by now.
    if pods.is_empty() && !reason.may_be_of_no_pod() {
        return None;
    }
    let message = if told.message.is_empty() { "the status says so" } else { &told.message };
    Some(Held::new(reason, message.to_owned(), pods))
}

/// Why pods would be held now, had all been held that are not ready: the same decision about the same group, of which nothing is
/// held since its namespace is only observed.
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

/// The same of a group that is not there.
fn of_unready(key: &GroupKey, snapshot: &Snapshot) -> Vec<Held> {
    let held = Held::of_missing_group(key, &held_unless_ready(snapshot));
    if held.pods.is_empty() { Vec::new() } else { vec![held] }
}

fn held_unless_ready(snapshot: &Snapshot) -> GroupPods {
    snapshot.pods.iter().map(|pod| PodFacts { held: !pod.ready, ..PodFacts::clone(pod) }).collect()
}

/// A KAI PodGroup that places its pods, with what would be decided about it now.
#[derive(Debug)]
pub struct TreePicture {
    /// What is seen of it.
    pub snapshot: TreeSnapshot,
    /// What becomes of its held pods; `Err` says why that is not known.
    pub decision: Result<TreeDecision, String>,
}

impl TreePicture {
    /// What the index knows of a PodGroup, whether it is there or only pods that name it. Who else waits for room, and for how
    /// long, only the loop knows.
    pub fn of(snapshot: TreeSnapshot, room: Result<&Capacity, &str>) -> Self {
        let decision = room.map(|room| gangs::decide(&snapshot, room, None)).map_err(str::to_owned);
        Self { snapshot, decision }
    }

    /// The same of one that holds no pod: no room needs to be looked at.
    pub fn at_rest(snapshot: TreeSnapshot) -> Self {
        Self { snapshot, decision: Ok(TreeDecision::default()) }
    }
}
