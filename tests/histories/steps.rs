//! Rollouts in steps (KEP-30, Summary): their shapes, and checks of them that are independent of the planner.

use rolegate::model::RolledWorkload;
use rolegate::model::moment::Moment;

use crate::lockstep::{Ordinal, count, ordinals};
use crate::prelude::*;

/// The steps of a rollout of the first two roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    #[default]
    None,
    /// One role in part, the other one completely, the rest of the first.
    InTurn,
    /// Half of both, a pause of a minute, the rest.
    Soak,
    /// As in turn, and a person ends a pause after each step.
    Asks,
}

/// Shares in percent at the end of a step.
type Shares = [u32; ROLLED];

/// A pause: its duration, or none for one that a person ends.
type Pause = Option<Duration>;

impl Steps {
    fn list(self) -> Vec<(Shares, Option<Pause>)> {
        let soak = Some(Some(Duration::from_secs(60)));
        let asks = Some(None);
        match self {
            Self::None => Vec::new(),
            Self::InTurn => vec![([34, 0], None), ([34, 100], None), ([100, 100], None)],
            Self::Soak => vec![([50, 50], soak), ([100, 100], None)],
            Self::Asks => vec![([34, 0], asks), ([34, 100], asks), ([100, 100], None)],
        }
    }

    pub fn to_json(self) -> Value {
        let step = |shares: Shares| -> Value {
            let shares = ROLES.iter().zip(shares).map(|(role, share)| ((*role).to_owned(), json!(format!("{share}%"))));
            Value::Object(shares.collect())
        };
        let pause = |pause: Pause| json!({ "pause": pause.map_or(json!({}), |time| json!({ "duration": format!("{}s", time.as_secs()) })) });
        self.list().into_iter().flat_map(|(shares, end)| [Some(step(shares)), end.map(pause)]).flatten().collect()
    }
}

/// Returns the updated replicas of a role at a share: rounded down, and at least one of some.
fn goal(share: u32, desired: u32) -> u32 {
    if share == 0 { 0 } else { (share * desired / 100).max(1).min(desired) }
}

/// Returns the time of the loops.
pub fn now(now: Duration) -> Moment {
    let start = Moment::parse("2026-01-01T00:00:00Z").unwrap();
    start.after(now)
}

fn states(status: &GroupStatus) -> impl Iterator<Item = &RolloutState> {
    status.coordination_state.iter().filter_map(|state| state.rollout.as_ref())
}

/// Reports whether a status tells of a pause between steps.
pub fn pauses(status: &GroupStatus) -> bool {
    paused_since(status).is_some()
}

pub fn paused_since(status: &GroupStatus) -> Option<Moment> {
    states(status).find_map(|state| Moment::parse(state.paused_since.as_deref()?))
}

/// An open rollout, as a pass sees it.
struct Open<'a> {
    role: usize,
    workload: &'a RolledWorkload,
    seen: Vec<Ordinal>,
    /// Whether its edit was taken back.
    back: bool,
}

impl<'a> Open<'a> {
    fn of(workload: &'a RolledWorkload, snapshot: &Snapshot) -> Self {
        let seen = ordinals(workload, snapshot);
        let is_left = seen.iter().any(|seen| !seen.updated);
        let back = is_left && workload.update_revision == workload.current_revision;
        Self { role: crate::lockstep::role_of(workload), workload, seen, back }
    }

    /// Reports whether it has come to the end of a step.
    fn is_at(&self, goal: u32, rolling: Rolling) -> bool {
        let floor = rolling.kept_old(self.workload.desired).max(self.workload.asked_partition());
        let last = count(&self.seen, |ordinal, seen| !seen.out && (seen.updated || ordinal >= floor));
        count(&self.seen, |_, seen| seen.updated && seen.ready) >= goal.min(last)
    }
}

/// R11: checks that a partition is lowered within the step that is under way, and beyond a pause only after its end is
/// committed.
pub fn allow(
    (workload, to): (&RolledWorkload, u32),
    snapshot: &Snapshot,
    rolling: Rolling,
    stored: &Stored,
) -> Result<(), Broken> {
    let list = rolling.steps.list();
    let open = snapshot.workloads.iter().filter(|other| other.is_open() && !other.unclaimed);
    let open: Vec<_> = open.map(|open| Open::of(open, snapshot)).filter(|open| open.role < ROLLED).collect();
    let Some(own) = open.iter().find(|open| open.workload.key == workload.key).filter(|_| !list.is_empty()) else {
        return Ok(());
    };
    let all_back = open.iter().all(|open| open.back);
    let is_new =
        |ordinal: u32, seen: Ordinal| (to..workload.partition).contains(&ordinal) && !seen.updated && !seen.out;
    if (own.back && !all_back) || count(&own.seen, is_new) == 0 {
        return Ok(());
    }
    let name = &workload.claim.role;
    let goal_of = |step: usize, open: &Open<'_>| {
        let (desired, role) = (count(&open.seen, |_, seen| !seen.out), open.role);
        // Where a rollout may go back, one replica stays old until the last step.
        let most =
            |step: usize| if rolling.back && step + 1 < list.len() { desired.saturating_sub(1) } else { desired };
        let goal = |step: usize| goal(list[step].0[role], desired).min(most(step));
        if !all_back {
            return goal(step);
        }
        // The way back ends where the steps began.
        desired - (list.len() - 1).checked_sub(step + 1).map_or(0, goal)
    };
    let reach = count(&own.seen, |ordinal, seen| !seen.out && (seen.updated || ordinal >= to));
    let step = (0..list.len()).find(|step| goal_of(*step, own) >= reach).unwrap_or(list.len() - 1);
    for before in 0..step {
        for other in open.iter().filter(|other| other.back == all_back) {
            hold!(
                other.is_at(goal_of(before, other), rolling),
                "R11: {reach} of {} {name} may be updated, and {} has not come to the end of step {}: {:?}",
                workload.desired,
                other.workload.claim.role,
                before + 1,
                rolling.steps
            );
        }
    }
    if all_back {
        return Ok(());
    }
    let state = states(&stored.status).next().cloned().unwrap_or_default();
    let mut since = [0; ROLLED];
    let waits = stored.has_steps_that_wait();
    for (shares, _) in list[..step].iter().filter(|(_, pause)| waits || pause.is_some()) {
        let moved = (0..ROLLED).any(|role| state.revisions.contains_key(ROLES[role]) && shares[role] > since[role]);
        let passed = (0..ROLLED).all(|role| shares[role] <= state.passed.get(ROLES[role]).copied().unwrap_or(0));
        hold!(!moved || passed, "R11: {name} goes on, and the step of {shares:?} is not accepted: {state:?}");
        since = *shares;
    }
    Ok(())
}

/// R12: checks that a status ends a step only when its object has its condition, and the pause after it only after its time, or
/// when a person has ended it.
pub fn passed(replica: &Replica, status: &GroupStatus, stored: &Stored, at: Duration) -> Result<(), Broken> {
    let (before, after) = (states(&stored.status).next(), states(status).next());
    let Some(after) = after.filter(|after| !after.passed.is_empty()) else { return Ok(()) };
    if before.is_some_and(|before| before.passed == after.passed) {
        return Ok(());
    }
    // Another edit begins the steps anew.
    let before = before.filter(|before| before.revisions == after.revisions);
    let began = before.and_then(|before| Moment::parse(before.paused_since.as_deref()?));
    let resumed = stored.meta.annotation(names::ROLLOUT_RESUMED_AT).and_then(Moment::parse);
    let list = stored.rolling.map(|rolling| rolling.steps.list()).unwrap_or_default();
    let reached = |state: &RolloutState| {
        let share = |role: usize| state.passed.get(ROLES[role]).copied().unwrap_or(0);
        list.iter().take_while(|(shares, _)| (0..ROLLED).all(|role| shares[role] <= share(role))).count()
    };
    let (from, to) = (before.map_or(0, reached), reached(after));
    let is_over = |pause: Pause, began: Moment| {
        let by_time = pause.is_some_and(|time| now(at) >= began.after(time));
        by_time || resumed.is_some_and(|resumed| resumed >= began)
    };
    let waits = stored.has_steps_that_wait();
    let counted = |(_, (_, pause)): &(usize, &(Shares, Option<Pause>))| waits || pause.is_some();
    let ended: Vec<_> = list.iter().enumerate().filter(counted).filter(|(step, _)| (from..to).contains(step)).collect();
    hold!(!ended.is_empty(), "R12: the status ends no step, and says so: {:?}", after.passed);
    for (step, (shares, pause)) in ended {
        let before =
            (0..step).rev().find(|step| counted(&(*step, &list[*step]))).map_or([0; ROLLED], |step| list[step].0);
        if !(0..ROLLED).any(|role| after.revisions.contains_key(ROLES[role]) && shares[role] > before[role]) {
            continue;
        }
        let number = u32::try_from(step).unwrap() + 1;
        hold!(
            !stored.step_lacks(replica, number),
            "R12: the status ends step {number}, and its object lacks its condition"
        );
        let Some(pause) = pause else { continue };
        hold!(
            began.is_some_and(|began| is_over(*pause, began)),
            "R12: the status ends the pause at {shares:?} that began at {began:?}, which nobody has ended"
        );
    }
    Ok(())
}
