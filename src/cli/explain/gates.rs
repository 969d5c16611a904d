//! Finds the owner of a scheduling gate by the domain in its name.

use crate::api::Pod;
use crate::model::names;

/// Domains of gates, their owners, and the command that shows why the owner waits.
const OWNERS: &[(&str, &str, &str)] = &[
    ("rolegate.dev", "rolegate", ""),
    ("kueue.x-k8s.io", "Kueue", "kubectl get workloads.kueue.x-k8s.io"),
    ("grove.io", "Grove", "kubectl get podgangs.scheduler.grove.io"),
    ("kai.scheduler", "KAI Scheduler", "kubectl describe podgroups.scheduling.run.ai"),
    ("run.ai", "KAI Scheduler", "kubectl describe podgroups.scheduling.run.ai"),
    ("volcano.sh", "Volcano", "kubectl describe podgroups.scheduling.volcano.sh"),
    ("koordinator.sh", "Koordinator", "kubectl describe podgroups.scheduling.sigs.k8s.io"),
    ("scheduling.x-k8s.io", "scheduler-plugins", "kubectl describe podgroups.scheduling.x-k8s.io"),
    ("leaderworkerset.sigs.k8s.io", "LeaderWorkerSet", "kubectl describe leaderworkersets"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "kubectl describe leaderworkersets"),
    ("jobset.sigs.k8s.io", "JobSet", "kubectl describe jobsets"),
    ("jobset.x-k8s.io", "JobSet", "kubectl describe jobsets"),
    ("workloads.x-k8s.io", "RoleBasedGroup operator", "kubectl describe rolebasedgroups"),
    ("multiarch.openshift.io", "OpenShift's multi-architecture tuning", ""),
    ("kubernetes.io", "Kubernetes", ""),
];

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Gate {
    pub name: String,
    /// The project that adds and lifts the gate.
    pub owner: &'static str,
    /// True for gates of rolegate.
    pub ours: bool,
    /// Command that shows why the owner waits.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub ask: &'static str,
}

/// Returns the gates of a pod, in order.
pub fn gates(pod: &Pod) -> Vec<Gate> {
    pod.spec.scheduling_gates.iter().flatten().map(|gate| owned(&gate.name)).collect()
}

fn owned(name: &str) -> Gate {
    let domain = name.split_once('/').map_or("", |(domain, _)| domain);
    let is_of = |known: &str| domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let (_, owner, ask) = OWNERS.iter().find(|(known, _, _)| is_of(known)).copied().unwrap_or(("", "unknown", ""));
    Gate { name: name.to_owned(), owner, ours: name == names::GATE, ask }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_belongs_to_whom_its_domain_names() {
        let owner = |name: &str| owned(name).owner;
        assert!(owned("rolegate.dev/hold").ours);
        assert_eq!(owner("kueue.x-k8s.io/admission"), "Kueue");
        assert_eq!(owner("grove.io/podgang-pending-creation"), "Grove");
        assert_eq!(owner("scheduling.volcano.sh/queue"), "Volcano");
        assert_eq!(owner("notgrove.io/x"), "unknown");
        assert_eq!(owner("bare"), "unknown");
    }
}
