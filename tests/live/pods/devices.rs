//! Batches go where devices of DRA are left for all of their pods, on the real scheduler: nodes have none in their allocatable,
//! and ResourceSlices offer some.

use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::common::prelude::*;
use crate::pods::room::{group, one_step, only, racks};
use crate::pods::support::{RACK, add_rack, deploy, stage, stored, without_a_right};

const API: &str = "resource.k8s.io/v1";
const DRIVER: &str = "gpu.example.com";
const EIGHT: usize = 8;

fn create(stage: &Stage, object: &Value) {
    stage.plane.must(&["create", "-n", &stage.namespace, "-f", "-"], &object.to_string());
}

fn class(stage: &Stage) -> String {
    format!("{}-gpu", stage.namespace)
}

fn resource(stage: &Stage) -> String {
    format!("{}.example.com/gpu", stage.namespace)
}

/// A stage with these racks of two nodes with eight devices each, a class for them, and a template for four of them.
async fn with_devices(namespace: &str, all: &[&str]) -> Stage {
    let stage = stage(namespace).await;
    let ours = format!("device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].stage == '{namespace}'");
    let spec = json!({ "selectors": [{ "cel": { "expression": ours } }], "extendedResourceName": resource(&stage) });
    create(&stage, &object(API, "DeviceClass", &class(&stage)).spec(spec));
    let four = json!({ "requests": [{ "name": "gpus", "exactly": { "deviceClassName": class(&stage), "count": 4 } }] });
    create(&stage, &object(API, "ResourceClaimTemplate", "four").spec(json!({ "spec": { "devices": four } })));
    for rack in all {
        for host in ["a", "b"] {
            slice(&stage, &format!("{namespace}-{rack}-{host}"));
        }
        add_rack(&stage, rack, &["a", "b"], 20).await;
    }
    stage
}

fn slice(stage: &Stage, node: &str) {
    let stage_name = json!({ "stage": { "string": stage.namespace } });
    let device = |at: usize| json!({ "name": format!("gpu-{at}"), "attributes": stage_name });
    create(
        stage,
        &object(API, "ResourceSlice", node).spec(json!({
            "driver": DRIVER, "nodeName": node, "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
            "devices": (0..EIGHT).map(device).collect::<Vec<_>>(),
        })),
    );
}

/// A group whose pods ask for four devices each, by a claim.
fn with_claims(name: &str, prefill: u32, decode: u32) -> Group {
    let container =
        json!({ "name": "main", "image": "registry.invalid/x:1", "resources": { "claims": [{ "name": "gpus" }] } });
    let claims = json!([{ "name": "gpus", "resourceClaimTemplateName": "four" }]);
    group(name, prefill, decode).template(&json!({ "spec": { "resourceClaims": claims, "containers": [container] } }))
}

/// A claim that has all devices of a node, and is used by nobody.
async fn take(stage: &Stage, name: &str, node: &str) {
    let request = json!({ "name": "gpus", "exactly": { "deviceClassName": class(stage), "count": EIGHT } });
    create(stage, &object(API, "ResourceClaim", name).spec(json!({ "devices": { "requests": [request] } })));
    let device =
        |at: usize| json!({ "request": "gpus", "driver": DRIVER, "pool": node, "device": format!("gpu-{at}") });
    let here = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let allocation = json!({
        "devices": { "results": (0..EIGHT).map(device).collect::<Vec<_>>() },
        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [here] }] },
    });
    stage.patch_status::<ResourceClaim>(name, &json!({ "status": { "allocation": allocation } })).await;
}

async fn until_all_run(stage: &Stage, group: &str, pods: usize) {
    let runs = |pod: &Pod| pod.name.starts_with(group) && pod.is_ready();
    stage.pods.until("it runs", |now| now.count_all(runs) == pods).await;
}

/// The scheduler would give each of the two a part of both racks, and none of them could ever begin.
#[tokio::test]
async fn two_batches_that_need_the_devices_of_a_whole_rack_have_one_each() {
    let (stage, _rolegate) = with_devices("devices-deadlock", &["r1", "r2"]).await.serve().await;
    let asks = json!({ "limits": { resource(&stage): "4" } });
    let container = json!({ "name": "main", "image": "registry.invalid/x:1", "resources": asks });
    let by_resource = group("two", 2, 2).template(&json!({ "spec": { "containers": [container] } }));
    let (one, two) = (with_claims("one", 2, 2), by_resource);
    let (of_one, of_two) = (one_step(&one), one_step(&two));
    tokio::join!(deploy(&stage, &one, &of_one), deploy(&stage, &two, &of_two));
    until_all_run(&stage, "", 8).await;
    let (of_one, of_two) = stage.pods.now(|now| (racks(&stage, now, "one"), racks(&stage, now, "two")));
    let each = BTreeSet::from([Some("r1".to_owned()), Some("r2".to_owned())]);
    assert!(of_one.len() == 1 && of_two.len() == 1 && &of_one | &of_two == each, "{of_one:?} {of_two:?}");
    for pod in stored(&stage).await {
        let spec = pod.spec.unwrap();
        assert_eq!(spec.node_selector.unwrap().get("kubernetes.io/hostname"), spec.node_name.as_ref(), "it was pinned");
    }
}

/// Where it may not look, it lets the scheduler choose the nodes.
#[tokio::test]
async fn where_devices_may_not_be_read_batches_go_without_a_look_at_them_and_it_is_told() {
    let stage = with_devices("devices-rights", &["r1"]).await;
    let is_of_devices = |rule: &Value| rule["apiGroups"] == json!(["resource.k8s.io"]);
    let rolegate = without_a_right(&stage, "resourceslices.resource.k8s.io", is_of_devices).await;
    let group = with_claims("llm", 2, 2);
    deploy(&stage, &group, &one_step(&group)).await;
    until_all_run(&stage, "llm", 4).await;
    for pod in stored(&stage).await {
        let selector = pod.spec.unwrap().node_selector.unwrap();
        assert_eq!((selector[RACK].as_str(), selector.get("kubernetes.io/hostname")), ("r1", None));
    }
    let told = rolegate.log();
    assert!(told.contains("may not be read: batches go wherever their devices are"), "{told}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_rack_whose_devices_claims_have_taken_is_left_out_until_they_give_them_back() {
        let stage = with_devices("devices-taken", &["0taken", "r1"]).await;
        // What a device plugin would report is as free as ever.
        let all = json!({ resource(&stage): EIGHT.to_string() });
        let status = json!({ "status": { "allocatable": all, "capacity": all } });
        for host in ["a", "b"] {
            stage.patch_node_status(&format!("devices-taken-0taken-{host}"), &status).await;
        }
        take(&stage, "a", "devices-taken-0taken-a").await;
        take(&stage, "b", "devices-taken-0taken-b").await;
        let _rolegate = stage.launch().start().await;
        let first = with_claims("llm", 2, 2);
        deploy(&stage, &first, &one_step(&first)).await;
        until_all_run(&stage, "llm", 4).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r1"), "{now}"));

        let next = with_claims("next", 1, 1);
        let statuses = deploy(&stage, &next, &one_step(&next)).await;
        statuses.until("it waits", |status| status.reason() == "NoRoom").await;
        let told = stage.said(&["fit", "next"]).await;
        assert!(told.contains(&format!("short of 8 {}", class(&stage))), "{told}");
        // Nothing else changes.
        stage.delete::<ResourceClaim>("b").await;
        until_all_run(&stage, "next", 2).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "next"), only("0taken"), "{now}"));

        let last = with_claims("last", 1, 1);
        let statuses = deploy(&stage, &last, &one_step(&last)).await;
        statuses.until("it waits", |status| status.reason() == "NoRoom").await;
        stage.patch_status::<ResourceClaim>("a", &json!({ "status": { "allocation": null } })).await;
        until_all_run(&stage, "last", 2).await;
    }
}
