//! The watches of a rolegate: each with its own delay, each in order.

use rolegate::api::Object;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::role_coordination::ROLE_COORDINATION;
use rolegate::cluster::index::Change;
use rolegate::model::WorkloadKind;

use crate::prelude::*;
use crate::room::note_refusal;
use crate::server::NAMESPACES;
use crate::sets::{Read, claim, spec_of};

/// The namespace, as the watch of namespaces delivers it.
#[derive(Clone)]
struct Namespace(Meta);

impl Object for Namespace {
    fn meta(&self) -> &Meta {
        &self.0
    }
}

impl Replica {
    /// Delivers the list of a watch: all existing objects.
    pub fn list(&mut self, watch: usize, server: &Server) {
        self.cursors[watch] = Some(server.log[watch].len());
        match watch {
            0 => {
                self.seen.list_pods(server);
                let pods = server.pods.values().map(|pod| (**pod).clone()).collect();
                self.index.pod_change(0, Change::Listed(pods));
            }
            1 => {
                self.seen.list_groups(server);
                let kind = if server.setup.refers { ROLE_COORDINATION } else { ROLE_BASED_GROUP };
                let groups = server.group.iter().map(|group| Some(group.read())).collect();
                self.index.carrier_change(1, kind, Change::Listed(groups));
            }
            2..NAMESPACES => {
                let kind = WorkloadKind::ALL[watch - 2];
                let of_kind = (0..ROLES.len()).filter(|role| server.watch_of(*role) == watch);
                let seen = |role: usize| match server.sets.get(role) {
                    Some(set) => set.seen(),
                    None => workload(&server.setup, role, server.workloads[role]),
                };
                let listed = of_kind.map(seen).collect();
                self.index.workload_change(watch, kind, Change::Listed(listed));
            }
            _ => {
                let listed = vec![namespace(server.ignored, server.observes())];
                self.index.namespace_change(NAMESPACES, Change::Listed(listed));
            }
        }
    }

    /// Delivers the next event of a watch; returns false when there is none. A duplicate is delivered again later.
    pub fn deliver(&mut self, watch: usize, server: &Server, duplicate: bool) -> bool {
        let Some(cursor) = self.cursors[watch] else {
            self.list(watch, server);
            return true;
        };
        let Some((version, event)) = server.log[watch].get(cursor) else { return false };
        if !duplicate {
            self.cursors[watch] = Some(cursor + 1);
        }
        self.seen.event(*version, event);
        if let Event::Pod(pod) = event {
            note_refusal(&mut self.refusals, pod, server.now);
        }
        let kind = if server.setup.refers { ROLE_COORDINATION } else { ROLE_BASED_GROUP };
        match event.clone() {
            Event::Pod(pod) => self.index.pod_change(0, Change::Applied((*pod).clone())),
            Event::PodGone(pod) => self.index.pod_change(0, Change::Deleted((*pod).clone())),
            Event::Group(group) => self.index.carrier_change(1, kind, Change::Applied(Some(group.read()))),
            Event::GroupGone(group) => self.index.carrier_change(1, kind, Change::Deleted(Some(group.read()))),
            Event::Workload(role, replicas) => {
                let seen = workload(&server.setup, role, replicas);
                self.index.workload_change(watch, seen.workload.key.kind, Change::Applied(seen));
            }
            Event::Set(set) => {
                self.index.workload_change(watch, set.kind, Change::Applied(set.seen()));
            }
            Event::Machine(_) | Event::Object(_) | Event::ObjectGone(_) => {
                unreachable!("they have watches of their own")
            }
            Event::Ignored(ignored, observes) => {
                self.index.namespace_change(NAMESPACES, Change::Applied(namespace(ignored, observes)));
            }
        }
        true
    }
}

/// Returns the namespace; when `ignored`, it has opted out or is only observed.
fn namespace(ignored: bool, observes: bool) -> Namespace {
    let label = if observes { (names::MODE, "observe") } else { (names::IGNORE, "") };
    let labels = ignored.then(|| (label.0.to_owned(), label.1.to_owned())).into_iter().collect();
    Namespace(Meta { name: Some(NAMESPACE.to_owned()), labels, ..Meta::default() })
}

/// Returns a role's workload as its watch delivers it.
fn workload(setup: &Setup, role: usize, replicas: u32) -> SeenWorkload {
    let (kind, spec) = spec_of(setup.makers[role], replicas, &json!({ "metadata": { "labels": claim(role) } }));
    let object = json!({ "metadata": { "name": ROLES[role], "namespace": NAMESPACE }, "spec": spec });
    kind.with_type(Read(&object))
}
