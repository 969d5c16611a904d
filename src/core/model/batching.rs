//! Segments, deploy steps and affinity batches in one shape.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::fault::Reader;
use super::pod_groups::POD_GROUP_POLICY;
use super::ready_when::{AwaitedObject, ReadyWhen, SEGMENT_VARIABLE};
use super::recovery::RECOVERY;
use super::words::words;
use super::{Domain, FieldPath, GangLevel, Gangs, Recovery, Topology};
use crate::api;

words! {
/// The strategy that makes the batches.
pub enum BatchKind {
    /// KEP-32.
    SegmentPlacement = "segmentPlacement",
    /// KEP-75.
    RollingDeploy = "rollingDeploy",
    /// KEP-30.
    AffinityScheduling = "affinityScheduling",
}
}

impl BatchKind {
    /// Returns the word for one batch in messages.
    pub const fn word(self) -> &'static str {
        self.one_and_several().0
    }

    /// Returns the word for several batches in messages.
    pub const fn words(self) -> &'static str {
        self.one_and_several().1
    }

    const fn one_and_several(self) -> (&'static str, &'static str) {
        match self {
            Self::SegmentPlacement => ("segment", "segments"),
            Self::RollingDeploy => ("step", "steps"),
            Self::AffinityScheduling => ("batch", "batches"),
        }
    }
}

words! {
/// Condition on the earlier batches for the release of the next.
pub enum Progression {
    /// Every replica of the earlier batches is ready.
    OrderedReady,
    /// The same, and the first batch is accepted: by the time for which it was ready, or by a person.
    Canary,
    /// The earlier batches are released.
    Ordered,
    /// No condition.
    Parallel,
    /// Every replica of the earlier batches is scheduled.
    Scheduled,
}
}

/// Spellings of `segmentPlacement.progression`; the first is the default.
pub const SEGMENT_PROGRESSIONS: &[(&str, Progression)] = &[
    (Progression::OrderedReady.as_str(), Progression::OrderedReady),
    (Progression::Ordered.as_str(), Progression::Ordered),
    (Progression::Parallel.as_str(), Progression::Parallel),
    (Progression::Canary.as_str(), Progression::Canary),
];

/// Spellings of `affinityScheduling.batchMode`; the first is the default.
pub const BATCH_MODES: &[(&str, Progression)] =
    &[("Sequential", Progression::OrderedReady), (Progression::Parallel.as_str(), Progression::Parallel)];

/// A word read against a list of spellings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A known spelling, or the default.
    Known(Progression),
    /// Any other word.
    Unknown,
}

/// Where rolegate places the pods of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedIn<'a> {
    /// All in one domain.
    Domain(&'a Domain),
    /// On any nodes.
    Cluster,
}

impl PlacedIn<'_> {
    /// Returns the node label of the domains; [`CLUSTER_KEY`] for the cluster. `layer_key` maps a ClusterTopology and a layer to
    /// a label.
    pub fn key(self, layer_key: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
        match self {
            Self::Cluster => Some(CLUSTER_KEY.to_owned()),
            Self::Domain(Domain::Key(key)) => Some(key.clone()),
            Self::Domain(Domain::Layer { topology, layer }) => layer_key(topology, layer),
        }
    }
}

/// Stands for a node label of which all nodes have the value [`CLUSTER`]: the whole cluster is one domain. It is no label key.
pub const CLUSTER_KEY: &str = "";
/// The domain of all nodes.
pub const CLUSTER: &str = "cluster";

/// The division of a coordination's roles into batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    pub kind: BatchKind,
    /// Path of the strategy.
    pub at: FieldPath,
    /// Replicas of each role in one batch, as written: values below 1 are violations, never divisors.
    pub sizes: BTreeMap<String, i64>,
    pub sizes_at: FieldPath,
    pub progression: Choice,
    pub progression_at: FieldPath,
    /// Time for which a canary must be ready to be accepted; `None` where a person accepts it.
    pub soak: Option<Duration>,
    /// Readiness of a batch beyond that of its pods.
    pub ready_when: Option<ReadyWhen>,
    /// Placement of the pods of one batch.
    pub topology: Option<Topology>,
    /// Whether a batch goes only when the cluster has room for all of it, whatever its topology.
    pub whole: bool,
    /// PodGroups of a batch.
    pub gangs: Option<Gangs>,
    /// Recovery of a batch that loses a replica, where it is set.
    pub recovery: Option<Recovery>,
}

impl Batching {
    /// Returns the replicas of a role in one batch; `None` for a role without batches and for a stored size below 1.
    pub fn size(&self, role: &str) -> Option<u32> {
        self.sizes.get(role).and_then(|size| u32::try_from(*size).ok()).filter(|size| *size > 0)
    }

    /// Returns the topology that the pods of a batch must share.
    pub fn hard_topology(&self) -> Option<&Topology> {
        self.topology.as_ref().filter(|topology| topology.is_hard())
    }

    /// Reports whether all pods of a batch are one gang, whose scheduler chooses their nodes.
    pub fn is_gang(&self) -> bool {
        self.gang_level() == Some(GangLevel::Batch)
    }

    fn gang_level(&self) -> Option<GangLevel> {
        self.gangs.as_ref().map(|gangs| gangs.level)
    }

    /// Returns the domain in which rolegate places a batch; `None` if it places none, or leaves that to the scheduler of a gang.
    /// Gangs below the level of the batch do not know of each other.
    pub fn placed_in(&self) -> Option<PlacedIn<'_>> {
        let domain = self.hard_topology().map(|topology| PlacedIn::Domain(&topology.domain));
        domain.or_else(|| self.whole.then_some(PlacedIn::Cluster)).filter(|_| !self.is_gang())
    }

    /// Returns the progression; an unknown word counts as the strictest.
    pub fn progression(&self) -> Progression {
        match self.progression {
            Choice::Known(progression) => progression,
            Choice::Unknown => Progression::OrderedReady,
        }
    }

    /// Reports whether the first batch must be accepted before others go.
    pub fn is_canary(&self) -> bool {
        self.progression() == Progression::Canary
    }

    /// Returns the object that must have its condition before the next batch goes; `None` where no readiness is waited for.
    pub fn awaited_object(&self) -> Option<&AwaitedObject> {
        let waits = matches!(self.progression(), Progression::OrderedReady | Progression::Canary);
        self.ready_when.as_ref().filter(|_| waits)?.object.as_ref()
    }

    /// Reports whether ready replicas do not suffice for the next batch.
    pub fn asks_acceptance(&self) -> bool {
        self.is_canary() || self.awaited_object().is_some()
    }

    /// Reports whether a batch is released only once all its pods exist.
    pub fn is_all_or_nothing(&self) -> bool {
        let starts_together = matches!(self.gang_level(), Some(GangLevel::Batch | GangLevel::Role));
        starts_together || self.whole || self.hard_topology().is_some()
    }

    /// Returns the recovery if its policy recreates batches.
    pub fn recovers(&self) -> Option<&Recovery> {
        self.recovery.as_ref().filter(|recovery| recovery.recreates)
    }

    /// Returns the ClusterTopology and the layer of the topology.
    pub fn layer(&self) -> Option<(&str, &str)> {
        match &self.topology.as_ref()?.domain {
            Domain::Layer { topology, layer } => Some((topology, layer)),
            Domain::Key(_) => None,
        }
    }

    /// Returns the strategies of an entry that make batches, in the order of `BatchKind`; a valid entry has at most one.
    pub(super) fn parse_all(strategy: &api::coordination::Strategy, reader: &mut Reader<'_>) -> Vec<Self> {
        let segments = strategy.segment_placement.as_ref().map(|s| Self::segments(s, reader));
        let steps = strategy.rolling_deploy.as_ref().map(|s| Self::steps(s, strategy, reader));
        let affine = strategy.affinity_scheduling.as_ref().map(|s| Self::affine(s, reader));
        [segments, steps, affine].into_iter().flatten().collect()
    }

    fn segments(segments: &api::coordination::SegmentPlacement, strategy: &mut Reader<'_>) -> Self {
        let mut fields = strategy.within(REQUIRED, "segmentPlacement");
        let affinity = segments.topology_affinity.as_ref();
        let topology = affinity.and_then(|affinity| Topology::of_segments(affinity, &mut fields));
        let sizes_at = fields.at.child("segmentSize");
        note_no_sizes(&segments.segment_size, &sizes_at, &mut fields);
        if affinity.is_some() && topology.is_none() {
            fields.wrong(fields.at.child("topologyAffinity").child("topologyKey"), None, MUST_NAME_A_LABEL);
        }
        let ready_when = segments.ready_when.as_ref();
        Self {
            kind: BatchKind::SegmentPlacement,
            sizes: segments.segment_size.clone(),
            sizes_at,
            progression: choose("progression", segments.progression.as_deref(), SEGMENT_PROGRESSIONS, &mut fields),
            progression_at: fields.at.child("progression"),
            soak: fields.by_rule("ready-when").time("soak", segments.soak.as_deref()),
            ready_when: ready_when.map(|written| ReadyWhen::parse(written, &mut fields, SEGMENT_VARIABLE)),
            topology,
            whole: segments.whole == Some(true),
            gangs: Gangs::parse(segments.pod_group_policy.as_ref(), &mut fields),
            recovery: segments.recovery.as_ref().map(|recovery| Recovery::parse(recovery, &mut fields)),
            at: fields.at,
        }
    }

    /// Reads `rollingDeploy`. KEP-75 puts the roles under `roleDeployStep` in its types and directly under `rollingDeploy` in
    /// its example, and the constraint in `rollingDeploy` or beside it.
    fn steps(
        deploy: &api::coordination::RollingDeploy,
        strategy: &api::coordination::Strategy,
        strategy_fields: &mut Reader<'_>,
    ) -> Self {
        let strategy_at = strategy_fields.at.clone();
        let mut fields = strategy_fields.within(REQUIRED, "rollingDeploy");
        let at = fields.at.clone();
        let mut is_faulty = false;
        let mut wrong = |at: FieldPath, value: &Value, detail| {
            is_faulty = true;
            fields.wrong(at, Some(value.to_string()), detail);
        };
        let whole = deploy.direct.get(WHOLE).filter(|value| !value.is_i64());
        if let Some(value) = whole.filter(|value| !value.is_boolean() && !value.is_null()) {
            wrong(at.child(WHOLE), value, "must be true or false");
        }
        let whole = whole.and_then(Value::as_bool).unwrap_or(false);
        let (sizes, sizes_at) = if let Some(step) = &deploy.role_deploy_step {
            (step.clone(), at.child("roleDeployStep"))
        } else {
            let (numbers, others): (Vec<_>, Vec<_>) =
                deploy.direct.iter().partition(|(_, size)| size.as_i64().is_some());
            let known = [RECOVERY, WHOLE, POD_GROUP_POLICY];
            let others = others.into_iter().filter(|(role, _)| !known.contains(&role.as_str()));
            others.for_each(|(role, size)| wrong(at.key(role.as_str()), size, MUST_BE_A_NUMBER));
            let sizes = numbers.into_iter().filter_map(|(role, size)| Some((role.clone(), size.as_i64()?)));
            (sizes.collect(), at.clone())
        };
        if !is_faulty {
            note_no_sizes(&sizes, &sizes_at, &mut fields);
        }
        let written = deploy.direct.get(RECOVERY);
        let recovery = written.and_then(|value| Recovery::parse_beside_roles(value, &mut fields));
        let nested = deploy.deploy_topology_constraint.as_ref();
        fields.at = if nested.is_some() { &at } else { &strategy_at }.child("deployTopologyConstraint");
        let constraint = nested.or(strategy.deploy_topology_constraint.as_ref());
        let gangs = constraint.and_then(|constraint| Gangs::parse(constraint.pod_group_policy.as_ref(), &mut fields));
        let topology = constraint
            .and_then(|constraint| Topology::of_deploy_constraint(constraint, fields.by_rule("constraint-mode")));
        if constraint.is_some() && topology.is_none() && gangs.is_none() {
            fields.wrong(fields.at.child("topologyLayerName"), None, "must name a layer of the ClusterTopology");
        }
        Self {
            kind: BatchKind::RollingDeploy,
            sizes,
            sizes_at,
            progression: Choice::Known(Progression::Scheduled),
            progression_at: at.clone(),
            soak: None,
            ready_when: None,
            topology,
            whole,
            gangs,
            recovery,
            at,
        }
    }

    fn affine(affinity: &api::coordination::AffinityScheduling, strategy: &mut Reader<'_>) -> Self {
        let mut fields = strategy.within(REQUIRED, "affinityScheduling");
        let topology = Topology::of_affinity_scheduling(affinity, &fields.at);
        let sizes_at = fields.at.child("ratios");
        note_no_sizes(&affinity.ratios, &sizes_at, &mut fields);
        if topology.is_none() {
            fields.wrong(fields.at.child("topologyKey"), None, MUST_NAME_A_LABEL);
        }
        Self {
            kind: BatchKind::AffinityScheduling,
            sizes: affinity.ratios.clone(),
            sizes_at,
            progression: choose("batchMode", affinity.batch_mode.as_deref(), BATCH_MODES, &mut fields),
            progression_at: fields.at.child("batchMode"),
            soak: None,
            ready_when: None,
            topology,
            whole: false,
            gangs: Gangs::parse(affinity.pod_group_policy.as_ref(), &mut fields),
            recovery: affinity.recovery.as_ref().map(|recovery| Recovery::parse(recovery, &mut fields)),
            at: fields.at,
        }
    }
}

/// The rule on the required fields of strategies.
pub(super) const REQUIRED: &str = "coordination-strategy";

/// Notes that no role has a size.
fn note_no_sizes(sizes: &BTreeMap<String, i64>, at: &FieldPath, fields: &mut Reader<'_>) {
    if sizes.is_empty() {
        fields.wrong(at.clone(), None, "must name at least one role");
    }
}

/// Key beside the roles directly under `rollingDeploy`.
const WHOLE: &str = "whole";

const MUST_NAME_A_LABEL: &str = "must name the node label of the domain";
const MUST_BE_A_NUMBER: &str = "must be the number of replicas of a role";

fn choose(
    field: &'static str,
    word: Option<&str>,
    spellings: &[(&str, Progression)],
    fields: &mut Reader<'_>,
) -> Choice {
    let known = fields.by_rule("progression").word(field, word, spellings, Progression::OrderedReady);
    known.map_or(Choice::Unknown, Choice::Known)
}
