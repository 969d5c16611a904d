//! The DNS names of a role's pods within their namespace: `<hostname>.<governing Service>`.

use super::object_name::LABEL_MAX;
use super::{Maker, WorkloadKind, names};
use crate::api::Pod;
use crate::api::rbg::Role;

/// The names of the first pod of each replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    replicas: Replicas,
    /// What follows the name of a replica in the name of its first pod.
    first_pod: &'static str,
    service: Service,
}

/// The names of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Replicas {
    /// `<name>-<number>`, counted from a number.
    Numbered { name: String, start: i64 },
    /// The name of the only replica that is known.
    One(String),
}

/// The governing Service of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Service {
    Named(String),
    /// A Service of the name of the replica.
    OfReplica,
}

impl Hosts {
    /// Returns the names of a StatefulSet's pods; `None` without a governing Service.
    pub(super) fn of_stateful_set(name: &str, start: i64, service: &str) -> Option<Self> {
        let replicas = Replicas::Numbered { name: name.to_owned(), start };
        (!service.is_empty()).then(|| Self { replicas, first_pod: "", service: Service::Named(service.to_owned()) })
    }

    /// Returns the names of a LeaderWorkerSet's leaders.
    pub(super) fn of_leader_worker_set(name: &str, unique: bool) -> Self {
        let service = if unique { Service::OfReplica } else { Service::Named(name.to_owned()) };
        Self { replicas: Replicas::Numbered { name: name.to_owned(), start: 0 }, first_pod: "", service }
    }

    /// Returns the names of a RoleBasedGroup's role, as RBG v0.6 to v0.8 gives them. `workload` is the name of the role's
    /// workload; `kind` is its kind, `None` for RBG's own kinds, whose instances may have random names. Returns `None` if no
    /// hostname is known beforehand. With instances, the name is known only if the pods of an instance are numbered.
    pub(super) fn of_rbg_role(
        group: &str,
        workload: &str,
        kind: Option<WorkloadKind>,
        has_random_names: bool,
        role: &Role,
    ) -> Option<Self> {
        let first_pod = match kind {
            Some(WorkloadKind::LeaderWorkerSet) => return Some(Self::of_leader_worker_set(workload, false)),
            Some(WorkloadKind::StatefulSet) => "",
            None if has_random_names => return None,
            None if role.leader_worker_pattern.is_some() => "-0",
            None if role.standalone_pattern.is_some() => "",
            Some(WorkloadKind::Deployment) | None => return None,
        };
        let replicas = Replicas::Numbered { name: workload.to_owned(), start: 0 };
        Some(Self { replicas, first_pod, service: Service::Named(rbg_service(group, &role.name)) })
    }

    /// Returns the names of the replicas of a pod's workload, as far as the pod tells them. `ordinal` is the index of its replica
    /// from 0; `group` and `role` are those of its labels. Returns `None` for a pod without a governing Service, and for one whose
    /// name nobody knows.
    pub fn of_pod(pod: &Pod, ordinal: Option<u32>, group: &str, role: &str) -> Option<Self> {
        let meta = &pod.metadata;
        let service = pod.spec.subdomain.clone().filter(|service| !service.is_empty());
        let numbered = |name: &str| {
            let (name, number) = name.rsplit_once('-')?;
            let start = number.parse::<i64>().ok()? - i64::from(ordinal?);
            Some(Replicas::Numbered { name: name.to_owned(), start })
        };
        let one = |name: &str| Replicas::One(name.to_owned());
        let named = |replicas, first_pod| Some(Self { replicas, first_pod, service: Service::Named(service.clone()?) });
        match Maker::of(meta) {
            // The Service of each group, where the pod is in one of that name, has the name of the group.
            Maker::LeaderWorkerSet { name, .. } => {
                service.as_deref().map(|service| Self::of_leader_worker_set(name, service != name))
            }
            Maker::HashedGroup { leader } => named(one(leader.or(meta.name.as_deref())?), ""),
            Maker::StatefulSet(_) => {
                let own = meta.name.as_deref().or(meta.label(names::STATEFUL_SET_POD));
                named(numbered(own?)?, "")
            }
            // Workers of RBG have no subdomain: their leader alone has a name.
            Maker::RoleInstance(name) | Maker::Instance(name) => {
                let is_numbered = meta.label(names::RBG_MEMBER).is_some() || Maker::is_numbered_pod_of(meta, name);
                let first_pod = if is_numbered { "-0" } else { "" };
                let service = service.unwrap_or_else(|| rbg_service(group, role));
                let replicas = numbered(name).unwrap_or_else(|| one(name));
                Some(Self { replicas, first_pod, service: Service::Named(service) })
            }
            Maker::Job(name) => named(Replicas::Numbered { name: name.to_owned(), start: 0 }, ""),
            Maker::JobOfSet { name, .. } => named(numbered(name).unwrap_or_else(|| one(name)), "-0"),
            Maker::Other => None,
        }
    }

    /// Returns the name of the first pod of a replica; `None` for a replica without a known name.
    pub fn of(&self, ordinal: u32) -> Option<String> {
        let replica = match &self.replicas {
            Replicas::Numbered { name, start } => format!("{name}-{}", start.checked_add(i64::from(ordinal))?),
            Replicas::One(_) => return None,
        };
        Some(self.in_replica(&replica))
    }

    /// Returns the name of the first pod of the pod's own replica.
    pub fn of_own(&self, ordinal: Option<u32>) -> Option<String> {
        match &self.replicas {
            Replicas::Numbered { .. } => self.of(ordinal?),
            Replicas::One(name) => Some(self.in_replica(name)),
        }
    }

    /// Returns the name of the first pod of all.
    pub fn first(&self) -> Option<String> {
        self.of(0)
    }

    fn in_replica(&self, replica: &str) -> String {
        let service = match &self.service {
            Service::Named(service) => service,
            Service::OfReplica => replica,
        };
        format!("{replica}{}.{service}", self.first_pod)
    }
}

/// Returns the Service that RBG makes for a role.
fn rbg_service(group: &str, role: &str) -> String {
    rbg_name(&format!("s-{group}-{role}"))
}

/// Returns a name as RBG shortens it: cut, without a hash and without hyphens at the end.
pub(super) fn rbg_name(whole: &str) -> String {
    let name: String = whole.chars().take(LABEL_MAX).collect();
    if name.len() < whole.len() { name.trim_end_matches('-').to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(owner: (&str, &str), name: &str, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name,
                "ownerReferences": [{ "apiVersion": "v1", "kind": owner.0, "name": owner.1, "controller": true }],
            },
        });
        json_patch::merge(&mut pod, more);
        serde_json::from_value(pod).unwrap()
    }

    fn names(pod: &Pod, own: Option<u32>) -> (Option<String>, Option<String>) {
        let hosts = Hosts::of_pod(pod, own, "pd", "decode");
        (hosts.as_ref().and_then(|hosts| hosts.of_own(own)), hosts.and_then(|hosts| hosts.of(3)))
    }

    fn known(own: &str, third: &str) -> (Option<String>, Option<String>) {
        (Some(own.to_owned()), Some(third.to_owned()))
    }

    #[test]
    fn pods_of_every_maker_know_the_first_pod_of_their_replica_and_of_others() {
        let in_service = |service: &str| json!({ "spec": { "subdomain": service } });
        let set = pod(("StatefulSet", "d"), "d-7", &in_service("d-svc"));
        assert_eq!(names(&set, Some(2)), known("d-7.d-svc", "d-8.d-svc"), "it counts from 5");
        let lws = |service: &str| {
            let mut more = in_service(service);
            more["metadata"] = json!({ "labels": { names::LWS_NAME: "d" } });
            pod(("StatefulSet", "d-2"), "d-2-1", &more)
        };
        assert_eq!(names(&lws("d"), Some(2)), known("d-2.d", "d-3.d"));
        assert_eq!(names(&lws("d-2"), Some(2)), known("d-2.d-2", "d-3.d-3"), "one Service for each group");
        let worker = json!({ "metadata": { "labels": { names::RBG_MEMBER: "1", names::RBG_INSTANCE_SIZE: "2" } } });
        let worker = pod(("RoleInstance", "pd-decode-2"), "pd-decode-2-1", &worker);
        assert_eq!(names(&worker, Some(2)), known("pd-decode-2-0.s-pd-decode", "pd-decode-3-0.s-pd-decode"));
        let alone = pod(("RoleInstance", "pd-decode-2"), "pd-decode-2", &json!({}));
        assert_eq!(names(&alone, Some(2)), known("pd-decode-2.s-pd-decode", "pd-decode-3.s-pd-decode"));
        let job = pod(("Job", "j"), "j-2-x7f4b", &in_service("j-svc"));
        assert_eq!(names(&job, Some(2)), known("j-2.j-svc", "j-3.j-svc"));
    }

    #[test]
    fn rbg_cuts_a_name_at_63_letters_and_leaves_no_hyphen_at_its_end() {
        let long = "g".repeat(60);
        assert_eq!(rbg_name(&format!("{long}-de")), format!("{long}-de"), "63 letters");
        assert_eq!(rbg_name(&format!("{long}-decode")), format!("{long}-de"));
        assert_eq!(rbg_name(&format!("{long}gg-decode")), format!("{long}gg"));
        assert_eq!(rbg_service(&long, "decode"), format!("s-{long}"));
    }

    #[test]
    fn what_nobody_knows_has_no_name() {
        let without_service = pod(("StatefulSet", "d"), "d-7", &json!({}));
        assert_eq!(names(&without_service, Some(2)), (None, None));
        let deployment = pod(("ReplicaSet", "d-5f"), "d-5f-x", &json!({ "spec": { "subdomain": "d" } }));
        assert_eq!(names(&deployment, None), (None, None));
        let random = json!({ "metadata": { "labels": { names::RBG_MEMBER: "0", names::RBG_INSTANCE_SIZE: "2" } } });
        let random = pod(("RoleInstance", "pd-decode-x7f4b"), "pd-decode-x7f4b-0", &random);
        assert_eq!(names(&random, None), (Some("pd-decode-x7f4b-0.s-pd-decode".to_owned()), None));
    }
}
