//! A coordination independent of its spelling, with the path of each field for messages.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::batching::POD_GROUP_POLICY;
use super::ready_when::STEP_VARIABLE;
use super::{Batching, FieldPath, Gangs, Provision, ReadyWhen, WhenNoFit};
use crate::api;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordination {
    /// Index in the list.
    pub index: usize,
    /// Path of the entry.
    pub at: FieldPath,
    pub name: Option<String>,
    /// `roles` as written; an empty list counts as absent.
    pub roles: Option<Vec<String>>,
    /// `type` as written.
    pub kind: Option<String>,
    /// Strategies that make batches. A valid entry has at most one; only the first is used.
    pub batchings: Vec<Batching>,
    /// Rolling update, nested or in KEP-30's flat form, with its path.
    pub rolling_update: Option<(api::coordination::RollingUpdate, FieldPath)>,
    /// `readyWhen` of the rolling update.
    pub rolling_ready_when: Option<ReadyWhen>,
    /// Path of RBG's own creation in lockstep, on which rolegate does not act. Without batches, a rolling update beside it is
    /// RBG's too.
    pub scaling: Option<FieldPath>,
    /// `whenNoFit` as written.
    pub when_no_fit: Option<String>,
    /// `provision` as written.
    pub written_provision: Option<Provision>,
    /// Fields that are not allowed in their place, each with the rule.
    pub misplaced: Vec<(FieldPath, &'static str)>,
    /// Index in `roles` by name; of two entries with one name, the first.
    positions: BTreeMap<String, usize>,
}

impl Coordination {
    /// Parses the entry at `at`.
    pub fn parse(index: usize, entry: &api::Coordination, at: FieldPath) -> Self {
        let strategy_at = at.child("strategy");
        let strategy = entry.strategy.as_ref();
        let nested = strategy.and_then(|s| s.rolling_update.clone()).map(|r| (r, strategy_at.child("rollingUpdate")));
        let flat =
            strategy.map(|s| s.flat.clone()).filter(|flat| !flat.is_empty()).map(|flat| (flat, strategy_at.clone()));
        let misplaced = strategy.map(|strategy| misplaced(strategy, &strategy_at, nested.is_some() && flat.is_some()));
        let misplaced = misplaced_policies(entry, &at).chain(misplaced.unwrap_or_default()).collect();
        let mut positions = BTreeMap::new();
        for (index, role) in entry.roles.iter().flatten().enumerate() {
            positions.entry(role.clone()).or_insert(index);
        }
        let batchings = strategy.map(|s| Batching::parse_all(s, &strategy_at)).unwrap_or_default();
        let scaling = strategy.and_then(|s| s.scaling.as_ref()).map(|_| strategy_at.child("scaling"));
        let is_theirs = scaling.is_some() && batchings.is_empty();
        let rolling_update = nested.or(flat).filter(|_| !is_theirs);
        let rolling_ready_when = rolling_update.as_ref().and_then(|(update, at)| {
            Some(ReadyWhen::parse(update.ready_when.as_ref()?, at.child("readyWhen"), STEP_VARIABLE))
        });
        Self {
            index,
            name: entry.name.clone(),
            // An empty list counts as absent, as for every Go client.
            roles: entry.roles.clone().filter(|roles| !roles.is_empty()),
            positions,
            kind: entry.r#type.clone(),
            batchings,
            rolling_update,
            rolling_ready_when,
            scaling,
            when_no_fit: entry.when_no_fit.clone(),
            written_provision: entry.provision.as_ref().map(|written| Provision::parse(written, at.child("provision"))),
            misplaced,
            at,
        }
    }

    /// Returns the strategy that makes batches, if any.
    pub fn batching(&self) -> Option<&Batching> {
        self.batchings.first()
    }

    /// Returns each `readyWhen` of the coordination.
    pub fn ready_when(&self) -> impl Iterator<Item = &ReadyWhen> {
        self.batchings.iter().filter_map(|batching| batching.ready_when.as_ref()).chain(&self.rolling_ready_when)
    }

    /// Returns the action for a batch that fits in no domain.
    pub fn when_no_fit(&self) -> WhenNoFit {
        WhenNoFit::parse(self.when_no_fit.as_deref())
    }

    /// Reports whether nodes are requested for a batch that fits nowhere.
    pub fn requests_nodes(&self) -> bool {
        self.when_no_fit() == WhenNoFit::Provision
    }

    /// Returns how nodes are requested for a batch that fits nowhere; `None` if none are.
    pub fn provision(&self) -> Option<Cow<'_, Provision>> {
        let by_default = || Provision::parse(&api::coordination::Provision::default(), self.at.child("provision"));
        self.requests_nodes()
            .then(|| self.written_provision.as_ref().map_or_else(|| Cow::Owned(by_default()), Cow::Borrowed))
    }

    /// Reports whether rolegate acts on the coordination, which it does not if only RBG does. An entry without any strategy
    /// counts, so that the mistake is reported.
    pub fn is_ours(&self) -> bool {
        self.scaling.is_none() || self.batching().is_some()
    }

    /// Returns the name, or `coordination-<index>`, for status and messages.
    pub fn display_name(&self) -> String {
        self.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| format!("coordination-{}", self.index))
    }

    /// Returns every role of `roles` and of the size maps, sorted.
    pub fn role_names(&self) -> BTreeSet<&str> {
        let listed = self.roles.iter().flatten().map(String::as_str);
        let sized = self.batchings.iter().flat_map(|batching| batching.sizes.keys().map(String::as_str));
        listed.chain(sized).collect()
    }

    /// Returns the path at which the coordination names a role: in `roles`, else in a size map.
    pub fn path_of(&self, role: &str) -> FieldPath {
        match (self.positions.get(role), self.sizing(role)) {
            (Some(index), _) => self.at.child("roles").index(*index),
            (None, Some(batching)) => batching.sizes_at.key(role),
            (None, None) => self.at.clone(),
        }
    }

    /// Reports whether `roles` or a size map names the role.
    pub fn names(&self, role: &str) -> bool {
        self.positions.contains_key(role) || self.sizing(role).is_some()
    }

    fn sizing(&self, role: &str) -> Option<&Batching> {
        self.batchings.iter().find(|batching| batching.sizes.contains_key(role))
    }
}

fn misplaced(
    strategy: &api::coordination::Strategy,
    at: &FieldPath,
    update_is_spelled_twice: bool,
) -> Vec<(FieldPath, &'static str)> {
    let nested = strategy.rolling_deploy.as_ref().map(|deploy| deploy.deploy_topology_constraint.is_some());
    let detail = match nested {
        None => Some("may be set only together with `rollingDeploy`"),
        Some(true) => Some("may not be set together with `rollingDeploy.deployTopologyConstraint`"),
        Some(false) => None,
    };
    let constraint = detail.filter(|_| strategy.deploy_topology_constraint.is_some());
    let constraint = constraint.map(|detail| (at.child("deployTopologyConstraint"), detail));
    let update = update_is_spelled_twice
        .then(|| (at.child("rollingUpdate"), "may not be set together with its fields directly under `strategy`"));
    constraint.into_iter().chain(update).collect()
}

/// Returns the policies that make no PodGroups where they stand.
fn misplaced_policies(
    entry: &api::Coordination,
    at: &FieldPath,
) -> impl Iterator<Item = (FieldPath, &'static str)> + use<> {
    let strategy = entry.strategy.as_ref();
    let strategy_at = at.child("strategy");
    let update = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let affinity = strategy.and_then(|strategy| strategy.segment_placement.as_ref()?.topology_affinity.as_ref());
    let deploy = strategy.and_then(|strategy| strategy.rolling_deploy.as_ref());
    // As a number it is a role of that name.
    let in_deploy = deploy.and_then(|deploy| deploy.direct.get(POD_GROUP_POLICY)).filter(|policy| !policy.is_i64());
    let found = |policy: Option<&Value>, at: FieldPath| {
        let path = at.child(POD_GROUP_POLICY);
        Gangs::parse(policy, path).map(|gangs| (gangs.at, BELONGS_TO_BATCHES))
    };
    let places = [
        found(entry.pod_group_policy.as_ref(), at.clone()),
        found(strategy.and_then(|strategy| strategy.flat.pod_group_policy.as_ref()), strategy_at.clone()),
        found(update.and_then(|update| update.pod_group_policy.as_ref()), strategy_at.child("rollingUpdate")),
        found(
            affinity.and_then(|affinity| affinity.pod_group_policy.as_ref()),
            strategy_at.child("segmentPlacement").child("topologyAffinity"),
        ),
        found(in_deploy, strategy_at.child("rollingDeploy")),
    ];
    places.into_iter().flatten()
}

/// The places of `podGroupPolicy`, for one that has no effect in its place.
pub const BELONGS_TO_BATCHES: &str = "has no effect here, only directly in `segmentPlacement` or `affinityScheduling`, and in \
                                      `rollingDeploy.deployTopologyConstraint`";
