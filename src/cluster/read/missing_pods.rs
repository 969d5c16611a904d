//! Reasons for which pods do not appear: one look at their maker after a long wait. Nothing of this is watched: it is seldom
//! asked for, and Events are too many.

use std::collections::BTreeSet;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use kube::api::ListParams;
use serde_json::Value;

use crate::api::event::{EVENT, Event, InvolvedObject};
use crate::api::meta::OwnerReference;
use crate::api::pod::POD;
use crate::api::{Meta, ObjectKind, Pod};
use crate::cluster::failure::unless;
use crate::cluster::index::Index;
use crate::cluster::objects::{self, api};
use crate::model::role::RoleWorkload;
use crate::model::workload_kind::FailuresIn;
use crate::model::workload_object::WithType;
use crate::model::{Group, Maker as PodMaker, OneByOne, Workload, WorkloadKey, WorkloadObject, names};
use crate::plan::{Diagnosis, MissingPods, WhyMissing};

/// The reason of Events by which controllers report that a pod could not be created.
const FAILED: &str = "FailedCreate";
/// The reason of Events on Jobs that have exceeded their `activeDeadlineSeconds`.
const DEADLINE: &str = "DeadlineExceeded";
const JOB: ObjectKind = ObjectKind::namespaced("batch", "v1", "Job", "jobs");
/// Largest number of Jobs read by a command.
const MOST_JOBS: usize = 20;
/// Largest number of Events read at a time.
const MOST_EVENTS: u32 = 500;

/// The maker of the pods of a role.
enum Maker {
    Workload(Box<MakerState>),
    /// The workload does not exist.
    Absent(WorkloadKey),
    /// An operator known only by the Events on its objects.
    Unknown,
    /// The controller of an existing pod of the role, of a kind that is not read.
    Unread(OwnerReference),
}

pub(super) struct MakerState {
    pub(super) workload: Workload,
    paused: bool,
    /// The workload is replacing pods.
    pub(super) replaces_pods: bool,
    /// Text of the status on pods that could not be created.
    failure: Option<String>,
}

/// Returns the reasons for which replicas lack pods. Roles without a known reason are left out. Forbidden
/// reads are skipped. `makers` are the workloads of the roles in `absent`, where known.
pub async fn find(
    client: &Client,
    group: &Group,
    absent: &[MissingPods],
    makers: &[Option<WorkloadKey>],
) -> kube::Result<Vec<Diagnosis>> {
    let namespace = &group.key.namespace;
    let reads = absent.iter().zip(makers).map(|(absence, key)| read_maker(client, namespace, absence, key.as_ref()));
    let mut seen = Vec::new();
    for (absence, maker) in absent.iter().zip(join_all(reads).await) {
        seen.extend(maker?.map(|maker| (absence, maker)));
    }
    let speaks_by_events = |maker: &Maker| match maker {
        Maker::Workload(seen) => seen.workload.key.kind.row().failures == FailuresIn::Events,
        Maker::Absent(_) => false,
        Maker::Unknown | Maker::Unread(_) => true,
    };
    let mut failures = Vec::new();
    if seen.iter().any(|(_, maker)| speaks_by_events(maker)) {
        failures.extend(events(client, namespace, FAILED).await?);
    }
    if seen.iter().any(|(_, maker)| !matches!(maker, Maker::Workload(_))) {
        failures.extend(events(client, namespace, DEADLINE).await?);
    }
    let found = seen.iter().filter_map(|(absence, maker)| {
        let (why, text) = why(group, absence, maker, &failures)?;
        Some(Diagnosis { role: absence.role.clone(), why, text })
    });
    Ok(found.collect())
}

/// Fills in the Jobs of roles that have exceeded their deadlines, by the labels of their pod templates. The loop knows a Job by the
/// pods that it saw, and may not read it.
pub async fn with_jobs(client: &Client, group: &Group, absent: &[MissingPods]) -> Vec<MissingPods> {
    let (mut absent, namespace) = (absent.to_vec(), &group.key.namespace);
    let events = events(client, namespace, DEADLINE).await.unwrap_or_default();
    let of_jobs = events.iter().map(|event| &event.involved_object).filter(|of| of.kind == JOB.kind);
    for name in of_jobs.map(|of| &of.name).collect::<BTreeSet<_>>().into_iter().take(MOST_JOBS) {
        let Ok(Some(job)) = objects::read(client, JOB, namespace, name).await else { continue };
        let labels = |key: &str| job.pointer("/spec/template/metadata/labels")?.get(key)?.as_str();
        let mut of_group = names::LABEL_SCHEMES.iter().filter(|(of, _)| labels(of) == Some(&*group.key.name));
        let Some(role) = of_group.find_map(|(_, role)| labels(role)) else { continue };
        let uid = job.pointer("/metadata/uid").and_then(Value::as_str);
        absent.iter_mut().filter(|absence| absence.role == role).for_each(|absence| absence.job = uid.map(Into::into));
    }
    absent
}

/// Reads the maker of the pods of a role; `None` when it may not be read.
async fn read_maker(
    client: &Client,
    namespace: &str,
    absence: &MissingPods,
    key: Option<&WorkloadKey>,
) -> kube::Result<Option<Maker>> {
    let found = match key {
        None => Maker::Unknown,
        Some(key) => match unless(&[403], read(client, key).await)? {
            Some(Some(seen)) => return Ok(Some(Maker::Workload(Box::new(seen)))),
            Some(None) => Maker::Absent(key.clone()),
            None => return Ok(None),
        },
    };
    let Some(sibling) = &absence.sibling else { return Ok(Some(found)) };
    Ok(Some(controller(client, namespace, sibling).await?.map_or(found, Maker::Unread)))
}

/// Returns the controller of a pod if its kind is not read: a Job, a DaemonSet, a ReplicaSet.
async fn controller(client: &Client, namespace: &str, pod: &str) -> kube::Result<Option<OwnerReference>> {
    let found = unless(&[403], api::<Pod>(client, POD, Some(namespace)).find(pod).await)?.flatten();
    let is_unread =
        |meta: &Meta| matches!(PodMaker::of(meta), PodMaker::Job(_) | PodMaker::JobOfSet { .. } | PodMaker::Other);
    Ok(found.filter(|pod| is_unread(&pod.metadata)).and_then(|pod| pod.metadata.controller().cloned()))
}

/// Reads a workload; `None` when it does not exist.
pub(super) async fn read(client: &Client, key: &WorkloadKey) -> kube::Result<Option<MakerState>> {
    key.kind.with_type(Get { client, key }).await
}

struct Get<'a> {
    client: &'a Client,
    key: &'a WorkloadKey,
}

impl<'a> WithType for Get<'a> {
    type Output = BoxFuture<'a, kube::Result<Option<MakerState>>>;

    fn of<T: WorkloadObject>(self) -> Self::Output {
        let workloads = api::<T>(self.client, T::KIND.object_kind(), Some(&self.key.namespace));
        async move { Ok(workloads.get_opt(&self.key.name).await?.map(|found| MakerState::of(&found))) }.boxed()
    }
}

impl MakerState {
    fn of<T: WorkloadObject>(object: &T) -> Self {
        Self {
            workload: object.workload(),
            paused: object.is_paused(),
            replaces_pods: object.replaces_pods(),
            failure: object.failure().map(str::to_owned),
        }
    }
}

/// Lists the Events of a namespace with this reason; none where they may not be read.
async fn events(client: &Client, namespace: &str, reason: &str) -> kube::Result<Vec<Event>> {
    let params = ListParams::default().fields(&format!("reason={reason}")).limit(MOST_EVENTS);
    let list = unless(&[403], api::<Event>(client, EVENT, Some(namespace)).list(&params).await)?;
    Ok(list.map(|list| list.items).unwrap_or_default())
}

fn why(group: &Group, absence: &MissingPods, maker: &Maker, failures: &[Event]) -> Option<(WhyMissing, String)> {
    let dependency = || {
        let name = absence.depends_on.as_ref()?;
        Some((WhyMissing::DependencyNotReady, format!("its workload is made when role {name:?} is ready")))
    };
    if let Some(name) = late_job(group, absence, maker, failures) {
        let job = format!("Job {}/{name}", group.key.namespace);
        let text = format!("{job} has exceeded its activeDeadlineSeconds, which also runs while its pods are held");
        return Some((WhyMissing::JobDeadlineExceeded, text));
    }
    match maker {
        Maker::Absent(key) => dependency().or_else(|| {
            Some((WhyMissing::WorkloadMissing, format!("{key} is not there, and no other workload makes such pods")))
        }),
        Maker::Unknown => {
            let name = format!("{}-{}", group.key.name, absence.role);
            let is_of_role = |event: &&Event| is_part(&event.involved_object.name, &name);
            last_failure(absence, failures.iter().filter(is_of_role))
                .map(|message| refused(&message))
                .or_else(dependency)
        }
        Maker::Workload(seen) => why_of(absence, seen, failures),
        Maker::Unread(owner) => {
            let is_of_it =
                |event: &&Event| event.involved_object.kind == owner.kind && event.involved_object.name == owner.name;
            let failure = last_failure(absence, failures.iter().filter(is_of_it)).map(|message| refused(&message));
            failure.or_else(dependency).or_else(|| {
                let (kind, name, namespace) = (&owner.kind, &owner.name, &group.key.namespace);
                let text = format!("{kind} {namespace}/{name}, which makes pods of the role, makes none of these");
                Some((WhyMissing::NotMade, text))
            })
        }
    }
}

/// Returns the Job of the pods that has exceeded its deadline, unless a pod was created since. Its pods are gone with it, so that it is
/// known by a pod that was there, by one that is left, or by a name as operators give it.
fn late_job<'a>(group: &Group, absence: &MissingPods, maker: &Maker, events: &'a [Event]) -> Option<&'a str> {
    let owner = match maker {
        Maker::Workload(_) => return None,
        Maker::Unread(owner) => Some(&owner.name),
        Maker::Absent(_) | Maker::Unknown => None,
    };
    let role = format!("{}-{}", group.key.name, absence.role);
    let is_of_role = |event: &&Event| {
        let InvolvedObject { kind, name, uid } = &event.involved_object;
        let is_its = || absence.job.as_deref() == Some(uid) || owner == Some(name) || is_part(name, &role);
        event.reason == DEADLINE && kind == JOB.kind && is_its()
    };
    Some(&last_event(absence, events.iter().filter(is_of_role))?.involved_object.name)
}

/// Returns why an existing workload does not make the pods; reasons that need a person come first.
fn why_of(absence: &MissingPods, seen: &MakerState, failures: &[Event]) -> Option<(WhyMissing, String)> {
    let Workload { key, desired, one_by_one, .. } = &seen.workload;
    if *desired <= absence.first {
        let text = format!("{key} has {desired} replicas, the group declares more");
        return Some((WhyMissing::FewerReplicas, text));
    }
    if seen.paused {
        return Some((WhyMissing::WorkloadPaused, format!("{key} is paused")));
    }
    let of_replica = format!("{}-{}", key.name, absence.first);
    let made_by = key.kind.row().made_by;
    let is_of_it = |event: &&Event| {
        let InvolvedObject { kind, name, .. } = &event.involved_object;
        kind == made_by.unwrap_or(key.kind).as_str()
            && (*name == key.name || (made_by.is_some() && *name == of_replica))
    };
    let failure = seen.failure.clone().or_else(|| last_failure(absence, failures.iter().filter(is_of_it)));
    failure.map(|message| refused(&message)).or_else(|| {
        let policy = match (*one_by_one)? {
            OneByOne::OrderedReady => "each pod when the one before is ready (podManagementPolicy OrderedReady)",
            OneByOne::LeaderReady => "workers when their leader is ready (startupPolicy LeaderReady)",
            OneByOne::ExclusiveTopology => "workers when their leader has a node (exclusive topology)",
        };
        Some((WhyMissing::MadeOneByOne, format!("{key} makes {policy}")))
    })
}

/// Reports whether `of` is `name`, or `name` followed by `-` and a number, as of an instance.
fn is_part(of: &str, name: &str) -> bool {
    let number =
        |rest: &str| rest.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    of.strip_prefix(name).is_some_and(|rest| rest.is_empty() || number(rest))
}

/// Returns the message of the last failure, unless a pod was created since.
fn last_failure<'a>(absence: &MissingPods, events: impl Iterator<Item = &'a Event>) -> Option<String> {
    last_event(absence, events.filter(|event| event.reason != DEADLINE)).map(|event| event.message.clone())
}

/// Returns the last Event, unless a pod was created since.
fn last_event<'a>(absence: &MissingPods, events: impl Iterator<Item = &'a Event>) -> Option<&'a Event> {
    // Compare seconds: only some Events have fractions.
    let second = |time: &'a str| time.get(..19).unwrap_or(time);
    let made = absence.newest.as_deref().and_then(|time| time.get(..19)).unwrap_or_default();
    let last = events.max_by_key(|event| second(event.last_seen()))?;
    (second(last.last_seen()) >= made).then_some(last)
}

/// Classifies `Create Pod x in StatefulSet y failed error: pods "x" is forbidden: …`. The reason comes last.
fn refused(message: &str) -> (WhyMissing, String) {
    let text = message.rsplit_once("error: ").map_or(message, |(_, text)| text);
    let text = text.strip_prefix("Error creating: ").unwrap_or(text);
    let why = if text.contains("exceeded quota") { WhyMissing::QuotaExceeded } else { WhyMissing::CreationRefused };
    (why, text.to_owned())
}

/// Returns the makers of the pods of roles: the workloads that the group refers to, else those whose pod templates name the
/// role, else those that an operator would make.
pub fn makers<'a>(index: &Index, group: &Group, roles: impl Iterator<Item = &'a str>) -> Vec<Option<WorkloadKey>> {
    let maker = |name: &str| {
        let workload = group.role(name).map(|role| &role.workload);
        let referred = workload.filter(|workload| workload.reference.is_some());
        let named = |of: Option<&RoleWorkload>| of.and_then(|workload| workload.key.clone());
        named(referred).or_else(|| index.maker_of(&group.key, name)).or_else(|| named(workload))
    };
    roles.map(maker).collect()
}

#[cfg(test)]
#[path = "missing_pods_tests.rs"]
mod tests;
