//! Requests for nodes for a batch that fits nowhere (`whenNoFit: provision`).

use std::time::Duration;

use super::FieldPath;
use super::malformed::Malformed;
use super::object_name::subdomain_fault;
use super::recovery::Fields;
use crate::api::provisioning::{CAPACITY_BUFFER, PROVISIONING_REQUEST};
use crate::api::{self, ObjectKind};

/// Object that asks for nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProvisionBy {
    /// One CapacityBuffer for each role, for Karpenter.
    #[default]
    CapacityBuffer,
    /// One ProvisioningRequest for the batch, for cluster-autoscaler.
    ProvisioningRequest,
}

/// Spellings of `provision.by`; the first is the default.
pub const PROVISION_BY: &[(&str, ProvisionBy)] =
    &[("CapacityBuffer", ProvisionBy::CapacityBuffer), ("ProvisioningRequest", ProvisionBy::ProvisioningRequest)];

/// Returns the kinds of objects by which nodes are requested.
pub fn request_kinds() -> impl Iterator<Item = ObjectKind> {
    PROVISION_BY.iter().map(|(_, by)| by.kind())
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
    /// `by`, if it is unknown.
    pub unknown_by: Option<String>,
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
    /// Malformed fields, which have their defaults.
    pub malformed: Vec<Malformed>,
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
    /// Reads the block at `at`.
    pub(super) fn parse(written: &api::coordination::Provision, at: FieldPath) -> Self {
        let mut fields = Fields { at: &at, malformed: Vec::new() };
        let after = fields.time("after", written.after.as_deref());
        let deadline = fields.time("deadline", written.deadline.as_deref());
        let ahead = (MOST_AHEAD, MUST_BE_A_NUMBER);
        let max_segments_ahead = fields.number("maxSegmentsAhead", written.max_segments_ahead, ahead);
        let mut malformed = fields.malformed;
        let class = written.class.as_deref().filter(|class| !class.is_empty());
        if let Some(class) = class.filter(|class| subdomain_fault(class).is_some()) {
            malformed.push(Malformed {
                at: at.child("class"),
                value: Some(format!("{class:?}")),
                detail: MUST_BE_A_CLASS,
            });
        }
        let by = written.by.as_deref().filter(|by| !by.is_empty());
        let known = by.and_then(|by| PROVISION_BY.iter().find(|(word, _)| *word == by));
        Self {
            by: known.map(|(_, by)| *by).unwrap_or_default(),
            unknown_by: by.filter(|_| known.is_none()).map(str::to_owned),
            has_class: class.is_some(),
            class: class.unwrap_or(CLASS).to_owned(),
            after: after.unwrap_or(AFTER),
            deadline: deadline.unwrap_or(DEADLINE),
            max_segments_ahead: max_segments_ahead.unwrap_or(MAX_SEGMENTS_AHEAD),
            malformed,
            at,
        }
    }
}

const MUST_BE_A_NUMBER: &str = "must be from 1 to 100";
const MUST_BE_A_CLASS: &str =
    "must be the name of a class, such as check-capacity.autoscaling.x-k8s.io: lower case letters, digits, `-` and `.`";
