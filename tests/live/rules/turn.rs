//! ClusterTopologies belong to no namespace: every rolegate on a control plane judges each of them. So those tests have a
//! control plane of their own, and take turns.

use std::ops::Deref;

use tokio::sync::{Mutex, MutexGuard};

use crate::common::prelude::*;
use crate::rules::definitions;

static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &[]);
    definitions::install(&plane, &[definitions::proposal_pod_groups()]);
    plane
});
static NEXT: Mutex<()> = Mutex::const_new(());

/// Path of ClusterTopologies.
pub const OURS: &str = "/apis/rolegate.dev/v1alpha1/clustertopologies";
/// The same kind under the name that KEP-75 gives it.
pub const KEP75: &str = "/apis/workloads.x-k8s.io/v1alpha1/clustertopologies";

/// A stage while no other test has one there, with a rolegate that can go and come back.
pub struct Turn {
    stage: Stage,
    rolegate: Option<Rolegate>,
    _mine: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for its turn, and starts rolegate.
    pub async fn new(namespace: &str) -> Self {
        let mut turn = Self::alone(namespace).await;
        turn.start().await;
        turn
    }

    /// Waits for its turn; there is no rolegate yet.
    pub async fn alone(namespace: &str) -> Self {
        let mine = NEXT.lock().await;
        let stage = Stage::on(PLANE.get(), namespace).await;
        Self { stage, rolegate: None, _mine: mine }
    }

    /// Starts rolegate.
    pub async fn start(&mut self) {
        self.start_as(self.stage.launch()).await;
    }

    /// Starts rolegate with other options.
    pub async fn start_as(&mut self, launch: Launch) {
        self.rolegate = Some(launch.start().await);
    }

    pub fn rolegate(&self) -> &Rolegate {
        self.rolegate.as_ref().unwrap()
    }

    /// Rolegate is gone as if it had never been installed: nobody is asked any more.
    pub fn stop(&mut self) {
        self.rolegate = None;
        let kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
        self.plane.must(&["delete", kinds, &self.namespace, "--ignore-not-found"], "");
        // Caches of the API server follow a moment later.
        let (start, probe) = (Instant::now(), topology(OURS, "probe", &["host"]).to_string());
        while !self.plane.kubectl(&["create", "--dry-run=server", "-f", "-"], &probe).status.success() {
            assert!(start.elapsed() < PATIENT, "the webhooks are still asked");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Reads an object by its path; `None` when it is not there.
    pub async fn get(&self, path: &str) -> Option<Value> {
        let answer = self.send("GET", path, &Value::Null).await;
        (answer.code != 404).then_some(answer.body)
    }

    /// Waits until the object at a path, or `null`, passes a test.
    pub async fn until(&self, path: &str, what: &str, test: impl Fn(&Value) -> bool) {
        until_found(what, async || self.get(path).await.unwrap_or_default(), test).await;
    }

    /// Deletes an object by its path.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &json!({ "apiVersion": "v1", "kind": "DeleteOptions" })).await
    }
}

impl Deref for Turn {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A ClusterTopology of the kind that is at this path, from narrow to wide.
pub fn topology(path: &str, name: &str, layers: &[&str]) -> Value {
    let version = path.trim_start_matches("/apis/").trim_end_matches("/clustertopologies");
    let layer = |name: &&str| json!({ "name": name, "key": format!("example.com/{name}") });
    object(version, "ClusterTopology", name).spec(json!({ "layers": layers.iter().map(layer).collect::<Vec<_>>() }))
}

/// A RoleBasedGroup whose steps each go into one domain of a layer.
pub fn group_in(name: &str, topology: &str, layer: &str) -> Value {
    let constraint = json!({ "clusterTopologyName": topology, "topologyLayerName": layer });
    let deploy = json!({ "roleDeployStep": { "prefill": 4 }, "deployTopologyConstraint": constraint });
    let steps = json!([{ "name": "steps", "strategy": { "rollingDeploy": deploy } }]);
    Group::new(name).role("prefill", 8, 4).coordinated(&steps)
}
