//! The control plane of this suite, with LeaderWorkerSets and an audit log, and what its tests put there.

use crate::common::prelude::*;

pub const RACK: &str = "example.com/rack";
pub const HOST: &str = "kubernetes.io/hostname";
/// Name of the ClusterTopology with the layers host and rack.
pub const LAYERS: &str = "hosts-in-racks";
/// KEP-75: the batch that a pod is in.
pub const BATCH: &str = "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name";
/// KEP-75: the ordinal of the pod's replica.
pub const INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";

static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok,lws", &["--audit"]);
    // Here, before any rolegate: it belongs to no namespace, and webhooks of tests that are over would be asked.
    plane.must(&["create", "-f", "-"], &layers().to_string());
    plane
});

/// A namespace on the control plane that all tests of this suite share.
pub async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}

/// The ClusterTopology of all tests.
fn layers() -> Value {
    object("rolegate.dev/v1alpha1", "ClusterTopology", LAYERS)
        .spec(json!({ "layers": [{ "name": "host", "key": HOST }, { "name": "rack", "key": RACK }] }))
}

/// Adds nodes named after their rack, each with room for so many pods.
pub async fn add_rack(stage: &Stage, rack: &str, hosts: &[&str], room: u32) {
    for host in hosts {
        stage.add_node_with(&format!("{rack}-{host}"), room, json!({ (RACK): rack })).await;
    }
}

/// A stage with racks: their hosts, and the room on each.
pub async fn in_racks(namespace: &str, racks: &[(&str, &[&str], u32)]) -> Stage {
    let stage = stage(namespace).await;
    for (rack, hosts, room) in racks {
        add_rack(&stage, rack, hosts, *room).await;
    }
    stage
}

/// A stage with one rack, which is served.
pub async fn with_rack(namespace: &str, rack: &str, hosts: &[&str], room: u32) -> (Stage, Rolegate) {
    in_racks(namespace, &[(rack, hosts, room)]).await.serve().await
}

/// What `rolegate explain` says of a pod.
pub async fn explain(stage: &Stage, pod: &str) -> String {
    stage.said(&["explain", "pod", pod]).await
}

/// The rack of a pod's node.
pub fn rack_of(stage: &Stage, pod: &Pod) -> Option<String> {
    let name = pod.node.as_deref()?.strip_prefix(&stage.namespace)?.strip_prefix('-')?;
    name.split('-').next().map(str::to_owned)
}

/// The group with another coordination than segments.
pub fn coordinated(group: &Group, coordination: &Value) -> Value {
    group.coordinated(&json!([coordination]))
}

/// Creates the group with this coordination, and then its workloads.
pub async fn deploy(stage: &Stage, group: &Group, coordination: &Value) -> StatusLog {
    stage.deploy_with(group, &json!([coordination])).await
}

/// KEP-75: steps of these roles in one domain of a layer.
pub fn rolling_deploy(layer: &str, mode: &str, step: &Value) -> Value {
    let constraint = json!({ "clusterTopologyName": LAYERS, "topologyLayerName": layer, "constraintMode": mode });
    let deploy = json!({ "roleDeployStep": step, "deployTopologyConstraint": constraint });
    json!({ "name": "pd", "strategy": { "rollingDeploy": deploy } })
}

/// The domains of each batch, by a look at the pods' labels.
pub fn domains(now: &View, domain: impl Fn(&Pod) -> Option<String>) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let mut domains: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for pod in now.all() {
        let batch = pod.labels.get(BATCH).cloned().unwrap_or_default();
        domains.entry(batch).or_default().insert(domain(pod));
    }
    domains
}

/// Each batch is in one domain, and no two are in the same.
pub fn each_batch_alone(domains: &BTreeMap<String, BTreeSet<Option<String>>>) {
    let used: BTreeSet<_> = domains.values().flatten().collect();
    let together = domains.values().all(|domains| domains.len() == 1);
    assert!(together && used.len() == domains.len() && !used.contains(&None), "{domains:?}");
}

/// The pods as the API server has them, in order of their names.
pub async fn stored(stage: &Stage) -> Vec<ApiPod> {
    stage.list().await
}

/// Reviews of new pods so far: those that were changed, and those that were as they should be.
pub async fn verdicts(rolegate: &Rolegate) -> [u32; 2] {
    let of = async |verdict: &str| {
        let labels = format!(r#"{{resource="pods",operation="CREATE",verdict="{verdict}"}}"#);
        let count = rolegate.metric(&format!("rolegate_reviews_total{labels}")).await;
        count.to_string().parse().unwrap()
    };
    [of("patched").await, of("allowed").await]
}

/// Starts a rolegate, and takes the right to read these resources from it, as rules of its role name them.
pub async fn without_a_right(stage: &Stage, resources: &str, is_taken: impl Fn(&Value) -> bool) -> Rolegate {
    let mut rolegate = stage.launch().start().await;
    rolegate.overlooks_refusals = true;
    let role = stage.plane.must(&["get", "clusterrole", &stage.namespace, "-o", "json"], "");
    let mut role: Value = serde_json::from_str(&role).unwrap();
    role["rules"].as_array_mut().unwrap().retain(|rule| !is_taken(rule));
    stage.plane.must(&["replace", "-f", "-"], &role.to_string());
    let account = format!("--as=system:serviceaccount:{SYSTEM}:{}", stage.namespace);
    let asked = async || stage.plane.kubectl(&["auth", "can-i", "list", resources, &account], "").stdout;
    until_found("the right is gone", asked, |said| said.starts_with(b"no")).await;
    rolegate
}

/// A policy that changes the pods of a stage before webhooks are asked, and again when one has changed them.
pub fn change_pods(stage: &Stage, change: &str) {
    let name = &stage.namespace;
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let pods = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] });
    let policy = object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", name).spec(json!({
        "matchConstraints": { "namespaceSelector": here, "resourceRules": [pods] },
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "mutations": [{ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": change } }],
    }));
    let binding = object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", name)
        .spec(json!({ "policyName": name }));
    stage.plane.must(&["create", "-f", "-"], &policy.to_string());
    stage.plane.must(&["create", "-f", "-"], &binding.to_string());
}
