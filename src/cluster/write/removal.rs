//! Removes rolegate from a cluster: its marks on other objects, and its own objects. The order leaves no pod held without a
//! releaser: first the webhooks, then the loop, and only then the holds.

use std::collections::HashSet;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::pod::POD;
use crate::api::{ObjectKind, Pod};
use crate::cluster::lease::{Record, leases};
use crate::cluster::read::installations;
use crate::cluster::watch::watched::api;
use crate::cluster::write::writer::{Released, Writer, params};
use crate::model::Installation;
use crate::model::WorkloadKind;
use crate::model::names::GATE;
use crate::mutate::rollout::thaw;
use crate::mutate::topology::remove_finalizer;
use crate::plan::PodRef;

/// The MutatingAdmissionPolicy that holds pods without the webhook.
const HOLD_POLICY: &str = "hold.rolegate.dev";
const POLICY: ObjectKind = ObjectKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "MutatingAdmissionPolicy",
    plural: "mutatingadmissionpolicies",
    namespaced: false,
};
const POLICY_BINDING: ObjectKind =
    ObjectKind { kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings", ..POLICY };
/// Interval of looks at the Lease.
const LOOK: Duration = Duration::from_millis(250);
/// Time for which a Lease must stay without a holder. A follower takes it sooner.
const NOBODY: Duration = Duration::from_secs(2);
/// Time for which a holder without a duration is believed: the default of `--lease-duration`.
const SOMEBODY: Duration = Duration::from_secs(15);

/// One object to be removed or changed, as `pod ml/prefill-3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    pub action: RemovalAction,
    /// Kind, such as `Pod`.
    pub kind: &'static str,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
    #[serde(skip)]
    patch: Value,
    #[serde(skip)]
    target: Option<ObjectKind>,
    #[serde(skip)]
    uid: String,
}

/// The change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RemovalAction {
    /// Deletes an object of rolegate.
    Delete,
    /// Removes the gate of a pod.
    Release,
    /// Resumes a rollout, up to the partition that its user asked for.
    Thaw,
    /// Removes the finalizer of rolegate.
    Unprotect,
}

#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// A replica renews the Lease.
    #[error("a rolegate still runs: {0} holds the Lease")]
    StillRuns(String),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// The installation to be removed.
#[derive(Clone)]
pub struct Removal {
    writer: Writer,
    namespace: String,
    name: String,
}

impl Removal {
    pub fn new(writer: Writer, namespace: &str, name: &str) -> Self {
        Self { writer, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns all steps in order. Changes nothing.
    ///
    /// # Errors
    /// When the API server refuses or fails.
    pub async fn plan(&self) -> Result<Vec<Item>, kube::Error> {
        let mut plan = self.holds().await?;
        plan.extend(self.deployment().await?);
        plan.extend(self.marks().await?);
        plan.extend(self.own().await?);
        Ok(plan)
    }

    /// Lists the other installations of the cluster. They own their namespaces and the cluster-scoped marks.
    ///
    /// # Errors
    /// When the API server fails.
    pub async fn others(&self) -> Result<Vec<Installation>, kube::Error> {
        installations::others(self.writer.client(), &self.name).await
    }

    /// Returns the namespaces that other installations serve.
    async fn of_others(&self, others: &[Installation]) -> Result<HashSet<String>, kube::Error> {
        if others.is_empty() {
            return Ok(HashSet::new());
        }
        let namespaces = Api::<Namespace>::all(self.writer.client().clone()).list(&ListParams::default()).await?;
        let served = namespaces.items.into_iter().filter(|namespace| {
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            others.iter().any(|other| other.serves(&labels))
        });
        Ok(served.filter_map(|namespace| namespace.metadata.name).collect())
    }

    /// Returns the objects that hold pods: the webhook configurations, and, for the last installation of a cluster, the
    /// policy that holds without a webhook. Once they are gone no new pod is held. Policies that only validate stay: they
    /// need no rolegate.
    ///
    /// # Errors
    /// When the API server fails.
    pub async fn holds(&self) -> Result<Vec<Item>, kube::Error> {
        let mutating =
            Api::<MutatingWebhookConfiguration>::all(self.writer.client().clone()).get_opt(&self.name).await?;
        let validating =
            Api::<ValidatingWebhookConfiguration>::all(self.writer.client().clone()).get_opt(&self.name).await?;
        let name = self.name.as_str();
        let items = mutating
            .map(|_| deleted("MutatingWebhookConfiguration", "", name))
            .into_iter()
            .chain(validating.map(|_| deleted("ValidatingWebhookConfiguration", "", name)));
        let mut items: Vec<_> = items.collect();
        if !self.others().await?.is_empty() {
            return Ok(items);
        }
        for object in self.objects(POLICY_BINDING).await? {
            if object.data.pointer("/spec/policyName").and_then(Value::as_str) == Some(HOLD_POLICY) {
                items.push(marked(RemovalAction::Delete, POLICY_BINDING, &object, Value::Null));
            }
        }
        let policies = self.objects(POLICY).await?;
        let ours = policies.iter().filter(|policy| policy.metadata.name.as_deref() == Some(HOLD_POLICY));
        items.extend(ours.map(|policy| marked(RemovalAction::Delete, POLICY, policy, Value::Null)));
        Ok(items)
    }

    /// Returns the Deployment, if it exists.
    ///
    /// # Errors
    /// When the API server fails.
    pub async fn deployment(&self) -> Result<Vec<Item>, kube::Error> {
        let found = self.mine::<Deployment>().get_opt(&self.name).await?;
        Ok(found.map(|_| deleted("Deployment", &self.namespace, &self.name)).into_iter().collect())
    }

    /// Returns the marks on objects of others: gates, frozen partitions, finalizers. Marks that another installation owns are
    /// left out.
    ///
    /// # Errors
    /// When the API server fails.
    pub async fn marks(&self) -> Result<Vec<Item>, kube::Error> {
        let others = self.others().await?;
        let theirs = self.of_others(&others).await?;
        let mut items: Vec<_> = held_pods(self.writer.client(), None)
            .await?
            .into_iter()
            .map(|(namespace, pod)| {
                let uid = pod.uid.to_string();
                Item { uid, ..item(RemovalAction::Release, "Pod", &namespace, &pod.name) }
            })
            .collect();
        for kind in WorkloadKind::with_partition() {
            let objects = self.objects(kind.object_kind()).await?;
            let frozen = objects.iter().filter_map(|object| {
                let patch = thaw(kind, &serde_json::to_value(object).ok()?)?;
                Some(marked(RemovalAction::Thaw, kind.object_kind(), object, patch))
            });
            items.extend(frozen);
        }
        items.retain(|item| !theirs.contains(&item.namespace));
        for kind in CLUSTER_TOPOLOGIES.iter().filter(|_| others.is_empty()) {
            let objects = self.objects(*kind).await?;
            let protected = objects.iter().filter_map(|object| {
                let meta = &object.metadata;
                let patch = remove_finalizer(meta.finalizers.as_ref()?, meta.resource_version.as_deref())?;
                Some(marked(RemovalAction::Unprotect, *kind, object, patch))
            });
            items.extend(protected);
        }
        Ok(items)
    }

    /// Returns the Lease and the Secret of the certificates.
    ///
    /// # Errors
    /// When the API server fails.
    pub async fn own(&self) -> Result<Vec<Item>, kube::Error> {
        let lease = self.leases().get_opt(&self.name).await?;
        let lease = lease.map(|_| deleted("Lease", &self.namespace, &self.name));
        let secret = format!("{}-certificates", self.name);
        let found = self.mine::<Secret>().get_opt(&secret).await?;
        Ok(lease.into_iter().chain(found.map(|_| deleted("Secret", &self.namespace, &secret))).collect())
    }

    /// Carries out one step. An object that is gone needs nothing.
    ///
    /// # Errors
    /// When the API server refuses or fails.
    pub async fn carry_out(&self, item: &Item) -> Result<(), kube::Error> {
        match self.writer.in_time(self.take_out(item)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            done => done,
        }
    }

    async fn take_out(&self, item: &Item) -> Result<(), kube::Error> {
        let delete = DeleteParams::background();
        let (client, name) = (self.writer.client().clone(), item.name.as_str());
        match (item.action, item.kind) {
            (RemovalAction::Delete, "MutatingWebhookConfiguration") => {
                Api::<MutatingWebhookConfiguration>::all(client).delete(name, &delete).await.map(|_| ())
            }
            (RemovalAction::Delete, "ValidatingWebhookConfiguration") => {
                Api::<ValidatingWebhookConfiguration>::all(client).delete(name, &delete).await.map(|_| ())
            }
            (RemovalAction::Delete, "Deployment") => self.mine::<Deployment>().delete(name, &delete).await.map(|_| ()),
            (RemovalAction::Delete, "MutatingAdmissionPolicy") => {
                self.writer.dynamic(POLICY, None).delete(name, &delete).await
            }
            (RemovalAction::Delete, "MutatingAdmissionPolicyBinding") => {
                self.writer.dynamic(POLICY_BINDING, None).delete(name, &delete).await
            }
            (RemovalAction::Delete, "Lease") => self.leases().delete(name, &delete).await.map(|_| ()),
            (RemovalAction::Delete, _) => self.mine::<Secret>().delete(name, &delete).await.map(|_| ()),
            (RemovalAction::Release, _) => {
                let pod = PodRef { name: name.into(), uid: item.uid.as_str().into() };
                match self.writer.release_unseen(&item.namespace, &pod).await {
                    Ok(Released::Done(_) | Released::Gone) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            (RemovalAction::Thaw | RemovalAction::Unprotect, _) => {
                let Some(kind) = item.target else { return Ok(()) };
                let scope = (!item.namespace.is_empty()).then_some(item.namespace.as_str());
                self.writer.dynamic(kind, scope).patch(name, &params(), &Patch::Merge(&item.patch)).await.map(|_| ())
            }
        }
    }

    /// Waits until nobody renews the Lease, for as long as a silent leader is believed, by the own clock.
    ///
    /// # Errors
    /// [`RemovalError::StillRuns`] when the Lease is still renewed after `patience`.
    pub async fn until_quiet(&self, patience: Duration) -> Result<(), RemovalError> {
        let (start, mut seen, mut since) = (Instant::now(), None, Instant::now());
        loop {
            let Some(lease) = self.leases().get_opt(&self.name).await? else { return Ok(()) };
            let record = Record::of(&lease);
            let believed = record.believed(SOMEBODY);
            let holder = record.holder_identity.unwrap_or_default();
            let believed = if holder.is_empty() { NOBODY } else { believed };
            if seen != lease.metadata.resource_version {
                (seen, since) = (lease.metadata.resource_version, Instant::now());
            }
            if since.elapsed() > believed {
                return Ok(());
            }
            if start.elapsed() > patience + believed {
                return Err(RemovalError::StillRuns(holder));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn leases(&self) -> Api<DynamicObject> {
        leases(self.writer.client(), &self.namespace)
    }

    fn mine<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.writer.client().clone(), &self.namespace)
    }

    /// Lists all objects of a kind; none where it is not served.
    async fn objects(&self, kind: ObjectKind) -> Result<Vec<DynamicObject>, kube::Error> {
        match self.writer.dynamic(kind, None).list(&ListParams::default()).await {
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn item(action: RemovalAction, kind: &'static str, namespace: &str, name: &str) -> Item {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Item { action, kind, namespace, name, patch: Value::Null, target: None, uid: String::new() }
}

fn deleted(kind: &'static str, namespace: &str, name: &str) -> Item {
    item(RemovalAction::Delete, kind, namespace, name)
}

fn marked(action: RemovalAction, kind: ObjectKind, object: &DynamicObject, patch: Value) -> Item {
    let meta = &object.metadata;
    let (namespace, name) = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    Item { patch, target: Some(kind), ..item(action, kind.kind, namespace, name) }
}

/// Lists the pods with the gate, in one namespace or in all, with their namespaces.
///
/// # Errors
/// When the API server fails.
pub async fn held_pods(client: &Client, namespace: Option<&str>) -> Result<Vec<(String, PodRef)>, kube::Error> {
    // A pod with a node has no gates.
    let unbound = ListParams::default().fields("spec.nodeName=");
    let pods = api::<Pod>(client, POD, namespace).list(&unbound).await?;
    let held =
        pods.items.iter().filter_map(|pod| Some((pod.object.metadata.namespace().to_owned(), held(&pod.object)?)));
    Ok(held.collect())
}

/// Returns the pod if it has the gate and is not gone.
pub fn held(pod: &Pod) -> Option<PodRef> {
    let meta = &pod.metadata;
    (pod.has_gate(GATE) && !pod.is_gone())
        .then(|| PodRef { name: meta.display_name().into(), uid: meta.uid.as_deref().unwrap_or_default().into() })
}
