//! Rights of whoever asks for a rollback, or ends a wait, by an annotation of the object that carries the group.

use crate::model::moment::Moment;
use crate::model::{FieldPath, Group, names};
use crate::rules::{Report, World};

/// Requires that whoever asks for a rollback may delete pods.
pub(super) fn rollback(group: &Group, world: &World, report: &mut Report) {
    let why = ": rolegate deletes the updated pods of a rollout that goes back";
    right(group, (names::ROLLED_BACK_AT, group.carrier.rolled_back), why, world, report);
}

/// Requires that whoever ends a wait may delete pods: recoveries that waited delete some, and rollouts replace more.
pub(super) fn resume(group: &Group, world: &World, report: &mut Report) {
    let carrier = &group.carrier;
    for asked in [(names::RESUMED_AT, carrier.resumed), (names::ROLLOUT_RESUMED_AT, carrier.rollout_resumed)] {
        right(group, asked, ": what waited goes on, and replaces pods", world, report);
    }
}

/// Reports whether the object asks for a rollback or the end of a wait.
pub(super) fn is_asked(group: &Group) -> bool {
    let carrier = &group.carrier;
    [carrier.rolled_back, carrier.resumed, carrier.rollout_resumed].iter().any(Option::is_some)
}

/// Requires that the author may delete pods: rolegate lends no rights.
fn right(group: &Group, (key, asked): (&str, Option<Moment>), why: &str, world: &World, report: &mut Report) {
    if asked.is_some() {
        world.right_to_delete(group, (key, FieldPath::annotation(key)), ("it", why), report);
    }
}
