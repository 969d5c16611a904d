//! Pods that Kueue has not admitted: other pods wait for them, and may hold the quota they need.

use std::ops::Bound::{Included, Unbounded};

use crate::model::{Batching, Queued};
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, RoleView};

/// The pods of a batch that wait for Kueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InQueue {
    /// A text such as `2 decode wait for Kueue`.
    pub text: String,
    /// Whether held pods of later batches already count in a quota of Kueue.
    pub is_deadlock: bool,
}

/// Returns the released pods of a batch that wait for Kueue; `None` if there are none.
pub(super) fn in_queue(view: &GroupView, batching: &Batching, index: u32) -> Option<InQueue> {
    let roles = || batching.sizes.keys().filter_map(|name| Some((name.as_str(), view.roles.get(name)?)));
    let waiting: Vec<_> = roles()
        .map(|(name, role)| (name, waiting(role, batching.ordinals(name, index, role.desired))))
        .filter(|(_, count)| *count > 0)
        .collect();
    if waiting.is_empty() {
        return None;
    }
    let counts = waiting.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(" and ");
    let count = waiting.iter().map(|(_, count)| count).sum::<usize>();
    let waits = if count == 1 { "waits" } else { "wait" };
    let above = |name: &str, role: &RoleView| batching.ordinals(name, index, role.desired).end;
    let holds = |pod: &PodFacts| pod.queued.is_admitted();
    let holding: usize = roles()
        .map(|(name, role)| {
            let later = role.replicas.held((Included(above(name, role)), Unbounded));
            later.filter(|pod| holds(&pod.facts)).count()
        })
        .sum();
    let text = match holding {
        0 => format!("{counts} {waits} for Kueue"),
        1 => format!("{counts} {waits} for Kueue, where a held pod counts in a quota already"),
        _ => format!("{counts} {waits} for Kueue, where {holding} held pods count in a quota already"),
    };
    Some(InQueue { text, is_deadlock: holding > 0 })
}

fn waiting(role: &RoleView, ordinals: std::ops::Range<u32>) -> usize {
    if role.replicas.none_but(ordinals.clone(), ReplicaIs::Scheduled) {
        return 0;
    }
    let waits = |pod: &PodFacts| !pod.held && pod.queued == Queued::Waits;
    ordinals.map(|ordinal| role.replicas.pods_of(ordinal).iter().filter(|pod| waits(pod)).count()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::{mk_group, mk_pod, mk_segments};
    use crate::plan::view::Replicas;

    /// Evaluates a group with two segments of one prefill and one decode.
    fn seen(states: [(&str, u32, bool, Queued); 3]) -> Option<InQueue> {
        let segments = mk_segments("s", "OrderedReady", &[("prefill", 1), ("decode", 1)]);
        let group = mk_group(&[("prefill", 2), ("decode", 2)], &json!([segments]));
        let mut roles = [("prefill", Replicas::default()), ("decode", Replicas::default())];
        for (role, ordinal, held, queued) in states {
            let pod = PodFacts { held, queued, ..mk_pod(&format!("{role}-{ordinal}"), role, ordinal) };
            roles.iter_mut().find(|(name, _)| *name == role).unwrap().1.add(&pod.into(), ordinal);
        }
        let view = |replicas| RoleView { desired: 2, committed: Some(1), replicas, ..RoleView::default() };
        let roles = roles.into_iter().map(|(name, replicas)| (name.to_owned(), view(replicas))).collect();
        let (_, batching) = group.batched().next().unwrap();
        in_queue(&GroupView { roles, ..GroupView::default() }, batching, 0)
    }

    #[test]
    fn a_batch_waits_for_kueue_and_so_do_those_behind_it() {
        use Queued::{Admitted, AfterUs, Waits};
        let found = seen([("prefill", 0, false, Admitted), ("decode", 0, false, Waits), ("prefill", 1, true, AfterUs)]);
        assert_eq!(found, Some(InQueue { text: "1 decode waits for Kueue".to_owned(), is_deadlock: false }));
        let found =
            seen([("prefill", 0, false, Admitted), ("decode", 0, false, Waits), ("prefill", 1, true, Admitted)]);
        let text = "1 decode waits for Kueue, where a held pod counts in a quota already".to_owned();
        assert_eq!(found, Some(InQueue { text, is_deadlock: true }));
        let found =
            seen([("prefill", 0, false, Admitted), ("decode", 0, false, Admitted), ("prefill", 1, true, Waits)]);
        assert_eq!(found, None);
    }
}
