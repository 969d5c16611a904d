//! The fourth act: prefill and decode scale as one number of segments, and a segment that loses a pod is recreated as
//! a whole.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};

use crate::screen::{Live, bar, title};
use crate::stage::{Stage, StageError};

/// Replicas of each role per segment of `examples/demo/elastic.yaml`.
const SIZES: [(&str, usize); 2] = [("prefill", 2), ("decode", 1)];
/// Pods per segment.
const SEGMENT: usize = 3;

/// Scales out, deletes a decode pod, scales in.
pub async fn play(stage: &mut Stage) -> Result<(), StageError> {
    title("Two segments of two prefills and one decode, as one number (examples/demo/elastic.yaml)");
    stage.nodes(15..17).await?;
    println!("{}", stage.kubectl(&["apply", "-f", "examples/demo/elastic.yaml"])?);
    let mut pair = Pair::watch(&stage.client);
    pair.until("two segments serve", |pair| pair.serves(2)).await?;

    title("Two more: both roles are scaled, one segment after the other, and stay in their ratio");
    println!("{}", stage.kubectl(&["scale", "rolecoordination/elastic", "--replicas=4"])?);
    pair.until("four segments serve", |pair| pair.serves(4)).await?;
    println!("{}", stage.kubectl(&["get", "rolecoordination", "elastic"])?);

    title("A decode is lost: its prefills are of no use without it, and the segment starts again as a whole");
    let before = pair.pods.clone();
    println!("{}", stage.kubectl(&["delete", "pod", "elastic-decode-1", "--wait=false"])?);
    pair.until("the second segment is made of new pods", |pair| pair.serves(4) && pair.made_again(&before, 1)).await?;
    pair.only_one_is_new(&before, 1)?;
    println!("\n   Its three pods are new, and run; no pod of another segment was touched.");

    title("One segment is enough: whole segments go, of both roles together, the last one first");
    println!("{}", stage.kubectl(&["scale", "rolecoordination/elastic", "--replicas=1"])?);
    pair.until("one segment serves", |pair| pair.serves(1)).await
}

/// The observed state of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replica {
    uid: String,
    released: bool,
    ready: bool,
}

struct Pair {
    events: BoxStream<'static, Result<watcher::Event<Pod>, watcher::Error>>,
    pods: BTreeMap<(String, usize), Replica>,
    live: Live,
    started: Instant,
    listing: bool,
}

impl Pair {
    /// Watches the pods of the namespace `default`.
    fn watch(client: &Client) -> Self {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        Self {
            events: watcher(pods, watcher::Config::default().labels("rolegate.dev/group=elastic"))
                .default_backoff()
                .boxed(),
            pods: BTreeMap::new(),
            live: Live::default(),
            started: Instant::now(),
            listing: false,
        }
    }

    /// Watches until a condition holds; at every event, the roles must be within one segment of their ratio.
    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), StageError> {
        while self.listing || !holds(self) {
            match self.events.next().await {
                Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => self.take(&pod),
                Some(Ok(watcher::Event::Delete(pod))) => drop(place(&pod).and_then(|at| self.pods.remove(&at))),
                Some(Ok(watcher::Event::Init)) => self.listing = true,
                Some(Ok(watcher::Event::InitDone)) => self.listing = false,
                Some(Err(error)) => return Err(StageError::Watch(error.to_string())),
                None => return Err(StageError::NotObserved(what.to_owned())),
            }
            if !self.listing {
                self.ratio_holds()?;
                self.show();
            }
        }
        Ok(())
    }

    fn take(&mut self, pod: &Pod) {
        let Some(at) = place(pod) else { return };
        // A terminating pod no longer serves.
        if pod.metadata.deletion_timestamp.is_some() {
            self.pods.remove(&at);
            return;
        }
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let released = pod.spec.as_ref().is_none_or(|spec| spec.scheduling_gates.iter().flatten().count() == 0);
        self.pods.insert(at, Replica { uid: pod.uid().unwrap_or_default(), released, ready });
    }

    fn count(&self, role: &str) -> usize {
        self.pods.keys().filter(|(of, _)| of == role).count()
    }

    fn ratio_holds(&self) -> Result<(), StageError> {
        let [prefill, decode] = SIZES.map(|(role, _)| self.count(role));
        // A segment has two prefills and one decode: one segment of difference is two prefills.
        if prefill.abs_diff(2 * decode) <= 2 {
            return Ok(());
        }
        Err(StageError::NotObserved(format!("{prefill} prefills beside {decode} decodes: more than a segment apart")))
    }

    /// Reports whether exactly these segments exist, with all pods ready.
    fn serves(&self, segments: usize) -> bool {
        self.pods.len() == segments * SEGMENT && self.pods.values().all(|replica| replica.ready)
    }

    /// Returns the pods of a segment.
    fn of_segment(&self, segment: usize) -> impl Iterator<Item = (&(String, usize), &Replica)> {
        self.pods.iter().filter(move |(at, _)| segment_of(at) == Some(segment))
    }

    /// Reports whether all pods of the segment are new.
    fn made_again(&self, before: &BTreeMap<(String, usize), Replica>, segment: usize) -> bool {
        self.of_segment(segment).all(|(at, now)| before.get(at).is_none_or(|then| then.uid != now.uid))
    }

    /// Checks that the pods of all other segments are still the same.
    fn only_one_is_new(&self, before: &BTreeMap<(String, usize), Replica>, segment: usize) -> Result<(), StageError> {
        let others = self.pods.iter().filter(|(at, _)| segment_of(at) != Some(segment));
        match others.into_iter().find(|(at, now)| before.get(*at).is_none_or(|then| then.uid != now.uid)) {
            None => Ok(()),
            Some(((role, ordinal), _)) => {
                Err(StageError::NotObserved(format!("{role}-{ordinal}, of another segment, was made again")))
            }
        }
    }

    fn show(&mut self) {
        let line = |segment: usize| {
            let bars = SIZES.map(|(role, size)| {
                let of_role = || self.of_segment(segment).filter(|((of, _), _)| of == role);
                let (ready, released) = of_role().fold((0, 0), |(ready, released), (_, replica)| {
                    (ready + usize::from(replica.ready), released + usize::from(replica.released))
                });
                format!("{role} {:size$}", bar(ready, released, of_role().count()))
            });
            format!("   segment {}   {}", segment + 1, bars.join("   "))
        };
        let bars = (0..4).map(line).collect();
        let ready = self.pods.values().filter(|replica| replica.ready).count();
        self.live.show(bars, format!("{ready}/{} pods ready", self.pods.len()), self.started.elapsed().as_secs_f64());
    }
}

/// Parses role and ordinal from the pod's name.
fn place(pod: &Pod) -> Option<(String, usize)> {
    let name = pod.metadata.name.as_deref()?.strip_prefix("elastic-")?;
    let (role, ordinal) = name.rsplit_once('-')?;
    Some((role.to_owned(), ordinal.parse().ok()?))
}

fn segment_of((role, ordinal): &(String, usize)) -> Option<usize> {
    SIZES.iter().find(|(of, _)| of == role).map(|(_, size)| ordinal / size)
}
