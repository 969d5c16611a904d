//! The stories, each in a namespace of its own.

use super::{Gangs, bound_as_gangs, is_in};
use crate::common::prelude::*;

/// Three steps, and room for one and a third, then two, then all: each goes as a whole, when there is room for all of it.
pub async fn steps_are_gangs_one_after_another(gangs: &Gangs, stage: &Stage) {
    let _rolegate = stage.launch().start().await;
    let group = gangs.group("llm", 3);
    stage.add_node("a", 4).await;
    gangs.deploy(stage, &group).await;
    gangs.until_ready(stage, &group, 1).await;
    // The scheduler would have a place for one pod of the second.
    gangs.until_refused(stage, &group, 1).await;
    gangs.until_members(stage, "the first is loosened", &[("llm-pd-0", 1), ("llm-pd-1", 3)]).await;
    let third = |pod: &Pod| is_in(&group, 2, &pod.name) && pod.is_held();
    stage.pods.now(|now| assert_eq!(now.count_all(third), 3, "{now}"));

    stage.add_node("b", 4).await;
    gangs.until_ready(stage, &group, 2).await;
    gangs.until_refused(stage, &group, 2).await;
    stage.add_node("c", 1).await;
    gangs.until_ready(stage, &group, 3).await;
    gangs.until_members(stage, "all are loosened", &[("llm-pd-0", 1), ("llm-pd-1", 1), ("llm-pd-2", 1)]).await;
    bound_as_gangs(stage, &group, 3);
    let result = "each as a whole, when there is room for all of it";
    gangs.neighbour.record("three batches, room for one after another", result);
}

/// Two groups, and room for one of them and a part of the other.
pub async fn of_two_groups_one_has_the_room(gangs: &Gangs, stage: &Stage) {
    let _rolegate = stage.launch().start().await;
    let groups = [gangs.group("one", 1), gangs.group("two", 1)];
    for group in &groups {
        gangs.deploy(stage, group).await;
    }
    stage.pods.until("all are released", |now| now.count_all(Pod::is_released) == 6).await;
    stage.add_node("a", 5).await;
    let runs = |name: &str| stage.pods.now(|now| now.count_all(|pod| pod.name.starts_with(name) && pod.is_ready()));
    stage.pods.until("one of them runs", |now| now.count_all(Pod::is_ready) == 3).await;
    let (first, second) = if runs("one") == 3 { (&groups[0], &groups[1]) } else { (&groups[1], &groups[0]) };
    assert_eq!((runs(&first.name), runs(&second.name)), (3, 0), "the room is shared out between them");
    gangs.until_refused(stage, second, 0).await;

    stage.groups().delete(&first.name, &DeleteParams::default()).await.unwrap();
    for role in &first.roles {
        stage.delete::<StatefulSet>(&first.set_name(&role.name)).await;
    }
    gangs.until_ready(stage, second, 1).await;
    let left = format!("{}-pd-0", second.name);
    gangs.until_members(stage, "that of the first is gone", &[(&left, 1)]).await;
    let result = "one is bound as a whole, the other after it is gone";
    gangs.neighbour.record("two groups, room for one and a half", result);
}

/// The cluster is full to the last place, so that nothing may wait for more than what it replaces.
pub async fn rollouts_and_recreated_pods_go_one_by_one(gangs: &Gangs, stage: &Stage) {
    let _rolegate = stage.launch().start().await;
    let group = gangs.group("llm", 2);
    stage.add_node("a", 6).await;
    gangs.deploy(stage, &group).await;
    gangs.until_ready(stage, &group, 2).await;
    gangs.until_members(stage, "both are loosened", &[("llm-pd-0", 1), ("llm-pd-1", 1)]).await;

    for pod in ["llm-prefill-0", "llm-decode-1"] {
        stage.replace_pod(pod, Pod::is_ready).await;
    }
    gangs.neighbour.record("a pod of a running batch is deleted, no room to spare", "recreated alone");

    let before = stage.pods.events().len();
    for role in &group.roles {
        gangs.edit(stage, &group, &role.name, "registry.invalid/x:2").await;
    }
    let scheduled = || {
        let events = stage.pods.events();
        events[before..].iter().filter(|event| event.step == Step::Scheduled).count()
    };
    let both = async || (scheduled(), stage.pods.now(|now| now.count_all(Pod::is_ready)));
    until_is("all six are replaced and run", both, (6, 6)).await;
    gangs.until_members(stage, "their PodGroups", &[("llm-pd-0", 1), ("llm-pd-1", 1)]).await;
    gangs.neighbour.record("a rollout of both roles, no room to spare", "pod by pod to its end");
}

/// Scaled in, out again and deleted.
pub async fn pod_groups_go_with_their_batches(gangs: &Gangs, stage: &Stage) {
    let _rolegate = stage.launch().start().await;
    let group = gangs.group("llm", 3);
    stage.add_node("a", 5).await;
    stage.add_node("b", 4).await;
    gangs.deploy(stage, &group).await;
    gangs.until_ready(stage, &group, 3).await;
    let all = [("llm-pd-0", 1), ("llm-pd-1", 1), ("llm-pd-2", 1)];
    gangs.until_members(stage, "those of all batches", &all).await;

    let fewer = group.clone().role("prefill", 2, 2).role("decode", 1, 1);
    stage.scale(&fewer).await;
    gangs.until_members(stage, "those of the batches that are left", &all[..1]).await;
    gangs.neighbour.record("scaled in", "PodGroups of removed batches are deleted");

    // What comes back is a gang again: there is room for two of its three pods.
    for node in ["a", "b"] {
        stage.plane.must(&["cordon", &format!("{}-{node}", stage.namespace)], "");
    }
    stage.add_node("c", 2).await;
    stage.scale(&group.clone().role("prefill", 4, 2).role("decode", 2, 1)).await;
    gangs.until_refused(stage, &group, 1).await;
    gangs.until_members(stage, "the batch has one again", &[("llm-pd-0", 1), ("llm-pd-1", 3)]).await;
    stage.add_node("d", 1).await;
    gangs.until_ready(stage, &group, 2).await;
    gangs.neighbour.record("scaled out again, room for a part", "a gang again");

    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    gangs.until_members(stage, "none is left", &[]).await;
    gangs.neighbour.record("the group is deleted", "its PodGroups are deleted");
}
