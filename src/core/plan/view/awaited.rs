//! The objects that `readyWhen` names, with their conditions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::Condition;
use crate::api::{ConditionedObject, ObjectKind};
use crate::model::moment::Moment;
use crate::model::{AwaitedKind, AwaitedObject};

/// The objects of a namespace that a group may wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AwaitedObjects {
    /// Not looked at.
    #[default]
    Unknown,
    /// Those in files, which may be only some.
    Given(BTreeMap<AwaitedKind, OfKind>),
    /// Every object has its condition: for a run without a cluster.
    AllHold,
    /// By kind; a kind that is not watched is missing.
    Seen(BTreeMap<AwaitedKind, SeenKind>),
}

/// The objects of a kind in one namespace, by name.
pub type OfKind = BTreeMap<Arc<str>, Arc<SeenObject>>;

/// What is known of the objects of a kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenKind {
    /// The API server does not serve the kind.
    NotServed,
    /// Not listed yet, or not to be listed.
    Unread,
    Known(Arc<OfKind>),
}

/// An object, as far as it is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenObject {
    pub created: Option<Moment>,
    pub conditions: Vec<SeenCondition>,
}

impl SeenObject {
    /// Returns the conditions of an object. A phase counts as a condition that is True.
    pub fn of(object: &ConditionedObject) -> Self {
        let moment = |text: &Option<String>| text.as_deref().and_then(Moment::parse);
        let status = &object.status;
        let of_parents = status.parents.iter().flat_map(|parent| &parent.conditions);
        let conditions = status.conditions.iter().chain(of_parents).map(|condition: &Condition| SeenCondition {
            kind: condition.r#type.as_str().into(),
            is_true: condition.status == "True",
            reason: condition.reason.as_str().into(),
            message: Box::default(),
            since: moment(&condition.last_transition_time),
        });
        let phase = (!status.phase.is_empty()).then(|| SeenCondition {
            kind: status.phase.as_str().into(),
            is_true: true,
            reason: Box::default(),
            message: Box::default(),
            since: None,
        });
        Self { created: moment(&object.metadata.creation_timestamp), conditions: conditions.chain(phase).collect() }
    }
}

impl SeenObject {
    /// Returns the conditions of an object with their messages, which may change often.
    pub fn with_messages(object: &ConditionedObject) -> Self {
        let mut seen = Self::of(object);
        for (seen, condition) in seen.conditions.iter_mut().zip(&object.status.conditions) {
            seen.message = condition.message.as_str().into();
        }
        seen
    }
}

/// A condition of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCondition {
    pub kind: Box<str>,
    /// Whether its status is `True`.
    pub is_true: bool,
    /// Reason of the object's controller; empty without one.
    pub reason: Box<str>,
    /// Description; empty where it is not kept.
    pub message: Box<str>,
    /// Time of the last change of the status.
    pub since: Option<Moment>,
}

/// The state of the condition that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Awaited {
    /// It is True, since this time if it is known.
    Holds(Option<Moment>),
    Lacks(Lack),
}

/// Why the condition of an object is not True.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    pub what: LackWhat,
    /// For people.
    pub why: String,
    /// Time since when it is not, if the object tells.
    pub since: Option<Moment>,
}

/// What is missing. Each has an advice of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LackWhat {
    /// Nobody has looked.
    Look,
    /// rolegate does not watch the kind.
    Watch,
    /// The kind is watched, and cannot be listed.
    List,
    /// The object does not exist.
    Object,
    /// The object exists.
    Condition,
}

impl AwaitedObjects {
    /// Returns the objects of files.
    pub fn given<'a>(all: impl IntoIterator<Item = (AwaitedKind, &'a str, ConditionedObject)>) -> Self {
        let mut kinds: BTreeMap<AwaitedKind, OfKind> = BTreeMap::new();
        for (kind, name, object) in all {
            kinds.entry(kind).or_default().insert(name.into(), Arc::new(SeenObject::of(&object)));
        }
        Self::Given(kinds)
    }

    /// Reports whether all that is waited for was looked at.
    pub fn are_known(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::AllHold | Self::Given(_) => true,
            Self::Seen(kinds) => !kinds.values().any(|kind| *kind == SeenKind::Unread),
        }
    }

    /// Reports whether objects of a kind are not watched, as far as is known.
    pub(in crate::plan) fn leaves_out(&self, kind: ObjectKind) -> bool {
        matches!(self, Self::Seen(kinds) if !kinds.contains_key(&AwaitedKind::of(kind)))
    }

    /// Reports whether the API server is known not to serve a kind.
    pub(in crate::plan) fn knows_no(&self, kind: ObjectKind) -> bool {
        matches!(self, Self::Seen(kinds) if matches!(kinds.get(&AwaitedKind::of(kind)), Some(SeenKind::NotServed)))
    }

    /// Returns the conditions of objects of a kind that belong together: of the first with one that is not True, else of the last.
    ///
    /// # Errors
    ///
    /// Fails with a text on a kind that is not served.
    pub(in crate::plan) fn conditions(&self, kind: ObjectKind, names: &[String]) -> Result<Vec<SeenCondition>, String> {
        let Self::Seen(kinds) = self else { return Ok(Vec::new()) };
        let known = match kinds.get(&AwaitedKind::of(kind)) {
            Some(SeenKind::Known(known)) => known,
            Some(SeenKind::NotServed) => {
                return Err(format!("no {} is served: its definition is not there", kind.kind));
            }
            Some(SeenKind::Unread) | None => return Ok(Vec::new()),
        };
        let seen = || names.iter().filter_map(|name| known.get(name.as_str()));
        let waits = |seen: &&Arc<SeenObject>| seen.conditions.iter().any(|condition| !condition.is_true);
        Ok(seen().find(waits).or_else(|| seen().next_back()).map(|seen| seen.conditions.clone()).unwrap_or_default())
    }

    /// Returns the state of the condition that a segment or step of this number waits for.
    pub(in crate::plan) fn ask(&self, object: &AwaitedObject, number: u32) -> Awaited {
        let (kind, condition) = (&object.kind, &object.condition);
        let name = format!("{} {:?}", kind.kind, object.name_of(number));
        let lacks = |what, why| Awaited::Lacks(Lack { what, why, since: None });
        let of_name = |objects: &OfKind| objects.get(&*object.name_of(number)).cloned();
        let kinds = match self {
            Self::AllHold => return Awaited::Holds(None),
            Self::Unknown => {
                let why = format!("whether {name} has condition {condition} is known to the loop only");
                return lacks(LackWhat::Look, why);
            }
            Self::Given(kinds) => {
                return match kinds.get(kind).and_then(of_name) {
                    Some(seen) => seen.ask(condition, &name),
                    None => lacks(LackWhat::Object, format!("{name} is not in the files, add it by --with")),
                };
            }
            Self::Seen(kinds) => kinds,
        };
        let (what, why) = match kinds.get(kind) {
            None => (LackWhat::Watch, format!("not looked at: rolegate runs without `--ready-kinds` for {kind}")),
            Some(SeenKind::NotServed) => (LackWhat::Object, format!("not there: {kind} is not served")),
            Some(SeenKind::Unread) => (LackWhat::List, format!("not known yet: {kind} could not be listed")),
            Some(SeenKind::Known(objects)) => match of_name(objects) {
                Some(seen) => return seen.ask(condition, &name),
                None => (LackWhat::Object, "not there".to_owned()),
            },
        };
        lacks(what, format!("{name} is {why}"))
    }
}

impl SeenObject {
    /// Returns the state of a condition. `name` is the name of the object for people.
    fn ask(&self, condition: &str, name: &str) -> Awaited {
        // Of several conditions of one type, as of several parents, all must be True.
        let all: Vec<_> = self.conditions.iter().filter(|seen| *seen.kind == *condition).collect();
        let lacks = |why, since| Awaited::Lacks(Lack { what: LackWhat::Condition, why, since });
        match all.iter().find(|condition| !condition.is_true) {
            Some(SeenCondition { reason, since, .. }) => {
                let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
                lacks(format!("condition {condition} of {name} is not True{reason}"), since.or(self.created))
            }
            None if all.is_empty() => lacks(format!("{name} has no condition {condition}"), self.created),
            None => Awaited::Holds(all.iter().filter_map(|condition| condition.since).max().or(self.created)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::mk_group;

    const JOB: &str = "warm-1";

    fn asked(condition: &str) -> AwaitedObject {
        let object =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": "warm-$(SEGMENT)", "condition": condition});
        let segments = json!({"segmentSize": {"a": 1}, "readyWhen": {"object": object}});
        let group = mk_group(&[("a", 2)], &json!([{"name": "s", "strategy": {"segmentPlacement": segments}}]));
        group.coordinations[0].batchings[0].ready_when.clone().unwrap().object.unwrap()
    }

    fn seen(kind: SeenKind) -> AwaitedObjects {
        let jobs = AwaitedKind { group: "batch".to_owned(), kind: "Job".to_owned() };
        AwaitedObjects::Seen(BTreeMap::from([(jobs, kind)]))
    }

    fn job(conditions: &[(&str, bool, &str, i64)]) -> AwaitedObjects {
        let conditions = conditions.iter().map(|(kind, is_true, reason, since)| SeenCondition {
            kind: (*kind).into(),
            is_true: *is_true,
            reason: (*reason).into(),
            message: Box::default(),
            since: Some(Moment(*since)),
        });
        let object = SeenObject { created: Some(Moment(10)), conditions: conditions.collect() };
        seen(SeenKind::Known(Arc::new(BTreeMap::from([(JOB.into(), Arc::new(object))]))))
    }

    #[test]
    fn a_condition_that_is_true_holds_since_it_became_so() {
        let complete = job(&[("Suspended", false, "", 20), ("Complete", true, "", 30)]);
        assert_eq!(complete.ask(&asked("Complete"), 1), Awaited::Holds(Some(Moment(30))));
    }

    #[test]
    fn conditions_are_read_where_kinds_keep_them() {
        let read = |status: serde_json::Value| {
            let object = json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:10Z"}, "status": status});
            let object = Arc::new(SeenObject::of(&serde_json::from_value(object).unwrap()));
            seen(SeenKind::Known(Arc::new(BTreeMap::from([(JOB.into(), object)]))))
        };
        let holds = |status, condition: &str| matches!(read(status).ask(&asked(condition), 1), Awaited::Holds(_));
        let accepted = |status: &str| json!({"conditions": [{"type": "Accepted", "status": status}]});
        assert!(holds(json!({"parents": [accepted("True"), accepted("True")]}), "Accepted"));
        assert!(!holds(json!({"parents": [accepted("True"), accepted("False")]}), "Accepted"));
        assert!(holds(json!({"phase": "Successful"}), "Successful"));
        assert!(!holds(json!({"phase": "Running"}), "Successful"));
        for garbage in
            [json!(null), json!("x"), json!({"conditions": 7}), json!({"phase": {}}), json!({"parents": ["x"]})]
        {
            assert!(!holds(garbage.clone(), "Ready"), "{garbage}");
        }
    }

    #[test]
    fn each_silence_is_told() {
        let complete = asked("Complete");
        let told = |objects: &AwaitedObjects, number| match objects.ask(&complete, number) {
            Awaited::Lacks(lack) => (lack.what, lack.why, lack.since),
            Awaited::Holds(_) => panic!("holds"),
        };
        let lacks = |what, why: &str, since: Option<i64>| (what, why.to_owned(), since.map(Moment));
        let failed = job(&[("Complete", false, "BackoffLimitExceeded", 30)]);
        let why = "condition Complete of Job \"warm-1\" is not True (BackoffLimitExceeded)";
        assert_eq!(told(&failed, 1), lacks(LackWhat::Condition, why, Some(30)));
        assert_eq!(told(&failed, 2), lacks(LackWhat::Object, "Job \"warm-2\" is not there", None));
        let without = lacks(LackWhat::Condition, "Job \"warm-1\" has no condition Complete", Some(10));
        assert_eq!(told(&job(&[]), 1), without);
        let not_served = lacks(LackWhat::Object, "Job \"warm-1\" is not there: Job.batch is not served", None);
        assert_eq!(told(&seen(SeenKind::NotServed), 1), not_served);
        let why = "Job \"warm-1\" is not known yet: Job.batch could not be listed";
        assert_eq!(told(&seen(SeenKind::Unread), 1), lacks(LackWhat::List, why, None));
        let why = "Job \"warm-1\" is not looked at: rolegate runs without `--ready-kinds` for Job.batch";
        assert_eq!(told(&AwaitedObjects::Seen(BTreeMap::new()), 1), lacks(LackWhat::Watch, why, None));
        let why = "whether Job \"warm-1\" has condition Complete is known to the loop only";
        assert_eq!(told(&AwaitedObjects::Unknown, 1), lacks(LackWhat::Look, why, None));
    }
}
