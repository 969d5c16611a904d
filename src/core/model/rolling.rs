//! The bounds of a coordinated rollout (KEP-30), independent of their spelling.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::fault::read_time;
use super::rollout_step::RolloutStep;
pub use super::share::Unavailable;
use super::share::kept_old;
use super::{AwaitedObject, Coordination, Group};
use crate::api::IntOrString;

/// Partition of a frozen workload, a value that nobody else writes. The number of replicas will not do: a later scale-up would
/// start the new ordinals at the new revision.
pub const FROZEN: u32 = i32::MAX as u32;

/// Bounds of one coordination. An unreadable value counts as its default; with such a fault nothing moves anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingBounds {
    /// Index of the coordination in the group's list.
    pub index: usize,
    /// Display name of the coordination.
    pub name: String,
    /// Roles that are updated at one rate.
    pub roles: Vec<String>,
    /// Largest difference between the updated shares of two roles, in percent.
    pub max_skew: u32,
    pub max_unavailable: Unavailable,
    /// Share of each role that stays old, in percent.
    pub partition: u32,
    /// Steps across the roles; empty when all roles are updated at one rate.
    pub steps: Vec<RolloutStep>,
    /// Replicas of each role in a segment, if segments are updated as a whole.
    pub segments: Option<BTreeMap<String, u32>>,
    /// The object that must have its condition at the end of each step.
    pub object: Option<AwaitedObject>,
    /// Time after which a rollout that does not get ready goes back; `None` if it stays as it is.
    pub fail_after: Option<Duration>,
    /// Time for which a pod of each role must be ready before it counts, if it is not 0.
    pub min_ready: BTreeMap<String, Duration>,
}

/// Spellings of `by`; the first is the default.
pub const UNITS: &[&str] = &["Replica", SEGMENT];
/// The unit of an update of whole segments.
pub const SEGMENT: &str = "Segment";
/// Spellings of `onFailure`; the first is the default.
pub const ON_FAILURE: &[&str] = &["Pause", ROLLBACK];
/// The treatment of a rollout that goes back when it does not get ready.
pub const ROLLBACK: &str = "Rollback";
/// Default of `failAfter`.
const FAIL_AFTER: Duration = Duration::from_secs(600);

impl RollingBounds {
    /// Returns the bounds of a coordination, if it has a rolling update.
    pub fn of(coordination: &Coordination) -> Option<Self> {
        let (update, _) = coordination.rolling_update.as_ref()?;
        let percentage = |value: &Option<IntOrString>| value.as_ref().and_then(IntOrString::percent);
        let roles: Vec<_> = coordination.role_names().into_iter().map(str::to_owned).collect();
        let unavailable = update.max_unavailable_ratio.as_ref().or(update.max_unavailable.as_ref());
        Some(Self {
            index: coordination.index,
            name: coordination.display_name(),
            max_skew: percentage(&update.max_skew).unwrap_or(100),
            max_unavailable: Unavailable::parse(unavailable),
            partition: percentage(&update.partition).unwrap_or(0),
            steps: RolloutStep::parse_all(update.steps.as_deref().unwrap_or_default(), &roles),
            segments: None,
            object: coordination.rolling_ready_when.as_ref().and_then(|when| when.object.clone()),
            fail_after: (update.on_failure.as_deref() == Some(ROLLBACK))
                .then(|| update.fail_after.as_deref().and_then(read_time).unwrap_or(FAIL_AFTER)),
            min_ready: BTreeMap::new(),
            roles,
        })
    }

    /// Returns the bounds of every coordination of a group with a rolling update.
    pub fn all_of(group: &Group) -> Vec<Self> {
        let of = |coordination: &Coordination| {
            let (update, _) = coordination.rolling_update.as_ref()?;
            let by_segment = update.by.as_deref() == Some(SEGMENT);
            let bounds = Self::of(coordination)?;
            let sizes = bounds.roles.iter().filter_map(|role| Some((role.clone(), group.batch_size(role)?)));
            let segments = by_segment.then(|| sizes.collect());
            let min_ready = |role: &String| {
                let seconds = group.min_ready_seconds(group.role(role)?);
                (seconds > 0).then(|| (role.clone(), Duration::from_secs(seconds.into())))
            };
            let min_ready = bounds.roles.iter().filter_map(min_ready).collect();
            Some(Self { segments, min_ready, ..bounds })
        };
        group.coordinations.iter().filter_map(of).collect()
    }

    /// Returns the time after which a rollout goes back by a replica of this role, or by the object of a step: no replica counts before
    /// its pods were ready for as long as they must.
    pub fn fails_after(&self, role: Option<&str>) -> Option<Duration> {
        let min_ready = role.and_then(|role| self.min_ready.get(role)).copied().unwrap_or_default();
        self.fail_after.map(|time| time.saturating_add(min_ready))
    }

    /// Reports whether the bounds apply to the role.
    pub fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|name| name == role)
    }

    /// Returns the number of updated replicas of a role at the end of a step, which is counted from 1. Where the rollout may go back,
    /// a step before the last leaves one replica old: a workload without old replicas has nothing to go back to.
    pub fn goal(&self, (number, step): (u32, &RolloutStep), role: &str, desired: u32) -> u32 {
        let goal = step.goal(role, desired);
        let is_last = number as usize >= self.steps.len();
        if is_last || self.fail_after.is_none() { goal } else { goal.min(desired.saturating_sub(1)) }
    }

    /// Returns the number of replicas that stay old, rounded up: 80 % of 200 keeps ordinals 0–159. Below 100 %, at least one is
    /// updated.
    pub fn kept_old(&self, desired: u32) -> u32 {
        kept_old(self.partition, desired)
    }

    /// Returns the number of replicas of a role that stay old: of whole segments, if these are updated as a whole.
    pub fn kept_of(&self, role: &str, desired: u32) -> u32 {
        match self.segments.as_ref().and_then(|sizes| sizes.get(role)).filter(|size| **size > 0) {
            Some(size) => self.kept_old(desired.div_ceil(*size)).saturating_mul(*size).min(desired),
            None => self.kept_old(desired),
        }
    }
}

/// Returns the role and all roles that coordinations connect with it, directly or through other roles.
pub fn connected<'a>(bounds: &'a [RollingBounds], role: &'a str) -> BTreeSet<&'a str> {
    let mut connected = BTreeSet::from([role]);
    loop {
        let before = connected.len();
        for bounds in bounds {
            if bounds.roles.iter().any(|role| connected.contains(role.as_str())) {
                connected.extend(bounds.roles.iter().map(String::as_str));
            }
        }
        if connected.len() == before {
            return connected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::rbg::ROLE_BASED_GROUP;
    use crate::build;

    fn mk_bounds(partition: u32) -> RollingBounds {
        let update = serde_json::json!({ "rollingUpdate": { "partition": format!("{partition}%") } });
        let group = build::group("pd", &[], &serde_json::json!([{ "name": "roll", "strategy": update }]));
        RollingBounds::all_of(&Group::from_rbg(ROLE_BASED_GROUP, &build::typed(group))).remove(0)
    }

    #[test]
    fn what_stays_old_is_rounded_up_and_never_all() {
        for (partition, desired, kept) in
            [(80, 200, 160), (80, 100, 80), (50, 5, 3), (80, 1, 0), (99, 10, 9), (100, 10, 10), (0, 10, 0), (50, 0, 0)]
        {
            assert_eq!(mk_bounds(partition).kept_old(desired), kept, "{partition} % of {desired}");
        }
    }

    /// A role of one replica is updated in the last step.
    #[test]
    fn where_a_rollout_may_go_back_each_step_but_the_last_leaves_one_replica_old() {
        let roles = ["decode".to_owned()];
        let entries = serde_json::json!([{ "decode": "50%" }, { "decode": "100%" }, { "decode": "100%" }]);
        let steps = RolloutStep::parse_all(&serde_json::from_value::<Vec<_>>(entries).unwrap(), &roles);
        let bounds = |fail_after| RollingBounds { steps: steps.clone(), fail_after, ..mk_bounds(0) };
        let goals = |bounds: &RollingBounds, desired: u32| {
            let goal = |(number, step)| bounds.goal((number, step), "decode", desired);
            (1..).zip(&bounds.steps).map(goal).collect::<Vec<_>>()
        };
        assert_eq!(goals(&bounds(None), 4), [2, 4, 4]);
        assert_eq!(goals(&bounds(Some(FAIL_AFTER)), 4), [2, 3, 4]);
        assert_eq!(goals(&bounds(Some(FAIL_AFTER)), 1), [0, 0, 1]);
    }
}
