//! What is decided for one group.

use std::collections::BTreeMap;

use super::absence::{self, Absence, Found};
use super::facts::PodRef;
use super::fate::{Held, Release};
use super::progression::Targets;
use super::rollout::RolloutPlan;
use super::surge::Surplus;
use super::wholes::Whole;
use crate::api::status::GroupStatus;

/// One decision for one group.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Targets by role and coordination.
    pub targets: Targets,
    /// Released counts by batched role: to be committed before anything is released under them.
    pub released: BTreeMap<String, u32>,
    /// Pods to release, lowest ordinal first; those among them that were refused are tried again.
    pub release: Vec<Release>,
    /// Held pods that were made for another batch than theirs: they stay until they are made again.
    pub mis_stamped: Vec<PodRef>,
    /// Why the other held pods are held, and those that were refused.
    pub held: Vec<Held>,
    /// Where the open rollouts stand, and how far each role may go.
    pub rollout: RolloutPlan,
    /// Replicas that may run, and lack pods.
    pub absent: Vec<Absence>,
    /// Why, as far as that was found out.
    pub found: Vec<Found>,
    /// What lacks pods and is released as a whole.
    pub incomplete: Vec<Whole>,
    /// Pods beyond the desired replicas that a rollout may have made.
    pub surplus: Vec<Surplus>,
    /// The status of the carrier, without times.
    pub status: GroupStatus,
}

impl Decision {
    /// True when the released counts differ from what the stored status keeps.
    pub fn needs_commit(&self, stored: &GroupStatus) -> bool {
        committed_counts(&self.status) != committed_counts(stored)
    }

    /// Why pods do not appear, role by role, in words.
    pub fn found_texts(&self) -> impl Iterator<Item = (&Found, String)> {
        self.found.iter().filter_map(|found| Some((found, absence::of(&self.absent, found)?.text(found))))
    }
}

fn committed_counts(status: &GroupStatus) -> BTreeMap<(&str, &str), u32> {
    let entries = status.coordination_state.iter();
    let roles = entries.flat_map(|entry| entry.progress.iter().map(move |(role, progress)| (entry, role, progress)));
    roles
        .filter_map(|(entry, role, progress)| Some(((entry.name.as_str(), role.as_str()), progress.released?)))
        .collect()
}
