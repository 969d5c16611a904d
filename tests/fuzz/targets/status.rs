//! A status that anybody may have written, read back by the loop: what is written in its place is read as it was written, a
//! released count beyond what is desired releases nothing wrongly, and after a few passes nothing is left to be written.

use std::time::Duration;

use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::role_coordination::ROLE_COORDINATION;
use rolegate::api::status::GroupStatus;
use rolegate::api::{Pod, RoleBasedGroup, RoleCoordination};
use rolegate::cluster::index::{CarrierObject, Change, Index};
use rolegate::model::GroupKey;
use rolegate::plan::status::dropped;
use rolegate::plan::{Action, LoopOptions, MissingGroup, Question, Reconciler, StatusWrite};
use serde_json::{Value, json};

use super::plan::carriers;
use super::scenario::{self, Scenario, type_of};

const NOW: &str = "2026-01-01T00:00:00Z";
/// Passes after which nothing is committed any more while no pod changes.
const MOST_PASSES: u64 = 12;

/// The golden cases, and statuses as the loop writes them, and as it does not.
pub fn seeds() -> Vec<Vec<u8>> {
    let group = |status: Value| {
        let segments = |size: u32| json!({ "segmentPlacement": { "segmentSize": { "prefill": size, "decode": 1 } } });
        json!({
            "apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroup",
            "metadata": { "name": "g", "namespace": "ns", "generation": 2, "resourceVersion": "5" },
            "spec": {
                "roles": [{ "name": "prefill", "replicas": 4 }, { "name": "decode", "replicas": 2 }],
                "coordination": [
                    { "name": "s", "strategy": segments(2) },
                    { "name": "r", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": { "maxSkew": "10%" } } },
                ],
            },
            "status": status,
        })
    };
    let pod = |number: u32, node: Option<&str>| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("prefill-{number}"), "namespace": "ns", "uid": format!("p{number}"),
                "labels": { "rolegate.dev/group": "g", "rolegate.dev/role": "prefill", "apps.kubernetes.io/pod-index": number.to_string() },
            },
            "spec": { "nodeName": node, "schedulingGates": [{ "name": "rolegate.dev/hold" }] },
        })
    };
    let written = json!({
        "conditions": [{ "type": "Ready", "status": "False", "reason": "DeploymentInProgress", "message": "", "lastTransitionTime": NOW }],
        "coordinationState": [{
            "name": "s", "domains": { "0": "a", "1": "b" }, "lastUpdateTime": NOW,
            "progress": { "prefill": { "strategy": "segmentPlacement", "state": "Progressing", "released": 2 } },
        }],
        "firstReadyTime": NOW, "lastReadyReplicas": { "prefill": 4 }, "theirs": { "a": [1, 2.5, null] },
        "cohorts": { "last": 3, "roles": { "prefill": [{ "revision": "x", "cohort": "3" }] } },
        "summary": { "segments": "1/2", "ready": "2/6", "held": 4, "reason": "PreviousSegmentNotReady" },
    });
    let statuses = [
        written,
        json!({ "coordinationState": [{ "name": 7, "progress": { "prefill": { "released": -1 } } }] }),
        json!("x"),
    ];
    let scenarios = statuses
        .map(|status| json!({ "objects": [group(status)], "with": [pod(0, Some("n")), pod(1, None), pod(9, None)] }));
    scenario::seeds().into_iter().chain(scenarios.map(|scenario| scenario.to_string().into_bytes())).collect()
}

/// Tries one input.
pub fn run(data: &[u8]) {
    let Some(scenario) = Scenario::read(data) else { return };
    for (kind, object) in carriers(&scenario).filter(|(_, object)| object["metadata"].is_object()).take(1) {
        let mut world = World { index: Index::default(), object: object.clone() };
        world.object["metadata"]["uid"] = "carrier".into();
        if !world.tell(&GroupStatus::default(), false) {
            continue;
        }
        if kind == ROLE_COORDINATION {
            world.tell_groups(&scenario);
        }
        for pod in scenario.all().filter(|object| type_of(object) == ("v1", "Pod")) {
            if let Ok(pod) = serde_json::from_value::<Pod>(pod.clone()) {
                world.index.pod_change(0, Change::Applied(pod));
            }
        }
        for key in world.index.keys() {
            world.settle(&key);
        }
    }
}

struct World {
    index: Index,
    object: Value,
}

impl World {
    /// Tells of the carrier, with the status that it came with or another one; false where it cannot be read.
    fn tell(&mut self, status: &GroupStatus, is_written: bool) -> bool {
        if is_written {
            self.object["status"] = serde_json::to_value(status).expect("a status is JSON");
        }
        let object = self.object.clone();
        let carrier = if type_of(&self.object).1 == ROLE_COORDINATION.kind {
            serde_json::from_value::<RoleCoordination>(object).map(CarrierObject::coordination)
        } else {
            serde_json::from_value::<RoleBasedGroup>(object).map(|group| CarrierObject::rbg(ROLE_BASED_GROUP, &group))
        };
        let Ok(carrier) = carrier else { return false };
        if is_written {
            assert_eq!(dropped(status, carrier.status()), Vec::<&str>::new(), "{status:?}");
            assert_eq!(status.other, carrier.status().other);
        }
        self.index.apply_carrier(None, carrier);
        true
    }

    /// What a RoleCoordination refers to.
    fn tell_groups(&mut self, scenario: &Scenario) {
        for object in scenario.all().filter(|object| type_of(object).1 == ROLE_BASED_GROUP.kind) {
            if let Ok(group) = serde_json::from_value::<RoleBasedGroup>(object.clone()) {
                self.index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &group));
            }
        }
    }

    /// Passes with every write done, and no pod released.
    fn settle(&mut self, key: &GroupKey) {
        let options = LoopOptions { missing_group: MissingGroup::Hold, ..LoopOptions::default() };
        let mut reconciler = Reconciler::new(options);
        reconciler.sync([], Duration::ZERO);
        reconciler.lead(true, [key.clone()], Duration::ZERO);
        for pass in 1..=MOST_PASSES {
            let now = Duration::from_secs(40 * pass);
            reconciler.changed([key.clone()], now);
            let mut written = false;
            for action in reconciler.pass(key, &self.index.snapshot(key), None, now, NOW) {
                match &action {
                    Action::WriteStatus(StatusWrite::Group { status, .. }) if is_ours(&action) => {
                        written = true;
                        assert!(self.tell(status, true), "what is written can be read: {status:?}");
                    }
                    Action::Read(Question::Pods) => {
                        let all = self.index.snapshot(key).pods.iter().map(|pod| pod.pod.uid.to_string()).collect();
                        self.index.running_pods_read(key, &all, None);
                    }
                    _ => {}
                }
                action.ended(None).into_iter().for_each(|ended| reconciler.ended(key.clone(), ended, now));
            }
            if !written && pass > 2 {
                return;
            }
        }
        panic!("it is written again and again: {}", self.object["status"]);
    }
}

fn is_ours(action: &Action) -> bool {
    matches!(action, Action::WriteStatus(StatusWrite::Group { group, .. }) if group.carrier.uid == "carrier")
}
