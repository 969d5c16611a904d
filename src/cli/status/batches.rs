//! The batches of a coordination as text: the cell of each in a bar, and a table.

use std::collections::BTreeMap;

use crate::cli::terminal::Table;
use crate::model::wording::{counted, ordinals};
use crate::model::{Batching, Coordination};
use crate::plan::{Batch, BatchState};
use crate::report::Picture;

/// Returns the batches of a coordination, in order.
pub(super) fn own<'a>(picture: &'a Picture, coordination: &Coordination) -> impl Iterator<Item = &'a Batch> {
    let index = coordination.index;
    picture.batches.iter().filter(move |batch| batch.coordination == index)
}

/// Returns the index of its cell in [`draw::BATCH`](crate::cli::draw::BATCH).
pub(super) fn cell(batch: &Batch) -> usize {
    match (batch.state, batch.reason) {
        (BatchState::Ready, _) => 0,
        (BatchState::Released, _) => 1,
        (BatchState::Held, None) => 2,
        (BatchState::Held, Some(_)) => 3,
    }
}

/// Returns a row for each batch; consecutive batches with equal state and reason share a row.
pub(super) fn table(picture: &Picture, coordination: &Coordination, batching: &Batching) -> String {
    let all: Vec<_> = own(picture, coordination).collect();
    let word = batching.kind.word().to_uppercase();
    let mut table = Table::with_heading([word.as_str(), "LABEL", "STATE", "REPLICAS", "REASON"]);
    // Released batches differ: some of their pods may be ready.
    let alike = |one: &&Batch, other: &&Batch| {
        let equal = one.state == other.state && one.is_held_in_part() == other.is_held_in_part();
        equal && one.reason == other.reason && one.state != BatchState::Released
    };
    for batches in all.chunk_by(alike) {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { continue };
        // Users count from 1; the label `rolegate.dev/segment` counts from 0.
        let [numbers, labels] = [1, 0].map(|start| ordinals(&(first.index + start..=last.index + start)));
        let reason = first.reason.map_or("-", |reason| reason.as_str());
        let state = if first.is_held_in_part() { "Held in part" } else { first.state.as_str() };
        table.row([&numbers, &labels, state, &replicas(batches), reason]);
    }
    if all.is_empty() { format!("    no {}\n", batching.kind.words()) } else { table.text(4) }
}

/// Sums the replicas by role: `prefill 10, 10 released, 4 ready; decode …`.
fn replicas(batches: &[&Batch]) -> String {
    let mut roles: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for (role, share) in batches.iter().flat_map(|batch| &batch.roles) {
        let [desired, released, ready] = roles.entry(role).or_default();
        *desired += share.desired();
        *released += share.released;
        *ready += share.ready;
    }
    let role = |(role, [desired, released, ready]): (&&str, &[u32; 3])| match (released, ready) {
        (0, _) => format!("{desired} {role} held"),
        (_, ready) if ready == desired => format!("{desired} {role} ready"),
        (released, ready) => format!("{ready}/{desired} {role} ready, {released} released"),
    };
    let roles: Vec<_> = roles.iter().map(role).collect();
    if roles.is_empty() { counted(0_u32, "replica") } else { roles.join("; ") }
}
