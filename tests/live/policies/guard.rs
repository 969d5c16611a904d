//! Who may open a hold, and who is not in its way.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::PropagationPolicy;

use crate::common::policies::policies_fit_the_types;
use crate::common::prelude::*;
use crate::policies::cluster::{Answer, WITH_POLICIES, client_as, grant, released, try_patch};

/// rolegate and the Job of its uninstall, as the manifests name them.
const ROLEGATE: &str = "system:serviceaccount:rolegate-system:rolegate";
const UNINSTALL: &str = "system:serviceaccount:rolegate-system:rolegate-uninstall";

fn held_pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": {"rolegate.dev/group": "llm", "rolegate.dev/role": "prefill", "app": "llm",
                "rolebasedgroup.workloads.x-k8s.io/role-instance-index": "7", "apps.kubernetes.io/pod-index": "7"},
            "annotations": {"rolegate.dev/held-by": "llm/segments"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": [{"name": "rolegate.dev/hold"}, {"name": "example.com/other"}],
        },
    })
}

struct Scene {
    plane: Arc<ControlPlane>,
    namespace: &'static str,
    admin: Api<Pod>,
}

impl Scene {
    /// A namespace where operators may do everything to pods, and the guard is in force.
    async fn new(name: &'static str) -> Self {
        let plane = WITH_POLICIES.get();
        let client = plane.client().await;
        make_namespace(&client, name, &json!({})).await;
        let everything = json!({"apiGroups": ["", "policy"], "verbs": ["*"], "resources": ["pods", "pods/status", "pods/binding",
            "pods/eviction", "pods/ephemeralcontainers", "pods/resize"]});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("{name}-operators")}, "rules": [everything]});
        plane.must(&["create", "-f", "-"], &role.to_string());
        for user in ["operator", "releaser", ROLEGATE, UNINSTALL] {
            grant(&plane, name, &format!("{name}-operators"), user);
        }
        grant(&plane, name, "rolegate-release-holds", "releaser");
        let scene = Self { plane, namespace: name, admin: Api::namespaced(client, name) };
        scene.create("probe").await;
        let operator = scene.as_user("operator").await;
        let release = Patch::Strategic(released());
        let answer = async || try_patch(&operator, "probe", &release).await;
        until_found("the guard is in force", answer, |answer| answer.is_refused("")).await;
        scene
    }

    async fn as_user(&self, user: &str) -> Api<Pod> {
        Api::namespaced(client_as(&self.plane, user).await, self.namespace)
    }

    async fn create(&self, name: &str) {
        self.admin.create(&PostParams::default(), &typed(held_pod(name))).await.unwrap();
    }

    async fn gates(&self, name: &str) -> Vec<String> {
        let gates = self.admin.get(name).await.unwrap().spec.unwrap().scheduling_gates;
        gates.into_iter().flatten().map(|gate| gate.name).collect()
    }
}

async fn patch(api: &Api<Pod>, name: &str, patch: Value) -> Answer {
    Answer::of(api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await)
}

fn refused(answer: &Answer, words: &str) {
    assert!(answer.is_refused(words), "{answer:?}");
}

/// The API server checks expressions against the types it knows, and writes down what does not fit.
#[tokio::test]
async fn expressions_fit_the_types() {
    policies_fit_the_types(&WITH_POLICIES.get().client().await, 6).await;
}

#[tokio::test]
async fn a_hold_is_opened_only_with_the_right_to() {
    let scene = Scene::new("guard-release").await;
    let operator = scene.as_user("operator").await;
    scene.create("a").await;
    let answer = patch(&operator, "a", released()).await;
    let why = "the pod waits for its batch, and may be released only by rolegate or with the right to release \
               holds.rolegate.dev in namespace \"guard-release\"; `rolegate explain pod a` says what it waits for";
    assert_eq!(answer, Answer::Refused(why.to_owned()));
    let all_gates: json_patch::Patch = typed(json!([{"op": "remove", "path": "/spec/schedulingGates"}]));
    let by_path = operator.patch("a", &PatchParams::default(), &Patch::<()>::Json(all_gates)).await;
    refused(&Answer::of(by_path), "may be released only by rolegate");
    let mut whole = operator.get("a").await.unwrap();
    whole.spec.as_mut().unwrap().scheduling_gates = None;
    let replaced = operator.replace("a", &PostParams::default(), &whole).await;
    refused(&Answer::of(replaced), "may be released only by rolegate");
    assert_eq!(scene.gates("a").await, ["rolegate.dev/hold", "example.com/other"]);

    // Other gates are not ours.
    let other = json!({"spec": {"schedulingGates": [{"name": "example.com/other", "$patch": "delete"}]}});
    assert_eq!(patch(&operator, "a", other).await, Answer::Admitted);

    for (name, user) in [("b", "releaser"), ("c", ROLEGATE), ("d", UNINSTALL)] {
        scene.create(name).await;
        assert_eq!(patch(&scene.as_user(user).await, name, released()).await, Answer::Admitted, "{user}");
        assert_eq!(scene.gates(name).await, ["example.com/other"]);
    }
    assert_eq!(patch(&scene.admin, "a", released()).await, Answer::Admitted);

    // The right is one in a namespace.
    let elsewhere = Scene::new("guard-elsewhere").await;
    elsewhere.plane.must(&["-n", "guard-elsewhere", "delete", "rolebinding", "rolegate-release-holds-releaser"], "");
    let releaser = elsewhere.as_user("releaser").await;
    let release = Patch::Strategic(released());
    let answer = async || try_patch(&releaser, "probe", &release).await;
    until_found("the binding is gone", answer, |answer| answer.is_refused("")).await;
}

#[tokio::test]
async fn a_held_pod_stays_who_it_is() {
    let scene = Scene::new("guard-labels").await;
    let operator = scene.as_user("operator").await;
    scene.create("a").await;
    let changes = [
        ("labels", "rolegate.dev/group", json!("other")),
        ("labels", "rolegate.dev/group", json!(null)),
        ("labels", "rolebasedgroup.workloads.x-k8s.io/role-instance-index", json!("0")),
        ("labels", "coordination.workloads.x-k8s.io/pd", json!("member")),
        ("labels", "rbg.workloads.x-k8s.io/group-name", json!("other")),
        ("labels", "apps.kubernetes.io/pod-index", json!("0")),
        ("annotations", "rolegate.dev/held-by", json!("nobody")),
        ("annotations", "rolegate.dev/held-by", json!(null)),
    ];
    for (map, key, value) in changes {
        let change = json!({"metadata": {map: {key: value}}});
        let words = format!("metadata.{map}[{key}] may not change while the pod is held");
        refused(&patch(&operator, "a", change.clone()).await, &words);
        let params = PatchParams::default();
        let by_status = operator.patch_status("a", &params, &Patch::Strategic(change.clone())).await;
        refused(&Answer::of(by_status), &words);
    }
    assert_eq!(patch(&operator, "a", json!({"metadata": {"labels": {"app": "other"}}})).await, Answer::Admitted);
    let change = json!({"metadata": {"labels": {"rolegate.dev/group": "other"}}});
    assert_eq!(patch(&scene.as_user("releaser").await, "a", change.clone()).await, Answer::Admitted);

    // Who it is matters no longer once it is released.
    assert_eq!(patch(&scene.admin, "a", released()).await, Answer::Admitted);
    let change =
        json!({"metadata": {"labels": {"rolegate.dev/group": "llm"}, "annotations": {"rolegate.dev/held-by": null}}});
    assert_eq!(patch(&operator, "a", change).await, Answer::Admitted);
}

#[tokio::test]
async fn no_subresource_is_a_way_around() {
    let scene = Scene::new("guard-subresources").await;
    let operator = scene.as_user("operator").await;
    scene.create("a").await;
    let before = scene.admin.get("a").await.unwrap();
    let change = json!({"metadata": {"labels": {"rolegate.dev/group": "other"}}, "spec": {"schedulingGates": null}});
    let params = PatchParams::default();
    let patch = |extra: Value| {
        let mut patch = change.clone();
        json_patch::merge(&mut patch, &extra);
        Patch::Merge(patch)
    };
    // What these do not change they drop without a word.
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "none"}]}});
    _ = operator.patch_ephemeral_containers("a", &params, &patch(debugger)).await;
    _ = operator.patch_resize("a", &params, &patch(json!({}))).await;
    let node = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    let bound: Result<Value, _> = operator.create_subresource("binding", "a", &PostParams::default(), &node).await;
    assert!(matches!(&bound, Err(kube::Error::Api(status)) if status.message.contains("schedulingGates")), "{bound:?}");
    let after = scene.admin.get("a").await.unwrap();
    assert_eq!(after.metadata.labels, before.metadata.labels);
    assert_eq!(scene.gates("a").await, ["rolegate.dev/hold", "example.com/other"]);
}

#[tokio::test]
async fn nobody_else_is_hindered() {
    let scene = Scene::new("guard-others").await;
    let operator = scene.as_user("operator").await;
    // Conditions are written by the scheduler and by kubelets.
    scene.create("a").await;
    let condition = json!({"status": {"conditions": [{"type": "example.com/seen", "status": "True"}]}});
    let written = operator.patch_status("a", &PatchParams::default(), &Patch::Strategic(condition)).await;
    assert_eq!(Answer::of(written), Answer::Admitted);
    // A finalizer comes, the pod goes, the finalizer is taken away.
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    assert_eq!(patch(&operator, "a", finalizers(json!(["example.com/last"]))).await, Answer::Admitted);
    operator.delete("a", &DeleteParams::default()).await.unwrap();
    let gone = Patch::Merge(finalizers(json!([])));
    assert_eq!(Answer::of(operator.patch("a", &PatchParams::default(), &gone).await), Answer::Admitted);
    until_found("the pod is gone", async || operator.get_opt("a").await.unwrap(), Option::is_none).await;
    // Evictions of held pods.
    scene.create("b").await;
    let eviction: Eviction = typed(json!({"metadata": {"name": "b"}}));
    let eviction = operator.create_subresource::<_, Value>("eviction", "b", &PostParams::default(), &eviction).await;
    assert!(eviction.is_ok(), "{eviction:?}");
    // The garbage collector takes away what belongs to a workload, in either order.
    for policy in [PropagationPolicy::Foreground, PropagationPolicy::Background] {
        goes_with_its_workload(&scene.plane.client().await, scene.namespace, policy).await;
    }
}

async fn goes_with_its_workload(client: &Client, namespace: &str, policy: PropagationPolicy) {
    let (sets, pods): (Api<StatefulSet>, Api<Pod>) =
        (Api::namespaced(client.clone(), namespace), Api::namespaced(client.clone(), namespace));
    let mut template = held_pod("unused");
    template["metadata"] =
        json!({"labels": {"app": "owned", "rolegate.dev/group": "llm", "rolegate.dev/role": "prefill"}});
    let set = json!({"metadata": {"name": "owned"}, "spec": {"replicas": 3, "serviceName": "owned",
        "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "owned"}}, "template": template}});
    sets.create(&PostParams::default(), &typed(set)).await.unwrap();
    let owned = ListParams::default().labels("app=owned");
    let count = async || pods.list(&owned).await.unwrap().items.len();
    until_is("three held pods", count, 3).await;
    sets.delete("owned", &DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() }).await.unwrap();
    until_is("all of them gone", count, 0).await;
    until_found("and the workload", async || sets.get_opt("owned").await.unwrap(), Option::is_none).await;
}
