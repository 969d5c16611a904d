//! Events of one object, from any component.

use kube::Client;
use kube::api::ListParams;

use crate::api::event::{EVENT, Event};
use crate::cluster::objects::api;
use crate::model::Carrier;

/// Largest number of Events read for one object.
const MOST_READ: u32 = 1000;

/// Returns the last Events of the object that carries a group, latest first, at most `most`.
pub async fn events_of(client: &Client, namespace: &str, carrier: &Carrier, most: usize) -> kube::Result<Vec<Event>> {
    let Carrier { kind, name, uid, created, .. } = carrier;
    let fields = format!("involvedObject.kind={},involvedObject.name={name}", kind.kind);
    let params = ListParams::default().fields(&fields).limit(MOST_READ);
    let mut events = api::<Event>(client, EVENT, Some(namespace)).list(&params).await?.items;
    events.retain(|event| event.is_about(uid, created));
    events.sort_by(|one, other| other.last_seen().cmp(one.last_seen()));
    events.truncate(most);
    Ok(events)
}
