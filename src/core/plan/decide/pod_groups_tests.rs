use serde_json::{Value, json};

use super::*;
use crate::api::pod_group::KUBE_POD_GROUP;
use crate::model::{PodIdentity, names};
use crate::plan::test_support::{mk_group, mk_held, mk_pod, mk_role, mk_segments};
use crate::plan::view::LabelledPlace;

const KUBE: MemberKey = MemberKey::Label(names::KUBE_POD_GROUP);
const KAI: MemberKey = MemberKey::Annotation(names::KAI_POD_GROUP);

/// Returns eight replicas of prefill and four of decode, the first of which are released, as members of their batch.
fn view(released: u32, scheduled: bool) -> GroupView {
    let role = |desired, size, released| {
        let mut view = RoleView { committed: Some(released), ..mk_role(desired, released, released) };
        for (ordinal, pod) in mk_role(desired, released, released).replicas.pods() {
            view.replicas.remove(&pod.pod, ordinal);
            let pod_groups = vec![(KUBE, format!("pd-pd-{}", ordinal / size).into())];
            let runs = scheduled && ordinal < released;
            view.replicas
                .add(&PodFacts { scheduled: runs, ready: runs, pod_groups, ..(**pod).clone() }.into(), ordinal);
        }
        view
    };
    let roles = [("prefill".to_owned(), role(8, 4, released)), ("decode".to_owned(), role(4, 2, released / 2))].into();
    GroupView { roles, ..GroupView::default() }
}

fn group_with(policy: &Value) -> Group {
    let constraint = json!({"topologyLayerName": "host", "podGroupPolicy": policy});
    let deploy = json!({"roleDeployStep": {"prefill": 4, "decode": 2}, "deployTopologyConstraint": constraint});
    mk_group(&[("prefill", 8), ("decode", 4)], &json!([{"name": "pd", "strategy": {"rollingDeploy": deploy}}]))
}

fn group() -> Group {
    group_with(&json!({"kubeScheduling": {}}))
}

fn at_level(level: &str) -> Group {
    group_with(&json!({"kubeScheduling": {}, "level": level}))
}

/// Gives a role pods of replicas of two, the first of which are released.
fn in_twos(view: &mut GroupView, role: &str, replicas: u32, released: u32, name: &dyn Fn(u32) -> Option<String>) {
    let seen = view.roles.get_mut(role).unwrap();
    *seen = RoleView { desired: replicas, committed: Some(released), ..RoleView::default() };
    for ordinal in 0..replicas {
        for member in 0..2 {
            let pod = mk_pod(&format!("{role}-{ordinal}-{member}"), role, ordinal);
            let identity = PodIdentity { member: Some(member), replica_size: 2, ..pod.identity.clone() };
            let pod_groups = name(ordinal).into_iter().map(|name| (KUBE, name.into())).collect();
            let pod = PodFacts { identity, pod_groups, held: ordinal >= released, ..pod };
            seen.replicas.add(&pod.into(), ordinal);
        }
    }
}

fn made(group: &Group, view: &GroupView, released: [u32; 2]) -> Vec<(String, u32)> {
    let released = [("prefill".to_owned(), released[0]), ("decode".to_owned(), released[1])].into();
    batch_pod_groups(group, view, &released).into_iter().map(|gang| (gang.name, gang.min_member)).collect()
}

fn named(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter().map(|(name, members)| ((*name).to_owned(), *members)).collect()
}

#[test]
fn each_released_batch_has_a_gang_of_its_pods() {
    let (group, view) = (group(), view(8, false));
    assert_eq!(made(&group, &view, [8, 4]), named(&[("pd-pd-0", 6), ("pd-pd-1", 6)]));
    let pod = mk_held("decode-3", "decode", 3);
    let of = pod_group_of(&group, &view, &pod).unwrap();
    assert_eq!((of.policy.kind(), of.name.as_str(), of.words().as_str()), (Some(KUBE_POD_GROUP), "pd-pd-1", "step 2"));
    let beyond = mk_held("decode-4", "decode", 4);
    assert!(pod_group_of(&group, &view, &beyond).is_none(), "a pod beyond the desired replicas is in no batch");
}

#[test]
fn each_role_of_a_batch_has_a_gang_of_its_own() {
    let mut view = view(0, false);
    let expected = named(&[("pd-pd-0.decode", 2), ("pd-pd-0.prefill", 4)]);
    assert_eq!(made(&at_level("Role"), &view, [4, 2]), expected);
    in_twos(&mut view, "decode", 4, 0, &|_| None);
    assert_eq!(made(&at_level("Role"), &view, [4, 2])[0], ("pd-pd-0.decode".to_owned(), 4));
    let pod = mk_held("decode-3", "decode", 3);
    let group = at_level("Role");
    let of = pod_group_of(&group, &view, &pod).unwrap();
    assert_eq!((of.name.as_str(), of.words().as_str()), ("pd-pd-1.decode", "role \"decode\" of step 2"));
}

#[test]
fn each_replica_of_several_pods_has_a_gang_of_its_own_and_a_single_pod_none() {
    let mut view = view(0, false);
    let group = at_level("Replica");
    in_twos(&mut view, "decode", 4, 0, &|_| None);
    assert_eq!(made(&group, &view, [4, 2]), named(&[("pd-pd.decode.0", 2), ("pd-pd.decode.1", 2)]));
    let lasting =
        |view: &GroupView| -> Vec<_> { lasting_pod_groups(&group, view).into_iter().map(|(_, name)| name).collect() };
    assert_eq!(lasting(&view), ["pd-pd.decode.0", "pd-pd.decode.1", "pd-pd.decode.2", "pd-pd.decode.3"]);
    let pod = view.roles["decode"].replicas.held(3..).next().unwrap();
    let of = pod_group_of(&group, &view, &pod).unwrap();
    assert_eq!((of.name.as_str(), of.words().as_str()), ("pd-pd.decode.3", "replica 3 of role \"decode\""));
    assert!(pod_group_of(&group, &view, &mk_held("prefill-0", "prefill", 0)).is_none());
    // The pods of a replica may be gone for a while.
    for pod in view.roles["decode"].replicas.pods_of(3).to_vec() {
        view.roles.get_mut("decode").unwrap().replicas.remove(&pod.pod, 3);
    }
    assert!(lasting(&view).contains(&"pd-pd.decode.3".to_owned()));
    assert_eq!(made(&group, &view, [8, 4]).len(), 3, "it has no pods that it could start");
}

#[test]
fn a_replica_stays_a_gang_when_it_is_scheduled_and_follows_its_size() {
    let mut view = view(0, false);
    in_twos(&mut view, "decode", 4, 2, &|ordinal| Some(format!("pd-pd.decode.{ordinal}")));
    let released = [("prefill".to_owned(), 4), ("decode".to_owned(), 2)].into();
    let gangs = batch_pod_groups(&at_level("Replica"), &view, &released);
    assert!(gangs.iter().all(|gang| gang.min_member == 2 && gang.renewed), "{gangs:?}");
}

#[test]
fn pods_that_were_released_under_another_policy_are_not_waited_for() {
    let mut view = view(4, false);
    assert_eq!(made(&at_level("Role"), &view, [4, 2]), [], "all pods are in another PodGroup");
    // One of them is lost, and made again.
    let decode = view.roles.get_mut("decode").unwrap();
    let lost = decode.replicas.pods_of(1)[0].clone();
    decode.replicas.remove(&lost.pod, 1);
    assert_eq!(made(&at_level("Role"), &view, [4, 2]), named(&[("pd-pd-0.decode", 1)]));
    view.roles.get_mut("decode").unwrap().replicas.add(&mk_pod("decode-1", "decode", 1).into(), 1);
    assert_eq!(made(&at_level("Role"), &view, [4, 2]), named(&[("pd-pd-0.decode", 1)]));
}

fn edits(group: &Group, view: &GroupView, pod: &HeldPod) -> Vec<MemberEdit> {
    super::edits(group, pod, pod_group_of(group, view, pod).as_ref())
}

#[test]
fn a_release_puts_a_pod_into_the_pod_group_that_it_has_now() {
    let view = view(0, false);
    let pod = |role: &str, ordinal, key, name: &str| {
        let pod = mk_pod("a", role, ordinal);
        HeldPod { facts: PodFacts { pod_groups: vec![(key, name.into())], ..pod }.into(), ordinal }
    };
    let older = mk_held("a", "decode", 3);
    let of_batch = pod("decode", 3, KUBE, "pd-pd-1");
    assert_eq!(edits(&group(), &view, &of_batch), []);
    assert_eq!(edits(&group(), &view, &older), [(KUBE, Some("pd-pd-1".to_owned()))], "it is older than the policy");
    assert_eq!(edits(&at_level("Role"), &view, &of_batch), [(KUBE, Some("pd-pd-1.decode".to_owned()))]);
    assert_eq!(edits(&at_level("Replica"), &view, &of_batch), [(KUBE, None)], "a replica of one pod has none");
    let of_role = pod("decode", 3, KUBE, "pd-pd-1.decode");
    assert_eq!(edits(&group(), &view, &of_role), [(KUBE, Some("pd-pd-1".to_owned()))]);
    let to_kai = edits(&group_with(&json!({"kai": {}})), &view, &of_batch);
    assert_eq!(to_kai, [(KUBE, None), (KAI, Some("ns.pd-pd-1".to_owned()))]);
    let none = group_with(&json!("nil"));
    assert_eq!(edits(&none, &view, &of_batch), [(KUBE, None)]);
    assert_eq!(edits(&none, &view, &pod("decode", 3, KAI, "ns.pd-pd-1.decode")), [(KAI, None)]);
    assert_eq!(edits(&none, &view, &pod("decode", 3, KUBE, "pd")), [], "the PodGroup of its user stays");
    // The batch size was changed after the pod was made for the fourth batch.
    let facts = PodFacts { labelled: Some(LabelledPlace { size: 1, segment: 3 }), ..(*of_batch.facts).clone() };
    let facts = PodFacts { pod_groups: vec![(KUBE, "pd-pd-3".into())], ..facts };
    let moved = HeldPod { facts: facts.into(), ordinal: 3 };
    assert_eq!(edits(&group(), &view, &moved), [(KUBE, Some("pd-pd-1".to_owned()))]);
    assert_eq!(edits(&none, &view, &moved), [(KUBE, None)]);
}

#[test]
fn committed_pods_say_which_pod_group_they_lack() {
    let pod = |role: &str, ordinal: u32, at_once| {
        let name = format!("{role}-{ordinal}");
        Release { pod: mk_held(&name, role, ordinal), at_once, pin: BTreeMap::new() }
    };
    let release = [pod("prefill", 3, true), pod("prefill", 4, true), pod("decode", 3, true), pod("prefill", 7, false)];
    let missing = |name: &str| MissingOwned { name: name.to_owned(), why: "no such kind".to_owned() };
    let view = view(0, false);
    let held = explain(&group(), &view, &release, &[missing("pd-pd-1"), missing("pd-pd-2")]);
    let seen: Vec<_> = held.iter().map(|held| (held.batch, held.reason, held.message.as_str())).collect();
    let message = "step 2 is held without PodGroup \"pd-pd-1\": no such kind";
    assert_eq!(seen, [(Some(1), HoldReason::PodGroupMissing, message)]);
    let pods: Vec<_> = held[0].pods.each(&GroupView::default()).map(|pod| pod.pod.name.to_string()).collect();
    assert_eq!(pods, ["prefill-4", "decode-3"], "what is not committed waits for that first");
    let kinds = [("pd-pd-0".to_owned(), KUBE_POD_GROUP), ("pd-pd-1".to_owned(), KUBE_POD_GROUP)];
    assert_eq!(awaited(&group(), &view, &release), BTreeMap::from(kinds));
    let held = explain(&at_level("Role"), &view, &release, &[missing("pd-pd-1.prefill"), missing("pd-pd-1.decode")]);
    let message = "role \"prefill\" of step 2 is held without PodGroup \"pd-pd-1.prefill\": no such kind (2 PodGroups of the \
                   batch are missing)";
    assert_eq!(held.iter().map(|held| held.message.as_str()).collect::<Vec<_>>(), [message]);
}

#[test]
fn a_scheduled_batch_is_loosened() {
    assert_eq!(made(&group(), &view(4, true), [4, 2]), named(&[("pd-pd-0", 1)]));
}

#[test]
fn a_batch_that_is_made_anew_starts_together_again() {
    let mut group = group();
    let entry = |phase: &str| json!({ "coordination": "pd", "batch": 0, "phase": phase, "attempt": 1 });
    let released = [("prefill".to_owned(), 4), ("decode".to_owned(), 2)].into();
    let mut gang = |phase: &str, scheduled| {
        group.status.recoveries = vec![serde_json::from_value(entry(phase)).unwrap()];
        let gangs = batch_pod_groups(&group, &view(4, scheduled), &released);
        (gangs[0].min_member, gangs[0].renewed)
    };
    assert_eq!(gang("Recreating", false), (6, true));
    assert_eq!(gang("Releasing", false), (6, true));
    assert_eq!(gang("Releasing", true), (1, false), "it was scheduled again");
    assert_eq!(gang("Complete", false), (6, false), "what is lost afterwards comes back one by one");
}

#[test]
fn the_size_of_a_gang_is_known_by_the_first_pod_of_each_role_and_grows_until_it_starts() {
    let (group, mut view) = (group(), view(0, false));
    let released = [("prefill".to_owned(), 4), ("decode".to_owned(), 2)].into();
    let first = |view: &GroupView| {
        let gang = batch_pod_groups(&group, view, &released).remove(0);
        (gang.min_member, gang.is_sized, gang.renewed)
    };
    assert_eq!(first(&view), (6, true, true), "all are there, and none went");
    let decode = view.roles.get_mut("decode").unwrap();
    *decode = RoleView { desired: 4, committed: Some(2), ..RoleView::default() };
    assert_eq!(first(&view), (6, false, false), "a decode may have one pod or more");
    in_twos(&mut view, "decode", 4, 0, &|_| None);
    assert_eq!(first(&view), (8, true, true));
    let decode = view.roles.get_mut("decode").unwrap();
    let workers: Vec<_> = decode.replicas.pods().filter(|(_, pod)| pod.identity.member == Some(1)).collect();
    let workers: Vec<_> = workers.into_iter().map(|(ordinal, pod)| (ordinal, pod.pod.clone())).collect();
    workers.iter().for_each(|(ordinal, pod)| decode.replicas.remove(pod, *ordinal));
    assert_eq!(first(&view), (8, true, false), "leaders come before workers");
    in_twos(&mut view, "decode", 4, 1, &|ordinal| Some(format!("pd-pd-{ordinal}")));
    assert!(!first(&view).2, "a pod went: what is lost comes back one by one");
}

#[test]
fn those_of_desired_replicas_last_whether_they_were_made_or_not() {
    let mut view = view(4, false);
    let last = |level: &str, view: &GroupView| -> Vec<_> {
        lasting_pod_groups(&at_level(level), view).into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(last("Batch", &view), ["pd-pd-0", "pd-pd-1"]);
    view.roles.get_mut("prefill").unwrap().desired = 4;
    assert_eq!(last("Batch", &view), ["pd-pd-0", "pd-pd-1"], "the other role still has pods in the second");
    assert_eq!(last("Role", &view), ["pd-pd-0.decode", "pd-pd-0.prefill", "pd-pd-1.decode"]);
    view.roles.get_mut("decode").unwrap().desired = 2;
    assert_eq!(last("Batch", &view), ["pd-pd-0"]);
}

#[test]
fn a_batch_without_policy_has_none() {
    let plain = mk_group(&[("prefill", 8)], &json!([mk_segments("pd", "Ordered", &[("prefill", 4)])]));
    let view = view(8, true);
    assert!(batch_pod_groups(&plain, &view, &[("prefill".to_owned(), 8)].into()).is_empty());
    assert!(pod_group_of(&plain, &view, &mk_held("prefill-0", "prefill", 0)).is_none());
}
