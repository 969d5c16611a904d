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

impl Recovery {
    /// Reads the block at `at`.
    pub(super) fn parse(written: &api::coordination::Recovery, at: FieldPath) -> Self {
        let mut malformed = Vec::new();
        let mut time = |field: &'static str, text: &Option<String>| {
            let text = text.as_deref().filter(|text| !text.is_empty())?;
            let read = read_time(text);
            if read.is_none() {
                let value = Some(format!("{text:?}"));
                malformed.push(Malformed { at: at.child(field), value, detail: MUST_BE_A_TIME });
            }
            read
        };
        let unready_for = time("unreadyFor", &written.unready_for);
        let window = time("window", &written.window);
        let mut number = |field: &'static str, written: Option<i64>| {
            let read = u32::try_from(written?).ok().filter(|read| (1..=MOST).contains(read));
            if read.is_none() {
                let value = written.map(|written| written.to_string());
                malformed.push(Malformed { at: at.child(field), value, detail: MUST_BE_A_LIMIT });
            }
            read
        };
        let limit = number("limit", written.limit);
        let max_concurrent = number("maxConcurrent", written.max_concurrent);
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
