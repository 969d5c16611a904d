//! RoleCoordination in two versions on a real API server, which has its objects converted by rolegate: made in one, read in the
//! other, applied in both, with and without an answer of the converter, and back to the one version.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use rolegate::api::crd::{Converter, files, files_with_v1beta1};
use serde_json::{Value, json};

use crate::common::account::account;
use crate::common::pods::Pod;
use crate::common::stage::{make_namespace, typed};
use crate::common::{ControlPlane, Group, PATIENT, Stage, always, eventually};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rolecoordinations.rolegate.dev";

fn path(stage: &Stage, version: &str, name: &str) -> String {
    format!("/apis/rolegate.dev/{version}/namespaces/{}/rolecoordinations/{name}", stage.namespace)
}

async fn get(stage: &Stage, version: &str, name: &str) -> Value {
    let answer = stage.send("GET", &path(stage, version, name), &Value::Null).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    answer.body
}

/// Reads an object, edits it and writes it; again where somebody was faster, as the loop may be with its status.
async fn rewrite(stage: &Stage, version: &str, name: &str, edit: impl Fn(&mut Value)) -> Value {
    eventually(PATIENT, "an object that is written", async || {
        let mut object = get(stage, version, name).await;
        edit(&mut object);
        let written = stage.send("PUT", &path(stage, version, name), &object).await;
        if written.code == 200 { Ok(written.body) } else { Err(format!("{written:?}")) }
    })
    .await
}

async fn definition(stage: &Stage) -> Value {
    stage.send("GET", CRD, &Value::Null).await.body
}

/// The definition as `rolegate crds` prints it, with both versions if objects are converted at an address.
pub(super) fn printed(converter: Option<&str>) -> String {
    let all = match converter {
        Some(_) => files_with_v1beta1(Converter { namespace: "rolegate-system", name: "rolegate", certificate: None }),
        None => files(false),
    };
    let (_, yaml) = all.into_iter().find(|(name, _)| name.starts_with("rolecoordinations")).unwrap();
    let mut definition: Value = serde_saphyr::from_str(&yaml).unwrap();
    if let Some(address) = converter {
        definition["spec"]["conversion"]["webhook"]["clientConfig"] = json!({ "url": format!("{address}/convert") });
    }
    definition.to_string()
}

pub(super) const APPLY: &[&str] = &["apply", "--server-side", "--force-conflicts", "-f", "-"];

/// The group has these versions, the newest first.
async fn until_served(stage: &Stage, versions: &[&str]) {
    eventually(PATIENT, "the versions of the group", async || {
        let group = stage.send("GET", "/apis/rolegate.dev", &Value::Null).await.body;
        let served =
            group["versions"].as_array().into_iter().flatten().map(|one| one["version"].as_str().unwrap_or_default());
        if served.eq(versions.iter().copied()) { Ok(()) } else { Err(group.to_string()) }
    })
    .await;
    // The group is told before its resources are there.
    let newest = format!("/apis/rolegate.dev/{}", versions[0]);
    eventually(PATIENT, "their resources", async || {
        let listed = stage.send("GET", &newest, &Value::Null).await.body;
        let is_there = |one: &Value| one["name"] == "rolecoordinations";
        let there = listed["resources"].as_array().is_some_and(|all| all.iter().any(is_there));
        if there { Ok(()) } else { Err(listed.to_string()) }
    })
    .await;
}

/// v1beta1 is served and objects are converted.
async fn until_converted(stage: &Stage, name: &str) {
    until_served(stage, &["v1beta1", "v1alpha1"]).await;
    eventually(PATIENT, "an object in v1beta1", async || {
        let answer = stage.send("GET", &path(stage, "v1beta1", name), &Value::Null).await;
        if answer.code == 200 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

fn segments(sizes: &Value) -> Value {
    json!({ "segmentPlacement": { "segmentSize": sizes } })
}

/// Two roles over StatefulSets, and coordinations in the fields of a version.
fn object(version: &str, name: &str, list: &str, entries: &Value) -> Value {
    let role = |role: &str| json!({ "name": role, "workloadRef": { "kind": "StatefulSet", "name": format!("{name}-{role}") } });
    json!({
        "apiVersion": format!("rolegate.dev/{version}"), "kind": "RoleCoordination", "metadata": { "name": name },
        "spec": { "roles": [role("prefill"), role("decode")], list: entries },
    })
}

/// Every spelling that v1beta1 does not have.
fn spelled() -> Value {
    let sizes = json!({ "prefill": 4, "decode": 2 });
    json!([
        { "name": "s", "strategy": segments(&sizes), "whenNoFit": "hold" },
        { "name": "r", "type": "RollingUpdate", "roles": ["prefill", "decode"],
          "strategy": { "maxSkew": "10%", "maxUnavailableRatio": "5%" } },
    ])
}

fn coordinations(stage: &Stage, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("rolegate.dev", version, "RoleCoordination");
    Api::namespaced_with(stage.client.clone(), &stage.namespace, &ApiResource::from_gvk(&kind))
}

/// By the account of rolegate, whose token somebody may steal.
async fn nothing_but_the_bundle_may_be_changed(stage: &Stage) {
    let file = account(&stage.plane, &stage.client, "versions", &[]).await;
    let thief = crate::common::control_plane::client_of(&file).await;
    let definitions: Api<DynamicObject> = Api::all_with(
        thief,
        &ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition")),
    );
    let client = |field: &str| json!({ "spec": { "conversion": { "webhook": { "clientConfig": { field: "https://elsewhere/x" } } } } });
    for (theft, word) in [
        (client("url"), "spec.conversion.webhook.clientConfig[url]"),
        (json!({ "spec": { "names": { "shortNames": ["x"] } } }), "spec[names]"),
        (json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } }), "spec.conversion[strategy]"),
        (json!({ "metadata": { "labels": { "a": "b" } } }), "metadata.labels[a]"),
    ] {
        let patch = kube::api::Patch::Merge(theft);
        let refused =
            definitions.patch("rolecoordinations.rolegate.dev", &kube::api::PatchParams::default(), &patch).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("rolegate itself may not change") && refused.contains(word), "{refused}");
    }
    let other = kube::api::Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let refused = definitions.patch("clustertopologies.rolegate.dev", &kube::api::PatchParams::default(), &other).await;
    assert!(refused.unwrap_err().to_string().contains("forbidden"));
}

async fn made_in_one_version_is_read_in_the_other(stage: &Stage) {
    let made =
        stage.send("POST", &path(stage, "v1alpha1", ""), &object("v1alpha1", "odd", "coordination", &spelled())).await;
    assert_eq!(made.code, 201, "{made:?}");
    let alpha = get(stage, "v1alpha1", "odd").await;
    let beta = get(stage, "v1beta1", "odd").await;
    assert_eq!(beta["spec"]["coordinations"][1]["rollingUpdate"], json!({ "maxSkew": "10%", "maxUnavailable": "5%" }));
    assert_eq!(beta["spec"]["coordinations"][0]["whenNoFit"], "Hold");
    // Written as it was read, it is stored as it was.
    let again = rewrite(stage, "v1beta1", "odd", |_| {}).await;
    assert_eq!(again["metadata"]["generation"], 1);
    assert_eq!(get(stage, "v1alpha1", "odd").await["spec"], alpha["spec"]);
    // An edit there changes what it means to, and nothing of the other entry.
    let edit = |beta: &mut Value| beta["spec"]["coordinations"][0]["whenNoFit"] = json!("Preempt");
    assert_eq!(rewrite(stage, "v1beta1", "odd", edit).await["metadata"]["generation"], 2);
    let edited = get(stage, "v1alpha1", "odd").await;
    assert_eq!(edited["spec"]["coordination"][0]["whenNoFit"], "preempt");
    assert_eq!(edited["spec"]["coordination"][1], alpha["spec"]["coordination"][1]);
    assert_eq!(edited["metadata"]["annotations"], Value::Null);
    // Made in v1beta1 alone.
    let entries = json!([{ "name": "s", "segmentPlacement": { "segmentSize": { "prefill": 4, "decode": 2 } } }]);
    let made =
        stage.send("POST", &path(stage, "v1beta1", ""), &object("v1beta1", "new", "coordinations", &entries)).await;
    assert_eq!(made.code, 201, "{made:?}");
    let stored = get(stage, "v1alpha1", "new").await;
    assert_eq!(stored["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["segmentSize"]["prefill"], 4);
    assert_eq!(stored["metadata"]["annotations"], Value::Null);
}

/// Both versions are judged by the same rules, and refused in their own words.
async fn a_violation_names_the_field_that_its_author_wrote(stage: &Stage) {
    let sizes = json!({ "prefill": 0, "decode": 2 });
    for (version, list, entry, field) in [
        (
            "v1alpha1",
            "coordination",
            json!({ "name": "s", "strategy": segments(&sizes) }),
            "spec.coordination[0].strategy.",
        ),
        (
            "v1beta1",
            "coordinations",
            json!({ "name": "s", "segmentPlacement": { "segmentSize": sizes } }),
            "spec.coordinations[0].",
        ),
    ] {
        let wrong = object(version, "wrong", list, &json!([entry]));
        let refused = stage.send("POST", &path(stage, version, ""), &wrong).await;
        assert_eq!(refused.code, 422, "{refused:?}");
        let cause = refused.body["details"]["causes"][0]["field"].as_str().unwrap();
        assert_eq!(cause, format!("{field}segmentPlacement.segmentSize[prefill]"), "{refused:?}");
        assert!(refused.body["message"].as_str().unwrap().contains(cause), "{refused:?}");
    }
    // v1beta1 has one word for each thing.
    let entry = json!({ "name": "s", "whenNoFit": "hold", "segmentPlacement": { "segmentSize": { "prefill": 1 } } });
    let refused = stage
        .send("POST", &path(stage, "v1beta1", ""), &object("v1beta1", "wrong", "coordinations", &json!([entry])))
        .await;
    assert!(refused.code == 422 && refused.body["message"].as_str().unwrap().contains("Hold"), "{refused:?}");
}

async fn status_and_scale_are_those_of_one_object(stage: &Stage) {
    let status = json!({ "status": { "theirs": { "seen": true } } });
    let written = stage.send("PATCH", &format!("{}/status", path(stage, "v1beta1", "new")), &status).await;
    assert_eq!(written.code, 200, "{written:?}");
    eventually(PATIENT, "the same status in both versions", async || {
        let (alpha, beta) = (get(stage, "v1alpha1", "new").await, get(stage, "v1beta1", "new").await);
        let is_whole = alpha["status"]["theirs"]["seen"] == true && alpha["status"]["observedGeneration"].is_number();
        if is_whole && alpha["status"] == beta["status"] { Ok(()) } else { Err(format!("{alpha} {beta}")) }
    })
    .await;
    let scaled = stage.plane.must(&["scale", "-n", &stage.namespace, "rcoord/new", "--replicas=3"], "");
    assert!(scaled.contains("scaled"), "{scaled}");
    for version in ["v1alpha1", "v1beta1"] {
        assert_eq!(get(stage, version, "new").await["spec"]["segments"], 3, "{version}");
    }
    let listed = stage.plane.must(&["get", "-n", &stage.namespace, "rcoord", "-o", "name"], "");
    assert!(listed.contains("/new") && listed.contains("/odd"), "{listed}");
}

/// Applied by managers of both versions, each with an entry of its own.
async fn managers_of_both_versions_share_an_object(stage: &Stage) {
    let apply = |manager: &str, object: &Value| {
        let manager = format!("--field-manager={manager}");
        stage.plane.must(&["apply", "--server-side", &manager, "-n", &stage.namespace, "-f", "-"], &object.to_string());
    };
    let alpha = object("v1alpha1", "shared", "coordination", &json!([spelled()[1]]));
    let entry = json!({ "name": "s", "segmentPlacement": { "segmentSize": { "prefill": 4, "decode": 2 } } });
    let mut beta = object("v1beta1", "shared", "coordinations", &json!([entry]));
    beta["spec"].as_object_mut().unwrap().remove("roles");
    apply("one", &alpha);
    apply("other", &beta);
    let both = get(stage, "v1alpha1", "shared").await;
    let names = |object: &Value, list: &str| -> Vec<String> {
        object["spec"][list]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&both, "coordination"), ["r", "s"]);
    assert_eq!(both["spec"]["coordination"][0], spelled()[1]);
    // Nothing new is nothing written.
    apply("one", &alpha);
    apply("other", &beta);
    let spec_and_generation = |object: &Value| (object["spec"].clone(), object["metadata"]["generation"].clone());
    assert_eq!(spec_and_generation(&get(stage, "v1alpha1", "shared").await), spec_and_generation(&both));
    // What one of them no longer wants goes, and what the other has stays.
    beta["spec"]["coordinations"] = json!([]);
    apply("other", &beta);
    assert_eq!(names(&get(stage, "v1beta1", "shared").await, "coordinations"), ["r"]);
}

async fn a_watch_of_either_version_sees_its_own(stage: &Stage) {
    let version = get(stage, "v1alpha1", "odd").await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let list = coordinations(stage, "v1alpha1").list(&kube::api::ListParams::default()).await.unwrap();
    let since = list.metadata.resource_version.unwrap_or(version);
    let params = WatchParams::default().fields("metadata.name=odd").timeout(60);
    let (alpha, beta) = (coordinations(stage, "v1alpha1"), coordinations(stage, "v1beta1"));
    let mut watches = [
        ("v1alpha1", "coordination", alpha.watch(&params, &since).await.unwrap().boxed()),
        ("v1beta1", "coordinations", beta.watch(&params, &since).await.unwrap().boxed()),
    ];
    let label = json!({ "metadata": { "labels": { "changed": "yes" } } });
    assert_eq!(stage.send("PATCH", &path(stage, "v1alpha1", "odd"), &label).await.code, 200);
    for (version, list, watch) in &mut watches {
        let event = tokio::time::timeout(PATIENT, watch.next()).await.expect("an event").unwrap().unwrap();
        let WatchEvent::Modified(seen) = event else { panic!("{event:?}") };
        assert_eq!(seen.types.unwrap().api_version, format!("rolegate.dev/{version}"));
        assert!(seen.data["spec"][*list].is_array(), "{version}: {:?}", seen.data);
    }
}

#[tokio::test]
async fn both_versions_are_served_of_the_same_objects() {
    let stage = Stage::on(ControlPlane::own_with_groups().await, "versions").await;
    // The right to keep the bundle comes with the choice.
    account(&stage.plane, &stage.client, "versions", &["--serve", "v1beta1"]).await;
    let rolegate = stage.launch().start().await;
    let address = format!("https://{}", rolegate.webhook);
    stage.plane.must(APPLY, &printed(Some(&address)));
    eventually(PATIENT, "the bundle of the conversion", async || {
        let client = definition(&stage).await["spec"]["conversion"]["webhook"]["clientConfig"].clone();
        if client["caBundle"].is_string() { Ok(()) } else { Err(client.to_string()) }
    })
    .await;
    // Applied again, the bundle stays, and one that somebody overwrites comes back.
    stage.plane.must(APPLY, &printed(Some(&address)));
    let ours = definition(&stage).await["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone();
    assert!(ours.is_string());
    let theirs = json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": null } } } } });
    assert_eq!(stage.send("PATCH", CRD, &theirs).await.code, 200);
    eventually(PATIENT, "the bundle again", async || {
        let found = definition(&stage).await["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone();
        if found == ours { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
    nothing_but_the_bundle_may_be_changed(&stage).await;
    let first = object("v1alpha1", "first", "coordination", &json!([]));
    assert_eq!(stage.send("POST", &path(&stage, "v1alpha1", ""), &first).await.code, 201);
    until_converted(&stage, "first").await;

    made_in_one_version_is_read_in_the_other(&stage).await;
    a_violation_names_the_field_that_its_author_wrote(&stage).await;
    status_and_scale_are_those_of_one_object(&stage).await;
    managers_of_both_versions_share_an_object(&stage).await;
    a_watch_of_either_version_sees_its_own(&stage).await;
    assert!(rolegate.metric("rolegate_conversions_total{to=\"v1beta1\",result=\"converted\"}").await > 0);
    assert_eq!(definition(&stage).await["status"]["storedVersions"], json!(["v1alpha1"]));
}

#[tokio::test]
async fn without_the_converter_v1alpha1_goes_on_and_the_way_back_is_open() {
    let stage = Stage::on(ControlPlane::own_with_groups().await, "one-version").await;
    stage.add_node("all", 36).await;
    account(&stage.plane, &stage.client, "one-version", &["--serve", "v1beta1"]).await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    stage.plane.must(APPLY, &printed(Some(&format!("https://{}", rolegate.webhook))));
    // A group that was made in v1beta1, in the middle of its start.
    let entry = json!({ "name": "s", "segmentPlacement": { "segmentSize": { "prefill": 4, "decode": 2 } } });
    let own = object("v1beta1", "own", "coordinations", &json!([entry]));
    until_served(&stage, &["v1beta1", "v1alpha1"]).await;
    eventually(PATIENT, "an object made in v1beta1", async || {
        let made = stage.send("POST", &path(&stage, "v1beta1", ""), &own).await;
        if made.code == 201 { Ok(()) } else { Err(format!("{made:?}")) }
    })
    .await;
    let mut sets = Group::three_segments();
    "own".clone_into(&mut sets.name);
    for role in &sets.roles {
        let set = typed(sets.set(role, &stage.namespace));
        stage.api::<StatefulSet>().create(&PostParams::default(), &set).await.unwrap();
    }
    stage
        .pods
        .until("a segment", |now| now.count_all(Pod::is_released) == 6 && now.count_all(Pod::is_held) == 12)
        .await;

    make_namespace(&stage.client, "leaving", &json!({})).await;
    let left = object("v1alpha1", "left", "coordination", &json!([]));
    let made = stage.send("POST", "/apis/rolegate.dev/v1alpha1/namespaces/leaving/rolecoordinations", &left).await;
    assert_eq!(made.code, 201, "{made:?}");

    // Nobody answers any longer where objects are converted; rolegate itself runs on elsewhere.
    rolegate.kill().await;
    let rolegate = launch.start().await;
    let refused = stage.send("GET", &path(&stage, "v1beta1", "own"), &Value::Null).await;
    let message = refused.body["message"].as_str().unwrap();
    assert!(refused.code == 500 && message.contains("conversion webhook for rolegate.dev/v1alpha1"), "{refused:?}");
    let newest = "rolecoordinations.v1beta1.rolegate.dev";
    let refused = stage.plane.kubectl(&["get", "-n", &stage.namespace, newest, "own"], "");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("conversion webhook"), "{said}");
    let kind = "rolecoordinations.v1alpha1.rolegate.dev";
    assert!(stage.plane.must(&["get", "-n", &stage.namespace, kind], "").contains("own"));
    assert_eq!(get(&stage, "v1alpha1", "own").await["spec"]["coordination"][0]["name"], "s");
    let label = json!({ "metadata": { "labels": { "changed": "meanwhile" } } });
    let written = stage.send("PATCH", &path(&stage, "v1alpha1", "own"), &label).await;
    assert_eq!(written.code, 200, "{written:?}");
    // Who wrote which field in v1beta1 the API server cannot tell then, and forgets it.
    assert_eq!(written.body["metadata"]["managedFields"], Value::Null);
    let plain = object("v1alpha1", "plain", "coordination", &json!([]));
    let applied = stage.plane.must(&["apply", "--server-side", "-n", &stage.namespace, "-f", "-"], &plain.to_string());
    assert!(applied.contains("serverside-applied"), "{applied}");
    // Whoever empties a namespace asks for the newest version of each kind.
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    namespaces.delete("leaving", &DeleteParams::default()).await.unwrap();
    eventually(PATIENT, "a namespace that cannot be emptied", async || {
        let status = namespaces.get("leaving").await.unwrap().status.unwrap();
        let stuck = status.conditions.iter().flatten().find(|one| one.type_ == "NamespaceDeletionContentFailure");
        match stuck {
            Some(one) if one.status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // What is held is held, and released when it is its turn.
    always(Duration::from_secs(1), "what was held is held", async || {
        let held = stage.pods.now(|now| now.count_all(Pod::is_held));
        if held == 12 { Ok(()) } else { Err(format!("{held} held")) }
    })
    .await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("another segment", |now| now.count_all(Pod::is_released) == 12).await;

    // The way back: the definition with the one version, which takes the conversion with it.
    stage.plane.must(&["replace", "-f", "-"], &printed(None));
    until_served(&stage, &["v1alpha1"]).await;
    assert_eq!(definition(&stage).await["spec"]["conversion"], json!({ "strategy": "None" }));
    eventually(PATIENT, "the namespace is gone", async || {
        let left = namespaces.get_opt("leaving").await.unwrap();
        left.map_or(Ok(()), |left| Err(format!("{:?}", left.status)))
    })
    .await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("all", |now| now.count_all(Pod::is_released) == 18).await;
    rewrite(&stage, "v1alpha1", "own", |own| {
        own["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["progression"] = json!("Parallel");
    })
    .await;

    // And forward again, to where rolegate is now.
    stage.plane.must(APPLY, &printed(Some(&format!("https://{}", rolegate.webhook))));
    until_converted(&stage, "own").await;
    assert_eq!(
        get(&stage, "v1beta1", "own").await["spec"]["coordinations"][0]["segmentPlacement"]["progression"],
        "Parallel"
    );
}
