//! Events on the object that carries a group: one when a batch begins to be held for a reason, one when replicas are
//! released. Admission never makes any: it has no side effects.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::model::Group;
use crate::plan::news::{News, RELEASED};

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
