//! Canaries: the first segment alone until it is accepted.

use rolegate::model::moment::Moment;

use crate::prelude::*;

impl Coordination {
    /// Returns how long a canary must be ready; `None` where a person accepts it.
    pub fn soak(&self) -> Option<Duration> {
        (self.sizes[0] % 2 == 1).then_some(Duration::from_secs(60))
    }
}

/// Reports whether a status tells of a pause after a canary.
pub fn pauses(stored: &Stored) -> bool {
    let has_canary = stored.wish.coordinations().iter().any(|one| one.progression == Progression::Canary);
    has_canary && paused_since(&stored.status).is_some()
}

/// Returns since when a status tells of a pause.
pub fn paused_since(status: &GroupStatus) -> Option<Moment> {
    let told = status.condition("RolloutPaused").filter(|told| told.status == "True")?;
    Moment::parse(told.last_transition_time.as_deref()?)
}
