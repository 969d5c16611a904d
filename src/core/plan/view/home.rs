//! The domains of batches, by which replicas without a number of their own are numbered: a replica that runs already, and is given
//! another number after a surge or a scale-in, takes one of a batch in its domain.

use std::collections::BTreeMap;

use crate::api::status::CoordinationState;
use crate::model::Group;

/// The domains of the batches of a role.
#[derive(Clone, Debug)]
pub(in crate::plan) struct Home {
    /// The node label.
    pub(in crate::plan) key: String,
    /// The replicas of the role in one batch.
    size: u32,
    domains: BTreeMap<u32, String>,
}

impl Home {
    /// Returns the home of a role whose batches share a domain. `keys` are the node labels of the domains by coordination.
    pub(in crate::plan) fn of(group: &Group, keys: &[(usize, String)], role: &str) -> Option<Self> {
        let mut placed = group.batchings_of(role).filter(|(_, batching)| batching.hard_topology().is_some());
        let (coordination, batching) = placed.next()?;
        let (_, key) = keys.iter().find(|(index, _)| *index == coordination.index)?;
        let domains =
            group.status.coordination(&coordination.display_name()).into_iter().flat_map(CoordinationState::domains);
        let domains = domains.map(|(batch, domain)| (batch, domain.to_owned())).collect();
        Some(Self { key: key.clone(), size: batching.size(role)?, domains })
    }

    /// Returns the domain of the batch with this replica.
    pub(in crate::plan) fn of_number(&self, ordinal: u32) -> Option<&str> {
        self.domains.get(&ordinal.checked_div(self.size)?).map(String::as_str)
    }
}
