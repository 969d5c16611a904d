//! Events on the object that carries a group: one when a batch begins to be held for a reason, one when replicas are
//! released. Admission never makes any: it has no side effects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::model::{Group, HoldReason};
use crate::plan::{Decision, Held};

/// Reason of the Event that replicas were released.
const RELEASED: &str = "Released";

/// What was said last of a group, so that it is not said again.
#[derive(Debug, Default)]
pub struct Said {
    held: BTreeMap<Option<String>, (HoldReason, Option<u32>)>,
    /// `None` before the first look: what was released before this process began is no news.
    released: Option<BTreeMap<String, u32>>,
}

impl Said {
    /// What is new in a decision: notes with their reasons, worth a warning or not.
    pub fn news(&mut self, group: &Group, decision: &Decision) -> Vec<News> {
        let held: BTreeMap<_, _> =
            decision.held.iter().map(|held| (held.coordination.clone(), (held.reason, held.batch))).collect();
        let is_new = |entry: &&Held| self.held.get(&entry.coordination) != Some(&(entry.reason, entry.batch));
        let mut news: Vec<_> = decision.held.iter().filter(is_new).map(News::held).collect();
        self.held = held;
        let committed = committed(group);
        news.extend(self.released.as_ref().and_then(|before| News::released(before, &committed)));
        self.released = Some(committed);
        news
    }
}

/// Released counts as they are stored.
fn committed(group: &Group) -> BTreeMap<String, u32> {
    let states = group.status.coordination_state.iter().flat_map(|state| &state.progress);
    states.filter_map(|(role, progress)| Some((role.clone(), progress.released?))).collect()
}

/// One Event to be.
#[derive(Debug, PartialEq, Eq)]
pub struct News {
    reason: String,
    note: String,
    warning: bool,
}

impl News {
    fn held(held: &Held) -> Self {
        let note = format!("{} ({} pods)", held.message, held.pods);
        // Waiting for the segment before is what was asked for.
        let warning = !matches!(
            held.reason,
            HoldReason::PreviousSegmentNotReady | HoldReason::PreviousStepNotScheduled | HoldReason::IncompleteBatch
        );
        Self { reason: held.reason.to_string(), note, warning }
    }

    /// `prefill 10-19, decode 5-9 released`; `None` when counts only fell.
    fn released(before: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Option<Self> {
        let ranges = now.iter().filter_map(|(role, count)| {
            let from = before.get(role).copied().unwrap_or(0);
            (*count > from).then(|| format!("{role} {from}-{}", count - 1))
        });
        let ranges: Vec<_> = ranges.collect();
        (!ranges.is_empty()).then(|| Self {
            reason: RELEASED.to_owned(),
            note: format!("released {}", ranges.join(", ")),
            warning: false,
        })
    }
}

/// Publishes Events.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Publishes as this replica.
    pub fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter { controller: "rolegate".to_owned(), instance: Some(identity.to_owned()) };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Publishes news of a group, beside the loop: an Event that is lost is a pity and no more.
    pub fn publish(&self, group: &Group, news: Vec<News>) {
        if news.is_empty() {
            return;
        }
        let carrier = &group.carrier;
        let reference = ObjectReference {
            api_version: Some(carrier.kind.api_version()),
            kind: Some(carrier.kind.kind.to_owned()),
            namespace: Some(group.key.namespace.to_string()),
            name: Some(carrier.name.clone()),
            uid: Some(carrier.uid.clone()),
            ..ObjectReference::default()
        };
        let recorder = self.recorder.clone();
        tokio::spawn(async move {
            for News { reason, note, warning } in news {
                let type_ = if warning { EventType::Warning } else { EventType::Normal };
                let action = if reason == RELEASED { "Release" } else { "Hold" }.to_owned();
                let event = Event { type_, reason, note: Some(note), action, secondary: None };
                if let Err(error) = recorder.publish(&event, &reference).await {
                    tracing::warn!(%error, "Event cannot be published");
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_the_ordinals() {
        let before = BTreeMap::from([("prefill".to_owned(), 10)]);
        let now = BTreeMap::from([("decode".to_owned(), 5), ("prefill".to_owned(), 20)]);
        assert_eq!(News::released(&before, &now).unwrap().note, "released decode 0-4, prefill 10-19");
        assert_eq!(News::released(&now, &before), None);
    }
}
