//! Events, read for the reasons of missing pods and for earlier reports about a group.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

pub const EVENT: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub involved_object: InvolvedObject,
    /// One CamelCase word.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_default")]
    pub message: String,
    /// `Normal` or `Warning`.
    #[serde(deserialize_with = "null_default")]
    pub r#type: String,
    /// Time of the last occurrence, RFC 3339; set in Events of the older form.
    pub last_timestamp: Option<String>,
    /// Time of the first occurrence, RFC 3339 with fractions; set in Events of the newer form.
    pub event_time: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InvolvedObject {
    #[serde(deserialize_with = "null_default")]
    pub kind: String,
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

impl Event {
    /// Returns `lastTimestamp`, else `eventTime`, else the creation time, RFC 3339; `""` without any.
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
