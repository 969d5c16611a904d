//! Pods that are not quite like the others.

use crate::common::prelude::*;

const INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";

#[tokio::test]
async fn a_pod_whose_role_the_group_does_not_have_is_held_until_it_has() {
    let (stage, rolegate) = Stage::new("other-role").await.with_room(4).await.serve().await;
    let group = Group::new("llm").role("main", 4, 2);
    let statuses = stage.create_watched(&group).await;
    let made = stage.post(CORE, "pods", &group.pod("mian", "typo", &stage.namespace)).await;
    assert_eq!(made.code, 201, "{made:?}");
    assert_eq!(made.warnings, [r#"role "mian" is not in group "llm": the pod is held until the group has it"#]);
    let said = r#"1 pod names role "mian", which the group does not have"#;
    let status = statuses.until("it is said", |status| status.progressing().contains(said)).await;
    assert_eq!(status.0["summary"]["reason"], json!("UnknownRole"));
    rolegate.until_metric(r#"rolegate_held_pods{reason="UnknownRole"}"#, 1).await;
    stage.patch_group(&group, json!({ "spec": group.clone().role("mian", 1, 1).object()["spec"] })).await;
    stage.pods.until("it goes", |now| now.named("typo").is_some_and(Pod::is_released)).await;
    statuses.until("it is said no longer", |status| !status.progressing().contains("mian")).await;
}

#[tokio::test]
async fn a_pod_whose_role_the_group_does_not_have_passes_where_that_is_asked_for() {
    let (stage, _rolegate) = Stage::new("other-role-passes").await.serve_with("unknown-role", "pass").await;
    let group = Group::new("llm").role("main", 4, 2);
    let statuses = stage.create_watched(&group).await;
    let made = stage.post(CORE, "pods", &group.pod("mian", "typo", &stage.namespace)).await;
    assert_eq!(made.code, 201, "{made:?}");
    assert_eq!(made.warnings, [r#"role "mian" is not in group "llm": the pod is not coordinated"#]);
    assert_eq!(made.body["spec"]["schedulingGates"], Value::Null);
    statuses.until("it is said", |status| status.progressing().contains(r#"role "mian""#)).await;
}

#[tokio::test]
async fn a_number_that_stands_in_labels_alone_lets_nobody_go() {
    let (stage, rolegate) = Stage::new("forged-numbers").await.with_room(12).await.serve().await;
    let group = Group::new("llm").role("main", 4, 2).held_back();
    stage.deploy(&group).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 2).await;
    let labels = [
        json!({ "leaderworkerset.sigs.k8s.io/name": "x", "leaderworkerset.sigs.k8s.io/group-index": "0" }),
        json!({ "rbg.workloads.x-k8s.io/role-instance-name": "x-0" }),
        json!({ "instance.workloads.x-k8s.io/instance-name": "x-0" }),
        json!({ "apps.kubernetes.io/pod-index": "0" }),
        json!({ INDEX: "0" }),
    ];
    for (number, labels) in labels.iter().enumerate() {
        let mut pod = group.pod("main", &format!("forged-{number}"), &stage.namespace);
        json_patch::merge(&mut pod, &json!({ "metadata": { "labels": labels } }));
        assert_eq!(stage.post(CORE, "pods", &pod).await.code, 201);
    }
    rolegate.until_metric(r#"rolegate_held_pods{reason="NotAReplica"}"#, 5).await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("the second segment", |now| now.count_all(Pod::is_released) == 4).await;
    stage.pods.now(|now| assert!(now.all().filter(|pod| pod.name.starts_with("forged")).all(Pod::is_held), "{now}"));
}

#[tokio::test]
async fn a_held_pod_is_what_it_was_born_as_whatever_is_written_on_it() {
    let (stage, rolegate) = Stage::new("relabelled").await.with_room(12).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 4).role("decode", 2, 1).held_back();
    stage.deploy(&group).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 5).await;
    let labels = json!({ "rolegate.dev/role": "prefill", "apps.kubernetes.io/pod-index": "0" });
    // Prefill has a replica 1, which is released.
    stage.patch::<ApiPod>("llm-decode-1", &json!({ "metadata": { "labels": labels } })).await;
    drop(rolegate);
    // One that starts now has never seen it otherwise.
    let rolegate = stage.launch().start().await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, 1).await;
    stage.pods.now(|now| assert!(now.named("llm-decode-1").is_some_and(Pod::is_held), "{now}"));
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("its turn", |now| now.named("llm-decode-1").is_some_and(Pod::is_released)).await;
}

#[tokio::test]
async fn pods_without_number_or_name_take_their_turn() {
    let (stage, _rolegate) = Stage::new("deployment").await.with_room(6).await.serve().await;
    let group = Group::new("llm").role("router", 6, 2).held_back();
    let statuses = stage.create_watched(&group).await;
    stage.create(group.deployment("router", &stage.namespace, &json!({}))).await;
    for released in [2, 4, 6] {
        let found = |now: &View| now.count_all(|_| true) == 6 && now.count_all(Pod::is_released) >= released;
        stage.pods.until("two more released", found).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        stage.let_ready(Pod::is_released).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
    assert_eq!(invariants::all_born_held(&stage.pods), 6);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let (stage, rolegate) = Stage::new("dry-run").await.with_room(8).await.serve().await;
    let group = Group::new("llm").role("main", 4, 2).held_back();
    let statuses = stage.deploy_watched(&group).await;
    stage.pods.until("a segment runs", |now| now.count_all(Pod::is_scheduled) == 2).await;
    statuses.until("the rest is held", |status| status.0["summary"]["held"] == 2).await;
    // By then all is told that there is to tell.
    stage.until_event("PreviousSegmentNotReady", &[]).await;
    let (before, events) = (statuses.now(), stage.pods.events().len());

    let tried = stage.post(CORE, "pods?dryRun=All", &group.pod("main", "try", &stage.namespace)).await;
    assert_eq!(tried.body["spec"]["schedulingGates"], json!([{ "name": GATE }]), "{tried:?}");
    let unknown = Group::new("unknown").role("main", 4, 2);
    let tried = stage.post(CORE, "pods?dryRun=All", &unknown.pod("main", "try", &stage.namespace)).await;
    assert_eq!(tried.body["metadata"]["annotations"]["rolegate.dev/held-by"], "unknown", "{tried:?}");
    let tried = stage.post(GROUPS, "rolebasedgroups?dryRun=All", &unknown.object()).await;
    assert_eq!(tried.code, 201, "{tried:?}");

    let look = async || (statuses.now(), stage.pods.events().len());
    stays(Duration::from_secs(2), "nothing has changed", look, (before, events)).await;
    assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="GroupMissing"}"#).await, 0);
    assert_eq!(stage.groups().list(&kube::api::ListParams::default()).await.unwrap().items.len(), 1);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn gates_of_others_stay() {
        let (stage, _rolegate) = Stage::new("other-gates").await.with_room(4).await.serve().await;
        let gates = json!({ "spec": { "schedulingGates": [{ "name": "example.com/quota" }] } });
        let group = Group::new("llm").role("main", 4, 2).template(&gates);
        stage.deploy(&group).await;
        let theirs = |pod: &Pod| pod.gates == ["example.com/quota"];
        stage.pods.until("ours is off", |now| now.all_in("main", 0..2, theirs)).await;
        for pod in stage.pods.births() {
            assert_eq!(pod.gates, ["example.com/quota", GATE]);
        }
        // They take their own gate off when they like: the run goes on.
        for first in [0, 2] {
            stage.pods.until("ours is off", |now| now.all_in("main", first..first + 2, theirs)).await;
            stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), first as usize, "{now}"));
            for index in first..first + 2 {
                let lift = json!([{ "op": "remove", "path": "/spec/schedulingGates" }]);
                let lift = Patch::Json::<()>(serde_json::from_value(lift).unwrap());
                let name = format!("llm-main-{index}");
                stage.api::<ApiPod>().patch(&name, &PatchParams::default(), &lift).await.unwrap();
            }
            stage.pods.until("they run", |now| now.count_all(Pod::is_ready) == first as usize + 2).await;
        }
    }

    #[tokio::test]
    async fn a_pod_that_has_its_node_passes_with_a_warning() {
        let (stage, _rolegate) = Stage::new("bound").await.with_room(4).await.serve().await;
        let group = Group::new("llm").role("main", 4, 2);
        stage.create_group(&group).await;
        let mut pod = group.pod("main", "bound", &stage.namespace);
        pod["spec"]["nodeName"] = json!("bound-all");
        let made = stage.post(CORE, "pods", &pod).await;
        assert_eq!(made.code, 201, "{made:?}");
        assert_eq!(made.warnings, ["spec.nodeName is set: the pod is bound at creation and is not held"]);
        assert_eq!(made.body["spec"]["schedulingGates"], Value::Null);
        stage.pods.until("it runs", |now| now.named("bound").is_some_and(Pod::is_ready)).await;
    }

    #[tokio::test]
    async fn replicas_are_counted_from_where_the_workload_starts_to_count() {
        let (stage, _rolegate) = Stage::new("start-at-5").await.with_room(6).await.serve().await;
        let group = Group::new("llm").role("main", 6, 2).held_back();
        let statuses = stage.statuses(&group);
        let mut set = group.set(group.find("main"), &stage.namespace);
        set["spec"]["ordinals"] = json!({ "start": 5 });
        stage.create_group(&group).await;
        stage.create(set).await;
        stage.pods.until("all pods", |now| now.count_all(|_| true) == 6).await;
        for first in [5, 7, 9] {
            let next = first..first + 2;
            stage.pods.until("a segment released", |now| now.all_in("main", next.clone(), Pod::is_released)).await;
            stage.pods.now(|now| assert!(now.all_in("main", next.end..11, Pod::is_held), "{now}"));
            stage.let_ready(|pod| next.contains(&pod.index)).await;
        }
        let all = "True AllSegmentsReady: 3/3 segments ready (6/6 pods)";
        statuses.until("all ready", |status| status.minimum() == all).await;
        for pod in stage.pods.births() {
            assert!(pod.is_held() && pod.labels[INDEX] == (pod.index - 5).to_string(), "{pod:?}");
        }
    }
}
