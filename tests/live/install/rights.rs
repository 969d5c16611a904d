//! Least rights: of what is granted everything is used, and nothing is asked for that is not granted.

use crate::common::account::manifests;
use crate::common::prelude::*;
use crate::install::support::{WITH_CERT_MANAGER, install};
use crate::rules::definitions::{install as define, loose, upstream_pod_groups};

/// A verb on a resource, as `patch apps/statefulsets`.
pub type Uses = BTreeSet<String>;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name_use(verb: &str, group: &str, resource: &str) -> String {
    format!("{verb} {group}/{resource}")
}

/// Everything that is granted.
pub fn granted(yaml: &str) -> Uses {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let mut uses = Uses::new();
    for rule in documents.iter().flat_map(|document| document["rules"].as_array().into_iter().flatten()) {
        let all = |field: &str| rule[field].as_array().unwrap().iter().map(text);
        let of_group = |group| all("resources").map(move |resource| (group, resource));
        for (group, resource) in all("apiGroups").flat_map(of_group) {
            uses.extend(all("verbs").map(|verb| name_use(verb, group, resource)));
        }
    }
    uses
}

/// What an account has used so far, and what it was refused.
pub fn used(plane: &ControlPlane, account: &str) -> (Uses, Uses) {
    let account = format!("system:serviceaccount:{SYSTEM}:{account}");
    let (mut used, mut refused) = (Uses::new(), Uses::new());
    for line in std::fs::read_to_string(plane.dir.join("log/audit.jsonl")).unwrap().lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["user"]["username"] != account.as_str() || event["objectRef"].is_null() {
            continue;
        }
        let object = &event["objectRef"];
        let resource = [text(&object["resource"]), text(&object["subresource"])].join("/");
        let what = name_use(text(&event["verb"]), text(&object["apiGroup"]), resource.trim_end_matches('/'));
        // What a PUT or an apply makes is asked for as a creation as well.
        if event["responseStatus"]["code"] == 201 {
            used.insert(what.split_once(' ').map(|(_, resource)| format!("create {resource}")).unwrap());
        }
        if event["responseStatus"]["code"] == 403 {
            refused.insert(format!("{what} in {:?}", text(&object["namespace"])));
        }
        used.insert(what);
    }
    (used, refused)
}

/// A group with a PodGroup for each batch, and its pods.
async fn with_pod_groups(stage: &Stage, name: &str, policy: &Value) {
    let group = Group::new(name).role("main", 2, 2);
    let constraint = json!({
        "clusterTopologyName": "ours", "topologyLayerName": "host", "constraintMode": "soft", "podGroupPolicy": policy,
    });
    let deploy = json!({ "roleDeployStep": { "main": 2 }, "deployTopologyConstraint": constraint });
    stage.create(group.coordinated(&json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }]))).await;
    stage.create_sets(&group).await;
}

/// A group of the other API group, and one of our own kind over three kinds of workloads.
async fn of_other_kinds(stage: &Stage) {
    let other = Group::new("other").role("main", 2, 1);
    let mut object = other.object();
    object["apiVersion"] = json!("workloads.instai.io/v1alpha1");
    stage.create(object).await;
    stage.create_sets(&other).await;

    stage.create_sets(&Group::new("own").role("a", 1, 1)).await;
    let mut own = of_three_kinds("own");
    own["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": "enabled" });
    stage.create(own).await;
}

/// A RoleCoordination whose roles are of a kind each.
fn of_three_kinds(name: &str) -> Value {
    let group = Group::new(name).role("a", 1, 1).role("b", 1, 1).role("c", 1, 1);
    let mut object = group.coordination();
    for (at, kind) in ["StatefulSet", "Deployment", "LeaderWorkerSet"].iter().enumerate() {
        object["spec"]["roles"][at]["workloadRef"]["kind"] = json!(kind);
    }
    object
}

/// A workload of each kind that is scaled with its group.
async fn elastic(stage: &Stage) {
    let group = Group::new("elastic").role("a", 0, 1).role("b", 0, 1).role("c", 0, 1);
    let deployment = group.deployment("b", &stage.namespace, &json!({}));
    let leaders = group.leader_worker_set("c", 1, &stage.namespace, &json!({}));
    for (role, mut object) in [("a", group.claimed("a", &stage.namespace)), ("b", deployment), ("c", leaders)] {
        object["metadata"]["labels"] = json!({ "rolegate.dev/group": "elastic", "rolegate.dev/role": role });
        stage.create(object).await;
    }
    let mut own = of_three_kinds("elastic");
    own["spec"]["segments"] = json!(1);
    stage.create(own).await;
}

/// Workloads that a rollout froze which nothing coordinates any longer: they are thawed.
async fn frozen_by_nobody(stage: &Stage) {
    let group = Group::new("own").role("a", 0, 1);
    let set = group.claimed("a", &stage.namespace);
    let leaders = group.leader_worker_set("a", 1, &stage.namespace, &json!({}));
    let frozen = json!({ "partition": i32::MAX });
    for (mut object, field, of_kind) in [
        (set.clone(), "updateStrategy", json!({ "rollingUpdate": frozen })),
        (leaders, "rolloutStrategy", json!({ "rollingUpdateConfiguration": frozen })),
    ] {
        object["metadata"]["name"] = json!("frozen");
        object["metadata"]["labels"] = set["metadata"]["labels"].clone();
        object["metadata"]["annotations"] = json!({ "rolegate.dev/user-partition": "0" });
        object["spec"][field] = of_kind;
        stage.create(object).await;
    }
}

/// A ClusterTopology of both API groups, and its end: only then is there a finalizer to be taken.
async fn topologies(stage: &Stage) {
    for (group, name) in [("rolegate.dev", "ours"), ("workloads.x-k8s.io", "theirs"), ("rolegate.dev", "unused")] {
        let path = format!("/apis/{group}/v1alpha1/clustertopologies");
        let layers = json!([{ "name": "host", "key": "kubernetes.io/hostname" }]);
        let topology = object(&format!("{group}/v1alpha1"), "ClusterTopology", name).spec(json!({ "layers": layers }));
        let created = stage.send("POST", &path, &topology).await;
        assert_eq!(created.code, 201, "{created:?}");
        if name != "ours" {
            let deleted = stage.send("DELETE", &format!("{path}/{name}"), &json!({})).await;
            assert_eq!(deleted.code, 200, "{deleted:?}");
        }
    }
}

/// Pods that name what is not there: it is looked for.
async fn pods_that_are_ahead(stage: &Stage) {
    let bare = |name: &str, labels: Value, annotations: Value| {
        let mut pod = Group::new("none").pod("main", name, &stage.namespace);
        pod["metadata"]["labels"] = labels;
        pod["metadata"]["annotations"] = annotations;
        pod
    };
    let of_set = json!({ "app.kubernetes.io/part-of": "no-set", "grove.io/podclique": "no-set-0-main" });
    let all = [
        bare("of-grove", of_set, json!({})),
        bare("of-kai", json!({}), json!({ "pod-group-name": "no-pod-group" })),
        Group::new("no-group").pod("main", "of-nobody", &stage.namespace),
    ];
    for pod in all {
        stage.create(pod).await;
    }
    let levels = json!({ "topology": "no-topology", "requiredTopologyLevel": "rack" });
    // One without subgroups is not judged, and nothing is looked up for it.
    let leaf = json!({ "name": "leaf", "minMember": 1 });
    let pod_group = object("scheduling.run.ai/v2alpha2", "PodGroup", "by-hand")
        .spec(json!({ "minMember": 1, "topologyConstraint": levels, "subGroups": [leaf] }));
    stage.create(pod_group).await;
}

/// A KAI PodGroup that has its pods placed, by a level of KAI's Topology.
async fn placed_by_their_pod_group(stage: &Stage) {
    let topology = object("kai.scheduler/v1alpha1", "Topology", "levels")
        .spec(json!({ "levels": [{ "nodeLabel": "kubernetes.io/hostname", "alias": "host" }] }));
    let created = stage.send("POST", "/apis/kai.scheduler/v1alpha1/topologies", &topology).await;
    assert_eq!(created.code, 201, "{created:?}");
    let constraint = json!({ "topology": "levels", "requiredTopologyLevel": "host" });
    let mut pod_group = object("scheduling.run.ai/v2alpha2", "PodGroup", "placed")
        .spec(json!({ "minMember": 2, "topologyConstraint": constraint }));
    pod_group["metadata"]["annotations"] = json!({ "rolegate.dev/place": "enabled" });
    stage.create(pod_group).await;
    for name in ["placed-0", "placed-1"] {
        let mut pod = Group::new("none").pod("main", name, &stage.namespace);
        pod["metadata"]["labels"] = json!({});
        pod["metadata"]["annotations"] = json!({ "pod-group-name": "placed" });
        let created = stage.post(CORE, "pods", &pod).await;
        assert_eq!(created.code, 201, "{created:?}");
        assert!(!created.body["spec"]["schedulingGates"].is_null(), "{created:?}");
    }
}

fn is_ready(now: &View, names: &str, count: usize) -> bool {
    now.count_all(|pod| pod.name.starts_with(names) && pod.ready) == count
}

/// The definition of a kind that belongs to no namespace.
fn of_cluster(mut definition: Value) -> Value {
    definition["spec"]["scope"] = json!("Cluster");
    definition
}

/// The definition of a kind that can be scaled.
fn with_scale(mut definition: Value) -> Value {
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["subresources"]["scale"] = scale.clone();
    }
    definition
}

#[tokio::test]
async fn every_right_is_used_and_none_is_missing() {
    // An API server that streams no lists, as those before 1.34 do not: it is asked for pages, and that takes rights as well.
    let pages = ["--apiserver-flag", "feature-gates=WatchList=false"];
    let plane = ControlPlane::start_with_groups("kwok", &["--audit", pages[0], pages[1]]);
    let pod_groups = |group: &str, version: &str| loose(group, "PodGroup", "podgroups", &[(version, true, &[])]);
    let definitions = [
        upstream_pod_groups(),
        pod_groups("scheduling.x-k8s.io", "v1alpha1"),
        pod_groups("scheduling.volcano.sh", "v1beta1"),
        loose("grove.io", "PodCliqueSet", "podcliquesets", &[("v1alpha1", true, &[])]),
        loose("grove.io", "PodGangSet", "podgangsets", &[("v1alpha1", true, &[])]),
        with_scale(loose("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets", &[("v1", true, &[])])),
        of_cluster(loose("kai.scheduler", "Topology", "topologies", &[("v1alpha1", true, &[])])),
    ];
    define(&plane, &definitions);
    let installed = install(plane, &["--allow", "scale"]).await;
    let plane = &installed.plane;
    let stage = Stage::on(plane.clone(), "broad").await.with_room(60).await;
    let rolegate = installed.serve(&stage).await;

    topologies(&stage).await;
    of_other_kinds(&stage).await;
    frozen_by_nobody(&stage).await;
    elastic(&stage).await;
    pods_that_are_ahead(&stage).await;
    let policies = [
        ("kube", json!({ "kubeScheduling": {} })),
        ("volcano", json!({ "volcanoScheduling": {} })),
        ("kai", json!({ "kai": { "queue": "q" } })),
    ];
    for (name, policy) in &policies {
        with_pod_groups(&stage, name, policy).await;
    }
    placed_by_their_pod_group(&stage).await;
    // Nodes are looked at for pods that must share one.
    let affinity = json!({ "topologyKey": "kubernetes.io/hostname", "ratios": { "main": 2 } });
    let one = json!([{ "name": "one", "strategy": { "affinityScheduling": affinity } }]);
    let together = Group::new("together").role("main", 2, 2).coordinated(&one);
    stage.create(together).await;
    // So are claims of volumes and of devices, where pods have some.
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let devices = json!([{ "name": "gpus", "resourceClaimTemplateName": "gpus" }]);
    let claims = json!({ "spec": { "volumes": volumes, "resourceClaims": devices } });
    stage.create_sets(&Group::new("together").role("main", 2, 2).template(&claims)).await;
    let group = Group::new("llm").role("prefill", 20, 2).role("decode", 10, 1);
    stage.deploy(&group).await;
    stage.pods.until("all are ready", |now| is_ready(now, "llm-", 30)).await;
    let with_pod_groups = |now: &View| policies.iter().all(|(name, _)| is_ready(now, name, 2));
    stage.pods.until("those with PodGroups too", with_pod_groups).await;
    // Batches that are no more take their PodGroups with them.
    for (name, _) in &policies {
        stage.scale(&Group::new(name).role("main", 0, 2)).await;
    }
    stage.pods.until("those that a PodGroup places", |now| is_ready(now, "placed-", 2)).await;
    assert!(stage.pods.births().iter().filter(|pod| !pod.role.is_empty()).all(Pod::is_held));
    // Pods that do not appear are asked after, and the next leader tells again what holds a segment.
    stage.create_group(&Group::new("few").role("main", 4, 2)).await;
    stage.create_sets(&Group::new("few").role("main", 1, 2)).await;
    let slow = Group::new("slow").role("main", 2, 1).held_back();
    let statuses = stage.deploy_watched(&slow).await;
    statuses.until("its second segment is held", |status| status.reason() == "PreviousSegmentNotReady").await;
    rolegate.kill().await;
    let _rolegate = installed.serve(&stage).await;
    // A Secret that somebody spoiled is made good.
    let spoil = json!({ "data": { "tls.crt": "", "tls.key": "" } }).to_string();
    plane.must(&["patch", "secret", "rolegate-certificates", "-n", SYSTEM, "-p", &spoil], "");

    let granted = granted(&manifests(&["--part", "rbac", "--allow", "scale", "--without", "aggregated-roles"]));
    assert!(granted.len() > 50, "{granted:?}");
    let unused = async || granted.difference(&used(plane, "rolegate").0).cloned().collect::<Vec<_>>();
    until_found("every right is used", unused, Vec::is_empty).await;
    let (used, refused) = used(plane, "rolegate");
    assert!(refused.is_empty(), "{refused:#?}");
    let beyond: Vec<_> = used.difference(&granted).collect();
    assert!(beyond.is_empty(), "used without being granted: {beyond:?}");
}

#[tokio::test]
async fn what_is_not_granted_is_refused() {
    let can = |verb: &str, what: &str, namespace: &str| {
        let account = format!("system:serviceaccount:{SYSTEM}:rolegate");
        // For kubectl itself a slash stands before a name.
        let (resource, part) = what.split_once(':').unwrap_or((what, ""));
        let part = format!("--subresource={part}");
        let asked = ["auth", "can-i", verb, resource, &part, "-n", namespace, "--as", &account];
        let output = WITH_CERT_MANAGER.get().kubectl(&asked, "");
        String::from_utf8(output.stdout).unwrap().trim() == "yes"
    };
    until_is("the account has its rights", async || can("patch", "pods", "default"), true).await;
    // With cert-manager not even its own Secrets and webhook configurations.
    let webhooks = ["mutatingwebhookconfigurations/rolegate", "validatingwebhookconfigurations/rolegate"];
    for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
        for namespace in ["default", "kube-system", SYSTEM] {
            assert!(!can(verb, "secrets", namespace), "{verb} secrets in {namespace}");
        }
        assert!(webhooks.iter().all(|what| !can(verb, what, "default")), "{verb} webhook configurations");
    }
    for what in [
        "create pods",
        "delete pods",
        "patch statefulsets:scale",
        "patch deployments:scale",
        "create clusterrolebindings",
        "get nodes:proxy",
    ] {
        let (verb, resource) = what.split_once(' ').unwrap();
        assert!(!can(verb, resource, "default"), "{what}");
    }
}
