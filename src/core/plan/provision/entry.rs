//! Entries of the status: one for each batch for which nodes are, or were, requested; and the objects of each.

use std::sync::Arc;

use crate::api::ObjectKind;
use crate::api::provisioning::POD_TEMPLATE;
use crate::api::status::{ProvisioningState, RequestedPods};
use crate::model::moment::Moment;
use crate::model::words::words;
use crate::model::{Coordination, Group, ProvisionBy, WorkloadKey, names};
use crate::plan::placement::{Added, Needs};
use crate::plan::provision::template::Domains;
use crate::plan::view::PodRef;

words! {
/// The phase of a request for nodes.
pub enum Phase {
    /// Its objects exist, and the batch waits for the nodes.
    Requested,
    /// The batch takes the nodes of a ProvisioningRequest, which stays until its pods have nodes.
    Placed,
    /// Not all nodes came in time, or the autoscaler refused: its objects are deleted, and it is made again after a pause.
    GivenUp,
    /// The spec asks for it no longer, and its objects are being deleted: a new leader finds them by that.
    Withdrawn,
}
}

impl Phase {
    /// Returns the phase of an entry; `None` for an unknown phase.
    pub fn of(state: &ProvisioningState) -> Option<Self> {
        Self::of_word(&state.phase)
    }
}

/// Returns the entry of a batch.
pub(in crate::plan) fn of_batch<'a>(
    entries: &'a [ProvisioningState],
    coordination: &Coordination,
    batch: u32,
) -> Option<(Phase, &'a ProvisioningState)> {
    let name = coordination.display_name();
    let entry = entries.iter().find(|entry| entry.batch == batch && entry.coordination == name)?;
    Some((Phase::of(entry)?, entry))
}

/// Returns the resources with which nodes are requested for a batch.
pub(in crate::plan) fn awaited_resources<'a>(
    entries: &'a [ProvisioningState],
    coordination: &Coordination,
    batch: u32,
) -> &'a [String] {
    let entry = of_batch(entries, coordination, batch).filter(|(phase, _)| *phase != Phase::Withdrawn);
    entry.map_or(&[], |(_, entry)| &entry.resources)
}

/// Interchangeable pods of a batch without room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSet {
    pub role: String,
    pub requested: RequestedPods,
    pub sample: Sample,
}

/// Sorts the pods of a batch into interchangeable ones.
#[derive(Debug, Default)]
pub(in crate::plan) struct Sorts {
    sets: Vec<PodSet>,
    /// The needs of each set.
    needs: Vec<Arc<Needs>>,
}

impl Sorts {
    /// Adds pods of a role.
    pub(in crate::plan) fn add(&mut self, role: &str, needs: &Arc<Needs>, count: u32, sample: impl FnOnce() -> Sample) {
        let mut known = self.sets.iter_mut().zip(&self.needs);
        let same = known.find(|(set, known)| set.role == role && known.is_shaped_like(needs));
        if let Some((set, _)) = same {
            set.requested.count = set.requested.count.saturating_add(count);
            return;
        }
        let others = self.sets.iter().filter(|set| set.role == role).count();
        let name = if others == 0 { role.to_owned() } else { format!("{role}.{others}") };
        let requested = RequestedPods { name, count, shape: needs.shape() };
        self.sets.push(PodSet { role: role.to_owned(), requested, sample: sample() });
        self.needs.push(needs.clone());
    }

    pub(in crate::plan) fn needs(&self) -> &[Arc<Needs>] {
        &self.needs
    }

    pub(in crate::plan) fn end(self) -> Vec<PodSet> {
        self.sets
    }
}

/// The source of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// One of the pods.
    Pod(PodRef),
    /// The workload that will create them, the position of the template among those of its replica, and what admission adds.
    Workload(WorkloadKey, usize, Added),
}

/// An object of a request. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestObject {
    pub kind: ObjectKind,
    pub name: String,
    /// The name of the request.
    pub request: String,
    /// The PodTemplates that it refers to.
    pub templates: Vec<String>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Template {
        sample: Sample,
        domains: Domains,
    },
    /// A CapacityBuffer for so many pods of its template.
    Buffer {
        replicas: u32,
    },
    /// A ProvisioningRequest for so many pods of each of its templates.
    Request {
        class: String,
        counts: Vec<u32>,
    },
}

/// Returns the kind of object by which an entry requests nodes.
pub fn by(entry: &ProvisioningState) -> ProvisionBy {
    ProvisionBy::of_word(&entry.by).unwrap_or_default()
}

/// Returns the name of a request: `<group>-<coordination>-<batch>-<attempt>-<time>`. Attempts are counted anew once a batch has
/// gone, and objects of an earlier request of it may still be there; with the time, no name recurs.
pub fn request_name(group: &Group, entry: &ProvisioningState) -> String {
    name(group, entry, "")
}

/// Returns the name of an object of a request, which is a valid name of objects of all kinds.
fn name(group: &Group, entry: &ProvisioningState, of: &str) -> String {
    let ProvisioningState { coordination, batch, attempt, since, .. } = entry;
    let time = since.as_deref().and_then(Moment::parse).map(|since| since.0).unwrap_or_default();
    names::label_value(&format!("{}-{coordination}-{batch}-{attempt}-{time:x}{of}", group.key.name))
        .to_lowercase()
        .replace('_', "-")
}

/// Returns the kinds and names of the objects of an entry: of each set its PodTemplate and CapacityBuffer, or the
/// ProvisioningRequest.
pub fn objects_of(group: &Group, entry: &ProvisioningState) -> Vec<(ObjectKind, String)> {
    let sets = || entry.pod_sets.iter().map(|set| name(group, entry, &format!("-{}", set.name)));
    let templates = sets().map(|name| (POD_TEMPLATE, name));
    let kind = by(entry).kind();
    match by(entry) {
        ProvisionBy::CapacityBuffer => templates.chain(sets().map(|name| (kind, name))).collect(),
        ProvisionBy::ProvisioningRequest => templates.chain([(kind, request_name(group, entry))]).collect(),
    }
}

/// Returns the objects of an entry with their contents.
pub(super) fn made_of(
    group: &Group,
    entry: &ProvisioningState,
    sets: &[PodSet],
    key: Option<&str>,
) -> Vec<RequestObject> {
    let request = request_name(group, entry);
    let all = objects_of(group, entry);
    let templates: Vec<_> =
        all.iter().filter(|(kind, _)| *kind == POD_TEMPLATE).map(|(_, name)| name.clone()).collect();
    let domains = Domains { key: key.map(str::to_owned), avoided: entry.avoided.clone() };
    let template = |(name, set): (&String, &PodSet)| RequestObject {
        kind: POD_TEMPLATE,
        name: name.clone(),
        request: request.clone(),
        templates: Vec::new(),
        content: Content::Template { sample: set.sample.clone(), domains: domains.clone() },
    };
    let mut made: Vec<_> = templates.iter().zip(sets).map(template).collect();
    let counts: Vec<_> = sets.iter().map(|set| set.requested.count).collect();
    match by(entry) {
        ProvisionBy::CapacityBuffer => {
            made.extend(templates.iter().zip(counts).map(|(name, replicas)| RequestObject {
                kind: by(entry).kind(),
                name: name.clone(),
                request: request.clone(),
                templates: vec![name.clone()],
                content: Content::Buffer { replicas },
            }));
        }
        ProvisionBy::ProvisioningRequest => made.push(RequestObject {
            kind: by(entry).kind(),
            name: request.clone(),
            request,
            templates,
            content: Content::Request { class: entry.class.clone(), counts },
        }),
    }
    made
}
