//! The pods held for one reason: a list of pods, or ranges of ordinals, so that many pods cost no more than a few.

use std::collections::BTreeSet;
use std::ops::{Bound, Range, RangeBounds};

use crate::plan::view::{GroupView, HeldPod, count};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldPods {
    listed: Vec<HeldPod>,
    runs: Vec<Run>,
}

/// A range of ordinals.
pub(in crate::plan) type Ordinals = (Bound<u32>, Bound<u32>);

/// The held pods of one role in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    role: String,
    ordinals: Ordinals,
    /// The number of these pods.
    pods: u32,
}

impl HeldPods {
    /// Returns all held pods of a role with these ordinals.
    pub(in crate::plan) fn run(view: &GroupView, role: &str, ordinals: Ordinals) -> Self {
        let pods = view.roles.get(role).map_or(0, |role| role.replicas.pods_in(ordinals).held);
        let runs = if pods == 0 { Vec::new() } else { vec![Run { role: role.to_owned(), ordinals, pods }] };
        Self { listed: Vec::new(), runs }
    }

    pub(in crate::plan) fn push(&mut self, pod: HeldPod) {
        self.listed.push(pod);
    }

    pub(in crate::plan) fn extend(&mut self, pods: &[HeldPod]) {
        self.listed.extend_from_slice(pods);
    }

    /// Merges the pods of another entry.
    pub(in crate::plan) fn and(mut self, other: Self) -> Self {
        self.listed.extend(other.listed);
        self.runs.extend(other.runs);
        self
    }

    pub fn count(&self) -> u32 {
        self.runs.iter().map(|run| run.pods).fold(count(self.listed.len()), u32::saturating_add)
    }

    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.runs.is_empty()
    }

    /// Reports whether the held pod is included.
    pub fn has(&self, pod: &HeldPod) -> bool {
        let listed = || self.listed.iter().any(|listed| listed.pod == pod.pod);
        self.runs.iter().any(|run| run.role == pod.role() && run.ordinals.contains(&pod.ordinal)) || listed()
    }

    /// Reports whether any pod of a role is included.
    pub fn has_role(&self, role: &str) -> bool {
        self.runs.iter().any(|run| run.role == role) || self.listed.iter().any(|pod| pod.role() == role)
    }

    /// Iterates over the pods. The view must be the one of the decision.
    pub fn each<'a>(&'a self, view: &'a GroupView) -> impl Iterator<Item = HeldPod> + 'a {
        let of_run = |run: &'a Run| {
            let role = view.roles.get(&run.role).into_iter();
            role.flat_map(|role| role.replicas.held(run.ordinals))
        };
        self.runs.iter().flat_map(of_run).chain(self.listed.iter().cloned())
    }

    /// Returns the first pod, by ordinal, role and name, whose ordinal is in the range that `ordinals` returns for its role.
    /// The view must be the one of the decision.
    pub(in crate::plan) fn first(&self, view: &GroupView, ordinals: impl Fn(&str) -> Range<u32>) -> Option<HeldPod> {
        let of_run = |run: &Run| {
            let mut held = view.roles.get(&run.role)?.replicas.held(ordinals(&run.role));
            held.find(|pod| run.ordinals.contains(&pod.ordinal))
        };
        let asked = |pod: &&HeldPod| ordinals(pod.role()).contains(&pod.ordinal);
        let listed = self.listed.iter().filter(asked).min_by(|one, other| one.in_order(other)).cloned();
        self.runs.iter().filter_map(of_run).chain(listed).min_by(HeldPod::in_order)
    }

    pub(in crate::plan) fn roles(&self) -> BTreeSet<String> {
        let runs = self.runs.iter().map(|run| run.role.as_str());
        runs.chain(self.listed.iter().map(HeldPod::role)).map(str::to_owned).collect()
    }
}

impl From<Vec<HeldPod>> for HeldPods {
    fn from(listed: Vec<HeldPod>) -> Self {
        Self { listed, runs: Vec::new() }
    }
}
