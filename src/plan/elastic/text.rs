//! What is told of an elastic group.

use super::{Deferral, ElasticPlan};
use crate::api::status::Draining;
use crate::model::Standing;

impl Deferral {
    /// What is waited for.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rollout => "a rollout is open",
            Self::Recovery => "a batch is being made again",
        }
    }
}

/// Reason of the `Elastic` condition, and its message.
pub type Told = (&'static str, String);

/// That the wanted segments have no effect, and why; `None` while they have.
pub fn ineffective(standing: &Standing) -> Option<Told> {
    Some((standing.reason()?, format!("`segments` has no effect: {standing}")))
}

impl ElasticPlan {
    /// Reason and message of the `Elastic` condition.
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
            let reason = wait.reason.as_str();
            return (reason, format!("{released} of {} released: {}", counted(*wanted), wait.message));
        }
        if released == wanted {
            ("AsWanted", counted(*wanted))
        } else {
            ("ScalingOut", format!("{released} of {} released", counted(*wanted)))
        }
    }

    /// Why less is wanted and nothing is taken away.
    pub fn deferred_text(&self, deferral: Deferral) -> String {
        format!("{} wanted, and none is taken away while {}", are(self.wanted), deferral.as_str())
    }
}

/// `segment 4 is`, `segments 4 to 10 are`; counted from 1.
pub fn of(Draining { from, to }: Draining) -> String {
    let first = from.saturating_add(1);
    if first == to { format!("segment {to} is") } else { format!("segments {first} to {to} are") }
}

fn counted(segments: u32) -> String {
    if segments == 1 { "1 segment".to_owned() } else { format!("{segments} segments") }
}

fn are(segments: u32) -> String {
    format!("{} {}", counted(segments), if segments == 1 { "is" } else { "are" })
}
