//! KEP-75, podGroupPolicy: each batch has its PodGroup before its pods may go.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use crate::common::pods::{Pod, Step};
use crate::common::stage::typed;
use crate::common::{Group, PATIENT, Stage, always, eventually, invariants};
use crate::pods::support::{LAYERS, coordinated, stage};

const LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// A stand-in for the definition of the scheduler plugins.
fn define(stage: &Stage) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v1alpha1", "served": true, "storage": true, "schema": schema });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "podgroups.scheduling.x-k8s.io" },
        "spec": {
            "group": "scheduling.x-k8s.io",
            "scope": "Namespaced",
            "names": { "kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList" },
            "versions": [version],
        },
    });
    stage.plane.must(&["create", "-f", "-"], &definition.to_string());
}

fn pod_groups(stage: &Stage) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.x-k8s.io", "v1alpha1", "PodGroup"));
    Api::namespaced_with(stage.client.clone(), &stage.namespace, &kind)
}

async fn members(stage: &Stage, name: &str, wanted: u64) -> DynamicObject {
    eventually(PATIENT, "a PodGroup with so many members", async || {
        let found = pod_groups(stage).get(name).await.map_err(|error| error.to_string())?;
        if found.data["spec"]["minMember"] == wanted { Ok(found) } else { Err(found.data.to_string()) }
    })
    .await
}

#[tokio::test]
async fn a_batch_goes_when_its_pod_group_is_there() {
    let stage = stage("pod-groups").await;
    let _rolegate = stage.launch().start().await;
    let constraint = json!({
        "clusterTopologyName": LAYERS, "topologyLayerName": "host", "constraintMode": "hard",
        "podGroupPolicy": { "kubeScheduling": { "scheduleTimeoutSeconds": 60 } },
    });
    let deploy = json!({ "roleDeployStep": { "prefill": 2, "decode": 1 }, "deployTopologyConstraint": constraint });
    let coordination = json!({ "name": "pd", "strategy": { "rollingDeploy": deploy } });
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    let created =
        stage.groups().create(&PostParams::default(), &typed(coordinated(&group, &coordination))).await.unwrap();
    stage.create_sets(&group).await;

    // Its kind is not defined: a pod that came before its PodGroup would be scheduled without it.
    stage.pods.until("all pods", |now| now.count_all(Pod::is_held) == 6).await;
    always(Duration::from_millis(1500), "all are held", async || {
        stage.pods.now(|now| if now.count_all(Pod::is_held) == 6 { Ok(()) } else { Err(now.to_string()) })
    })
    .await;
    define(&stage);
    stage.pods.until("the first batch is released", |now| now.count_all(Pod::is_released) == 3).await;

    // No node is there yet: it is as it was made.
    let first = members(&stage, "llm-pd-0", 3).await;
    assert_eq!(first.data["spec"]["scheduleTimeoutSeconds"], 60);
    let owners = serde_json::to_value(&first.metadata.owner_references).unwrap();
    let owner = |field: &str| owners[0][field].as_str().map(str::to_owned);
    assert_eq!((owner("kind"), owner("uid")), (Some("RoleBasedGroup".to_owned()), created.metadata.uid));
    let version: u64 = first.metadata.resource_version.unwrap().parse().unwrap();
    for event in stage.pods.events().into_iter().filter(|event| event.step == Step::Released) {
        assert!(event.pod.labels[LABEL] == "llm-pd-0" && event.pod.version > version, "{event:?}");
    }
    assert!(pod_groups(&stage).get_opt("llm-pd-1").await.unwrap().is_none());

    // Once it was scheduled its pods may be replaced one by one.
    stage.add_node("a", 3).await;
    members(&stage, "llm-pd-0", 1).await;
    stage.pods.until("the second batch is released", |now| now.count_all(Pod::is_released) == 6).await;
    let second = members(&stage, "llm-pd-1", 3).await;
    let version: u64 = second.metadata.resource_version.unwrap().parse().unwrap();
    let of_second = |pod: &Pod| pod.labels[LABEL] == "llm-pd-1";
    let events = stage.pods.events();
    let released: Vec<_> =
        events.iter().filter(|event| event.step == Step::Released && of_second(&event.pod)).collect();
    assert!(released.len() == 3 && released.iter().all(|event| event.pod.version > version), "{released:?}");
    stage.add_node("b", 3).await;
    members(&stage, "llm-pd-1", 1).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 6);

    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    eventually(PATIENT, "PodGroups go with their group", async || {
        let left = pod_groups(&stage).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        if left.items.is_empty() { Ok(()) } else { Err(json!(left.items.len()).to_string()) }
    })
    .await;
}
