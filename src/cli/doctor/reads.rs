//! Reads the facts that `doctor` judges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::checks;
use super::facts::{
    Definitions, Facts, Namespaces, OfGroups, Other, Policies, Probe, Read, Served, ServedNamespaces, Services,
    Strangers, Target, Uncoordinated,
};
use super::hooks::{Configurations, Hook, as_mutating, webhooks};
use crate::cli::allow::Allow;
use crate::cli::connection::{Connection, Failure};
use crate::cli::live::pictures;
use crate::cli::manifests::serving_secret;
use crate::cluster::certificates::{foreign, read_secret};
use crate::cluster::leader_flags;
use crate::cluster::read::devices::devices;
use crate::cluster::read::installations::installations;
use crate::cluster::read::listing::list_cluster;
use crate::model::{Installation, Serving, names};
use crate::plan::Held;
use crate::plan::devices::Devices;
use crate::report::Picture;

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
/// Requests in flight at a time.
pub(super) const AT_A_TIME: usize = 16;

/// Our Deployment, if there is one.
pub(super) type OfDeployment = Read<Option<Deployment>>;

pub struct Reader<'a> {
    pub connection: &'a Connection,
    pub target: Target,
    /// User whose rights to check; by default the ServiceAccount, or the caller when it is missing.
    pub user: Option<String>,
    /// Namespace of the dry-run pod.
    pub try_in: String,
}

impl Reader<'_> {
    /// Reads all facts.
    ///
    /// # Errors
    /// When the API server does not answer. Any other failed read is kept in its fact.
    pub async fn facts(self) -> Result<Facts, Failure> {
        let client = &self.connection.client;
        let version = client.apiserver_version().await.map_err(|error| self.connection.failure(&error))?;
        let number = |text: &str| text.trim_end_matches('+').parse().unwrap_or(0);
        let (own, name) = (self.target.namespace.as_str(), self.target.name.as_str());
        let (definitions, mutating, validating, told) = tokio::join!(
            self.definitions(),
            self.list(Api::all(client.clone())),
            self.list::<ValidatingWebhookConfiguration>(Api::all(client.clone())),
            leader_flags::read(client, own, name)
        );
        let validating: Configurations = validating.map(|all| all.into_iter().map(as_mutating).collect());
        let deployment: OfDeployment = self.own(name).await;
        let (rights, namespaces, services, certificates, lease, probe, groups, nobodys, others, policies) = tokio::join!(
            self.rights(told.as_ref(), &deployment),
            self.namespaces(),
            self.services(&mutating, &validating),
            self.certificates(),
            self.own(name),
            self.probe(),
            self.groups(told.clone()),
            self.nobodys(),
            self.others(&mutating),
            self.policies(),
        );
        let device_classes = self.device_classes().await;
        let (rivals, addresses, opt_ins) = match &groups {
            Ok(OfGroups { scaled, addressed, wanted, .. }) => {
                tokio::join!(self.rivals(scaled), self.addresses(addressed), self.opt_ins(wanted, &deployment))
            }
            Err(why) => (Err(why.clone()), Err(why.clone()), Err(why.clone())),
        };
        Ok(Facts {
            version: (number(&version.major), number(&version.minor)),
            now: Timestamp::now(),
            not_made: deployment.map(not_made),
            target: self.target,
            definitions,
            rights,
            mutating,
            validating,
            namespaces,
            services,
            certificates,
            lease,
            probe,
            device_classes,
            others,
            groups,
            nobodys,
            rivals,
            addresses,
            policies,
            opt_ins,
            try_in: self.try_in,
        })
    }

    async fn device_classes(&self) -> Read<Option<BTreeMap<String, Vec<String>>>> {
        let Some(objects) = devices(&self.connection.client).await? else { return Ok(None) };
        let mut devices = Devices::default();
        devices.apply_all(&objects);
        let of = |(name, whys): (_, Vec<Arc<str>>)| (name, whys.iter().map(ToString::to_string).collect());
        Ok(Some(devices.classes().map(of).collect()))
    }

    pub(super) fn why(&self, error: &kube::Error) -> String {
        self.connection.failure(error).to_string()
    }

    async fn list<K: Clone + Debug + DeserializeOwned>(&self, api: Api<K>) -> Read<Vec<K>> {
        api.list(&ListParams::default()).await.map(|list| list.items).map_err(|error| self.why(&error))
    }

    /// Reads an object of our namespace.
    pub(super) async fn own<K>(&self, name: &str) -> Read<Option<K>>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.get(&Api::namespaced(self.connection.client.clone(), &self.target.namespace), name).await
    }

    async fn get<K: Clone + Debug + DeserializeOwned>(&self, api: &Api<K>, name: &str) -> Read<Option<K>> {
        api.get_opt(name).await.map_err(|error| self.why(&error))
    }

    async fn policies(&self) -> Read<Policies> {
        let client = &self.connection.client;
        let policies = self.list::<ValidatingAdmissionPolicy>(Api::all(client.clone())).await?;
        let bindings = self.list::<ValidatingAdmissionPolicyBinding>(Api::all(client.clone())).await?;
        Ok(Policies {
            policies: policies.into_iter().filter_map(|one| Some((one.metadata.name.clone()?, json!(one)))).collect(),
            bindings: bindings.into_iter().map(|one| (one.spec.policy_name.clone(), json!(one))).collect(),
        })
    }

    async fn definitions(&self) -> Read<Definitions> {
        let api: Api<CustomResourceDefinition> = Api::all(self.connection.client.clone());
        let read = async |name: String| {
            let found = self.get(&api, &name).await?;
            Ok::<_, String>(found.map(|found| (name, json!(found))))
        };
        let found: Vec<_> =
            stream::iter(checks::looked_at()).map(read).buffer_unordered(AT_A_TIME).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn namespaces(&self) -> Read<Namespaces> {
        let api: Api<Namespace> = Api::all(self.connection.client.clone());
        let mut labels = BTreeMap::new();
        for name in ["kube-system", self.target.namespace.as_str()] {
            if let Some(namespace) = self.get(&api, name).await? {
                labels.insert(name.to_owned(), namespace.metadata.labels.unwrap_or_default());
            }
        }
        Ok(labels)
    }

    /// Reads other installations, and the namespaces that they share with ours.
    async fn others(&self, mutating: &Configurations) -> Read<Vec<Other>> {
        let all = installations(mutating.as_ref().map_err(Clone::clone)?);
        let (ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.name == self.target.name);
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let namespaces = self.list(Api::<Namespace>::all(self.connection.client.clone())).await?;
        let served = |by: &Installation| {
            let served = namespaces.iter().filter(|one| by.serves(one.metadata.labels.as_ref().unwrap_or(&NO_LABELS)));
            served.filter_map(|one| one.metadata.name.clone()).collect::<BTreeSet<_>>()
        };
        let ours: BTreeSet<_> = ours.iter().flat_map(served).collect();
        let shared = |other: Installation| Other {
            shared: served(&other).intersection(&ours).cloned().collect(),
            name: other.name,
        };
        Ok(others.into_iter().map(shared).collect())
    }

    async fn services(&self, mutating: &Configurations, validating: &Configurations) -> Read<Services> {
        let ours = webhooks(mutating, validating).filter(|hook| hook.configuration() == self.target.name);
        let key = |hook: Hook<'_>| {
            hook.spec.client_config.service.as_ref().map(|service| (service.namespace.clone(), service.name.clone()))
        };
        let mut services = BTreeMap::new();
        for (namespace, name) in ours.filter_map(key) {
            let client = self.connection.client.clone();
            let found = self.get(&Api::<Service>::namespaced(client.clone(), &namespace), &name).await;
            let slices = Api::<EndpointSlice>::namespaced(client, &namespace);
            let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
            let slices = slices.list(&of_service).await.map_err(|error| self.why(&error))?;
            let endpoints = slices.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let is_ready = |conditions: &EndpointConditions| conditions.ready;
            let ready = endpoints.filter(|one| one.conditions.as_ref().and_then(is_ready) != Some(false)).count();
            services.insert((namespace, name), found?.map(|service| (service, ready)));
        }
        Ok(services)
    }

    /// Reads our own Secret, or the Secret that cert-manager writes for our manifests.
    pub(super) async fn certificates(&self) -> Read<Option<Served>> {
        let name = &self.target.name;
        for (secret, self_managed) in [(format!("{name}-certificates"), true), (serving_secret(name), false)] {
            if let Some(secret) = self.own::<Secret>(&secret).await? {
                let foreign = foreign(&secret).filter(|_| self_managed);
                return Ok(Some(Served { stored: read_secret(&secret), self_managed, foreign }));
            }
        }
        Ok(None)
    }

    /// Creates a pod of a group as a dry run: it reaches only admission, and nothing is stored.
    async fn probe(&self) -> Read<Probe> {
        let pods: Api<Pod> = Api::namespaced(self.connection.client.clone(), &self.try_in);
        let pod = json!({
            "metadata": {
                "name": "rolegate-doctor",
                "labels": { names::GROUP: "rolegate-doctor", names::ROLE: "probe" },
            },
            "spec": { "containers": [{ "name": "main", "image": "none" }] },
        });
        let pod = serde_json::from_value(pod).map_err(|error| error.to_string())?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        match pods.create(&dry_run, &pod).await {
            Ok(pod) => {
                let gates = pod.spec.and_then(|spec| spec.scheduling_gates).unwrap_or_default();
                let held = gates.iter().any(|gate| gate.name == names::GATE);
                Ok(if held { Probe::Held } else { Probe::NotHeld })
            }
            Err(kube::Error::Api(status)) if status.message.contains("webhook") => {
                Ok(Probe::Refused(self.why(&kube::Error::Api(status))))
            }
            Err(error) => Err(self.why(&error)),
        }
    }

    /// Returns pods with our gate that name no group to lift it.
    async fn nobodys(&self) -> Read<Vec<String>> {
        let pods: Api<Pod> = Api::all(self.connection.client.clone());
        // A pod with a node has no gates.
        let found =
            pods.list(&ListParams::default().fields("spec.nodeName=")).await.map_err(|error| self.why(&error))?;
        let named = |pod: Pod| {
            let gates = pod.spec?.scheduling_gates?;
            let labels = pod.metadata.labels.unwrap_or_default();
            let names_any =
                names::pod_schemes().any(|(group, _)| labels.get(group).is_some_and(|name| !name.is_empty()));
            let is_held =
                gates.iter().any(|gate| gate.name == names::GATE) && pod.metadata.deletion_timestamp.is_none();
            let is_nobodys = is_held && !names_any && !labels.contains_key(names::PLACED_BY);
            is_nobodys.then(|| Some(format!("{}/{}", pod.metadata.namespace?, pod.metadata.name?)))?
        };
        Ok(found.items.into_iter().filter_map(named).collect())
    }

    async fn groups(&self, told: Option<Serving>) -> Read<OfGroups> {
        let serving = std::future::ready(told.clone().unwrap_or_default());
        let seen = Box::pin(list_cluster(&self.connection.client, None, serving));
        let seen = seen.await.map_err(|error| self.why(&error))?;
        // The missing group may be of the kind that cannot be read.
        if let [first, ..] = seen.forbidden.as_slice() {
            return Err(format!("{} may not be read", first.crd_name()));
        }
        let stances = seen.index.stances().map(|(name, stance)| (name.to_string(), stance)).collect();
        let served = ServedNamespaces { told, stances, ..ServedNamespaces::default() };
        let mut all = OfGroups { served, ..OfGroups::default() };
        for picture in pictures(&seen.index) {
            let key = picture.key.to_string();
            all.held.extend(holds(&picture));
            let Some(group) = picture.group() else {
                match picture.held_pods() {
                    0 => all.uncoordinated.extend(Uncoordinated::of(&picture)),
                    pods => all.orphans.push((key, pods)),
                }
                continue;
            };
            if !group.coordinations.is_empty() {
                *all.served.groups.entry(picture.key.namespace.to_string()).or_default() += 1;
                all.addressed.extend(group.discovery.then(|| Arc::clone(group)));
            }
            all.scaled.extend(group.scaled().map(|_| Arc::clone(group)));
            let kinds = group.batched().filter_map(|(_, batching)| batching.gangs.as_ref()?.policy.kind());
            all.gangs.extend(kinds.map(|kind| (key.clone(), kind)));
            let asks = [
                (Allow::Scale, group.elastic.is_some()),
                (Allow::Recovery, group.batched().any(|(_, batching)| batching.recovers().is_some())),
                (Allow::Provision, group.requests_nodes()),
            ];
            all.wanted.extend(asks.into_iter().filter(|(_, asks)| *asks).map(|(what, _)| (what, key.clone())));
            let strangers = picture.seen.view.strangers.iter();
            let stranger =
                |(role, pods): (&String, &u32)| Strangers { group: key.clone(), role: role.clone(), pods: *pods };
            all.strangers.extend(strangers.map(stranger));
        }
        Ok(all)
    }
}

/// Returns why the pods of our Deployment are not created.
fn not_made(deployment: Option<Deployment>) -> Option<String> {
    let conditions = deployment?.status?.conditions?;
    let failure = conditions.into_iter().find(|one| one.type_ == "ReplicaFailure" && one.status == "True")?;
    Some([failure.reason, failure.message].map(Option::unwrap_or_default).join(": "))
}

/// Returns the holds of an existing group; a missing group is another check.
pub fn holds(picture: &Picture) -> impl Iterator<Item = (String, Held)> {
    let is_there = picture.group().is_some() && picture.snapshot.lets_go().is_none();
    let held = picture.seen.decision.held.iter().filter(move |held| is_there && held.is_told());
    held.map(|held| (picture.key.to_string(), held.clone()))
}

impl Uncoordinated {
    /// Returns the pods of a missing group; `None` when no pod was held for it, or nothing is to be held.
    fn of(picture: &Picture) -> Option<Self> {
        let snapshot = &picture.snapshot;
        let run = || snapshot.pods.iter().filter(|pod| !pod.held && pod.stamp.held);
        let pods = u32::try_from(run().count()).unwrap_or(u32::MAX);
        let was_there = run().any(|pod| pod.stamp.carrier.is_some());
        let is_one = pods > 0 && snapshot.lets_go().is_none();
        is_one.then(|| Self { group: picture.key.to_string(), pods, was_there })
    }
}
