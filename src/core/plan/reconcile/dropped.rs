//! Objects whose status does not keep what is written to it. They get one Event and no more writes: another write would differ
//! again, forever.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::model::Group;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::uptime::Uptime;

/// The reason of the Event.
pub const DROPPED: &str = "StatusNotKept";
/// The time for which an API server may use an old definition after a change: a field dropped in that time is tried once more.
const OLD_DEFINITION: Duration = Duration::from_secs(10);

/// The object that a status was written to, with its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCarrier {
    /// Uid.
    pub uid: String,
    pub generation: Option<i64>,
}

impl StatusCarrier {
    /// Returns the object that the group was read from.
    pub fn of(group: &Group) -> Self {
        Self { uid: group.carrier.uid.clone(), generation: group.carrier.generation }
    }
}

/// The remembered objects by uid.
#[derive(Debug, Default)]
pub(in crate::plan) struct DroppedStatuses(HashMap<String, Dropped>);

#[derive(Debug)]
struct Dropped {
    generation: Option<i64>,
    fields: Vec<&'static str>,
    said: bool,
    /// The time of another try with the same spec.
    again: Option<Uptime>,
}

impl DroppedStatuses {
    /// Notes that these fields were not kept. After a recent change of the definition, another try is planned.
    pub(in crate::plan) fn note(
        &mut self,
        object: StatusCarrier,
        fields: Vec<&'static str>,
        redefined: Option<Uptime>,
        now: Uptime,
    ) {
        let before = self.0.remove(&object.uid);
        let said = before.is_some_and(|before| before.said && before.fields == fields);
        let again = redefined.map(|at| at + OLD_DEFINITION).filter(|at| *at > now);
        self.0.insert(object.uid, Dropped { generation: object.generation, fields, said, again });
    }

    /// Plans another try for each object after a change of a definition; returns whether there are any.
    pub(in crate::plan) fn redefined(&mut self, now: Uptime) -> bool {
        self.0.values_mut().for_each(|dropped| dropped.again = Some(now));
        !self.0.is_empty()
    }

    /// Reports whether writes to the object of this group are barred.
    pub(in crate::plan) fn bar(&self, group: &Group, now: Uptime) -> bool {
        let dropped = self.0.get(&group.carrier.uid);
        dropped.is_some_and(|dropped| {
            dropped.generation == group.carrier.generation && dropped.again.is_none_or(|at| at > now)
        })
    }

    /// Returns when the bar ends without a change of the spec, if known.
    pub(in crate::plan) fn again(&self, group: &Group) -> Option<Uptime> {
        self.0.get(&group.carrier.uid)?.again
    }

    /// Returns the Event on the object, once.
    pub(in crate::plan) fn event(&mut self, group: &Group) -> Option<EventNote> {
        let dropped = self.0.get_mut(&group.carrier.uid).filter(|dropped| !dropped.said)?;
        dropped.said = true;
        let fields = dropped.fields.join(", ");
        let note = format!(
            "the status does not keep {fields}: nothing is written here before the spec or the CustomResourceDefinition is \
             changed; a RoleCoordination with groupRef coordinates the group without it"
        );
        Some(EventNote::new(DROPPED, fields, note, true))
    }

    /// Removes objects that no longer exist.
    pub(in crate::plan) fn keep_only(&mut self, present: &HashSet<&str>) {
        self.0.retain(|uid, _| present.contains(uid.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::mk_group;

    fn group(generation: i64) -> Group {
        let mut group = mk_group(&[], &json!([]));
        group.carrier.generation = Some(generation);
        group
    }

    fn at(seconds: u64) -> Uptime {
        Uptime::from_secs(seconds)
    }

    #[test]
    fn an_object_is_left_alone_until_its_spec_or_its_definition_changes() {
        let mut dropped = DroppedStatuses::default();
        assert!(!dropped.bar(&group(1), at(0)));
        let note = |dropped: &mut DroppedStatuses, redefined, now| {
            dropped.note(StatusCarrier::of(&group(1)), vec!["summary"], redefined, now);
            dropped.again(&group(1))
        };
        assert_eq!(note(&mut dropped, None, at(0)), None);
        assert_eq!((dropped.bar(&group(1), at(99)), dropped.bar(&group(2), at(99))), (true, false));
        assert!(dropped.redefined(at(100)));
        assert!(!dropped.bar(&group(1), at(100)));
        // The old definition may still be in force.
        let again = note(&mut dropped, Some(at(100)), at(101));
        assert_eq!(
            (again, dropped.bar(&group(1), at(109)), dropped.bar(&group(1), at(110))),
            (Some(at(110)), true, false)
        );
        assert_eq!(note(&mut dropped, Some(at(100)), at(111)), None);
        assert!(dropped.bar(&group(1), at(999)));
        dropped.keep_only(&HashSet::from([""]));
        assert!(dropped.redefined(at(0)));
        dropped.keep_only(&HashSet::from(["another"]));
        assert!(!dropped.redefined(at(0)));
    }

    #[test]
    fn it_is_said_once_for_the_same_fields() {
        let (mut dropped, group) = (DroppedStatuses::default(), group(1));
        let mut note = |fields| {
            dropped.note(StatusCarrier::of(&group), fields, None, at(0));
            [(); 2].map(|()| dropped.event(&group).map(|event| event.subject))
        };
        assert_eq!(note(vec!["summary"]), [Some("summary".to_owned()), None]);
        assert_eq!(note(vec!["summary"]), [None, None]);
        assert_eq!(note(vec!["conditions"]), [Some("conditions".to_owned()), None]);
    }
}
