//! Back to the version before: what a newer one has written is read as far as it is known, and nothing is held again for the
//! rest.

use k8s_openapi::api::coordination::v1::Lease;

use crate::common::prelude::*;
use crate::lifecycle::upgrade::{VERSIONS, carrier_api, carriers, goes_on, left, replay, stage};

/// Lets every object of the statuses of a definition have fields that it does not know, as a newer definition would.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("type") == Some(&json!("object")) && fields.contains_key("properties") {
                fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
            }
            // And words that are new.
            fields.remove("enum");
            fields.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        _ => {}
    }
}

fn open_statuses(plane: &ControlPlane) {
    for name in ["rolebasedgroups.workloads.x-k8s.io", "rolecoordinations.rolegate.dev"] {
        let text = plane.must(&["get", "crd", name, "-o", "json"], "");
        let mut definition: Value = serde_json::from_str(&text).unwrap();
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            open(&mut version["schema"]["openAPIV3Schema"]["properties"]["status"]);
        }
        plane.must(&["replace", "-f", "-"], &definition.to_string());
    }
}

/// The same objects as a newer version might have left them: with fields, words, labels and annotations that nobody knows yet.
fn of_a_newer_version(mut left: Value) -> Value {
    for (_, kind) in carriers() {
        for object in left[kind].as_array_mut().unwrap() {
            object["metadata"]["annotations"]["rolegate.dev/newer"] = json!("yes");
            let status = &mut object["status"];
            status["newer"] = json!({ "field": [1, 2] });
            status["summary"]["newer"] = json!("figure");
            status["recoveries"] =
                json!([{ "coordination": "segments", "batch": 0, "state": "Hibernating", "newer": 1 }]);
            let state = &mut status["coordinationState"][0];
            state["pace"] = json!("slow");
            state["progress"]["prefill"]["state"] = json!("Napping");
            state["progress"]["prefill"]["paused"] = json!("2030-01-01T00:00:00Z");
            let conditions = status["conditions"].as_array_mut().unwrap();
            let time = conditions[0]["lastTransitionTime"].clone();
            conditions.push(json!({
                "type": "Rested", "status": "True", "reason": "Newer", "message": "it rests", "lastTransitionTime": time,
            }));
        }
    }
    for pod in left["Pod"].as_array_mut().unwrap() {
        pod["metadata"]["labels"]["rolegate.dev/newer"] = json!("yes");
        pod["metadata"]["annotations"]["rolegate.dev/newer"] = json!("yes");
    }
    left
}

#[tokio::test]
async fn what_a_newer_version_has_left_is_taken_over_as_well() {
    for version in VERSIONS {
        let stage = stage().await;
        open_statuses(&stage.plane);
        // Its Lease and its certificates.
        stage.launch().start().await.terminate().await;
        let webhooks = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
        stage.plane.must(&["delete", webhooks, "upgrade"], "");
        let (leases, secrets): (Api<Lease>, Api<Secret>) =
            (Api::namespaced(stage.client.clone(), SYSTEM), Api::namespaced(stage.client.clone(), SYSTEM));
        let newer =
            json!({ "annotations": { "rolegate.dev/newer": "yes" }, "labels": { "rolegate.dev/newer": "yes" } });
        let lease = json!({ "metadata": newer, "spec": { "holderIdentity": "newer-0", "leaseTransitions": 7 } });
        leases.patch("upgrade", &PatchParams::default(), &Patch::Merge(lease)).await.unwrap();
        let secret = json!({ "metadata": newer, "data": { "newer.key": "bmV3ZXI=" } });
        let secret =
            secrets.patch("upgrade-certificates", &PatchParams::default(), &Patch::Merge(secret)).await.unwrap();

        eventually(PATIENT, "a status that keeps what is new", async || {
            let left = of_a_newer_version(left(version));
            let probe = json!({ "status": left[carriers()[1].1][0]["status"] });
            let api = carrier_api(&stage, carriers()[1]);
            let kind = json!({ "apiVersion": "rolegate.dev/v1alpha1", "kind": "RoleCoordination" });
            let mut object = left[carriers()[1].1][0].clone();
            object["apiVersion"] = kind["apiVersion"].clone();
            object["metadata"]["name"] = json!("probe");
            let patch = PatchParams::apply("probe").force();
            let made = api.patch("probe", &patch, &Patch::Apply(&object)).await.map_err(|error| error.to_string())?;
            let stored = api.patch_status("probe", &PatchParams::default(), &Patch::Merge(&probe)).await;
            _ = api.delete(&made.metadata.name.unwrap(), &kube::api::DeleteParams::default()).await;
            let stored = stored.map_err(|error| error.to_string())?;
            let is_kept = stored.data["status"]["coordinationState"][0]["pace"] == "slow";
            if is_kept { Ok(()) } else { Err(stored.data.to_string()) }
        })
        .await;
        replay(&stage, &of_a_newer_version(left(version))).await;
        goes_on(&stage).await;
        for carrier in carriers() {
            let object = &carrier_api(&stage, carrier).list(&ListParams::default()).await.unwrap().items[0];
            let newer = json!({ "field": [1, 2] });
            assert_eq!(object.data["status"]["newer"], newer, "what is not ours stays: {object:?}");
        }
        let now = secrets.get("upgrade-certificates").await.unwrap().data.unwrap();
        for key in ["ca.crt", "tls.crt", "newer.key"] {
            assert_eq!(now.get(key), secret.data.as_ref().unwrap().get(key), "{key}");
        }
        let transitions = leases.get("upgrade").await.unwrap().spec.unwrap().lease_transitions;
        assert!(transitions > Some(7), "{transitions:?}");
    }
}

/// A rollback takes the definitions back as well: fields that the older ones do not have are gone when they are read.
#[tokio::test]
async fn a_rollback_of_the_definitions_loses_no_commit() {
    for version in VERSIONS {
        let stage = stage().await;
        replay(&stage, &left(version)).await;
        // This version goes on first, and writes what it has to say.
        let newer = stage.launch().start().await;
        newer.until_metric("rolegate_leader", 1).await;
        newer.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, 12).await;
        let carrier = carrier_api(&stage, carriers()[0]);
        let status = async || carrier.list(&ListParams::default()).await.unwrap().items[0].data["status"].take();
        until_found("its status", status, |status| status["observedGeneration"].is_number()).await;
        newer.terminate().await;

        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/definitions/{version}"));
        let folder = folder.to_str().unwrap();
        stage.plane.must(&["apply", "--server-side", "--force-conflicts", "-f", folder], "");
        stage.plane.until_defined();
        held_on(&stage).await;
        goes_on(&stage).await;
    }
}

/// While nobody runs, nothing moves.
async fn held_on(stage: &Stage) {
    let look = async || stage.pods.now(|now| now.count_all(Pod::is_held));
    stays(Duration::from_millis(500), "what was held is held", look, 12).await;
}
