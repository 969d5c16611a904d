//! Claimed workloads: frozen, or kept as frozen as they are (KEP-30).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Admission, Asked, Judgement, Verdict};
use crate::api::{Meta, ObjectKind};
use crate::cluster::read::lookup::Looked;
use crate::cluster::write::writer::MANAGER;
use crate::model::engine::half_groups;
use crate::model::wording::not_labelled;
use crate::model::workload_object::WithType;
use crate::model::{
    Group, RolloutClaim, Workload, WorkloadKind, WorkloadObject, former_claim, rollout_claim, template_has_gate,
};
use crate::mutate::rollout::{grows_old, hold_created, hold_rollout, let_go};

/// Without `status.observedGeneration` a new revision cannot be told from an old one.
const BLIND: &str = "this LeaderWorkerSet is not rolled out in lockstep: its controller (before v0.9) does not report \
                     `status.observedGeneration`";

impl Admission {
    /// Mutates an update of a workload that is or was claimed. Updates of the loop pass, by their field manager.
    pub(super) async fn hold_rollout(
        &self,
        kind: ObjectKind,
        object: &RawValue,
        (request, deadline): Asked<'_>,
    ) -> Judgement {
        let Some(kind) = WorkloadKind::parse(kind.kind) else { return Ok(Verdict::pass()) };
        if request.field_manager().as_deref() == Some(MANAGER) {
            return Ok(Verdict::pass());
        }
        let new = value(object);
        let mut verdict = self.frozen(kind, &new, (request, deadline)).await?;
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let claim = rollout_claim(&meta(&new), namespace);
        if let Some((claim, workload)) = claim.zip(kind.with_type(Read(&new))) {
            verdict.warnings.extend(of_template(kind, &workload, &claim));
            verdict.warnings.extend(self.half_groups(&workload, &claim));
            verdict.warnings.extend(self.forbidden(workload, &claim));
        }
        Ok(verdict)
    }

    async fn frozen(&self, kind: WorkloadKind, new: &Value, (request, deadline): Asked<'_>) -> Judgement {
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let claimed = rollout_claim(&meta(new), namespace);
        let Some(old) = request.old_object.map(value) else {
            return self.hold_created(kind, new, claimed, (request, deadline)).await;
        };
        let former = || rollout_claim(&meta(&old), namespace).or_else(|| former_claim(&meta(&old), namespace));
        let is_claimed = claimed.is_some();
        let Some(claim) = claimed.or_else(former) else { return Ok(Verdict::pass()) };
        let let_go = || Ok(Verdict::change(let_go(kind, &old, new)));
        let Some(group) = self.rolled_group(&claim, deadline).await? else {
            return if is_claimed { Ok(Verdict::pass()) } else { let_go() };
        };
        if kind == WorkloadKind::LeaderWorkerSet && old.pointer("/status/observedGeneration").is_none() {
            return Ok(Verdict::warn(BLIND.to_owned()));
        }
        if !is_claimed && !group.rolls(&claim.role) {
            return let_go();
        }
        let served = self.has_served(&group, &claim.role);
        let patch = hold_rollout(kind, &old, new, &claim, &group, served, request.field_manager().as_deref());
        let warning = grows_old(kind, &old, new, &claim.role).filter(|_| !patch.is_empty());
        Ok(Verdict { warnings: warning.into_iter().collect(), ..Verdict::change(patch) })
    }

    /// Returns the group of a claimed workload. While no pod of its role is known to have been ready, it is read live: the watch
    /// may be behind, and the workload would not be frozen.
    async fn rolled_group(&self, claim: &RolloutClaim, deadline: Instant) -> Looked<Option<Arc<Group>>> {
        let arrived = Instant::now();
        match self.lookup.group(&claim.group, deadline).await? {
            Some(known) if !self.has_served(&known, &claim.role) => {
                self.lookup.group_since(&claim.group, arrived, deadline).await
            }
            known => Ok(known),
        }
    }

    /// Returns warnings where the workload is set to what its group forbids: it is admitted, and its rollout waits.
    fn forbidden(&self, workload: Workload, claim: &RolloutClaim) -> Vec<String> {
        let index = self.lookup.index().read();
        let Some(group) = index.group(&claim.group) else { return Vec::new() };
        let (kind, name) = (group.carrier.kind.kind, &group.carrier.name);
        let found = index.forbids(&claim.group, &Arc::new(workload), *self.lookup.options());
        found.into_iter().map(|found| format!("{kind} {name:?}: {}: {found}", found.rule)).collect()
    }

    /// Reports whether a pod of the role was ready once, by the status or, if that is new or lost, is now.
    pub(super) fn has_served(&self, group: &Group, role: &str) -> bool {
        group.status.has_served(role) || self.lookup.index().read().has_ready_pods(&group.key, role)
    }

    /// Returns warnings where the pods of one replica would form no process group.
    fn half_groups(&self, workload: &Workload, claim: &RolloutClaim) -> Vec<String> {
        let group = self.lookup.index().read().group(&claim.group);
        let of_role = group.as_ref().and_then(|group| group.role(&claim.role)?.engine.as_ref()?.as_ref().ok());
        half_groups(&workload.templates, of_role)
    }

    /// Mutates a claimed workload at creation.
    async fn hold_created(
        &self,
        kind: WorkloadKind,
        new: &Value,
        claim: Option<RolloutClaim>,
        (request, deadline): Asked<'_>,
    ) -> Judgement {
        let Some(claim) = claim else { return Ok(Verdict::pass()) };
        let Some(group) = self.rolled_group(&claim, deadline).await? else { return Ok(Verdict::pass()) };
        let has_pods = self.lookup.index().read().has_pods(&claim.group, &claim.role);
        let (manager, served) = (request.field_manager(), self.has_served(&group, &claim.role));
        let patch = hold_created(kind, new, &claim, &group, (has_pods, served), manager.as_deref());
        Ok(Verdict::change(patch))
    }
}

/// Returns warnings where the pods of a claimed workload lack its labels, so that they are not held and no rollout sees them, and
/// where other controllers gate them.
fn of_template(kind: WorkloadKind, workload: &Workload, claim: &RolloutClaim) -> Vec<String> {
    let (group, role) = (&*claim.group.name, claim.role.as_str());
    let lack = workload.unlabelled(group, role);
    let unlabelled = lack.map(|lack| not_labelled(lack, (kind.as_str(), &workload.key.name), group, role));
    let gated = workload.foreign_gate.as_ref().map(|gate| template_has_gate(gate, role, "batch"));
    unlabelled.into_iter().chain(gated).collect()
}

/// Reads the part of a workload that rules read.
struct Read<'a>(&'a Value);

impl WithType for Read<'_> {
    type Output = Option<Workload>;

    fn of<T: WorkloadObject>(self) -> Option<Workload> {
        Some(T::deserialize(self.0).ok()?.workload())
    }
}

fn value(object: &RawValue) -> Value {
    serde_json::from_str(object.get()).unwrap_or_default()
}

fn meta(object: &Value) -> Meta {
    object.get("metadata").map(Meta::deserialize).and_then(Result::ok).unwrap_or_default()
}
