//! The duration of a batch's release, from the event that allows it to the end of its last release. Times come from outside.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::plan::decide::decision::Decision;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{GroupView, HeldPod};

/// The timer of the batch of one group that is being released.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReleaseTimer {
    /// The first change that no pass has seen yet.
    changed: Option<Uptime>,
    running: Option<Running>,
}

/// A batch that was decided to be released.
#[derive(Debug)]
struct Running {
    since: Uptime,
    /// Its existing held pods, by uid.
    pods: HashMap<Arc<str>, HeldPod>,
    committed: bool,
}

impl ReleaseTimer {
    pub(in crate::plan) fn changed(&mut self, now: Uptime) {
        self.changed.get_or_insert(now);
    }

    /// Notes a decision; returns the duration of a batch that turns out to be released.
    pub(in crate::plan) fn decided(&mut self, view: &GroupView, decision: &Decision, now: Uptime) -> Option<Duration> {
        let since = self.changed.take().unwrap_or(now);
        let mut done = None;
        if let Some(running) = self.running.as_mut().filter(|running| running.committed) {
            running.pods.retain(|uid, pod| view.holds(pod.role(), pod.ordinal, uid));
            done = self.finish(now);
        }
        let waits = decision.release.iter().filter(|release| !release.at_once);
        let waiting: HashMap<_, _> = waits.map(|release| (release.pod.pod.uid.clone(), release.pod.clone())).collect();
        if !waiting.is_empty() {
            // Until the commit is written, more of its pods may appear.
            let since = self.running.take().filter(|running| !running.committed).map_or(since, |running| running.since);
            self.running = Some(Running { since, pods: waiting, committed: false });
        } else if let Some(running) = &mut self.running {
            running.committed = true;
        }
        done
    }

    /// Notes a released pod; returns the duration of its batch if it was the last.
    pub(in crate::plan) fn released(&mut self, uid: &str, now: Uptime) -> Option<Duration> {
        self.running.as_mut()?.pods.remove(uid);
        self.finish(now)
    }

    fn finish(&mut self, now: Uptime) -> Option<Duration> {
        let done = self.running.take_if(|running| running.pods.is_empty())?;
        Some(now.saturating_sub(done.since))
    }
}
