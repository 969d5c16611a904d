//! The claimed workloads of roles that roll in lockstep or scale together: as stored after admission, and the actions
//! of their controllers.

use std::sync::OnceLock;

use rolegate::model::rolling::FROZEN;
use rolegate::model::workload_object::WithType;
use rolegate::model::{WorkloadKind, WorkloadObject, former_claim, rollout_claim};
use rolegate::mutate::rollout::{hold_rollout, let_go};

use crate::places::Place;
use crate::prelude::*;
use crate::rollbacks::BROKEN;

/// The most replicas to which a workload grows.
const MOST: u32 = 12;
const IMAGE: &str = "/spec/template/spec/containers/0/image";
const PARTITION: &str = "/spec/updateStrategy/rollingUpdate/partition";

/// A stored StatefulSet.
#[derive(Clone, Debug)]
pub struct Set {
    pub kind: WorkloadKind,
    pub object: Value,
    /// The partition that its controller has observed and replaces pods by.
    seen_partition: u32,
    /// The parsed object, cached.
    read: OnceLock<SeenWorkload>,
}

impl Set {
    fn new(role: usize, maker: Maker, (replicas, at_once): (u32, u32)) -> Self {
        let labels = claim(role);
        let pods = json!({ "containers": [{ "name": "main", "image": 0 }] });
        let revision = revision(role, 0);
        let (kind, mut spec) = spec_of(maker, replicas, &json!({ "metadata": { "labels": labels }, "spec": pods }));
        if kind == WorkloadKind::StatefulSet {
            spec["updateStrategy"] = json!({ "rollingUpdate": { "partition": 0, "maxUnavailable": at_once } });
        }
        let object = json!({
            "metadata": {
                "name": ROLES[role], "namespace": NAMESPACE, "uid": format!("set-{role}"), "resourceVersion": "1",
                "generation": 1, "labels": labels,
            },
            "spec": spec,
            "status": { "observedGeneration": 1, "currentRevision": revision, "updateRevision": revision },
        });
        Self { kind, object, seen_partition: 0, read: OnceLock::new() }
    }

    pub fn seen(&self) -> SeenWorkload {
        self.read.get_or_init(|| self.kind.with_type(Read(&self.object))).clone()
    }

    /// Reports whether its pods are replaced one by one, highest first.
    fn is_stateful(&self) -> bool {
        self.kind == WorkloadKind::StatefulSet
    }

    pub fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap()
    }

    pub fn replicas(&self) -> u32 {
        number(&self.object["spec"]["replicas"])
    }

    pub fn partition(&self) -> u32 {
        number(self.object.pointer(PARTITION).unwrap_or(&Value::Null))
    }

    /// Returns the revision that its controller rolls to.
    pub fn update_revision(&self) -> &str {
        self.object["status"]["updateRevision"].as_str().unwrap()
    }

    pub fn current_revision(&self) -> &str {
        self.object["status"]["currentRevision"].as_str().unwrap()
    }

    pub fn is_open(&self) -> bool {
        self.object["metadata"]["annotations"].get(names::USER_PARTITION).is_some()
    }

    pub fn is_claimed(&self) -> bool {
        self.object["metadata"]["labels"].get(names::GROUP).is_some()
    }

    /// Reports whether the claim was removed without admission, so that its group is unknown.
    pub fn is_nobodys(&self) -> bool {
        !self.is_claimed() && self.object["metadata"]["annotations"].get(names::UNCLAIMED).is_none()
    }

    pub fn is_observed(&self) -> bool {
        self.object["status"]["observedGeneration"] == self.object["metadata"]["generation"]
    }

    /// Reports whether its controller makes all pods at the current revision.
    pub fn is_frozen(&self) -> bool {
        self.seen_partition == FROZEN
    }

    /// Returns the revision of a pod created now.
    fn revision_of(&self, ordinal: u32) -> &str {
        if ordinal < self.seen_partition { self.current_revision() } else { self.update_revision() }
    }
}

/// Returns the kind and the spec of the workload of a role.
pub fn spec_of(maker: Maker, replicas: u32, template: &Value) -> (WorkloadKind, Value) {
    let (kind, more) = match maker {
        Maker::Set { start } => {
            let start = json!({ "start": start });
            let more = json!({ "ordinals": start, "podManagementPolicy": "Parallel", "template": template });
            (WorkloadKind::StatefulSet, more)
        }
        Maker::Leaders { size, late } => {
            let policy = if late { "LeaderReady" } else { "LeaderCreated" };
            let template = json!({ "size": size, "workerTemplate": template });
            (WorkloadKind::LeaderWorkerSet, json!({ "startupPolicy": policy, "leaderWorkerTemplate": template }))
        }
        Maker::Alike => (WorkloadKind::Deployment, json!({ "template": template })),
    };
    let mut spec = json!({ "replicas": replicas });
    json_patch::merge(&mut spec, &more);
    (kind, spec)
}

/// Parses an object as its kind.
pub struct Read<'a>(pub &'a Value);

impl WithType for Read<'_> {
    type Output = SeenWorkload;

    fn of<T: WorkloadObject>(self) -> SeenWorkload {
        SeenWorkload::of(&serde_json::from_value::<T>(self.0.clone()).unwrap())
    }
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap_or(0)).unwrap()
}

pub fn claim(role: usize) -> Value {
    json!({ (names::GROUP): GROUP, (names::ROLE): ROLES[role] })
}

/// Returns the revision of a template; equal templates have equal revisions.
fn revision(role: usize, image: u32) -> String {
    format!("{}-r{image}", ROLES[role])
}

impl Server {
    pub fn make_sets(&mut self) {
        if self.setup.rolling.is_none() && self.setup.segments.is_none() {
            return;
        }
        for role in 0..ROLLED {
            self.sets.push(Arc::new(Set::new(
                role,
                self.setup.makers[role],
                (self.workloads[role], self.setup.at_once),
            )));
            self.store_set(role, |_| {});
        }
    }

    fn store_set(&mut self, role: usize, change: impl FnOnce(&mut Set)) {
        let before = self.sets[role].clone();
        let mut set = Set { read: OnceLock::new(), ..(*before).clone() };
        change(&mut set);
        if set.object["spec"] != before.object["spec"] {
            set.object["metadata"]["generation"] = json!(before.object["metadata"]["generation"].as_u64().unwrap() + 1);
        }
        set.object["metadata"]["resourceVersion"] = json!(self.next_version().to_string());
        self.sets[role] = Arc::new(set);
        self.tell(self.watch_of(role), Event::Set(self.sets[role].clone()));
    }

    /// Edits a set as a user, with admission.
    pub fn edit_set(&mut self, role: usize, edit: impl FnOnce(&mut Value)) {
        let Some(set) = self.sets.get(role) else { return };
        let old = set.object.clone();
        let mut new = old.clone();
        edit(&mut new);
        if new == old {
            return;
        }
        if set.kind != WorkloadKind::Deployment {
            self.admit(set.kind, &old, &mut new);
        }
        self.store_set(role, |set| set.object = new);
    }

    /// Applies the webhook to an update.
    fn admit(&self, kind: WorkloadKind, old: &Value, new: &mut Value) {
        let meta = |object: &Value| -> Meta { serde_json::from_value(object["metadata"].clone()).unwrap() };
        let (before, after) = (meta(old), meta(new));
        let claimed = rollout_claim(&after, NAMESPACE);
        let is_claimed = claimed.is_some();
        let former = || rollout_claim(&before, NAMESPACE).or_else(|| former_claim(&before, NAMESPACE));
        let Some(claim) = claimed.or_else(former).filter(|_| !self.ignored) else { return };
        let patch = match self.group.as_ref().map(|group| group.group()) {
            None if is_claimed => return,
            None => let_go(kind, old, new),
            Some(group) if !is_claimed && !group.rolls(&claim.role) => let_go(kind, old, new),
            Some(group) => {
                let is_ready = |(name, pod): (&String, &Arc<Pod>)| {
                    ROLES[crate::places::role_of(name)] == claim.role && crate::nature::is_ready(pod)
                };
                let served = group.status.has_served(&claim.role) || self.pods.iter().any(is_ready);
                hold_rollout(kind, old, new, &claim, &group, served, None)
            }
        };
        let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(patch).unwrap()).unwrap();
        json_patch::patch(new, &patch).unwrap();
    }

    /// Applies a JSON Merge Patch of the loop to a set.
    pub fn patch_set(&mut self, role: usize, patch: &Value) -> Answered<SeenWorkload> {
        let set = &self.sets[role];
        if patch["metadata"]["resourceVersion"].as_str().is_some_and(|version| version != set.version()) {
            return Err(refusal(409, ""));
        }
        self.store_set(role, |set| json_patch::merge(&mut set.object, patch));
        Ok(self.sets[role].seen())
    }

    /// Applies a step to a set; returns false when nothing changes.
    pub fn set_step(&mut self, role: usize, step: SetStep) -> bool {
        let scales = matches!(step, SetStep::Grow(..)) && self.setup.segments.is_some();
        let is_own =
            |set: &Arc<Set>| set.is_stateful() || matches!(step, SetStep::Unclaim | SetStep::Claim | SetStep::Observe);
        if !self.sets.get(role).is_some_and(is_own) || scales {
            return false;
        }
        let before = self.version;
        match step {
            SetStep::Image(image) => {
                self.edit_set(role, |set| *set.pointer_mut(IMAGE).unwrap() = json!(image));
            }
            SetStep::Grow(image, more) => {
                let replicas = (self.workloads[role] + more).min(MOST);
                self.workloads[role] = replicas;
                self.edit_group(|group| group.replicas[role] = replicas);
                self.edit_set(role, |set| {
                    *set.pointer_mut(IMAGE).unwrap() = json!(image);
                    set["spec"]["replicas"] = json!(replicas);
                });
            }
            SetStep::Unclaim => self.edit_set(role, |set| set["metadata"]["labels"] = json!({})),
            SetStep::Claim => self.edit_set(role, |set| set["metadata"]["labels"] = claim(role)),
            SetStep::Observe => self.observe_set(role),
            SetStep::Replace => self.replace_pod(role),
        }
        self.version != before
    }

    /// Lets the controller observe the last change of a set, or the completed rollout.
    fn observe_set(&mut self, role: usize) {
        let set = self.sets[role].clone();
        if !set.is_observed() {
            let update = revision(role, set.object.pointer(IMAGE).map_or(0, number));
            self.store_set(role, |set| {
                set.seen_partition = set.partition();
                set.object["status"]["observedGeneration"] = set.object["metadata"]["generation"].clone();
                set.object["status"]["updateRevision"] = json!(update);
            });
        } else if set.current_revision() != set.update_revision() && self.is_at(role, set.update_revision()) {
            self.store_set(role, |set| {
                let update = set.object["status"]["updateRevision"].clone();
                set.object["status"]["currentRevision"] = update;
            });
        }
    }

    /// Reports whether exactly the pods of a set exist, at this revision and ready.
    pub fn is_at(&self, role: usize, revision: &str) -> bool {
        let pods = (0..self.sets[role].replicas()).map(|ordinal| self.pods.get(&self.pod_of_set(role, ordinal)));
        pods.into_iter()
            .all(|pod| pod.is_some_and(|pod| crate::nature::is_ready(pod) && revision_of(pod) == Some(revision)))
    }

    pub fn pod_of_set(&self, role: usize, ordinal: u32) -> String {
        self.setup.pod_name(Place { role, ordinal, member: 0 })
    }

    /// Lets the controller replace the highest outdated pod, when all pods above it are ready; one that replaces several at once
    /// waits only while as many are not ready.
    fn replace_pod(&mut self, role: usize) {
        let set = self.sets[role].clone();
        if self.setup.at_once > 1 {
            return self.replace_one_of(role, &set);
        }
        for ordinal in (set.seen_partition..set.replicas()).rev() {
            let name = self.pod_of_set(role, ordinal);
            let Some(pod) = self.pods.get(&name).filter(|pod| !pod.metadata.is_deleting()) else { return };
            if revision_of(pod) != Some(set.update_revision()) {
                return self.evict(&name);
            }
            if !crate::nature::is_ready(pod) {
                return;
            }
        }
    }

    fn replace_one_of(&mut self, role: usize, set: &Set) {
        let pods: Vec<_> = (0..set.replicas()).map(|ordinal| self.pod_of_set(role, ordinal)).collect();
        let is_up = |name: &&String| self.pods.get(*name).is_some_and(|pod| crate::nature::is_ready(pod));
        if pods.len() - pods.iter().filter(is_up).count() >= self.setup.at_once as usize {
            return;
        }
        let is_old = |name: &&String| {
            let pod = self.pods.get(*name).filter(|pod| !pod.metadata.is_deleting());
            pod.is_some_and(|pod| revision_of(pod) != Some(set.update_revision()))
        };
        if let Some(name) = pods.iter().skip(set.seen_partition as usize).rev().find(is_old).cloned() {
            self.evict(&name);
        }
    }

    /// Returns the labels that the controller and the webhook give to a pod created now.
    pub fn labels_of_set(&self, role: usize, ordinal: u32) -> Vec<(&'static str, String)> {
        let Some(set) = self.sets.get(role).filter(|set| set.is_stateful()) else { return Vec::new() };
        let revision = set.revision_of(ordinal).to_owned();
        let mut labels = vec![(names::CONTROLLER_REVISION, revision.clone())];
        let group = self.group.as_ref().filter(|_| !self.ignored).map(|group| group.group());
        if let Some(group) = group.filter(|group| group.rolls(ROLES[role])) {
            let cohort = group.cohort(ROLES[role], &revision).map(str::to_owned);
            labels.extend([(names::REVISION, revision)]);
            labels.extend(cohort.map(|cohort| (names::COHORT, cohort)));
        }
        labels
    }
}

impl Server {
    /// Reports whether a pod does not get ready, whatever happens.
    pub fn is_broken(&self, pod: &rolegate::api::Pod) -> bool {
        let is_of = |role: usize| revision_of(pod) == Some(&*revision(role, BROKEN));
        self.setup.broken && (0..ROLLED).any(is_of)
    }
}

/// Returns the revision at which a pod was created.
pub fn revision_of(pod: &rolegate::api::Pod) -> Option<&str> {
    pod.metadata.label(names::CONTROLLER_REVISION)
}
