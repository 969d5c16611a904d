//! Requests for nodes for a batch that fits nowhere (`whenNoFit: provision`).

use std::time::Duration;

use super::FieldPath;
use super::fault::{Cause, Reader, quoted};
use super::object_name::subdomain_fault;
use super::words::words;
use crate::api::provisioning::{CAPACITY_BUFFER, PROVISIONING_REQUEST};
use crate::api::{self, ObjectKind};

words! {
/// Object that asks for nodes.
#[derive(Default)]
pub enum ProvisionBy {
    /// One CapacityBuffer for each role, for Karpenter.
    #[default]
    CapacityBuffer,
    /// One ProvisioningRequest for the batch, for cluster-autoscaler.
    ProvisioningRequest,
}
}

/// Returns the kinds of objects by which nodes are requested.
pub fn request_kinds() -> impl Iterator<Item = ObjectKind> {
    ProvisionBy::ALL.iter().map(|by| by.kind())
}

/// Default class of a ProvisioningRequest: nodes for all pods, or none.
const CLASS: &str = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
const AFTER: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(900);
const MAX_SEGMENTS_AHEAD: u32 = 1;
/// Maximum of `maxSegmentsAhead`.
const MOST_AHEAD: u32 = 100;

/// Requests for nodes, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    /// Path of the block.
    pub at: FieldPath,
    pub by: ProvisionBy,
    /// Class of a ProvisioningRequest.
    pub class: String,
    /// Whether the class is written.
    pub has_class: bool,
    /// Time for which a batch lacks room before nodes are requested.
    pub after: Duration,
    /// Time after which a request is given up.
    pub deadline: Duration,
    /// Maximum number of batches of the group for which nodes are requested at a time.
    pub max_segments_ahead: u32,
}

impl ProvisionBy {
    pub const fn kind(self) -> ObjectKind {
        match self {
            Self::CapacityBuffer => CAPACITY_BUFFER,
            Self::ProvisioningRequest => PROVISIONING_REQUEST,
        }
    }
}

impl Provision {
    /// Reads the field of a coordination.
    pub(super) fn parse(written: &api::coordination::Provision, coordination: &mut Reader<'_>) -> Self {
        let mut fields = coordination.within("provision", "provision");
        let by = fields.word("by", written.by.as_deref(), ProvisionBy::WORDS, ProvisionBy::default());
        let after = fields.time("after", written.after.as_deref());
        let deadline = fields.time("deadline", written.deadline.as_deref());
        let ahead = (MOST_AHEAD, MUST_BE_A_NUMBER);
        let max_segments_ahead = fields.number("maxSegmentsAhead", written.max_segments_ahead, ahead);
        let class = written.class.as_deref().filter(|class| !class.is_empty());
        let class_at = fields.at.child("class");
        if let Some(class) = class.filter(|class| subdomain_fault(class).is_some()) {
            fields.wrong(class_at.clone(), quoted(class), MUST_BE_A_CLASS);
        }
        if class.is_some() && by == Some(ProvisionBy::CapacityBuffer) {
            let detail = "may be set only with `by: ProvisioningRequest`";
            fields.note(class_at, Cause::Forbidden, None, detail);
        }
        Self {
            by: by.unwrap_or_default(),
            has_class: class.is_some(),
            class: class.unwrap_or(CLASS).to_owned(),
            after: after.unwrap_or(AFTER),
            deadline: deadline.unwrap_or(DEADLINE),
            max_segments_ahead: max_segments_ahead.unwrap_or(MAX_SEGMENTS_AHEAD),
            at: fields.at,
        }
    }
}

const MUST_BE_A_NUMBER: &str = "must be from 1 to 100";
const MUST_BE_A_CLASS: &str =
    "must be the name of a class, such as check-capacity.autoscaling.x-k8s.io: lower case letters, digits, `-` and `.`";
