//! Events on the carrier of a group, on the workloads of its roles, and on the first pod of a batch. Admission creates none:
//! it has no side effects. The name of an Event is derived from its subject, so a repetition, also by the next leader, counts
//! up the existing Event.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::{Patch, PostParams};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::cluster::failure::{namespace_is_gone, short, unless};
use crate::cluster::metrics::{LoopMetrics, count};
use crate::cluster::write::event_limit::{Asked, EventLimit};
use crate::cluster::write::writer::{MANAGER, Writer, params};
use crate::model::Workload;
use crate::plan::About;
use crate::plan::reconcile::events::{DRAINING, EventNote, RELEASED};
use crate::plan::reconcile::scales::{SCALED, SCALED_BACK};

/// Length of the queue of Events. Further ones are dropped: conditions tell the state, Events only its history.
const QUEUE: usize = 1024;
/// Places in the queue reserved for Warnings.
const FOR_WARNINGS: usize = 256;

/// Longest part of an object's name in the name of its Events.
const NAME_MAX: usize = 200;

/// Type of Events that need attention.
const WARNING: &str = "Warning";

#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<(String, Event)>,
    identity: String,
    metrics: LoopMetrics,
}

impl Events {
    /// Starts the task that writes Events as this replica, one after the other, beside the loop.
    pub fn new(writer: Writer, identity: &str, metrics: LoopMetrics) -> Self {
        let (queue, mut waiting) = mpsc::channel::<(String, Event)>(QUEUE);
        let counted = metrics.clone();
        tokio::spawn(async move {
            // The Events of the many pods of a namespace that is being deleted would all be refused.
            let (mut limit, mut gone) = (EventLimit::default(), HashMap::<_, Instant>::new());
            while let Some((namespace, event)) = waiting.recv().await {
                let now = Instant::now();
                if !limit.allows(asked(&event), now) {
                    tracing::debug!(namespace, note = event.note, "not published: its object has had many Events");
                    count(&counted.events, "limited");
                    continue;
                }
                gone.retain(|_, until| *until > now);
                if gone.contains_key(&namespace) {
                    count(&counted.events, "gone");
                    continue;
                }
                let outcome = match writer.in_time(writer.write_event(&namespace, event)).await {
                    Ok(()) => "written",
                    Err(error) if namespace_is_gone(&error) => {
                        tracing::info!(namespace, "no Event is published: the namespace is being deleted");
                        gone.insert(namespace, Instant::now() + GONE_FOR);
                        "gone"
                    }
                    Err(error) => {
                        tracing::warn!(namespace, error = short(&error), "Event cannot be published");
                        "failed"
                    }
                };
                count(&counted.events, outcome);
            }
        });
        Self { queue, identity: identity.to_owned(), metrics }
    }

    /// Publishes Events on an object, and on the workloads of the roles that they name. A lost Event does no harm.
    pub fn publish(
        &self,
        namespace: &str,
        about: &About,
        events: &[EventNote],
        workload: impl Fn(&str) -> Option<Arc<Workload>>,
    ) {
        let object = match about {
            About::Group(group) => reference(group.carrier.kind, namespace, &group.carrier.name, &group.carrier.uid),
            About::PodGroup(tree) => reference(POD_GROUP, namespace, &tree.key.name, &tree.uid),
            About::Pod(pod) => reference(POD, namespace, &pod.name, &pod.uid),
        };
        for note in events {
            let workloads = note.roles.iter().filter_map(|role| Some(of_workload(&*workload(role)?)));
            for regarding in std::iter::once(object.clone()).chain(workloads) {
                self.send(namespace, regarding, note);
            }
        }
    }

    fn send(&self, namespace: &str, regarding: ObjectReference, note: &EventNote) {
        let event = self.event(regarding, note.clone());
        let is_full = !note.warning && self.queue.capacity() <= FOR_WARNINGS;
        if is_full || self.queue.try_send((namespace.to_owned(), event)).is_err() {
            count(&self.metrics.events, "dropped");
        }
    }

    fn event(&self, regarding: ObjectReference, told: EventNote) -> Event {
        let EventNote { reason, subject, note, warning, roles: _ } = told;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let name = name(&part(&regarding.name), &[&part(&regarding.uid), &reason, &subject]);
        Event {
            metadata: ObjectMeta { name: Some(name), namespace: regarding.namespace.clone(), ..ObjectMeta::default() },
            action: Some(action(&reason).to_owned()),
            event_time: Some(MicroTime(jiff::Timestamp::now())),
            note: Some(note.chars().take(NOTE_MAX).collect()),
            reason: Some(reason),
            regarding: Some(regarding),
            reporting_controller: Some(MANAGER.to_owned()),
            reporting_instance: Some(self.identity.clone()),
            type_: Some(if warning { WARNING } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

/// Time without attempts in a namespace that is being deleted. A new namespace may take its name.
const GONE_FOR: Duration = Duration::from_secs(60);

fn asked(event: &Event) -> Asked<'_> {
    Asked {
        uid: event.regarding.as_ref().and_then(|object| object.uid.as_deref()).unwrap_or_default(),
        reason: event.reason.as_deref().unwrap_or_default(),
        name: event.metadata.name.as_deref().unwrap_or_default(),
        warning: event.type_.as_deref() == Some(WARNING),
    }
}

/// Returns the `action` of an Event, for machines.
fn action(reason: &str) -> &'static str {
    match reason {
        RELEASED => "Release",
        SCALED | SCALED_BACK | DRAINING => "Scale",
        _ => "Hold",
    }
}

fn of_workload(workload: &Workload) -> ObjectReference {
    let key = &workload.key;
    reference(key.kind.object_kind(), &key.namespace, &key.name, &workload.uid)
}

fn reference(kind: ObjectKind, namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(kind.api_version()),
        kind: Some(kind.kind.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Longest note: the limit of the API server, less a reserve for multi-byte characters.
const NOTE_MAX: usize = 1000;

impl Writer {
    /// Creates an Event, or increments the count of the existing one; its other fields are immutable.
    async fn write_event(&self, namespace: &str, event: Event) -> kube::Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if unless(&[409], events.create(&PostParams::default(), &event).await)?.is_some() {
            return Ok(());
        }
        let name = event.metadata.name.unwrap_or_default();
        let Some(known) = events.get_opt(&name).await? else { return Ok(()) };
        // A series begins with the second occurrence.
        let count = known.series.map_or(1, |series| series.count) + 1;
        let last_observed_time = event.event_time.unwrap_or_else(|| MicroTime(jiff::Timestamp::now()));
        let patch = Patch::Merge(json!({ "series": EventSeries { count, last_observed_time } }));
        events.patch(&name, &params(), &patch).await.map(drop)
    }
}

/// Returns `<object>.<hash>`, equal for equal subjects.
fn name(object: &str, about: &[&str]) -> String {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for part in about {
        digest.update(part.as_bytes());
        digest.update(&[0]);
    }
    let digest = digest.finish();
    let hash = digest.as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    let object: String = object.chars().take(NAME_MAX).collect();
    format!("{}.{hash:016x}", object.trim_end_matches(['.', '-']))
}
