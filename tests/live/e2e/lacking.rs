//! Groups of which something is not there, or does not say that it is theirs.

use crate::common::prelude::*;

#[tokio::test]
async fn a_group_says_that_its_workloads_are_not_there_or_not_labelled() {
    let (stage, _rolegate) = Stage::new("lacking").await.with_room(6).await.serve_with("progress-deadline", "4s").await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    let statuses = stage.coordination_statuses("llm");
    stage.create(group.coordination()).await;
    let is = |kind: &'static str, reason: &'static str| {
        move |status: &Status| status.condition(kind).starts_with(&format!("False {reason}"))
    };
    let status = statuses.until("missing", is("MinimumSegmentsAvailable", "WorkloadMissing")).await;
    assert_eq!(status.reason(), "WorkloadMissing");
    assert!(status.ready().starts_with("False WorkloadMissing"), "{status}");
    stage.until_event("WorkloadMissing", &["llm-decode of role \"decode\" is not there"]).await;
    let why = r#"WorkloadMissing: StatefulSet lacking/llm-prefill of role "prefill""#;
    stage.until_said(&["explain", "group", "llm"], why).await;
    stage.until_said(&["status"], "WorkloadMissing").await;
    statuses.until("nothing moves", is("Progressing", "ProgressDeadlineExceeded")).await;
    let was_true = |status: &Status| status.minimum().starts_with("True");
    assert!(!statuses.all().iter().any(was_true), "no segment was ever ready");

    // The workloads claim to be of the group, and their pods say nothing.
    let mut pods = Vec::new();
    for role in &group.roles {
        let mut set = group.set(role, &stage.namespace);
        let labels = set["spec"]["template"]["metadata"]["labels"].take();
        set["metadata"]["labels"] = labels.clone();
        set["spec"]["template"]["metadata"]["labels"] = json!({ "app": role.name });
        set["spec"]["selector"]["matchLabels"] = json!({ "app": role.name });
        let made = stage.post("/apis/apps/v1", "statefulsets", &set).await;
        assert_eq!(made.code, 201, "{made:?}");
        let name = group.set_name(&role.name);
        let lacks = format!("the pod template of StatefulSet \"{name}\" lacks labels rolegate.dev/group: \"llm\"");
        assert!(made.warnings.iter().any(|warning| warning.contains(&lacks)), "{made:?}");
        pods.push((name, labels));
    }
    let status = statuses.until("not labelled", |status| status.reason() == "WorkloadNotLabelled").await;
    assert!(status.progressing().contains("lacks labels"), "{status}");
    stage.until_event("WorkloadNotLabelled", &["llm-prefill"]).await;
    stage.until_said(&["explain", "group", "llm"], "WorkloadNotLabelled").await;

    // What is advised: the labels into the template.
    for (name, labels) in pods {
        let patch = json!({ "spec": { "template": { "metadata": { "labels": labels } } } }).to_string();
        stage.kubectl(&["patch", "statefulset", &name, "-p", &patch]);
    }
    let all = "True AllReplicasReady: 6/6 pods ready";
    let status = statuses.until("all ready", |status| status.ready() == all).await;
    assert!(status.minimum().starts_with("True") && status.reason().is_empty(), "{status}");
    // Until then pods that did not name the group counted as they ran.
    let ready = |now: &View| now.count("prefill", Pod::is_ready) + now.count("decode", Pod::is_ready);
    stage.pods.until("all pods name it", |now| ready(now) == 6).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_group_that_wants_no_replica_has_no_segment() {
        let (stage, _rolegate) = Stage::new("no-replica").await.serve().await;
        let group = Group::new("llm").role("prefill", 0, 2).role("decode", 0, 1);
        let statuses = stage.deploy_watched(&group).await;
        let status = statuses.until("it is told", |status| !status.minimum().is_empty()).await;
        assert!(status.minimum().starts_with("False NoSegmentsReady: 0/0 segments ready"), "{status}");
    }
}
