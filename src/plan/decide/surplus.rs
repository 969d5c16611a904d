//! Replicas beyond the desired ones that a rollout makes for a while (`maxSurge`): their controller waits for them, so they
//! are let go at once. A replica beyond the desired ones may also be the first sign of growth that the watches have not
//! shown yet: only a live read of the workload tells the two apart.

use crate::plan::view::{GroupView, HeldPod, PodRef};

/// Held pods of one role beyond its desired replicas, all of which may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surplus {
    /// The role.
    pub role: String,
    /// Replicas that are known to be desired.
    pub desired: u32,
    /// The pods, each seen before the live read.
    pub pods: Vec<PodRef>,
}

/// The surplus of each role of which all desired replicas may run: before that, what is one too many waits like the rest.
/// `released` says how many may.
pub(in crate::plan) fn surplus<'a>(
    view: &GroupView,
    held: &[&HeldPod],
    released: impl IntoIterator<Item = (&'a String, &'a u32)>,
) -> Vec<Surplus> {
    let of_role = |(role, released): (&String, &u32)| {
        let seen = view.roles.get(role).filter(|seen| !seen.unknown && *released >= seen.desired)?;
        let own = held.iter().filter(|pod| pod.role() == *role && pod.ordinal >= seen.desired);
        let pods: Vec<_> = own.map(|pod| pod.pod.clone()).collect();
        (!pods.is_empty()).then(|| Surplus { role: role.clone(), desired: seen.desired, pods })
    };
    released.into_iter().filter_map(of_role).collect()
}

/// True for a pod of the surplus.
pub(in crate::plan) fn is_in(surplus: &[Surplus], pod: &HeldPod) -> bool {
    surplus.iter().any(|surplus| surplus.role == pod.role() && surplus.pods.contains(&pod.pod))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_support::{mk_held, mk_role};

    fn mk_pod(name: &str) -> PodRef {
        PodRef { name: name.into(), uid: name.into() }
    }

    fn mk_surplus(pods: &[&str]) -> Vec<Surplus> {
        vec![Surplus { role: "main".to_owned(), desired: 2, pods: pods.iter().map(|name| mk_pod(name)).collect() }]
    }

    #[test]
    fn a_role_that_is_not_complete_has_no_surplus() {
        let view = GroupView { roles: [("main".to_owned(), mk_role(2, 2, 2))].into(), ..GroupView::default() };
        let held = [mk_held("a", "main", 1), mk_held("b", "main", 2)];
        let held: Vec<_> = held.iter().collect();
        assert_eq!(surplus(&view, &held, [(&"main".to_owned(), &2)]), mk_surplus(&["b"]));
        assert_eq!(surplus(&view, &held, [(&"main".to_owned(), &1)]), []);
    }
}
