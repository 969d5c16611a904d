//! Updates of claimed workloads: frozen, or kept as frozen as they are (KEP-30).

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Admission, AdmissionError, Verdict};
use crate::api::review::Request;
use crate::api::{Meta, ObjectKind};
use crate::cluster::write::writer::MANAGER;
use crate::model::{WorkloadKind, rollout_claim};
use crate::mutate::rollout::{hold_rollout, let_go};

/// Without `status.observedGeneration` nobody can tell whether a new revision is there yet.
const BLIND: &str = "this LeaderWorkerSet is not rolled out in lockstep: its controller (before v0.9) does not report \
                     `status.observedGeneration`";

impl Admission {
    /// What becomes of the update of a workload that is or was claimed. The loop's own updates pass: it says who it is.
    pub(super) async fn hold_rollout(
        &self,
        kind: ObjectKind,
        object: &RawValue,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Verdict, AdmissionError> {
        let (Some(kind), Some(old)) = (WorkloadKind::parse(kind.kind), request.old_object) else {
            return Ok(Verdict::pass());
        };
        if request.field_manager().as_deref() == Some(MANAGER) {
            return Ok(Verdict::pass());
        }
        let (new, old) = (value(object), value(old));
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let Some(claimed) = rollout_claim(&meta(&new), namespace) else {
            return Ok(Verdict::Allow { patch: let_go(kind, &old, &new), warnings: Vec::new() });
        };
        let Some(group) = self.lookup.group(&claimed.group, deadline).await? else { return Ok(Verdict::pass()) };
        let ready_once = group.status.first_ready_time.is_some();
        if kind == WorkloadKind::LeaderWorkerSet && old.pointer("/status/observedGeneration").is_none() {
            return Ok(Verdict::warn(BLIND.to_owned()));
        }
        let patch = hold_rollout(kind, &old, &new, &claimed, &group, ready_once);
        Ok(Verdict::Allow { patch, warnings: Vec::new() })
    }
}

fn value(object: &RawValue) -> Value {
    serde_json::from_str(object.get()).unwrap_or_default()
}

fn meta(object: &Value) -> Meta {
    object.get("metadata").map(Meta::deserialize).and_then(Result::ok).unwrap_or_default()
}
