//! What has a place, or went without one, without a look at all that decides where it fits.

use std::sync::Arc;

use crate::model::batching::CLUSTER_KEY;
use crate::model::{Batching, Group, HoldReason};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::{Domains, Placed, Unjudged};
use crate::plan::placement::Placer;
use crate::plan::view::GroupView;

/// Returns what the batches that were placed were placed without, as far as it is known now. It is told as long as it is so: the
/// Event comes with the release only.
pub(super) fn unjudged(
    group: &Group,
    view: &GroupView,
    given: &Placed,
    context: DecisionContext<'_>,
    placer: Option<&Placer<'_>>,
) -> Unjudged {
    let mut hard = group.batched().filter(|(_, batching)| batching.placed_in().is_some()).peekable();
    let Some(placer) = placer.filter(|_| hard.peek().is_some()) else { return Unjudged::Nothing };
    if let Some(why) = placer.refused() {
        return Unjudged::Told(format!("what is to go as a whole goes without a place: {why}"));
    }
    if !placer.knows() {
        return Unjudged::NotKnown;
    }
    // The condition has the name of the reason that its Event had.
    let told = group.status.condition(HoldReason::RoomUnknown.as_str()).is_some();
    let mut texts = Vec::new();
    for (coordination, batching) in hard {
        let of = Of { view, domains: given.domains.get(&coordination.index), batching, placer };
        let ends = of.ends();
        if !ends.iter().all(|(_, pods)| placer.sees_claims_of(pods)) {
            return Unjudged::NotKnown;
        }
        let without_a_look = |(batch, pods): &(u32, Vec<Arc<str>>)| {
            let why = placer.blind_to(pods, told)?;
            Some(format!("{} goes without a look at {why}", batching.batch_name(*batch)))
        };
        let key = context.domain_key(coordination.index);
        texts.extend(ends.iter().find_map(without_a_look).or_else(|| of.without_a_domain(key?)));
    }
    if texts.is_empty() { Unjudged::Nothing } else { Unjudged::Told(texts.join("; ")) }
}

/// The batches of one coordination.
struct Of<'a> {
    view: &'a GroupView,
    domains: Option<&'a Domains>,
    batching: &'a Batching,
    placer: &'a Placer<'a>,
}

impl Of<'_> {
    /// Returns the first and the last placed batch, with the pods of one replica of each role: the others have the same templates.
    fn ends(&self) -> Vec<(u32, Vec<Arc<str>>)> {
        let mut batches = self.domains.into_iter().flat_map(Domains::keys).copied();
        let ends = batches.next().into_iter().chain(batches.next_back());
        let pods = |batch| {
            let ranges = self.view.ranges(self.batching, batch);
            let pods = ranges.flat_map(|(_, role, ordinals)| role.replicas.pods_of(ordinals.start));
            (batch, pods.map(|pod| pod.pod.uid.clone()).collect())
        };
        ends.map(pods).collect()
    }

    /// Returns a text on a batch that went without a domain, while no node has its label.
    fn without_a_domain(&self, key: &str) -> Option<String> {
        let mut roles = self.batching.sizes.keys().filter_map(|name| Some((name, self.view.roles.get(name)?)));
        let batch = roles.find_map(|(name, role)| {
            let went = role.replicas.unbound().filter(|(ordinal, _)| *ordinal < role.desired);
            let mut batches = went.filter_map(|(ordinal, _)| self.batching.batch_of(name, ordinal));
            batches.find(|batch| self.domains.is_none_or(|domains| !domains.contains_key(batch)))
        })?;
        let is_unlabelled = key != CLUSTER_KEY && !self.placer.has_label(key);
        is_unlabelled.then(|| without_domain(self.batching, batch, key))
    }
}

/// Returns the text on a batch that goes although no node has the label of its domains.
pub(super) fn without_domain(batching: &Batching, batch: u32, key: &str) -> String {
    let name = batching.batch_name(batch);
    format!("{name} goes without a place: no node has the label {key}, and its affinity keeps it together")
}
