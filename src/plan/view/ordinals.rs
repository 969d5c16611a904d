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

/// Gives each replica an ordinal. The replicas of one role are alike: when the role shrinks and a high one stays, it moves
/// down to a free place. `given` is the ordinal with which the release of a pod is under way.
pub(in crate::plan) fn assign<'a>(
    roles: &BTreeMap<String, RoleView>,
    pods: Vec<&'a Arc<PodFacts>>,
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Vec<(Pods<'a>, u32)> {
    let mut by_role: BTreeMap<&str, Vec<Candidate<'a>>> = BTreeMap::new();
    for (role, pods) in replicas(pods) {
        by_role.entry(role).or_default().push(candidate(pods, &given));
    }
    by_role.into_iter().flat_map(|(role, candidates)| place(roles.get(role), candidates)).collect()
}

/// Pods by role and instance.
fn replicas(pods: Vec<&Arc<PodFacts>>) -> impl Iterator<Item = (&str, Pods<'_>)> {
    let mut all: BTreeMap<(&str, &str), Pods<'_>> = BTreeMap::new();
    for pod in pods {
        let instance = pod.identity.unnumbered.as_ref().and_then(|replica| replica.instance.as_deref());
        let role = pod.identity.role.as_deref().unwrap_or_default();
        all.entry((role, instance.unwrap_or(&pod.pod.name))).or_default().push(pod);
    }
    all.into_iter().map(|((role, _), pods)| (role, pods))
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

fn place<'a>(role: Option<&RoleView>, mut candidates: Vec<Candidate<'a>>) -> Vec<(Pods<'a>, u32)> {
    let desired = role.filter(|role| !role.unknown).map_or(u32::MAX, |role| role.desired);
    let mut taken: BTreeSet<u32> = role.into_iter().flat_map(|role| role.replicas.keys().copied()).collect();
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank));
    let mut placed = Vec::with_capacity(candidates.len());
    let (wishing, mut others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|one| one.wished.is_some());
    for candidate in wishing {
        // One that stays held and wishes for a place beyond the desired ones is one too many.
        let stays = |ordinal: &u32| *ordinal < desired || candidate.rank.0 == 2;
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
