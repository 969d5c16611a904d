//! rolegate as installed: every object as printed, and processes with the arguments and the account of the Deployment.

use crate::common::account::{manifests, token};
use crate::common::prelude::*;

/// Where nothing listens.
const NOBODY: &str = "127.0.0.1:1";

/// An installation, and the way from the API server to whoever serves.
pub struct Installation {
    pub plane: Arc<ControlPlane>,
    /// In place of the Service.
    pub service: Proxy,
    pub launch: Launch,
}

/// Installs what `rolegate manifests` prints with these arguments. Nobody serves yet.
pub async fn install(plane: ControlPlane, arguments: &[&str]) -> Installation {
    let plane = Arc::new(plane);
    define(&plane);
    apply(&plane, &manifests(arguments));
    Installation::of(plane).await
}

impl Installation {
    /// What is installed there. Nobody serves yet.
    pub async fn of(plane: Arc<ControlPlane>) -> Self {
        Self::named(plane, "rolegate").await
    }

    /// What is installed there under another name.
    pub async fn named(plane: Arc<ControlPlane>, name: &str) -> Self {
        let client = plane.client().await;
        let service = Proxy::before(NOBODY.parse().unwrap()).await;
        lead(&plane, name, service.address);
        token(&plane, name);
        let launch = Launch::as_deployed(plane.clone(), client, &get_named(&plane, "deployment", name));
        Self { plane, service, launch }
    }

    /// Starts a replica and leads the API server to it, until that asks it about a namespace's pods.
    pub async fn serve(&self, stage: &Stage) -> Rolegate {
        let rolegate = self.launch.start_unready().await;
        rolegate.until_ready().await;
        self.service.lead_to(&[rolegate.webhook]);
        let pod = Group::new("probe").pod("main", "probe", &stage.namespace);
        let path = format!("{CORE}/namespaces/{}/pods?dryRun=All", stage.namespace);
        let created = async || stage.send("POST", &path, &pod).await.body;
        let is_held = |pod: &Value| pod["spec"]["schedulingGates"][0]["name"] == GATE;
        until_found("the API server reaches it by the name of its Service", created, is_held).await;
        rolegate
    }
}

/// With our definitions and those of cert-manager, for tests that store nothing but definitions, roles and namespaces.
pub static DRY: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with("cert-manager", &[]);
    define(&plane);
    plane
});

/// Where rolegate is installed with certificates of cert-manager. Nobody serves.
pub static WITH_CERT_MANAGER: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with("cert-manager", &[]);
    define(&plane);
    apply(&plane, &manifests(&["--certificates", "cert-manager"]));
    plane
});

/// Server-side apply that stores nothing; a field that the API server does not know is an error.
pub const DRY_RUN: &[&str] =
    &["apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", "-"];

/// Installs our definitions first, as they must be.
pub fn define(plane: &ControlPlane) {
    apply(plane, &manifests(&["--part", "crds"]));
    plane.until_defined();
}

/// Server-side apply; a field that the API server does not know is an error.
pub fn apply(plane: &ControlPlane, yaml: &str) {
    plane.must(&["apply", "--server-side", "--validate=strict", "-f", "-"], yaml);
}

/// The object of a kind that is called `rolegate`.
pub fn get(plane: &ControlPlane, kind: &str) -> Value {
    get_named(plane, kind, "rolegate")
}

/// The object of a kind and a name, of the cluster or in our namespace.
pub fn get_named(plane: &ControlPlane, kind: &str, name: &str) -> Value {
    let text = plane.must(&["get", kind, name, "-n", SYSTEM, "-o", "json"], "");
    serde_json::from_str(&text).unwrap()
}

/// Nothing here routes the cluster's own addresses. The API server takes an ExternalName as the address of a Service, and the
/// port from the webhooks; names in certificates stay those of the Service.
fn lead(plane: &ControlPlane, name: &str, to: SocketAddr) {
    let away =
        json!({ "type": "ExternalName", "externalName": to.ip().to_string(), "clusterIP": null, "clusterIPs": null });
    let patch = |kind: &str, form: &str, patch: &Value| {
        plane.must(&["patch", kind, name, "-n", SYSTEM, form, "-p", &patch.to_string()], "");
    };
    patch("service", "--type=merge", &json!({ "spec": away }));
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        let count = get_named(plane, kind, name)["webhooks"].as_array().unwrap().len();
        let port = |i| json!({ "op": "replace", "path": format!("/webhooks/{i}/clientConfig/service/port"), "value": to.port() });
        patch(kind, "--type=json", &json!((0..count).map(port).collect::<Vec<_>>()));
    }
}

/// Creates the one endpoint of a Service.
pub fn create_endpoint(plane: &ControlPlane, service: &str, (kind, address): (&str, &str), port: &Value) {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", service).with(&json!({
        "metadata": { "namespace": SYSTEM, "labels": { "kubernetes.io/service-name": service } },
        "addressType": kind, "ports": [port], "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
    }));
    plane.must(&["create", "-f", "-"], &slice.to_string());
}
