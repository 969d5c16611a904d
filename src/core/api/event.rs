//! Events, read for the reasons of missing pods and for earlier reports about a group.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{Meta, ObjectKind, null_default};

pub const EVENT: ObjectKind = ObjectKind::namespaced("", "v1", "Event", "events");

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    pub metadata: Meta,
    pub involved_object: InvolvedObject,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// Time of the last occurrence, RFC 3339; set in Events of the older form.
    pub last_timestamp: Option<String>,
    /// Time of the first occurrence, RFC 3339 with fractions; set in Events of the newer form.
    pub event_time: Option<String>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InvolvedObject {
    pub kind: String,
    pub name: String,
    /// Empty in Events that name their object only.
    pub uid: String,
}

impl Event {
    /// Returns `lastTimestamp`, else `eventTime`, else the creation time, RFC 3339; `""` without any.
    pub fn last_seen(&self) -> &str {
        let times = [&self.last_timestamp, &self.event_time, &self.metadata.creation_timestamp];
        times.into_iter().flatten().map(String::as_str).find(|time| !time.is_empty()).unwrap_or_default()
    }

    /// Reports whether it is about the object with this uid and creation time, and not about a deleted one of its name. An Event
    /// without a uid is, since the creation.
    pub fn is_about(&self, uid: &str, created: &str) -> bool {
        let second = |time: &'_ str| time.get(..19).unwrap_or(time).to_owned();
        match self.involved_object.uid.as_str() {
            "" => second(self.last_seen()) >= second(created),
            of => of == uid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_deleted_namesake_are_not_of_its_successor() {
        let event = |uid: &str, at: &str| {
            let object = serde_json::json!({ "involvedObject": { "uid": uid }, "lastTimestamp": at });
            serde_json::from_value::<Event>(object).unwrap().is_about("new", "2026-01-01T12:00:00Z")
        };
        let (before, since) = ("2026-01-01T11:59:59Z", "2026-01-01T12:00:00.000001Z");
        assert_eq!([event("old", since), event("new", before)], [false, true]);
        assert_eq!([event("", before), event("", since)], [false, true]);
    }
}
