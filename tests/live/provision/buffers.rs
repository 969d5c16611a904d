//! CapacityBuffers, as for Karpenter; nodes are made by the test.

use super::{RACK, Scene, launch, racks, stage};
use crate::common::account::account;
use crate::common::control_plane::client_of;
use crate::common::prelude::*;
use crate::policies::cluster::{Answer, Defined, define, loose_definition, refused};

const KIND: Defined<'_> = ("autoscaling.x-k8s.io", &["v1beta1"], "CapacityBuffer", "capacitybuffers", "Namespaced");

fn buffers_of(stage: &Stage) -> Api<DynamicObject> {
    stage.objects(KIND.0, KIND.1[0], KIND.2)
}

fn define_buffers(stage: &Stage) {
    define(&stage.plane, &loose_definition(KIND, &json!({})).to_string());
}

/// Returns the replicas of each buffer that is there, by name.
async fn replicas(buffers: &Api<DynamicObject>) -> BTreeMap<String, u64> {
    let all = buffers.list(&ListParams::default()).await.unwrap().items;
    let of = |buffer: DynamicObject| Some((buffer.metadata.name?, buffer.data["spec"]["replicas"].as_u64()?));
    all.into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn buffers_ask_for_each_role_and_are_emptied_before_they_go() {
    let stage = stage("provision-buffers").await;
    define_buffers(&stage);
    let _rolegate = launch(&stage).start().await;
    let scene = Scene::new(stage, 1, racks(&[]), &json!({ "by": "CapacityBuffer" })).await;
    let buffers = buffers_of(&scene.stage);
    let both = until_both(&scene).await;
    let request = both.keys().next().unwrap().strip_suffix("-decode").unwrap();
    assert!(request.starts_with("pd-segments-0-1-"), "{request}");
    assert_eq!(both, BTreeMap::from([(format!("{request}-prefill"), 10), (format!("{request}-decode"), 5)]));
    let templates = scene.stage.api::<k8s_openapi::api::core::v1::PodTemplate>();
    for name in both.keys() {
        let buffer = buffers.get(name).await.unwrap();
        assert_eq!(buffer.data["spec"]["podTemplateRef"]["name"], json!(name));
        let template = serde_json::to_value(templates.get(name).await.unwrap()).unwrap();
        let affinity = &template["template"]["spec"]["affinity"]["podAffinity"];
        let own = json!({ "matchLabels": { "rolegate.dev/request": request } });
        let terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array().unwrap();
        assert!(terms.iter().any(|term| term["labelSelector"] == own && term["topologyKey"] == RACK), "{terms:?}");
        // Karpenter tells the replicas that it has seen.
        let seen = json!({ "status": { "replicas": 1 } });
        buffers.patch(name, &PatchParams::default(), &Patch::Merge(&seen)).await.unwrap();
    }
    // All but the last node: nothing goes.
    for number in 0..2 {
        add_node(&scene, number).await;
    }
    scene.stage.pods.always(Duration::from_secs(2), "all are held", |now| now.count_all(Pod::is_held) == 15).await;
    add_node(&scene, 2).await;
    scene.stage.pods.until("they go", |now| now.count_all(Pod::is_released) == 15).await;
    let are_empty = |found: &BTreeMap<_, u64>| found.values().copied().eq([0, 0]);
    until_found("the buffers are empty", async || replicas(&buffers).await, are_empty).await;
    for name in both.keys() {
        let seen = json!({ "status": { "replicas": 0 } });
        // It may be gone by now: rolegate does not wait for ever.
        let _ = buffers.patch(name, &PatchParams::default(), &Patch::Merge(&seen)).await;
    }
    until_found("the buffers are gone", async || replicas(&buffers).await, BTreeMap::is_empty).await;
    scene.until_met().await;
    scene.none_went_in_part();
}

/// Waits for the buffers of both roles.
async fn until_both(scene: &Scene) -> BTreeMap<String, u64> {
    let buffers = buffers_of(&scene.stage);
    until_found("a buffer for each role", async || replicas(&buffers).await, |found| found.len() == 2).await
}

async fn add_node(scene: &Scene, number: u32) {
    // Not one of the racks from which the stand-in for cluster-autoscaler takes empty nodes.
    let rack = json!({ (RACK): format!("buffered-in-{}", scene.stage.namespace) });
    scene.stage.add_node_with(&format!("buffered-{number}"), 5, rack).await;
}

/// Whoever has the token asks for no nodes but those of groups, and makes no request larger.
#[tokio::test]
async fn a_stolen_token_asks_for_no_nodes() {
    let stage = stage("provision-thief").await;
    define_buffers(&stage);
    let thief = client_of(&account(&stage.plane, &stage.client, "asking", &["--allow", "provision"]).await).await;
    let kind = rolegate::api::provisioning::CAPACITY_BUFFER;
    let theirs = crate::policies::cluster::api_of(&thief, kind, &stage.namespace);
    let buffer = |name: &str, owners: &Value| {
        let spec = json!({ "replicas": 3 });
        let mut buffer = object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", name).spec(spec);
        buffer["metadata"]["ownerReferences"] = owners.clone();
        typed::<DynamicObject>(buffer)
    };
    // One that is there: the garbage collector deletes what belongs to nobody.
    let group = stage.create(Group::new("pd").role("prefill", 1, 1).role("decode", 1, 1).object()).await;
    let uid = group.metadata.uid.unwrap();
    let owner = |kind: &str, version: &str| json!([owner(version, kind, "pd", &uid)]);
    let of_group = owner("RoleCoordination", "rolegate.dev/v1alpha1");
    for owners in [json!([]), owner("StatefulSet", "apps/v1")] {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let create = async || Answer::of(theirs.create(&dry_run, &buffer("own", &owners)).await);
        until_is("the policy of creations is in force", create, refused("create this CapacityBuffer")).await;
    }
    theirs.create(&PostParams::default(), &buffer("of-group", &of_group)).await.unwrap();
    buffers_of(&stage).create(&PostParams::default(), &buffer("of-others", &json!([]))).await.unwrap();
    let more = json!({ "spec": { "replicas": 30 } });
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let update = async || Answer::of(theirs.patch("of-group", &dry_run, &Patch::Merge(&more)).await);
    until_is("the policy of updates is in force", update, refused("change spec[replicas]")).await;
    let none = json!({ "spec": { "replicas": 0 } });
    theirs.patch("of-group", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let delete = async || Answer::of(theirs.delete("of-others", &dry_run).await);
    until_is("the policy of deletions is in force", delete, refused("delete this CapacityBuffer")).await;
    theirs.delete("of-group", &DeleteParams::default()).await.unwrap();
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_leader_that_dies_between_release_and_binding_leaves_no_buffer_and_the_next_one_makes_none() {
        let stage = stage("provision-buffers-leader").await;
        define_buffers(&stage);
        let first = launch(&stage).start().await;
        let scene = Scene::gated(stage, racks(&[]), &json!({ "by": "CapacityBuffer" })).await;
        until_both(&scene).await;
        for number in 0..3 {
            add_node(&scene, number).await;
        }
        scene.stage.pods.until("the first pod goes", |now| now.count_all(Pod::is_released) > 0).await;
        first.kill().await;
        let _second = launch(&scene.stage).start().await;
        scene.stage.pods.until("all go", |now| now.count_all(Pod::is_released) == 15).await;
        let buffers = buffers_of(&scene.stage);
        until_found("no buffer", async || replicas(&buffers).await, BTreeMap::is_empty).await;
        scene.until_none_is_left().await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_scheduled), 0, "{now}"));
        scene.lift_other_gates().await;
        scene.until_ready(1).await;
        assert_eq!((scene.made("capacitybuffers"), scene.made("podtemplates")), (2, 2));
    }

    #[tokio::test]
    async fn by_a_kind_that_is_not_served_nothing_is_asked_for_and_that_is_said() {
        // No other test defines them here.
        let plane = ControlPlane::own(|| ControlPlane::start_with_groups("kwok", &["--audit"])).await;
        let stage = Stage::on(plane, "provision-unserved").await;
        let _rolegate = launch(&stage).start().await;
        let scene = Scene::new(stage, 1, racks(&[]), &json!({ "by": "CapacityBuffer" })).await;
        let said = "the API server serves no CapacityBuffer";
        scene.statuses.until("it is said", |status| status.0.to_string().contains(said)).await;
        assert_eq!(scene.made("podtemplates"), 0);
    }
}
