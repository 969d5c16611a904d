//! Recovery of a batch that was complete and loses a replica: its controllers replace the replica, or the whole batch is
//! recreated.

use std::time::Duration;

use serde_json::Value;

use super::FieldPath;
use super::fault::Reader;
use crate::api;

/// Field of the strategies; directly under `rollingDeploy` it is a key beside the roles.
pub(super) const RECOVERY: &str = "recovery";
/// Spellings of `recovery.policy`; the first is the default.
pub const RECOVERY_POLICIES: &[(&str, bool)] = &[("None", false), ("Recreate", true)];

/// Default number of recoveries of a batch within the window.
const LIMIT: u32 = 3;
/// Default number of concurrent recoveries of a group.
const MAX_CONCURRENT: u32 = 1;
const WINDOW: Duration = Duration::from_secs(3600);
/// Recovery of a batch that loses a replica, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Path of the block.
    pub at: FieldPath,
    /// Whether the batch is recreated; with an unknown policy it is not, and nothing is deleted.
    pub recreates: bool,
    /// A replica that is not ready for this time is lost; with `None`, only other causes count.
    pub unready_for: Option<Duration>,
    /// Recoveries of a batch within the window.
    pub limit: u32,
    /// Time in which recoveries count for `limit`.
    pub window: Duration,
    /// Concurrent recoveries of the group at which no other begins.
    pub max_concurrent: u32,
}

impl Recovery {
    /// Returns the limits that hold without a block.
    pub fn usual() -> Self {
        Self::parse(&api::coordination::Recovery::default(), &mut Reader::of_group(&mut Vec::new()))
    }

    /// Reads the field of a block.
    pub(super) fn parse(written: &api::coordination::Recovery, block: &mut Reader<'_>) -> Self {
        let mut fields = block.within("recovery", RECOVERY);
        let recreates = fields.word("policy", written.policy.as_deref(), RECOVERY_POLICIES, false);
        let unready_for = fields.time("unreadyFor", written.unready_for.as_deref());
        let window = fields.time("window", written.window.as_deref());
        let limit = fields.number("limit", written.limit, (MOST, MUST_BE_A_LIMIT));
        let max_concurrent = fields.number("maxConcurrent", written.max_concurrent, (MOST, MUST_BE_A_LIMIT));
        Self {
            recreates: recreates.unwrap_or(false),
            unready_for,
            limit: limit.unwrap_or(LIMIT),
            window: window.unwrap_or(WINDOW),
            max_concurrent: max_concurrent.unwrap_or(MAX_CONCURRENT),
            at: fields.at,
        }
    }

    /// Reads a block in a place where roles may be too; a number is the size of a role of that name, not a block.
    pub(super) fn parse_beside_roles(value: &Value, block: &mut Reader<'_>) -> Option<Self> {
        if value.is_i64() {
            return None;
        }
        let written = serde_json::from_value(value.clone()).unwrap_or_else(|_| {
            let mut fields = block.within("recovery", RECOVERY);
            fields.wrong(fields.at.clone(), Some(value.to_string()), MUST_BE_A_BLOCK);
            api::coordination::Recovery::default()
        });
        Some(Self::parse(&written, block))
    }
}

/// Maximum of `limit` and `maxConcurrent`.
const MOST: u32 = 1_000;
const MUST_BE_A_LIMIT: &str = "must be from 1 to 1000";
const MUST_BE_A_BLOCK: &str =
    "must have `policy`, `unreadyFor`, `limit`, `window` and `maxConcurrent` of the right types";
