//! Deletes the objects of a test that has ended: API servers evaluate policies and call webhooks for all that come after,
//! schedulers and other rolegates look at all nodes. Nobody waits for it.

use std::path::PathBuf;
use std::sync::LazyLock;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::control_plane::client_of;
use super::group::STAGE;

/// What a test leaves behind.
pub struct Left {
    /// Kubeconfig of the administrator.
    pub kubeconfig: PathBuf,
    pub namespace: String,
    /// Names of its rolegates.
    pub rolegates: Vec<String>,
}

/// A thread of its own: the runtime of a test ends with the test.
static SWEEPER: LazyLock<UnboundedSender<Left>> = LazyLock::new(|| {
    let (sender, mut all) = unbounded_channel::<Left>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            while let Some(left) = all.recv().await {
                // The control plane may end meanwhile, and then there is nothing to sweep.
                _ = sweep(&left).await;
            }
        });
    });
    sender
});

/// Has the objects deleted.
pub fn later(left: Left) {
    _ = SWEEPER.send(left);
}

async fn sweep(left: &Left) -> Result<(), kube::Error> {
    let client = client_of(&left.kubeconfig).await;
    for name in &left.rolegates {
        by_name::<ValidatingWebhookConfiguration>(&client, name).await?;
        by_name::<MutatingWebhookConfiguration>(&client, name).await?;
        let ours = format!("app.kubernetes.io/name={name}");
        by_label::<ValidatingAdmissionPolicyBinding>(&client, &ours).await?;
        by_label::<ValidatingAdmissionPolicy>(&client, &ours).await?;
        by_label::<ClusterRoleBinding>(&client, &ours).await?;
        by_label::<ClusterRole>(&client, &ours).await?;
    }
    // First the pods, so that nothing looks for another place for them.
    by_name::<Namespace>(&client, &left.namespace).await?;
    by_label::<Node>(&client, &format!("{STAGE}={}", left.namespace)).await
}

/// An API of cluster-scoped objects.
trait Swept: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug {}
impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug> Swept for K {}

async fn by_name<K: Swept>(client: &Client, name: &str) -> Result<(), kube::Error> {
    match Api::<K>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

async fn by_label<K: Swept>(client: &Client, label: &str) -> Result<(), kube::Error> {
    let selected = ListParams::default().labels(label);
    Api::<K>::all(client.clone()).delete_collection(&DeleteParams::default(), &selected).await.map(drop)
}
