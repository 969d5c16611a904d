//! Edits of rollouts by users: the bounds of a coordinated rollout (KEP-30) of the first two roles, and changes of the
//! claimed workloads.

use crate::prelude::*;
use crate::rollbacks::FAIL_AFTER;

/// Number of leading roles that are rolled in lockstep.
pub const ROLLED: usize = 2;

/// The bounds of a coordinated rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rolling {
    /// Maximum skew, in percent.
    pub skew: u32,
    /// Maximum number of unavailable replicas.
    pub unavailable: u32,
    /// Share that stays old, in percent.
    pub partition: u32,
    pub steps: Steps,
    /// Whether the replicas of a segment are updated together; then there are no steps, and segments are counted.
    pub by_segment: bool,
    /// Whether a rollout that fails goes back.
    pub back: bool,
}

/// A change of a claimed workload by a user or its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetStep {
    /// The template gets this image, new or used before.
    Image(u32),
    /// One apply gives the template this image, and so many replicas more to the workload and to the group.
    Grow(u32, u32),
    Unclaim,
    Claim,
    /// The controller observes the last change.
    Observe,
    /// The controller replaces a pod.
    Replace,
}

impl Rolling {
    pub fn random(random: &mut Random) -> Self {
        let rolling = Self {
            skew: random.pick(&[0, 10, 34, 50, 100]),
            unavailable: random.pick(&[1, 1, 2, 5]),
            partition: random.pick(&[0, 0, 0, 0, 40, 100]),
            steps: random.pick(&[Steps::None, Steps::None, Steps::InTurn, Steps::Soak, Steps::Asks]),
            by_segment: random.percent(35),
            back: random.percent(50),
        };
        Self { steps: if rolling.by_segment { Steps::None } else { rolling.steps }, ..rolling }
    }

    pub fn to_json(self) -> Value {
        let percent = |number: u32| format!("{number}%");
        let mut bounds = json!({ "maxUnavailable": self.unavailable, "partition": percent(self.partition) });
        if self.by_segment {
            bounds["by"] = json!("Segment");
        } else {
            bounds["maxSkew"] = json!(percent(self.skew));
        }
        if self.steps != Steps::None {
            bounds["steps"] = self.steps.to_json();
        }
        if self.back {
            bounds["onFailure"] = json!("Rollback");
            bounds["failAfter"] = json!(format!("{}s", FAIL_AFTER.as_secs()));
        }
        json!({ "name": "roll", "roles": ROLES[..ROLLED], "strategy": { "rollingUpdate": bounds } })
    }

    /// Returns the replicas that stay old: the share is rounded up, but unless it is 100 %, at least one replica is
    /// updated.
    pub fn kept_old(self, desired: u32) -> u32 {
        let kept = (self.partition * desired).div_ceil(100);
        if self.partition < 100 { kept.min(desired.saturating_sub(1)) } else { desired }
    }

    /// Reports whether less than one replica of the role is to be updated, so that one is: it goes last, after the
    /// other roles.
    pub fn goes_last(self, desired: u32) -> bool {
        let share = (100 - self.partition) * desired;
        self.partition > 0 && share > 0 && share < 100
    }

    /// Reports whether a role with `updated` of `desired` replicas is not too far ahead of one with `behind` of `of`:
    /// by the skew, or by one replica of the other role if that is more.
    pub fn allows(self, (updated, desired): (u32, u32), (behind, of): (u32, u32)) -> bool {
        let ahead = i64::from(updated) * i64::from(of) - i64::from(behind) * i64::from(desired);
        let skew = i64::from(self.skew) * i64::from(desired) * i64::from(of);
        100 * ahead <= skew.max(100 * i64::from(desired))
    }
}

impl Wish {
    /// Returns a wish with small segments or none, so that a rollout begins soon.
    pub fn rollable(random: &mut Random) -> Self {
        if random.percent(40) {
            return Self::Nothing;
        }
        let progression = random.pick(&[Progression::OrderedReady, Progression::Scheduled, Progression::Parallel]);
        let mut size = || 1 + random.below(3);
        let sizes = [size(), size(), 0];
        let gangs = random.percent(60);
        let pod_groups = level(random).filter(|_| gangs);
        let recovers = random.percent(40);
        Self::All(vec![Coordination { pod_groups, recovers, ..Coordination::of(progression, sizes) }])
    }
}

impl SetStep {
    pub fn random(random: &mut Random) -> Self {
        match random.below(20) {
            0..=6 => Self::Image(random.below(4)),
            7 => Self::Unclaim,
            8..=9 => Self::Claim,
            10..=13 => Self::Observe,
            _ => Self::Replace,
        }
    }
}
