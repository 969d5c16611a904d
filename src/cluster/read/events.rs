//! Events of one object, from any component.

use kube::Client;
use kube::api::ListParams;

use crate::api::event::{EVENT, Event};
use crate::cluster::watch::watched::api;

/// Largest number of Events read for one object.
const MOST_READ: u32 = 1000;

/// Returns the last Events of an object, latest first, at most `most`.
pub async fn events_of(
    client: &Client,
    (kind, namespace, name): (&str, &str, &str),
    most: usize,
) -> Result<Vec<Event>, kube::Error> {
    let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let params = ListParams::default().fields(&fields).limit(MOST_READ);
    let list = api::<Event>(client, EVENT, Some(namespace)).list(&params).await?;
    let mut events: Vec<_> = list.items.into_iter().map(|event| event.object).collect();
    events.sort_by(|one, other| other.last_seen().cmp(one.last_seen()));
    events.truncate(most);
    Ok(events)
}
