//! Grove's sets under both names of the kind, and their pods as Grove makes them.

use crate::common::prelude::*;
use crate::rules::desk::{cases, put, refused, refused_in_words, stage, warned};

const GROVE: &str = "/apis/grove.io/v1alpha1";
const KINDS: [(&str, &str); 2] = [("PodCliqueSet", "podcliquesets"), ("PodGangSet", "podgangsets")];

fn clique(name: &str, role: &str, replicas: i64) -> Value {
    json!({ "name": name, "spec": { "roleName": role, "replicas": replicas } })
}

fn set(kind: &str, name: &str, cliques: &Value, scaling_groups: &Value) -> Value {
    object("grove.io/v1alpha1", kind, name)
        .spec(json!({ "replicas": 1, "template": { "cliques": cliques, "podCliqueScalingGroups": scaling_groups } }))
}

#[tokio::test]
async fn one_role_twice_in_a_scope_is_refused() {
    let (stage, _rolegate) = stage("grove-duplicate").await.serve().await;
    for (kind, _) in KINDS {
        let cliques = json!([clique("a", "prefill-leader", 1), clique("b", "PREFILL_LEADER", 1)]);
        let together = json!([{ "name": "engine", "cliqueNames": ["a", "b"] }]);
        let path = r#"spec.template.cliques[1].spec.roleName: Duplicate value: "PREFILL_LEADER""#;
        let head = format!(r#"The {kind} "inf" is invalid: {path}: "#);
        refused_in_words(&stage, &set(kind, "inf", &cliques, &together), &head);
        // In two scaling groups they do not see each other.
        let cliques = json!([clique("a", "LEADER", 1), clique("b", "LEADER", 1)]);
        let apart = json!([{ "name": "one", "cliqueNames": ["a"] }, { "name": "two", "cliqueNames": ["b"] }]);
        put(&stage, &set(kind, "inf", &cliques, &apart));
    }
}

/// A pod as Grove makes it: generateName, labels, hostname and subdomain.
fn pod(set: &str, clique: &str, index: u32, scaling_group: Option<&str>) -> Value {
    let mut labels = json!({
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": set,
        "grove.io/podclique": clique,
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podclique-pod-index": index.to_string(),
    });
    if let Some(group) = scaling_group {
        labels["grove.io/podcliquescalinggroup"] = json!(group);
        labels["grove.io/podcliquescalinggroup-replica-index"] = json!("0");
    }
    let url = json!({ "name": "URL", "value": "$(LEADER_ADDR):80" });
    let spec = json!({
        "hostname": format!("{clique}-{index}"), "subdomain": format!("{set}-0"), "automountServiceAccountToken": false,
        "schedulingGates": [{ "name": "grove.io/podgang-pending-creation" }],
        "initContainers": [{ "name": "wait", "image": "registry.invalid/x:1" }],
        "containers": [{ "name": "main", "image": "registry.invalid/x:1", "env": [url] }],
    });
    let metadata = json!({ "generateName": format!("{clique}-"), "labels": labels });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// The environment of a container of the pod as it is stored, `NAME=value` each.
async fn environment(stage: &Stage, pod: &Value, container: &str) -> Vec<String> {
    let made = stage.post(CORE, "pods", pod).await;
    assert!(made.code == 201 && made.warnings.is_empty(), "{made:?}");
    let gates = &made.body["spec"]["schedulingGates"];
    assert_eq!(gates, &pod["spec"]["schedulingGates"], "Grove's own gate, and none of ours");
    let env = made.body["spec"][container][0]["env"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    env.iter().map(|entry| format!("{}={}", text(&entry["name"]), text(&entry["value"]))).collect()
}

#[tokio::test]
async fn pods_find_each_other_by_role() {
    let (stage, _rolegate) = stage("grove-pods").await.serve().await;
    for (kind, name) in [("PodCliqueSet", "set"), ("PodGangSet", "gang")] {
        let cliques =
            json!([clique("leader", "LEADER", 1), clique("worker", "WORKER", 4), clique("gateway", "GATEWAY", 1)]);
        let group = json!([{ "name": "decode", "replicas": 1, "cliqueNames": ["leader", "worker"] }]);
        put(&stage, &set(kind, name, &cliques, &group));
        let host = |clique: &str| format!("{name}-0-{clique}-0.{name}-0.grove-pods.svc.cluster.local");
        let group = format!("{name}-0-decode");
        let discovery = |role: &str, index: u32, is_leader: bool| {
            let mut lines = vec![
                format!("ROLE_NAME={role}"),
                format!("ROLE_INDEX={index}"),
                format!("LEADER_ADDR={}", host("decode-0-leader")),
                format!("WORKER_ADDR={}", host("decode-0-worker")),
                format!("GROVE_ROLE={role}"),
                format!("GROVE_IS_LEADER={is_leader}"),
            ];
            if is_leader {
                lines.push("GROVE_ROLE_WORKER_COUNT=4".to_owned());
            }
            lines
        };
        let leader = pod(name, &format!("{group}-0-leader"), 0, Some(&group));
        let own = "URL=$(LEADER_ADDR):80".to_owned();
        let want = [discovery("LEADER", 0, true), vec![own.clone()]].concat();
        assert_eq!(environment(&stage, &leader, "containers").await, want, "{kind}");
        assert_eq!(environment(&stage, &leader, "initContainers").await, discovery("LEADER", 0, true), "{kind}");
        let worker = pod(name, &format!("{group}-0-worker"), 3, Some(&group));
        let found = environment(&stage, &worker, "containers").await;
        assert!(found.starts_with(&discovery("WORKER", 3, false)[..4]), "{kind}: {found:?}");
        assert_eq!(found.last(), Some(&own), "what uses the variables comes after them: {found:?}");
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn the_designs_examples_pass() {
        let (stage, _rolegate) = stage("grove-examples").await.serve().await;
        let accepted: Vec<_> = cases("designs/grove-discovery.yaml")
            .into_iter()
            .filter(|case| case["expect"]["check"]["violations"].is_null())
            .collect();
        assert!(accepted.len() >= 6, "{}", accepted.len());
        for (number, case) in accepted.iter().enumerate() {
            let mut object = case["object"].clone();
            let kind = object["kind"].as_str().unwrap().to_owned();
            object["metadata"]["namespace"] = json!("grove-examples");
            if number > 5 {
                object["metadata"]["name"] = json!(format!("set-{number}"));
            }
            let plural = KINDS.iter().find(|(known, _)| *known == kind).unwrap().1;
            let answer = stage.post(GROVE, plural, &object).await;
            assert_eq!(answer.code, 201, "{}: {answer:?}", case["name"]);
            let warnings = case["expect"]["check"]["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(answer.warnings.len(), warnings, "{}: {answer:?}", case["name"]);
        }
    }

    #[tokio::test]
    async fn strict_roles_makes_them_unique_in_the_set() {
        let stage = stage("grove-strict").await;
        let _rolegate = stage.launch().switch("strict-roles").start().await;
        let cliques = json!([clique("a", "LEADER", 1), clique("b", "LEADER", 1)]);
        let apart = json!([{ "name": "one", "cliqueNames": ["a"] }, { "name": "two", "cliqueNames": ["b"] }]);
        let reason = r#"spec.template.cliques[1].spec.roleName: Duplicate value: "LEADER": must be unique in the set: clique "a" has variable LEADER_ADDR too"#;
        refused(&stage, &set("PodCliqueSet", "inf", &cliques, &apart), reason);
    }

    #[tokio::test]
    async fn a_member_without_a_role_beside_others_is_told_of() {
        let (stage, _rolegate) = stage("grove-roleless").await.serve().await;
        let cliques = json!([clique("leader", "LEADER", 1), { "name": "helper", "spec": { "replicas": 1 } }]);
        let group = json!([{ "name": "engine", "cliqueNames": ["leader", "helper"] }]);
        let shown = crate::rules::desk::apply(&stage, &set("PodCliqueSet", "inf", &cliques, &group));
        assert!(shown.done && shown.warnings().len() == 1, "{shown:?}");
        // A set without any role is nobody's business.
        let cliques = json!([{ "name": "a", "spec": { "replicas": 1 } }, { "name": "b", "spec": { "replicas": 1 } }]);
        warned(&stage, &set("PodCliqueSet", "plain", &cliques, &json!([])), &[]);
    }

    #[tokio::test]
    async fn a_gateway_finds_all_roles_of_a_set_that_joins_its_scopes() {
        let (stage, _rolegate) = stage("grove-joined").await.serve().await;
        let scope = |word: &str| json!({ "rolegate.dev/discovery-scope": word });
        let cliques =
            json!([clique("leader", "LEADER", 1), clique("worker", "WORKER", 4), clique("gateway", "GATEWAY", 1)]);
        let group = json!([{ "name": "decode", "replicas": 3, "cliqueNames": ["leader", "worker"] }]);
        let mut joined = set("PodCliqueSet", "set", &cliques, &group);
        put(&stage, &joined);
        let gateway = pod("set", "set-0-gateway", 0, None);
        let host = |clique: &str| format!("set-0-{clique}-0.set-0.grove-joined.svc.cluster.local");
        let alone = environment(&stage, &gateway, "initContainers").await;
        assert!(alone.iter().all(|line| !line.starts_with("LEADER")), "isolation is the default: {alone:?}");

        joined["metadata"]["annotations"] = scope("Set");
        let reason = r#"metadata.annotations[rolegate.dev/discovery-scope]: Unsupported value: "Set": supported values: "isolated", "set"; did you mean "set"?"#;
        refused(&stage, &joined, reason);
        joined["metadata"]["annotations"] = scope("set");
        let kept = "metadata.annotations[rolegate.dev/discovery-scope]: existing pods keep the variables that they were created with; only new pods get others";
        warned(&stage, &joined, &[kept]);
        // The webhook hears of the edit by its watch.
        let look = async || environment(&stage, &gateway, "initContainers").await;
        let finds = |env: &Vec<String>| env.iter().any(|line| line.starts_with("LEADER"));
        let found = until_found("a gateway that finds leaders", look, finds).await;
        let leader = format!("LEADER_ADDR={}", host("decode-0-leader"));
        let service = "LEADER_HEADLESS=set-0.grove-joined.svc.cluster.local".to_owned();
        for line in [leader, service, "GROVE_ROLE_LEADER_COUNT=3".to_owned(), "GROVE_ROLE_WORKER_COUNT=12".to_owned()] {
            assert!(found.contains(&line), "{line} is not in {found:?}");
        }
        let member = pod("set", "set-0-decode-0-worker", 3, Some("set-0-decode"));
        let found = environment(&stage, &member, "initContainers").await;
        assert!(found.contains(&format!("GATEWAY_ADDR={}", host("gateway"))), "{found:?}");
        assert!(found.contains(&"GROVE_ROLE_LEADER_COUNT=1".to_owned()), "its own copy: {found:?}");

        // What the gateway would find twice is refused with both places.
        let cliques = json!([clique("p", "LEADER", 1), clique("d", "LEADER", 1), clique("gateway", "GATEWAY", 1)]);
        let apart = json!([{ "name": "one", "cliqueNames": ["p"] }, { "name": "two", "cliqueNames": ["d"] }]);
        let mut twice = set("PodCliqueSet", "twice", &cliques, &apart);
        twice["metadata"]["annotations"] = scope("set");
        let reason = r#"spec.template.cliques[1].spec.roleName: Duplicate value: "LEADER": must be unique in the set, as its discovery-scope is `set`: clique "p" has variable LEADER_ADDR too"#;
        refused(&stage, &twice, reason);
    }

    #[tokio::test]
    async fn discovery_can_be_switched_off_on_a_set() {
        let (stage, _rolegate) = stage("grove-off").await.serve().await;
        let mut off = set("PodCliqueSet", "off", &json!([clique("leader", "LEADER", 1)]), &json!([]));
        off["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": "disabled" });
        put(&stage, &off);
        let found = environment(&stage, &pod("off", "off-0-leader", 0, None), "containers").await;
        assert_eq!(found, ["URL=$(LEADER_ADDR):80"]);
    }
}
