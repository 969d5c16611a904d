//! Beside operators that are not run by these tests, a stand-in does what they were seen to do; what was once broken by it
//! stays mended.

mod authorizer;
pub mod cluster_autoscaler;
mod converter;
mod definitions;
mod habits;
mod operator;
mod pods;
mod sets;
mod statuses;

use k8s_openapi::api::core::v1::Pod;

use self::operator::{Operator, ROLE};
use crate::common::prelude::*;
use crate::policies::cluster::client_as;

/// The control plane of these tests and those of modes: it writes down who wrote what.
static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &["--audit"]);
    let rights = json!({ "apiGroups": ["", "apps", "workloads.x-k8s.io"], "resources": ["*"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"] });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": ROLE }, "rules": [rights] });
    plane.must(&["create", "-f", "-"], &role.to_string());
    plane
});

/// A namespace there.
pub async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}

/// What rolegate has written, by verb and resource, without its Lease and its Events.
fn writes(stage: &Stage) -> BTreeMap<String, u32> {
    let counts = Account::of(stage).counts().into_iter();
    let is_write = |what: &str| {
        ["create ", "patch ", "update ", "delete "].iter().any(|verb| what.starts_with(verb))
            && !["leases", "events", "selfsubject", "subjectaccess"].iter().any(|other| what.contains(other))
    };
    counts.filter(|(what, _)| is_write(what)).collect()
}

/// How long nobody may have written before both are at rest: longer than any of their pauses in a fight.
const REST: Duration = Duration::from_secs(2);

/// Waits until neither of the two has anything left to write.
async fn until_at_rest(stage: &Stage, operator: &Operator) {
    let mut known = (operator.done(), writes(stage), std::time::Instant::now());
    eventually(Duration::from_secs(30), "neither of the two writes any more", async || {
        let now = (operator.done(), writes(stage));
        if (&known.0, &known.1) != (&now.0, &now.1) {
            known = (now.0, now.1, std::time::Instant::now());
        }
        if known.2.elapsed() > REST { Ok(()) } else { Err(format!("{:?} {:?}", known.0, known.1)) }
    })
    .await;
}

/// How often something is tried in this time after pauses that double, from 0.2 s.
fn tries_in(time: Duration) -> u32 {
    let (mut tries, mut next) = (1, Duration::from_millis(200));
    let mut at = next;
    while at <= time {
        next *= 2;
        at += next;
        tries += 1;
    }
    tries
}

/// A pod by which it is seen that a policy is in force.
async fn make_probe(stage: &Stage, labels: &Value, gates: &[&str]) {
    let gates: Vec<_> = [gates, &["example.com/probe"]].concat().iter().map(|name| json!({ "name": name })).collect();
    let mut probe = bare_pod("probe", labels, &stage.namespace);
    probe["spec"]["schedulingGates"] = json!(gates);
    stage.create(probe).await;
}

/// Waits until a user's change of the probe would be refused with these words, or would be taken.
async fn until_refused(stage: &Stage, user: &str, change: &Value, words: Option<&str>) {
    let pods: Api<Pod> = Api::namespaced(client_as(&stage.plane, user).await, &stage.namespace);
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    eventually(PATIENT, "the policy is in force", async || {
        match (pods.patch("probe", &dry_run, &Patch::Merge(change)).await, words) {
            (Ok(_), None) => Ok(()),
            (Err(kube::Error::Api(status)), Some(words)) if status.message.contains(words) => Ok(()),
            (other, _) => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// A RoleCoordination that coordinates a RoleBasedGroup.
fn coordination_of(group: &Group, coordination: &Value) -> Value {
    object("rolegate.dev/v1alpha1", "RoleCoordination", &group.name)
        .spec(json!({ "groupRef": { "name": group.name }, "coordination": coordination }))
}
