//! A control plane with the policies installed, as a user installs them.

use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Config;
use kube::api::ApiResource;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, Status};
use rolegate::api::ObjectKind;

use crate::common::account::manifests;
use crate::common::control_plane::{kubernetes, rolegate_binary};
use crate::common::prelude::*;

/// Where the policies lie, as seen from the crate's root.
pub const POLICIES: &str = "policies";

/// Group, versions (the first is stored), kind, plural and scope of a definition.
pub type Defined<'a> = (&'a str, &'a [&'a str], &'a str, &'a str, &'a str);

/// The kinds that are judged.
const KINDS: &[Defined<'_>] = &[
    ("workloads.x-k8s.io", &["v1alpha1", "v1alpha2"], "RoleBasedGroup", "rolebasedgroups", "Namespaced"),
    ("workloads.instai.io", &["v1alpha1"], "RoleBasedGroup", "rolebasedgroups", "Namespaced"),
    ("rolegate.dev", &["v1alpha1"], "RoleCoordination", "rolecoordinations", "Namespaced"),
    ("rolegate.dev", &["v1alpha1"], "ClusterTopology", "clustertopologies", "Cluster"),
    ("workloads.x-k8s.io", &["v1alpha1"], "ClusterTopology", "clustertopologies", "Cluster"),
    ("workloads.x-k8s.io", &["v1alpha2"], "CoordinatedPolicy", "coordinatedpolicies", "Namespaced"),
    ("scheduling.run.ai", &["v2alpha2"], "PodGroup", "podgroups", "Namespaced"),
    ("grove.io", &["v1alpha1"], "PodCliqueSet", "podcliquesets", "Namespaced"),
    ("grove.io", &["v1alpha1"], "PodGangSet", "podgangsets", "Namespaced"),
];

/// A definition that lets everything pass, so that the policies judge and not the schema.
pub fn loose_definition((group, versions, kind, plural, scope): Defined<'_>, spec_fields: &Value) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut spec = anything.clone();
    spec["properties"] = spec_fields.clone();
    let mut schema = anything;
    schema["properties"] = json!({"spec": spec});
    let versions = versions.iter().enumerate().map(|(number, version)| {
        json!({"name": version, "served": true, "storage": number == 0, "schema": {"openAPIV3Schema": schema}})
    });
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("{plural}.{group}")).spec(json!({
        "group": group,
        "scope": scope,
        "names": {"kind": kind, "plural": plural},
        "versions": versions.collect::<Vec<_>>(),
    }))
}

/// The definition of KAI's PodGroups, with these fields of its spec known.
pub fn pod_group_definition(spec_fields: &Value) -> Value {
    let row = KINDS.iter().find(|row| row.2 == "PodGroup").unwrap();
    loose_definition(*row, spec_fields)
}

/// Defines all kinds that are judged, loosely.
pub fn define_loosely(plane: &ControlPlane) {
    for row in KINDS {
        define(plane, &loose_definition(*row, &json!({})).to_string());
    }
}

/// Defines the kinds that rolegate defines, as it does.
pub fn define_ours(plane: &ControlPlane) {
    let arguments = ["manifests", "--part", "crds,optional-crds"];
    let output = Command::new(rolegate_binary()).args(arguments).output().unwrap();
    define(plane, &String::from_utf8(output.stdout).unwrap());
}

/// Writes definitions, over others if need be, and waits until they are served.
pub fn define(plane: &ControlPlane, definitions: &str) {
    plane.must(&["apply", "--server-side", "--force-conflicts", "-f", "-"], definitions);
    plane.until_defined();
}

/// Installs the policies by the one command of their README for the version that runs.
pub fn install(plane: &ControlPlane) {
    match kubernetes() {
        None => _ = plane.must(&["apply", "-f", POLICIES], ""),
        Some(version) => install_for(plane, &version),
    }
}

/// Installs the policies that a version accepts, in its words.
pub fn install_for(plane: &ControlPlane, version: &str) {
    plane.must(&["apply", "-f", "-"], &manifests(&["--part", "policies", "--kubernetes", version]));
}

/// Makes an error of an expression refuse, so that no test takes it for a verdict.
pub async fn refuse_on_error(client: &Client) {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    for policy in policies.list(&ListParams::default()).await.unwrap() {
        let patch = Patch::Merge(json!({"spec": {"failurePolicy": "Fail"}}));
        policies.patch(policy.metadata.name.as_deref().unwrap(), &PatchParams::default(), &patch).await.unwrap();
    }
}

/// What the API server made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Admitted.
    Admitted,
    /// Refused by a policy, in its words.
    Refused(String),
    /// Refused before policies are asked, by schema or validation.
    Invalid(String),
}

impl Answer {
    /// Of a request.
    pub fn of<T>(result: Result<T, kube::Error>) -> Self {
        match result {
            Ok(_) => Self::Admitted,
            Err(kube::Error::Api(status)) => Self::of_status(&status),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    fn of_status(status: &Status) -> Self {
        if let Some((_, text)) = status.message.split_once(" denied request: ") {
            return Self::Refused(text.to_owned());
        }
        assert!(matches!(status.code, 403 | 422), "{status:?}");
        Self::Invalid(status.message.clone())
    }
}

impl Answer {
    /// Refused by a policy, in these words among others.
    pub fn is_refused(&self, words: &str) -> bool {
        matches!(self, Self::Refused(text) if text.contains(words))
    }
}

/// The refusal of what rolegate itself may not do.
pub fn refused(what: &str) -> Answer {
    Answer::Refused(format!("rolegate itself may not {what}"))
}

/// Tries a patch, as a dry run.
pub async fn try_patch<K, P>(api: &Api<K>, name: &str, patch: &Patch<P>) -> Answer
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    P: serde::Serialize + std::fmt::Debug,
{
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    Answer::of(api.patch(name, &dry_run, patch).await)
}

/// Takes our gate off a pod; other gates stay.
pub fn released() -> Value {
    json!({"spec": {"schedulingGates": [{"name": "rolegate.dev/hold", "$patch": "delete"}]}})
}

/// A client that acts as this user.
pub async fn client_as(plane: &ControlPlane, user: &str) -> Client {
    let file = Kubeconfig::read_from(&plane.kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some(user.to_owned());
    Client::try_from(config).unwrap()
}

/// Asks whether an object may be created, without creating it.
pub async fn may_create(api: &Api<DynamicObject>, object: &Value) -> Answer {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    Answer::of(api.create(&params, &typed(object.clone())).await)
}

/// The API of a kind: of all its objects when it has no namespaces.
pub fn api_of(client: &Client, kind: ObjectKind, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    if kind.namespaced {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

/// Requests at a time.
pub const AT_ONCE: usize = 8;

/// The control plane of the tests about pods: with the policies, and without the kinds that the twins judge.
pub static WITH_POLICIES: Shared = Shared::new(|| {
    let plane = ControlPlane::start();
    install(&plane);
    plane
});

/// Grants a user a role of these rules in a namespace.
pub fn allow(plane: &ControlPlane, namespace: &str, user: &str, rules: &[Value]) {
    let rbac = "rbac.authorization.k8s.io";
    let metadata = json!({"name": user, "namespace": namespace});
    let head = |kind: &str| json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": metadata});
    let (mut role, mut binding) = (head("Role"), head("RoleBinding"));
    role["rules"] = json!(rules);
    binding["roleRef"] = json!({"apiGroup": rbac, "kind": "Role", "name": user});
    binding["subjects"] = json!([{"apiGroup": rbac, "kind": "User", "name": user}]);
    plane.must(&["create", "-f", "-"], &format!("{role}\n---\n{binding}"));
}

/// Grants a user a role in a namespace.
pub fn grant(plane: &ControlPlane, namespace: &str, role: &str, user: &str) {
    let name = format!("{role}-{}", user.replace(':', "."));
    plane.must(&["-n", namespace, "create", "rolebinding", &name, "--clusterrole", role, "--user", user], "");
}
