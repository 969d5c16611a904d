//! Rules of rollouts that go back when they do not get ready (KEP-32, Rollback capabilities).

use serde_json::Value;

use crate::api::coordination::RollingUpdate;
use crate::model::fault::MUST_BE_A_TIME;
use crate::model::rolling::{ON_FAILURE, ROLLBACK, RollingBounds};
use crate::model::rollout_step::read_duration;
use crate::model::{Coordination, FieldPath, Group, wording};
use crate::rules::group::rollout_steps::shared;
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Report, World};

/// Returns the rolling updates that go back, each with its path.
fn that_go_back(group: &Group) -> impl Iterator<Item = (&Coordination, &RollingUpdate, &FieldPath)> {
    let updates = group.coordinations.iter().filter_map(|one| {
        let (update, at) = one.rolling_update.as_ref()?;
        Some((one, update, at))
    });
    updates.filter(|(_, update, _)| update.on_failure.as_deref() == Some(ROLLBACK))
}

/// Requires a known word and a time, and roles in no other rolling update.
pub(super) fn on_failure(group: &Group, world: &World, report: &mut Report) {
    format(group, report);
    for bounds in RollingBounds::all_of(group) {
        too_short(group, &bounds, report);
    }
    for (coordination, _, at) in that_go_back(group) {
        let (subject, path) = (coordination.display_name(), at.child("onFailure"));
        if let Some((role, other)) = shared(group, coordination) {
            let detail = format!(
                "may not be set while coordination {other:?} updates role {role:?} too: the role would go back without the roles of \
                 {other:?}"
            );
            report.forbid(&subject, path.clone(), detail);
        }
        if !world.options.allowed.recovery {
            let detail = if world.manifests {
                "rolegate must run with `--allow recovery`: it deletes the updated pods of a rollout that goes back"
            } else {
                "has no effect: rolegate runs without `--allow recovery`, and deletes no pods of a rollout that fails"
            };
            report.notice(&subject, path, detail);
        }
    }
}

/// Warns about a time that is over before a replica can be ready: it is counted from there, and is longer than it says.
fn too_short(group: &Group, bounds: &RollingBounds, report: &mut Report) {
    let Some((update, at)) = group.coordination(bounds.index).and_then(|one| one.rolling_update.as_ref()) else {
        return;
    };
    let Some((role, min_ready)) = bounds.min_ready.iter().max_by_key(|(_, time)| **time) else { return };
    let Some(time) = bounds.fail_after.filter(|time| time <= min_ready) else { return };
    let (path, written) = match &update.fail_after {
        Some(_) => (at.child("failAfter"), ""),
        None => (at.child("onFailure"), "`failAfter` is 10m by default, which "),
    };
    let [min_ready, fails] = [*min_ready, time.saturating_add(*min_ready)].map(wording::time);
    let detail = format!(
        "{written}is not longer than the {min_ready} for which a pod of role {role:?} must be ready before it counts \
         (`minReadySeconds`): it is counted after these, and the rollout fails after {fails}"
    );
    report.notice(&bounds.name, path, detail);
}

fn format(group: &Group, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some((update, at)) = &coordination.rolling_update else { continue };
        let subject = coordination.display_name();
        let word = update.on_failure.as_deref().filter(|word| !word.is_empty());
        if let Some(word) = word.filter(|word| !ON_FAILURE.contains(word)) {
            let detail = supported(ON_FAILURE.iter().copied());
            report.error(&subject, at.child("onFailure"), Cause::NotSupported, quoted(word), detail);
        }
        let Some(time) = &update.fail_after else { continue };
        let path = at.child("failAfter");
        if read_duration(&Value::String(time.clone())).is_none() {
            report.error(&subject, path, Cause::Invalid, quoted(time), MUST_BE_A_TIME);
        } else if word != Some(ROLLBACK) {
            report.forbid(&subject, path, "may be set only with `onFailure: Rollback`");
        }
    }
}

/// Requires that the author of a rollout that goes back may delete pods: rolegate lends no rights.
pub(super) fn rights(group: &Group, world: &World, report: &mut Report) {
    let why = ": rolegate deletes the updated pods of a rollout that goes back";
    for (coordination, _, at) in that_go_back(group) {
        let (subject, at) = (coordination.display_name(), at.child("onFailure"));
        world.right_to_delete(group, (&subject, at), ("it", why), report);
    }
}

/// Reports whether a rollout of the group goes back.
pub(super) fn goes_back(group: &Group) -> bool {
    that_go_back(group).next().is_some()
}
