use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::plan::test_support::mk_pod;
use crate::plan::view::{LabelledPlace, RoleView};

/// A pod event: the replica, the place in it, and the state of the pod.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug)]
struct Told {
    ordinal: u32,
    member: u32,
    size: u32,
    held: bool,
    scheduled: bool,
    ready: bool,
    stamped: bool,
    /// The batch size on its labels, and whether its batch label matches it.
    labelled: Option<(u32, bool)>,
}

/// Ordinals around the edges of blocks, far away, and the highest ones.
fn ordinals() -> impl Strategy<Value = u32> {
    prop_oneof![0..8_u32, 60..70_u32, 125..131_u32, 5_000..5_003_u32, Just(u32::MAX), Just(u32::MAX - 1)]
}

fn told() -> impl Strategy<Value = Told> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let labelled =
        prop::option::weighted(0.9, (prop_oneof![5 => Just(2_u32), 1 => 1..4_u32], prop::bool::weighted(0.9)));
    (ordinals(), 0..3_u32, 1..4_u32, flags, labelled).prop_map(
        |(ordinal, member, size, (held, scheduled, ready, stamped), labelled)| Told {
            ordinal,
            member,
            size,
            held,
            scheduled,
            ready,
            stamped,
            labelled,
        },
    )
}

impl Told {
    fn pod(&self) -> PodFacts {
        let mut pod = mk_pod(&format!("main-{}-{}", self.ordinal, self.member), "main", self.ordinal);
        (pod.held, pod.scheduled, pod.ready) = (self.held, self.scheduled, self.ready);
        pod.identity.replica_size = self.size;
        pod.stamp.batch = self.stamped.then(|| "pd-0".into());
        let place = |(size, right): (u32, bool)| {
            let place = LabelledPlace::at(size, self.ordinal);
            LabelledPlace { segment: if right { place.segment } else { u32::MAX }, ..place }
        };
        pod.labelled = self.labelled.map(place);
        pod.created = Some(format!("2026-01-01T00:00:{:02}Z", self.size).into());
        pod
    }
}

/// The reference implementation, replica by replica.
#[derive(Default)]
struct Fresh(BTreeMap<u32, Replica>);

impl Fresh {
    fn of(pods: &BTreeMap<PodRef, (u32, PodFacts)>) -> Self {
        let mut all = Self::default();
        for (ordinal, pod) in pods.values() {
            let replica = all.0.entry(*ordinal).or_default();
            replica.pods += 1;
            replica.held += u32::from(pod.held);
            replica.scheduled += u32::from(pod.scheduled);
            replica.ready += u32::from(pod.ready);
            replica.size = replica.size.max(pod.identity.replica_size);
            // All pods have place 0.
            replica.doubled = replica.pods > replica.size;
        }
        all
    }

    fn in_range(&self, range: &Range<u32>) -> impl Iterator<Item = (u32, &Replica)> {
        let range = range.clone();
        self.0.iter().map(|(ordinal, replica)| (*ordinal, replica)).filter(move |(ordinal, _)| range.contains(ordinal))
    }
}

const QUESTIONS: [ReplicaIs; 6] = [
    ReplicaIs::Complete,
    ReplicaIs::Untouched,
    ReplicaIs::Released,
    ReplicaIs::Scheduled,
    ReplicaIs::Ready,
    ReplicaIs::Doubled,
];

proptest! {
    /// After any sequence of events, the kept bits give the same answers as a count of all pods.
    #[test]
    fn kept_counts_answer_as_fresh_ones(
        events in prop::collection::vec((told(), prop::bool::weighted(0.3)), 0..120),
        ranges in prop::collection::vec((ordinals(), ordinals()), 8),
    ) {
        let (mut kept, mut pods) = (Replicas::default(), BTreeMap::new());
        for (told, goes) in &events {
            let pod = told.pod();
            let before = kept.clone();
            if let Some((ordinal, old)) = pods.remove(&pod.pod) {
                let old: PodFacts = old;
                kept.remove(&old.pod, ordinal);
            }
            if !goes {
                kept.add(&pod.clone().into(), told.ordinal);
                pods.insert(pod.pod.clone(), (told.ordinal, pod));
            }
            prop_assert!(before.iter().count() <= kept.iter().count() + 1, "a copy is not changed with it");
        }
        let fresh = Fresh::of(&pods);
        let mut again = Replicas::default();
        pods.values().for_each(|(ordinal, pod)| again.add(&pod.clone().into(), *ordinal));
        prop_assert_eq!(&again, &kept, "the order in which they came makes no difference");
        let counted: BTreeMap<_, _> = kept.iter().map(|(ordinal, replica)| (ordinal, *replica)).collect();
        prop_assert_eq!(&counted, &fresh.0);
        prop_assert_eq!(kept.largest(), fresh.0.values().map(|replica| replica.size).max());
        prop_assert_eq!(kept.newest(), pods.values().filter_map(|(_, pod)| pod.created.as_ref()).max());
        let is_stamped = |(_, pod): &(u32, PodFacts)| pod.held && pod.stamp.may_be_wrong();
        prop_assert_eq!(kept.has_stamped(), pods.values().any(is_stamped));
        for size in 1..4 {
            let found: Vec<_> = kept.misplaced(size).map(|(ordinal, pod)| (ordinal, pod.pod.clone())).collect();
            let is_so = |(ordinal, pod): &&(u32, PodFacts)| {
                !pod.held && pod.labelled != Some(LabelledPlace { size, segment: ordinal / size })
            };
            let mut expected: Vec<_> =
                pods.values().filter(is_so).map(|(ordinal, pod)| (*ordinal, pod.pod.clone())).collect();
            expected.sort();
            prop_assert_eq!(found, expected, "labels that are not of batches of {}", size);
        }
        let bounds = ranges.iter().map(|(from, to)| *from..*to).chain([0..u32::MAX, 0..0]);
        for range in bounds {
            for what in QUESTIONS {
                let fits = fresh.in_range(&range).filter(|(_, replica)| what.holds(replica)).count();
                prop_assert_eq!(kept.count_in(range.clone(), what), count(fits), "{:?} in {:?}", what, &range);
                let all = fresh.in_range(&range).all(|(_, replica)| what.holds(replica));
                prop_assert_eq!(kept.none_but(range.clone(), what), all);
                let failing = (0..range.end.min(6_000)).find(|at| fresh.0.get(at).is_none_or(|one| !what.holds(one)));
                prop_assert_eq!(kept.first_failing(range.end.min(6_000), what), failing);
            }
            let sum = fresh.in_range(&range).map(|(_, one)| PodCounts::of(one)).fold(PodCounts::default(), PodCounts::and);
            prop_assert_eq!(kept.pods_in(range.clone()), sum);
            let held: Vec<_> = kept.held(range.clone()).map(|pod| (pod.ordinal, pod.pod.clone())).collect();
            let is_held = |(ordinal, pod): &&(u32, PodFacts)| pod.held && range.contains(ordinal);
            let mut expected: Vec<_> =
                pods.values().filter(is_held).map(|(ordinal, pod)| (*ordinal, pod.pod.clone())).collect();
            expected.sort();
            prop_assert_eq!(held, expected);
            if range.start <= range.end {
                let role = RoleView { replicas: kept.clone(), ..RoleView::default() };
                let missing = (range.end - range.start).saturating_sub(sum.replicas);
                prop_assert_eq!(role.pods_in(range), sum.size.saturating_add(missing.saturating_mul(role.replica_size())));
            }
        }
        let end = pods.values().map(|(ordinal, _)| ordinal.saturating_add(1)).max();
        prop_assert_eq!(kept.end(), end.unwrap_or(0));
        prop_assert_eq!(kept.held(..).count(), pods.values().filter(|(_, pod)| pod.held).count(), "the highest as well");
    }
}
