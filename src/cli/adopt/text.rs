//! Texts of an adoption, before and after.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::plan::{Plan, Role, Rolls};
use super::steps::name;
use crate::cli::data::Data;
use crate::cli::terminal::{Table, shown};
use crate::model::wording::counted;

/// The output for programs: the steps that were done, or would be done.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account<'a> {
    namespace: &'a str,
    group: &'a str,
    dry_run: bool,
    /// The object to create; absent when it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    role_coordination: Option<&'a Value>,
    roles: Vec<RoleAccount<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct RoleAccount<'a> {
    name: &'a str,
    kind: &'a str,
    workload: &'a str,
    replicas: u32,
    /// Running pods to label; the first step.
    pods: Vec<&'a str>,
    labels: Value,
    /// Patch of the workload, applied when the group is ready.
    claim: Option<&'a Value>,
    /// Patch of the pod templates; the last step.
    template: Option<&'a Value>,
    /// `InLockstep`, `AtOnce` or `Not`.
    rolls: &'a str,
}

pub fn account(plan: &Plan, dry_run: bool) -> Account<'_> {
    Account {
        namespace: &plan.namespace,
        group: &plan.group,
        dry_run,
        role_coordination: plan.coordination.as_ref(),
        roles: plan.roles.iter().map(|role| of_role(role, &plan.group)).collect(),
        warnings: &plan.warnings,
    }
}

fn of_role<'a>(role: &'a Role, group: &str) -> RoleAccount<'a> {
    RoleAccount {
        name: &role.name,
        kind: role.kind.as_str(),
        workload: &role.workload,
        replicas: role.replicas,
        pods: role.pods.iter().map(|pod| &*pod.name).collect(),
        labels: role.labels(group),
        claim: role.claim.as_ref(),
        template: role.template.as_ref(),
        rolls: role.rolls.as_str(),
    }
}

/// Returns the plan as text: the steps, and the workloads that roll.
pub fn before(plan: &Plan) -> String {
    let mut table = Table::with_heading(["ROLE", "WORKLOAD", "REPLICAS", "SEGMENT", "PODS TO LABEL", "TEMPLATE"]);
    for role in &plan.roles {
        let size = role.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        let pods = format!("{} of {}", role.pods.len(), role.running);
        let words = role.rolls.words().to_owned();
        table.row([role.name.clone(), name(role), role.replicas.to_string(), size, pods, words]);
    }
    let Plan { namespace, group, .. } = plan;
    let mut text = format!("group {}\n{}", shown(&format!("{namespace}/{group}")), table.text(2));
    for (number, step) in steps(plan).iter().enumerate() {
        _ = writeln!(text, "{}. {}", number + 1, shown(step));
    }
    if let Some(object) = &plan.coordination {
        _ = writeln!(text, "---\n{}---", Data::Yaml.text(object));
    }
    plan.warnings.iter().for_each(|warning| _ = writeln!(text, "warning: {}", shown(warning)));
    text
}

fn steps(plan: &Plan) -> Vec<String> {
    let mut steps = Vec::new();
    let pods: usize = plan.roles.iter().map(|role| role.pods.len()).sum();
    if pods > 0 {
        steps.push(format!("label {}: nothing moves", counted(pods, "running pod")));
    }
    if plan.coordination.is_some() {
        steps.push(format!("create RoleCoordination {:?}, and wait until it is known as it runs", plan.group));
    }
    let named = |roles: &[&Role]| roles.iter().map(|role| name(role)).collect::<Vec<_>>().join(", ");
    let claimed: Vec<_> = plan.roles.iter().filter(|role| role.claim.is_some()).collect();
    if !claimed.is_empty() {
        steps.push(format!(
            "label {}, by which each says that it is rolled with the group: nothing moves",
            named(&claimed)
        ));
    }
    for (rolls, how) in [
        (Rolls::InLockstep, "they are frozen, and their pods are replaced in lockstep"),
        (Rolls::AtOnce, "pods are replaced at once, by its own strategy"),
    ] {
        let roles: Vec<_> = plan.roles.iter().filter(|role| role.rolls == rolls).collect();
        let replaced: usize = roles.iter().map(|role| role.running).sum();
        if !roles.is_empty() {
            steps.push(format!("label the template of {}: {how} ({})", named(&roles), counted(replaced, "pod")));
        }
    }
    if steps.is_empty() {
        steps.push("nothing: all is labelled".to_owned());
    }
    steps
}

/// Returns the closing text.
pub fn after(plan: &Plan, dry_run: bool) -> String {
    let Plan { namespace, group, .. } = plan;
    if dry_run {
        return "nothing was done: this was a dry run\n".to_owned();
    }
    let has = |rolls: Rolls| plan.roles.iter().any(|role| role.rolls == rolls);
    let rest = match (has(Rolls::InLockstep), has(Rolls::AtOnce)) {
        (true, _) => "; the rollout goes on by itself",
        (false, true) => "; the controllers of the workloads replace the pods",
        (false, false) => "",
    };
    format!("adopted{rest}: `rolegate status {group} -n {namespace} --watch` shows it\n")
}
