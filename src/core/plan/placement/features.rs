//! Features of kubelets that pods need: NodeDeclaredFeatures of kube-scheduler. Of the features that nodes declare, only these decide
//! where a new pod goes.

use crate::api::Node;
use crate::api::scheduling::{SchedulingContainer, SchedulingSpec};

/// A feature, and whether pods with a spec need it.
type Feature = (&'static str, fn(&SchedulingSpec) -> bool);

const FEATURES: [Feature; 2] = [
    ("RestartAllContainersOnContainerExits", restarts_all),
    ("UserNamespacesHostNetworkSupport", |spec| spec.host_network && spec.host_users == Some(false)),
];

fn restarts_all(spec: &SchedulingSpec) -> bool {
    let does = |container: &SchedulingContainer| {
        container.restart_policy_rules.iter().any(|rule| rule.action == "RestartAllContainers")
    };
    spec.containers.iter().chain(&spec.init_containers).any(does)
}

/// Returns the features that a pod needs.
pub(super) fn needed(spec: &SchedulingSpec) -> Vec<&'static str> {
    FEATURES.iter().filter(|(_, needs)| needs(spec)).map(|(name, _)| *name).collect()
}

/// Returns the features that a node has; `None` if it declares none at all, as a kubelet that is older than declarations.
pub(super) fn declared(node: &Node) -> Option<Vec<&'static str>> {
    let declared = &node.status.declared_features;
    let known = FEATURES.iter().map(|(name, _)| *name).filter(|name| declared.iter().any(|known| known == name));
    (!declared.is_empty()).then(|| known.collect())
}
