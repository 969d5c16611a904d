//! What `doctor` looks at, read before anything is judged.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use crate::api::ObjectKind;
use crate::cli::allow::Allow;
use crate::model::{HoldReason, Mode, Serving, Stance};
use crate::server::tls::certificates::Stored;

/// What was read, or why it could not be.
pub type Read<T> = Result<T, String>;

/// The installation that is looked at.
#[derive(Clone, Debug)]
pub struct Target {
    /// Namespace of rolegate itself.
    pub namespace: String,
    /// Name of its webhook configurations and its Lease.
    pub name: String,
}

/// A right that somebody was asked about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskedRight {
    /// API group, `""` for the core.
    pub group: String,
    /// Resource, its subresource after a slash.
    pub resource: String,
    /// Verb.
    pub verb: String,
    /// Namespace, where the right need hold in one only.
    pub namespace: Option<String>,
    /// What it is for.
    pub why: &'static str,
}

/// Whose rights were asked for, and which are missing.
#[derive(Clone, Debug)]
pub struct Rights {
    /// `system:serviceaccount:…`, or nobody when they are the caller's own.
    pub user: Option<String>,
    /// What may not be done.
    pub missing: Vec<AskedRight>,
    /// How many were asked about.
    pub asked: usize,
}

/// A pod of a dry run, and what became of it.
#[derive(Clone, Debug)]
pub enum Probe {
    /// It came back with our gate.
    Held,
    /// It came back without.
    NotHeld,
    /// It was refused.
    Refused(String),
}

/// Held pods of a group that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// `namespace/name` of the group that they name.
    pub group: String,
    /// How many.
    pub pods: u32,
}

/// Why a group that is there holds pods, or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGroup {
    /// `namespace/name` of the group.
    pub group: String,
    /// Why.
    pub reason: HoldReason,
    /// The same in a sentence.
    pub message: String,
    /// How many pods.
    pub pods: u32,
}

/// Pods that run although the group is not there for which they were held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncoordinated {
    /// `namespace/name` of the group that they name.
    pub group: String,
    /// How many.
    pub pods: u32,
    /// The group was there when one of them was made.
    pub was_there: bool,
}

/// Pods whose role their group does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strangers {
    /// `namespace/name` of the group.
    pub group: String,
    /// The role.
    pub role: String,
    /// How many.
    pub pods: u32,
}

/// Policies and their bindings, by name.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// ValidatingAdmissionPolicies.
    pub policies: BTreeMap<String, Value>,
    /// ValidatingAdmissionPolicyBindings, by the policy.
    pub bindings: BTreeMap<String, Value>,
}

/// What a rule warns of in a group that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warned {
    /// `namespace/name` of the group.
    pub group: String,
    /// The rule's words.
    pub why: String,
}

/// Another rolegate of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Name of its webhook configurations.
    pub name: String,
    /// Namespaces for which it holds pods, and ours as well.
    pub shared: Vec<String>,
}

/// A group that asks for PodGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    /// `namespace/name` of the group.
    pub group: String,
    /// Their kind.
    pub kind: ObjectKind,
}

/// Something that `--allow` allows, and that somebody wants or has switched on.
#[derive(Clone, Debug)]
pub struct OptIn {
    /// What.
    pub what: Allow,
    /// `namespace/name` of the groups that ask for it.
    pub groups: Vec<String>,
    /// Whether our Deployment runs with it; `None` where there is none, and nobody can tell.
    pub is_on: Option<bool>,
    /// Rights that it takes and that are missing, and whose they would be.
    pub rights: Rights,
}

/// How namespaces are served.
#[derive(Clone, Debug, Default)]
pub struct ServedNamespaces {
    /// What the replica that leads tells of its flags; `None` where it tells nothing.
    pub told: Option<Serving>,
    /// By name.
    pub stances: BTreeMap<String, Stance>,
    /// How many groups there are in those that have some.
    pub groups: BTreeMap<String, usize>,
}

impl ServedNamespaces {
    /// True where no namespace is served in another mode than `observe`.
    pub fn only_observes(&self) -> bool {
        let observes = |stance: &Stance| stance.out.is_some() || stance.mode == Mode::Observe;
        self.told.as_ref().is_some_and(|told| told.mode == Mode::Observe) && self.stances.values().all(observes)
    }
}

/// Services by namespace and name, and how many endpoints of each are ready; `None`: it is not there.
pub type Services = BTreeMap<(String, String), Option<(Service, usize)>>;

/// What the webhook serves with.
#[derive(Clone, Debug)]
pub struct Served {
    /// The certificates; those of cert-manager come without a bundle.
    pub stored: Stored,
    /// `rolegate serve` keeps them itself.
    pub self_managed: bool,
}

/// Everything that is judged.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The installation.
    pub target: Target,
    /// The time by the clock of this machine.
    pub now: Timestamp,
    /// `1.36` as two numbers.
    pub version: (u32, u32),
    /// CustomResourceDefinitions, by name.
    pub definitions: Read<BTreeMap<String, Value>>,
    /// What the ServiceAccount may do.
    pub rights: Read<Rights>,
    /// All mutating webhook configurations.
    pub mutating: Read<Vec<MutatingWebhookConfiguration>>,
    /// All validating ones.
    pub validating: Read<Vec<ValidatingWebhookConfiguration>>,
    /// Labels of namespaces: ours and kube-system.
    pub namespaces: Read<BTreeMap<String, BTreeMap<String, String>>>,
    /// Services that our webhook configurations name.
    pub services: Read<Services>,
    /// The Secret of the certificates.
    pub certificates: Read<Option<Served>>,
    /// The Lease.
    pub lease: Read<Option<Lease>>,
    /// What became of a pod that names a group.
    pub probe: Read<Probe>,
    /// Why the pods of our Deployment are not made, in the words of its controller; `None` where there is nothing to say.
    pub not_made: Read<Option<String>>,
    /// Other rolegates.
    pub others: Read<Vec<Other>>,
    /// What may limit our own account.
    pub policies: Read<Policies>,
    /// Held pods whose group is missing.
    pub orphans: Read<Vec<Orphans>>,
    /// Why groups hold pods, or wait.
    pub held: Read<Vec<HeldGroup>>,
    /// Pods that run without the group for which they were held.
    pub uncoordinated: Read<Vec<Uncoordinated>>,
    /// Held pods that name no group, as `namespace/name`.
    pub nobodys: Read<Vec<String>>,
    /// Pods whose role is missing in their group.
    pub strangers: Read<Vec<Strangers>>,
    /// Autoscalers in each other's way.
    pub rivals: Read<Vec<Warned>>,
    /// Addresses that pods are given and that do not resolve.
    pub addresses: Read<Vec<Warned>>,
    /// Groups that ask for PodGroups.
    pub gangs: Read<Vec<Gang>>,
    /// What goes beyond gates, statuses and partitions.
    pub opt_ins: Read<Vec<OptIn>>,
    /// How namespaces are served.
    pub served: Read<ServedNamespaces>,
    /// The namespace of the pod of the dry run.
    pub try_in: String,
}
