//! Steps of a rollout across roles (KEP-30, Summary): shares of the roles, and pauses between them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::fault::read_time;
use super::share::kept_old;
use crate::api::int_or_string::percent;

/// Key of a pause, which no role may have as its name.
pub const PAUSE: &str = "pause";
/// The only field of a pause.
pub const DURATION: &str = "duration";

/// One step, with the pause after it. Of a faulty list, with which nothing moves, the readable part is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutStep {
    /// Updated share of each role of the coordination at the end of the step, in percent.
    pub shares: BTreeMap<String, u32>,
    pub pause: Option<Pause>,
}

/// A pause: it lasts for the duration, or until a person ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub duration: Option<Duration>,
}

impl RolloutStep {
    /// Parses the entries. A role that a step leaves out keeps its share.
    pub(super) fn parse_all(entries: &[BTreeMap<String, Value>], roles: &[String]) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        let mut shares: BTreeMap<String, u32> = roles.iter().map(|role| (role.clone(), 0)).collect();
        for entry in entries {
            match (entry.get(PAUSE), steps.last_mut()) {
                (Some(pause), Some(step)) => step.pause = Some(Pause { duration: duration(pause) }),
                (Some(_), None) => {}
                (None, _) => {
                    for (role, before) in &mut shares {
                        *before = entry.get(role).and_then(share).unwrap_or(*before);
                    }
                    steps.push(Self { shares: shares.clone(), pause: None });
                }
            }
        }
        steps
    }

    /// Returns the number of replicas of a role that are updated at the end of the step: its share, rounded down, and at least
    /// one if the share is not 0. 30 % of 8 are 2, 30 % of 2 are 1.
    pub fn goal(&self, role: &str, desired: u32) -> u32 {
        let share = self.shares.get(role).copied().unwrap_or(0).min(100);
        desired - kept_old(100 - share, desired)
    }
}

/// Returns the share in percent: a percentage, or the number 0.
pub fn share(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => percent(text),
        _ => value.as_u64().filter(|number| *number == 0).map(|_| 0),
    }
}

fn duration(pause: &Value) -> Option<Duration> {
    read_duration(pause.get(DURATION)?)
}

/// Returns a duration of one second or more.
pub fn read_duration(value: &Value) -> Option<Duration> {
    read_time(value.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_some_of_it_is_never_none() {
        for (share, desired, goal) in
            [(30, 8, 2), (30, 2, 1), (0, 8, 0), (100, 8, 8), (1, 0, 0), (99, 10, 9), (34, 3, 1)]
        {
            let step = RolloutStep { shares: BTreeMap::from([("prefill".to_owned(), share)]), pause: None };
            assert_eq!(step.goal("prefill", desired), goal, "{share} % of {desired}");
        }
    }
}
