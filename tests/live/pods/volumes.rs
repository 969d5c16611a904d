//! Batches go where their volumes are, on the real scheduler.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::common::build::with;
use crate::common::prelude::*;
use crate::pods::room::{group, one_step, only, racks};
use crate::pods::support::{RACK, add_rack, deploy, in_racks, stored, without_a_right};

fn with_claim(name: &str, claim: &str) -> Group {
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    group(name, 1, 1).template(&json!({ "spec": { "volumes": volumes } }))
}

/// A claim of this namespace, bound to a volume of a rack or of a class.
fn claim(stage: &Stage, name: &str, spec: &Value) {
    let asks = json!({ "accessModes": ["ReadWriteMany"], "resources": { "requests": { "storage": "1Gi" } } });
    let here = json!({ "metadata": { "namespace": stage.namespace }, "spec": with(asks, spec) });
    let claim = object("v1", "PersistentVolumeClaim", name).with(&here);
    stage.plane.must(&["create", "-f", "-"], &claim.to_string());
}

fn bound_claim(stage: &Stage, name: &str, rack: &str) {
    let volume_name = format!("{}-{name}", stage.namespace);
    let is_here = json!({ "key": RACK, "operator": "In", "values": [rack] });
    let volume = object("v1", "PersistentVolume", &volume_name).spec(json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteMany"], "local": { "path": "/data" },
        "claimRef": { "namespace": stage.namespace, "name": name },
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [is_here] }] } },
    }));
    stage.plane.must(&["create", "-f", "-"], &volume.to_string());
    claim(stage, name, &json!({ "volumeName": volume_name, "storageClassName": "" }));
    let bound = ["wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s"];
    stage.kubectl(&[&bound[..], &[&format!("pvc/{name}")]].concat());
}

#[tokio::test]
async fn a_batch_goes_to_the_rack_in_which_its_volume_is() {
    let stage = in_racks("room-volumes", &[("0here", &["a", "b"], 3)]).await;
    // The better fit.
    add_rack(&stage, "0there", &["a"], 2).await;
    bound_claim(&stage, "data", "0here");
    let _rolegate = stage.launch().start().await;
    let here = with_claim("llm", "data");
    deploy(&stage, &here, &one_step(&here)).await;
    stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 2).await;
    stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("0here"), "{now}"));
    for pod in stored(&stage).await {
        let selector = pod.spec.unwrap().node_selector.unwrap();
        assert_eq!((selector[RACK].as_str(), selector.get("kubernetes.io/hostname")), ("0here", None));
    }
    // Volumes of this class are made elsewhere only.
    let class = object("storage.k8s.io/v1", "StorageClass", &stage.namespace).with(&json!({
        "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{ "matchLabelExpressions": [{ "key": RACK, "values": ["r9"] }] }],
    }));
    stage.plane.must(&["create", "-f", "-"], &class.to_string());
    claim(&stage, "away", &json!({ "storageClassName": stage.namespace }));
    let away = with_claim("next", "away");
    let statuses = deploy(&stage, &away, &one_step(&away)).await;
    statuses.until("it waits", |status| status.reason() == "NoRoom").await;
    let why = format!("nodes from which claim \"{}/away\" cannot be reached", stage.namespace);
    for command in [["fit", "next"].as_slice(), &["explain", "group", "next"]] {
        let told = stage.said(command).await;
        assert!(told.contains(&why), "{told}");
    }
    add_rack(&stage, "r9", &["a"], 2).await;
    let goes = |pod: &Pod| pod.name.starts_with("next") && pod.is_released();
    stage.pods.until("it goes", |now| now.count_all(goes) == 2).await;
    let pod = stage.api::<ApiPod>().get("next-prefill-0").await.unwrap();
    assert_eq!(pod.spec.unwrap().node_selector.unwrap()[RACK], "r9");
    // The rest is whose class it is: the scheduler has chosen the node.
    let node = format!("{}-r9-a", stage.namespace);
    let claims = stage.api::<PersistentVolumeClaim>();
    let annotations = async || claims.get("away").await.unwrap().metadata.annotations.unwrap_or_default();
    let chosen = async || annotations().await.remove("volume.kubernetes.io/selected-node");
    until_is("the scheduler has a node for the volume", chosen, Some(node)).await;
}

#[tokio::test]
async fn where_volumes_may_not_be_read_they_are_not_looked_at_and_it_is_told() {
    let stage = in_racks("room-volumes-rights", &[("r1", &["a"], 3)]).await;
    bound_claim(&stage, "data", "r1");
    let is_of_classes = |rule: &Value| rule["resources"] == json!(["storageclasses"]);
    let _rolegate = without_a_right(&stage, "storageclasses.storage.k8s.io", is_of_classes).await;
    let group = with_claim("llm", "data");
    let statuses = deploy(&stage, &group, &one_step(&group)).await;
    let why = "step 1 goes without a look at the claims of its pods: storageclasses may not be read";
    stage.until_event("RoomUnknown", &[why]).await;
    let lasts = |status: &Status| {
        status.ready().ends_with("2/2 pods ready")
            && status.condition("RoomUnknown") == format!("True NotJudged: {why}")
    };
    statuses.until("it is told as long as it is so", lasts).await;
}
