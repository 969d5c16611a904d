//! Workloads as the API server sends them: the properties of each kind's type, and the only place that knows the types.

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use super::engine::TemplateEngine;
use super::share::Unavailable;
use super::workload::{OneByOne, OwnUpdate, desired, most};
use super::workload_kind::takes_partition;
use super::{
    Hosts, RolledWorkload, ScaledWorkload, Workload, WorkloadKey, WorkloadKind, gate_of_template, names, queued,
    rolled, rollout_claim,
};
use crate::api::status::Condition;
use crate::api::workload::{Deployment, LeaderWorkerSet, LeaderWorkerTemplate, PodTemplate, StatefulSet};
use crate::api::{Meta, Object};

/// An object of one of the kinds of workload.
pub trait WorkloadObject: Object + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    const KIND: WorkloadKind;

    /// Returns the fields that rules and groups read.
    fn workload(&self) -> Workload;

    /// Returns the state of its rollout, if it is claimed for rollouts in lockstep.
    fn rolled(&self) -> Option<RolledWorkload> {
        None
    }

    /// Returns its scale, if rolegate may scale it.
    fn scaled(&self) -> Option<ScaledWorkload> {
        let read = ScaledWorkload::read(Self::KIND, self.meta(), self.workload().desired, self.replica())?;
        Some(ScaledWorkload { has_old_pods: self.has_old_pods(), ..read })
    }

    /// Returns the pod templates of one replica, each with its number of pods.
    fn replica(&self) -> Vec<(&PodTemplate, u32)>;

    /// Returns the ordinal of the first pod.
    fn start(&self) -> i64 {
        0
    }

    /// Returns the revision of the LeaderWorkerSet whose leaders it creates.
    fn leaders_at(&self) -> Option<&str> {
        None
    }

    /// Returns the partition by which its controller makes pods; `None` while it has not observed the last change.
    fn observed_partition(&self) -> Option<i64> {
        None
    }

    /// Reports whether it creates no pods of a new template.
    fn is_paused(&self) -> bool {
        false
    }

    /// Reports whether it replaces pods by pods of another template, or may do so at any moment.
    fn replaces_pods(&self) -> bool;

    /// Reports whether its status tells of unnumbered pods of an older template.
    fn has_old_pods(&self) -> bool {
        false
    }

    /// Returns its own report of pods that cannot be created.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// An operation on the type of a kind's objects.
pub trait WithType {
    type Output;
    /// Runs the operation.
    fn of<T: WorkloadObject>(self) -> Self::Output;
}

impl WorkloadKind {
    /// Runs an operation on the type that objects of this kind are read as.
    pub fn with_type<W: WithType>(self, what: W) -> W::Output {
        match self {
            Self::StatefulSet => what.of::<StatefulSet>(),
            Self::LeaderWorkerSet => what.of::<LeaderWorkerSet>(),
            Self::Deployment => what.of::<Deployment>(),
        }
    }
}

impl StatefulSet {
    /// Returns the update under way; `None` if nothing is to be replaced.
    fn own_update(&self) -> Option<OwnUpdate> {
        let (status, strategy) = (&self.status, &self.spec.update_strategy);
        let is_known = strategy.r#type != "OnDelete" && !is_unseen(&self.metadata, status.observed_generation);
        let is_open = status.current_revision != status.update_revision || status.updated_replicas < status.replicas;
        let revision = status.update_revision.clone().filter(|_| is_known && is_open)?;
        Some(OwnUpdate { revision, from: most(strategy.rolling_update.partition.unwrap_or(0)) })
    }

    /// Reports whether it makes a pod only when those before it are ready.
    fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy.as_deref().unwrap_or("OrderedReady") != "Parallel"
    }
}

impl WorkloadObject for StatefulSet {
    const KIND: WorkloadKind = WorkloadKind::StatefulSet;

    fn workload(&self) -> Workload {
        let spec = &self.spec;
        Workload {
            partition: rolled::partition_of_user(&self.metadata, spec.update_strategy.rolling_update.partition),
            takes_partition: takes_partition(Some(&spec.update_strategy.r#type)),
            max_unavailable: spec.update_strategy.rolling_update.max_unavailable.clone(),
            one_by_one: self.is_ordered().then_some(OneByOne::OrderedReady),
            min_ready_seconds: seconds(spec.min_ready_seconds),
            queued_as_one: queued::is_queued_as_one(&self.metadata, &spec.template.metadata),
            update: self.own_update(),
            hosts: Hosts::of_stateful_set(self.metadata.display_name(), spec.ordinals.start, &spec.service_name),
            ..plain(self, spec.replicas, [&spec.template])
        }
    }

    fn rolled(&self) -> Option<RolledWorkload> {
        let update = &self.spec.update_strategy.rolling_update;
        let rolled = RolledWorkload::read(Self::KIND, &self.metadata, self.spec.replicas, update.partition)?;
        let at_once = Unavailable::parse(update.max_unavailable.as_ref()).of(rolled.desired);
        Some(RolledWorkload {
            takes_partition: takes_partition(Some(&self.spec.update_strategy.r#type)),
            at_once: Some(at_once),
            ordered: self.is_ordered(),
            start: self.spec.ordinals.start,
            observed: self.status.observed_generation >= self.metadata.generation,
            update_revision: self.status.update_revision.clone(),
            current_revision: self.status.current_revision.clone(),
            ..rolled
        })
    }

    fn replica(&self) -> Vec<(&PodTemplate, u32)> {
        vec![(&self.spec.template, 1)]
    }

    fn start(&self) -> i64 {
        self.spec.ordinals.start
    }

    fn replaces_pods(&self) -> bool {
        let status = &self.status;
        is_unseen(&self.metadata, status.observed_generation) || status.current_revision != status.update_revision
    }

    fn leaders_at(&self) -> Option<&str> {
        self.metadata.label(names::LWS_REVISION)
    }

    fn observed_partition(&self) -> Option<i64> {
        let partition = self.spec.update_strategy.rolling_update.partition.unwrap_or(0);
        (!is_unseen(&self.metadata, self.status.observed_generation)).then_some(partition)
    }
}

impl WorkloadObject for LeaderWorkerSet {
    const KIND: WorkloadKind = WorkloadKind::LeaderWorkerSet;

    fn workload(&self) -> Workload {
        let spec = &self.spec;
        let template = &spec.leader_worker_template;
        let bounds = &spec.rollout_strategy.rolling_update_configuration;
        let unique = spec.network_config.subdomain_policy == "UniquePerReplica";
        let leader = &template.leader_template;
        let workers = (leader.is_none() || desired(template.size) > 1).then_some(&template.worker_template);
        let one_by_one = if spec.startup_policy.as_deref() == Some("LeaderReady") {
            Some(OneByOne::LeaderReady)
        } else {
            self.metadata.annotation(names::LWS_EXCLUSIVE_TOPOLOGY).map(|_| OneByOne::ExclusiveTopology)
        };
        Workload {
            replica_size: desired(template.size).max(1),
            partition: rolled::partition_of_user(&self.metadata, bounds.partition),
            max_surge: bounds.max_surge.clone(),
            max_unavailable: bounds.max_unavailable.clone(),
            one_by_one,
            subgroups: subgroups(template),
            subgroup_topology: self.metadata.annotation(names::LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY).map(str::to_owned),
            hosts: Some(Hosts::of_leader_worker_set(self.metadata.display_name(), unique)),
            templates: leader.iter().chain(workers).map(TemplateEngine::of).collect(),
            ..plain(self, spec.replicas, leader.iter().chain([&template.worker_template]))
        }
    }

    fn replica(&self) -> Vec<(&PodTemplate, u32)> {
        let template = &self.spec.leader_worker_template;
        let workers = desired(template.size).max(1) - 1;
        let leader = template.leader_template.as_ref().unwrap_or(&template.worker_template);
        vec![(leader, 1), (&template.worker_template, workers)]
    }

    fn replaces_pods(&self) -> bool {
        let is_rolling = |c: &Condition| c.r#type == "UpdateInProgress" && c.status == "True";
        let status = &self.status;
        // Before v0.9 the status has no observed generation.
        let unseen = status.observed_generation.is_some() && is_unseen(&self.metadata, status.observed_generation);
        unseen || status.conditions.iter().any(is_rolling)
    }

    /// Leaves out the update revision, which is on the StatefulSet of the leaders.
    fn rolled(&self) -> Option<RolledWorkload> {
        let partition = self.spec.rollout_strategy.rolling_update_configuration.partition;
        let rolled = RolledWorkload::read(Self::KIND, &self.metadata, self.spec.replicas, partition)?;
        let replica_size = desired(self.spec.leader_worker_template.size).max(1);
        let observed = self.status.observed_generation >= self.metadata.generation;
        Some(RolledWorkload { observed, replica_size, ..rolled })
    }
}

impl WorkloadObject for Deployment {
    const KIND: WorkloadKind = WorkloadKind::Deployment;

    fn workload(&self) -> Workload {
        let has_failed =
            |c: &Condition| c.r#type == "Progressing" && c.status == "False" && c.reason == "ProgressDeadlineExceeded";
        Workload {
            min_ready_seconds: seconds(self.spec.min_ready_seconds),
            is_overdue: self.status.conditions.iter().any(has_failed),
            ..plain(self, self.spec.replicas, [&self.spec.template])
        }
    }

    fn replica(&self) -> Vec<(&PodTemplate, u32)> {
        vec![(&self.spec.template, 1)]
    }

    fn is_paused(&self) -> bool {
        self.spec.paused
    }

    fn replaces_pods(&self) -> bool {
        is_unseen(&self.metadata, self.status.observed_generation) || self.has_old_pods()
    }

    fn has_old_pods(&self) -> bool {
        self.status.replicas.unwrap_or(0) > self.status.updated_replicas.unwrap_or(0)
    }

    fn failure(&self) -> Option<&str> {
        let failed = self.status.conditions.iter().find(|c| c.r#type == "ReplicaFailure" && c.status == "True");
        failed.map(|condition| condition.message.as_str())
    }
}

/// Reports whether the controller of an object has not observed its last change.
fn is_unseen(meta: &Meta, observed: Option<i64>) -> bool {
    observed < meta.generation
}

/// Returns a number of seconds; a negative one counts as 0.
fn seconds(written: Option<i64>) -> u32 {
    u32::try_from(written.unwrap_or(0).max(0)).unwrap_or(u32::MAX)
}

/// Returns the subgroups of one group. A leader that would be one too many belongs to the first subgroup, or to none.
fn subgroups(template: &LeaderWorkerTemplate) -> u32 {
    let Some(policy) = &template.sub_group_policy else { return 0 };
    let (size, of_one) = (desired(template.size).max(1), desired(policy.sub_group_size).max(1));
    let without_leader = policy.r#type == "LeaderExcluded" || (size - 1).is_multiple_of(of_one);
    (size - u32::from(without_leader)) / of_one
}

/// Returns the engines of templates, each once.
pub(super) fn engines<'a>(templates: impl IntoIterator<Item = &'a PodTemplate>) -> Vec<String> {
    let mut engines: Vec<String> = Vec::new();
    for engine in templates.into_iter().filter_map(|template| template.metadata.annotation(names::ENGINE)) {
        if !engines.iter().any(|known| known == engine) {
            engines.push(engine.to_owned());
        }
    }
    engines
}

/// Returns the fields common to all kinds: name, replicas of one pod, templates.
fn plain<'a, T: WorkloadObject>(
    object: &T,
    replicas: Option<i64>,
    templates: impl IntoIterator<Item = &'a PodTemplate>,
) -> Workload {
    let meta = object.meta();
    let templates: Vec<_> = templates.into_iter().collect();
    let metas = templates.iter().map(|template| &template.metadata);
    Workload {
        key: WorkloadKey::of(T::KIND, meta),
        uid: meta.uid.clone().unwrap_or_default(),
        desired: desired(replicas),
        replica_size: 1,
        template_labels: templates.iter().map(|template| template.metadata.labels.clone()).collect(),
        takes_partition: true,
        claim: rollout_claim(meta, meta.namespace()),
        owner: meta.controller().map(|owner| format!("{} {:?}", owner.kind, owner.name)),
        queue: [meta].into_iter().chain(metas).find_map(queued::queue_of).map(str::to_owned),
        asks_kueue: templates.iter().find_map(|template| queued::asks_for_topology(&template.metadata)),
        engines: engines(templates.iter().copied()),
        templates: templates.iter().map(|template| TemplateEngine::of(template)).collect(),
        foreign_gate: templates.iter().copied().find_map(gate_of_template),
        ..Workload::default()
    }
}
