//! Events and counts of requests for nodes: what the stored entries of the status show since the last pass.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::status::ProvisioningState;
use crate::model::Group;
use crate::model::moment::Moment;
use crate::plan::provision::entry::Phase;
use crate::plan::provision::text::requests;
use crate::plan::reconcile::events::EventNote;
use crate::plan::recovery::text::roles_of;

/// The reason of the Event on nodes that did not come.
pub const NODES_MISSING: &str = "NodesMissing";

/// A change of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestNews {
    Requested,
    GivenUp,
    /// The batch is released, this long after the request.
    Whole(Duration),
}

impl RequestNews {
    /// Returns a stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::GivenUp => "given_up",
            Self::Whole(_) => "whole",
        }
    }
}

/// The last stored entries, by coordination and batch; `None` before the first pass.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReportedRequests(Option<BTreeMap<(String, u32), ProvisioningState>>);

impl ReportedRequests {
    /// Returns new Events, and all changes.
    pub(in crate::plan) fn news(&mut self, group: &Group, now: Option<Moment>) -> (Vec<EventNote>, Vec<RequestNews>) {
        let entries = group.status.provisioning.iter();
        let stored: BTreeMap<_, _> =
            entries.map(|entry| ((entry.coordination.clone(), entry.batch), entry.clone())).collect();
        let (mut events, mut news) = (Vec::new(), Vec::new());
        let Some(before) = self.0.replace(stored.clone()) else { return (events, news) };
        for (key, entry) in &stored {
            let is_new =
                before.get(key).is_none_or(|before| (before.attempt, &before.phase) != (entry.attempt, &entry.phase));
            match Phase::of(entry).filter(|_| is_new) {
                Some(Phase::Requested) => news.push(RequestNews::Requested),
                Some(Phase::GivenUp) => {
                    news.push(RequestNews::GivenUp);
                    events.push(missing(group, entry));
                }
                Some(Phase::Placed | Phase::Withdrawn) | None => {}
            }
        }
        let ended = before.iter().filter(|(key, before)| {
            let after = stored.get(*key).and_then(Phase::of);
            Phase::of(before) == Some(Phase::Requested) && matches!(after, None | Some(Phase::Placed))
        });
        for (_, entry) in ended.filter(|(_, entry)| is_placed(group, entry)) {
            let since = entry.since.as_deref().and_then(Moment::parse);
            news.extend(since.zip(now).map(|(since, now)| RequestNews::Whole(since.until(now))));
        }
        (events, news)
    }
}

fn is_placed(group: &Group, entry: &ProvisioningState) -> bool {
    let state = group.status.coordination(&entry.coordination);
    state.is_some_and(|state| state.domains().any(|(batch, _)| batch == entry.batch))
}

/// Returns an Event such as `segment 2: request 1 for nodes was given up: not all nodes came within 15m: no rack fits segment 2: …`
fn missing(group: &Group, entry: &ProvisioningState) -> EventNote {
    let ProvisioningState { coordination, batch, attempt, .. } = entry;
    let note = requests(group, std::slice::from_ref(entry)).collect::<String>();
    let subject = format!("{coordination} {batch} {attempt}");
    EventNote::new(NODES_MISSING, subject, note, true).of_roles(roles_of(group, coordination))
}
