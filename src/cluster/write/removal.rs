//! Removes rolegate from a cluster: its marks on other objects, and its own objects. The order leaves no pod held without a
//! releaser: first the webhooks, then the loop, and only then the holds.

use std::collections::HashSet;
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use self::RemovalAction::{Delete, Release, Thaw, Unprotect};
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::pod::POD;
use crate::api::provisioning::{CAPACITY_BUFFER, REQUESTS};
use crate::api::webhook_configuration::MUTATING_WEBHOOK_CONFIGURATION;
use crate::api::workload::DEPLOYMENT;
use crate::api::{Object, ObjectKind, Pod};
use crate::cluster::failure::unless;
use crate::cluster::lease::{Record, leases};
use crate::cluster::objects::{Objects, api};
use crate::cluster::read::installations;
use crate::cluster::watch::sources::{NAMESPACE, Named};
use crate::cluster::write::owned::empty_buffer;
use crate::cluster::write::writer::{Writer, params};
use crate::model::Installation;
use crate::model::WorkloadKind;
use crate::model::installation::HOLD_POLICY;
use crate::model::names::{self, GATE};
use crate::mutate::rollout::thaw;
use crate::mutate::topology::remove_finalizer;
use crate::plan::PodRef;

const VALIDATING_WEBHOOK_CONFIGURATION: ObjectKind = ObjectKind {
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
    ..MUTATING_WEBHOOK_CONFIGURATION
};
const POLICY: ObjectKind = ObjectKind {
    kind: "MutatingAdmissionPolicy",
    plural: "mutatingadmissionpolicies",
    ..MUTATING_WEBHOOK_CONFIGURATION
};
const POLICY_BINDING: ObjectKind =
    ObjectKind { kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings", ..POLICY };
const LEASE: ObjectKind = ObjectKind::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
const SECRET: ObjectKind = ObjectKind { kind: "Secret", plural: "secrets", ..POD };
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
    target: ObjectKind,
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
    pub async fn plan(&self) -> kube::Result<Vec<Item>> {
        let mut plan = self.holds().await?;
        plan.extend(self.deployment().await?);
        plan.extend(self.marks().await?);
        plan.extend(self.own().await?);
        Ok(plan)
    }

    /// Lists the other installations of the cluster. They own their namespaces and the cluster-scoped marks.
    pub async fn others(&self) -> kube::Result<Vec<Installation>> {
        installations::others(&self.writer.client, &self.name).await
    }

    /// Returns the namespaces that other installations serve.
    async fn of_others(&self, others: &[Installation]) -> kube::Result<HashSet<String>> {
        if others.is_empty() {
            return Ok(HashSet::new());
        }
        let namespaces = api::<Named>(&self.writer.client, NAMESPACE, None).list(&ListParams::default()).await?;
        let all = namespaces.items.iter().map(Object::meta);
        let served = all.filter(|meta| others.iter().any(|other| other.serves(&meta.labels)));
        Ok(served.map(|meta| meta.display_name().to_owned()).collect())
    }

    /// Returns the objects that hold pods: the webhook configurations, and, for the last installation of a cluster, the
    /// policy that holds without a webhook, with its binding; another binding of it holds nothing alone. Once they are gone no new
    /// pod is held. Policies that only validate stay: they need no rolegate.
    pub async fn holds(&self) -> kube::Result<Vec<Item>> {
        let mut items = self.existing(MUTATING_WEBHOOK_CONFIGURATION, &self.name).await?;
        items.extend(self.existing(VALIDATING_WEBHOOK_CONFIGURATION, &self.name).await?);
        if !self.others().await?.is_empty() {
            return Ok(items);
        }
        for kind in [POLICY_BINDING, POLICY] {
            items.extend(self.existing(kind, HOLD_POLICY).await?);
        }
        Ok(items)
    }

    /// Returns the Deployment, if it exists.
    pub async fn deployment(&self) -> kube::Result<Vec<Item>> {
        self.existing(DEPLOYMENT, &self.name).await
    }

    /// Returns the marks on objects of others, and the requests for nodes: gates, frozen partitions, finalizers. Marks that another installation owns are
    /// left out.
    pub async fn marks(&self) -> kube::Result<Vec<Item>> {
        let others = self.others().await?;
        let theirs = self.of_others(&others).await?;
        let held = held_pods(&self.writer.client, None).await?;
        let release = |(namespace, pod): (String, PodRef)| Item {
            uid: pod.uid.to_string(),
            ..item(Release, POD, &namespace, &pod.name)
        };
        let mut items: Vec<_> = held.into_iter().map(release).collect();
        for kind in WorkloadKind::with_partition() {
            let objects = self.objects(kind.object_kind()).await?;
            items.extend(objects.iter().filter_map(|object| {
                let patch = thaw(kind, &serde_json::to_value(object).ok()?)?;
                Some(marked(Thaw, kind.object_kind(), object, patch))
            }));
        }
        for kind in REQUESTS {
            let objects = self.objects(kind).await?;
            let is_ours = |object: &&DynamicObject| {
                object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(names::REQUEST))
            };
            items.extend(objects.iter().filter(is_ours).map(|object| marked(Delete, kind, object, Value::Null)));
        }
        items.retain(|item| !theirs.contains(&item.namespace));
        for kind in CLUSTER_TOPOLOGIES.iter().filter(|_| others.is_empty()) {
            let objects = self.objects(*kind).await?;
            items.extend(objects.iter().filter_map(|object| {
                let meta = &object.metadata;
                let patch = remove_finalizer(meta.finalizers.as_ref()?, meta.resource_version.as_deref())?;
                Some(marked(Unprotect, *kind, object, patch))
            }));
        }
        Ok(items)
    }

    /// Returns the Lease and the Secret of the certificates.
    pub async fn own(&self) -> kube::Result<Vec<Item>> {
        let mut items = self.existing(LEASE, &self.name).await?;
        items.extend(self.existing(SECRET, &format!("{}-certificates", self.name)).await?);
        Ok(items)
    }

    /// Returns the deletion of an object of this installation, if it exists.
    async fn existing(&self, kind: ObjectKind, name: &str) -> kube::Result<Vec<Item>> {
        let namespace = if kind.namespaced { self.namespace.as_str() } else { "" };
        let found = self.dynamic(kind, namespace).get_opt(name).await?;
        Ok(found.map(|_| item(Delete, kind, namespace, name)).into_iter().collect())
    }

    /// Carries out one step. An object that is gone needs nothing.
    pub async fn carry_out(&self, item: &Item) -> kube::Result<()> {
        unless(&[404], self.writer.in_time(self.take_out(item)).await).map(drop)
    }

    async fn take_out(&self, item: &Item) -> kube::Result<()> {
        let Item { action, namespace, name, patch, target, uid, .. } = item;
        let objects = self.dynamic(*target, namespace);
        match action {
            Delete => {
                if *target == CAPACITY_BUFFER {
                    empty_buffer(&objects, &objects.get(name).await?).await?;
                }
                objects.delete(name, &DeleteParams::background()).await
            }
            Release => {
                let pod = PodRef { name: name.as_str().into(), uid: uid.as_str().into() };
                self.writer.release_unseen(namespace, &pod).await.map(drop)
            }
            Thaw | Unprotect => objects.patch(name, &params(), &Patch::Merge(patch.clone())).await.map(drop),
        }
    }

    fn dynamic(&self, kind: ObjectKind, namespace: &str) -> Objects<DynamicObject> {
        self.writer.dynamic(kind, Some(namespace).filter(|namespace| !namespace.is_empty()))
    }

    /// Waits until nobody renews the Lease, for as long as a silent leader is believed, by the own clock.
    /// Fails with [`RemovalError::StillRuns`] when the Lease is still renewed after `patience`.
    pub async fn until_quiet(&self, patience: Duration) -> Result<(), RemovalError> {
        let (start, mut seen, mut since) = (Instant::now(), None, Instant::now());
        loop {
            let Some(lease) = leases(&self.writer.client, &self.namespace).get_opt(&self.name).await? else {
                return Ok(());
            };
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

    /// Lists all objects of a kind; none where it is not served.
    async fn objects(&self, kind: ObjectKind) -> kube::Result<Vec<DynamicObject>> {
        let list = self.dynamic(kind, "").list(&ListParams::default()).await;
        Ok(unless(&[404], list)?.into_iter().flatten().collect())
    }
}

fn item(action: RemovalAction, target: ObjectKind, namespace: &str, name: &str) -> Item {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Item { action, kind: target.kind, namespace, name, patch: Value::Null, target, uid: String::new() }
}

fn marked(action: RemovalAction, kind: ObjectKind, object: &DynamicObject, patch: Value) -> Item {
    let meta = &object.metadata;
    let (namespace, name) = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    Item { patch, ..item(action, kind, namespace, name) }
}

/// Lists the pods with the gate, in one namespace or in all, with their namespaces.
pub async fn held_pods(client: &Client, namespace: Option<&str>) -> kube::Result<Vec<(String, PodRef)>> {
    // A pod with a node has no gates.
    let unbound = ListParams::default().fields("spec.nodeName=");
    let pods = api::<Pod>(client, POD, namespace).list(&unbound).await?;
    let held = pods.items.iter().filter_map(|pod| Some((pod.metadata.namespace().to_owned(), held(pod)?)));
    Ok(held.collect())
}

/// Returns the pod if it has the gate and is not gone.
pub fn held(pod: &Pod) -> Option<PodRef> {
    let meta = &pod.metadata;
    (pod.has_gate(GATE) && !pod.is_gone())
        .then(|| PodRef { name: meta.display_name().into(), uid: meta.uid.as_deref().unwrap_or_default().into() })
}
