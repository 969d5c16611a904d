//! StatefulSets that an operator keeps as it wants them.

use super::habits::{ANNOTATIONS_COMPARED, PARTITION_STEPPED, SET_LABELS_RESET, SET_MADE_ANEW, SETS_MADE};
use super::operator::{Operator, Wanted};
use super::{coordination_of, stage, until_at_rest, writes};
use crate::common::prelude::*;
use crate::rollouts::support::{FROZEN, REVISION, rolling};

const NOT_READY: &str = "kwok.rolegate.dev/not-ready";
const NEW: &str = "registry.invalid/x:2";
const OLD: &str = "registry.invalid/x:1";

/// A RoleBasedGroup whose StatefulSets an operator makes, beside a RoleCoordination.
struct Kept {
    stage: Stage,
    group: Group,
    statuses: StatusLog,
    operator: Operator,
    _rolegate: Rolegate,
}

impl Kept {
    async fn by(namespace: &str, habits: &[&'static super::habits::Habit]) -> Self {
        Self::rolled_by(namespace, habits, &json!({})).await
    }

    /// The same, with more fields of the rolling update, and the right to delete pods.
    async fn rolled_by(namespace: &str, habits: &[&'static super::habits::Habit], more: &Value) -> Self {
        let stage = stage(namespace).await.with_room(16).await;
        let rolegate = stage.launch().flag("allow", "recovery").flag("settle", "2s").start().await;
        let group = Group::new("llm").role("prefill", 8, 4).role("decode", 4, 2);
        let roles = group.object()["spec"]["roles"].clone();
        let mut object = object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", "llm").spec(json!({ "roles": roles }));
        object["metadata"]["annotations"] = json!({ "rolegate.dev/group": "llm" });
        let made = stage.create(object).await;
        let mut bounds = json!({ "maxSkew": "25%", "maxUnavailable": "25%" });
        json_patch::merge(&mut bounds, more);
        let segments = group.object()["spec"]["coordination"][0].clone();
        stage.create(coordination_of(&group, &json!([segments, rolling(&bounds)[0]]))).await;
        let statuses = stage.coordination_statuses("llm");
        let uid = made.metadata.uid.unwrap();
        let sets = group.roles.iter().map(|role| as_rbg(group.set(role, namespace), &group, &role.name, &uid));
        let wanted = Wanted { sets: sets.collect(), ..Wanted::default() };
        let operator = Operator::start(&stage, "llm", wanted, habits).await;
        statuses.until("it serves", |status| status.ready().starts_with("True")).await;
        invariants::all_born_held(&stage.pods);
        invariants::released_in_order(&stage.pods, &group);
        Self { stage, group, statuses, operator, _rolegate: rolegate }
    }

    /// Has the operator want another image; its pods do not become ready where `not_ready` is a text.
    fn wants(&self, image: &str, not_ready: &Value) {
        self.operator.want(|wanted| {
            for template in wanted.sets.iter_mut().map(|set| &mut set["spec"]["template"]) {
                template["spec"]["containers"][0]["image"] = json!(image);
                template["metadata"]["annotations"] =
                    if not_ready.is_null() { Value::Null } else { json!({ NOT_READY: not_ready }) };
            }
        });
    }

    /// Has the operator want another image, and waits until all pods have it, in step.
    async fn rolls(&self) {
        let first = self.stage.pods.uids();
        self.wants(NEW, &Value::Null);
        let is_new = |pod: &Pod| first.get(&pod.name) != Some(&pod.uid);
        let all = |now: &View| now.count_all(|pod| is_new(pod) && pod.is_ready()) == 12;
        self.stage.pods.until("all are new", all).await;
        let over = |status: &Status| {
            let states = status.0["coordinationState"].as_array().cloned().unwrap_or_default();
            let states = states.iter().flat_map(|of| of["progress"].as_object().cloned().unwrap_or_default());
            let states: Vec<_> = states.map(|(_, of)| of["state"].clone()).collect();
            status.ready().starts_with("True") && states.iter().all(|state| state == "Complete")
        };
        self.statuses.until("it is over", over).await;
        let roles = ["prefill", "decode"].map(|name| (name, self.group.find(name).replicas));
        invariants::rolled_in_step(&self.stage.pods, roles, is_new, 25, &|desired| desired / 4);
        invariants::nobody_was_held_again(&self.stage.pods);
        until_at_rest(&self.stage, &self.operator).await;
        // A step of a replica at a time, and the thaw, of 8 and 4.
        let partitions = writes(&self.stage)["patch statefulsets"];
        assert!(partitions <= 2 * (8 + 4 + 2), "{partitions} partitions");
    }
}

/// As RBG v0.8 makes the StatefulSet of a role: its labels, an owner, and the annotations of the role handed on.
fn as_rbg(mut set: Value, group: &Group, role: &str, uid: &str) -> Value {
    let labels = json!({ "rbg.workloads.x-k8s.io/group-name": group.name, "rbg.workloads.x-k8s.io/role-name": role });
    let owner = owner("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", &group.name, uid);
    set["metadata"]["labels"] = labels.clone();
    set["metadata"]["annotations"] = json!({ "rolegate.dev/rollout": "enabled" });
    set["metadata"]["ownerReferences"] = json!([owner]);
    set["spec"]["selector"]["matchLabels"] = labels.clone();
    set["spec"]["template"]["metadata"]["labels"] = labels;
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], OLD);
    set
}

#[tokio::test]
async fn an_operator_that_compares_what_it_wrote_sees_no_edit_and_its_steps_are_not_its_users() {
    let habits = [&SETS_MADE, &ANNOTATIONS_COMPARED, &SET_LABELS_RESET, &PARTITION_STEPPED];
    let kept = Kept::by("compared", &habits).await;
    kept.rolls().await;
    let done = kept.operator.done();
    assert_eq!((done.of(&ANNOTATIONS_COMPARED), done.refused.len()), (2, 0), "{done:?}");
}

#[tokio::test]
async fn an_operator_that_makes_its_sets_anew_rolls_in_step() {
    let kept = Kept::by("made-anew", &[&SETS_MADE, &SET_MADE_ANEW]).await;
    kept.rolls().await;
    let done = kept.operator.done();
    assert_eq!((done.of(&SET_MADE_ANEW), done.of(&SETS_MADE), done.refused.len()), (2, 4, 0), "{done:?}");
}

/// The operator wants the new version all the time, asks for its own steps, and takes nothing for an edit. When it wants the old
/// version again, the rollout is over.
#[tokio::test]
async fn the_sets_of_an_operator_go_back_while_it_wants_the_new_version() {
    let habits = [&SETS_MADE, &ANNOTATIONS_COMPARED, &SET_LABELS_RESET, &PARTITION_STEPPED];
    let kept = Kept::rolled_by("kept-back", &habits, &json!({ "onFailure": "Rollback", "failAfter": "3s" })).await;
    let revision = |pod: &Pod| pod.labels.get(REVISION).cloned().unwrap_or_default();
    let first: BTreeSet<_> = kept.stage.pods.now(|now| now.all().map(revision).collect());
    let is_old = |pod: &Pod| first.contains(&revision(pod));
    let all_old = |now: &View| now.count_all(|pod| is_old(pod) && pod.is_ready()) == 12;
    kept.wants(NEW, &json!(""));
    kept.stage.pods.until("a pod is new", |now| now.count_all(|pod| !is_old(pod)) > 0).await;
    let back = |status: &Status| {
        status.condition("RolledBack").starts_with("True ReplicasNotReady")
            && status.ready().starts_with("True RolledBack")
    };
    kept.statuses.until("it is back", back).await;
    let look = async || (kept.stage.pods.now(all_old), kept.statuses.now());
    holds(Duration::from_secs(3), "it stays so", look, |(old, status)| *old && back(status)).await;
    for set in kept.stage.list::<StatefulSet>().await {
        let spec = serde_json::to_value(&set.spec).unwrap();
        assert_eq!(spec["template"]["spec"]["containers"][0]["image"], NEW, "{spec}");
        assert_eq!(spec["updateStrategy"]["rollingUpdate"]["partition"], FROZEN, "{spec}");
    }
    let done = kept.operator.done();
    assert_eq!((done.of(&ANNOTATIONS_COMPARED), done.of(&SETS_MADE), done.refused.len()), (2, 2, 0), "{done:?}");
    kept.wants(OLD, &Value::Null);
    let over = |status: &Status| status.ready().starts_with("True All") && status.condition("RolledBack").is_empty();
    kept.statuses.until("it is over", over).await;
    kept.stage.pods.now(|now| assert!(all_old(now), "{now}"));
}
