//! What is asked for, when, and what is left of it.

use k8s_openapi::api::core::v1::PodTemplate;
use rolegate::api::role_coordination::ROLE_COORDINATION;

use super::{RACK, Scene, coordination, racks, refusing, served, stage};
use crate::common::prelude::*;
use crate::policies::cluster::{allow, api_of, client_as};
use crate::worlds::cluster_autoscaler::{ATOMIC, CHECK, CLASS, CONSUMES, Cloud, label};

#[tokio::test]
async fn nodes_come_for_one_whole_segment_after_the_other_and_nothing_is_left_of_the_requests() {
    let (stage, _rolegate) = served("provision-story").await;
    let scene = Scene::new(stage, 2, racks(&["r1", "r2"]), &json!({})).await;
    let request = scene.until_requested().await;
    let spec = &request.data["spec"];
    assert_eq!(spec["provisioningClassName"], ATOMIC);
    let counts: Vec<_> = spec["podSets"].as_array().unwrap().iter().map(|set| set["count"].as_u64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 15, "{spec}");
    assert!(request.metadata.name.as_deref().unwrap().starts_with("pd-segments-"), "{:?}", request.metadata);
    let owner = &request.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("RoleCoordination", "pd"));
    scene.statuses.until("it is said", |status| status.reason() == "NodesRequested").await;
    scene.until_ready(2).await;
    scene.each_segment_has_a_rack(2);
    scene.none_went_in_part();
    scene.until_none_is_left().await;
    // Each pod says which request it uses, for the booking to end with it.
    scene.stage.pods.now(|now| {
        let names: BTreeSet<_> = now.all().filter_map(|pod| pod.annotations.get(CONSUMES)).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(now.all().all(|pod| pod.annotations[CLASS] == ATOMIC), "{now}");
    });
}

/// A group whose nodes are asked for in vain, and the templates of its request.
async fn templates(stage: Stage) -> (Scene, Vec<Value>) {
    let scene = Scene::new(stage, 1, refusing(), &json!({})).await;
    scene.until_requested().await;
    let all = scene.stage.list::<PodTemplate>().await;
    assert_eq!(all.len(), 2);
    (scene, all.into_iter().map(|one| serde_json::to_value(one.template).unwrap()).collect())
}

#[tokio::test]
async fn pods_of_a_template_attract_each_other_and_are_not_held_when_an_autoscaler_tries_them() {
    let (stage, _rolegate) = served("provision-trials").await;
    let (scene, templates) = templates(stage).await;
    for mut pod in templates {
        let labels = &pod["metadata"]["labels"];
        let terms = &pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        for selector in terms.as_array().unwrap().iter().map(|term| &term["labelSelector"]) {
            let mut exact = selector["matchLabels"].as_object().into_iter().flatten();
            assert!(exact.all(|(key, value)| labels[key] == *value), "no node does for the first pod: {pod}");
            let mut listed = selector["matchExpressions"].as_array().into_iter().flatten();
            let selects =
                |one: &Value| one["values"].as_array().unwrap().contains(&labels[one["key"].as_str().unwrap()]);
            assert!(listed.all(selects), "no node does for the first pod: {pod}");
        }
        pod["metadata"]["generateName"] = json!("trial-");
        for (dry_run, held) in [(true, 0), (false, 1)] {
            let params = PostParams { dry_run, ..PostParams::default() };
            let born = scene.stage.api::<ApiPod>().create(&params, &typed(pod.clone())).await.unwrap();
            let gates = born.spec.unwrap().scheduling_gates.into_iter().flatten().count();
            assert_eq!(gates, held, "dryRun {dry_run}: {pod}");
        }
    }
}

/// A pool of devices at zero beside processors in plenty, and nodes whose device plugin registers after they are ready.
#[tokio::test]
async fn devices_that_no_node_has_yet_are_asked_for_and_nodes_without_them_are_no_room() {
    let (stage, _rolegate) = served("provision-devices").await;
    let device = "provision-devices.example.com/gpu";
    let group = Group::new("pd").template(&asking(&json!({ "limits": { (device): "1" } })));
    let rack = |name: &str| {
        let mut node = node(&format!("{}-{name}-a", stage.namespace), 20, &stage.namespace);
        // Of no rack of the autoscaler, which takes its empty nodes back.
        node["metadata"]["labels"][RACK] = json!(format!("fixed-{}", label(&stage.namespace, name)));
        node
    };
    let (first, second, third) = (rack("r1"), rack("r2"), rack("r3"));
    stage.create_node(first).await;
    stage.create_node(second).await;
    let scene = Scene::of(group, stage, 1, racks(&[]), &json!({ "class": CHECK })).await;
    scene.until_requested().await;
    let said = format!("short of 15 {device}, which no node has in its allocatable");
    scene.statuses.until("it is said", |status| status.0.to_string().contains(&said)).await;
    scene.stage.create_node(third).await;
    let is_held = |now: &View| now.count_all(Pod::is_held) == 15;
    scene.stage.pods.always(Duration::from_secs(3), "all are held", is_held).await;
    let room = json!({ (device): "15" });
    let status = json!({ "status": { "allocatable": room, "capacity": room } });
    scene.stage.patch_node_status("provision-devices-r3-a", &status).await;
    scene.until_met().await;
    scene.none_went_in_part();
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn that_nodes_are_promised_lets_no_pod_go_before_the_last_of_them_is_there() {
        let (stage, _rolegate) = served("provision-late").await;
        let cloud = Cloud { late: Duration::from_secs(4), ..racks(&["r1"]) };
        let scene = Scene::new(stage, 1, cloud, &json!({})).await;
        scene.autoscaler.until_said("Provisioned=True/CapacityIsProvisioned").await;
        let is_held = |now: &View| now.count_all(Pod::is_held) == 15;
        scene.stage.pods.always(Duration::from_secs(2), "all are held", is_held).await;
        scene.until_ready(1).await;
        scene.none_went_in_part();
    }

    #[tokio::test]
    async fn templates_of_a_request_carry_what_is_scheduled_by_and_nothing_that_runs() {
        let (stage, _rolegate) = served("provision-templates").await;
        let (scene, templates) = templates(stage).await;
        for spec in templates.iter().map(|template| &template["spec"]) {
            assert_eq!(spec["nodeSelector"]["rolegate.dev/stage"], scene.stage.namespace, "{spec}");
            assert!(spec.to_string().contains(RACK), "{spec}");
            for container in spec["containers"].as_array().unwrap() {
                let carried: BTreeSet<_> = container.as_object().unwrap().keys().map(String::as_str).collect();
                let known = [
                    "image",
                    "name",
                    "ports",
                    "resources",
                    "imagePullPolicy",
                    "terminationMessagePath",
                    "terminationMessagePolicy",
                ];
                assert!(carried.iter().all(|field| known.contains(field)), "{container}");
            }
            let gates = spec["schedulingGates"].as_array().into_iter().flatten().count();
            assert_eq!(gates, 0, "what is gated is demand nowhere: {spec}");
        }
    }

    #[tokio::test]
    async fn a_class_that_only_checks_is_told_of_nodes_that_come_from_elsewhere() {
        let (stage, _rolegate) = served("provision-check").await;
        let scene = Scene::new(stage, 1, racks(&["r1"]), &json!({ "class": CHECK })).await;
        scene.autoscaler.until_said("Provisioned=False/CapacityIsNotFound").await;
        for number in 0..3 {
            let rack = json!({ (RACK): label(&scene.stage.namespace, "r1") });
            scene.stage.add_node_with(&format!("r1-own{number}"), 5, rack).await;
        }
        scene.until_met().await;
    }

    #[tokio::test]
    async fn nothing_is_asked_for_where_it_is_not_allowed() {
        let (stage, _rolegate) = stage("provision-unallowed").await.serve().await;
        let scene = Scene::new(stage, 1, racks(&["r1"]), &json!({})).await;
        scene.statuses.until("it waits", |status| status.reason() == "NoRoom").await;
        let look = async || scene.requests().await;
        holds(Duration::from_secs(3), "nothing is asked for", look, Vec::is_empty).await;
        let said = "no nodes are requested, since rolegate runs without `--allow provision`";
        scene.statuses.until("it is said", |status| status.0.to_string().contains(said)).await;
        let written = Account::of(&scene.stage).counts();
        let asked =
            written.keys().filter(|what| what.contains("provisioningrequests") || what.contains("podtemplates"));
        assert_eq!(asked.count(), 0, "{written:?}");
    }

    #[tokio::test]
    async fn whoever_may_not_ask_for_nodes_may_not_have_rolegate_ask_for_them() {
        let (stage, _rolegate) = served("provision-rights").await;
        let user = "author-without-requests";
        let own = json!({ "apiGroups": ["rolegate.dev"], "resources": ["rolecoordinations"], "verbs": ["*"] });
        allow(&stage.plane, &stage.namespace, user, &[own]);
        let api = api_of(&client_as(&stage.plane, user).await, ROLE_COORDINATION, &stage.namespace);
        let group = Group::new("pd").role("prefill", 10, 10).role("decode", 5, 5);
        let refused = eventually(PATIENT, "an answer of rolegate", async || {
            match api.create(&PostParams::default(), &typed(coordination(&group, &json!({})))).await {
                Err(kube::Error::Api(status)) if status.message.contains("rolebindings") => Err(status.message),
                Err(error) => Ok(error.to_string()),
                Ok(_) => Ok("taken".to_owned()),
            }
        })
        .await;
        assert!(refused.contains("provisioningrequests"), "{refused}");
    }
}
