//! The choices of an installation, and the conditions on parts of objects.

use clap::ValueEnum;

use super::kubernetes::Minor;
use super::settings::Certificates;
use crate::api::ObjectKind;
use crate::model::{Allowed, IgnoredResources, Mode};

/// Choices that decide which objects and fields exist.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Source of the serving certificate.
    pub certificates: Certificates,
    /// Adds a ServiceMonitor; needs the definition of the Prometheus operator.
    pub service_monitor: bool,
    /// Deletes held pods that were stamped for another batch, so that they are created again.
    pub recreate_mis_stamped: bool,
    /// Opt-ins beyond gates, statuses and partitions.
    pub allowed: Allowed,
    /// Kinds whose objects groups may wait for.
    pub ready_kinds: Vec<ObjectKind>,
    /// Resources that need not be on a node.
    pub ignored_resources: IgnoredResources,
    /// Mode of rolegate.
    pub mode: Mode,
    /// Runs the pods on the network of their node.
    pub host_network: bool,
    /// Parts to leave out.
    pub without: Vec<Without>,
    /// Version of the cluster.
    pub kubernetes: Minor,
}

impl Choices {
    fn has(&self, what: Without) -> bool {
        !self.without.contains(&what)
    }
}

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Without {
    /// The NetworkPolicy.
    NetworkPolicy,
    /// The PodDisruptionBudget.
    DisruptionBudget,
    /// `runAsUser`, `runAsGroup` and `fsGroup`, if the platform chooses them, as OpenShift does.
    UserIds,
    /// The ResourceQuota for the class of the pods.
    ResourceQuota,
    /// Additions to the cluster roles view, edit and admin.
    AggregatedRoles,
    /// The webhooks for pods that name a PodGroup of KAI.
    KaiPods,
}

/// A condition on a part of an object.
#[derive(Debug)]
pub struct Condition {
    name: &'static str,
    /// The condition in a Helm template.
    pub helm: &'static str,
    /// Reports whether the condition holds for these choices.
    pub holds: fn(&Choices) -> bool,
}

const CONDITIONS: &[Condition] = &[
    Condition {
        name: "self-managed",
        helm: r#"eq .Values.certificates "self-managed""#,
        holds: |choices| choices.certificates == Certificates::SelfManaged,
    },
    Condition {
        name: "cert-manager",
        helm: r#"eq .Values.certificates "cert-manager""#,
        holds: |choices| choices.certificates == Certificates::CertManager,
    },
    Condition { name: "service-monitor", helm: ".Values.serviceMonitor", holds: |choices| choices.service_monitor },
    Condition {
        name: "recreate-mis-stamped",
        helm: ".Values.recreateMisStamped",
        holds: |choices| choices.recreate_mis_stamped,
    },
    Condition {
        name: "not recreate-mis-stamped",
        helm: "not .Values.recreateMisStamped",
        holds: |choices| !choices.recreate_mis_stamped,
    },
    Condition { name: "allow", helm: ".Values.allow", holds: |choices| choices.allowed != Allowed::default() },
    Condition { name: "ready-kinds", helm: ".Values.readyKinds", holds: |choices| !choices.ready_kinds.is_empty() },
    Condition {
        name: "ignore-resources",
        helm: ".Values.ignoreResources",
        holds: |choices| choices.ignored_resources != IgnoredResources::default(),
    },
    Condition { name: "mode", helm: r#"ne .Values.mode "enforce""#, holds: |choices| choices.mode != Mode::Enforce },
    Condition { name: "rules", helm: ".Values.rules", holds: |_| true },
    Condition { name: "selector", helm: ".Values.namespaceSelector", holds: |_| true },
    Condition { name: "scale", helm: r#"has "scale" .Values.allow"#, holds: |choices| choices.allowed.scale },
    Condition {
        name: "not scale",
        helm: r#"not (has "scale" .Values.allow)"#,
        holds: |choices| !choices.allowed.scale,
    },
    Condition { name: "recovery", helm: r#"has "recovery" .Values.allow"#, holds: |choices| choices.allowed.recovery },
    Condition {
        name: "not recovery",
        helm: r#"not (has "recovery" .Values.allow)"#,
        holds: |choices| !choices.allowed.recovery,
    },
    Condition {
        name: "provision",
        helm: r#"has "provision" .Values.allow"#,
        holds: |choices| choices.allowed.provision,
    },
    Condition {
        name: "not provision",
        helm: r#"not (has "provision" .Values.allow)"#,
        holds: |choices| !choices.allowed.provision,
    },
    Condition { name: "host-network", helm: ".Values.hostNetwork", holds: |choices| choices.host_network },
    Condition {
        name: "network-policy",
        helm: "and .Values.networkPolicy.enabled (not .Values.hostNetwork)",
        holds: |choices| choices.has(Without::NetworkPolicy) && !choices.host_network,
    },
    Condition {
        name: "disruption-budget",
        helm: ".Values.podDisruptionBudget.enabled",
        holds: |choices| choices.has(Without::DisruptionBudget),
    },
    Condition {
        name: "resource-quota",
        helm: r#"and .Values.resourceQuota.enabled (hasPrefix "system-" .Values.priorityClassName)"#,
        holds: |choices| choices.has(Without::ResourceQuota),
    },
    Condition {
        name: "aggregated-roles",
        helm: ".Values.aggregatedRoles.enabled",
        holds: |choices| choices.has(Without::AggregatedRoles),
    },
    Condition { name: "kai-pods", helm: ".Values.kaiPods.enabled", holds: |choices| choices.has(Without::KaiPods) },
    Condition {
        name: "not kai-pods",
        helm: "not .Values.kaiPods.enabled",
        holds: |choices| !choices.has(Without::KaiPods),
    },
    // The chart has a value for the whole security context.
    Condition { name: "user-ids", helm: "true", holds: |choices| choices.has(Without::UserIds) },
    Condition { name: "uninstall", helm: ".Values.uninstall.enabled", holds: |_| true },
    Condition {
        name: "volumes",
        helm: r#"or (eq .Values.certificates "cert-manager") .Values.extraVolumes"#,
        holds: |choices| choices.certificates == Certificates::CertManager,
    },
    Condition {
        name: "volume-mounts",
        helm: r#"or (eq .Values.certificates "cert-manager") .Values.extraVolumeMounts"#,
        holds: |choices| choices.certificates == Certificates::CertManager,
    },
    Condition { name: "namespaces", helm: ".Values.namespaces", holds: |_| true },
    Condition { name: "test", helm: ".Values.test.enabled", holds: |_| true },
    Condition { name: "log-level", helm: ".Values.logLevel", holds: |_| false },
];

/// Returns the condition of a name.
pub fn condition(name: &str) -> Option<&'static Condition> {
    CONDITIONS.iter().find(|condition| condition.name == name)
}
