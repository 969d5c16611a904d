//! Observes pods event by event, and implements the bare loop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{Object, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use rolegate::cluster::write::writer::{ReleaseEdits, release_patch};
use rolegate::plan::PodRef;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::common::stage::groups;

/// Concurrent writes, as in rolegate.
const WRITES: usize = 64;

type Watched = Object<Spec, Status>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    scheduling_gates: Vec<Value>,
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

/// The times when a pod was first seen, without a gate, with a node, and ready.
#[derive(Clone, Debug)]
struct Pod {
    uid: String,
    made: Instant,
    bound: Option<Instant>,
    released: Option<Instant>,
    ready: Option<Instant>,
}

#[derive(Default)]
struct Seen {
    pods: HashMap<String, Pod>,
    ready: usize,
}

/// A watch of the pods of a namespace; it ends on drop.
pub struct Pods {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Pods {
    pub async fn watch(client: &Client, namespace: &str) -> Self {
        let (seen, changed, listed) =
            (Arc::new(Mutex::new(Seen::default())), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let api: Api<Watched> = Api::namespaced_with(client.clone(), namespace, &resource);
        let (all, tell, ready) = (seen.clone(), changed.clone(), listed.clone());
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                match event.expect("the watch holds") {
                    Event::Apply(pod) | Event::InitApply(pod) => all.lock().unwrap().take(&pod),
                    Event::InitDone => ready.notify_one(),
                    Event::Init | Event::Delete(_) => {}
                }
                tell.notify_waiters();
                tell.notify_one();
            }
        });
        listed.notified().await;
        Self { seen, changed, task }
    }

    pub async fn until_ready(&self, pods: usize, deadline: Duration) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if self.seen.lock().unwrap().ready >= pods {
                    return;
                }
                changed.await;
            }
        };
        let came = tokio::time::timeout(deadline, waiting).await.is_ok();
        assert!(came, "{} of {pods} pods are ready", self.seen.lock().unwrap().ready);
    }

    /// Returns the time from the last created pod to the last pod with a node.
    pub fn made_to_bound(&self) -> Duration {
        let seen = self.seen.lock().unwrap();
        let made = seen.pods.values().map(|pod| pod.made).max().unwrap();
        let bound = seen.pods.values().filter_map(|pod| pod.bound).max().unwrap();
        bound.saturating_duration_since(made)
    }

    /// Returns the times from the last ready pod of a segment to the last released pod of the next, in order, as a
    /// watch sees them.
    pub fn steps(&self, sizes: (u32, u32)) -> Vec<Duration> {
        let (mut ready, mut released) = (HashMap::<u32, Instant>::new(), HashMap::<u32, Instant>::new());
        for (name, pod) in &self.seen.lock().unwrap().pods {
            let segment = segment(name, sizes);
            let latest = |times: &mut HashMap<u32, Instant>, at: Instant| {
                let time = times.entry(segment).or_insert(at);
                *time = at.max(*time);
            };
            latest(&mut ready, pod.ready.unwrap());
            latest(&mut released, pod.released.unwrap());
        }
        let step = |(segment, at): (&u32, &Instant)| Some(released.get(&(segment + 1))?.saturating_duration_since(*at));
        let mut steps: Vec<_> = ready.iter().filter_map(step).collect();
        steps.sort();
        steps
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    fn take(&mut self, pod: &Watched) {
        let uid = pod.metadata.uid.clone().unwrap();
        let name = pod.metadata.name.clone().unwrap();
        let known = self.pods.entry(name).or_insert(Pod {
            uid,
            made: Instant::now(),
            bound: None,
            released: None,
            ready: None,
        });
        if pod.spec.node_name.is_some() {
            known.bound.get_or_insert_with(Instant::now);
        }
        if pod.spec.scheduling_gates.is_empty() {
            known.released.get_or_insert_with(Instant::now);
        }
        let is_ready = |condition: &Condition| condition.r#type == "Ready" && condition.status == "True";
        let ready = pod.status.as_ref().is_some_and(|status| status.conditions.iter().any(is_ready));
        if ready && known.ready.is_none() {
            known.ready = Some(Instant::now());
            self.ready += 1;
        }
    }
}

fn segment(name: &str, sizes: (u32, u32)) -> u32 {
    let (set, ordinal) = name.rsplit_once('-').unwrap();
    ordinal.parse::<u32>().unwrap() / if set.ends_with("prefill") { sizes.0 } else { sizes.1 }
}

/// Lifts the gates of the next segment when all pods of the previous one are ready. To survive a crash, it first
/// writes the release into the group's status, then sends a PATCH for each pod.
pub struct Bare(JoinHandle<()>);

impl Bare {
    pub fn start(client: &Client, namespace: &str, group: &str, pods: &Pods, sizes: (u32, u32)) -> Self {
        let (group, groups) = (group.to_owned(), groups(client, namespace));
        let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), namespace);
        let (seen, changed, permits) = (pods.seen.clone(), pods.changed.clone(), Arc::new(Semaphore::new(WRITES)));
        Self(tokio::spawn(async move {
            let (mut next, mut committed, mut asked) = (0, None, std::collections::HashSet::new());
            loop {
                let notified = changed.notified();
                let due: Vec<_> = {
                    let seen = seen.lock().unwrap();
                    let of =
                        |segment: u32| names(&group, segment, sizes).filter_map(|name| seen.pods.get_key_value(&name));
                    if of(next).filter(|(_, pod)| pod.ready.is_some()).count() == (sizes.0 + sizes.1) as usize {
                        next += 1;
                    }
                    let held = of(next).filter(|(_, pod)| pod.released.is_none());
                    held.map(|(name, pod)| (name.clone(), pod.uid.clone())).collect()
                };
                if !due.is_empty() && committed != Some(next) {
                    let of = |size: u32| {
                        let released = (next + 1) * size;
                        json!({ "strategy": "segmentPlacement", "state": "Progressing", "released": released })
                    };
                    let progress = json!({ "prefill": of(sizes.0), "decode": of(sizes.1) });
                    let state = json!([{ "name": "segments", "progress": progress }]);
                    let status = json!({ "status": { "coordinationState": state } });
                    groups
                        .patch_status(&group, &PatchParams::default(), &Patch::Merge(status))
                        .await
                        .expect("the counts are committed");
                    committed = Some(next);
                }
                for (name, uid) in due {
                    if !asked.insert(uid.clone()) {
                        continue;
                    }
                    let (api, permits) = (api.clone(), permits.clone());
                    tokio::spawn(async move {
                        let _permit = permits.acquire().await.unwrap();
                        let pod = PodRef { name: name.as_str().into(), uid: uid.into() };
                        let patch = release_patch(&pod, ReleaseEdits::default());
                        api.patch(&name, &PatchParams::default(), &Patch::Strategic(patch))
                            .await
                            .expect("a gate is lifted");
                    });
                }
                notified.await;
            }
        }))
    }
}

/// Returns the names of a segment's pods.
fn names(group: &str, segment: u32, sizes: (u32, u32)) -> impl Iterator<Item = String> {
    let of = move |role: &'static str, size: u32| {
        (segment * size..(segment + 1) * size).map(move |ordinal| format!("{group}-{role}-{ordinal}"))
    };
    of("prefill", sizes.0).chain(of("decode", sizes.1))
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.abort();
    }
}
