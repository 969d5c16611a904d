//! Another version takes over: what the older one has held, released and written down stands.

use crate::common::prelude::*;

/// Versions whose leavings are kept, by commit: files in `tests/fixtures/left-behind`.
pub const VERSIONS: &[&str] = &["6893f70"];

fn file(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/left-behind/{version}.json"))
}

/// Where a group is carried: in the RoleBasedGroup itself, and beside workloads of one's own.
pub fn carriers() -> [(&'static str, &'static str); 2] {
    [("workloads.x-k8s.io", "RoleBasedGroup"), ("rolegate.dev", "RoleCoordination")]
}

pub fn carrier_api(stage: &Stage, (group, kind): (&str, &str)) -> Api<DynamicObject> {
    stage.objects(group, "v1alpha1", kind)
}

/// The same segments as [`Group::three_segments`], in a RoleCoordination over two StatefulSets.
fn coordination() -> Value {
    Group::new("own").role("prefill", 12, 4).role("decode", 6, 2).coordination()
}

/// An object as one would write it: without what the API server adds.
fn written(object: &impl serde::Serialize) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "ownerReferences"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    object
}

/// Runs an older build until one segment of each group serves and the next is released, and keeps what is then there:
/// `ROLEGATE_OLD=BINARY ROLEGATE_OLD_NAME=COMMIT cargo test --test live record -- --ignored`.
#[tokio::test]
#[ignore = "records what a version leaves behind; needs that version's binary"]
async fn record() {
    let (program, version) = (std::env::var("ROLEGATE_OLD").unwrap(), std::env::var("ROLEGATE_OLD_NAME").unwrap());
    let plane = ControlPlane::own_with_groups().await;
    let stage = Stage::on(plane, "upgrade").await.with_room(36).await;
    let old = stage.launch().program(program).start().await;
    stage.deploy(&Group::three_segments()).await;
    stage.create(coordination()).await;
    let mut own = Group::three_segments();
    "own".clone_into(&mut own.name);
    stage.create_sets(&own).await;
    stage.pods.until("a segment each", |now| now.count_all(Pod::is_released) == 12).await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("another each", |now| now.count_all(Pod::is_scheduled) == 24).await;
    old.terminate().await;
    let list = ListParams::default();
    let mut left = BTreeMap::new();
    for carrier in carriers() {
        let objects = carrier_api(&stage, carrier).list(&list).await.unwrap().items;
        left.insert(carrier.1, objects.iter().map(written).collect::<Vec<_>>());
    }
    left.insert("StatefulSet", stage.list::<StatefulSet>().await.iter().map(written).collect());
    left.insert("Pod", stage.list::<ApiPod>().await.iter().map(written).collect());
    std::fs::create_dir_all(file(&version).parent().unwrap()).unwrap();
    std::fs::write(file(&version), serde_json::to_string_pretty(&left).unwrap() + "\n").unwrap();
}

/// Puts back what a version has left: pods first, which their StatefulSets then adopt.
pub async fn replay(stage: &Stage, left: &Value) {
    let items = |kind: &str| left[kind].as_array().unwrap().clone();
    for carrier in carriers() {
        let api = carrier_api(stage, carrier);
        for object in items(carrier.1) {
            let name = object["metadata"]["name"].as_str().unwrap();
            stage.create(object.clone()).await;
            let status = Patch::Merge(json!({ "status": object["status"] }));
            api.patch_status(name, &PatchParams::default(), &status).await.unwrap();
        }
    }
    for mut pod in items("Pod") {
        pod["spec"].as_object_mut().unwrap().remove("nodeName");
        stage.create(pod).await;
    }
    stage.pods.until("what had run runs", |now| now.count_all(Pod::is_scheduled) == 24).await;
    for set in items("StatefulSet") {
        stage.create(set).await;
    }
    let owned = async || {
        let pods = stage.list::<ApiPod>().await;
        (pods.len(), pods.iter().filter(|pod| pod.metadata.owner_references.is_some()).count())
    };
    until_is("all pods adopted", owned, (36, 36)).await;
}

#[tokio::test]
async fn what_an_older_version_has_left_is_taken_over() {
    for version in VERSIONS {
        let stage = stage().await;
        replay(&stage, &left(version)).await;
        goes_on(&stage).await;
    }
}

/// What a version has left behind.
pub fn left(version: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(version)).unwrap()).unwrap()
}

/// Where it is put back: the names of nodes, and of the namespace, are in the objects.
pub async fn stage() -> Stage {
    Stage::on(ControlPlane::own_with_groups().await, "upgrade").await.with_room(36).await
}

/// This version takes over what was put back: nothing moves before its turn, nothing is held again, and all come up.
pub async fn goes_on(stage: &Stage) {
    let names = |now: &View| now.all().filter(|pod| pod.is_released()).map(|pod| pod.name.clone()).collect::<Vec<_>>();
    let before = stage.pods.now(names);
    let new = stage.launch().start().await;
    new.until_metric("rolegate_leader", 1).await;
    new.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, 12).await;
    // Two segments each are released, the second is not ready: nothing may move.
    stays(Duration::from_secs(1), "what was held is held", async || stage.pods.now(names), before).await;
    for carrier in carriers() {
        let object = &carrier_api(stage, carrier).list(&ListParams::default()).await.unwrap().items[0];
        let progress = &object.data["status"]["coordinationState"][0]["progress"];
        assert!(progress["prefill"]["released"] == 8 && progress["decode"]["released"] == 4, "{progress}");
    }
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("the last segments", |now| now.count_all(Pod::is_scheduled) == 36).await;
    stage.let_ready(|_| true).await;
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 36).await;
    invariants::nobody_was_held_again(&stage.pods);
    let uids: BTreeSet<_> = stage.pods.events().into_iter().map(|event| event.pod.uid).collect();
    assert_eq!(uids.len(), 36);
}

#[tokio::test]
async fn replicas_with_other_flags_take_over_in_the_middle() {
    let stage = Stage::new("other-flags").await.with_room(18).await;
    let (service, launch) = stage.behind_a_service().await;
    let old = launch.start_unready().await;
    service.lead_to(&[old.webhook]);
    old.until_metric("rolegate_leader", 1).await;
    old.until_ready().await;
    let group = Group::three_segments();
    let statuses = stage.statuses(&group);
    let probe = group.pod("prefill", "probe", &stage.namespace);
    let answer = async || stage.post(CORE, "pods?dryRun=All", &probe).await;
    until_found("a pod that is held", answer, |answer| answer.body["spec"]["schedulingGates"].is_array()).await;
    stage.deploy(&group).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_scheduled) == 6).await;
    // As in a rolling update of the Deployment: the new one is there before the old one goes.
    let new = launch.flag("missing-group", "hold").flag("progress-deadline", "1m").flag("vanished-grace", "5s");
    let new = new.flag("lease-duration", "5s").flag("discovery", "off").switch("strict").start_unready().await;
    new.until_ready().await;
    service.lead_to(&[new.webhook, old.webhook]);
    old.terminate().await;
    new.until_metric("rolegate_leader", 1).await;
    for segments in 1..=3 {
        stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) == 6 * segments).await;
        stage.let_ready(Pod::is_released).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 18/18 pods ready").await;
    invariants::all_born_held(&stage.pods);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
    invariants::nobody_was_held_again(&stage.pods);
}
