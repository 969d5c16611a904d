//! KEP-75, podGroupPolicy: each batch has its PodGroup before its pods may go.

use crate::common::prelude::*;
use crate::pods::gangs;
use crate::pods::support::{LAYERS, deploy, explain, stage, stored};
use crate::rules::definitions::{self, loose, namespaced};

const LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// A stand-in for the definition of the scheduler plugins.
pub fn define(plane: &ControlPlane) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v1alpha1", "served": true, "storage": true, "schema": schema });
    let definition = namespaced("scheduling.x-k8s.io", "PodGroup", "podgroups", &json!([version]));
    plane.must(&["create", "-f", "-"], &definition.to_string());
}

fn pod_groups(stage: &Stage) -> Api<DynamicObject> {
    stage.objects("scheduling.x-k8s.io", "v1alpha1", "PodGroup")
}

/// Waits for so many members.
pub async fn members(stage: &Stage, name: &str, wanted: u64) -> DynamicObject {
    eventually(PATIENT, "a PodGroup with so many members", async || {
        let found = pod_groups(stage).get(name).await.map_err(|error| error.to_string())?;
        if found.data["spec"]["minMember"] == wanted { Ok(found) } else { Err(found.data.to_string()) }
    })
    .await
}

#[tokio::test]
async fn a_batch_goes_when_its_pod_group_is_there() {
    let (stage, rolegate) = stage("pod-groups").await.serve().await;
    let constraint = json!({
        "clusterTopologyName": LAYERS, "topologyLayerName": "host", "constraintMode": "hard",
        "podGroupPolicy": { "kubeScheduling": { "scheduleTimeoutSeconds": 60 } },
    });
    let steps = json!({ "roleDeployStep": { "prefill": 2, "decode": 1 }, "deployTopologyConstraint": constraint });
    let coordination = json!({ "name": "pd", "strategy": { "rollingDeploy": steps } });
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    let statuses = deploy(&stage, &group, &coordination).await;

    // Its kind is not defined: a pod that came before its PodGroup would be scheduled without it.
    stage.pods.until("all pods", |now| now.count_all(Pod::is_held) == 6).await;
    let missing = r#"rolegate_held_pods{reason="PodGroupMissing"}"#;
    rolegate.until_metric(missing, 3).await;
    let explained = explain(&stage, "llm-prefill-0").await;
    assert!(explained.contains("PodGroupMissing: step 1 is held without PodGroup \"llm-pd-0\""), "{explained}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 6, "{now}"));
    define(&stage.plane);
    stage.pods.until("the first batch is released", |now| now.count_all(Pod::is_released) == 3).await;
    rolegate.until_metric(missing, 0).await;

    // The name of the second one is another object's, for good.
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "somebody" } });
    let uid = stage.create(config).await.metadata.uid;
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": uid });
    let mut theirs = object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "llm-pd-1").spec(json!({ "minMember": 9 }));
    theirs["metadata"]["ownerReferences"] = json!([owner]);
    stage.create(theirs).await;

    // No node is there yet: it is as it was made.
    let first = members(&stage, "llm-pd-0", 3).await;
    assert_eq!(first.data["spec"]["scheduleTimeoutSeconds"], 60);
    let owners = serde_json::to_value(&first.metadata.owner_references).unwrap();
    let owner = |field: &str| owners[0][field].as_str().map(str::to_owned);
    let carrier = stage.groups().get("llm").await.unwrap().metadata.uid;
    assert_eq!((owner("kind"), owner("uid")), (Some("RoleBasedGroup".to_owned()), carrier));
    let version: u64 = first.metadata.resource_version.unwrap().parse().unwrap();
    for event in stage.pods.events().into_iter().filter(|event| event.step == Step::Released) {
        assert!(event.pod.labels[LABEL] == "llm-pd-0" && event.pod.version > version, "{event:?}");
    }
    // Once it was scheduled its pods may be replaced one by one.
    stage.add_node("a", 3).await;
    members(&stage, "llm-pd-0", 1).await;
    let told = |status: &Status| status.0["summary"]["reason"] == "PodGroupMissing" && status.0["summary"]["held"] == 3;
    statuses.until("the second is committed, held, and told why", told).await;
    let explained = explain(&stage, "llm-decode-1").await;
    assert!(explained.contains("another object's or about to go"), "{explained}");
    assert_eq!(members(&stage, "llm-pd-1", 9).await.metadata.owner_references.unwrap()[0].name, "somebody");
    pod_groups(&stage).delete("llm-pd-1", &DeleteParams::default()).await.unwrap();
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
    let left = async || pod_groups(&stage).list(&ListParams::default()).await.unwrap().items.len();
    until_is("PodGroups go with their group", left, 0).await;
}

/// What volcano and KAI find, with the annotation by which a pod says that it is a member.
#[tokio::test]
async fn volcano_and_kai_get_their_pod_groups_in_their_own_words() {
    let schedulers = [
        (
            "scheduling.volcano.sh/v1beta1",
            json!({ "volcanoScheduling": { "queue": "llm", "priorityClassName": "high" } }),
            json!({ "minMember": 3, "queue": "llm", "priorityClassName": "high" }),
            "scheduling.k8s.io/group-name",
        ),
        (
            "scheduling.run.ai/v2alpha2",
            json!({ "kai": { "queue": "team", "priorityClassName": "inference" } }),
            json!({ "minMember": 3, "queue": "team", "priorityClassName": "inference" }),
            "pod-group-name",
        ),
    ];
    let stage = gangs::stage("schedulers").await;
    // That of KAI is defined there.
    let of_volcano = loose("scheduling.volcano.sh", "PodGroup", "podgroups", &[("v1beta1", true, &[])]);
    definitions::install(&stage.plane, &[of_volcano]);
    let _rolegate = stage.launch().start().await;
    for (number, (api_version, policy, spec, annotation)) in schedulers.into_iter().enumerate() {
        let steps = json!({
            "roleDeployStep": { "prefill": 2, "decode": 1 }, "deployTopologyConstraint": { "podGroupPolicy": policy },
        });
        let group = Group::new(&format!("llm-{number}")).role("prefill", 2, 2).role("decode", 1, 1);
        let coordination = json!({ "name": "pd", "strategy": { "rollingDeploy": steps } });
        deploy(&stage, &group, &coordination).await;
        let released = |pod: &Pod| pod.name.starts_with(&group.name) && pod.is_released();
        stage.pods.until("they go", |now| now.count_all(released) == 3).await;
        let (api_group, version) = api_version.split_once('/').unwrap();
        let made = stage.objects(api_group, version, "PodGroup");
        // KAI mixes up PodGroups of one name in two namespaces.
        let prefix = if annotation == "pod-group-name" { "schedulers." } else { "" };
        let name = format!("{prefix}{}-pd-0", group.name);
        assert_eq!(made.get(&name).await.unwrap().data["spec"], spec, "{api_version}");
        let members = stored(&stage).await.into_iter().filter(|pod| {
            let annotations = pod.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(annotation)).is_some_and(|value| *value == name)
        });
        assert_eq!(members.count(), 3, "{api_version}");
    }
}

/// The PodGroup that each pod names to Volcano, by name of the pod.
async fn named(stage: &Stage) -> BTreeMap<String, String> {
    let name = |pod: k8s_openapi::api::core::v1::Pod| {
        let named = pod.metadata.annotations?.remove("scheduling.k8s.io/group-name");
        Some((pod.metadata.name?, named.unwrap_or_default()))
    };
    stored(stage).await.into_iter().filter_map(name).collect()
}

mod tier2 {
    use super::*;

    /// Each replica of a LeaderWorkerSet is a gang, then each segment.
    #[tokio::test]
    async fn gangs_of_replicas_become_gangs_of_segments_in_the_middle() {
        let stage = stage("gang-levels").await;
        let of_volcano = loose("scheduling.volcano.sh", "PodGroup", "podgroups", &[("v1beta1", true, &[])]);
        definitions::install(&stage.plane, &[of_volcano]);
        stage.add_node("all", 8).await;
        let _rolegate = stage.launch().start().await;
        let group = Group::new("llm").role("main", 2, 1).held_back();
        let at_level = |level: &str| {
            group.coordination_of(
                "LeaderWorkerSet",
                &json!({ "podGroupPolicy": { "volcanoScheduling": { "queue": "q" }, "level": level } }),
            )
        };
        let mut misplaced = at_level("Replica");
        misplaced["spec"]["coordination"][0]["strategy"]["podGroupPolicy"] = json!({ "volcanoScheduling": {} });
        let refused = stage.post("/apis/rolegate.dev/v1alpha1", "rolecoordinations", &misplaced).await;
        let message = refused.body["message"].as_str().unwrap();
        let place = "spec.coordination[0].strategy.podGroupPolicy: Forbidden: has no effect here, only directly in";
        assert!(refused.code == 422 && message.contains(place), "{refused:?}");

        stage.create(at_level("Replica")).await;
        stage.create(group.leader_worker_set("main", 2, &stage.namespace, &json!({}))).await;
        stage.pods.until("the first segment has nodes", |now| now.count_all(Pod::is_scheduled) == 2).await;
        stage.pods.until("all pods", |now| now.count_all(|_| true) == 4).await;
        let made = stage.objects("scheduling.volcano.sh", "v1beta1", "PodGroup");
        let all = async || {
            let list = made.list(&ListParams::default()).await.unwrap().items;
            let of = |object: DynamicObject| (object.metadata.name.unwrap(), object.data["spec"]["minMember"].clone());
            list.into_iter().map(of).collect::<BTreeMap<_, _>>()
        };
        let first = "llm-segments.main.0".to_owned();
        assert_eq!(all().await, BTreeMap::from([(first.clone(), json!(2))]));
        let expected = |names: [&str; 4]| {
            let pods = ["llm-main-0", "llm-main-0-1", "llm-main-1", "llm-main-1-1"];
            pods.into_iter().map(str::to_owned).zip(names.map(str::to_owned)).collect::<BTreeMap<_, _>>()
        };
        let second = "llm-segments.main.1";
        assert_eq!(named(&stage).await, expected([&first, &first, second, second]));

        let patch = Patch::Merge(json!({ "spec": { "coordination": at_level("Batch")["spec"]["coordination"] } }));
        stage.coordinations().patch("llm", &PatchParams::default(), &patch).await.unwrap();
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("the second segment has nodes", |now| now.count_all(Pod::is_scheduled) == 4).await;
        let second = "llm-segments-1";
        assert_eq!(named(&stage).await, expected([&first, &first, second, second]));
        let names: Vec<_> = all().await.into_keys().collect();
        assert_eq!(names, [second, &first], "nothing is made that no pod is in");

        // Its pods come back as members of the segment, and the old PodGroup goes.
        stage.delete::<ApiPod>("llm-main-0").await;
        let names = async || all().await.into_keys().collect::<Vec<_>>();
        until_is("the PodGroup of the replica goes", names, ["llm-segments-0", second]).await;
        stage.pods.until("it runs again", |now| now.count_all(Pod::is_scheduled) == 4).await;
        let renewed = "llm-segments-0";
        assert_eq!(named(&stage).await, expected([renewed, renewed, second, second]));
    }
}
