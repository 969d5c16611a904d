//! Canaries: the first segment alone until it is accepted, checked independently of the planner.

use rolegate::model::moment::Moment;

use crate::places::Places;
use crate::prelude::*;
use crate::spec::released;

impl Coordination {
    /// Returns how long a canary must be ready; `None` where a person accepts it.
    pub fn soak(&self) -> Option<Duration> {
        (self.sizes[0] % 2 == 1).then_some(Duration::from_secs(60))
    }
}

fn accepted(status: &GroupStatus, name: &str) -> u32 {
    status.coordination(name).and_then(|state| state.accepted).unwrap_or(0)
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

/// C1: checks that a status accepts a canary only when all its pods were ready for its time, or a person ended the pause. C2:
/// checks that nothing beyond a canary is committed before it is accepted.
pub fn goes_on(
    status: &GroupStatus,
    stored: &Stored,
    (snapshot, places): (&Snapshot, &Places),
    (desired, count): (impl Fn(usize) -> u32, impl Fn(usize) -> u32),
    at: Duration,
) -> Result<(), Broken> {
    let all = stored.wish.coordinations();
    for (index, one) in all.iter().enumerate().filter(|(_, one)| one.progression == Progression::Canary) {
        let name = format!("c{index}");
        let roles = || (0..ROLES.len()).filter(|role| one.sizes[*role] > 0);
        let is_beyond = |count: &dyn Fn(usize) -> u32| roles().any(|role| count(role) > one.sizes[role]);
        // It was accepted before, or its segments are older than the coordination.
        if accepted(&stored.status, &name) > 0 || is_beyond(&count) {
            continue;
        }
        let will = |role: usize| released(status, ROLES[role]).unwrap_or(0);
        hold!(
            !is_beyond(&will) || accepted(status, &name) > 0,
            "C2: more than the canary of {name} is to be released, and it is not accepted: {:?}",
            status.coordination(&name)
        );
        if accepted(status, &name) == 0 {
            continue;
        }
        let mut since = None;
        for role in roles() {
            for ordinal in 0..one.sizes[role].min(desired(role)) {
                let is_its = |pod: &&Arc<PodFacts>| {
                    let place = places[&*pod.pod.name];
                    (place.role, place.ordinal) == (role, ordinal)
                };
                let mut pods = snapshot.pods.iter().filter(is_its).peekable();
                hold!(pods.peek().is_some(), "C1: the canary of {name} is accepted without {} {ordinal}", ROLES[role]);
                for pod in pods {
                    let ready = pod.ready_since.filter(|_| pod.ready && !pod.held);
                    hold!(ready.is_some(), "C1: the canary of {name} is accepted, and {} is not ready", pod.pod.name);
                    since = since.max(ready);
                }
            }
        }
        let Some(since) = since.map(|since| Moment(since.into())) else { continue };
        let resumed = stored.meta.annotation(names::ROLLOUT_RESUMED_AT).and_then(Moment::parse);
        let by_time = one.soak().is_some_and(|soak| crate::steps::now(at) >= since.after(soak));
        hold!(
            by_time || resumed.is_some_and(|resumed| resumed >= since),
            "C1: the canary of {name} is accepted at {at:?}, is ready since {since:?}, and nobody ended the pause"
        );
    }
    Ok(())
}
