use serde_json::{Value, json};

use super::*;
use crate::build;
use crate::model::Standing;
use crate::model::workload_object::WorkloadObject;
use crate::plan::test_support::{Workloads, mk_role, mk_set};

/// Workloads of two roles: prefill in segments of 2 and decode in segments of 1.
struct Pair(Workloads, Vec<ScaledWorkload>);

fn mk_pair(replicas: [u32; 2]) -> Pair {
    let of = |role: &str, replicas| mk_set(role, replicas, &build::labels("pd", role), &json!({}));
    let sets = [of("prefill", replicas[0]), of("decode", replicas[1])];
    Pair(Workloads::of(&sets), sets.iter().filter_map(WorkloadObject::scaled).collect())
}

fn mk_group(pair: &Pair, segments: u32, status: &Value) -> Group {
    let sizes = build::segments(&[("prefill", 2), ("decode", 1)], &json!({}));
    pair.0.group("pd", "", &sizes, &json!({ "spec": { "segments": segments }, "status": status }))
}

fn mk_status(released: [u32; 2], draining: Option<(u32, u32)>) -> Value {
    let draining = draining.map(|(from, to)| json!({ "from": from, "to": to }));
    let progress = json!({ "prefill": { "released": released[0] }, "decode": { "released": released[1] } });
    json!({ "coordinationState": [{ "name": "s", "progress": progress }], "draining": draining })
}

/// The replicas of each role: committed, of its workload, and with pods.
struct Scene {
    committed: [u32; 2],
    workloads: [u32; 2],
    pods: [u32; 2],
}

impl Scene {
    fn at_rest(segments: u32) -> Self {
        let replicas = [2 * segments, segments];
        Self { committed: replicas, workloads: replicas, pods: replicas }
    }

    fn plan(&self, segments: u32, draining: Option<(u32, u32)>, context: ElasticContext<'_>) -> ElasticPlan {
        self.plan_while(None, segments, draining, context)
    }

    fn plan_while(
        &self,
        deferral: Option<Deferral>,
        segments: u32,
        draining: Option<(u32, u32)>,
        context: ElasticContext<'_>,
    ) -> ElasticPlan {
        let pair = mk_pair(self.workloads);
        let group = mk_group(&pair, segments, &mk_status(self.committed, draining));
        let names = ["prefill", "decode"];
        let view = |index: usize| {
            let desired = group.role(names[index]).unwrap().desired;
            let role = mk_role(self.pods[index], self.pods[index], self.pods[index]);
            (names[index].to_owned(), RoleView { desired, committed: Some(self.committed[index]), ..role })
        };
        let view = GroupView { roles: [view(0), view(1)].into(), ..GroupView::default() };
        let released = names.iter().zip(self.committed).map(|(name, count)| ((*name).to_owned(), count)).collect();
        plan(&group, &view, (&released, deferral), ElasticContext { workloads: &pair.1, ..context }).unwrap()
    }
}

fn scales(plan: &ElasticPlan) -> Vec<(&str, u32)> {
    plan.scales.iter().map(|(role, scale)| (role.as_str(), scale.to)).collect()
}

#[test]
fn workloads_have_what_is_committed_and_nothing_above() {
    let scene = Scene { committed: [6, 3], ..Scene::at_rest(2) };
    let plan = scene.plan(5, None, ElasticContext::default());
    assert_eq!(scales(&plan), [("decode", 3), ("prefill", 6)]);
    assert_eq!((plan.draining, plan.released, plan.wanted), (None, 3, 5));
    let by_hand = Scene { workloads: [9, 3], ..Scene::at_rest(3) };
    assert_eq!(scales(&by_hand.plan(5, None, ElasticContext::default())), [("prefill", 6)]);
}

#[test]
fn what_is_taken_away_is_committed_first_and_then_goes_one_segment_at_a_time() {
    let scene = Scene::at_rest(5);
    let committed = scene.plan(2, None, ElasticContext::default());
    assert_eq!((committed.draining, scales(&committed)), (Some(Draining { from: 2, to: 5 }), vec![]));
    let scene = Scene { committed: [4, 2], ..scene };
    let marked = scene.plan(2, Some((2, 5)), ElasticContext::default());
    assert_eq!((scales(&marked), marked.marks.len()), (vec![], 6 + 3));
    let time = ElasticContext { drained: true, ..ElasticContext::default() };
    assert_eq!(scales(&scene.plan(2, Some((2, 5)), time)), [("decode", 4), ("prefill", 8)]);
    // The next segment goes when all roles have lost the last one.
    let half = Scene { workloads: [8, 4], pods: [9, 4], ..scene };
    assert_eq!(scales(&half.plan(2, Some((2, 5)), time)), []);
    let next = Scene { pods: [8, 4], ..half };
    assert_eq!(scales(&next.plan(2, Some((2, 5)), time)), [("decode", 3), ("prefill", 6)]);
    let done = Scene::at_rest(2).plan(2, Some((2, 5)), time);
    assert_eq!((done.draining, scales(&done)), (None, vec![]));
}

#[test]
fn what_is_wanted_again_stays_and_what_is_wanted_less_comes_later() {
    let scene = Scene { committed: [4, 2], ..Scene::at_rest(5) };
    let plan = |segments| scene.plan(segments, Some((2, 5)), ElasticContext::default()).draining;
    assert_eq!(plan(4), Some(Draining { from: 4, to: 5 }));
    assert_eq!(plan(5), None);
    assert_eq!(plan(1), Some(Draining { from: 2, to: 5 }));
}

#[test]
fn nothing_is_taken_away_while_something_else_replaces_pods() {
    let deferral = Some(Deferral::Rollout);
    let plan = Scene::at_rest(5).plan_while(deferral, 2, None, ElasticContext::default());
    assert_eq!((plan.draining, plan.deferred), (None, deferral));
    assert_eq!(plan.told().0, "ScaleInDeferred");
    // A scale-in under way is finished.
    let scene = Scene { committed: [4, 2], ..Scene::at_rest(5) };
    let plan = scene.plan_while(deferral, 2, Some((2, 5)), ElasticContext::default());
    assert_eq!((plan.draining, plan.deferred), (Some(Draining { from: 2, to: 5 }), None));
}

#[test]
fn as_many_replicas_are_desired_as_are_wanted_and_those_that_are_not_taken_away_yet() {
    let desired = |segments, status: Value| {
        let group = mk_group(&mk_pair([10, 5]), segments, &status);
        ["prefill", "decode"].map(|role| group.role(role).unwrap().desired)
    };
    assert_eq!(desired(7, mk_status([10, 5], None)), [14, 7]);
    assert_eq!(desired(2, mk_status([10, 5], None)), [10, 5]);
    assert_eq!(desired(2, mk_status([10, 5], Some((2, 5)))), [4, 2]);
    assert_eq!(desired(3, mk_status([4, 2], Some((2, 5)))), [6, 3]);
    // Before the first commit all running replicas stay desired.
    assert_eq!(desired(2, json!({})), [10, 5]);
}

#[test]
fn a_workload_that_does_not_say_so_is_nobodys_to_scale() {
    let mut pair = mk_pair([10, 5]);
    let decode = mk_set("decode", 5, &build::labels("other", "decode"), &json!({}));
    pair.0.0.insert(decode.workload().key, decode.workload());
    let group = mk_group(&pair, 2, &mk_status([10, 5], None));
    let elastic = group.elastic.clone().unwrap();
    assert_eq!(elastic.standing, Standing::Unclaimed("decode".to_owned()));
    assert_eq!((group.role("prefill").unwrap().desired, group.scaled().is_none()), (10, true));
    assert!(ineffective(&elastic.standing).unwrap().1.starts_with("`segments` has no effect: "));
}
