//! Replicas beyond the desired ones that a rollout creates for a while (`maxSurge`): their controller waits for them, so they
//! are released at once. Such a replica may also be the first sign of growth that the watches have not shown yet; a live read
//! of the workload tells the two apart.

use crate::plan::view::{GroupView, HeldPod, PodRef};

/// Held pods of one role beyond its desired replicas, all of which may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surplus {
    pub role: String,
    /// The desired replicas, as far as known.
    pub desired: u32,
    /// The pods, each seen before the live read.
    pub pods: Vec<PodRef>,
}

/// Returns the surplus of each role whose desired replicas may all run: before that, surplus pods wait like all others.
/// `released` holds the allowed replicas by role.
pub(in crate::plan) fn surplus<'a>(
    view: &GroupView,
    released: impl IntoIterator<Item = (&'a String, &'a u32)>,
) -> Vec<Surplus> {
    let of_role = |(role, released): (&String, &u32)| {
        let seen = view.roles.get(role).filter(|seen| !seen.unknown && *released >= seen.desired)?;
        let pods: Vec<_> = seen.replicas.held(seen.desired..).map(|pod| pod.pod.clone()).collect();
        (!pods.is_empty()).then(|| Surplus { role: role.clone(), desired: seen.desired, pods })
    };
    released.into_iter().filter_map(of_role).collect()
}

/// Returns the surplus pods that a rollout created, as a live read has `proven`.
pub(in crate::plan) fn in_surge<'a>(
    view: &'a GroupView,
    surplus: &'a [Surplus],
    proven: &'a [PodRef],
) -> impl Iterator<Item = HeldPod> + 'a {
    let of_role = |surplus: &Surplus| Some(view.roles.get(&surplus.role)?.replicas.held(surplus.desired..));
    let pods = surplus.iter().filter(|_| !proven.is_empty()).filter_map(of_role).flatten();
    pods.filter(|pod| proven.contains(&pod.pod))
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
        let mut role = mk_role(2, 1, 1);
        role.replicas.add(&mk_held("b", "main", 2).facts, 2);
        let view = GroupView { roles: [("main".to_owned(), role)].into(), ..GroupView::default() };
        assert_eq!(surplus(&view, [(&"main".to_owned(), &2)]), mk_surplus(&["b"]));
        assert_eq!(surplus(&view, [(&"main".to_owned(), &1)]), []);
    }
}
