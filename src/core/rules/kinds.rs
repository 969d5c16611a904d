//! Kinds that rules judge or look up: one row for each.

use super::decode::DecodeError;
use super::facts::{
    AddJson, add_autoscaler, add_budget, add_carrier, add_definition, add_levels, add_pod, add_pod_group, add_policy,
    add_service, add_topology, add_workload,
};
use super::judged::{self, JudgedObject};
use super::podgroup::JudgedPodGroup;
use super::question::{Judged, Question};
use super::{Need, World};
use crate::api::autoscaler::AUTOSCALER;
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::disruption_budget::POD_DISRUPTION_BUDGET;
use crate::api::service::SERVICE;
use crate::api::workload::{DEPLOYMENT, Deployment, LEADER_WORKER_SET, LeaderWorkerSet, STATEFUL_SET, StatefulSet};
use crate::api::{
    CoordinatedPolicy, ObjectKind, Pod, cluster_topology, coordinated_policy, grove, pod, pod_group, rbg,
    role_coordination,
};
use crate::model::{CliqueSet, Group, Layers};

pub(super) struct Kind {
    pub(super) object: ObjectKind,
    /// `None` for a kind that is only looked up.
    pub(super) rules: Option<KindRules>,
    /// `None` for a kind that no rule looks up.
    pub(super) add: Option<AddJson>,
}

/// Judgement of one kind.
#[derive(Clone, Copy)]
pub(super) struct KindRules {
    /// Reads and judges an object.
    pub(super) judge: fn(Question<'_>, &World) -> Result<Judged, DecodeError>,
    /// Lists the needs of an object.
    pub(super) needs: fn(Question<'_>, &World) -> Result<Vec<Need>, DecodeError>,
}

const fn judged<T: JudgedObject>(object: ObjectKind, add: Option<AddJson>) -> Kind {
    Kind { object, rules: Some(KindRules { judge: judged::judge::<T>, needs: judged::needs::<T> }), add }
}

const fn looked_at(object: ObjectKind, add: AddJson) -> Kind {
    Kind { object, rules: None, add: Some(add) }
}

const KINDS: &[Kind] = &[
    judged::<Group>(rbg::ROLE_BASED_GROUP, Some(add_carrier)),
    judged::<Group>(rbg::ROLE_BASED_GROUP_INSTAI, Some(add_carrier)),
    judged::<Group>(rbg::ROLE_BASED_GROUP_V1ALPHA2, Some(add_carrier)),
    judged::<Group>(role_coordination::ROLE_COORDINATION, Some(add_carrier)),
    judged::<Layers>(cluster_topology::CLUSTER_TOPOLOGY, Some(add_topology)),
    judged::<Layers>(cluster_topology::CLUSTER_TOPOLOGY_KEP75, Some(add_topology)),
    judged::<CoordinatedPolicy>(coordinated_policy::COORDINATED_POLICY, Some(add_policy)),
    judged::<JudgedPodGroup>(pod_group::POD_GROUP, Some(add_pod_group)),
    judged::<Pod>(pod::POD, Some(add_pod)),
    judged::<CliqueSet>(grove::POD_CLIQUE_SET, None),
    judged::<CliqueSet>(grove::POD_GANG_SET, None),
    looked_at(STATEFUL_SET, add_workload::<StatefulSet>),
    looked_at(LEADER_WORKER_SET, add_workload::<LeaderWorkerSet>),
    looked_at(DEPLOYMENT, add_workload::<Deployment>),
    looked_at(POD_DISRUPTION_BUDGET, add_budget),
    looked_at(AUTOSCALER, add_autoscaler),
    looked_at(SERVICE, add_service),
    looked_at(pod_group::TOPOLOGY, add_levels),
    looked_at(CUSTOM_RESOURCE_DEFINITION, add_definition),
];

pub(super) fn row_of(api_version: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.object.kind == kind && known.object.api_version() == api_version)
}

impl World {
    /// Adds an object if rules look up its kind. The object need not be valid.
    ///
    /// # Errors
    ///
    /// When the object does not have the shape of its kind.
    pub fn add_json(&mut self, api_version: &str, kind: &str, object: &str) -> Result<(), DecodeError> {
        let row = row_of(api_version, kind);
        let add = row.and_then(|row| Some((row.object, row.add?)));
        add.map_or(Ok(()), |(kind, add)| add(kind, object, self))
    }
}

/// Returns the kinds that are judged or looked up.
pub(super) fn known_kinds() -> impl Iterator<Item = ObjectKind> {
    KINDS.iter().map(|kind| kind.object)
}

pub fn judged_kinds() -> impl Iterator<Item = ObjectKind> {
    KINDS.iter().filter(|kind| kind.rules.is_some()).map(|kind| kind.object)
}
