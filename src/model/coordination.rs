//! A coordination, free of spelling, with the path of each field for messages.

use std::collections::BTreeSet;

use super::{Batching, FieldPath};
use crate::api;

/// A coordination between roles.
#[derive(Clone, Debug)]
pub struct Coordination {
    /// Position in the list.
    pub index: usize,
    /// Path of the entry.
    pub at: FieldPath,
    /// Name as written.
    pub name: Option<String>,
    /// `roles` as written.
    pub roles: Option<Vec<String>>,
    /// `type` as written.
    pub kind: Option<String>,
    /// Strategies that make batches: at most one in a valid entry; the first one counts.
    pub batchings: Vec<Batching>,
    /// The rolling update, with its path; KEP-30's flat form included.
    pub rolling_update: Option<(api::coordination::RollingUpdate, FieldPath)>,
    /// RBG's own creation in lockstep, which is not ours to act on.
    pub scaling: Option<FieldPath>,
    /// `whenNoFit` as written.
    pub when_no_fit: Option<String>,
    /// Fields that may not stand where they do, with what must hold.
    pub misplaced: Vec<(FieldPath, &'static str)>,
}

impl Coordination {
    /// Parses an entry found at `at`.
    pub fn parse(index: usize, entry: &api::Coordination, at: FieldPath) -> Self {
        let strategy_at = at.child("strategy");
        let strategy = entry.strategy.as_ref();
        let nested = strategy.and_then(|s| s.rolling_update.clone()).map(|r| (r, strategy_at.child("rollingUpdate")));
        let flat =
            strategy.map(|s| s.flat.clone()).filter(|flat| !flat.is_empty()).map(|flat| (flat, strategy_at.clone()));
        let misplaced = strategy.map(|strategy| misplaced(strategy, &strategy_at, nested.is_some() && flat.is_some()));
        Self {
            index,
            name: entry.name.clone(),
            // An empty list is a list that is not there, as for every Go client.
            roles: entry.roles.clone().filter(|roles| !roles.is_empty()),
            kind: entry.r#type.clone(),
            batchings: strategy.map(|s| Batching::parse_all(s, &strategy_at)).unwrap_or_default(),
            rolling_update: nested.or(flat),
            scaling: strategy.and_then(|s| s.scaling.as_ref()).map(|_| strategy_at.child("scaling")),
            when_no_fit: entry.when_no_fit.clone(),
            misplaced: misplaced.unwrap_or_default(),
            at,
        }
    }

    /// How it makes batches, if it does.
    pub fn batching(&self) -> Option<&Batching> {
        self.batchings.first()
    }

    /// Its name, or `coordination-<index>`: what status and messages call it.
    pub fn display_name(&self) -> String {
        self.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| format!("coordination-{}", self.index))
    }

    /// Every role it speaks of, sorted: `roles`, else the keys of the size maps.
    pub fn role_names(&self) -> BTreeSet<&str> {
        let listed = self.roles.iter().flatten().map(String::as_str);
        let sized = self.batchings.iter().flat_map(|batching| batching.sizes.keys().map(String::as_str));
        listed.chain(sized).collect()
    }

    /// Where it names a role: in `roles`, else in its size map.
    pub fn path_of(&self, role: &str) -> FieldPath {
        let listed = self.roles.iter().flatten().position(|name| name == role);
        let sized = self.batchings.iter().find(|batching| batching.sizes.contains_key(role));
        match (listed, sized) {
            (Some(index), _) => self.at.child("roles").index(index),
            (None, Some(batching)) => batching.sizes_at.key(role),
            (None, None) => self.at.clone(),
        }
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
