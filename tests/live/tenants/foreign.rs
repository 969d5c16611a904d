//! A name is one of the same namespace: what a pod or a group names in another one is neither read nor changed.

use crate::common::audit::Request;
use crate::common::prelude::*;
use crate::tenants::{PLANE, stage};

/// The condition that tells how a RoleCoordination is.
async fn told(stage: &Stage, name: &str) -> String {
    let found: DynamicObject = stage.coordinations().get(name).await.unwrap();
    found.data["status"]["conditions"].to_string()
}

#[tokio::test]
async fn what_is_named_is_looked_for_in_the_namespace_of_who_names_it() {
    let theirs = stage("foreign-theirs").await;
    let own = Stage::on(PLANE.get(), "foreign-own").await;
    theirs.add_node("all", 10).await;
    own.add_node("all", 10).await;
    let namespaces = format!("{},{}", theirs.namespace, own.namespace);
    let launch = theirs.launch().flag("namespaces", &namespaces).flag("missing-group", "hold");
    let _rolegate = launch.start().await;

    let group = Group::new("llm").role("prefill", 2, 1).held_back();
    let statuses = theirs.statuses(&group);
    theirs.deploy(&group).await;
    theirs.pods.until("their first pod is released", |now| now.count_all(Pod::is_released) == 1).await;

    // A pod of the same labels in another namespace: it has no group, and counts for nobody.
    let made = own.post(CORE, "pods", &group.pod("prefill", "prefill-0", &own.namespace)).await;
    assert_eq!((made.code, &made.body["spec"]["schedulingGates"][0]["name"]), (201, &json!("rolegate.dev/hold")));
    // Names of objects of others, in every way in which somebody might write them.
    let spellings = [format!("{}/llm", theirs.namespace), format!("llm.{}", theirs.namespace)];
    for (number, name) in spellings.iter().enumerate() {
        let mut pod = group.pod("prefill", &format!("annotated-{number}"), &own.namespace);
        pod["metadata"]["labels"] = json!({});
        pod["metadata"]["annotations"] = json!({ "pod-group-name": name, "rolegate.dev/group": name });
        let made = own.post(CORE, "pods", &pod).await;
        assert_eq!(made.code, 201, "{made:?}");
        assert_eq!(made.body["spec"].get("schedulingGates"), None, "nobody holds it: {made:?}");
    }
    // A RoleCoordination for their group and for their workload.
    let segments = json!([{ "name": "s", "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 1 } } } }]);
    let set = json!({ "kind": "StatefulSet", "name": group.set_name("prefill") });
    for (name, fields) in [
        ("llm", json!({ "groupRef": { "name": "llm" } })),
        ("of-their-set", json!({ "roles": [{ "name": "prefill", "workloadRef": set }] })),
    ] {
        let mut spec: Value = fields;
        spec["coordination"] = segments.clone();
        let object = object("rolegate.dev/v1alpha1", "RoleCoordination", name).spec(spec);
        own.create(object).await;
        let told = async || told(&own, name).await;
        let nothing = |told: &String| told.contains("\"Ready\"") && !told.contains("/2 pods ready");
        until_found("it is told that nothing is there", told, nothing).await;
    }
    // An annotation that hands a group of one's own to a coordination of others.
    let mut handed = Group::new("handed").role("prefill", 1, 1).object();
    handed["metadata"]["annotations"] = json!({ "rolegate.dev/group": spellings[0] });
    assert_eq!(own.post(GROUPS, "rolebasedgroups", &handed).await.code, 422);

    // Theirs goes on as if nothing were there, and nobody's pod was let go by it.
    theirs.let_ready(Pod::is_released).await;
    theirs.pods.until("their second pod is released", |now| now.count_all(Pod::is_released) == 2).await;
    theirs.let_ready(Pod::is_released).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 2/2 pods ready").await;
    let theirs_now = theirs.groups().get("llm").await.unwrap();
    assert_eq!(theirs_now.metadata.annotations.unwrap_or_default().get("rolegate.dev/group"), None);
    // The spelling with a dot is a name like any other, of an object beside the pod.
    let strays = |request: &Request| {
        request.name.contains('/') || spellings.contains(&request.name) && request.namespace != own.namespace
    };
    let strayed: Vec<_> = Account::of(&theirs).requests().into_iter().filter(strays).collect();
    assert!(strayed.is_empty(), "{strayed:?}");
}
