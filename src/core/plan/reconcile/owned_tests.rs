use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::pod_group::KUBE_POD_GROUP;
use crate::model::{Claims, GroupKey, MemberKey, PodIdentity, names};
use crate::plan::Reconciler;
use crate::plan::reconcile::action::{Answer, Ended};
use crate::plan::reconcile::options::LoopOptions;
use crate::plan::reconcile::owned_memory::FoundOwned;
use crate::plan::test_support::{mk_group, mk_pod};
use crate::plan::view::PodFacts;

const KUBE: MemberKey = MemberKey::Label(names::KUBE_POD_GROUP);

/// A group of one batch of two replicas, which are committed, with this policy.
fn group(policy: &Value) -> Arc<Group> {
    let segments = json!({ "segmentSize": { "prefill": 2 }, "podGroupPolicy": policy });
    let mut group =
        mk_group(&[("prefill", 2)], &json!([{ "name": "pd", "strategy": { "segmentPlacement": segments } }]));
    group.carrier.uid = "uid".to_owned();
    let state = json!([{ "name": "pd", "progress": { "prefill": { "released": 2 } } }]);
    group.status = serde_json::from_value(json!({ "coordinationState": state })).unwrap();
    Arc::new(group)
}

fn pod(ordinal: u32, held: bool, named: &str) -> PodFacts {
    let pod = mk_pod(&format!("prefill-{ordinal}"), "prefill", ordinal);
    PodFacts { held, pod_groups: vec![(KUBE, named.into())], ..pod }
}

struct Scene {
    group: Arc<Group>,
    reconciler: Reconciler,
    now: Duration,
    /// Whether the carrier owns nothing yet.
    is_new: bool,
}

impl Scene {
    /// A loop that begins to lead when the group has this policy.
    fn of(policy: &Value) -> Self {
        let mut reconciler = Reconciler::new(LoopOptions::default());
        reconciler.lead(true, [], Duration::ZERO);
        reconciler.sync([GroupKey::new("ns", "pd")], Duration::ZERO);
        Self { group: group(policy), reconciler, now: Duration::ZERO, is_new: false }
    }

    /// Runs passes until nothing more is done, with all that is done successful; returns releases and writes of PodGroups.
    fn acts(&mut self, pods: &[PodFacts]) -> Vec<String> {
        let key = GroupKey::new("ns", "pd");
        let claims = Claims::of([self.group.clone()]);
        let snapshot = Snapshot { claims, pods: pods.iter().cloned().collect(), ..Snapshot::default() };
        let mut told = Vec::new();
        for _ in 0..6 {
            self.now += Duration::from_secs(1);
            self.reconciler.changed([key.clone()], self.now);
            for action in self.reconciler.pass(&key, &snapshot, None, self.now, "2026-01-01T00:00:00Z") {
                let ended = match &action {
                    Action::Read(Question::Owned { kinds, .. }) => {
                        assert_eq!(*kinds, BTreeSet::from([KUBE_POD_GROUP]));
                        let old = FoundOwned { kind: KUBE_POD_GROUP, name: "pd-pd-0".to_owned(), min_member: 2 };
                        let found = if self.is_new { Vec::new() } else { vec![old] };
                        Some(Ended::Read(Answer::Owned { owner: "uid".to_owned(), found: Some(found) }))
                    }
                    action => action.ended(None),
                };
                told.extend(match &action {
                    Action::Release { pod, pod_groups, .. } => Some(format!("release {}: {pod_groups:?}", pod.name)),
                    Action::WriteOwned { id, write, .. } => Some(match write {
                        OwnedWrite::Ensure(gang) => format!("ensure {} of {}", id.name, gang.min_member),
                        OwnedWrite::Relax(members) => format!("relax {} to {members}", id.name),
                        OwnedWrite::Remove => format!("remove {}", id.name),
                        OwnedWrite::Create(_) => format!("create {}", id.name),
                    }),
                    _ => None,
                });
                if let Some(ended) = ended.filter(|_| !matches!(action, Action::WriteStatus(_))) {
                    self.reconciler.ended(key.clone(), ended, self.now);
                }
            }
        }
        told.dedup();
        told
    }
}

#[test]
fn an_edit_of_the_level_in_the_middle_leaves_no_pod_waiting() {
    let mut scene = Scene::of(&json!({ "kubeScheduling": {}, "level": "Role" }));
    // Both pods are of the batch's PodGroup, and one of them was lost and came back before the level was changed.
    let acts = scene.acts(&[pod(0, false, "pd-pd-0"), pod(1, true, "pd-pd-0")]);
    let release = format!("release prefill-1: {:?}", vec![(KUBE, Some("pd-pd-0.prefill".to_owned()))]);
    assert_eq!(acts, ["ensure pd-pd-0.prefill of 1", &release]);
    let acts = scene.acts(&[pod(0, false, "pd-pd-0"), pod(1, false, "pd-pd-0.prefill")]);
    assert_eq!(acts, ["relax pd-pd-0 to 1"]);
    let acts = scene.acts(&[pod(0, true, "pd-pd-0.prefill"), pod(1, false, "pd-pd-0.prefill")]);
    assert_eq!(acts, ["remove pd-pd-0", "release prefill-0: []"]);
}

/// A group that is applied before its workload, whose replicas turn out to have two pods.
#[test]
fn a_pod_group_waits_for_the_size_of_its_replicas_and_grows_with_it() {
    let member = |replica: u32, member: u32, size: u32| {
        let pod = mk_pod(&format!("prefill-{replica}-{member}"), "prefill", replica);
        let identity = PodIdentity { member: Some(member), replica_size: size, ..pod.identity.clone() };
        PodFacts { identity, pod_groups: vec![(KUBE, "pd-pd-0".into())], ..pod }
    };
    let mut scene = Scene { is_new: true, ..Scene::of(&json!({ "kubeScheduling": {} })) };
    assert_eq!(scene.acts(&[]), [""; 0], "nothing tells how many pods a replica has");
    assert_eq!(scene.acts(&[member(0, 0, 2)]), ["ensure pd-pd-0 of 4"]);
    // The workload was edited before the last pod was there.
    let pods: Vec<_> = (0..6).map(|at| member(at / 3, at % 3, 3)).collect();
    assert_eq!(scene.acts(&pods[..5]), [""; 0]);
    let acts = scene.acts(&pods);
    assert_eq!(acts[0], "ensure pd-pd-0 of 6");
    assert!(acts[1..].iter().all(|act| act.starts_with("release ")), "{acts:?}");
    assert_eq!(acts[1..].iter().collect::<BTreeSet<_>>().len(), 6, "{acts:?}");
}

#[test]
fn a_policy_that_was_removed_while_nobody_looked_leaves_no_pod_group() {
    let free = |ordinal| PodFacts { pod_groups: Vec::new(), ..pod(ordinal, false, "") };
    let mut scene = Scene::of(&Value::Null);
    assert_eq!(scene.acts(&[pod(0, false, "pd-pd-0"), pod(1, false, "pd-pd-0")]), [""; 0]);
    assert_eq!(scene.acts(&[pod(0, false, "pd-pd-0"), free(1)]), ["relax pd-pd-0 to 1"]);
    assert_eq!(scene.acts(&[free(0), free(1)]), ["remove pd-pd-0"]);
    // Pods that name none are looked through once.
    let mut scene = Scene::of(&Value::Null);
    assert_eq!(scene.acts(&[free(0)]), [""; 0]);
    assert_eq!(scene.acts(&[free(0), pod(1, false, "pd-pd-0")]), [""; 0]);
}
