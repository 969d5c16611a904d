//! Two rolegates in one cluster: with namespaces of their own they do not meet; where both serve one, it is found.

use crate::common::prelude::*;
use crate::install::render::{chart, helm_command};
use crate::install::support::{Installation, get_named};
use crate::lifecycle::uninstall::request_for_nodes;

/// A release of Helm for a namespace, and a rolegate that serves it.
async fn release(name: &str, stage: &Stage, more: &[&str]) -> (Installation, Rolegate) {
    release_for(name, stage, &format!("namespaces=[\"{}\"]", stage.namespace), more).await
}

/// The same for the namespaces that this value of the chart says.
async fn release_for(name: &str, stage: &Stage, namespaces: &str, more: &[&str]) -> (Installation, Rolegate) {
    let plane = &stage.plane;
    let arguments = ["install", name, &chart(), "--namespace", SYSTEM, "--set-json", namespaces];
    let mut helm = helm_command(&arguments);
    let output = helm.args(more).arg("--kubeconfig").arg(&plane.kubeconfig).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    if more.is_empty() {
        // The definitions came with it; those of RoleBasedGroups are of others.
        plane.define_groups();
    }
    let installed = Installation::named(plane.clone(), &format!("{name}-rolegate")).await;
    let rolegate = installed.serve(stage).await;
    rolegate.until_metric("rolegate_leader", 1).await;
    (installed, rolegate)
}

async fn doctor(plane: &ControlPlane, name: &str) -> Value {
    ran(&plane.kubeconfig, &["doctor", "--name", name, "-o", "json"]).await.json()
}

fn about_others(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|finding| finding["check"] == "other-rolegates");
    let line = |found: &Value| format!("{} {}", found["level"].as_str().unwrap(), found["what"].as_str().unwrap());
    findings.map(line).collect()
}

/// Six pods that come up, in two segments.
fn group(name: &str) -> Group {
    Group::new(name).role("prefill", 4, 2).role("decode", 2, 1)
}

const SECOND: &[&str] = &["--set", "crds.enabled=false"];

#[tokio::test]
async fn two_releases_with_namespaces_of_their_own_do_not_meet() {
    let plane = ControlPlane::own(|| ControlPlane::start_with("kwok", &[])).await;
    let (first, second) = (Stage::on(plane.clone(), "first").await, Stage::on(plane.clone(), "second").await);
    for stage in [&first, &second] {
        stage.add_node(&stage.namespace, 20).await;
    }
    let (_a, one) = release("a", &first, &[]).await;
    let (_b, two) = release("b", &second, SECOND).await;
    for (stage, rolegate) in [(&first, &one), (&second, &two)] {
        stage.deploy(&group("llm")).await;
        stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 6).await;
        invariants::released_in_order(&stage.pods, &group("llm"));
        invariants::all_born_held(&stage.pods);
        assert_eq!(rolegate.metric(r#"rolegate_releases_total{outcome="released"}"#).await, 6, "each its own");
    }
    for name in ["a-rolegate", "b-rolegate"] {
        let lease = get_named(&plane, "lease", name);
        assert!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
        get_named(&plane, "secret", &format!("{name}-certificates"));
    }
    let report = doctor(&plane, "a-rolegate").await;
    assert_eq!(about_others(&report), ["ok the rolegate b-rolegate serves other namespaces than ours"]);

    // One goes: what the other holds, it holds on.
    let held = Group::new("slow").role("main", 2, 1).held_back();
    for stage in [&first, &second] {
        stage.deploy(&held).await;
        stage.pods.until("one is held", |now| now.count_all(Pod::is_held) == 1).await;
    }
    let requests = request_for_nodes(&second, &plane).await;
    let arguments = ["uninstall", "--yes", "--name", "a-rolegate"];
    let ends = async {
        let look = async || plane.must(&["get", "deployments", "-n", SYSTEM, "-o", "name"], "");
        until_found("the Deployment gone", look, |names| !names.contains("/a-rolegate")).await;
        one.terminate().await
    };
    let (done, _) = tokio::join!(ran(&plane.kubeconfig, &arguments), ends);
    let left = "objects in namespaces of b-rolegate and ClusterTopologies are left alone";
    assert!(done.code == 0 && done.out.contains(left), "{done:?}");
    first.pods.until("nothing is held", |now| now.count_all(Pod::is_held) == 0).await;
    second.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 1, "{now}"));
    assert!(requests.get_opt("asks").await.unwrap().is_some(), "nodes that the other has asked for");
    second.let_ready(Pod::is_released).await;
    second.pods.until("released in its turn", |now| now.count_all(Pod::is_held) == 0).await;
    drop(two);
}

#[tokio::test]
async fn two_that_serve_one_namespace_are_found() {
    let plane = ControlPlane::own(|| ControlPlane::start_with("kwok", &["--audit"])).await;
    let stage = Stage::on(plane.clone(), "shared").await.with_room(40).await;
    let (_a, one) = release("a", &stage, &[]).await;
    let (_b, two) = release("b", &stage, SECOND).await;
    let statuses = stage.deploy_watched(&group("llm")).await;
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 6).await;
    statuses.until("all ready", |status| status.ready().starts_with("True ")).await;
    // No harm is done: what is released is committed first, under the version that was read.
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group("llm"));
    invariants::released_counts_never_fell(&statuses, &group("llm"));
    invariants::nobody_was_held_again(&stage.pods);
    for rolegate in [&one, &two] {
        for metric in ["rolegate_releases_total", "rolegate_status_writes_total", "rolegate_events_total"] {
            let all = rolegate.metrics().await;
            all.lines().filter(|line| line.starts_with(metric)).for_each(|line| println!("{line}"));
        }
        println!("--");
    }
    let gates = plane.must(&["get", "events", "-n", "shared", "--field-selector", "reason=Released", "-o", "name"], "");
    println!("{gates}");
    for (name, other) in [("a-rolegate", "b-rolegate"), ("b-rolegate", "a-rolegate")] {
        let report = doctor(&plane, name).await;
        let expected = format!("error the rolegate {other} serves 1 namespace that ours serves too: shared");
        assert_eq!(about_others(&report), [expected]);
    }
}

mod tier2 {
    use super::*;

    /// One that selects namespaces by their labels watches all of them: what another one holds it leaves alone, and what is nobody's
    /// it lets go.
    #[tokio::test]
    async fn one_that_selects_by_labels_lets_go_of_nothing_that_is_anothers() {
        let plane = ControlPlane::own(|| ControlPlane::start_with("kwok", &["--audit"])).await;
        let (first, second) = (Stage::on(plane.clone(), "first").await, Stage::on(plane.clone(), "second").await);
        let slow = Group::new("slow").role("main", 2, 1).held_back();
        for stage in [&first, &second] {
            stage.add_node(&stage.namespace, 20).await;
        }
        plane.must(&["label", "namespace", "first", "team=first"], "");
        // The other one is there first, and holds.
        let (b, two) = release("b", &second, &[]).await;
        second.deploy(&slow).await;
        second.pods.until("one is held", |now| now.count_all(Pod::is_held) == 1).await;
        let labels = r#"namespaceSelector={"matchLabels":{"team":"first"}}"#;
        let (_a, one) = release_for("a", &first, labels, SECOND).await;
        first.deploy(&slow).await;
        first.pods.until("one is held", |now| now.count_all(Pod::is_held) == 1).await;
        one.until_metric(r#"rolegate_namespaces{served="of-other-rolegate"}"#, 1).await;
        second.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 1, "{now}"));
        assert_eq!(one.metric(r#"rolegate_releases_total{outcome="released"}"#).await, 0, "of all that is held");
        for (name, other) in [("a-rolegate", "b-rolegate"), ("b-rolegate", "a-rolegate")] {
            let report = doctor(&plane, name).await;
            assert_eq!(about_others(&report), [format!("ok the rolegate {other} serves other namespaces than ours")]);
        }
        let arguments = ["status", "slow", "-n", "second", "--rolegate", "rolegate-system/a-rolegate"];
        let shown = ran(&plane.kubeconfig, &arguments).await.out;
        assert!(shown.contains("another rolegate serves its namespace"), "{shown}");

        // Taken out of its hands, nobody's: the group goes.
        plane.must(&["label", "namespace", "first", "team-"], "");
        first.pods.until("what is held is let go", |now| now.count_all(Pod::is_released) == 2).await;
        second.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 1, "{now}"));
        // Its configurations gone, what the other one left behind is nobody's either.
        drop((b, two));
        plane.must(&["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "b-rolegate"], "");
        second.pods.until("what is held is let go", |now| now.count_all(Pod::is_released) == 2).await;
    }
}
