//! A watch of nodes: when each was ready for pods, and which rack it is in.

use std::sync::Mutex;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::world::RACK;
use crate::common::prelude::*;

/// A node that is there.
#[derive(Clone, Debug)]
pub struct Seen {
    pub rack: String,
    /// When pods could first go there.
    pub ready: Option<Instant>,
}

/// All nodes of a stage, as they come and go.
pub struct Nodes {
    now: Arc<Mutex<BTreeMap<String, Seen>>>,
    /// All that were ever there.
    ever: Arc<Mutex<BTreeMap<String, Seen>>>,
    changed: watch::Receiver<()>,
    _task: AbortOnDropHandle<()>,
}

impl Nodes {
    pub async fn watch(stage: &Stage) -> Self {
        let config = watcher::Config::default().labels(&format!("rolegate.dev/stage={}", stage.namespace));
        let stream = watcher(Api::<Node>::all(stage.client.clone()), config);
        let (now, ever): (Arc<Mutex<BTreeMap<_, _>>>, Arc<Mutex<BTreeMap<_, _>>>) = (Arc::default(), Arc::default());
        let (tell, mut changed) = watch::channel(());
        let (writing, keeping) = (now.clone(), ever.clone());
        let task = tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                match event {
                    Ok(Event::Apply(node) | Event::InitApply(node)) => {
                        let name = node.metadata.name.clone().unwrap();
                        let mut seen = keeping.lock().unwrap();
                        let known = seen.entry(name.clone()).or_insert_with(|| Seen { rack: rack(&node), ready: None });
                        if is_ready(&node) {
                            known.ready.get_or_insert_with(Instant::now);
                        }
                        writing.lock().unwrap().insert(name, known.clone());
                    }
                    Ok(Event::Delete(node)) => _ = writing.lock().unwrap().remove(&node.metadata.name.unwrap()),
                    _ => {}
                }
                tell.send_replace(());
            }
        });
        changed.changed().await.unwrap();
        Self { now, ever, changed, _task: AbortOnDropHandle::new(task) }
    }

    pub fn now(&self) -> BTreeMap<String, Seen> {
        self.now.lock().unwrap().clone()
    }

    /// Nodes that were made so far.
    pub fn made(&self) -> usize {
        self.ever.lock().unwrap().len()
    }

    /// The rack of each node that ever was there.
    pub fn racks(&self) -> BTreeMap<String, String> {
        self.ever.lock().unwrap().iter().map(|(name, seen)| (name.clone(), seen.rack.clone())).collect()
    }

    pub async fn until(&self, what: &str, test: impl Fn(&BTreeMap<String, Seen>) -> bool) {
        let mut changed = self.changed.clone();
        let waiting = async {
            while !test(&self.now()) {
                changed.changed().await.unwrap();
            }
        };
        let came = tokio::time::timeout(PATIENT, waiting).await.is_ok();
        assert!(came, "not in time: {what}\nfound: {:?}", self.now());
    }

    /// When the last node of these pods could take one.
    pub fn last_ready<'a>(&self, pods: impl Iterator<Item = &'a Pod>) -> Instant {
        let ever = self.ever.lock().unwrap();
        pods.filter_map(|pod| ever[pod.node.as_ref()?].ready).max().unwrap()
    }
}

fn rack(node: &Node) -> String {
    node.metadata.labels.as_ref().unwrap()[RACK].clone()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let is_tainted = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).is_some_and(|taints| !taints.is_empty());
    !is_tainted && conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
