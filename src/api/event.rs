//! Events, as far as they say why pods are not made, and what was told of a group.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `v1 Event`.
pub const EVENT: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };

/// An Event.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// The object that it is about.
    #[serde(deserialize_with = "null_default")]
    pub involved_object: InvolvedObject,
    /// One word.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
    /// For people.
    #[serde(deserialize_with = "null_default")]
    pub message: String,
    /// `Normal` or `Warning`.
    #[serde(deserialize_with = "null_default")]
    pub r#type: String,
    /// When it last happened, RFC 3339; of Events in the older form.
    pub last_timestamp: Option<String>,
    /// When it first happened, RFC 3339 with fractions; of Events in the newer form.
    pub event_time: Option<String>,
}

/// The object that an Event is about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InvolvedObject {
    /// Its kind.
    #[serde(deserialize_with = "null_default")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

impl Event {
    /// When it last happened, RFC 3339.
    pub fn last_seen(&self) -> &str {
        let times = [&self.last_timestamp, &self.event_time, &self.metadata.creation_timestamp];
        times.into_iter().flatten().map(String::as_str).find(|time| !time.is_empty()).unwrap_or_default()
    }
}

impl Object for Event {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
