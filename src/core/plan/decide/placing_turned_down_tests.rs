use std::sync::Arc;

use serde_json::json;

use super::tests::{RACK, Scene, going, held};
use crate::model::names::HOSTNAME;
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::{Awaits, Placed, Refused};
use crate::plan::evaluate::Evaluation;
use crate::plan::recovery::RecoveryContext;

const SAYS: &str =
    "0/3 nodes are available: 1 node(s) exceed max volume count, 2 node(s) didn't match Pod's node selector";
const WAITED: &[(usize, u32, Awaits)] = &[(0, 0, Awaits::Node)];

/// A batch in r1 of which prefill-1 is bound to be on node b, and the scheduler says this of it.
fn scene(room_of_a: u32, says: &str) -> Scene {
    let scene = Scene::new(1, "hold").node("a", "r1", room_of_a, false).node("b", "r1", 1, false);
    let mut scene = scene.node("c", "r2", 3, false).committed(&[("0", "r1")]);
    scene = scene.went("prefill-0", Some("a")).went("decode-0", Some("a")).went("prefill-1", None);
    scene.says("prefill-1", says);
    scene.asking_of("prefill-1", &json!({ "priority": 5, "nodeSelector": { RACK: "r1", HOSTNAME: "b" } }))
}

fn waited(scene: &mut Scene, refusing: &[Refused]) -> Evaluation {
    scene.decide(DecisionContext { waited: WAITED, refusing, ..DecisionContext::default() })
}

fn nodes(seen: &Evaluation) -> Vec<Vec<&str>> {
    seen.decision.placed.turned_down.iter().map(|of| of.nodes.keys().map(|node| &**node).collect()).collect()
}

#[test]
fn a_pod_that_the_scheduler_refuses_a_node_with_room_goes_to_another_one() {
    let mut before = scene(3, SAYS);
    let first = waited(&mut before, &[]);
    let Placed { made_again, moves, turned_down, .. } = &first.decision.placed;
    assert_eq!((nodes(&first), made_again.len(), moves.len()), (vec![vec!["b"]], 1, 0));
    let told = format!(
        "batch 1 was placed in r1, and 1 of its pods have no node there; the scheduler says of prefill-1: {SAYS:?}; they are \
         deleted, made again and placed again"
    );
    assert_eq!(held(&first)[0].2, told);
    assert_eq!(nodes(&waited(&mut before, turned_down)), [["b"]], "still for the same pod");
    let again = |scene: Scene| {
        let seen = scene
            .comes_back("prefill-1")
            .decide(DecisionContext { refusing: turned_down, ..DecisionContext::default() });
        going(&seen).iter().map(|(_, _, pin)| pin.last().map(|at| (*at).to_owned()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(again(scene(3, SAYS)), ["a"]);
    assert_eq!(again(scene(2, SAYS)), Vec::<String>::new(), "nor where no other node has room");
    assert_eq!(again(scene(2, SAYS).node("b", "r1", 2, false)), ["r1"], "until the node changes");
}

#[test]
fn a_batch_whose_domain_has_no_other_node_moves_as_a_whole_or_not_at_all() {
    let of = |seen: &Evaluation| {
        let Placed { moves, made_again, .. } = &seen.decision.placed;
        (moves.len(), made_again.len())
    };
    let told = |seen: &Evaluation| held(seen)[0].2.split("\"; ").last().unwrap().to_owned();
    let seen = waited(&mut scene(2, SAYS), &[]);
    let why = "no other node there has room for them, and ";
    assert_eq!(of(&seen), (1, 0));
    assert_eq!(told(&seen), format!("{why}r2 has room for all of it: it is recreated as a whole"));
    let seen = waited(&mut scene(2, SAYS).other("c", 1, 9), &[]);
    assert_eq!(of(&seen), (0, 0), "nothing is deleted");
    assert_eq!(told(&seen), format!("{why}no other domain has room for all of it, so nothing is deleted"));
    let recovery = &RecoveryContext { off: true, ..RecoveryContext::default() };
    let seen = scene(2, SAYS).decide(DecisionContext { waited: WAITED, recovery, ..DecisionContext::default() });
    let command = "`kubectl delete pod -n ns decode-0 prefill-0 prefill-1` has them placed again";
    assert_eq!((of(&seen), told(&seen)), ((0, 0), format!("{why}r2 has room for all of it: {command}")));
}

#[test]
fn after_a_second_node_the_batch_avoids_the_domain() {
    let first = waited(&mut scene(3, SAYS), &[]).decision.placed.turned_down;
    let mut later = scene(3, SAYS).comes_back("prefill-1").went("prefill-1", None);
    later.says("prefill-1", SAYS);
    let mut later = later.asking_of("prefill-1", &json!({ "nodeSelector": { RACK: "r1", HOSTNAME: "a" } }));
    let seen = waited(&mut later, &first);
    assert_eq!((nodes(&seen), seen.decision.placed.moves.len()), (vec![vec!["a", "b"]], 1));
}

#[test]
fn what_the_pod_lacks_everywhere_and_what_is_known_to_be_full_is_not_the_node() {
    let lacks = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims";
    for mut scene in [scene(2, lacks), scene(2, SAYS).other("b", 1, 9), scene(2, "")] {
        let seen = waited(&mut scene, &[]);
        assert_eq!(nodes(&seen), Vec::<Vec<&str>>::new(), "{}", held(&seen)[0].2);
    }
    let seen = waited(&mut scene(2, lacks), &[]);
    assert_eq!(seen.decision.placed.moves.len(), 0, "no bound pod is deleted for it");
    assert!(held(&seen)[0].2.contains(lacks), "{}", held(&seen)[0].2);
}

/// The volume of a pod that runs is in r1: the batch could not go to r2.
#[test]
fn a_batch_does_not_leave_its_volumes() {
    let mut scene = scene(2, SAYS);
    scene.volume_in("prefill-0", "r1", "a");
    let seen = waited(&mut scene, &[]);
    assert_eq!(seen.decision.placed.moves.len(), 0);
    assert!(held(&seen)[0].2.ends_with("so nothing is deleted"), "{}", held(&seen)[0].2);
}

/// Nodes of one name: a label cannot say which of them is meant.
#[test]
fn no_pod_is_bound_to_a_name_that_two_nodes_have() {
    let scene = Scene::new(1, "hold").node("a", "r1", 2, false).node("b", "r1", 1, false);
    let mut scene = scene.node_named("b", "r1", "a").committed(&[("0", "r1")]);
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, _, pin)| *pin == ["r1"]), "{:?}", going(&seen));
    let host = json!({ "nodeSelector": { RACK: "r2", HOSTNAME: "a" } });
    let mut scene =
        Scene::new(1, "hold").node("a", "r1", 1, false).node("b", "r2", 1, false).node_named("b", "r2", "a");
    scene = scene.went("prefill-1", None).asking_of("prefill-1", &host);
    assert_eq!(scene.capacity.assumed("prefill-1"), Some(&Arc::from("b")), "the other labels of a pod say which");
}
