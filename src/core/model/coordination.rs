//! A coordination independent of its spelling, with the path of each field for messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::batching::REQUIRED;
use super::fault::{Cause, Fault, Reader};
use super::pod_groups::POD_GROUP_POLICY;
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
    /// `whenNoFit`, if a known word is written.
    pub when_no_fit: Option<WhenNoFit>,
    /// How nodes are requested for a batch that fits nowhere, if they are.
    pub provision: Option<Provision>,
    /// Index in `roles` by name; of two entries with one name, the first.
    positions: BTreeMap<String, usize>,
}

impl Coordination {
    /// Parses the entry at `at`.
    pub(super) fn parse(index: usize, entry: &api::Coordination, at: FieldPath, faults: &mut Vec<Fault>) -> Self {
        let subject = display_name(entry.name.as_deref(), index);
        let mut fields = Reader { rule: REQUIRED, subject: &subject, at, faults };
        let strategy = entry.strategy.as_ref();
        let strategy_at = fields.at.child("strategy");
        let nested = strategy.and_then(|s| s.rolling_update.clone()).map(|r| (r, strategy_at.child("rollingUpdate")));
        let flat =
            strategy.map(|s| s.flat.clone()).filter(|flat| !flat.is_empty()).map(|flat| (flat, strategy_at.clone()));
        let listed = entry.roles.as_deref().unwrap_or_default().iter().enumerate().rev();
        let batchings =
            strategy.map(|s| Batching::parse_all(s, &mut fields.within(REQUIRED, "strategy"))).unwrap_or_default();
        note_misplaced(entry, nested.is_some() && flat.is_some(), &mut fields);
        let scaling = strategy.and_then(|s| s.scaling.as_ref()).map(|_| strategy_at.child("scaling"));
        let is_theirs = scaling.is_some() && batchings.is_empty();
        let rolling_update = nested.or(flat).filter(|_| !is_theirs);
        let rolling_ready_when = rolling_update.as_ref().and_then(|(update, at)| {
            let mut fields = Reader { at: at.clone(), ..fields.by_rule(REQUIRED) };
            Some(ReadyWhen::parse(update.ready_when.as_ref()?, &mut fields, STEP_VARIABLE))
        });
        let when_no_fit = entry.when_no_fit.as_deref().filter(|word| !word.is_empty()).and_then(|word| {
            fields.by_rule("when-no-fit").word("whenNoFit", Some(word), WhenNoFit::WORDS, WhenNoFit::default())
        });
        let requests_nodes = when_no_fit == Some(WhenNoFit::Provision);
        let provision = Provision::parse(&entry.provision.clone().unwrap_or_default(), &mut fields);
        if entry.provision.is_some() && !requests_nodes {
            let detail = "may be set only with `whenNoFit: provision`";
            fields.by_rule("provision").note(provision.at.clone(), Cause::Forbidden, None, detail);
        }
        Self {
            index,
            name: entry.name.clone(),
            // An empty list counts as absent, as for every Go client.
            roles: entry.roles.clone().filter(|roles| !roles.is_empty()),
            positions: listed.map(|(index, role)| (role.clone(), index)).collect(),
            kind: entry.r#type.clone(),
            batchings,
            rolling_update,
            rolling_ready_when,
            scaling,
            when_no_fit,
            provision: requests_nodes.then_some(provision),
            at: fields.at,
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
        self.when_no_fit.unwrap_or_default()
    }

    /// Reports whether nodes are requested for a batch that fits nowhere.
    pub fn requests_nodes(&self) -> bool {
        self.provision.is_some()
    }

    /// Returns how nodes are requested for a batch that fits nowhere; `None` if none are.
    pub fn provision(&self) -> Option<&Provision> {
        self.provision.as_ref()
    }

    /// Reports whether rolegate acts on the coordination, which it does not if only RBG does. An entry without any strategy
    /// counts, so that the mistake is reported.
    pub fn is_ours(&self) -> bool {
        self.scaling.is_none() || self.batching().is_some()
    }

    /// Returns the name, or `coordination-<index>`, for status and messages.
    pub fn display_name(&self) -> String {
        display_name(self.name.as_deref(), self.index)
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

fn display_name(name: Option<&str>, index: usize) -> String {
    name.filter(|name| !name.is_empty()).map_or_else(|| format!("coordination-{index}"), str::to_owned)
}

/// Notes fields that are not allowed, or make no PodGroups, where they stand.
fn note_misplaced(entry: &api::Coordination, update_is_spelled_twice: bool, fields: &mut Reader<'_>) {
    let entry_at = fields.at.clone();
    let mut note = |at: FieldPath, detail| fields.note(at, Cause::Forbidden, None, detail);
    let mut note_policy = |policy: Option<&Value>, at: &FieldPath| {
        if Gangs::written(policy).is_some() {
            note(at.child(POD_GROUP_POLICY), BELONGS_TO_BATCHES);
        }
    };
    note_policy(entry.pod_group_policy.as_ref(), &entry_at);
    let Some(strategy) = &entry.strategy else { return };
    let (at, deploy) = (entry_at.child("strategy"), strategy.rolling_deploy.as_ref());
    let update = strategy.rolling_update.as_ref();
    let affinity = strategy.segment_placement.as_ref().and_then(|segments| segments.topology_affinity.as_ref());
    // As a number it is a role of that name.
    let in_deploy = deploy.and_then(|deploy| deploy.direct.get(POD_GROUP_POLICY)).filter(|policy| !policy.is_i64());
    note_policy(strategy.flat.pod_group_policy.as_ref(), &at);
    note_policy(update.and_then(|update| update.pod_group_policy.as_ref()), &at.child("rollingUpdate"));
    let affinity_at = at.child("segmentPlacement").child("topologyAffinity");
    note_policy(affinity.and_then(|affinity| affinity.pod_group_policy.as_ref()), &affinity_at);
    note_policy(in_deploy, &at.child("rollingDeploy"));
    let detail = match deploy.map(|deploy| deploy.deploy_topology_constraint.is_some()) {
        None => Some("may be set only together with `rollingDeploy`"),
        Some(true) => Some("may not be set together with `rollingDeploy.deployTopologyConstraint`"),
        Some(false) => None,
    };
    if let Some(detail) = detail.filter(|_| strategy.deploy_topology_constraint.is_some()) {
        note(at.child("deployTopologyConstraint"), detail);
    }
    if update_is_spelled_twice {
        let detail = "may not be set together with its fields directly under `strategy`";
        note(at.child("rollingUpdate"), detail);
    }
}

/// The places of `podGroupPolicy`, for one that has no effect in its place.
pub(super) const BELONGS_TO_BATCHES: &str = "has no effect here, only directly in `segmentPlacement` or `affinityScheduling`, and in \
                                      `rollingDeploy.deployTopologyConstraint`";
