//! RoleCoordinations: what their definition says by itself, and what rolegate adds by looking at other objects.

use crate::common::prelude::*;
use crate::rollouts::support::rolling;
use crate::rules::desk::{apply, coordination, put, refused, refused_in_words, stage, stateful_set, tied, warned};

fn segments(sizes: &Value) -> Value {
    json!([{ "name": "pd", "strategy": { "segmentPlacement": { "segmentSize": sizes } } }])
}

fn refers_to(kind: &str, name: &str) -> Value {
    json!({ "name": name, "workloadRef": { "kind": kind, "name": name } })
}

#[tokio::test]
async fn the_definition_itself_asks_for_exactly_one_of_two() {
    // Nobody but the API server looks at it.
    let stage = stage("one-of-two").await;
    let sizes = segments(&json!({ "prefill": 1 }));
    let role = json!({ "name": "prefill", "replicas": 1 });
    let two_owners = json!({ "groupRef": { "name": "llm" }, "roles": [role], "coordination": sizes });
    let no_owner = json!({ "coordination": sizes });
    let both = json!({ "name": "prefill", "replicas": 1, "workloadRef": { "kind": "StatefulSet", "name": "p" } });
    let two_sources = json!({ "roles": [both], "coordination": sizes });
    let no_source = json!({ "roles": [{ "name": "prefill" }], "coordination": sizes });
    let groups = "exactly one of `groupRef` and `roles` must be set";
    let workloads = "exactly one of `workloadRef` and `replicas` must be set";
    let wrong = [(two_owners, groups), (no_owner, groups), (two_sources, workloads), (no_source, workloads)];
    for (spec, rule) in wrong {
        refused_in_words(&stage, &coordination("llm", &spec), rule);
    }
    put(&stage, &coordination("llm", &json!({ "roles": [role], "coordination": sizes })));
}

#[tokio::test]
async fn one_that_waits_for_pods_is_listed_by_its_short_name() {
    let (stage, _rolegate) = stage("listed").await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    put(&stage, &group.coordination_of_numbers(&json!({})));
    let table = async || stage.kubectl(&["get", "rcoord"]);
    until_found("a line with counts", table, |table| {
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["NAME", "SEGMENTS", "READY", "HELD", "REASON", "AGE"], "{table}");
        rows[1][..4] == ["llm", "0/2", "0/6", "0"]
    })
    .await;
}

#[tokio::test]
async fn pods_that_would_not_be_held_are_told_of() {
    let (stage, _rolegate) = stage("unlabelled").await.serve().await;
    put(&stage, &stateful_set("prefill", "Parallel", &json!({})));
    let sizes = segments(&json!({ "prefill": 2 }));
    let spec = json!({ "roles": [refers_to("StatefulSet", "prefill")], "coordination": sizes });
    let lacks = r#"spec.roles[0].workloadRef: the pod template of StatefulSet "prefill" lacks labels rolegate.dev/group: "llm" and rolegate.dev/role: "prefill"; its pods are not held"#;
    warned(&stage, &coordination("llm", &spec), &[lacks]);
}

#[tokio::test]
async fn a_budget_over_held_pods_is_told_of() {
    let (stage, _rolegate) = stage("budget").await.serve().await;
    let budget = object("policy/v1", "PodDisruptionBudget", "serving")
        .spec(json!({ "minAvailable": "50%", "selector": { "matchLabels": { "rolegate.dev/group": "llm" } } }));
    put(&stage, &budget);
    let spec = |name: &str| Group::new(name).role("prefill", 4, 2).coordination_of_numbers(&json!({}));
    let blocks = r#"spec.coordination[0].strategy.segmentPlacement.segmentSize[prefill]: PodDisruptionBudget "serving" counts held pods of role "prefill" as unavailable and blocks drains"#;
    warned(&stage, &spec("llm"), &[blocks]);
    put(&stage, &spec("other"));
}

#[tokio::test]
async fn batches_with_a_topology_do_not_change_under_their_pods() {
    let (stage, _rolegate) = stage("batch-change").await.serve().await;
    let with = |key: &str, size: i64| {
        let strategy = json!({ "affinityScheduling": { "topologyKey": key, "ratios": { "prefill": size } } });
        Group::new("llm").role("prefill", 4, 2).numbered(&json!([{ "name": "pd", "strategy": strategy }]))
    };
    put(&stage, &with("rack", 2));
    put(&stage, &with("zone", 2));
    let group = Group::new("llm").role("prefill", 4, 2);
    stage.create(group.pod("prefill", "prefill-0", &stage.namespace)).await;
    let at = "spec.coordination[0].strategy.affinityScheduling";
    let kept = |path: &str, value: &str| {
        format!(r#"{at}.{path}: Forbidden: may not change from {value} while pods of coordination "pd" exist"#)
    };
    refused(&stage, &with("rack", 2), &kept("topologyKey", r#""zone""#));
    refused(&stage, &with("zone", 4), &kept("ratios[prefill]", "2"));
    stage.kubectl(&["delete", "pod", "prefill-0", "--grace-period=0", "--force"]);
    put(&stage, &with("rack", 4));
}

#[tokio::test]
async fn desired_replicas_come_from_a_group_of_the_newer_version() {
    let (stage, _rolegate) = stage("newer-group").await.serve().await;
    let group = Group::new("llm").role("prefill", 5, 2).role("decode", 4, 2);
    let mut newer = group.object();
    newer["apiVersion"] = json!("workloads.x-k8s.io/v1alpha2");
    newer["metadata"]["annotations"] = json!({ "rolegate.dev/group": "pace" });
    let stored = stage.post("/apis/workloads.x-k8s.io/v1alpha2", "rolebasedgroups", &newer).await;
    assert_eq!((stored.code, &stored.body["spec"]["coordination"]), (201, &Value::Null), "{stored:?}");
    let paced = segments(&json!({ "prefill": 2, "decode": 2 }));
    let pace = coordination("pace", &json!({ "groupRef": { "name": "llm" }, "coordination": paced }));
    let sizes = "spec.coordination[0].strategy.segmentPlacement.segmentSize";
    let after = r#"role "decode" ends after 2 of 3 segments; the later ones are made of the other roles"#;
    let ends = format!("{sizes}: {after}");
    let rest = format!("{sizes}[prefill]: 2: 5 replicas are not a multiple of it: the last segment has 1");
    warned(&stage, &pace, &[&ends, &rest]);
    let mut typing_mistake = pace.clone();
    typing_mistake["spec"]["coordination"] = segments(&json!({ "prefil": 2 }));
    let unknown = r#"Not found: "prefil": must name a role of RoleBasedGroup "llm"; did you mean "prefill"?"#;
    refused(&stage, &typing_mistake, &format!("{sizes}[prefil]: {unknown}"));
    let statuses = stage.coordination_statuses("pace");
    let until = async |segments: &str, ready: &str| {
        let is_so = |summary: &Value| summary["segments"] == segments && summary["ready"] == ready;
        statuses.until("it counts the roles of the group", |status| is_so(&status.0["summary"])).await;
    };
    until("0/3", "0/9").await;
    stage.add_node("all", 9).await;
    stage.create_sets(&group).await;
    until("3/3", "9/9").await;
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    assert!(GROUPS.ends_with("v1alpha1"), "the older version is served beside it");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn the_second_to_claim_a_group_is_refused() {
        let (stage, _rolegate) = stage("claimed").await.serve().await;
        let roles = json!([{ "name": "prefill", "replicas": 4 }, { "name": "decode", "replicas": 2 }]);
        let mut group = object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", "llm").spec(json!({ "roles": roles }));
        group["metadata"]["annotations"] = json!({ "rolegate.dev/group": "first" });
        put(&stage, &group);
        let claims = |name: &str, sizes: &Value| {
            coordination(name, &json!({ "groupRef": { "name": "llm" }, "coordination": segments(sizes) }))
        };
        put(&stage, &claims("first", &json!({ "decode": 1 })));
        let again = r#"The RoleCoordination "second" is invalid: spec.groupRef: Forbidden: group "llm" is coordinated by RoleCoordination "first" already; a group has one coordinating object"#;
        // Whatever roles it names.
        let shown = apply(&stage, &claims("second", &json!({ "prefill": 2 })));
        let unmarked = r#"spec.groupRef: RoleBasedGroup "llm" lacks annotation rolegate.dev/group: "second"; pods that are made before both are known are not held"#;
        assert!(!shown.done, "{shown:?}");
        assert_eq!(shown.err, format!("Warning: {unmarked}\n{again}\n"));
        // The group itself is refused when it comes later than one that claims its roles.
        let mut early = claims("early", &json!({ "decode": 1 }));
        early["spec"]["groupRef"]["name"] = json!("late");
        assert!(apply(&stage, &early).done);
        let mut late = group;
        late["metadata"] = json!({ "name": "late", "annotations": { "rolegate.dev/group": "early" } });
        late["spec"]["coordination"] = segments(&json!({ "decode": 1 }));
        let again = r#"Forbidden: group "late" is coordinated by RoleCoordination "early" already"#;
        refused_in_words(&stage, &late, again);
    }

    #[tokio::test]
    async fn a_surge_would_run_ahead_of_the_coordination() {
        let (stage, _rolegate) = stage("surge").await.serve().await;
        let set = |surge: i64| {
            let update = json!({ "rollingUpdateConfiguration": { "maxUnavailable": 1, "maxSurge": surge } });
            let more =
                json!({ "metadata": { "labels": tied("llm", "prefill") }, "spec": { "rolloutStrategy": update } });
            let group = Group::new("llm").role("prefill", 8, 1).bare_names();
            group.leader_worker_set("prefill", 2, &stage.namespace, &more)
        };
        let roles = json!([refers_to("LeaderWorkerSet", "prefill"), { "name": "decode", "replicas": 4 }]);
        let update = json!({ "roles": roles, "coordination": rolling(json!({ "maxSkew": "10%" })) });
        let update = coordination("llm", &update);
        // What is not there is not judged.
        let shown = apply(&stage, &update);
        assert!(shown.done, "{shown:?}");
        stage.kubectl(&["delete", "rcoord", "llm"]);
        put(&stage, &set(1));
        let why = r#"spec.roles[0].workloadRef: Forbidden: LeaderWorkerSet "prefill" must have `maxSurge` 0: with a surge it starts an update before it is coordinated"#;
        refused(&stage, &update, why);
        put(&stage, &set(0));
        put(&stage, &update);
    }

    #[tokio::test]
    async fn a_set_that_makes_one_pod_after_another_cannot_fill_a_batch_that_goes_as_a_whole() {
        let (stage, _rolegate) = stage("incremental").await.serve().await;
        put(&stage, &stateful_set("prefill", "OrderedReady", &tied("llm", "prefill")));
        let roles = json!([refers_to("StatefulSet", "prefill")]);
        let whole = json!([{ "name": "pd", "strategy": { "affinityScheduling": { "topologyKey": "rack", "ratios": { "prefill": 2 } } } }]);
        let whole = coordination("llm", &json!({ "roles": roles, "coordination": whole }));
        let why = r#"spec.roles[0].workloadRef: Forbidden: role "prefill" makes its pods one after another (podManagementPolicy OrderedReady), but coordination "pd" releases a batch only when all its pods exist"#;
        refused(&stage, &whole, why);
        let plain = coordination("llm", &json!({ "roles": roles, "coordination": segments(&json!({ "prefill": 2 })) }));
        let why = r#"spec.roles[0].workloadRef: role "prefill" makes its pods one after another (podManagementPolicy OrderedReady): a batch of coordination "pd" fills up one pod at a time"#;
        warned(&stage, &plain, &[why]);
    }

    #[tokio::test]
    async fn a_name_that_leaves_no_room_for_what_its_controller_adds_is_told_of_and_has_no_pods() {
        let (stage, _rolegate) = stage("long-names").await.serve().await;
        let set = |name: &str, role: &str| {
            let mut set = stateful_set(name, "Parallel", &tied("llm", role));
            set["spec"]["replicas"] = json!(1);
            set
        };
        let (fits, too_long) = ("f".repeat(52), "t".repeat(62));
        put(&stage, &set(&fits, "decode"));
        put(&stage, &set(&too_long, "prefill"));
        let role =
            |name: &str, set: &str| json!({ "name": name, "workloadRef": { "kind": "StatefulSet", "name": set } });
        let spec = json!({
            "roles": [role("decode", &fits), role("prefill", &too_long)],
            "coordination": segments(&json!({ "decode": 1, "prefill": 1 })),
        });
        let warning = format!(
            "spec.roles[1].workloadRef.name: Too long: makes label controller-revision-hash of {too_long:?}, a hyphen and a hash of \
         up to 10; pods on which it has more than 63 bytes are not created"
        );
        warned(&stage, &coordination("llm", &spec), &[&warning]);
        let pod = format!("{fits}-0");
        stage.pods.until("the pod of the name that fits", |now| now.named(&pod).is_some()).await;
        stage.until_event("FailedCreate", &[&too_long, "must be no more than 63"]).await;
        stage.pods.now(|now| assert_eq!(now.count_all(|_| true), 1, "{now}"));
    }
}
