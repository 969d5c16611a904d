//! Batches in several domains: a surge, or a scale-in that took other pods than the last ones, has left replicas without a number of
//! their own in a batch whose other pods run elsewhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::model::{Batching, Group};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Release;
use crate::plan::decide::placed::{Domains, Placed, pin};
use crate::plan::placement::{Placer, Within};
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, RoleView, count};

/// The replicas of a coordination that have no number of their own.
#[derive(Clone, Copy)]
pub(super) struct Unnumbered<'a> {
    pub(super) view: &'a GroupView,
    pub(super) batching: &'a Batching,
    /// The node label of the domains.
    pub(super) key: &'a str,
}

/// A batch in several domains.
pub(super) struct Split {
    pub(super) batch: u32,
    pub(super) domain: String,
    /// The other domains, with the pods there.
    pub(super) elsewhere: BTreeMap<String, Vec<Arc<PodFacts>>>,
}

impl<'a> Unnumbered<'a> {
    /// Returns the batches with such replicas.
    fn batches(self) -> BTreeSet<u32> {
        let roles = self.batching.sizes.keys().filter_map(|name| Some((name, self.view.roles.get(name)?)));
        let of_role = |(name, role): (&String, &'a RoleView)| {
            let desired = role.unnumbered.range(..role.desired);
            desired.filter_map(|ordinal| self.batching.batch_of(name, *ordinal)).collect::<BTreeSet<_>>()
        };
        roles.flat_map(of_role).collect()
    }

    /// Returns such replicas of a batch by the domain in which they run, or to which their release has sent them.
    fn domains(self, batch: u32, placer: &Placer<'_>) -> BTreeMap<String, Vec<&'a [Arc<PodFacts>]>> {
        let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (_, role, ordinals) in self.view.ranges(self.batching, batch) {
            for pods in role.unnumbered.range(ordinals).map(|ordinal| role.replicas.pods_of(*ordinal)) {
                if let Some(domain) = pods.iter().find_map(|pod| domain_of(pod, self.key, placer)) {
                    found.entry(domain).or_default().push(pods);
                }
            }
        }
        found
    }

    /// Corrects the domains of batches by what their pods show. A domain that some of them show stays.
    pub(super) fn correct(self, domains: &mut Domains, placer: Option<&Placer<'_>>) {
        let Some(placer) = placer.filter(|placer| placer.knows()) else { return };
        for batch in self.batches() {
            let shown = self.domains(batch, placer);
            let is_numbered = self.view.ranges(self.batching, batch).any(|(_, role, ordinals)| {
                role.replicas.count_in(ordinals.clone(), ReplicaIs::Released)
                    > count(role.unnumbered.range(ordinals).count())
            });
            if domains.get(&batch).is_some_and(|domain| is_numbered || shown.contains_key(domain)) {
                continue;
            }
            let most = shown.iter().max_by_key(|(domain, replicas)| (replicas.len(), Reverse(*domain)));
            domains.extend(most.map(|(domain, _)| (batch, domain.clone())));
        }
    }

    /// Returns the batches in several domains.
    pub(super) fn splits(self, domains: &Domains, placer: &Placer<'_>) -> Vec<Split> {
        let split = |batch: u32| {
            let domain = domains.get(&batch)?.clone();
            let elsewhere = self.domains(batch, placer).into_iter().filter(|(other, _)| *other != domain);
            let pods = |replicas: Vec<&[Arc<PodFacts>]>| replicas.concat();
            let elsewhere: BTreeMap<_, _> = elsewhere.map(|(other, replicas)| (other, pods(replicas))).collect();
            (!elsewhere.is_empty()).then_some(Split { batch, domain, elsewhere })
        };
        self.batches().into_iter().filter_map(split).collect()
    }

    /// Reports whether a pod waited for its turn, and was not there before its group.
    pub(super) fn was_released(self, pod: &PodFacts) -> bool {
        pod.stamp.held || pod.sent_to(self.key).is_some()
    }

    /// Returns the first stray pod that was released and whose place is free in the domain of its batch, if all desired replicas of
    /// the batches are ready and there are no others: one is recreated at a time.
    pub(super) fn next(self, splits: &[Split], placer: &Placer<'_>) -> Option<Arc<PodFacts>> {
        let mut roles = self.batching.sizes.keys().filter_map(|name| self.view.roles.get(name));
        let rests = |role: &RoleView| {
            !role.unknown
                && role.all_in(0..role.desired, ReplicaIs::Ready)
                && role.replicas.iter().all(|(ordinal, _)| ordinal < role.desired)
        };
        if !roles.all(rests) || !self.view.leaving.is_empty() {
            return None;
        }
        splits.iter().find_map(|split| {
            let fits = |pod: &&Arc<PodFacts>| {
                let needs = placer.needs_wherever(&pod.pod.uid, self.key);
                needs.is_some_and(|needs| placer.room_for(&[needs], self.key, Within::Only(&split.domain)).is_some())
            };
            split.elsewhere.values().flatten().filter(|pod| self.was_released(pod)).find(fits).cloned()
        })
    }
}

/// Returns the domain in which a pod runs, or to which its release has sent it.
fn domain_of(pod: &PodFacts, key: &str, placer: &Placer<'_>) -> Option<String> {
    placer.runs_in(&pod.pod.uid, key).or_else(|| pod.sent_to(key)).map(str::to_owned)
}

/// Sends the pods of a surge to domains of their group with room for them, first where most pods of other revisions are that none of
/// a surge replaces yet: they stay there, and take the numbers of these. If there is no room, they go anywhere, since their controller
/// waits for them. Those whose room is not known yet are removed.
pub(super) fn place_surge(
    (group, view): (&Group, &GroupView),
    surge: &mut Vec<Release>,
    context: DecisionContext<'_>,
    given: &mut Placed,
    placer: &mut Placer<'_>,
) {
    let mut replicas: BTreeMap<(String, u32), Vec<&mut Release>> = BTreeMap::new();
    for release in surge.iter_mut() {
        replicas.entry((release.pod.role().to_owned(), release.pod.ordinal)).or_default().push(release);
    }
    let (mut waits, mut sent) = (HashSet::new(), Vec::new());
    for ((name, _), releases) in replicas {
        let mut of_role = group.batchings_of(&name).filter(|(_, batching)| batching.hard_topology().is_some());
        let known =
            of_role.find_map(|(coordination, _)| Some((coordination.index, context.domain_key(coordination.index)?)));
        let (Some((index, key)), Some(role)) = (known, view.roles.get(&name)) else { continue };
        given.needs_room = true;
        let uids: Vec<_> = releases.iter().map(|release| release.pod.pod.uid.clone()).collect();
        if !placer.knows() {
            waits.extend(uids);
            continue;
        }
        let own = given.domains.get(&index).into_iter().flat_map(BTreeMap::values);
        let mut old: BTreeMap<String, i64> = own.map(|domain| (domain.clone(), 0)).collect();
        let revision = releases.first().and_then(|release| release.pod.facts.revision.clone());
        for (ordinal, pod) in role.replicas.pods().filter(|(_, pod)| !pod.held) {
            let domain = domain_of(pod, key, placer).and_then(|domain| old.get_mut(&domain));
            let change = i64::from(pod.revision != revision) - i64::from(ordinal >= role.desired);
            domain.into_iter().for_each(|old| *old += change);
        }
        for (_, domain) in sent.iter().filter(|(of, _)| *of == name) {
            old.entry(String::clone(domain)).and_modify(|old| *old -= 1);
        }
        let mut domains: Vec<_> = old.iter().map(|(domain, old)| (Reverse(*old), domain)).collect();
        domains.sort();
        let found = domains.into_iter().find_map(|(_, domain)| Some((domain, placer.place_in(&uids, key, domain)?)));
        if let Some((domain, hosts)) = found {
            releases.into_iter().zip(hosts).for_each(|(release, host)| release.pin = pin(key, domain, host));
            sent.push((name.clone(), domain.clone()));
        } else if old.keys().any(|domain| placer.is_closed(&uids, key, domain)) {
            waits.extend(uids);
        }
    }
    surge.retain(|release| !waits.contains(&release.pod.pod.uid));
}
