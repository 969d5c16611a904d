//! The facts that `doctor` judges; all are read first.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use crate::api::ObjectKind;
use crate::cli::allow::Allow;
use crate::cli::doctor::hooks::Configurations;
use crate::cluster::certificates::Stored;
use crate::model::{Group, Mode, Serving, Stance};
use crate::plan::Held;

/// A fact, or why it could not be read.
pub type Read<T> = Result<T, String>;

/// The installation to check.
#[derive(Clone, Debug)]
pub struct Target {
    pub namespace: String,
    /// Name of the webhook configurations and the Lease.
    pub name: String,
}

/// A right in a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskedRight {
    /// API group; `""` for the core.
    pub group: &'static str,
    /// Resource, with its subresource after a slash.
    pub resource: &'static str,
    pub verb: &'static str,
    /// Namespace; `None` when the right must hold in all.
    pub namespace: Option<String>,
    /// Purpose of the right.
    pub why: &'static str,
    /// Name of the only object.
    pub object: Option<String>,
}

/// A user's missing rights.
#[derive(Clone, Debug)]
pub struct Rights {
    /// `system:serviceaccount:…`; `None` for the caller.
    pub user: Option<String>,
    pub missing: Vec<AskedRight>,
    /// Number of rights asked for.
    pub asked: usize,
}

/// The outcome of creating a pod as a dry run.
#[derive(Clone, Debug)]
pub enum Probe {
    /// The pod has our gate.
    Held,
    /// The pod has no gate of ours.
    NotHeld,
    /// The request was refused, with this message.
    Refused(String),
}

/// Running pods that were held for a group that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncoordinated {
    /// `namespace/name` of the missing group.
    pub group: String,
    pub pods: u32,
    /// True when the group existed at the creation of one of the pods.
    pub was_there: bool,
}

/// Pods with a role that their group lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strangers {
    /// `namespace/name` of the group.
    pub group: String,
    pub role: String,
    pub pods: u32,
}

/// Policies and their bindings.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// ValidatingAdmissionPolicies, by name.
    pub policies: BTreeMap<String, Value>,
    /// ValidatingAdmissionPolicyBindings, by the name of the policy.
    pub bindings: BTreeMap<String, Value>,
}

/// A rule's warning for a stored group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warned {
    /// `namespace/name` of the group.
    pub group: String,
    /// The rule's message.
    pub why: String,
}

/// Another rolegate installation in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Name of its webhook configurations.
    pub name: String,
    /// Namespaces in which both installations hold pods.
    pub shared: Vec<String>,
}

/// An `--allow` option that a group asks for or that is switched on.
#[derive(Clone, Debug)]
pub struct OptIn {
    pub what: Allow,
    /// `namespace/name` of the groups that ask for it.
    pub groups: Vec<String>,
    /// Whether our Deployment has it switched on; `None` without a Deployment.
    pub is_on: Option<bool>,
    /// Missing rights for the option.
    pub rights: Rights,
}

/// How namespaces are served.
#[derive(Clone, Debug, Default)]
pub struct ServedNamespaces {
    /// The flags that the leader publishes; `None` when it publishes nothing.
    pub told: Option<Serving>,
    /// Stances by namespace.
    pub stances: BTreeMap<String, Stance>,
    /// Number of groups by namespace; namespaces without groups are absent.
    pub groups: BTreeMap<String, usize>,
}

impl ServedNamespaces {
    /// Reports whether every namespace is only observed.
    pub fn only_observes(&self) -> bool {
        let observes = |stance: &Stance| stance.out.is_some() || stance.mode == Mode::Observe;
        self.told.as_ref().is_some_and(|told| told.mode == Mode::Observe) && self.stances.values().all(observes)
    }
}

/// Labels of namespaces, by namespace.
pub type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

/// CustomResourceDefinitions, by name.
pub type Definitions = BTreeMap<String, Value>;

/// Services by namespace and name, with their number of ready endpoints; `None` for a missing Service.
pub type Services = BTreeMap<(String, String), Option<(Service, usize)>>;

/// The serving certificate of the webhook.
#[derive(Clone, Debug)]
pub struct Served {
    /// The certificates; without a bundle when cert-manager issues them.
    pub stored: Stored,
    /// True when `rolegate serve` keeps the certificates itself.
    pub self_managed: bool,
    /// Why the Secret is not rolegate's, although it has its name.
    pub foreign: Option<&'static str>,
}

/// Facts about groups, by `namespace/name`, and their pods.
#[derive(Clone, Debug, Default)]
pub struct OfGroups {
    /// The numbers of held pods of missing groups.
    pub orphans: Vec<(String, u32)>,
    /// Why existing groups hold pods, or wait.
    pub held: Vec<(String, Held)>,
    /// Running pods without the group that held them.
    pub uncoordinated: Vec<Uncoordinated>,
    /// Pods with a role that their group lacks.
    pub strangers: Vec<Strangers>,
    /// The kinds of PodGroups that groups ask for.
    pub gangs: Vec<(String, ObjectKind)>,
    pub served: ServedNamespaces,
    /// Groups by the `--allow` option that they ask for.
    pub wanted: Vec<(Allow, String)>,
    /// Groups with an elastic number of segments.
    pub scaled: Vec<Arc<Group>>,
    /// Groups whose pods get addresses.
    pub addressed: Vec<Arc<Group>>,
}

#[derive(Clone, Debug)]
pub struct Facts {
    pub target: Target,
    /// Time by the local clock.
    pub now: Timestamp,
    /// Major and minor version of the API server: `1.36` is `(1, 36)`.
    pub version: (u32, u32),
    pub definitions: Read<Definitions>,
    /// Rights of the ServiceAccount.
    pub rights: Read<Rights>,
    /// All mutating webhook configurations.
    pub mutating: Configurations,
    /// All validating webhook configurations.
    pub validating: Configurations,
    /// Labels of our namespace and of kube-system, by namespace.
    pub namespaces: Read<Namespaces>,
    /// Services that our webhook configurations name.
    pub services: Read<Services>,
    /// The Secret of the certificates; `None` when it is missing.
    pub certificates: Read<Option<Served>>,
    pub lease: Read<Option<Lease>>,
    /// DeviceClasses, each with what of its devices is not modelled; `None` when the API server has no such kind.
    pub device_classes: Read<Option<BTreeMap<String, Vec<String>>>>,
    /// The outcome of a dry-run pod that names a group.
    pub probe: Read<Probe>,
    /// Why the pods of our Deployment are not created, in its controller's words; `None` without a problem.
    pub not_made: Read<Option<String>>,
    pub others: Read<Vec<Other>>,
    /// Policies that limit our own account.
    pub policies: Read<Policies>,
    /// Groups and their pods.
    pub groups: Read<OfGroups>,
    /// Held pods that name no group, as `namespace/name`.
    pub nobodys: Read<Vec<String>>,
    /// Autoscalers that conflict with each other.
    pub rivals: Read<Vec<Warned>>,
    /// Addresses of pods that do not resolve.
    pub addresses: Read<Vec<Warned>>,
    /// Opt-ins beyond gates, statuses and partitions.
    pub opt_ins: Read<Vec<OptIn>>,
    /// Namespace of the dry-run pod.
    pub try_in: String,
}

impl Facts {
    /// Returns one of the facts about groups.
    pub fn of_groups<T: ?Sized>(&self, which: impl Fn(&OfGroups) -> &T) -> Result<&T, &String> {
        self.groups.as_ref().map(which)
    }
}
