//! The domains that batches share: what room each has, which batches are there, and where the next one goes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Picture;
use crate::fit::Fitted;
use crate::plan::placement::Room;

/// Domains that are drawn, of those without batches the ones with most room.
const MOST_DOMAINS: usize = 200;

/// The domains of one coordination.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainsDrawn<'a> {
    coordination: &'a str,
    /// The node label whose values tell the domains apart.
    key: &'a str,
    /// Number of the next batch, from 0; absent when all of them run.
    next: Option<u32>,
    /// What it asks for in all: thousandths of processors, bytes, or pieces.
    takes: BTreeMap<&'a str, i64>,
    boxes: Vec<DomainBox<'a>>,
    /// Domains that are not drawn.
    more: usize,
}

/// One domain.
#[derive(Serialize)]
struct DomainBox<'a> {
    name: String,
    nodes: u32,
    /// By resource that the next batch asks for: what is free, and what there is.
    room: BTreeMap<&'a str, Amount>,
    /// Batches that were given this domain, from 0.
    batches: Vec<u32>,
    /// The next batch goes here.
    next: bool,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Amount {
    free: i64,
    of: i64,
}

/// The domains of each coordination whose batches share one.
pub(super) fn domains<'a>(picture: &'a Picture, room: &Room) -> Vec<DomainsDrawn<'a>> {
    picture.fitted.iter().filter_map(|fitted| drawn(picture, fitted, room)).collect()
}

fn drawn<'a>(picture: &'a Picture, fitted: &'a Fitted, room: &Room) -> Option<DomainsDrawn<'a>> {
    let (key, answer) = (fitted.key.as_deref()?, fitted.answer.as_ref().ok()?);
    let states = &picture.seen.status.coordination_state;
    let given = states.iter().find(|state| state.name == fitted.name).map(|state| &state.domains);
    let first = answer.outlook.fits.first();
    let next = first.map(|(index, _)| *index).or(answer.outlook.stop.as_ref().map(|stop| stop.index));
    let goes_to = first.and_then(|(_, placement)| placement.domain.as_deref());
    let mut boxes: BTreeMap<&str, DomainBox<'a>> = BTreeMap::new();
    for (_, node, facts) in room.nodes() {
        let Some(name) = facts.label(key) else { continue };
        let drawn = boxes.entry(name).or_insert_with(|| DomainBox {
            name: name.to_owned(),
            nodes: 0,
            room: answer.next.keys().map(|resource| (&**resource, Amount::default())).collect(),
            batches: Vec::new(),
            next: goes_to == Some(name),
        });
        drawn.nodes += 1;
        for (resource, amount) in &mut drawn.room {
            amount.of = amount.of.saturating_add(node.allocatable(resource));
            // What a node cannot give to new pods is no room.
            let free = if facts.schedulable { node.free(resource).max(0) } else { 0 };
            amount.free = amount.free.saturating_add(free);
        }
    }
    for (batch, domain) in given.into_iter().flatten() {
        if let (Ok(batch), Some(drawn)) = (batch.parse(), boxes.get_mut(domain.as_str())) {
            drawn.batches.push(batch);
        }
    }
    let mut boxes: Vec<_> = boxes.into_values().collect();
    boxes.iter_mut().for_each(|drawn| drawn.batches.sort_unstable());
    let more = boxes.len().saturating_sub(MOST_DOMAINS);
    if more > 0 {
        let free = |drawn: &DomainBox<'_>| drawn.room.values().map(|amount| amount.free).max().unwrap_or_default();
        boxes.sort_by_key(|drawn| (!drawn.next, drawn.batches.is_empty(), -free(drawn)));
        boxes.truncate(MOST_DOMAINS);
        boxes.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let takes = answer.next.iter().map(|(resource, amount)| (&**resource, *amount)).collect();
    Some(DomainsDrawn { coordination: &fitted.name, key, next, takes, boxes, more })
}
