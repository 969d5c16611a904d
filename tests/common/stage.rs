//! A namespace for a test, and helpers for its objects.

use std::fmt::Debug;
use std::sync::Arc;

use http_body_util::BodyExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod as ApiPod, ResourceQuota, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use super::build::typed;
use super::control_plane::ControlPlane;
use super::group::{Group, node, object};
use super::ledger;
use super::pods::{GATE, Pod, PodLog, View};
use super::proxy::Proxy;
use super::rolegate::{Launch, Ran, Rolegate, ran};
use super::status::StatusLog;
use super::wait::{PATIENT, eventually, until_found, until_says};

/// A namespace whose pods are watched from the beginning.
pub struct Stage {
    pub plane: Arc<ControlPlane>,
    pub client: Client,
    pub namespace: String,
    pub pods: PodLog,
    /// Of a namespace that was made for this test.
    made: Option<Arc<Made>>,
}

/// A namespaced kind with a type.
pub trait Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned {}

impl<K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned> Kind for K {}

/// A namespace made for a test: it goes when the test ends.
struct Made {
    plane: Arc<ControlPlane>,
    namespace: String,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.plane.forget(&self.namespace);
    }
}

impl Stage {
    /// Creates a stage on the shared control plane.
    pub async fn new(namespace: &str) -> Self {
        Self::on(ControlPlane::shared(), namespace).await
    }

    /// Creates a stage on this control plane.
    pub async fn on(plane: Arc<ControlPlane>, namespace: &str) -> Self {
        let client = plane.client().await;
        make_namespace(&client, namespace, &json!({})).await;
        let made = Made { plane: plane.clone(), namespace: namespace.to_owned() };
        Self { made: Some(Arc::new(made)), ..Self::within(plane, namespace).await }
    }

    /// Creates a second stage in the same namespace, with a watch of its own.
    pub async fn again(&self) -> Self {
        Self { made: self.made.clone(), ..Self::within(self.plane.clone(), &self.namespace).await }
    }

    /// Creates a stage in an existing namespace, such as `default`.
    pub async fn within(plane: Arc<ControlPlane>, namespace: &str) -> Self {
        let client = plane.client().await;
        until_account(&client, namespace).await;
        ledger::count("stages");
        let pods = PodLog::start(&client, namespace).await;
        Self { plane, client, namespace: namespace.to_owned(), pods, made: None }
    }

    /// Returns a launch of rolegate for this namespace.
    pub fn launch(&self) -> Launch {
        Launch::new(self.plane.clone(), self.client.clone(), &self.namespace)
    }

    /// Adds a node with room for this number of pods of this stage.
    pub async fn with_room(self, pods: u32) -> Self {
        self.add_node("all", pods).await;
        self
    }

    /// Starts rolegate.
    pub async fn serve(self) -> (Self, Rolegate) {
        let rolegate = self.launch().start().await;
        (self, rolegate)
    }

    /// Starts rolegate with one more flag.
    pub async fn serve_with(self, flag: &str, value: &str) -> (Self, Rolegate) {
        let rolegate = self.launch().flag(flag, value).start().await;
        (self, rolegate)
    }

    /// Returns a proxy in place of a Service, without targets yet, and a launch of its replicas.
    pub async fn behind_a_service(&self) -> (Proxy, Launch) {
        let service = Proxy::before("127.0.0.1:1".parse().unwrap()).await;
        let launch = self.launch().behind(service.address);
        (service, launch)
    }

    /// Returns the API of a typed namespaced kind.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Merges a patch into an object.
    pub async fn patch<K: Kind>(&self, name: &str, patch: &Value) -> K {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Merges a patch into an object's status.
    pub async fn patch_status<K: Kind>(&self, name: &str, patch: &Value) -> K {
        self.api::<K>().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Patches the status of a pod as kubelets do: strategically.
    pub async fn patch_status_of_pod(&self, name: &str, patch: Value) {
        let (pods, patch) = (self.api::<ApiPod>(), Patch::Strategic(patch));
        pods.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn list<K: Kind>(&self) -> Vec<K> {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Merges a patch into a node.
    pub async fn patch_node(&self, name: &str, patch: &Value) {
        self.nodes().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Merges a patch into a node's status.
    pub async fn patch_node_status(&self, name: &str, patch: &Value) {
        self.nodes().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Returns the output of kubectl in this namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.must(&[&["-n", &self.namespace], arguments].concat(), "")
    }

    /// Labels the namespace: `team=llm`, or `team-` to take the label away.
    pub fn label(&self, label: &str) {
        self.plane.must(&["label", "--overwrite", "namespace", &self.namespace, label], "");
    }

    /// Deletes a pod, and waits until another one of its name passes a test.
    pub async fn replace_pod(&self, name: &str, test: impl Fn(&Pod) -> bool) {
        let uid = self.pods.now(|now| now.named(name).unwrap().uid.clone());
        self.delete::<ApiPod>(name).await;
        let again = |pod: &Pod| pod.uid != uid && test(pod);
        self.pods.until(&format!("{name} again"), |now| now.named(name).is_some_and(again)).await;
    }

    /// Sets a quota of so many pods, and waits until it counts.
    pub async fn quota(&self, pods: u32) {
        let hard = pods.to_string();
        let quota = object("v1", "ResourceQuota", "small").spec(json!({ "hard": { "pods": hard } }));
        let (quotas, apply) = (self.api::<ResourceQuota>(), PatchParams::apply("tests").force());
        quotas.patch("small", &apply, &Patch::Apply(quota)).await.unwrap();
        let look = async || quotas.get("small").await.unwrap().status.unwrap_or_default();
        until_found("a quota that counts", look, |status| {
            status.used.is_some() && status.hard.as_ref().is_some_and(|known| known["pods"].0 == hard)
        })
        .await;
    }

    /// Returns the API of RoleBasedGroups.
    pub fn groups(&self) -> Api<DynamicObject> {
        groups(&self.client, &self.namespace)
    }

    pub fn coordinations(&self) -> Api<DynamicObject> {
        self.objects("rolegate.dev", "v1alpha1", "RoleCoordination")
    }

    /// Returns the API of any namespaced kind.
    pub fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        objects(&self.client, &self.namespace, group, version, kind)
    }

    /// Watches the status of a RoleCoordination.
    pub fn coordination_statuses(&self, name: &str) -> StatusLog {
        StatusLog::start(self.coordinations(), name)
    }

    /// Adds a fake node with room for this number of pods, for pods of this stage only.
    pub async fn add_node(&self, name: &str, room: u32) {
        self.add_node_with(name, room, json!({})).await;
    }

    /// Like [`Stage::add_node`], with these labels.
    pub async fn add_node_with(&self, name: &str, room: u32, labels: Value) {
        self.add_node_like(name, room, &json!({ "metadata": { "labels": labels } })).await;
    }

    /// Like [`Stage::add_node`], with a patch of the node.
    pub async fn add_node_like(&self, name: &str, room: u32, more: &Value) {
        let mut node = node(&format!("{}-{name}", self.namespace), room, &self.namespace);
        json_patch::merge(&mut node, more);
        self.create_node(node).await;
    }

    pub async fn create_node(&self, node: Value) {
        Api::<Node>::all(self.client.clone()).create(&PostParams::default(), &typed(node)).await.unwrap();
    }

    /// Creates the group, then its workloads.
    pub async fn deploy(&self, group: &Group) {
        self.create_group(group).await;
        self.create_sets(group).await;
    }

    /// Like [`Stage::deploy`], with a watch of the status that starts before.
    pub async fn deploy_watched(&self, group: &Group) -> StatusLog {
        let statuses = self.create_watched(group).await;
        self.create_sets(group).await;
        statuses
    }

    /// Creates the group, with a watch of its status that starts before.
    pub async fn create_watched(&self, group: &Group) -> StatusLog {
        let statuses = self.statuses(group);
        self.create_group(group).await;
        statuses
    }

    /// Creates an object of any namespaced kind.
    pub async fn create(&self, object: Value) -> DynamicObject {
        create(&self.client, Some(&self.namespace), object).await
    }

    pub async fn create_group(&self, group: &Group) {
        self.create(group.object()).await;
    }

    /// Creates the group with these coordinations, then its workloads; the watch of its status starts before.
    pub async fn deploy_with(&self, group: &Group, coordination: &Value) -> StatusLog {
        let statuses = self.statuses(group);
        self.create(group.coordinated(coordination)).await;
        self.create_sets(group).await;
        statuses
    }

    /// Creates the workload of one role.
    pub async fn create_set(&self, group: &Group, role: &str) {
        self.create(group.set(group.find(role), &self.namespace)).await;
    }

    pub async fn create_sets(&self, group: &Group) {
        for role in &group.roles {
            self.create(group.set(role, &self.namespace)).await;
        }
    }

    /// Creates workloads that claim the group: they may be scaled, and rolled in lockstep.
    pub async fn create_claimed_sets(&self, group: &Group) {
        for role in &group.roles {
            self.create(group.claimed(&role.name, &self.namespace)).await;
        }
    }

    /// Scales the group, then its workloads, to the replicas in `group`.
    pub async fn scale(&self, group: &Group) {
        let roles = group.object()["spec"]["roles"].clone();
        self.patch_group(group, json!({ "spec": { "roles": roles } })).await;
        for role in &group.roles {
            self.scale_set(group, &role.name, role.replicas).await;
        }
    }

    pub async fn scale_set(&self, group: &Group, role: &str, replicas: u32) {
        let patch = json!({ "spec": { "replicas": replicas } });
        self.patch::<StatefulSet>(&group.set_name(role), &patch).await;
    }

    /// Gives the group these coordinations in place of its own.
    pub async fn recoordinate(&self, group: &Group, coordination: &Value) {
        self.patch_group(group, json!({ "spec": { "coordination": coordination } })).await;
    }

    pub async fn patch_group(&self, group: &Group, patch: Value) {
        self.groups().patch(&group.name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Watches the status of a group.
    pub fn statuses(&self, group: &Group) -> StatusLog {
        StatusLog::start(self.groups(), &group.name)
    }

    /// Creates an object; returns status code, warnings and object of the answer.
    pub async fn post(&self, api: &str, kind: &str, object: &Value) -> Answer {
        let path = format!("{api}/namespaces/{}/{kind}", self.namespace);
        request(&self.client, "POST", &path, "application/json", object).await
    }

    /// Merges a patch into the group; returns the answer with its warnings.
    pub async fn try_patch_group(&self, group: &Group, change: &Value) -> Answer {
        let path = format!("{GROUPS}/namespaces/{}/rolebasedgroups/{}", self.namespace, group.name);
        request(&self.client, "PATCH", &path, "application/merge-patch+json", change).await
    }

    /// Creates a pod without storing it.
    pub async fn try_pod(&self, pod: Value) -> Result<ApiPod, kube::Error> {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        self.api::<ApiPod>().create(&dry_run, &typed(pod)).await
    }

    /// Sends a JSON request; a PATCH is a merge patch. Returns the answer with its warnings.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        request(&self.client, method, path, content, body).await
    }

    /// Runs a rolegate command for this namespace.
    pub async fn run(&self, command: &[&str]) -> Ran {
        ran(&self.plane.kubeconfig, &[command, &["-n", &self.namespace]].concat()).await
    }

    /// Returns the output of a rolegate command for this namespace.
    pub async fn said(&self, command: &[&str]) -> String {
        self.run(command).await.out
    }

    /// Returns the output of `rolegate doctor` for the rolegate of this stage.
    pub async fn doctor(&self) -> String {
        let arguments = ["doctor", "--name", &self.namespace, "--try-in", &self.namespace];
        ran(&self.plane.kubeconfig, &arguments).await.out
    }

    /// Waits until the output of a rolegate command contains this text.
    pub async fn until_said(&self, command: &[&str], text: &str) {
        until_says(text, async || self.said(command).await).await;
    }

    /// Waits for an Event of this namespace with this reason whose message contains all these words.
    pub async fn until_event(&self, reason: &str, words: &[&str]) {
        let texts = |event: Event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        let told = async || self.list::<Event>().await.into_iter().map(texts).collect::<Vec<_>>();
        let fits = |(found, note): &(String, String)| found == reason && words.iter().all(|word| note.contains(word));
        until_found(&format!("{reason} {words:?}"), told, |told| told.iter().any(fits)).await;
    }

    /// Lets held-back pods become ready.
    pub async fn let_ready(&self, which: impl Fn(&Pod) -> bool) {
        for patched in self.patch_ready(which).await {
            patched.unwrap();
        }
    }

    /// Like [`Stage::let_ready`], but ignores pods that vanish meanwhile.
    pub async fn try_let_ready(&self, which: impl Fn(&Pod) -> bool) {
        self.patch_ready(which).await;
    }

    /// Lets held-back pods become ready as they come, until the existing pods pass a test.
    pub async fn let_ready_until(&self, which: impl Fn(&Pod) -> bool, done: impl Fn(&View) -> bool) {
        eventually(PATIENT, "pods that get ready", async || {
            self.try_let_ready(&which).await;
            self.pods.now(|now| if done(now) { Ok(()) } else { Err(now.to_string()) })
        })
        .await;
    }

    async fn patch_ready(&self, which: impl Fn(&Pod) -> bool) -> Vec<Result<ApiPod, kube::Error>> {
        let key = "kwok.rolegate.dev/not-ready";
        let waiting = |pod: &&Pod| pod.annotations.contains_key(key) && which(pod);
        let names: Vec<_> =
            self.pods.now(|now| now.all().filter(waiting).map(|pod| pod.name.clone()).collect::<Vec<_>>());
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: null } } }));
        let (api, params) = (self.api::<ApiPod>(), PatchParams::default());
        let patches = names.iter().map(|name| api.patch(name, &params, &patch));
        futures::future::join_all(patches).await
    }
}

/// True for a pod of the API server that has our gate.
pub fn is_held(pod: &ApiPod) -> bool {
    let mut gates = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
    gates.any(|gate| gate.name == GATE)
}

/// Creates a namespace with labels, and waits for its default service account: without it pods are refused.
pub async fn make_namespace(client: &Client, name: &str, labels: &Value) {
    let namespace = json!({ "metadata": { "name": name, "labels": labels } });
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &typed(namespace)).await.unwrap();
    until_account(client, name).await;
}

async fn until_account(client: &Client, namespace: &str) {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    eventually(PATIENT, "the service account of the namespace", async || accounts.get("default").await).await;
}

/// Creates an object of any kind, in a namespace or in none.
pub async fn create(client: &Client, namespace: Option<&str>, object: Value) -> DynamicObject {
    let text = |field: &str| object[field].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    api.create(&PostParams::default(), &typed(object)).await.unwrap()
}

/// Returns the API of RoleBasedGroups in a namespace.
pub fn groups(client: &Client, namespace: &str) -> Api<DynamicObject> {
    objects(client, namespace, "workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup")
}

/// Returns the API of any namespaced kind in a namespace.
fn objects(client: &Client, namespace: &str, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// Path of the core API.
pub const CORE: &str = "/api/v1";
/// Path of the API of RoleBasedGroups.
pub const GROUPS: &str = "/apis/workloads.x-k8s.io/v1alpha1";

/// An answer of the API server, with parts that typed clients hide.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

async fn request(client: &Client, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let response = client.send(request.body(body.to_string().into_bytes().into()).unwrap()).await.unwrap();
    // The header is `299 - "text"`, with escaped quotes and backslashes.
    let text = |value: &http::HeaderValue| {
        let text = value.to_str().unwrap().strip_prefix("299 - \"").unwrap().strip_suffix('"').unwrap();
        text.replace("\\\"", "\"").replace("\\\\", "\\")
    };
    let warnings = response.headers().get_all("warning").iter().map(text).collect();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer { code, warnings, body: serde_json::from_slice(&body).unwrap() }
}
