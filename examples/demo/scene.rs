//! Observes the pods and conditions of the group, and checks the promised order.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::stream::{BoxStream, StreamExt, select};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use crate::screen::{Live, bar};
use crate::stage::StageError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PodState {
    released: bool,
    running: bool,
    ready: bool,
}

enum Seen {
    Pod(Box<Pod>),
    Group(Box<DynamicObject>),
}

/// The group `llm-service` while it starts.
pub struct Scene {
    events: BoxStream<'static, Result<Seen, watcher::Error>>,
    pods: BTreeMap<(String, usize), PodState>,
    conditions: Vec<(String, String, String, String)>,
    sizes: [(&'static str, usize); 2],
    live: Live,
    started: Instant,
}

impl Scene {
    /// Watches pods and group of the namespace `default`.
    pub fn watch(client: &Client, prefill: usize, decode: usize) -> Self {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let kind = GroupVersionKind::gvk("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup");
        let groups: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
        let pods = watcher(pods, watcher::Config::default())
            .applied_objects()
            .map(|pod| pod.map(|pod| Seen::Pod(Box::new(pod))));
        let groups = watcher(groups, watcher::Config::default())
            .applied_objects()
            .map(|group| group.map(|group| Seen::Group(Box::new(group))));
        Self {
            events: select(pods, groups).boxed(),
            pods: BTreeMap::new(),
            conditions: Vec::new(),
            sizes: [("prefill", prefill), ("decode", decode)],
            live: Live::default(),
            started: Instant::now(),
        }
    }

    /// Watches until a condition holds, and shows the progress of the segments.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), StageError> {
        while !holds(self) {
            match self.events.next().await {
                Some(Ok(Seen::Pod(pod))) => self.take_pod(&pod)?,
                Some(Ok(Seen::Group(group))) => self.take_group(&group),
                Some(Err(error)) => return Err(StageError::Watch(error.to_string())),
                None => return Err(StageError::NotObserved(what.to_owned())),
            }
            self.show();
        }
        Ok(())
    }

    /// Returns status, reason and message of a condition of the group.
    pub fn condition(&self, kind: &str) -> Option<(&str, &str, &str)> {
        let found = self.conditions.iter().find(|(name, ..)| name == kind)?;
        Some((&found.1, &found.2, &found.3))
    }

    /// Checks that 135 pods run, and that the fifteen pods of the tenth segment are held: there is room for ten of them.
    pub fn only_last_segment_is_pending(&self) -> Result<(), StageError> {
        let running = self.pods.values().filter(|pod| pod.running).count();
        let pending: Vec<_> = self.pods.iter().filter(|(_, pod)| !pod.running).collect();
        let early = pending.iter().find(|((role, ordinal), pod)| self.segment(role, *ordinal) != 9 || pod.released);
        match early {
            None if (running, pending.len()) == (135, 15) => Ok(()),
            None => {
                Err(StageError::NotObserved(format!("{running} pods run and {} wait, not 135 and 15", pending.len())))
            }
            Some(((role, ordinal), _)) => {
                Err(StageError::NotObserved(format!("{role}-{ordinal} waits and should not")))
            }
        }
    }

    fn segment(&self, role: &str, ordinal: usize) -> usize {
        self.sizes.iter().find(|(name, _)| *name == role).map_or(0, |(_, size)| ordinal / size)
    }

    fn take_pod(&mut self, pod: &Pod) -> Result<(), StageError> {
        let name = pod.name_any();
        let Some((role, ordinal)) =
            name.rsplit_once('-').and_then(|(role, ordinal)| Some((role, ordinal.parse().ok()?)))
        else {
            return Ok(());
        };
        let status = pod.status.clone().unwrap_or_default();
        let state = PodState {
            released: pod.spec.as_ref().is_none_or(|spec| spec.scheduling_gates.iter().flatten().count() == 0),
            running: status.phase.as_deref() == Some("Running"),
            ready: status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True"),
        };
        let before = self.pods.insert((role.to_owned(), ordinal), state);
        if state.released && before.is_none_or(|before| !before.released) {
            self.promise_is_kept(role, ordinal, before.is_none())?;
        }
        Ok(())
    }

    /// Checks that all pods of the previous segment are ready, and that a pod after the first segment was created with
    /// a gate.
    fn promise_is_kept(&self, role: &str, ordinal: usize, at_birth: bool) -> Result<(), StageError> {
        let segment = self.segment(role, ordinal);
        if at_birth && segment > 0 {
            return Err(StageError::NotObserved(format!(
                "{role}-{ordinal} was seen for the first time without a gate"
            )));
        }
        let Some(before) = segment.checked_sub(1) else { return Ok(()) };
        let is_ready = |key: (String, usize)| self.pods.get(&key).is_some_and(|pod| pod.ready);
        let missing = self.sizes.iter().find_map(|(role, size)| {
            let mut ordinals = before * size..(before + 1) * size;
            ordinals
                .find(|ordinal| !is_ready(((*role).to_owned(), *ordinal)))
                .map(|ordinal| format!("{role}-{ordinal}"))
        });
        match missing {
            None => Ok(()),
            Some(pod) => Err(StageError::NotObserved(format!("{role}-{ordinal} was released before {pod} was ready"))),
        }
    }

    fn take_group(&mut self, group: &DynamicObject) {
        let conditions = group.data.pointer("/status/conditions").and_then(Value::as_array);
        let text = |condition: &Value, key| condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.conditions = conditions
            .into_iter()
            .flatten()
            .map(|c| (text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message")))
            .collect();
    }

    fn show(&mut self) {
        let bars = (0..10).map(|segment| self.line(segment)).collect();
        let words =
            |kind| self.condition(kind).map(|(_, reason, message)| format!("{reason}: {message}")).unwrap_or_default();
        let caption = format!("{:40} {}", words("Ready"), words("MinimumSegmentsAvailable"));
        self.live.show(bars, caption, self.started.elapsed().as_secs_f64());
    }

    fn line(&self, segment: usize) -> String {
        let bars = self.sizes.iter().map(|(role, size)| {
            let pods = (segment * size..(segment + 1) * size)
                .filter_map(|ordinal| self.pods.get(&((*role).to_owned(), ordinal)));
            let (mut ready, mut released) = (0, 0);
            for pod in pods {
                ready += usize::from(pod.ready);
                released += usize::from(pod.released);
            }
            format!("{role} {}", bar(ready, released, *size))
        });
        format!("   segment {:2}   {}", segment + 1, bars.collect::<Vec<_>>().join("   "))
    }
}
