//! RoleBasedGroups as their own project defines them: a definition that drops what is ours, and one whose stored version is
//! another than ours.

use crate::common::audit::Request;
use crate::common::prelude::*;
use crate::rules::definitions::{self, namespaced};
use crate::worlds::converter::{Converter, GROUP_GANG};
use crate::worlds::coordination_of;

const RBG: &str = "workloads.x-k8s.io";
const COORDINATIONS: &str = "/apis/rolegate.dev/v1alpha1";

/// The definition, with these versions.
fn definition(versions: &Value, conversion: &Value) -> Value {
    let mut definition = namespaced(RBG, "RoleBasedGroup", "rolebasedgroups", versions);
    definition["spec"]["conversion"] = conversion.clone();
    definition
}

/// A version whose spec has roles and this, and whose status keeps nothing that we write but the generation.
fn version(name: &str, stored: bool, coordination: &Value) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut spec = json!({ "type": "object", "properties": { "roles": { "type": "array", "items": any } } });
    if !coordination.is_null() {
        spec["properties"]["coordination"] = coordination.clone();
    }
    let kept =
        json!({ "observedGeneration": { "type": "integer" }, "roleStatuses": { "type": "array", "items": any } });
    let status = json!({ "type": "object", "properties": kept });
    definitions::version(name, stored, &spec, &status)
}

/// As RBG v0.6 has it: coordinations of its own.
fn upstream_coordination() -> Value {
    let text = json!({ "x-kubernetes-int-or-string": true });
    let of = |properties: Value| json!({ "type": "object", "properties": properties });
    let update = of(json!({ "maxSkew": text, "partition": text, "maxUnavailable": text }));
    let scaling = of(json!({ "maxSkew": text, "progression": { "type": "string" } }));
    let coordination = of(json!({
        "name": { "type": "string" },
        "roles": { "type": "array", "items": { "type": "string" } },
        "strategy": of(json!({ "rollingUpdate": update, "scaling": scaling })),
    }));
    json!({ "type": "array", "items": coordination })
}

/// A control plane of its own, with this definition of RoleBasedGroups and all of ours.
async fn plane(definition: Value) -> Arc<ControlPlane> {
    ControlPlane::own(move || {
        let plane = ControlPlane::start_with_groups("kwok", &["--audit"]);
        plane.must(&["delete", "crd", &format!("rolebasedgroups.{RBG}")], "");
        plane.must(&["create", "-f", "-"], &definition.to_string());
        plane.until_defined();
        plane
    })
    .await
}

async fn create(stage: &Stage, version: &str, name: &str, metadata: Value, coordination: &Value) {
    let roles = json!([{ "name": "prefill", "replicas": 4 }, { "name": "decode", "replicas": 4 }]);
    let mut object = object(&format!("{RBG}/{version}"), "RoleBasedGroup", name).spec(json!({ "roles": roles }));
    json_patch::merge(&mut object["metadata"], &metadata);
    if !coordination.is_null() {
        object["spec"]["coordination"] = json!([coordination]);
    }
    stage.create(object).await;
}

/// How often the status of each RoleBasedGroup was written.
fn writes(account: &Account) -> BTreeMap<String, u32> {
    let requests = account.requests();
    let writes = requests.into_iter().filter(|request| request.what == "patch rolebasedgroups/status");
    writes.fold(BTreeMap::new(), |mut counts, request| {
        *counts.entry(request.name).or_default() += 1;
        counts
    })
}

/// Whatever the loop has to do for what it has seen, it has done when a later group is told how it stands.
async fn until_all_was_seen(stage: &Stage, name: &str) {
    stage.create(Group::new(name).role("main", 1, 1).coordination_of_numbers(&json!({}))).await;
    stage.coordination_statuses(name).until("it is told", |status| !status.0["summary"].is_null()).await;
}

#[tokio::test]
async fn neither_what_a_conversion_drops_nor_that_it_fails_is_ever_noticed() {
    let versions =
        json!([version("v1alpha1", false, &upstream_coordination()), version("v1alpha2", true, &Value::Null)]);
    let converter = Converter::start().await;
    let stage =
        Stage::on(plane(definition(&versions, &converter.conversion())).await, "converted").await.with_room(8).await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2).held_back();
    // One is there before, and one comes later.
    create(&stage, "v1alpha2", "before", json!({}), &Value::Null).await;
    let _rolegate = stage.launch().start().await;
    let annotations = |name: &str| json!({ "rolegate.dev/group": name });
    let coordinate = async |name: &str| {
        let mut object = coordination_of(&group, &group.object()["spec"]["coordination"]);
        object["metadata"]["name"] = json!(name);
        object["spec"]["groupRef"]["name"] = json!(name);
        stage.post(COORDINATIONS, "rolecoordinations", &object).await
    };
    // A gang of the whole group would wait for held pods: what says so is in one of the versions only.
    let mut metadata = json!({ "annotations": annotations("gang") });
    metadata["annotations"][GROUP_GANG] = json!("true");
    create(&stage, "v1alpha2", "gang", metadata, &Value::Null).await;
    let refused = coordinate("gang").await;
    let why = "a gang over the whole group may not be set next to coordination";
    assert!(refused.code == 422 && refused.body.to_string().contains(why), "{refused:?}");

    converter.is_away(true);
    create(&stage, "v1alpha2", "llm", json!({ "annotations": annotations("llm") }), &Value::Null).await;
    let answer = coordinate("llm").await;
    assert!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
    stage.create_sets(&group).await;
    for released in [4, 8] {
        stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) == released).await;
        stage.let_ready(Pod::is_released).await;
    }
    assert_eq!(invariants::all_born_held(&stage.pods), 8);
    // Pods of a group that is not known are looked for live, and that is answered as well.
    let mut pod = group.pod("prefill", "stranger", &stage.namespace);
    pod["metadata"]["labels"]["rolegate.dev/group"] = json!("another");
    stage.create(pod).await;
    let asked = Account::of(&stage).requests();
    let converted = |asked: &&Request| asked.version == format!("{RBG}/v1alpha1") && asked.what.contains("groups");
    let failed: Vec<_> = asked.iter().filter(|asked| asked.code >= 500 || converted(asked)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    // Whoever reads the other version is served by it, if at all.
    let path = format!("/apis/{RBG}/v1alpha1/namespaces/{}/rolebasedgroups/gang", stage.namespace);
    assert_eq!(stage.send("GET", &path, &Value::Null).await.code, 500);
    converter.is_away(false);
    let read = stage.send("GET", &path, &Value::Null).await;
    assert_eq!((read.code, &read.body["metadata"]["annotations"]), (200, &annotations("gang")), "{read:?}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn what_is_not_kept_is_said_once_and_what_is_not_ours_is_never_written_to() {
        let versions = json!([version("v1alpha1", true, &upstream_coordination())]);
        let plane = plane(definition(&versions, &json!({ "strategy": "None" }))).await;
        let (stage, _rolegate) = Stage::on(plane, "dropped").await.serve().await;
        let account = Account::of(&stage);
        let roles = json!(["prefill", "decode"]);
        let update = json!({ "maxSkew": "10%" });
        let theirs = json!({ "name": "c", "roles": roles, "strategy": { "rollingUpdate": update, "scaling": update } });
        let ours = json!({ "name": "c", "roles": roles, "strategy": { "rollingUpdate": update } });
        for (name, coordination) in [("none", &Value::Null), ("theirs", &theirs), ("ours", &ours)] {
            create(&stage, "v1alpha1", name, json!({}), coordination).await;
        }
        let events = stage.objects("events.k8s.io", "v1", "Event");
        let told = async || {
            let all = events.list(&ListParams::default()).await.unwrap();
            let told = all.items.into_iter().filter(|event| event.data["reason"] == "StatusNotKept");
            told.map(|event| event.data["regarding"]["name"].clone()).collect::<Vec<_>>()
        };
        until_is("the Event", told, ["ours"]).await;
        // Each is seen once more, with the same spec.
        for name in ["none", "theirs", "ours"] {
            let patch = json!({ "metadata": { "labels": { "touched": "" } } });
            stage.groups().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
        until_all_was_seen(&stage, "first").await;
        assert_eq!(writes(&account), BTreeMap::from([("ours".to_owned(), 1)]));
        for name in ["none", "theirs"] {
            let found = stage.groups().get(name).await.unwrap();
            assert!(found.data["status"].is_null(), "{:?}", found.data);
        }

        // Another spec may be kept.
        let larger = Group::new("ours").role("prefill", 5, 5).role("decode", 5, 5);
        stage.patch_group(&larger, json!({ "spec": { "roles": larger.object()["spec"]["roles"] } })).await;
        until_is("a second write", async || writes(&account).get("ours").copied(), Some(2)).await;
        until_all_was_seen(&stage, "second").await;
        assert_eq!(writes(&account), BTreeMap::from([("ours".to_owned(), 2)]));
        assert_eq!(told().await, ["ours"]);

        // And so may another definition.
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let mut versions = versions;
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"] = any;
        let patch = json!({ "spec": { "versions": versions } }).to_string();
        stage.plane.must(&["patch", "crd", &format!("rolebasedgroups.{RBG}"), "--type=merge", "-p", &patch], "");
        let status = async || stage.groups().get("ours").await.unwrap().data["status"].clone();
        until_found("the status is kept", status, |status| !status["summary"].is_null()).await;
    }

    /// RBG v0.6 writes the status first, and its definition asks for what stands in there.
    #[tokio::test]
    async fn a_status_that_asks_for_fields_of_its_operator_is_tried_again_until_it_has_them() {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let mut asks = any.clone();
        asks["required"] = json!(["roleStatuses"]);
        let mut versions = json!([version("v1alpha1", true, &any)]);
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = any;
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"] = asks;
        let plane = plane(definition(&versions, &json!({ "strategy": "None" }))).await;
        let (stage, _rolegate) = Stage::on(plane, "asked-for").await.with_room(8).await.serve().await;
        let group = Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1);
        stage.create_group(&group).await;
        stage.create_sets(&group).await;
        stage.pods.until("all are there", |now| now.count_all(|_| true) == 4).await;
        stage.until_event("StatusRefused", &["status.roleStatuses: Required value"]).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 4, "{now}"));
        let tries = writes(&Account::of(&stage))["llm"];
        assert!(tries <= 6, "{tries} tries");
        let status = Patch::Merge(json!({ "status": { "roleStatuses": [] } }));
        stage.groups().patch_status("llm", &PatchParams::default(), &status).await.unwrap();
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
        let tries = writes(&Account::of(&stage))["llm"] - tries;
        assert!(tries <= 10, "{tries} more");
    }
}
