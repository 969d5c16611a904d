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

fn asked(event: &Event) -> PendingEvent<'_> {
    PendingEvent {
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

/// Events of one reason at once.
const BURST: u32 = 100;
/// Interval of one further Event after a burst.
const REFILL: Duration = Duration::from_secs(60);
/// Lifetime of an Event in the API server by default. A Warning that is older is written again.
const KEPT: Duration = Duration::from_secs(3600);
/// Number of entries at which expired ones are removed.
const SWEPT_AT: usize = 4096;

/// An Event to be written.
#[derive(Clone, Copy, Debug)]
struct PendingEvent<'a> {
    /// Uid of the regarded object.
    uid: &'a str,
    reason: &'a str,
    /// Name of the Event: equal for equal reason and subject.
    name: &'a str,
    /// True for the type Warning.
    warning: bool,
}

/// The budgets of Events by object. A group of hundreds of segments, or one whose state flaps, would fill etcd with what its status
/// says anyway. Each reason has its own budget, so that one reason does not use up that of another. A group of ten or twenty
/// segments stays well within the budget while it is scaled up and down; it would exceed the 25 that client-go allows. A new
/// Warning is always written.
#[derive(Debug)]
struct EventLimit {
    /// By uid and reason: when the budget is full again.
    made_up_at: HashMap<(String, String), Instant>,
    /// Names of written Warnings, and the time until which the API server keeps them.
    told: HashMap<String, Instant>,
    sweep_at: usize,
}

impl Default for EventLimit {
    fn default() -> Self {
        Self { made_up_at: HashMap::new(), told: HashMap::new(), sweep_at: SWEPT_AT }
    }
}

impl EventLimit {
    /// Reports whether an Event may be written, and counts it if so.
    fn allows(&mut self, asked: PendingEvent<'_>, now: Instant) -> bool {
        if self.made_up_at.len() + self.told.len() >= self.sweep_at {
            self.made_up_at.retain(|_, at| *at > now);
            self.told.retain(|_, until| *until > now);
            self.sweep_at = SWEPT_AT.max((self.made_up_at.len() + self.told.len()) * 2);
        }
        let is_told = self.told.get(asked.name).is_some_and(|until| *until > now);
        let at = self.made_up_at.entry((asked.uid.to_owned(), asked.reason.to_owned())).or_insert(now);
        let with_this = (*at).max(now) + REFILL;
        let within = with_this.duration_since(now) <= REFILL * BURST;
        if within {
            *at = with_this;
        }
        let allowed = within || asked.warning && !is_told;
        if allowed && asked.warning {
            self.told.insert(asked.name.to_owned(), now + KEPT);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain<'a>(uid: &'a str, reason: &'a str, name: &'a str) -> PendingEvent<'a> {
        PendingEvent { uid, reason, name, warning: false }
    }

    fn warning<'a>(uid: &'a str, reason: &'a str, name: &'a str) -> PendingEvent<'a> {
        PendingEvent { warning: true, ..plain(uid, reason, name) }
    }

    /// Returns how many of a thousand Events at one time are written.
    fn written(limit: &mut EventLimit, asked: PendingEvent<'_>, now: Instant) -> usize {
        (0..1000).filter(|_| limit.allows(asked, now)).count()
    }

    #[test]
    fn of_one_object_and_reason_a_burst_is_written_and_then_one_in_a_minute() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        let released = plain("a", "Released", "a.1");
        assert_eq!(written(&mut limit, released, now), 100);
        assert_eq!(written(&mut limit, released, now + REFILL - Duration::from_secs(1)), 0);
        assert_eq!(written(&mut limit, released, now + REFILL), 1);
        assert_eq!(written(&mut limit, released, now + REFILL * 4), 3);
        assert_eq!(written(&mut limit, released, now + REFILL * 1000), 100, "no more than a burst is saved up");
    }

    #[test]
    fn one_reason_leaves_room_for_another_and_one_object_for_another() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, plain("a", "Released", "a.1"), now);
        assert_eq!(written(&mut limit, plain("a", "RolloutAdvanced", "a.2"), now), 100);
        assert_eq!(written(&mut limit, warning("a", "NoRoom", "a.3"), now), 100);
        assert_eq!(written(&mut limit, plain("b", "Released", "b.1"), now), 100);
    }

    #[test]
    fn a_warning_that_was_not_told_yet_is_always_written() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, warning("a", "RolloutStalled", "a.prefill-3"), now);
        assert_eq!(written(&mut limit, warning("a", "RolloutStalled", "a.decode-1"), now), 1);
        assert_eq!(written(&mut limit, warning("a", "RolloutStalled", "a.prefill-3"), now), 0);
        assert_eq!(written(&mut limit, plain("a", "RolloutStalled", "a.news"), now), 0);
        let later = now + KEPT;
        written(&mut limit, warning("a", "RolloutStalled", "a.other"), later);
        assert!(limit.allows(warning("a", "RolloutStalled", "a.prefill-3"), later), "the one before is gone by now");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, plain("spent", "Released", "spent"), now);
        for pod in 0..100_000_u32 {
            let (uid, at) = (pod.to_string(), now + REFILL / 2000 * pod);
            limit.allows(plain(&uid, "Released", &uid), at);
        }
        assert!(limit.made_up_at.len() <= SWEPT_AT, "{} are remembered", limit.made_up_at.len());
        for pod in 0..100_000_u32 {
            let (uid, at) = (pod.to_string(), now + REFILL * 100 + KEPT / 1000 * pod);
            limit.allows(warning(&uid, "NoRoom", &uid), at);
        }
        assert!(limit.told.len() <= SWEPT_AT, "{} are remembered", limit.told.len());
    }
}
