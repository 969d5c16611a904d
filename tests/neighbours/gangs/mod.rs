//! What every scheduler of gangs must do with the batches that rolegate hands it: the same stories for each, whose pods and
//! PodGroups are written in its own words.

pub mod stories;

use std::sync::mpsc;

use crate::common::prelude::*;
use crate::program::{Neighbour, Running};

/// Its PodGroups, and how pods come to it.
pub struct Gangs {
    pub neighbour: &'static Neighbour,
    /// `spec.schedulerName` of its pods.
    pub scheduler: &'static str,
    /// API group and version of its PodGroups.
    pub api: (&'static str, &'static str),
    /// `podGroupPolicy` of a coordination.
    pub policy: Value,
}

/// The stories with one neighbour, each in a namespace of its own whose name begins with this: its gangs, and its stage.
macro_rules! gang_stories {
    ($prefix:literal, $gangs:expr, $stage:path, $reason:literal) => {
        $crate::gangs::gang_stories! { $prefix, $gangs, $stage, $reason,
            steps_are_gangs_one_after_another "steps", of_two_groups_one_has_the_room "two",
            rollouts_and_recreated_pods_go_one_by_one "rollout", pod_groups_go_with_their_batches "scale" }
    };
    ($prefix:literal, $gangs:expr, $stage:path, $reason:literal, $($story:ident $end:literal),*) => {$(
        #[tokio::test]
        #[ignore = $reason]
        async fn $story() {
            $crate::gangs::stories::$story(&$gangs, &$stage(concat!($prefix, "-", $end)).await).await;
        }
    )*};
}

pub(crate) use gang_stories;

/// Starts what the tests of one neighbour share, from a thread that stays: its programs end with the thread that starts them.
pub fn start<T: Send + Sync + 'static>(begin: impl FnOnce() -> T + Send + 'static) -> Arc<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        tell.send(Arc::new(begin())).unwrap();
        loop {
            std::thread::park();
        }
    });
    told.recv().unwrap()
}

/// None of them has ended by itself.
pub fn all_run(programs: &mut [Running]) {
    let ended: Vec<_> = programs.iter_mut().filter_map(Running::ended).collect();
    assert!(ended.is_empty(), "{}", ended.join("\n"));
}

/// A control plane whose own scheduler is there as well, with a neighbour's definitions from these folders.
pub fn plane(neighbour: &Neighbour, definitions: &[&str]) -> Arc<ControlPlane> {
    let plane = ControlPlane::start_with_groups("kwok", &[]);
    for folder in definitions {
        plane.must(&["create", "-f", neighbour.built().join(folder).to_str().unwrap()], "");
    }
    plane.until_defined();
    Arc::new(plane)
}

impl Gangs {
    /// The group with steps of two prefill and one decode pod, each of which is a gang.
    pub fn object(&self, group: &Group) -> Value {
        let constraint = json!({ "podGroupPolicy": self.policy });
        let deploy = json!({ "roleDeployStep": { "prefill": 2, "decode": 1 }, "deployTopologyConstraint": constraint });
        group.coordinated(&json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }]))
    }

    /// So many steps of three pods, which name its scheduler.
    pub fn group(&self, name: &str, steps: u32) -> Group {
        let group = Group::new(name).role("prefill", 2 * steps, 2).role("decode", steps, 1);
        let group = group.template(&asking(&json!({ "requests": { "cpu": "1" } })));
        group.template(&json!({ "spec": { "schedulerName": self.scheduler } }))
    }

    /// Creates the group and then its workloads.
    pub async fn deploy(&self, stage: &Stage, group: &Group) {
        stage.create(self.object(group)).await;
        stage.create_sets(group).await;
    }

    pub fn pod_groups(&self, stage: &Stage) -> Api<DynamicObject> {
        stage.objects(self.api.0, self.api.1, "PodGroup")
    }

    /// Names of the PodGroups that are there, without that of the namespace, each with its members.
    pub async fn members(&self, stage: &Stage) -> Vec<(String, u64)> {
        let list = self.pod_groups(stage).list(&ListParams::default()).await.unwrap();
        let prefix = format!("{}.", stage.namespace);
        let member = |object: DynamicObject| {
            let name = object.metadata.name.unwrap();
            let members = object.data["spec"]["minMember"].as_u64().unwrap_or_default();
            (name.strip_prefix(&prefix).map_or_else(|| name.clone(), str::to_owned), members)
        };
        list.into_iter().map(member).collect()
    }

    /// Waits until these PodGroups are there, and no others.
    pub async fn until_members(&self, stage: &Stage, what: &str, wanted: &[(&str, u64)]) {
        let wanted: Vec<_> = wanted.iter().map(|(name, members)| ((*name).to_owned(), *members)).collect();
        until_is(what, async || self.members(stage).await, wanted).await;
    }

    /// Waits until the scheduler has said of a step that it does not fit, and none of its pods has a node. Of a gang that was
    /// tried as a whole KAI says so on those pods where it ended.
    pub async fn until_refused(&self, stage: &Stage, group: &Group, step: u32) {
        let of_step = |pod: &&ApiPod| is_in(group, step, pod.metadata.name.as_deref().unwrap_or_default());
        let verdicts = async || stage.list::<ApiPod>().await.iter().filter(of_step).map(verdict).collect::<Vec<_>>();
        until_found("a word of the scheduler on the step", verdicts, |words| {
            words.len() == 3 && words.iter().any(|(reason, _)| !["", "SchedulingGated"].contains(&&**reason))
        })
        .await;
        let name = |pod: &Pod| is_in(group, step, &pod.name) && pod.is_scheduled();
        stage.pods.now(|now| assert_eq!(now.count_all(name), 0, "a part of the step has nodes: {now}"));
    }

    /// Waits until all pods of the first steps have a node and are ready.
    pub async fn until_ready(&self, stage: &Stage, group: &Group, steps: u32) {
        let what = format!("{steps} steps of {} run", group.name);
        let ready = |pod: &Pod| (0..steps).any(|step| is_in(group, step, &pod.name)) && pod.is_ready();
        stage.pods.until(&what, |now| now.count_all(ready) == usize::try_from(3 * steps).unwrap()).await;
    }

    /// Gives the pods of a role another image.
    pub async fn edit(&self, stage: &Stage, group: &Group, role: &str, image: &str) {
        let container = json!({ "name": "main", "image": image });
        let patch = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        let sets = stage.api::<StatefulSet>();
        sets.patch(&group.set_name(role), &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    }
}

/// Creates a class of pods.
pub fn priority_class(stage: &Stage, name: &str, value: i32) {
    let api = "scheduling.k8s.io/v1";
    let class = json!({ "apiVersion": api, "kind": "PriorityClass", "metadata": { "name": name }, "value": value });
    stage.plane.must(&["create", "-f", "-"], &class.to_string());
}

/// True for a pod's name in a step of the group.
pub fn is_in(group: &Group, step: u32, pod: &str) -> bool {
    group.roles.iter().any(|role| {
        let ordinals = step * role.segment..(step + 1) * role.segment;
        ordinals.into_iter().any(|ordinal| pod == format!("{}-{ordinal}", group.set_name(&role.name)))
    })
}

/// Why a pod has no node, in the scheduler's words: reason and message.
pub fn verdict(pod: &ApiPod) -> (String, String) {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let refused = conditions.into_iter().find(|known| known.type_ == "PodScheduled" && known.status == "False");
    refused
        .map(|known| (known.reason.clone().unwrap_or_default(), known.message.clone().unwrap_or_default()))
        .unwrap_or_default()
}

/// Nodes were never given to a part of a step alone: between the first of its pods and the last nothing else was given one,
/// and all got theirs.
pub fn bound_as_gangs(stage: &Stage, group: &Group, steps: u32) {
    let events = stage.pods.events();
    let bound: Vec<_> =
        events.iter().filter(|event| event.step == Step::Scheduled).map(|event| &event.pod.name).collect();
    let of_group = bound.iter().filter_map(|name| (0..steps).find(|step| is_in(group, *step, name)));
    let steps_bound: Vec<_> = of_group.take(usize::try_from(3 * steps).unwrap()).collect();
    let wanted: Vec<_> = (0..steps).flat_map(|step| [step; 3]).collect();
    assert_eq!(steps_bound, wanted, "{bound:?}");
}
