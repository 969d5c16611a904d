//! Pods that are bound to a domain alone and have no node yet. A scheduler may bind each of them to any node there, so a pod that
//! differs from them could take the room that one of them needs: it waits. Pods like them fit in any order, and may join them as long
//! as each of them stands on a node that takes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::filter::DomainLabel;
use super::line::Closed;
use super::needs::Needs;
use crate::model::GroupKey;

/// The time after which a domain is open although pods there have no node, unless their group looks at them: it may be deleted.
pub const CLOSED_FOR: Duration = Duration::from_secs(600);

/// The pods by domain.
#[derive(Clone, Debug, Default)]
pub struct Loose {
    domains: BTreeMap<DomainLabel, Unbound>,
    of: HashMap<Arc<str>, DomainLabel>,
    /// Pods that were released before this process knew of them, and that no group has looked at since: it may be deleted.
    unkept: BTreeMap<Arc<str>, (GroupKey, DomainLabel)>,
}

#[derive(Clone, Debug)]
struct Unbound {
    /// The group of the first of them.
    group: GroupKey,
    /// Their common needs; `None` if they differ.
    like: Option<Arc<Needs>>,
    pods: BTreeSet<Arc<str>>,
    /// When their group looked at one of them last.
    since: Duration,
}

impl Unbound {
    fn is_like(&self, like: Option<&Needs>) -> bool {
        self.like.as_ref().zip(like).is_some_and(|(own, like)| own.alike() == like.alike())
    }
}

impl Loose {
    pub fn count(&self) -> usize {
        self.of.len()
    }

    /// Notes a pod without a place, which selects a domain.
    pub(super) fn find(&mut self, uid: &Arc<str>, group: GroupKey, domain: DomainLabel) {
        self.unkept.insert(uid.clone(), (group, domain));
    }

    /// Returns and forgets the pods that no group has looked at.
    pub(super) fn take_unkept(&mut self) -> BTreeMap<Arc<str>, (GroupKey, DomainLabel)> {
        std::mem::take(&mut self.unkept)
    }

    pub(super) fn add(
        &mut self,
        uid: &Arc<str>,
        group: &GroupKey,
        (domain, like): (&DomainLabel, Option<&Arc<Needs>>),
        now: Duration,
    ) {
        let new = || Unbound { group: group.clone(), like: like.cloned(), pods: BTreeSet::new(), since: now };
        let unbound = self.domains.entry(domain.clone()).or_insert_with(new);
        if !unbound.is_like(like.map(|like| &**like)) {
            unbound.like = None;
        }
        unbound.pods.insert(uid.clone());
        unbound.since = now;
        self.of.insert(uid.clone(), domain.clone());
    }

    /// Notes that the group of a pod looks at it.
    pub(super) fn keep(&mut self, uid: &str, now: Duration) {
        self.unkept.remove(uid);
        if let Some(unbound) = self.of.get(uid).and_then(|domain| self.domains.get_mut(domain)) {
            unbound.since = now;
        }
    }

    /// Removes a pod; returns whether its domain is open to all pods then.
    pub(super) fn remove(&mut self, uid: &str) -> bool {
        let Some(domain) = self.of.remove(uid) else {
            self.unkept.remove(uid);
            return false;
        };
        let Some(unbound) = self.domains.get_mut(&domain) else { return false };
        unbound.pods.remove(uid);
        unbound.pods.is_empty() && self.domains.remove(&domain).is_some()
    }

    /// Iterates over the pods that can take the place of this one.
    pub(super) fn equals_of(&self, uid: &str) -> impl Iterator<Item = &Arc<str>> {
        let unbound = self.of.get(uid).and_then(|domain| self.domains.get(domain));
        unbound.filter(|unbound| unbound.like.is_some()).into_iter().flat_map(|unbound| &unbound.pods)
    }

    /// Returns the domain of a pod.
    pub(super) fn domain_of(&self, uid: &str) -> Option<&DomainLabel> {
        self.of.get(uid)
    }

    /// Reports whether all pods that are still to be bound in a domain have these needs.
    pub(super) fn are_like(&self, domain: &DomainLabel, like: &Needs) -> bool {
        self.domains.get(domain).is_none_or(|unbound| unbound.is_like(Some(like)))
    }

    /// Returns the domains that are closed to these pods, which have these needs in common and share a domain of this key. Whoever joins
    /// others must know where these may go: each `stands` on a node that takes it.
    pub(super) fn closed_to(
        &self,
        (key, like): (&str, Option<&Needs>),
        pods: &[Arc<str>],
        now: Duration,
        stands: impl Fn(&str) -> bool,
    ) -> Vec<DomainLabel> {
        let is_late = |since: Duration| now.saturating_sub(since) > CLOSED_FOR;
        let joins = |(domain, unbound): &(&DomainLabel, &Unbound)| {
            let is_own = || unbound.pods.iter().all(|uid| pods.contains(uid));
            let joins = || domain.0 == key && unbound.is_like(like) && unbound.pods.iter().all(|uid| stands(uid));
            is_late(unbound.since) || is_own() || joins()
        };
        self.domains.iter().filter(|one| !joins(one)).map(|(domain, _)| domain.clone()).collect()
    }

    /// Returns for whose pods a domain is closed.
    pub fn closed(&self, domain: &DomainLabel) -> Option<Closed> {
        let Unbound { group, .. } = self.domains.get(domain)?;
        let (key, domain) = (**domain).clone();
        Some(Closed { key, domain, group: group.clone(), unbound: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_closed_as_long_as_the_group_of_its_pods_looks_at_them() {
        let domain: DomainLabel = Arc::new(("rack".to_owned(), "r1".to_owned()));
        let mut loose = Loose::default();
        loose.add(&"pod".into(), &GroupKey::new("ns", "pd"), (&domain, None), Duration::ZERO);
        let is_closed = |loose: &Loose, minutes: u64| {
            let closed = loose.closed_to(("", None), &[], Duration::from_secs(60 * minutes), |_| true);
            closed == std::slice::from_ref(&domain)
        };
        assert_eq!([10, 11].map(|minutes| is_closed(&loose, minutes)), [true, false]);
        loose.keep("pod", Duration::from_secs(480));
        assert_eq!([11, 18, 19].map(|minutes| is_closed(&loose, minutes)), [true, true, false]);
        assert!(loose.remove("pod") && !is_closed(&loose, 11));
    }

    #[test]
    fn a_domain_is_closed_to_equal_pods_as_well_while_one_does_not_stand() {
        let domain: DomainLabel = Arc::new(("rack".to_owned(), "r1".to_owned()));
        let (mut loose, like) = (Loose::default(), Arc::new(Needs::default()));
        loose.add(&"pod".into(), &GroupKey::new("ns", "pd"), (&domain, Some(&like)), Duration::ZERO);
        let closed = |stands: bool| loose.closed_to(("rack", Some(&like)), &[], Duration::ZERO, |_| stands).len();
        assert_eq!([true, false].map(closed), [0, 1]);
    }
}
