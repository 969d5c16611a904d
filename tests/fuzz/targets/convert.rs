//! RoleCoordinations of any shape, from one version into the other and back: what can be converted comes back as it was, and the
//! endpoint answers as the function does.

use rolegate::api::versions::Version;
use rolegate::model::conversion::convert;
use rolegate::model::names::SPELLINGS;
use serde_json::{Value, json};

use super::api_server::{Webhook, block_on};
use super::scenario::{self, Scenario};

/// Objects of one input that are tried.
const MOST: usize = 3;

/// Tries one input: a scenario, or an object.
pub fn run(data: &[u8]) {
    let objects = Scenario::read(data).map(|scenario| scenario.objects).unwrap_or_default();
    let alone = serde_json::from_slice::<Value>(data).ok();
    for object in objects.into_iter().take(MOST).chain(alone) {
        for version in [Version::V1alpha1, Version::V1beta1] {
            if let Some(object) = as_of(version, object.clone()) {
                there_and_back(version, &object);
            }
        }
    }
    block_on(async { _ = Webhook::before(Vec::new()).ask("/convert", data.to_vec()).await });
}

/// The object as one of this version, without our own annotation; with metadata, as whatever an API server stores.
fn as_of(version: Version, mut object: Value) -> Option<Value> {
    let fields = object.as_object_mut()?;
    fields.insert("apiVersion".to_owned(), version.api_version().into());
    fields.insert("kind".to_owned(), "RoleCoordination".into());
    let metadata = fields.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(SPELLINGS);
    }
    let has_any =
        metadata.get("annotations").and_then(Value::as_object).is_some_and(|annotations| !annotations.is_empty());
    if !has_any {
        metadata.remove("annotations");
    }
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut)
        && !spec.contains_key(version.list())
        && let Some(entries) = spec.remove(other(version).list())
    {
        spec.insert(version.list().to_owned(), entries);
    }
    Some(object)
}

fn other(version: Version) -> Version {
    match version {
        Version::V1alpha1 => Version::V1beta1,
        Version::V1beta1 => Version::V1alpha1,
    }
}

fn there_and_back(version: Version, object: &Value) {
    let there = convert(object.clone(), &other(version).api_version());
    block_on(async {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "u", "desiredAPIVersion": other(version).api_version(), "objects": [object, object] },
        });
        // serde_json reads 128 levels, and the review has some itself.
        let Ok(answer) = Webhook::before(Vec::new()).ask("/convert", review.to_string().into_bytes()).await else {
            return;
        };
        let converted = answer["response"]["convertedObjects"].as_array().unwrap();
        match &there {
            Ok(there) => assert_eq!(converted, &[there.clone(), there.clone()]),
            Err(error) => {
                assert!(converted.is_empty() && answer["response"]["result"]["status"] == "Failure");
                let message = answer["response"]["result"]["message"].as_str().unwrap();
                assert!(message.contains(&error.to_string()), "{message}");
            }
        }
    });
    let Ok(there) = there else { return };
    if !has_names(version, object) {
        return;
    }
    let back = convert(there.clone(), &version.api_version()).unwrap_or_else(|error| panic!("{there}: {error}"));
    match version {
        Version::V1alpha1 => {
            assert_eq!(&back, object, "by way of {there}");
            let plain = as_of(Version::V1beta1, there).unwrap();
            let stored = convert(plain.clone(), &version.api_version()).unwrap();
            assert_eq!(convert(stored, &Version::V1beta1.api_version()).unwrap(), plain, "one spelling is one");
        }
        Version::V1beta1 => {
            let again = convert(back, &Version::V1alpha1.api_version()).unwrap();
            assert_eq!(again, there, "stored as it was");
        }
    }
}

/// Every entry has a name of its own, as either schema asks for.
fn has_names(version: Version, object: &Value) -> bool {
    let entries = object["spec"][version.list()].as_array().map_or(&[][..], Vec::as_slice);
    let mut names: Vec<_> = entries.iter().filter_map(|entry| entry["name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == entries.len()
}

/// The golden cases, and every spelling.
pub fn seeds() -> Vec<Vec<u8>> {
    let object = |entries: Value| json!({ "metadata": { "name": "x", "annotations": { "a": "b" } }, "spec": { "roles": [], "coordination": entries } });
    let bounds = json!({ "maxSkew": "10%", "maxUnavailableRatio": "5%", "partition": "0%" });
    let layer = json!({ "topologyLayerName": "tor", "constraintMode": "soft", "podGroupPolicy": "nil" });
    let spelled = [
        json!([{ "name": "a", "type": "RollingUpdate", "strategy": bounds }]),
        json!([{ "name": "a", "strategy": { "rollingUpdate": bounds, "maxSkew": "20%" }, "whenNoFit": "preempt" }]),
        json!([{ "name": "a", "strategy": { "rollingDeploy": { "prefill": 2, "recovery": 1 }, "deployTopologyConstraint": layer } }]),
        json!([{ "name": "a", "strategy": { "rollingDeploy": {
            "roleDeployStep": { "a": 1 }, "b": 2, "recovery": { "policy": "Recreate" }, "deployTopologyConstraint": layer,
        } } }]),
        json!([{ "name": "a", "roles": null, "strategy": { "segmentPlacement": { "segmentSize": { "a": 1 }, "progression": "" } } }]),
        json!([{ "name": "a" }, { "name": "b", "strategy": null }, { "name": "c", "strategy": {} }, { "name": "", "whenNoFit": "" }]),
        json!([{ "name": "a", "strategy": { "scaling": { "x": null }, "affinityScheduling": null } }]),
        json!(null),
    ];
    scenario::seeds().into_iter().chain(spelled.map(|entries| object(entries).to_string().into_bytes())).collect()
}
