//! The steps of an adoption, ordered so that no pod moves before its turn.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::plan::{Plan, Role, Rolls};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::status::GroupStatus;
use crate::cli::connection::{Connection, Failure};
use crate::cluster::write::adoption::Adoption;
use crate::model::wording::counted;
use crate::mutate::rollout::is_frozen;

/// Pause between two reads of the group's status.
const PAUSE: Duration = Duration::from_millis(250);

pub struct Steps<'a> {
    pub connection: &'a Connection,
    pub api: &'a Adoption,
    pub plan: &'a Plan,
    pub timeout: Duration,
    /// Reports progress to the user.
    pub tell: &'a dyn Fn(&str),
}

impl Steps<'_> {
    pub async fn all(&self) -> Result<(), Failure> {
        let Plan { group, coordination, roles, .. } = self.plan;
        self.label_pods().await?;
        if let Some(object) = coordination {
            self.api.create(object, false).await.map_err(|error| self.fault(&error))?;
            (self.tell)(&format!("RoleCoordination {group:?} is created"));
        }
        self.until_ready().await?;
        for role in roles {
            if let Some(patch) = &role.claim {
                self.patch(role, patch, false).await?;
                (self.tell)(&format!("{} is labelled", name(role)));
            }
        }
        let in_lockstep = || roles.iter().filter(|role| role.rolls == Rolls::InLockstep);
        // From zero replicas nothing is replaced, and nothing frozen.
        for role in in_lockstep().filter(|role| role.replicas > 0) {
            self.would_be_frozen(role).await?;
        }
        for role in in_lockstep() {
            self.label_template(role).await?;
        }
        for role in roles.iter().filter(|role| role.rolls == Rolls::AtOnce) {
            self.label_template(role).await?;
        }
        Ok(())
    }

    /// Labels the running pods: from then on the loop counts them for the group.
    async fn label_pods(&self) -> Result<(), Failure> {
        let mut labelled = 0_usize;
        for role in &self.plan.roles {
            let labels = role.labels(&self.plan.group);
            for pod in &role.pods {
                let there = self.api.label_pod(pod, &labels).await.map_err(|error| self.fault(&error))?;
                labelled += usize::from(there);
            }
        }
        if labelled > 0 {
            (self.tell)(&format!("{} labelled", counted(labelled, "running pod")));
        }
        Ok(())
    }

    /// Waits until rolegate has committed that a pod of each role in lockstep was ready: before that, the webhook freezes nothing of
    /// it.
    async fn until_ready(&self) -> Result<(), Failure> {
        let Plan { group, namespace, roles, .. } = self.plan;
        let frozen = || roles.iter().filter(|role| role.rolls == Rolls::InLockstep && role.replicas > 0);
        let until = Instant::now() + self.timeout;
        loop {
            let found = self.api.read(ROLE_COORDINATION, group).await.map_err(|error| self.fault(&error))?;
            let status = found.as_ref().and_then(|object| object.get("status"));
            let known: GroupStatus =
                status.and_then(|status| GroupStatus::deserialize(status).ok()).unwrap_or_default();
            if known.summary.is_some() && frozen().all(|role| known.has_served(&role.name)) {
                (self.tell)(&format!("group {group:?} is known as it runs"));
                return Ok(());
            }
            if Instant::now() >= until {
                let why = status.map_or_else(|| "rolegate has not reported a status".to_owned(), told);
                return Err(Failure::Other(format!(
                    "no pod of a role of group {group:?} was ready within {:?}: {why}. Its pods run on, and no template was changed; \
                     `rolegate explain group {group} -n {namespace}` says more, and the same command goes on from here",
                    self.timeout
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Checks by a dry run that the webhook freezes the workload; otherwise its controller would replace the pods at
    /// once.
    async fn would_be_frozen(&self, role: &Role) -> Result<(), Failure> {
        let Some(patch) = &role.template else { return Ok(()) };
        let answer = self.patch(role, patch, true).await?;
        if is_frozen(role.kind, &answer) {
            return Ok(());
        }
        Err(Failure::Other(format!(
            "{} would not be frozen, and roll at once: its template was not changed. `rolegate doctor` says whether the webhook \
             is there; the same command goes on from here",
            name(role)
        )))
    }

    async fn label_template(&self, role: &Role) -> Result<(), Failure> {
        let Some(patch) = &role.template else { return Ok(()) };
        self.patch(role, patch, false).await?;
        (self.tell)(&format!("the template of {} is labelled: it {}", name(role), role.rolls.words()));
        Ok(())
    }

    async fn patch(&self, role: &Role, patch: &Value, dry_run: bool) -> Result<Value, Failure> {
        let patched = self.api.patch(role.kind, &role.workload, patch, dry_run).await;
        patched.map_err(|error| self.fault(&error))
    }

    fn fault(&self, error: &kube::Error) -> Failure {
        self.connection.write_failure(error)
    }
}

/// Returns kind and name: `StatefulSet prefill`.
pub fn name(role: &Role) -> String {
    format!("{} {}", role.kind.as_str(), role.workload)
}

/// Returns the conditions of a status that are not True.
fn told(status: &Value) -> String {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let text =
        |condition: &Value, field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ready = conditions.filter(|condition| text(condition, "type") == "Ready");
    let lines = ready.map(|condition| format!("{}, {}", text(condition, "reason"), text(condition, "message")));
    lines.collect::<Vec<_>>().join("; ")
}
