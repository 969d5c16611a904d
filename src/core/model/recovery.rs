//! Recovery of a batch that was complete and loses a replica: its controllers replace the replica, or the whole batch is
//! recreated.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use super::FieldPath;
use super::malformed::Malformed;
use crate::api;

/// Spellings of `recovery.policy`; the first is the default.
pub const RECOVERY_POLICIES: &[(&str, bool)] = &[("None", false), ("Recreate", true)];

/// Default number of recoveries of a batch within the window.
const LIMIT: u32 = 3;
/// Default number of concurrent recoveries of a group.
const MAX_CONCURRENT: u32 = 1;
const WINDOW: Duration = Duration::from_secs(3600);
/// Longest time that is accepted.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Recovery of a batch that loses a replica, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Path of the block.
    pub at: FieldPath,
    /// Whether the batch is recreated; with an unknown policy it is not, and nothing is deleted.
    pub recreates: bool,
    /// The policy, if it is unknown.
    pub unknown_policy: Option<String>,
    /// A replica that is not ready for this time is lost; with `None`, only other causes count.
    pub unready_for: Option<Duration>,
    /// Recoveries of a batch within the window.
    pub limit: u32,
    /// Time in which recoveries count for `limit`.
    pub window: Duration,
    /// Concurrent recoveries of the group at which no other begins.
    pub max_concurrent: u32,
    /// Malformed fields, which have their defaults.
    pub malformed: Vec<Malformed>,
}

/// Reads a time from one second to a year.
pub(super) fn read_time(text: &str) -> Option<Duration> {
    let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok())?;
    (Duration::from_secs(1)..=LONGEST).contains(&read).then_some(read)
}

/// Reads the fields of a block, and notes those that are malformed.
pub(super) struct Fields<'a> {
    pub(super) at: &'a FieldPath,
    pub(super) malformed: Vec<Malformed>,
}

impl Fields<'_> {
    /// Reads a time; an empty one is none.
    pub(super) fn time(&mut self, field: &'static str, text: Option<&str>) -> Option<Duration> {
        let text = text.filter(|text| !text.is_empty())?;
        self.or_malformed(field, read_time(text), || format!("{text:?}"), MUST_BE_A_TIME)
    }

    /// Reads a number from 1 to `most`.
    pub(super) fn number(
        &mut self,
        field: &'static str,
        written: Option<i64>,
        (most, detail): (u32, &'static str),
    ) -> Option<u32> {
        let read = u32::try_from(written?).ok().filter(|read| (1..=most).contains(read));
        self.or_malformed(field, read, || written.unwrap_or_default().to_string(), detail)
    }

    fn or_malformed<T>(
        &mut self,
        field: &'static str,
        read: Option<T>,
        value: impl FnOnce() -> String,
        detail: &'static str,
    ) -> Option<T> {
        if read.is_none() {
            self.malformed.push(Malformed { at: self.at.child(field), value: Some(value()), detail });
        }
        read
    }
}

impl Recovery {
    /// Returns the limits that hold without a block.
    pub fn usual() -> Self {
        Self::parse(&api::coordination::Recovery::default(), FieldPath::default())
    }

    /// Reads the block at `at`.
    pub(super) fn parse(written: &api::coordination::Recovery, at: FieldPath) -> Self {
        let mut fields = Fields { at: &at, malformed: Vec::new() };
        let unready_for = fields.time("unreadyFor", written.unready_for.as_deref());
        let window = fields.time("window", written.window.as_deref());
        let limit = fields.number("limit", written.limit, (MOST, MUST_BE_A_LIMIT));
        let max_concurrent = fields.number("maxConcurrent", written.max_concurrent, (MOST, MUST_BE_A_LIMIT));
        let malformed = fields.malformed;
        let policy = written.policy.as_deref().filter(|policy| !policy.is_empty());
        let known = policy.map(|policy| RECOVERY_POLICIES.iter().find(|(word, _)| *word == policy));
        Self {
            recreates: known.flatten().is_some_and(|(_, recreates)| *recreates),
            unknown_policy: policy.filter(|_| known == Some(None)).map(str::to_owned),
            unready_for,
            limit: limit.unwrap_or(LIMIT),
            window: window.unwrap_or(WINDOW),
            max_concurrent: max_concurrent.unwrap_or(MAX_CONCURRENT),
            malformed,
            at,
        }
    }

    /// Reads a block in a place where roles may be too; a number is the size of a role of that name, not a block.
    pub(super) fn parse_beside_roles(value: &Value, at: FieldPath) -> Option<Self> {
        if value.is_i64() {
            return None;
        }
        if let Ok(written) = serde_json::from_value(value.clone()) {
            return Some(Self::parse(&written, at));
        }
        let malformed = Malformed { at: at.clone(), value: Some(value.to_string()), detail: MUST_BE_A_BLOCK };
        let none = Self::parse(&api::coordination::Recovery::default(), at);
        Some(Self { malformed: vec![malformed], ..none })
    }
}

/// Maximum of `limit` and `maxConcurrent`.
const MOST: u32 = 1_000;
pub const MUST_BE_A_TIME: &str = "must be a duration from one second to a year, such as 30s, 10m or 1h30m";
const MUST_BE_A_LIMIT: &str = "must be from 1 to 1000";
const MUST_BE_A_BLOCK: &str =
    "must have `policy`, `unreadyFor`, `limit`, `window` and `maxConcurrent` of the right types";
