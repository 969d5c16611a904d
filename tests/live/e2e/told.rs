//! What is said is so, and what is so is said: of what comes a moment later nothing, of a name that is misspelt what helps, of
//! pods that run without their group that they do.

use k8s_openapi::api::core::v1::Event;

use crate::common::prelude::*;

/// Events of ours by reason, each with the objects that they are about, type and note.
async fn told(stage: &Stage) -> BTreeMap<String, Vec<[String; 3]>> {
    let events = stage.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let ours = events.into_iter().filter(|event| event.reporting_component.as_deref() == Some("rolegate"));
    let mut told: BTreeMap<String, Vec<[String; 3]>> = BTreeMap::new();
    for event in ours {
        let about = [event.involved_object.name, event.type_, event.message].map(Option::unwrap_or_default);
        told.entry(event.reason.unwrap_or_default()).or_default().push(about);
    }
    told
}

/// What `explain` says about a role that the group does not have is tried as it stands.
#[tokio::test]
async fn a_role_that_is_misspelt_in_a_template_is_mended_as_it_is_said() {
    let (stage, rolegate) = Stage::new("misspelt-role").await.with_room(4).await.serve().await;
    let group = Group::new("llm").role("decode", 4, 2);
    let statuses = stage.create_watched(&group).await;
    let mut set = group.set(group.find("decode"), &stage.namespace);
    let labels = json!({ "app": "decode", "rolegate.dev/group": "llm", "rolegate.dev/role": "decoed" });
    set["spec"]["selector"]["matchLabels"] = json!({ "app": "decode" });
    set["spec"]["template"]["metadata"]["labels"] = labels;
    stage.create(set).await;
    stage.pods.until("all are held", |now| now.count_all(Pod::is_held) == 4).await;
    // Of all four, and not of the first that was seen.
    let note = r#"role "decoed" is held: the group does not have it (4 pods)"#;
    let unknown = async || told(&stage).await.remove("UnknownRole").unwrap_or_default();
    until_found("it is told", unknown, |all| all.iter().any(|[_, _, text]| text == note)).await;
    let advice = "correct the role's name in the labels of the pod template, then delete the held pods";
    stage.until_said(&["explain", "pod", "llm-decode-0"], advice).await;

    let template = json!({ "metadata": { "labels": { "rolegate.dev/role": "decode" } } });
    stage.patch::<StatefulSet>("llm-decode", &json!({ "spec": { "template": template } })).await;
    stage.kubectl(&["delete", "pods", "--all", "--wait=false"]);
    statuses.until("it serves", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    statuses.until("it is said no longer", |status| !status.progressing().contains("decoed")).await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="UnknownRole"}"#, 0).await;
}

/// A misspelt group holds its pods for a while; that they go then is said, and that they run without it.
#[tokio::test]
async fn pods_whose_group_never_comes_are_told_of_when_they_go_and_after() {
    let stage = Stage::new("misspelt-group").await.with_room(4).await;
    let rolegate = stage.launch().flag("missing-group", "release-after=3s").start().await;
    let group = Group::new("lmm").role("main", 4, 2);
    stage.create_sets(&group).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    let note = r#"group "lmm" never came: 4 pods of role "main" go, and nothing coordinates them"#;
    let expected = vec![["lmm-main-0", "Warning", note].map(str::to_owned)];
    let found = async || told(&stage).await.remove("ReleasedWithoutGroup");
    until_is("it is told", found, Some(expected)).await;
    rolegate.until_metric("rolegate_uncoordinated_pods", 4).await;
    let doctor = ["doctor", "--try-in", &stage.namespace];
    let says = "4 pods of group misspelt-group/lmm run, and it is not there: nothing coordinates them";
    stage.until_said(&doctor, says).await;

    stage.create_group(&group).await;
    rolegate.until_metric("rolegate_uncoordinated_pods", 0).await;
}

mod tier2 {
    use super::*;

    /// `kubectl apply -f` of a folder applies one file after the other.
    #[tokio::test]
    async fn what_comes_a_moment_later_is_not_said_to_be_missing() {
        let (stage, _rolegate) = Stage::new("second-file").await.with_room(6).await.serve_with("allow", "scale").await;
        let statuses = stage.coordination_statuses("llm");
        let group = Group::new("llm").role("prefill", 0, 2).role("decode", 0, 1).bare_names();
        let mut coordination = group.coordination();
        coordination["spec"]["segments"] = json!(2);
        stage.create(coordination).await;
        statuses.until("it is missed", |status| status.condition("Elastic").starts_with("False")).await;
        stage.create_claimed_sets(&group).await;
        statuses.until("it serves", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
        let told = told(&stage).await;
        let warns = |all: &[[String; 3]]| all.iter().any(|[_, kind, _]| kind == "Warning");
        let warnings: Vec<_> = told.iter().filter(|(_, all)| warns(all)).collect();
        assert!(warnings.is_empty(), "{warnings:#?}");
        assert!(told.contains_key("Released"), "{told:#?}");
    }

    /// Whatever is left in a namespace that is being deleted, it is one line in the log.
    #[tokio::test]
    async fn a_namespace_that_is_deleted_is_one_line_in_the_log() {
        let stage = Stage::new("deleted-namespace").await.with_room(24).await;
        let rolegate = stage.launch().flag("vanished-grace", "1s").start().await;
        let group = Group::new("llm").role("prefill", 12, 2).role("decode", 12, 2).held_back();
        stage.deploy(&group).await;
        stage.pods.until("a segment runs", |now| now.count_all(Pod::is_scheduled) == 4).await;
        let lines = || rolegate.log().lines().map(str::to_owned).collect::<Vec<_>>();
        let before = lines().len();
        stage.kubectl(&["delete", "namespace", "deleted-namespace", "--wait=false"]);
        // Nothing finalizes a namespace here: what is in it is deleted as its controller does.
        for kind in ["rolebasedgroups.workloads.x-k8s.io", "statefulsets", "pods"] {
            stage.kubectl(&["delete", kind, "--all", "--wait=false"]);
        }
        stage.pods.until("its pods are gone", |now| now.count_all(|_| true) == 0).await;
        let look = async || lines().split_off(before);
        holds(Duration::from_secs(3), "nothing is logged but that", look, |new| new.len() <= 1).await;
    }
}
