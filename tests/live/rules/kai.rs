//! KAI's PodGroups in all dialects, and the pods that name them.

use crate::common::prelude::*;
use crate::rules::definitions;
use crate::rules::desk::{cases, causes, put, refused, stage, tied, warned};
use crate::rules::turn::Turn;

const POD_GROUPS: &str = "/apis/scheduling.run.ai/v2alpha2";
const LABEL: &str = "kai.scheduler/subgroup-name";

fn pod_group(name: &str, spec: &Value) -> Value {
    object("scheduling.run.ai/v2alpha2", "PodGroup", name).spec(spec)
}

/// The examples of the hierarchical PodGroup design, each under a name of its own.
pub fn examples() -> Vec<Value> {
    let of_proposal = |case: &Value| {
        case["options"]["kaiDialect"] == "proposal" && case["expect"] == json!({ "check": { "allowed": true } })
    };
    let all = cases("designs/kai-podgroup.yaml").into_iter().filter(of_proposal).map(|case| case["object"].clone());
    let named = all.enumerate().map(|(number, mut object)| {
        object["metadata"] = json!({ "name": format!("example-{}", number + 1) });
        object
    });
    named.collect()
}

/// What only the design's dialect refuses: more top-level subgroups asked for than there are.
fn asks_too_much() -> Value {
    let two = json!([{ "name": "a", "minMember": 1 }, { "name": "b", "minMember": 1 }]);
    pod_group("too-much", &json!({ "minMember": 3, "subGroups": two }))
}

async fn accepts_the_design(stage: &Stage) {
    let examples = examples();
    assert_eq!(examples.len(), 4);
    for example in &examples {
        let answer = stage.post(POD_GROUPS, "podgroups", example).await;
        assert!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}\n{example:#}");
    }
    let answer = stage.post(POD_GROUPS, "podgroups", &asks_too_much()).await;
    let causes = causes(&answer);
    assert_eq!((answer.code, causes.len()), (422, 1), "{answer:?}");
    assert!(causes[0].starts_with("spec.minMember: Invalid value: 3: "), "{answer:?}");
}

#[tokio::test]
async fn the_designs_dialect_is_told_by_the_definition() {
    let turn = Turn::new("kai-auto-proposal").await;
    accepts_the_design(&turn).await;
}

fn pod(name: &str, group: &str, labels: &Value) -> Value {
    let mut pod = bare_pod(name, labels, "nowhere");
    pod["metadata"]["annotations"] = json!({ "pod-group-name": group });
    pod
}

/// Creates the PodGroup whose leaves the pods name.
fn put_tree(stage: &Stage) {
    let tree = json!([
        { "name": "decode", "minSubGroup": 2 }, { "name": "decode-workers", "parent": "decode", "minMember": 4 },
        { "name": "decode-leaders", "parent": "decode", "minMember": 1 }, { "name": "prefill", "minMember": 2 },
    ]);
    put(stage, &pod_group("pd", &json!({ "minSubGroup": 2, "subGroups": tree })));
}

fn subgroup(answer: &Answer) -> &Value {
    assert_eq!(answer.code, 201, "{answer:?}");
    &answer.body["metadata"]["labels"][LABEL]
}

#[tokio::test]
async fn a_pod_ends_up_in_exactly_one_leaf() {
    let (stage, _rolegate) = stage("kai-pods").await.serve().await;
    put_tree(&stage);
    let at = format!("metadata.labels[{LABEL}]");
    let leaves = r#"must name a leaf of PodGroup "pd": decode-workers, decode-leaders, prefill"#;
    let wrong = [
        (json!({}), format!("{at}: Required value: {leaves}")),
        (json!({ LABEL: "" }), format!("{at}: Required value: {leaves}")),
        (json!({ LABEL: "decode" }), format!(r#"{at}: Invalid value: "decode": has subgroups of its own; {leaves}"#)),
        (json!({ LABEL: "prefil" }), format!(r#"{at}: Not found: "prefil": {leaves}; did you mean "prefill"?"#)),
        (tied("llm", "decode"), format!("{at}: Required value: {leaves}")),
    ];
    for (labels, reason) in wrong {
        let answer = stage.post(CORE, "pods", &pod("wrong", "pd", &labels)).await;
        assert_eq!((answer.code, causes(&answer)), (422, vec![reason]), "{answer:?}");
    }
    let named = stage.post(CORE, "pods", &pod("named", "pd", &json!({ LABEL: "decode-workers" }))).await;
    assert_eq!(subgroup(&named), "decode-workers");
    // Where the role names the leaf, nobody has to.
    let derived = stage.post(CORE, "pods", &pod("derived", "pd", &tied("llm", "prefill"))).await;
    assert_eq!(subgroup(&derived), "prefill");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn the_designs_examples_pass_under_its_dialect() {
        let (stage, _rolegate) = stage("kai-proposal").await.serve_with("kai-dialect", "proposal").await;
        accepts_the_design(&stage).await;
    }

    #[tokio::test]
    async fn todays_dialect_is_told_by_the_definition() {
        let (stage, rolegate) = stage("kai-auto-upstream").await.serve().await;
        let middle = |labels: &Value| {
            let sub_groups = json!([{ "name": "decode", "minMember": 1 }, { "name": "workers", "parent": "decode", "minMember": 4 }]);
            let mut group = pod_group("pd", &json!({ "minMember": 4, "subGroups": sub_groups }));
            group["metadata"]["labels"] = labels.clone();
            group
        };
        let reason =
            "spec.subGroups[0].minMember: Forbidden: may not be set on a subgroup with children; set `minSubGroup`";
        refused(&stage, &middle(&json!({})), reason);
        // The root counts pods, as many as there are.
        let flat = json!([{ "name": "a", "minMember": 16 }, { "name": "b", "minMember": 16 }]);
        put(&stage, &pod_group("pods", &json!({ "minMember": 32, "subGroups": flat })));
        let workers = json!({ "name": "workers", "parent": "decode", "minMember": 4 });
        let tree = json!([{ "name": "decode", "minSubGroup": 1 }, workers]);
        put(&stage, &pod_group("pd", &json!({ "minSubGroup": 1, "subGroups": tree })));
        // One that is there already may get it, with a warning.
        let mut update = middle(&json!({}));
        update["spec"]["minMember"] = Value::Null;
        update["spec"]["minSubGroup"] = json!(1);
        update["spec"]["subGroups"][0]["minSubGroup"] = Value::Null;
        warned(&stage, &update, &[reason]);
        let updates = r#"rolegate_reviews_total{resource="podgroups",operation="UPDATE",verdict="allowed"}"#;
        assert!(rolegate.metric(updates).await >= 1);
    }

    #[tokio::test]
    async fn releases_that_count_pods_on_every_level_are_told_by_the_definition() {
        let plane = ControlPlane::own(|| {
            let plane = ControlPlane::start_with_groups("kwok", &[]);
            definitions::install(&plane, &[definitions::pod_groups_that_count_pods()]);
            plane
        });
        let (stage, rolegate) = Stage::on(plane.await, "kai-auto-pods").await.serve().await;
        let sub_groups =
            json!([{ "name": "decode", "minMember": 16 }, { "name": "workers", "parent": "decode", "minMember": 4 }]);
        let group = pod_group("pd", &json!({ "minMember": 32, "subGroups": sub_groups }));
        let answer = stage.post(POD_GROUPS, "podgroups", &group).await;
        assert!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
        let reviews = r#"rolegate_reviews_total{resource="podgroups",operation="CREATE",verdict="allowed"}"#;
        assert!(rolegate.metric(reviews).await >= 1);
    }

    #[tokio::test]
    async fn one_without_subgroups_is_left_alone() {
        let (stage, _rolegate) = stage("kai-flat").await.serve().await;
        let flat = pod_group("flat", &json!({ "minMember": 1000, "queue": "q", "priorityClassName": "train" }));
        put(&stage, &flat);
        let pod = pod("in-flat", "flat", &json!({}));
        let made = stage.post(CORE, "pods", &pod).await;
        assert!(made.code == 201 && made.warnings.is_empty(), "{made:?}");
        assert!(made.body["metadata"]["labels"].is_null(), "{made:?}");
    }

    #[tokio::test]
    async fn an_unknown_podgroup_may_come_later_and_another_namespace_is_never_asked() {
        let elsewhere = stage("kai-elsewhere").await;
        put_tree(&elsewhere);
        let here = stage("kai-here").await;
        let both = "kai-elsewhere,kai-here";
        let _rolegate = here.launch().flag("namespaces", both).start().await;
        // What is asked here is asked there: the rule is in force.
        let there = async || elsewhere.post(CORE, "pods", &pod("there", "pd", &json!({}))).await.code;
        until_is("a refusal where the PodGroup is", there, 422).await;
        for (name, labels) in [("unlabelled", json!({})), ("labelled", json!({ LABEL: "whatever" }))] {
            let answer = here.post(CORE, "pods", &pod(name, "pd", &labels)).await;
            assert!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
        }
        let derived = here.post(CORE, "pods", &pod("role", "pd", &tied("llm", "prefill"))).await;
        assert_eq!(subgroup(&derived), &Value::Null);
    }
}
