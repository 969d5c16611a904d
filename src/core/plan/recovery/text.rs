//! Texts on recoveries.

use crate::api::status::RecoveryState;
use crate::model::wording::{counted, time};
use crate::model::{Coordination, Group, GroupKey, Recovery};
use crate::plan::recovery::brake::MANY_BROKEN;
use crate::plan::recovery::entry::{FIRST_PAUSE, LONGEST_PAUSE, Phase, loss_text};
use crate::plan::recovery::{Brake, RecoveryPlan, Stop, Tally};

/// Returns one line for each batch that was broken within the window.
pub fn recoveries<'a>(group: &'a Group, plan: &'a RecoveryPlan) -> impl Iterator<Item = String> + 'a {
    let line = |entry: &RecoveryState| {
        let (batch, loss) = (group.batch_name(&entry.coordination, entry.batch), loss_text(entry));
        let since = entry.since.as_deref().unwrap_or_default();
        let what = match Phase::of(entry)? {
            Phase::Waiting => match &entry.not_before {
                Some(at) => format!("it is made anew at {at}"),
                None if plan.brake.stop == Some(Stop::Others) => "it is made anew when fewer are".to_owned(),
                None => "it is made anew soon".to_owned(),
            },
            Phase::Recreating => "its old pods go, and its new ones wait for each other".to_owned(),
            Phase::Releasing => "its new pods get ready".to_owned(),
            Phase::Complete => match &entry.completed {
                Some(at) => format!("it was complete again at {at}"),
                None => "it is over".to_owned(),
            },
            Phase::Exhausted => format!("it {}", is_left(entry)),
        };
        Some(format!("recovery of {batch} of {}, {}: {loss} at {since}; {what}", entry.coordination, entry.phase))
    };
    let off = plan.without_effect.iter().map(|name| recovery_is_off(name));
    plan.entries.iter().filter_map(line).chain(off)
}

/// Returns a text such as `is left as it is, for it was made anew 3 times already`.
pub fn is_left(entry: &RecoveryState) -> String {
    format!("is left as it is, for it was made anew {} already", counted(entry.attempt, "time"))
}

/// Returns a text such as `12 of 18 batches look broken at once`, or `3 of 3 batches of the group look broken at once`.
pub fn many_text(brake: &Brake) -> String {
    let counts = brake.one_cause().unwrap_or_else(|| brake.all());
    let whose = if counts == brake.all() { "" } else { " of the group" };
    let Tally { batches, unready, .. } = counts;
    format!("{unready} of {batches} batches{whose} look broken at once")
}

/// Returns the reason and the text of a pause: why, until when, and how a person resumes recoveries.
pub fn pause(group: &Group, plan: &RecoveryPlan) -> Option<(&'static str, String)> {
    let GroupKey { namespace, name } = &group.key;
    let resume = format!("`rolegate resume {name} -n {namespace}`");
    let many = || {
        let many = many_text(&plan.brake);
        format!(
            "{many}, which one cause is likely to do: none is made anew until fewer do; {resume} has them made anew all the same"
        )
    };
    let silent = || {
        let told = plan.unknown.values().cloned().collect::<Vec<_>>().join("; ");
        format!("{told}; {resume} has them made anew all the same")
    };
    match () {
        () if plan.brake.is_paused() => Some((MANY_BROKEN, many())),
        () if !plan.unknown.is_empty() => Some(("NodeNotReady", silent())),
        () => None,
    }
}

/// Returns a text on a policy: `coordination "pd": a batch that loses a replica is made anew, 3 times within 1h at most; …`
pub fn policy_text(coordination: &str, recovery: &Recovery) -> String {
    let (limit, window) = (counted(recovery.limit, "time"), time(recovery.window));
    let concurrent = recovery.max_concurrent;
    let unready = recovery.unready_for.map(|most| format!(", or is not ready for {},", time(most)));
    format!(
        "coordination {coordination:?}: a batch that loses a replica{} is made anew, {limit} within {window} at most; the \
         second time after {}, then twice as long, {} at most; {concurrent} of the group at once",
        unready.unwrap_or_default(),
        time(FIRST_PAUSE),
        time(LONGEST_PAUSE),
    )
}

/// Returns the text on a policy without effect.
pub fn recovery_is_off(coordination: &str) -> String {
    format!("the recovery of coordination {coordination:?} has no effect: rolegate runs without `--allow recovery`")
}

pub fn roles_of<'a>(group: &'a Group, coordination: &str) -> impl Iterator<Item = &'a str> {
    let named = group.coordinations.iter().find(|one| one.display_name() == coordination);
    named.map(Coordination::role_names).unwrap_or_default().into_iter()
}
