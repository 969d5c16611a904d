//! Ordinals for replicas whose maker gives none (Deployments, stateless RoleInstanceSets): the lowest free ones, and the
//! same ones at every pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

/// Gives each replica of a role an ordinal. They are alike: when the role shrinks and a high one stays, it moves down to a
/// free place. `given` is the ordinal with which the release of a pod is under way.
pub(in crate::plan) fn assign<'a>(
    role: &RoleView,
    pods: impl Iterator<Item = &'a Arc<PodFacts>>,
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Vec<(Pods<'a>, u32)> {
    place(role, replicas(pods).into_values().map(|pods| candidate(pods, &given)).collect())
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

fn place<'a>(role: &RoleView, mut candidates: Vec<Candidate<'a>>) -> Vec<(Pods<'a>, u32)> {
    let bound = role.places();
    let mut taken: BTreeSet<u32> = role.replicas.iter().map(|(ordinal, _)| ordinal).collect();
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
