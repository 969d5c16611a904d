//! The domains that batches share: their room, their batches, and the domains of the next batches.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Picture;
use crate::fit::{Cluster, DomainRoom, Fitted, Rooms, Sums};
use crate::model::Group;

/// Largest number of drawn domains: domains with batches first, then those with most room.
const MOST_DOMAINS: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainsDrawn<'a> {
    coordination: &'a str,
    /// The node label whose values are the domains.
    key: &'a str,
    /// Number of the next batch, from 0.
    next: u32,
    /// Total requests of the next batch: thousandths of processors, bytes, or pieces.
    takes: BTreeMap<&'a str, i64>,
    /// The resource of all amounts: the scarcest one for the batches.
    resource: String,
    boxes: Vec<DomainBox>,
    /// Number of domains that are not drawn.
    more: usize,
}

/// One domain, with amounts of the resource.
#[derive(Serialize)]
struct DomainBox {
    name: String,
    nodes: usize,
    #[serde(flatten)]
    sums: Sums,
    /// Batches that were assigned to this domain, from 0.
    batches: Vec<u32>,
    /// Batches that would go here, perhaps including the next one.
    coming: Vec<u32>,
}

/// Returns the domains of each coordination whose batches share one.
pub(super) fn domains<'a>(picture: &'a Picture, cluster: &Cluster) -> Vec<DomainsDrawn<'a>> {
    let drawn = |group| picture.fitted.iter().filter_map(move |fitted| drawn(picture, group, fitted, cluster));
    picture.group().into_iter().flat_map(|group| drawn(group)).collect()
}

fn drawn<'a>(picture: &'a Picture, group: &Group, fitted: &'a Fitted, cluster: &Cluster) -> Option<DomainsDrawn<'a>> {
    let (key, answer) = (fitted.key.as_deref()?, fitted.answer.as_ref().ok()?);
    let rooms = Rooms::of(fitted, group, cluster)?;
    let states = &picture.seen.status.coordination_state;
    let given = states.iter().find(|state| state.name == fitted.name).map(|state| &state.domains);
    let there = |name: &str| {
        let batches = given.into_iter().flatten().filter(|(_, domain)| *domain == name);
        let mut batches: Vec<u32> = batches.filter_map(|(batch, _)| batch.parse().ok()).collect();
        batches.sort_unstable();
        batches
    };
    let (boxes, more) = rooms.domains.split_at(rooms.domains.len().min(MOST_DOMAINS));
    let first = answer.outlook.fits.first().map(|(index, _)| *index);
    Some(DomainsDrawn {
        coordination: &fitted.name,
        key,
        next: first.or(answer.outlook.stop.as_ref().map(|stop| stop.index))?,
        takes: answer.next.iter().map(|(resource, amount)| (&**resource, *amount)).collect(),
        resource: rooms.resource.to_string(),
        boxes: boxes.iter().map(|domain| DomainBox::of(domain, &there)).collect(),
        more: more.len(),
    })
}

impl DomainBox {
    fn of(domain: &DomainRoom, there: &impl Fn(&str) -> Vec<u32>) -> Self {
        let name = domain.name.clone().unwrap_or_default();
        Self { batches: there(&name), coming: domain.batches(), nodes: domain.nodes.len(), sums: domain.sums(), name }
    }
}
