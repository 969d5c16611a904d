//! An observer of pods: a watch that starts before the first pod is created, and records every change.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::Object;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::runtime::{WatchStreamExt, watcher as watch_pods};
use kube::{Api, Client};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::wait::{PATIENT, always};

pub const GATE: &str = "rolegate.dev/hold";

/// Labels with the ordinal of a pod's replica. A worker of a `LeaderWorkerSet` also has a pod index, its place in the
/// group.
const ORDINALS: [&str; 2] = ["leaderworkerset.sigs.k8s.io/group-index", "apps.kubernetes.io/pod-index"];

/// Labels with a pod's role: ours, and that of RBG since v0.7.
const ROLES: [&str; 2] = ["rolegate.dev/role", "rbg.workloads.x-k8s.io/role-name"];

/// Label with the name of RBG's RoleInstance, which ends with the ordinal.
const INSTANCE: &str = "rbg.workloads.x-k8s.io/role-instance-name";

/// A pod at one resourceVersion.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    /// The resourceVersion, which counts all writes of the cluster.
    pub version: u64,
    pub role: String,
    /// Ordinal of its replica: that of a `StatefulSet`'s pod, or of a `LeaderWorkerSet`'s group.
    pub index: u32,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub gates: Vec<String>,
    pub node: Option<String>,
    /// Its node selector.
    pub selector: BTreeMap<String, String>,
    /// The scheduler's message when it finds no node.
    pub unschedulable: String,
    pub ready: bool,
}

impl Pod {
    pub fn is_held(&self) -> bool {
        self.gates.iter().any(|gate| gate == GATE)
    }

    pub fn is_released(&self) -> bool {
        !self.is_held()
    }

    pub fn is_ready(&self) -> bool {
        self.ready
    }

    pub fn is_scheduled(&self) -> bool {
        self.node.is_some()
    }
}

/// A change of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Born,
    Released,
    Scheduled,
    Ready,
    Unready,
    Gone,
}

/// A change, with the pod after it.
#[derive(Clone, Debug)]
pub struct Event {
    pub step: Step,
    pub pod: Pod,
    /// Time of observation.
    pub at: Instant,
    /// Number of the list or event. Events of one list, after a lost watch, share a number: their order is unknown.
    pub batch: usize,
}

/// The existing pods.
#[derive(Default)]
pub struct View {
    pods: BTreeMap<String, Pod>,
}

impl View {
    pub fn all(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    pub fn of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.all().filter(move |pod| pod.role == role)
    }

    pub fn count(&self, role: &str, test: impl Fn(&Pod) -> bool) -> usize {
        self.of(role).filter(|pod| test(pod)).count()
    }

    /// Returns the number of pods of all roles that pass a test.
    pub fn count_all(&self, test: impl Fn(&Pod) -> bool) -> usize {
        self.all().filter(|pod| test(pod)).count()
    }

    pub fn named(&self, name: &str) -> Option<&Pod> {
        self.all().find(|pod| pod.name == name)
    }

    /// Reports whether all pods with an index in the range exist and pass a test.
    pub fn all_in(&self, role: &str, range: std::ops::Range<u32>, test: impl Fn(&Pod) -> bool) -> bool {
        self.count(role, |pod| range.contains(&pod.index) && test(pod)) == range.len()
    }

    /// Applies an event.
    pub fn take(&mut self, event: &Event) {
        match event.step {
            Step::Gone => _ = self.pods.remove(&event.pod.uid),
            _ => _ = self.pods.insert(event.pod.uid.clone(), event.pod.clone()),
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles: std::collections::BTreeSet<_> = self.all().map(|pod| pod.role.as_str()).collect();
        for role in roles {
            let count = |test: fn(&Pod) -> bool| self.count(role, test);
            let held = self.of(role).filter(|pod| pod.is_held()).map(|pod| pod.index).min();
            write!(
                f,
                "[{role}: {} pods, {} released, {} scheduled, {} ready, lowest held {held:?}] ",
                count(|_| true),
                count(Pod::is_released),
                count(Pod::is_scheduled),
                count(Pod::is_ready),
            )?;
        }
        for Pod { name, selector, unschedulable, .. } in
            self.all().filter(|pod| pod.is_released() && !pod.is_scheduled())
        {
            write!(f, "\n{name} has no node, selects {selector:?}: {unschedulable}")?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Log {
    now: View,
    events: Vec<Event>,
    batch: usize,
    /// Pods that were first seen in a list after a lost watch: their creation was not observed.
    unwitnessed: HashSet<String>,
}

/// A watch of the pods of a namespace; it ends on drop.
pub struct PodLog {
    log: Arc<Mutex<Log>>,
    changed: watch::Receiver<()>,
    _task: AbortOnDropHandle<()>,
}

impl PodLog {
    /// Starts the watch, and returns when it runs: no pod that is created later is missed.
    pub async fn start(client: &Client, namespace: &str) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let (tell, mut changed) = watch::channel(());
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let api: Api<Watched> = Api::namespaced_with(client.clone(), namespace, &resource);
        let stream = watch_pods(api, watcher::Config::default()).default_backoff();
        let writing = log.clone();
        let task = tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            let mut listed = HashSet::new();
            while let Some(event) = stream.next().await {
                let mut log = writing.lock().unwrap();
                if !matches!(event, Ok(WatchEvent::InitApply(_) | WatchEvent::InitDone)) {
                    log.batch += 1;
                }
                match event {
                    Ok(WatchEvent::Init) => listed.clear(),
                    Ok(WatchEvent::InitApply(pod)) => {
                        listed.insert(pod.metadata.uid.clone().unwrap_or_default());
                        log.observe(pod, true);
                    }
                    Ok(WatchEvent::InitDone) => log.forget_unlisted(&listed),
                    Ok(WatchEvent::Apply(pod)) => log.observe(pod, false),
                    Ok(WatchEvent::Delete(pod)) => log.gone(&pod.metadata.uid.unwrap_or_default()),
                    Err(_) => continue,
                }
                tell.send_replace(());
            }
        });
        changed.changed().await.unwrap();
        Self { log, changed, _task: AbortOnDropHandle::new(task) }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    /// Returns the unique ids of the existing pods, by name.
    pub fn uids(&self) -> BTreeMap<String, String> {
        self.now(|now| now.all().map(|pod| (pod.name.clone(), pod.uid.clone())).collect())
    }

    /// Inspects the existing pods.
    pub fn now<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.log().now)
    }

    /// Waits until the existing pods pass a test.
    pub async fn until(&self, what: &str, test: impl Fn(&View) -> bool) {
        self.until_within(PATIENT, what, test).await;
    }

    /// Like [`PodLog::until`], with another deadline.
    pub async fn until_within(&self, deadline: Duration, what: &str, test: impl Fn(&View) -> bool) {
        let mut changed = self.changed.clone();
        let waiting = async {
            while !self.now(&test) {
                changed.changed().await.unwrap();
            }
        };
        let came = tokio::time::timeout(deadline, waiting).await.is_ok();
        assert!(came, "not within {deadline:?}: {what}\nfound: {}", self.log().now);
    }

    /// Checks the existing pods repeatedly for some time.
    pub async fn always(&self, time: Duration, what: &str, test: impl Fn(&View) -> bool) {
        let look = async || self.now(|now| if test(now) { Ok(()) } else { Err(now.to_string()) });
        always(time, what, look).await;
    }

    /// Returns all events so far, in order.
    pub fn events(&self) -> Vec<Event> {
        self.log().events.clone()
    }

    /// Returns the pods whose creation was observed, as they were created.
    pub fn births(&self) -> Vec<Pod> {
        let log = self.log();
        let born = log.events.iter().filter(|event| event.step == Step::Born).map(|event| &event.pod);
        born.filter(|pod| !log.unwitnessed.contains(&pod.uid)).cloned().collect()
    }
}

impl Log {
    fn observe(&mut self, pod: Watched, by_list: bool) {
        if pod.metadata.deletion_timestamp.is_some() {
            return self.gone(&pod.metadata.uid.unwrap_or_default());
        }
        let pod = read(pod);
        let before = self.now.pods.get(&pod.uid).cloned();
        if before.is_none() && by_list {
            self.unwitnessed.insert(pod.uid.clone());
        }
        let was = before.as_ref();
        let steps = [
            (Step::Born, was.is_none()),
            (Step::Released, pod.is_released() && was.is_none_or(Pod::is_held)),
            (Step::Scheduled, pod.is_scheduled() && was.is_none_or(|was| !was.is_scheduled())),
            (Step::Ready, pod.ready && was.is_none_or(|was| !was.ready)),
            (Step::Unready, !pod.ready && was.is_some_and(|was| was.ready)),
        ];
        for (step, _) in steps.into_iter().filter(|(_, happened)| *happened) {
            self.push(Event { step, pod: pod.clone(), at: Instant::now(), batch: self.batch });
        }
        self.now.pods.insert(pod.uid.clone(), pod);
    }

    fn gone(&mut self, uid: &str) {
        if let Some(pod) = self.now.pods.get(uid).cloned() {
            self.push(Event { step: Step::Gone, pod, at: Instant::now(), batch: self.batch });
        }
    }

    fn forget_unlisted(&mut self, listed: &HashSet<String>) {
        let gone: Vec<_> = self.now.pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
        for uid in gone {
            self.gone(&uid);
        }
    }

    fn push(&mut self, event: Event) {
        self.now.take(&event);
        self.events.push(event);
    }
}

/// The observed fields, parsed without the types of the code under test.
type Watched = Object<PodSpec, PodStatus>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    scheduling_gates: Option<Vec<Named>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct PodStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default)]
    message: String,
}

fn read(pod: Watched) -> Pod {
    let labels = pod.metadata.labels.unwrap_or_default();
    let of_instance = || labels.get(INSTANCE)?.rsplit_once('-')?.1.parse().ok();
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    let of_type = |sort: &str| conditions.iter().find(|condition| condition.r#type == sort);
    Pod {
        name: pod.metadata.name.unwrap_or_default(),
        uid: pod.metadata.uid.unwrap_or_default(),
        version: pod.metadata.resource_version.and_then(|version| version.parse().ok()).unwrap_or_default(),
        role: ROLES.iter().find_map(|key| labels.get(*key)).cloned().unwrap_or_default(),
        index: ORDINALS.iter().find_map(|key| labels.get(*key)?.parse().ok()).or_else(of_instance).unwrap_or_default(),
        annotations: pod.metadata.annotations.unwrap_or_default(),
        gates: pod.spec.scheduling_gates.unwrap_or_default().into_iter().map(|gate| gate.name).collect(),
        node: pod.spec.node_name,
        selector: pod.spec.node_selector.unwrap_or_default(),
        unschedulable: of_type("PodScheduled").map(|condition| condition.message.clone()).unwrap_or_default(),
        ready: of_type("Ready").is_some_and(|condition| condition.status == "True"),
        labels,
    }
}
