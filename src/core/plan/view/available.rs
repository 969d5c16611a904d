//! Availability: a ready pod counts once it was ready for the `minReadySeconds` of its workload, as in the workload itself, and for
//! that of `readyWhen`.

use std::sync::Arc;

use crate::model::Group;
use crate::model::moment::Moment;
use crate::plan::view::{GroupView, PodFacts};

impl GroupView {
    /// Marks pods that were not ready for long enough as not ready, and notes when the next of them counts.
    pub(in crate::plan) fn wait_until_available(&mut self, group: &Group, now: Moment) {
        let timed = group.roles.iter().map(|role| (role, group.min_ready_seconds(role)));
        for (role, seconds) in timed.filter(|(_, seconds)| *seconds > 0) {
            let Some(view) = self.roles.get_mut(&role.name) else { continue };
            let counts_at = |pod: &Arc<PodFacts>| {
                let since = pod.ready_since.filter(|_| pod.ready)?;
                let at = Moment(i64::from(since).saturating_add(seconds.into()));
                (now < at).then_some(at)
            };
            let young: Vec<_> = view
                .replicas
                .pods()
                .filter_map(|(ordinal, pod)| Some((ordinal, pod.clone(), counts_at(pod)?)))
                .collect();
            for (ordinal, pod, at) in young {
                view.replicas.remove(&pod.pod, ordinal);
                view.replicas.add(&Arc::new(PodFacts { ready: false, ..PodFacts::clone(&pod) }), ordinal);
                self.counts_at = Some(self.counts_at.map_or(at, |next| next.min(at)));
            }
        }
    }
}

#[cfg(test)]
#[path = "available_tests.rs"]
mod tests;
