//! Texts on elastic groups.

use super::{Deferral, ElasticPlan};
use crate::api::status::Draining;
use crate::model::wording::counted;
use crate::model::{Elastic, HoldReason, Standing};

/// The reason and the message of the `Elastic` condition.
pub type Told = (&'static str, String);

/// Returns the reason why `segments` has no effect; `None` while it has.
pub fn ineffective(standing: &Standing) -> Option<Told> {
    Some((standing.reason()?, format!("`segments` has no effect: {standing}")))
}

impl ElasticPlan {
    pub fn told(&self) -> Told {
        let Self { wanted, released, .. } = self;
        if let Some((role, why)) = self.failures.first_key_value() {
            return ("ScaleFailed", format!("the workload of role {role:?} is not scaled: {why}"));
        }
        if let Some(draining) = self.draining {
            return ("ScalingIn", format!("{} taken away", of(draining)));
        }
        if let Some(deferral) = self.deferred {
            return ("ScaleInDeferred", self.deferred_text(deferral));
        }
        if let Some(wait) = &self.room_wait {
            let reason = match wait.reason {
                HoldReason::NoRoom => "NoRoom",
                HoldReason::NodesRequested => "NodesRequested",
                _ => "RoomUnknown",
            };
            return (reason, format!("{released} of {} released: {}", counted(*wanted, "segment"), wait.message));
        }
        if released == wanted {
            ("AsWanted", counted(*wanted, "segment"))
        } else {
            ("ScalingOut", format!("{released} of {} released", counted(*wanted, "segment")))
        }
    }

    /// Returns a line such as `segments: 4 wanted, 3 released, 3 there; segment 4 is not made: …`
    pub fn line(&self) -> String {
        let Self { wanted, released, present, .. } = self;
        let scales = self.scales.iter().map(|(role, scale)| {
            let (key, from, to) = (&scale.workload.key, scale.workload.desired, scale.to);
            format!("{} {:?} of role {role} goes from {from} to {to}", key.kind.as_str(), key.name)
        });
        let draining = self.draining.map(|draining| format!("{} taken away", of(draining)));
        let deferred = self.deferred.map(|why| format!("none is taken away while {}", why.as_str()));
        let waits = self.room_wait.as_ref().map(|wait| wait.message.clone());
        let more = draining.into_iter().chain(deferred).chain(waits).chain(scales).collect::<Vec<_>>().join("; ");
        let more = if more.is_empty() { more } else { format!("; {more}") };
        format!("segments: {wanted} wanted, {released} released, {present} there{more}")
    }

    /// Returns the text of a deferred scale-in.
    pub fn deferred_text(&self, deferral: Deferral) -> String {
        format!("{} wanted, and none is taken away while {}", are(self.wanted), deferral.as_str())
    }
}

/// Returns the state of the wanted segments: why they have no effect, or how far they are.
pub fn segments_line(elastic: &Elastic, plan: Option<&ElasticPlan>) -> Option<String> {
    ineffective(&elastic.standing).map(|(_, told)| told).or_else(|| plan.map(ElasticPlan::line))
}

/// Returns `segment 4 is` or `segments 4 to 10 are`; counted from 1.
pub fn of(Draining { from, to }: Draining) -> String {
    let first = from.saturating_add(1);
    if first == to { format!("segment {to} is") } else { format!("segments {first} to {to} are") }
}

fn are(segments: u32) -> String {
    format!("{} {}", counted(segments, "segment"), if segments == 1 { "is" } else { "are" })
}
