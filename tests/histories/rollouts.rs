//! What users ask for of updates: the bounds of a coordinated rollout (KEP-30) of the first two roles, and what they do to the
//! workloads that are claimed for it.

use rolegate::model::Progression;
use serde_json::{Value, json};

use crate::random::Random;
use crate::spec::{Coordination, ROLES, Wish};

/// So many roles, the first ones, are rolled in lockstep.
pub const ROLLED: usize = 2;

/// The bounds of a coordinated rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// Percent.
    pub skew: u32,
    /// Replicas.
    pub unavailable: u32,
    /// Share that stays old, percent.
    pub partition: u32,
}

/// What a user does to a claimed workload, and what its controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetStep {
    /// The template gets this image: a new one, or one that it had before.
    Image(u32),
    Unclaim,
    Claim,
    /// The controller sees the last change.
    Observe,
    /// The controller replaces a pod.
    Replace,
}

impl Rolling {
    pub fn random(random: &mut Random) -> Self {
        Self {
            skew: random.pick(&[0, 10, 34, 50, 100]),
            unavailable: random.pick(&[1, 1, 2, 5]),
            partition: random.pick(&[0, 0, 0, 0, 40, 100]),
        }
    }

    pub fn to_json(self) -> Value {
        let percent = |number: u32| format!("{number}%");
        let bounds = json!({
            "maxSkew": percent(self.skew),
            "maxUnavailable": self.unavailable,
            "partition": percent(self.partition),
        });
        json!({ "name": "roll", "roles": ROLES[..ROLLED], "strategy": { "rollingUpdate": bounds } })
    }

    /// Replicas of so many that stay old: a share is rounded up, and of one that is not all at least one goes.
    pub fn kept_old(self, desired: u32) -> u32 {
        let kept = (self.partition * desired).div_ceil(100);
        if self.partition < 100 { kept.min(desired.saturating_sub(1)) } else { desired }
    }

    /// True for a role of which less than one replica is to be updated, and one is: it goes last, when the others are where
    /// they are to be.
    pub fn goes_last(self, desired: u32) -> bool {
        let share = (100 - self.partition) * desired;
        self.partition > 0 && share > 0 && share < 100
    }

    /// True when a role with `updated` of `desired` replicas is not too far ahead of one with `behind` of `of`: by the skew, or
    /// by one replica of the other where that is more.
    pub fn allows(self, (updated, desired): (u32, u32), (behind, of): (u32, u32)) -> bool {
        let ahead = i64::from(updated) * i64::from(of) - i64::from(behind) * i64::from(desired);
        let skew = i64::from(self.skew) * i64::from(desired) * i64::from(of);
        100 * ahead <= skew.max(100 * i64::from(desired))
    }
}

impl Wish {
    /// Something that lets a rollout begin soon: segments that are small, or none.
    pub fn rollable(random: &mut Random) -> Self {
        if random.percent(40) {
            return Self::Nothing;
        }
        let progression = random.pick(&[Progression::OrderedReady, Progression::Scheduled, Progression::Parallel]);
        let mut size = || 1 + random.below(3);
        let sizes = [size(), size(), 0];
        Self::All(vec![Coordination {
            progression,
            sizes,
            pod_groups: random.percent(30),
            recovers: random.percent(40),
            shares_rack: false,
        }])
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
