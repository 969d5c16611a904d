//! The second act: both roles get a new image, and are updated at the same rate.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::screen::Live;
use crate::stage::StageError;

/// Roles and their replicas.
const ROLES: [(&str, usize); 2] = [("prefill", 100), ("decode", 50)];
/// Maximum difference of the updated shares, in percent; the same value as in `examples/story-1.yaml`.
const MAX_SKEW: f64 = 10.0;
/// Characters of a bar.
const WIDTH: usize = 40;

/// The observed state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Replica {
    updated: bool,
    ready: bool,
}

/// The observed rollout.
pub struct Rollout {
    pods: BoxStream<'static, Result<watcher::Event<Pod>, watcher::Error>>,
    replicas: BTreeMap<String, Replica>,
    live: Live,
    started: Instant,
    widest: f64,
    listing: bool,
}

impl Rollout {
    /// Watches the pods of the namespace `default`.
    pub fn watch(client: &Client) -> Self {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        Self {
            pods: watcher(pods, watcher::Config::default()).default_backoff().boxed(),
            replicas: BTreeMap::new(),
            live: Live::default(),
            started: Instant::now(),
            widest: 0.0,
            listing: false,
        }
    }

    /// Watches until every replica is updated and ready; returns the largest observed difference of the updated
    /// shares, in percent.
    pub async fn until_done(&mut self) -> Result<f64, StageError> {
        while ROLES.iter().any(|(role, all)| self.count(role, |replica| replica.updated && replica.ready) < *all) {
            match self.pods.next().await {
                Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => self.take(&pod),
                Some(Ok(watcher::Event::Delete(pod))) => drop(self.replicas.remove(name(&pod))),
                Some(Ok(watcher::Event::Init)) => self.listing = true,
                Some(Ok(watcher::Event::InitDone)) => self.listing = false,
                Some(Err(error)) => return Err(StageError::Watch(error.to_string())),
                None => return Err(StageError::NotObserved("the end of the rollout".to_owned())),
            }
            // The initial list is complete only at its end.
            if !self.listing {
                self.bounds_hold()?;
                self.show();
            }
        }
        Ok(self.widest)
    }

    fn take(&mut self, pod: &Pod) {
        let image = pod.spec.iter().flat_map(|spec| &spec.containers).find_map(|container| container.image.as_deref());
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let updated = image.is_some_and(|image| image.ends_with(":2"));
        self.replicas.insert(name(pod).to_owned(), Replica { updated, ready });
    }

    fn count(&self, role: &str, test: impl Fn(&Replica) -> bool) -> usize {
        let of_role = |name: &str| name.rsplit_once('-').is_some_and(|(of, _)| of == role);
        self.replicas.iter().filter(|(name, replica)| of_role(name) && test(replica)).count()
    }

    #[expect(clippy::cast_precision_loss, reason = "a hundred pods")]
    fn share(&self, (role, all): (&str, usize)) -> f64 {
        100.0 * self.count(role, |replica| replica.updated) as f64 / all as f64
    }

    /// Checks that the shares differ by at most the allowed skew.
    fn bounds_hold(&mut self) -> Result<(), StageError> {
        let [prefill, decode] = ROLES.map(|role| self.share(role));
        self.widest = self.widest.max((prefill - decode).abs());
        if self.widest > MAX_SKEW {
            return Err(StageError::NotObserved(format!(
                "{prefill}% of prefill and {decode}% of decode are updated: more than {MAX_SKEW}% apart"
            )));
        }
        Ok(())
    }

    fn show(&mut self) {
        let bars = ROLES.iter().map(|(role, all)| {
            let updated = self.count(role, |replica| replica.updated);
            let done = self.count(role, |replica| replica.updated && replica.ready);
            let (bar, all) = (crate::screen::bar(done * WIDTH / all, updated * WIDTH / all, WIDTH), *all);
            format!("   {role:8} {bar}   {updated:3} of {all} updated, {done:3} of them ready")
        });
        let bars = bars.collect();
        let tens = ROLES.map(|role| (role.0, self.share(role)));
        let caption = tens.map(|(role, share)| format!("{role} {:3.0} %", (share / 10.0).floor() * 10.0)).join("   ");
        self.live.show(bars, caption, self.started.elapsed().as_secs_f64());
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}
