//! What a pod says of its place is so at every moment at rest, whoever makes it and whatever became of it; and pods that run
//! without a word of their group count all the same.

use crate::common::prelude::*;

const SEGMENT: &str = "rolegate.dev/segment";
/// A role, its replicas, and how many of them make a segment.
type Role = (&'static str, u32, u32);
const PREFILL: Role = ("prefill", 6, 2);
const DECODE: Role = ("decode", 3, 1);

/// A RoleCoordination over workloads of these kinds.
async fn coordinate(stage: &Stage, kinds: [&str; 2]) -> StatusLog {
    let statuses = stage.coordination_statuses("pd");
    let both = Group::new("pd").role("prefill", 6, 2).role("decode", 3, 1).bare_names();
    let mut coordination = both.coordination();
    for (at, kind) in kinds.into_iter().enumerate() {
        coordination["spec"]["roles"][at]["workloadRef"]["kind"] = json!(kind);
    }
    stage.create(coordination).await;
    statuses
}

/// A workload as its user writes it, selected by `app`; with the labels of its group or without.
fn workload(stage: &Stage, (name, replicas, size): Role, labelled: bool) -> Value {
    let group = Group::new("pd").role(name, replicas, size).bare_names();
    let mut set = group.set(group.find(name), &stage.namespace);
    set["spec"]["selector"] = json!({ "matchLabels": { "app": name } });
    let labels = &mut set["spec"]["template"]["metadata"]["labels"];
    if !labelled {
        *labels = json!({});
    }
    labels["app"] = json!(name);
    set
}

async fn create_set(stage: &Stage, role: Role, labelled: bool) {
    stage.create(workload(stage, role, labelled)).await;
}

async fn create_deployment(stage: &Stage, role: Role) {
    let mut object = workload(stage, role, true);
    object["kind"] = json!("Deployment");
    for field in ["podManagementPolicy", "serviceName"] {
        object["spec"].as_object_mut().unwrap().remove(field);
    }
    stage.create(object).await;
}

/// How many pods of a workload say each segment.
fn labelled(now: &View, app: &str) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for pod in now.all().filter(|pod| pod.labels.get("app").is_some_and(|name| name == app)) {
        *all.entry(pod.labels.get(SEGMENT).cloned().unwrap_or_default()).or_default() += 1;
    }
    all
}

/// Each segment of a role is said by as many pods as it has.
fn is_labelled(now: &View, (name, replicas, size): Role) -> bool {
    let expected: BTreeMap<_, _> = (0..replicas / size).map(|segment| (segment.to_string(), size as usize)).collect();
    labelled(now, name) == expected && now.all().all(|pod| pod.is_ready() || !pod.labels.contains_key(SEGMENT))
}

async fn until_labelled(stage: &Stage, role: Role) {
    stage.pods.until(&format!("the pods of {} say their segments", role.0), |now| is_labelled(now, role)).await;
}

async fn all_ready(statuses: &StatusLog) {
    let said = "True AllSegmentsReady: 3/3 segments ready (9/9 pods)";
    statuses.until("all segments", |status| status.minimum() == said).await;
}

#[tokio::test]
async fn pods_of_a_deployment_say_their_segments_through_rollouts_deletions_and_quarantine() {
    let (stage, _rolegate) = Stage::new("numbers-deployment").await.with_room(20).await.serve().await;
    let statuses = coordinate(&stage, ["Deployment", "StatefulSet"]).await;
    create_deployment(&stage, PREFILL).await;
    create_set(&stage, DECODE, true).await;
    all_ready(&statuses).await;
    until_labelled(&stage, PREFILL).await;
    for restart in ["1", "2"] {
        let old: Vec<_> = stage.pods.now(|now| now.of("prefill").map(|pod| pod.uid.clone()).collect());
        let annotations = json!({ "kubectl.kubernetes.io/restartedAt": restart });
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
        stage.patch::<Deployment>("prefill", &patch).await;
        let is_new = |now: &View| now.of("prefill").all(|pod| !old.contains(&pod.uid)) && is_labelled(now, PREFILL);
        stage.pods.until("all are new, and say their segments", is_new).await;
    }
    let name_of = |segment: &str| {
        stage.pods.now(|now| now.of("prefill").find(|pod| pod.labels[SEGMENT] == segment).unwrap().name.clone())
    };
    let deleted = name_of("1");
    stage.delete::<ApiPod>(&deleted).await;
    stage.pods.until("it is gone", |now| now.named(&deleted).is_none()).await;
    until_labelled(&stage, PREFILL).await;
    // Its controller lets it go, and makes another.
    let taken_out = name_of("2");
    stage.patch::<ApiPod>(&taken_out, &json!({ "metadata": { "labels": { "app": null } } })).await;
    until_labelled(&stage, PREFILL).await;
    stage.pods.until("it says none", |now| !now.named(&taken_out).unwrap().labels.contains_key(SEGMENT)).await;
    let said = format!("pod {taken_out:?} is not counted");
    statuses.until("it is said", |status| status.progressing().contains(&said)).await;
    all_ready(&statuses).await;
}

#[tokio::test]
async fn a_copy_of_a_pod_takes_no_replicas_place() {
    let (stage, rolegate) = Stage::new("numbers-copy").await.with_room(20).await.serve().await;
    let statuses = coordinate(&stage, ["StatefulSet", "StatefulSet"]).await;
    create_set(&stage, PREFILL, true).await;
    create_set(&stage, DECODE, true).await;
    all_ready(&statuses).await;
    let original = stage.api::<ApiPod>().get("prefill-1").await.unwrap();
    let mut copy = workload(&stage, PREFILL, true)["spec"]["template"].clone();
    copy["metadata"]["name"] = json!("debug");
    copy["metadata"]["labels"] = json!(original.metadata.labels);
    let made = stage.post(CORE, "pods", &copy).await;
    assert_eq!(made.code, 201, "{made:?}");
    rolegate.until_metric(r#"rolegate_held_pods{reason="NotAReplica"}"#, 1).await;
    stage.until_said(&["explain", "pod", "debug"], "StatefulSet numbers-copy/prefill").await;
    let says_none = |now: &View| now.named("debug").is_some_and(|pod| !pod.labels.contains_key(SEGMENT));
    stage.pods.until("the copy says no segment", says_none).await;
    stage.replace_pod("prefill-1", Pod::is_ready).await;
    stage.pods.now(|now| assert!(now.named("debug").is_some_and(Pod::is_held), "{now}"));
    // Without a label nobody knows whose it is.
    let labels: Value = original.metadata.labels.unwrap().into_keys().map(|key| (key, Value::Null)).collect();
    stage.patch::<ApiPod>("debug", &json!({ "metadata": { "labels": labels } })).await;
    stage.until_said(&["doctor"], "pod numbers-copy/debug has the gate of rolegate and names no group").await;
    assert!(stage.said(&["release", "pod", "debug", "--yes"]).await.contains("debug"));
    stage.pods.until("the advice works", |now| now.named("debug").is_some_and(Pod::is_released)).await;
}

#[tokio::test]
async fn a_deployment_whose_own_deadline_ends_while_its_pods_are_held_is_told() {
    let (stage, _rolegate) = Stage::new("numbers-deadline").await.serve().await;
    let statuses = coordinate(&stage, ["Deployment", "StatefulSet"]).await;
    create_deployment(&stage, PREFILL).await;
    create_set(&stage, DECODE, true).await;
    let soon = json!({ "spec": { "progressDeadlineSeconds": 1 } });
    stage.patch::<Deployment>("prefill", &soon).await;
    let said = "prefill says that its own progress deadline is over: it has 4 held pods";
    statuses.until("it is told", |status| status.condition("Progressing").contains(said)).await;
    stage.add_node("all", 20).await;
    all_ready(&statuses).await;
    statuses.until("it is over", |status| !status.condition("Progressing").contains("deadline")).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn pods_say_their_segments_again_when_their_size_is_edited() {
        let (stage, _rolegate) = Stage::new("numbers-size").await.with_room(20).await.serve().await;
        let statuses = coordinate(&stage, ["StatefulSet", "Deployment"]).await;
        create_set(&stage, PREFILL, true).await;
        create_deployment(&stage, DECODE).await;
        all_ready(&statuses).await;
        for sizes in [(6, 3), (3, 1), (2, 1)] {
            let sizes_now = json!({ "prefill": sizes.0, "decode": sizes.1 });
            let coordination =
                json!([{ "name": "segments", "strategy": { "segmentPlacement": { "segmentSize": sizes_now } } }]);
            let patch = Patch::Merge(json!({ "spec": { "coordination": coordination } }));
            stage.coordinations().patch("pd", &PatchParams::default(), &patch).await.unwrap();
            until_labelled(&stage, ("prefill", 6, sizes.0)).await;
            until_labelled(&stage, ("decode", 3, sizes.1)).await;
        }
    }

    #[tokio::test]
    async fn running_workloads_are_adopted_by_the_labels_of_their_templates() {
        let (stage, _rolegate) = Stage::new("numbers-adoption").await.with_room(20).await.serve().await;
        create_set(&stage, PREFILL, false).await;
        create_set(&stage, DECODE, false).await;
        stage.pods.until("they run", |now| now.count_all(Pod::is_ready) == 9).await;
        let statuses = coordinate(&stage, ["StatefulSet", "StatefulSet"]).await;
        // What runs counts, and says its segment, though it does not name the group.
        all_ready(&statuses).await;
        until_labelled(&stage, PREFILL).await;
        for (name, ..) in [PREFILL, DECODE] {
            let labels = json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": name });
            let patch = json!({ "spec": { "template": { "metadata": { "labels": labels } } } });
            stage.patch::<StatefulSet>(name, &patch).await;
        }
        let is_adopted = |now: &View| {
            let names_group = |pod: &Pod| pod.labels.get("rolegate.dev/group").is_some_and(|group| group == "pd");
            now.count_all(|pod| pod.is_ready() && names_group(pod)) == 9
        };
        stage.pods.until("the rollouts are over", is_adopted).await;
        for role in [PREFILL, DECODE] {
            until_labelled(&stage, role).await;
        }
        all_ready(&statuses).await;
    }

    #[tokio::test]
    async fn a_wrong_role_in_a_template_is_corrected_like_any_other_edit() {
        let (stage, _rolegate) = Stage::new("numbers-typo").await.with_room(20).await.serve().await;
        let statuses = coordinate(&stage, ["StatefulSet", "StatefulSet"]).await;
        let mut set = workload(&stage, PREFILL, true);
        set["spec"]["template"]["metadata"]["labels"]["rolegate.dev/role"] = json!("prefil");
        stage.create(set).await;
        create_set(&stage, DECODE, true).await;
        all_ready(&statuses).await;
        let labels = json!({ "rolegate.dev/role": "prefill" });
        let patch = json!({ "spec": { "template": { "metadata": { "labels": labels } } } });
        stage.patch::<StatefulSet>("prefill", &patch).await;
        stage.pods.until("all say the right one", |now| now.count("prefill", Pod::is_ready) == 6).await;
        until_labelled(&stage, PREFILL).await;
        all_ready(&statuses).await;
    }
}
