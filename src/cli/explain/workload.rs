//! Explains a workload: its group and role, the labels that tie it to them, and its rollout.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::api::Pod;
use crate::cli::adopt::running::Running;
use crate::cli::adopt::target::{self, Target};
use crate::cli::connection::{Connection, Failure};
use crate::cli::terminal::{Style, shown};
use crate::cluster::index::Index;
use crate::cluster::write::adoption::Adoption;
use crate::cluster::write::deadline::WRITE_TIMEOUT;
use crate::model::wording::counted;
use crate::model::workload::{Lack, Workload};
use crate::model::{Role, RolledWorkload, WorkloadKey, WorkloadKind, names};
use crate::plan::rollout::{rollouts, stage_text};
use crate::report::Picture;

/// Returns the workloads of a name: `prefill` may match several kinds, `sts/prefill` one.
pub async fn named(connection: &Connection, name: &str, pods: &[Pod]) -> Result<Vec<Running>, Failure> {
    let (kinds, name) = match name.split_once('/') {
        Some((word, name)) => {
            let kind = target::kind(word).ok_or_else(|| Failure::Other(format!("{word:?} is no kind of workload")))?;
            (vec![kind], name)
        }
        None => (WorkloadKind::ALL.to_vec(), name),
    };
    let api = Adoption::new(connection.client.clone(), &connection.namespace, WRITE_TIMEOUT);
    let mut found = Vec::new();
    for kind in kinds {
        let read = api.read(kind.object_kind(), name).await;
        let read = read.map_err(|error| connection.write_failure(&error))?;
        let target = Target { role: None, kind, name: name.to_owned() };
        if let Some(object) = read {
            found.push(Running::of(target, object, pods).map_err(Failure::Other)?);
        }
    }
    if found.is_empty() {
        return Err(Failure::Other(format!("workload {name:?} is not in namespace {:?}", connection.namespace)));
    }
    Ok(found)
}

/// Returns the pods of the namespace.
pub async fn pods(connection: &Connection) -> Result<Vec<Pod>, Failure> {
    let api = Adoption::new(connection.client.clone(), &connection.namespace, WRITE_TIMEOUT);
    api.pods().await.map_err(|error| connection.write_failure(&error))
}

/// A role that refers to a workload, or that the workload's pods name.
pub struct Referring {
    by_labels: bool,
    role: String,
    picture: Picture,
}

impl Referring {
    fn carrier(&self) -> Option<String> {
        self.picture.carrier().map(|(kind, name)| format!("{kind} {name}"))
    }

    fn rolls(&self) -> bool {
        self.picture.group().is_some_and(|group| group.rolls(&self.role))
    }
}

/// Returns the role that refers to a workload, or that its pod templates name.
pub fn referring(index: &Index, workload: &Running) -> Option<Referring> {
    let key = &workload.workload.key;
    let refers = |picture: Picture| {
        let group = picture.group()?;
        let role = group.roles.iter().find(|role| role.workload.key.as_ref() == Some(key))?.name.clone();
        Some(Referring { role, by_labels: false, picture })
    };
    let pictures = || index.snapshots().into_iter().map(|(key, snapshot)| Picture::of(&key, snapshot));
    pictures().find_map(refers).or_else(|| pictures().find_map(|picture| named_by_pods(picture, &workload.workload)))
}

/// Returns the role that the pod templates of a workload name, if that role refers to no workload.
fn named_by_pods(picture: Picture, workload: &Workload) -> Option<Referring> {
    let group = picture.group().filter(|group| *group.key.namespace == *workload.key.namespace)?;
    let is_named = |role: &&Role| {
        let is_free = role.workload.reference.is_none() && role.workload.key.is_none();
        is_free && !workload.template_labels.is_empty() && workload.unlabelled(&group.key.name, &role.name).is_none()
    };
    let role = group.roles.iter().find(is_named)?.name.clone();
    Some(Referring { role, by_labels: true, picture })
}

/// Group and role.
type Tie = (String, String);

/// The output of `explain workload`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    kind: &'static str,
    namespace: String,
    name: String,
    replicas: u32,
    /// Group of the workload; absent when no group refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Object that defines the group: `RoleCoordination pd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    named_by: Option<String>,
    /// True when only the labels of its pods name the group.
    by_labels: bool,
    /// Claim of the workload, `pd/prefill`: it is rolled with that group.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<String>,
    /// True when its templates have the labels of the group.
    template_labelled: bool,
    pods: Pods,
    /// The open rollout, whose partition rolegate controls.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<Rollout>,
    /// What keeps the workload from being held, counted or rolled with its group.
    missing: Vec<String>,
    you_can: Vec<String>,
}

#[derive(Serialize)]
struct Pods {
    all: usize,
    ready: usize,
    held: usize,
    labelled: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rollout {
    partition: u32,
    user_partition: u32,
    text: String,
}

impl Story {
    /// Explains a workload.
    pub fn of(workload: &Running, referring: Option<Referring>) -> Self {
        let Running { workload: facts, pods, .. } = workload;
        let WorkloadKey { namespace, kind, name } = &facts.key;
        let claim = facts.claim.as_ref().map(|claim| (claim.group.name.to_string(), claim.role.clone()));
        let of_group = referring.as_ref().map(|found| (found.picture.key.name.to_string(), found.role.clone()));
        let tied = of_group.clone().or_else(|| claim.clone());
        let wanted = tied.as_ref().map(|(group, role)| serde_json::json!({ names::GROUP: group, names::ROLE: role }));
        let template_labelled = wanted.as_ref().is_some_and(|wanted| workload.template(wanted).is_none());
        let is_labelled = |pod: &&Pod| {
            let wanted = wanted.as_ref().and_then(Value::as_object);
            wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| pod.metadata.label(key) == value.as_str()))
        };
        let count = |test: &dyn Fn(&&Pod) -> bool| pods.iter().filter(test).count();
        let counted = Pods {
            all: pods.len(),
            ready: count(&|pod| pod.condition_is_true("Ready")),
            held: count(&|pod| pod.has_gate(names::GATE)),
            labelled: count(&is_labelled),
        };
        let mut story = Self {
            kind: kind.as_str(),
            namespace: namespace.clone(),
            name: name.clone(),
            replicas: facts.desired,
            group: of_group.as_ref().map(|(group, _)| group.clone()),
            role: of_group.as_ref().map(|(_, role)| role.clone()),
            named_by: referring.as_ref().and_then(Referring::carrier),
            by_labels: referring.as_ref().is_some_and(|found| found.by_labels),
            claim: claim.as_ref().map(|(group, role)| format!("{group}/{role}")),
            template_labelled,
            pods: counted,
            rollout: None,
            missing: Vec::new(),
            you_can: Vec::new(),
        };
        story.lacks(workload, (of_group, claim), referring.as_ref());
        story.rollout = referring.and_then(|found| rollout(&found, workload));
        story
    }

    /// Collects what is missing, in the order of repair.
    fn lacks(
        &mut self,
        Running { target, object, workload: facts, .. }: &Running,
        (group, claim): (Option<Tie>, Option<Tie>),
        referring: Option<&Referring>,
    ) {
        let word = format!("{}/{}", target.kind.row().short, target.name);
        let Some((group, role)) = group else {
            let (missing, you_can) = if let Some((group, role)) = claim {
                (
                    format!(
                        "it says that it is role {role:?} of group {group:?}, and no role of a group there refers to it"
                    ),
                    format!("correct the labels {} and {} on it, or the group", names::GROUP, names::ROLE),
                )
            } else {
                (
                    "no group: it is rolled and its pods run as without rolegate".to_owned(),
                    format!(
                        "make it a role of a group: `rolegate adopt {word} -n {} --dry-run`, with its other workloads beside it, \
                         shows how",
                        self.namespace
                    ),
                )
            };
            self.missing.push(missing);
            self.you_can.push(you_can);
            return;
        };
        let adopt = format!(
            "`rolegate adopt {word} --group {group} -n {}` adds the labels, after showing what it does",
            self.namespace
        );
        let Pods { all, labelled, .. } = self.pods;
        if labelled < all {
            let lacking = counted(all - labelled, "running pod");
            self.missing.push(format!("{lacking} of {all} without the labels of role {role:?} of group {group:?}"));
        }
        match facts.unlabelled(&group, &role).map(|found| found.lack) {
            Some(Lack::Group) => {
                self.missing.push("its template lacks these labels: its new pods are not held".to_owned());
            }
            Some(Lack::Role) => self.missing.push(format!(
                "its template names another role: its pods count for {role:?}, since this workload makes them"
            )),
            None => {}
        }
        let rolls = referring.is_some_and(Referring::rolls);
        match &claim {
            Some(said) if *said != (group.clone(), role.clone()) => self.missing.push(format!(
                "its own labels say role {:?} of group {:?}, and not role {role:?} of group {group:?}",
                said.1, said.0
            )),
            None if rolls && target.kind.row().rollout.is_some() => {
                self.missing.push("these labels on itself: its updates are not rolled in lockstep".to_owned());
            }
            _ if rolls && target.kind.row().rollout.is_none() => {
                let kind = target.kind.as_str();
                self.missing
                    .push(format!("a partition, which a {kind} has not: its updates are not rolled in lockstep"));
            }
            _ => {}
        }
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            self.missing.push("it is being deleted".to_owned());
        } else if self.by_labels {
            self.you_can
                .push(format!("refer to it from role {role:?}, as `workloadRef`: its replicas are known by it then"));
        } else if labelled < all || !self.template_labelled || (claim.is_none() && rolls) {
            self.you_can.push(adopt);
        }
    }

    pub fn text(&self) -> String {
        let style = Style::of_stdout();
        let Self { kind, namespace, name, replicas, pods, .. } = self;
        let replicas = counted(*replicas as usize, "replica");
        let mut text = String::new();
        let title = shown(&format!("{kind} {namespace}/{name}"));
        _ = writeln!(text, "{}{title}{}  {replicas}", style.strong, style.end);
        match (&self.group, &self.role, &self.named_by) {
            (Some(group), Some(role), Some(by)) => {
                let verb = if self.by_labels { "is named by its pods" } else { "refers to it" };
                _ = writeln!(text, "  group     {}, role {} ({} {verb})", shown(group), shown(role), shown(by));
            }
            _ => text.push_str("  group     none refers to it\n"),
        }
        let claim = self.claim.as_deref().unwrap_or("none: it does not say that it is rolled with a group");
        _ = writeln!(text, "  claim     {}", shown(claim));
        _ = writeln!(text, "  template  {}", if self.template_labelled { "labelled" } else { "not labelled" });
        let Pods { all, ready, held, labelled } = pods;
        _ = writeln!(text, "  pods      {all}: {ready} ready, {held} held, {labelled} labelled");
        match &self.rollout {
            Some(rollout) => _ = writeln!(text, "  rollout   {}", shown(&rollout.text)),
            None => text.push_str("  rollout   none is open\n"),
        }
        self.missing.iter().for_each(|line| _ = writeln!(text, "  missing   {}", shown(line)));
        self.you_can.iter().for_each(|line| _ = writeln!(text, "  you can   {}", shown(line)));
        text
    }
}

/// Returns where the partition of its user is kept, and who applies it server-side.
fn user_partition(object: &Value, partition: u32) -> Option<String> {
    let note = |key: &str| object.get("metadata")?.get("annotations")?.get(key)?.as_str();
    let key = names::USER_PARTITIONS.iter().find(|key| note(key).is_some()).filter(|_| partition > 0)?;
    let by = note(names::USER_PARTITION_BY);
    let by = by.map(|by| format!(", and {} names who applies it: {by}", names::USER_PARTITION_BY)).unwrap_or_default();
    Some(format!("; {key} keeps partition {partition} of its user{by}"))
}

fn rollout(found: &Referring, Running { workload: Workload { key, .. }, object, .. }: &Running) -> Option<Rollout> {
    let picture = &found.picture;
    let workload = picture.snapshot.workloads.iter().find(|workload| workload.key == *key)?;
    let open = Some(workload).filter(|workload| RolledWorkload::is_open(workload))?;
    let begins = format!("rollout of {}: ", found.role);
    let lines = rollouts(&picture.seen.decision.rollout, &picture.seen.rollouts);
    let told = lines.iter().find_map(|line| line.strip_prefix(&begins)).map(str::to_owned);
    let mut text = told.unwrap_or_else(|| "open: its partition is rolegate's".to_owned());
    let rollouts = &picture.seen.rollouts;
    let stages =
        rollouts.stages.iter().filter(|stage| stage.is_told() && stage.state.revisions.contains_key(&found.role));
    text.extend(stages.map(|stage| format!("; {}", stage_text(stage, &rollouts.roles))));
    text.extend(user_partition(object, open.asked_partition()));
    Some(Rollout { partition: open.partition, user_partition: open.asked_partition(), text })
}
