//! Replicas that run before their turn, because another client has lifted their gate. They stay, the replicas before them still
//! wait, and an Event reports it.

use std::collections::BTreeMap;

use crate::model::Group;
use crate::model::wording::{counted, numbers};
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::lasting::LASTS;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{GroupView, ReplicaIs, RoleView};

/// The reason of the Event.
pub const AHEAD: &str = "RunsAhead";

/// The replicas of each role that run ahead, since when, and whether that was reported. A state that lasts only a moment, shown
/// by a late watch, is not reported.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReportedAhead(BTreeMap<String, Ahead>);

#[derive(Debug)]
struct Ahead {
    ordinals: Vec<u32>,
    since: Uptime,
    told: bool,
}

impl ReportedAhead {
    /// Returns new Events, and when to look again.
    pub(in crate::plan) fn events(
        &mut self,
        group: &Group,
        view: &GroupView,
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        let batched = view.roles.iter().filter(|(name, _)| group.batch_size(name).is_some());
        let found = batched.map(|(name, role)| (name, ahead(role))).filter(|(_, ordinals)| !ordinals.is_empty());
        let mut before = std::mem::take(&mut self.0);
        for (name, ordinals) in found {
            let known = before.remove(name).filter(|known| ordinals.iter().all(|one| known.ordinals.contains(one)));
            let known = known.map(|known| Ahead { ordinals: ordinals.clone(), ..known });
            self.0.insert(name.clone(), known.unwrap_or(Ahead { ordinals, since: now, told: false }));
        }
        let again = self.0.values().filter(|ahead| !ahead.told).map(|ahead| ahead.since + LASTS).min();
        if again.is_none_or(|at| at > now) {
            return (Vec::new(), again);
        }
        self.0.values_mut().for_each(|ahead| ahead.told = true);
        (vec![self.note()], None)
    }

    fn note(&self) -> EventNote {
        let count: usize = self.0.values().map(|ahead| ahead.ordinals.len()).sum();
        let subject: Vec<_> =
            self.0.iter().map(|(name, ahead)| format!("{name} {}", numbers(&ahead.ordinals))).collect();
        let (subject, run) = (subject.join(", "), if count == 1 { "runs" } else { "run" });
        let note = format!(
            "{} {run} ahead of the batch: {subject}. Something else has lifted gate rolegate.dev/hold; what comes before \
             waits for its turn all the same",
            counted(count as u64, "replica"),
        );
        EventNote::new(AHEAD, subject, note, true).of_roles(self.0.keys())
    }
}

/// Returns the released replicas behind a gap that were created with a gate.
fn ahead(role: &RoleView) -> Vec<u32> {
    let beyond = role.released()..role.desired;
    if role.committed.is_none() || role.unknown || role.replicas.count_in(beyond.clone(), ReplicaIs::Released) == 0 {
        return Vec::new();
    }
    let was_held = |ordinal: &u32| {
        let pods = role.replicas.pods_of(*ordinal);
        !pods.is_empty() && pods.iter().all(|pod| !pod.held && pod.stamp.held)
    };
    beyond.filter(was_held).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::plan::test_support::{mk_group, mk_pod, mk_segments};
    use crate::plan::view::{PodFacts, Stamp};

    /// Returns a role of six replicas, of which the first was released, and `open` have no gate.
    fn view(open: &[u32], born_held: bool) -> GroupView {
        let mut role = RoleView { desired: 6, committed: Some(1), ..RoleView::default() };
        for ordinal in 0..6 {
            let name = format!("prefill-{ordinal}");
            let held = ordinal > 0 && !open.contains(&ordinal);
            let stamp = Stamp { held: born_held, ..Stamp::default() };
            let pod = PodFacts { held, stamp, ..mk_pod(&name, "prefill", ordinal) };
            role.replicas.add(&Arc::new(pod), ordinal);
        }
        GroupView { roles: [("prefill".to_owned(), role)].into(), ..GroupView::default() }
    }

    #[test]
    fn what_lasts_behind_a_gap_is_told_once() {
        let group = mk_group(&[("prefill", 6)], &json!([mk_segments("pd", "OrderedReady", &[("prefill", 1)])]));
        let mut told = ReportedAhead::default();
        let mut at = |seconds: u64, open: &[u32], born_held| {
            let (event, again) = told.events(&group, &view(open, born_held), Uptime::from_secs(seconds));
            (event.into_iter().next().map(|event| event.subject), again.map(|at| at.as_secs()))
        };
        // There is no gap behind the released replica: the pods count as released.
        assert_eq!(at(0, &[1, 2], true), (None, None));
        // Replicas created without a gate may run at any time.
        assert_eq!(at(0, &[3], false), (None, None));
        assert_eq!(at(0, &[3, 4], true), (None, Some(1)));
        assert_eq!(at(1, &[3, 4], true), (Some("prefill 3-4".to_owned()), None));
        assert_eq!(at(2, &[4], true), (None, None));
        assert_eq!(at(3, &[3, 5], true), (None, Some(4)));
        assert_eq!(at(4, &[3, 5], true), (Some("prefill 3, 5".to_owned()), None));
        assert_eq!(at(5, &[], true), (None, None));
    }
}
