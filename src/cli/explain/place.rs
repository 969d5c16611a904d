//! The place of a pod in its group, and the domain that rolegate chose for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::api::Pod;
use crate::model::names::HOSTNAME;
use crate::model::wording::ordinals;
use crate::model::{HoldReason, PodIdentity, names};
use crate::plan::Held;
use crate::report::Picture;

/// The place of a pod in its group.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) carrier: Option<String>,
    pub(super) role: Option<String>,
    pub(super) ordinal: Option<u32>,
    pub(super) coordination: Option<String>,
    /// Word for its batch: segment, step.
    #[serde(skip)]
    pub(super) word: &'static str,
    /// Index, counted from 0.
    pub(super) batch: Option<u32>,
    pub(super) batches: Option<usize>,
    /// Number of held batches of the coordination that go first.
    pub(super) ahead: Option<u32>,
}

impl Place {
    pub(super) fn of(identity: &PodIdentity, ordinal: Option<u32>, picture: &Picture) -> Self {
        let role = identity.role.as_deref();
        let mut place = Self {
            group: identity.group.to_string(),
            carrier: picture.carrier().map(|(kind, name)| format!("{kind} {name}")),
            ordinal,
            role: role.map(str::to_owned),
            ..Self::default()
        };
        let first = picture.group().zip(role).and_then(|(group, role)| {
            let (coordination, batching) = group.batchings_of(role).next()?;
            Some((coordination, batching, ordinal.and_then(|ordinal| batching.batch_of(role, ordinal))))
        });
        let Some((coordination, batching, batch)) = first else { return place };
        let own = || picture.batches.iter().filter(|batch| batch.coordination == coordination.index);
        place.batch = batch;
        place.batches = Some(own().count());
        let first_held = own().find(|batch| batch.reason.is_some()).map(|batch| batch.index);
        place.ahead = place.batch.zip(first_held).map(|(batch, first)| batch.saturating_sub(first));
        place.word = batching.kind.word();
        place.coordination = Some(coordination.display_name());
        place
    }

    /// Returns the node label of the domain that the batch was given.
    fn domain<'a>(&self, picture: &'a Picture) -> Option<&'a str> {
        let (name, batch) = (self.coordination.as_ref()?, self.batch?);
        let group = picture.group()?;
        let state = group.status.coordination(name)?;
        state.domains().find(|(index, _)| *index == batch)?;
        let index = group.coordinations.iter().find(|known| known.display_name() == *name)?.index;
        picture.snapshot.domain_keys.iter().find(|(of, _)| *of == index).map(|(_, key)| key.as_str())
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("group {}", self.group);
        _ = self.carrier.as_ref().map(|carrier| write!(text, " ({carrier})"));
        _ = self.role.as_ref().map(|role| write!(text, ", role {role}"));
        _ = self.ordinal.map(|ordinal| write!(text, ", replica {}", ordinals(&(ordinal..=ordinal))));
        if let (Some(batch), Some(batches), Some(name)) = (self.batch, self.batches, &self.coordination) {
            // Users count from 1.
            _ = write!(text, ", {} {} of {batches} in {name:?} ({}={batch})", self.word, batch + 1, names::SEGMENT);
        }
        text
    }
}

/// Returns the node selector entries that rolegate added: the domain of the batch, and a node of it.
pub(super) fn pinned(pod: &Pod, place: &Place, picture: &Picture) -> BTreeMap<String, String> {
    let Some(key) = place.domain(picture) else { return BTreeMap::new() };
    let ours = |(label, _): &(&String, &String)| *label == key || *label == HOSTNAME;
    let ours = pod.spec.node_selector.iter().filter(ours);
    ours.map(|(label, value)| (label.clone(), value.clone())).collect()
}

/// Returns the hold of a placed batch whose pods have no node.
pub(super) fn not_bound<'a>(pod: &Pod, place: &Place, picture: &'a Picture) -> Option<&'a Held> {
    place.domain(picture).filter(|_| !pod.has_gate(names::GATE) && !pod.has_node())?;
    picture.seen.decision.held.iter().find(|held| held.reason == HoldReason::PlacedNotBound)
}
