//! Containment of CapacityBuffers; the real Karpenter takes them in `tests/neighbours`.

use super::stage;
use crate::common::account::account;
use crate::common::control_plane::client_of;
use crate::common::prelude::*;
use crate::policies::cluster::{define, loose_definition};
use kube::api::DynamicObject;

const KIND: (&str, &str, &str, &str, &str) =
    ("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers", "Namespaced");

fn buffers_of(stage: &Stage) -> Api<DynamicObject> {
    stage.objects(KIND.0, KIND.1, KIND.2)
}

fn define_buffers(stage: &Stage) {
    define(&stage.plane, &loose_definition(KIND, &json!({})).to_string());
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
        typed::<DynamicObject>(json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
            "metadata": { "name": name, "ownerReferences": owners }, "spec": { "replicas": 3 },
        }))
    };
    let owner = |kind: &str, version: &str| json!([{ "apiVersion": version, "kind": kind, "name": "pd", "uid": "u", "controller": true }]);
    let of_group = owner("RoleCoordination", "rolegate.dev/v1alpha1");
    for owners in [json!([]), owner("StatefulSet", "apps/v1")] {
        eventually(PATIENT, "the policy of creations is in force", async || {
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            match theirs.create(&dry_run, &buffer("own", &owners)).await.map_err(|error| error.to_string()) {
                Err(error) if error.contains("rolegate itself may not create this CapacityBuffer") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    theirs.create(&PostParams::default(), &buffer("of-group", &of_group)).await.unwrap();
    buffers_of(&stage).create(&PostParams::default(), &buffer("of-others", &json!([]))).await.unwrap();
    let more = json!({ "spec": { "replicas": 30 } });
    eventually(PATIENT, "the policy of updates is in force", async || {
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        match theirs.patch("of-group", &dry_run, &Patch::Merge(&more)).await.map_err(|error| error.to_string()) {
            Err(error) if error.contains("rolegate itself may not change spec[replicas]") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let none = json!({ "spec": { "replicas": 0 } });
    theirs.patch("of-group", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    eventually(PATIENT, "the policy of deletions is in force", async || {
        let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
        match theirs.delete("of-others", &dry_run).await.map_err(|error| error.to_string()) {
            Err(error) if error.contains("rolegate itself may not delete this CapacityBuffer") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    theirs.delete("of-group", &DeleteParams::default()).await.unwrap();
}
