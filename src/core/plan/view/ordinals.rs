//! Ordinals for replicas whose controller gives none (Deployments, stateless RoleInstanceSets): the lowest free ones, stable
//! from pass to pass. A pod that is no replica of the role has none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{MadeBy, Role};
use crate::plan::view::home::Home;
use crate::plan::view::{PodFacts, PodRef, RoleView};

type Pods<'a> = Vec<&'a Arc<PodFacts>>;

struct Candidate<'a> {
    pods: Pods<'a>,
    /// The ordinal that is being written, at its release or when it moves, or that was written before.
    wished: Option<u32>,
    /// The order of service: running replicas first, which keep their place, then replicas about to run, then the rest by age,
    /// so that a later pod takes no other pod's place.
    rank: (u8, Option<Arc<str>>, PodRef),
}

/// The replicas of a role, and pods that are no replica.
#[derive(Debug, Default)]
pub(in crate::plan) struct Assigned<'a> {
    /// Each replica with its ordinal.
    pub(in crate::plan) placed: Vec<(Pods<'a>, u32)>,
    /// Pods without a place.
    pub(in crate::plan) apart: Pods<'a>,
}

/// The pods without a number that are replicas of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Makes {
    /// Any pods: the workload of the role is not known.
    Anything,
    /// Only pods with one of these creators.
    By(&'static [MadeBy]),
}

impl Makes {
    /// Returns which pods are replicas of this role.
    pub(in crate::plan) fn of(role: Option<&Role>) -> Self {
        let known = role.map(|role| &role.workload).filter(|workload| !workload.desired_is_unknown);
        let key = known.filter(|workload| workload.reference.is_some()).and_then(|workload| workload.key.as_ref());
        key.map_or(Self::Anything, |key| Self::By(key.kind.row().unnumbered_by))
    }

    /// Reports whether a pod may be a replica; `beside_numbered` says that numbered replicas exist.
    fn may_be(self, pod: &PodFacts, beside_numbered: bool) -> bool {
        let by = made_by(pod);
        match self {
            Self::By(makers) => makers.contains(&by),
            Self::Anything => {
                !(matches!(by, MadeBy::NobodyNow | MadeBy::LetGo) || by == MadeBy::Nobody && beside_numbered)
            }
        }
    }
}

fn made_by(pod: &PodFacts) -> MadeBy {
    pod.identity.unnumbered.as_ref().map(|unnumbered| unnumbered.by).unwrap_or_default()
}

/// Assigns an ordinal to each replica of a role. Replicas are interchangeable: when the role shrinks and a high one stays, it
/// moves down to a free place. `given` returns the ordinal that is being written to a pod. A pod that is no replica by `makes` keeps
/// the place of its release until a replica takes it: its workload may not be known yet, or may have let it go. If its
/// StatefulSet cannot reuse its name, it keeps the place even while held. Where the batches of the role share a domain, a running
/// replica that is given another number takes one of a batch in its domain.
pub(in crate::plan) fn assign<'a>(
    (role, home): (&RoleView, Option<&Home>),
    makes: Makes,
    pods: impl Iterator<Item = &'a Arc<PodFacts>>,
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Assigned<'a> {
    let beside_numbered = !role.replicas.is_empty();
    let (pods, others): (Vec<_>, Vec<_>) = pods.partition(|pod| makes.may_be(pod, beside_numbered));
    let mut taken: BTreeSet<u32> = role.replicas.iter().map(|(ordinal, _)| ordinal).collect();
    let candidates = replicas(pods.into_iter()).into_values().map(|pods| candidate(pods, &given)).collect();
    let mut placed = place((role, home), candidates, &mut taken);
    let (kept, apart): (Vec<_>, Vec<_>) = others.into_iter().partition(|pod| {
        let keeps = !pod.held || made_by(pod) == MadeBy::LetGo;
        let place = pod.identity.ordinal.filter(|ordinal| keeps && *ordinal < role.places());
        place.is_some_and(|ordinal| taken.insert(ordinal))
    });
    placed.extend(kept.into_iter().filter_map(|pod| Some((vec![pod], pod.identity.ordinal?))));
    Assigned { placed, apart }
}

/// Groups pods by instance.
fn replicas<'a>(pods: impl Iterator<Item = &'a Arc<PodFacts>>) -> BTreeMap<&'a str, Pods<'a>> {
    let mut all: BTreeMap<&str, Pods<'_>> = BTreeMap::new();
    for pod in pods {
        let instance = pod.identity.unnumbered.as_ref().and_then(|replica| replica.instance.as_deref());
        all.entry(instance.unwrap_or(&pod.pod.name)).or_default().push(pod);
    }
    all
}

fn candidate<'a>(mut pods: Pods<'a>, given: &impl Fn(&PodRef) -> Option<u32>) -> Candidate<'a> {
    pods.sort_by_key(|pod| (pod.created.clone(), pod.pod.clone()));
    let state = |pod: &&Arc<PodFacts>| match pod.held {
        false => 0,
        true if given(&pod.pod).is_some() => 1,
        true => 2,
    };
    let rank = pods.iter().map(state).min().unwrap_or(2);
    let oldest = pods.first().map(|pod| (pod.created.clone(), pod.pod.clone()));
    let (created, name) = oldest.unwrap_or_else(|| (None, PodRef { name: "".into(), uid: "".into() }));
    let written = |pod: &&Arc<PodFacts>| {
        let (label, given) = (pod.identity.ordinal, given(&pod.pod));
        if pod.held { label.or(given) } else { given.or(label) }
    };
    let wished = pods.iter().filter_map(written).min();
    Candidate { rank: (rank, created, name), wished, pods }
}

fn place<'a>(
    (role, home): (&RoleView, Option<&Home>),
    mut candidates: Vec<Candidate<'a>>,
    taken: &mut BTreeSet<u32>,
) -> Vec<(Pods<'a>, u32)> {
    let bound = role.places();
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank));
    let mut placed = Vec::with_capacity(candidates.len());
    let (wishing, mut others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|one| one.wished.is_some());
    for candidate in wishing {
        // A held replica whose ordinal is out of bounds is surplus.
        let stays = |ordinal: &u32| *ordinal < bound || candidate.rank.0 == 2;
        match candidate.wished.filter(stays).filter(|ordinal| taken.insert(*ordinal)) {
            Some(ordinal) => placed.push((candidate.pods, ordinal)),
            None => others.push(candidate),
        }
    }
    others.sort_by(|a, b| a.rank.cmp(&b.rank));
    if let Some(home) = home {
        let (at_home, elsewhere) = at_home(home, bound, others, taken);
        placed.extend(at_home);
        others = elsewhere;
    }
    let mut next = 0;
    for candidate in others {
        while !taken.insert(next) {
            next += 1;
        }
        placed.push((candidate.pods, next));
    }
    placed
}

/// Gives replicas that were sent to a domain the free ordinals below `bound` of batches there, and returns the others, with those
/// last that wait for one: replicas of a surge, as long as others can take what is free.
fn at_home<'a>(
    home: &Home,
    bound: u32,
    candidates: Vec<Candidate<'a>>,
    taken: &mut BTreeSet<u32>,
) -> (Vec<(Pods<'a>, u32)>, Vec<Candidate<'a>>) {
    let sent = |candidate: &Candidate<'a>| candidate.pods.iter().find_map(|pod| pod.sent_to(&home.key));
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut placed, mut elsewhere) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let free = sent(&candidate).and_then(|domain| {
            let next = next.entry(domain).or_default();
            let found = (*next..bound).find(|n| home.of_number(*n) == Some(domain) && !taken.contains(n));
            *next = found.map_or(bound, |found| found + 1);
            found
        });
        match free.filter(|number| taken.insert(*number)) {
            Some(number) => placed.push((candidate.pods, number)),
            None => elsewhere.push(candidate),
        }
    }
    elsewhere.sort_by_key(|candidate| candidate.wished.is_none() && sent(candidate).is_some());
    (placed, elsewhere)
}

#[cfg(test)]
#[path = "ordinals_tests.rs"]
mod tests;
