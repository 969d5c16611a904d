//! Rollouts that go back (KEP-32, Rollback capabilities): by time, by an object, by hand; StatefulSets and LeaderWorkerSets.

use crate::common::prelude::*;
use crate::pods::support::stage as with_leader_worker_sets;
use crate::rollouts::support::{
    Duo, FROZEN, LWS_REVISION, create_leader_worker_sets, leader_worker_sets, revisions_of_groups, rolling,
};

const NOT_READY: &str = "kwok.rolegate.dev/not-ready";
const FLAGS: [(&str, &str); 2] = [("allow", "recovery"), ("settle", "2s")];

/// Four prefill and two decode.
async fn serve(namespace: &str, bounds: Value) -> Duo {
    Duo::serve(namespace, 4, 2, bounds, &FLAGS).await.ready().await
}

fn is_back(status: &Status, reason: &str) -> bool {
    status.condition("RolledBack").starts_with(&format!("True {reason}"))
        && status.ready().starts_with("True RolledBack")
        && status.condition("RolloutComplete").starts_with("False RolledBack")
}

/// Both roles are at their first revisions, above whose replicas their partitions are, and stay so.
async fn stays_back(duo: &Duo) {
    let new = || duo.stage.pods.now(|now| now.count_all(|pod| duo.is_new(pod)));
    let look = async || (new(), duo.partitions().await);
    stays(Duration::from_secs(3), "it is not tried again", look, (0, (FROZEN, FROZEN))).await;
}

/// At every event since it served first: while a role has a new pod that is not ready, no role is new altogether.
fn nobody_was_alone(duo: &Duo) {
    let (mut view, mut served) = (View::default(), false);
    for batch in duo.stage.pods.events().chunk_by(|a, b| a.batch == b.batch) {
        batch.iter().for_each(|event| view.take(event));
        served |= view.count_all(Pod::is_ready) == 6;
        let done = |role: &str| view.count(role, |pod| duo.is_new(pod) && pod.is_ready());
        let old = |role: &str| view.count(role, |pod| !duo.is_new(pod));
        if served && (done("prefill") == 4 || done("decode") == 2) {
            assert!(old("prefill") <= 1 && old("decode") <= 1, "{view}");
        }
    }
    assert!(served);
}

/// The new prefill does not get ready, and the good decode goes back with it. The leader changes, and its successor tries nothing
/// again. The next edit, of prefill alone, takes both to their templates.
#[tokio::test]
async fn a_version_that_does_not_get_ready_goes_back_with_the_other_role_until_the_next_edit() {
    let bounds = json!({ "onFailure": "Rollback", "failAfter": "3s" });
    let mut duo = serve("rollback", bounds).await;
    duo.edit_held_back("prefill", "registry.invalid/broken:2");
    duo.set_image("decode", "registry.invalid/x:2");
    let status = duo.statuses.until("it is back", |status| is_back(status, "ReplicasNotReady")).await;
    assert!(status.condition("RolledBack").contains(r#""roll" was sent back: prefill-3 did not get ready within 3s"#));
    duo.stage.until_event("RolledBack", &["prefill-3 did not get ready within 3s"]).await;
    stays_back(&duo).await;
    // The templates are as their author wrote them.
    let template = duo.set("decode").await.spec.unwrap().template.spec.unwrap();
    assert_eq!(template.containers[0].image.as_deref(), Some("registry.invalid/x:2"));
    duo.rolegate.until_metric("rolegate_rollouts_rolled_back", 1).await;
    let deleted = duo.rolegate.metric(r#"rolegate_recovery_deletions_total{why="rollback",outcome="deleted"}"#).await;
    assert!(deleted > 0, "{deleted}");
    let next = FLAGS.iter().fold(duo.stage.launch(), |launch, (name, value)| launch.flag(name, value)).start().await;
    std::mem::replace(&mut duo.rolegate, next).kill().await;
    duo.rolegate.until_metric("rolegate_rollouts_rolled_back", 1).await;
    stays_back(&duo).await;
    duo.edit_good("prefill", "registry.invalid/x:3");
    duo.until_over().await;
    assert_eq!(duo.statuses.now().condition("RolledBack"), "");
    nobody_was_alone(&duo);
}

/// Nothing is configured: a person looks at the rollout, and sends it back. Another edit to the same image goes forth.
#[tokio::test]
async fn a_person_sends_a_rollout_back() {
    let duo = serve("rollback-by-hand", json!({ "maxUnavailable": 1 })).await;
    assert!(duo.stage.said(&["rollback", "llm"]).await.contains("no rollout is under way"));
    duo.edit_held_back("prefill", "registry.invalid/broken:2");
    duo.until_new_ordinals("prefill", 3..4).await;
    let dry = duo.stage.said(&["rollback", "llm", "--dry-run"]).await;
    assert!(dry.contains("is asked to go back (roll)") && dry.contains("nothing was done"), "{dry}");
    let said = duo.stage.said(&["rollback", "llm"]).await;
    assert!(said.contains("rollback-by-hand/llm is asked to go back (roll)"), "{said}");
    duo.statuses.until("it is back", |status| is_back(status, "Requested")).await;
    assert_eq!(duo.new_ordinals("prefill"), [].into());
    duo.edit_good("prefill", "registry.invalid/x:3");
    duo.until_closed("prefill").await;
    assert_eq!(duo.new_ordinals("prefill"), (0..4).collect());
}

/// Groups of a leader and a worker, which do not get ready at the new revision, go back as a whole.
#[tokio::test]
async fn groups_go_back_whole() {
    let stage = with_leader_worker_sets("lws-rollback").await.with_room(24).await;
    let _rolegate = stage.launch().flag("allow", "recovery").flag("settle", "2s").start().await;
    let group = Group::new("llm").role("prefill", 3, 1).role("decode", 3, 1);
    create_leader_worker_sets(&stage, &group, &json!({})).await;
    let mut object = group.coordination_of("LeaderWorkerSet", &json!({}));
    object["spec"]["coordination"] = rolling(json!({ "onFailure": "Rollback", "failAfter": "5s" }));
    let statuses = stage.coordination_statuses("llm");
    stage.create(object).await;
    statuses.until("it serves", |status| status.ready().starts_with("True")).await;
    let first = revisions_of_groups(&stage);
    let is_new = |pod: &Pod| first.get(&pod.role).is_some_and(|first| pod.labels[LWS_REVISION] != *first);
    let annotate = async |value: Value| {
        let template = json!({ "metadata": { "annotations": { NOT_READY: value } } });
        let patch = Patch::Merge(json!({ "spec": { "leaderWorkerTemplate": { "workerTemplate": template } } }));
        for role in ["prefill", "decode"] {
            leader_worker_sets(&stage).patch(&group.set_name(role), &PatchParams::default(), &patch).await.unwrap();
        }
    };
    annotate(json!("")).await;
    stage.pods.until("a group is new", |now| now.count_all(is_new) > 0).await;
    statuses.until("it is back", |status| is_back(status, "ReplicasNotReady")).await;
    let all_old = |now: &View| now.count_all(|pod| !is_new(pod) && pod.is_ready()) == 12;
    stage.pods.until("all are back", all_old).await;
    // An edit that is taken back ends the rollout.
    annotate(Value::Null).await;
    let over = |status: &Status| status.ready().starts_with("True All") && status.condition("RolledBack").is_empty();
    statuses.until("it is over", over).await;
    stage.pods.now(|now| assert!(all_old(now), "{now}"));
}

mod tier2 {
    use super::*;

    /// A check judges the canary; the test sets its condition to False during the pause.
    #[tokio::test]
    async fn a_canary_goes_back_by_itself_when_its_object_says_that_it_failed() {
        let object = json!({ "apiVersion": "v1", "kind": "Pod", "name": "check", "condition": "example.com/Passed" });
        let steps = json!([{ "prefill": "50%" }, { "pause": {} }, { "prefill": "100%", "decode": "100%" }]);
        let bounds =
            json!({ "onFailure": "Rollback", "failAfter": "3s", "readyWhen": { "object": object }, "steps": steps });
        let flags = [&FLAGS[..], &[("ready-kinds", "Pod=pods.v1")]].concat();
        let duo = Duo::serve("rollback-canary", 4, 2, bounds, &flags).await.ready().await;
        let gates = json!([{ "name": "example.com/never-runs" }]);
        let containers = json!([{ "name": "main", "image": "registry.invalid/check" }]);
        let spec = json!({ "schedulingGates": gates, "containers": containers });
        duo.stage.create(crate::common::group::object("v1", "Pod", "check").spec(spec)).await;
        let says = async |passed: &str| {
            let time = "2026-01-01T00:00:00Z";
            let condition = json!({ "type": "example.com/Passed", "status": passed, "lastTransitionTime": time });
            let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
            duo.stage.api::<ApiPod>().patch_status("check", &PatchParams::default(), &patch).await.unwrap();
        };
        says("True").await;
        duo.set_images("registry.invalid/x:2");
        let paused = |status: &Status| status.condition("RolloutPaused").starts_with("True UntilResumed");
        duo.statuses.until("it pauses", paused).await;
        duo.until_new_ordinals("prefill", 2..4).await;
        says("False").await;
        let status = duo.statuses.until("it is back", |status| is_back(status, "ObjectNotReady")).await;
        let told = r#"condition example.com/Passed of Pod "check" is not True"#;
        assert!(status.condition("RolledBack").contains(told), "{status}");
        stays_back(&duo).await;
    }

    /// Without the right to delete pods the rollout stands as it is, and that is said.
    #[tokio::test]
    async fn where_rolegate_may_not_delete_pods_a_rollout_that_failed_stays_as_it_is() {
        let bounds = json!({ "onFailure": "Rollback", "failAfter": "2s" });
        let duo = Duo::serve("rollback-not-allowed", 4, 2, bounds, &[("settle", "2s")]).await.ready().await;
        duo.edit_held_back("prefill", "registry.invalid/broken:2");
        let told = |status: &Status| status.condition("RolledBack").starts_with("False NoWayBack");
        let status = duo.statuses.until("it says why", told).await;
        assert!(status.condition("RolledBack").contains("rolegate runs without `--allow recovery`"), "{status}");
        duo.stage.until_event("RolloutFailed", &["--allow recovery"]).await;
        duo.until_new_ordinals("prefill", 3..4).await;
    }
}
