//! Plans an adoption without reading or writing anything.

use serde_json::{Value, json};

use super::asked::{Asked, Refused};
use super::coordination::coordination;
use super::running::{Carrier, Running, has_labels};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{ObjectKind, Pod};
use crate::cli::check::of_shape;
use crate::model::words::words;
use crate::model::{Group, WorkloadKind, names};
use crate::plan::PodRef;
use crate::rules::{Judged, Operation, Options, World, judge_json, read_group};

#[derive(Debug)]
pub struct Plan {
    pub namespace: String,
    pub group: String,
    /// The RoleCoordination to create; `None` when the group exists.
    pub coordination: Option<Value>,
    pub roles: Vec<Role>,
    pub warnings: Vec<String>,
}

/// A workload and its role.
#[derive(Debug)]
pub struct Role {
    pub name: String,
    pub kind: WorkloadKind,
    pub workload: String,
    pub replicas: u32,
    /// Replicas per segment.
    pub size: Option<u32>,
    /// Running pods without the labels.
    pub pods: Vec<PodRef>,
    /// Number of running pods.
    pub running: usize,
    /// Patch that labels the workload; `None` when it is labelled.
    pub claim: Option<Value>,
    /// Patch that labels the pod templates; `None` when they are labelled.
    pub template: Option<Value>,
    pub rolls: Rolls,
}

words! {
/// The effect of a labelled template on the pods of the workload.
pub enum Rolls {
    /// The pods stay: the template is labelled already.
    Not,
    /// The workload is frozen, and rolled with the other roles.
    InLockstep,
    /// The controller of the workload replaces the pods at once, by its own strategy.
    AtOnce,
}
}

impl Rolls {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Not => "is labelled",
            Self::InLockstep => "rolls in lockstep",
            Self::AtOnce => "rolls at once",
        }
    }
}

impl Role {
    /// Returns the labels that tie the workload and its pods to the group.
    pub fn labels(&self, group: &str) -> Value {
        labels(group, &self.name)
    }
}

fn labels(group: &str, role: &str) -> Value {
    json!({ names::GROUP: group, names::ROLE: role })
}

/// Plans an adoption. `others` are objects of the namespace that rules look at.
pub fn plan(
    asked: &Asked<'_>,
    running: &[Running],
    carriers: &[Carrier],
    others: &[(ObjectKind, Value)],
) -> Result<Plan, Refused> {
    let (group, carrier) = group_of(asked, running, carriers)?;
    let names = role_names(running, &group, carrier)?;
    let coordination = if carrier.is_some() { None } else { Some(coordination(asked, &group, &names, running)?) };
    let mut refused = asked.without_effect(carrier);
    if carrier.is_some() && group.len() > names::LABEL_VALUE_MAX {
        refused.push(format!("RoleCoordination {group:?}: its name is too long for label {} of pods", names::GROUP));
    }
    let mut world = World::of_manifests(Options::default());
    for (running, role) in running.iter().zip(&names) {
        let mut object = running.object.clone();
        let wanted = labels(&group, role);
        json_patch::merge(&mut object, &json!({ "metadata": { "labels": wanted } }));
        running.template(&wanted).iter().for_each(|patch| json_patch::merge(&mut object, patch));
        without_default_partition(&mut object, running.target.kind);
        add(&mut world, running.target.kind.object_kind(), &object);
    }
    others.iter().for_each(|(kind, object)| add(&mut world, *kind, object));
    carriers.iter().for_each(|carrier| add(&mut world, carrier.kind, &carrier.object));
    let object = coordination.as_ref().or(carrier.map(|carrier| &carrier.object)).cloned().unwrap_or_default();
    let (judged, read) = judged(&object, carrier.is_some(), &world);
    refused.extend(judged.errors.iter().map(|error| format!("{}: {error}", error.rule)));
    let mut roles = Vec::new();
    for (running, role) in running.iter().zip(&names) {
        match role_of(running, role, &group, read.as_ref()) {
            Ok(role) => roles.push(role),
            Err(whys) => refused.extend(whys),
        }
    }
    if !refused.is_empty() {
        return Err(Refused(refused));
    }
    let warnings = judged.warnings.iter().map(|warning| format!("{}: {warning}", warning.rule)).collect();
    Ok(Plan { namespace: asked.namespace.to_owned(), group, coordination, roles, warnings })
}

/// Removes a partition of 0, which the API server writes where the manifest has none.
fn without_default_partition(object: &mut Value, kind: WorkloadKind) {
    let path = kind.row().rollout.map(|rollout| rollout.partition).unwrap_or_default();
    let found = path.iter().try_fold(&mut *object, |value, step| value.get_mut(*step));
    if let Some(partition) = found.filter(|partition| **partition == json!(0)) {
        *partition = Value::Null;
    }
}

fn add(world: &mut World, kind: ObjectKind, object: &Value) {
    // An object without the shape of its kind says nothing of this group.
    _ = world.add_json(&kind.api_version(), kind.kind, &object.to_string());
}

/// Returns the group and its carrier: the requested group, the group that names a workload, or the common prefix of
/// the names.
fn group_of<'a>(
    asked: &Asked<'_>,
    running: &[Running],
    carriers: &'a [Carrier],
) -> Result<(String, Option<&'a Carrier>), Refused> {
    let named = |carrier: &&Carrier| running.iter().any(|running| carrier.role_of(&running.target).is_some());
    let naming: Vec<_> = carriers.iter().filter(named).collect();
    let name = |carrier: &Carrier| carrier.meta().name.unwrap_or_default();
    let group = match (asked.group, naming.as_slice()) {
        (Some(group), _) => group.to_owned(),
        (None, [carrier, ..]) => name(carrier),
        (None, []) => default_group(running),
    };
    if let Some(other) = naming.iter().find(|carrier| name(carrier) != group) {
        let why =
            format!("RoleCoordination {:?} names one of these workloads already: it is not in two groups", name(other));
        return Err(Refused(vec![why]));
    }
    let carrier = carriers.iter().find(|carrier| name(carrier) == group);
    if let Some(carrier) = carrier.filter(|carrier| carrier.kind != ROLE_COORDINATION) {
        let why =
            format!("{} {group:?} is there already: its operator makes the workloads of that group", carrier.kind.kind);
        return Err(Refused(vec![why]));
    }
    Ok((group, carrier))
}

/// Returns the common prefix of the workload names, or all names joined, shortened to what a label carries.
fn default_group(running: &[Running]) -> String {
    let names: Vec<_> = running.iter().map(|running| running.target.name.as_str()).collect();
    names::label_value(&prefix(&names).unwrap_or_else(|| names.join("-")))
}

/// Returns the common leading parts of several names: `llm` for `llm-prefill` and `llm-decode`.
fn prefix(names: &[&str]) -> Option<String> {
    let (first, others) = names.split_first()?;
    let parts: Vec<_> = first.split('-').collect();
    let shared = |count: &usize| {
        let prefix = parts.iter().take(*count).copied().collect::<Vec<_>>().join("-") + "-";
        others.iter().all(|name| name.starts_with(&prefix)).then(|| prefix.trim_end_matches('-').to_owned())
    };
    (1..parts.len()).rev().find_map(|count| shared(&count)).filter(|_| !others.is_empty())
}

/// Returns the role of each workload: from the group, from the command line, or from the name after the group's prefix.
fn role_names(running: &[Running], group: &str, carrier: Option<&Carrier>) -> Result<Vec<String>, Refused> {
    let name = |running: &Running| {
        let target = &running.target;
        match carrier {
            None => {
                let own =
                    target.name.strip_prefix(group).and_then(|rest| rest.strip_prefix('-')).unwrap_or(&target.name);
                Ok(target.role.clone().unwrap_or_else(|| own.to_owned()))
            }
            Some(carrier) => match (carrier.role_of(target), &target.role) {
                (Some(role), Some(asked)) if role != *asked => {
                    Err(format!("{target} is role {role:?} of RoleCoordination {group:?}, not {asked:?}"))
                }
                (Some(role), _) => Ok(role),
                (None, asked) => {
                    let role = asked.as_deref().unwrap_or(&target.name);
                    let (kind, name) = (target.kind.as_str(), &target.name);
                    Err(format!(
                        "RoleCoordination {group:?} is there and does not name {target}: add \
                         `- {{name: {role}, workloadRef: {{kind: {kind}, name: {name}}}}}` to its roles"
                    ))
                }
            },
        }
    };
    let (names, refused): (Vec<_>, Vec<_>) = running.iter().map(name).partition(Result::is_ok);
    if refused.is_empty() {
        Ok(names.into_iter().filter_map(Result::ok).collect())
    } else {
        Err(Refused(refused.into_iter().filter_map(Result::err).collect()))
    }
}

fn judged(object: &Value, is_there: bool, world: &World) -> (Judged, Option<Group>) {
    let (kind, text) = (ROLE_COORDINATION, object.to_string());
    let (operation, old) = if is_there { (Operation::Update, Some(text.as_str())) } else { (Operation::Create, None) };
    let judged = judge_json(&kind.api_version(), kind.kind, operation, &text, old, world);
    (of_shape(judged), read_group(kind, &text, world).ok())
}

fn role_of(running: &Running, role: &str, group: &str, read: Option<&Group>) -> Result<Role, Vec<String>> {
    let Running { target, object, workload, pods } = running;
    let wanted = labels(group, role);
    let mut refused = Vec::new();
    if let Some(owner) = &workload.owner {
        refused.push(format!("{target} is made by {owner}, which would remove the labels: adopt that"));
    }
    let others = std::iter::once(object.pointer("/metadata/labels")).chain(
        target
            .kind
            .row()
            .templates
            .iter()
            .map(|path| path.iter().try_fold(object, |value, step| value.get(*step))?.pointer("/metadata/labels")),
    );
    if let Some(other) =
        others.flatten().filter_map(|labels| labels.get(names::GROUP)?.as_str()).find(|one| *one != group)
    {
        refused.push(format!("{target} is labelled for group {other:?}: remove that label first"));
    }
    let has_served = pods.iter().any(|pod| pod.condition_is_true("Ready"))
        || read.is_some_and(|group| group.status.has_served(role));
    if !has_served && workload.desired > 0 {
        let wants = workload.desired.saturating_mul(workload.replica_size);
        refused.push(format!(
            "{target}: 0 of {wants} pods are ready; nothing can be frozen before a pod of the role was ready once"
        ));
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let lacks = |pod: &&Pod| {
        wanted.as_object().into_iter().flatten().any(|(key, value)| pod.metadata.label(key) != value.as_str())
    };
    let reference = |pod: &Pod| PodRef {
        name: pod.metadata.display_name().into(),
        uid: pod.metadata.uid.as_deref().unwrap_or_default().into(),
    };
    let template = running.template(&wanted);
    let in_lockstep = target.kind.row().rollout.is_some() && read.is_some_and(|group| group.rolls(role));
    let rolls = match (&template, in_lockstep) {
        (None, _) => Rolls::Not,
        (Some(_), true) => Rolls::InLockstep,
        (Some(_), false) => Rolls::AtOnce,
    };
    let is_claimed = has_labels(object.pointer("/metadata/labels"), &wanted);
    Ok(Role {
        name: role.to_owned(),
        kind: target.kind,
        workload: target.name.clone(),
        replicas: workload.desired,
        size: read.and_then(|group| group.batch_size(role)),
        running: pods.len(),
        pods: pods.iter().filter(lacks).map(reference).collect(),
        claim: (!is_claimed).then(|| json!({ "metadata": { "labels": wanted } })),
        template,
        rolls,
    })
}
