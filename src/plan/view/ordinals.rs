//! Ordinals for replicas whose maker gives none (Deployments, stateless RoleInstanceSets): the lowest free ones, and the
//! same ones at every pass. A pod that is none of the role's replicas has none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{MadeBy, Role};
use crate::plan::view::{PodFacts, PodRef, RoleView};

/// The pods of one replica.
type Pods<'a> = Vec<&'a Arc<PodFacts>>;

/// A replica without an ordinal.
struct Candidate<'a> {
    pods: Pods<'a>,
    /// Ordinal that was written on it when it was released, or that it is being released with.
    wished: Option<u32>,
    /// Those that run come first, they hold their place; then those that are about to. The rest is served by age, so that
    /// a pod that appears later takes nobody's place.
    rank: (u8, Option<Arc<str>>, PodRef),
}

/// The replicas of a role, and pods that are none of them.
#[derive(Debug, Default)]
pub(in crate::plan) struct Assigned<'a> {
    /// Each replica with its ordinal.
    pub(in crate::plan) placed: Vec<(Pods<'a>, u32)>,
    /// Pods without a place.
    pub(in crate::plan) apart: Pods<'a>,
}

/// Which pods without a number are replicas of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Makes {
    /// It is not known what makes the role's pods.
    Anything,
    /// Those of its workload that are made by one of these.
    By(&'static [MadeBy]),
}

impl Makes {
    /// What makes the pods of a role of this group.
    pub(in crate::plan) fn of(role: Option<&Role>) -> Self {
        let known = role.map(|role| &role.workload).filter(|workload| !workload.desired_is_unknown);
        let key = known.filter(|workload| workload.reference.is_some()).and_then(|workload| workload.key.as_ref());
        key.map_or(Self::Anything, |key| Self::By(key.kind.row().unnumbered_by))
    }

    /// True for a pod that may be a replica beside those that have numbers, if there are any.
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

/// Gives each replica of a role an ordinal. They are alike: when the role shrinks and a high one stays, it moves down to a
/// free place. `given` is the ordinal with which the release of a pod is under way. A pod that nothing `makes` keeps the place
/// that it was released with while no replica takes it: its workload may be on its way, or have let it go. One whose name its
/// StatefulSet cannot give again keeps its place also while it is held.
pub(in crate::plan) fn assign<'a>(
    role: &RoleView,
    makes: Makes,
    pods: impl Iterator<Item = &'a Arc<PodFacts>>,
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Assigned<'a> {
    let beside_numbered = !role.replicas.is_empty();
    let (pods, others): (Vec<_>, Vec<_>) = pods.partition(|pod| makes.may_be(pod, beside_numbered));
    let mut taken: BTreeSet<u32> = role.replicas.iter().map(|(ordinal, _)| ordinal).collect();
    let candidates = replicas(pods.into_iter()).into_values().map(|pods| candidate(pods, &given)).collect();
    let mut placed = place(role, candidates, &mut taken);
    let (kept, apart): (Vec<_>, Vec<_>) = others.into_iter().partition(|pod| {
        let keeps = !pod.held || made_by(pod) == MadeBy::LetGo;
        let place = pod.identity.ordinal.filter(|ordinal| keeps && *ordinal < role.places());
        place.is_some_and(|ordinal| taken.insert(ordinal))
    });
    placed.extend(kept.into_iter().filter_map(|pod| Some((vec![pod], pod.identity.ordinal?))));
    Assigned { placed, apart }
}

/// Pods by instance.
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
    let wished = pods.iter().filter_map(|pod| pod.identity.ordinal.or_else(|| given(&pod.pod))).min();
    Candidate { rank: (rank, created, name), wished, pods }
}

fn place<'a>(role: &RoleView, mut candidates: Vec<Candidate<'a>>, taken: &mut BTreeSet<u32>) -> Vec<(Pods<'a>, u32)> {
    let bound = role.places();
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank));
    let mut placed = Vec::with_capacity(candidates.len());
    let (wishing, mut others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|one| one.wished.is_some());
    for candidate in wishing {
        // One that stays held and wishes for a place beyond those is one too many.
        let stays = |ordinal: &u32| *ordinal < bound || candidate.rank.0 == 2;
        match candidate.wished.filter(stays).filter(|ordinal| taken.insert(*ordinal)) {
            Some(ordinal) => placed.push((candidate.pods, ordinal)),
            None => others.push(candidate),
        }
    }
    others.sort_by(|a, b| a.rank.cmp(&b.rank));
    let mut next = 0;
    for candidate in others {
        while !taken.insert(next) {
            next += 1;
        }
        placed.push((candidate.pods, next));
    }
    placed
}

#[cfg(test)]
#[path = "ordinals_tests.rs"]
mod tests;
