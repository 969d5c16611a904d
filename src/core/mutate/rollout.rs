//! The hold of a rollout (KEP-30): an update that would replace pods freezes the workload, and the loop thaws it in lockstep
//! with the other roles.

use json_patch::jsonptr::Token;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Patch;
use super::labels::workload_labels;
use crate::api::Meta;
use crate::model::rolled::asked_partition;
use crate::model::workload_kind::{RolloutFields, takes_partition};
use crate::model::{Group, RolloutClaim, WorkloadKind, is_of_rbg, names, rolling, rollout_claim};

/// The partition of a frozen workload, as a number of its spec.
const FROZEN: i64 = rolling::FROZEN as i64;
/// Field manager of the loop, whose updates are no requests.
pub const MANAGER: &str = "rolegate";
const BY: &[&str] = &[names::USER_PARTITION_BY];
/// Operations of `metadata.managedFields`.
const APPLY: &str = "Apply";
const UPDATE: &str = "Update";

/// Mutates an update of a workload that is or was claimed, by anyone but the loop. A change that replaces pods freezes it,
/// if a pod of its role was ready once (`served`); from zero replicas it replaces none. During a rollout the live partition
/// stays; the requested one is stored in an annotation, as a floor and to be restored at the end, with the manager that applies
/// it server-side. This holds without the claim too: the claim may come back at once, and otherwise the loop ends the hold. An
/// update strategy that takes no partition ends it at once.
pub fn hold_rollout(
    kind: WorkloadKind,
    old: &Value,
    new: &Value,
    claim: &RolloutClaim,
    group: &Group,
    served: bool,
    manager: Option<&str>,
) -> Patch {
    let mut patch = Patch::default();
    let Some(fields) = kind.row().rollout.filter(|_| group.rolls(&claim.role)) else { return patch };
    if !may_have_partition(fields, new) {
        return let_go(kind, old, new);
    }
    let (live, asked) = (partition_of(fields, old), partition_of(fields, new));
    let kept = annotation(old, names::USER_PARTITIONS);
    let open = kept.is_some();
    let meta = meta_of(new);
    let (claimed, of_rbg) = (rollout_claim(&meta, meta.namespace()).is_some(), is_of_rbg(&meta));
    // After another strategy pods of any revision may be left, which the controller would replace now.
    let revised = !may_have_partition(fields, old) || is_revised(fields, old, new);
    let from_zero = old.pointer("/spec/replicas").and_then(Value::as_i64) == Some(0);
    let freezes = revised && served && claimed && !from_zero;
    if !open && !freezes {
        return patch;
    }
    // What is made from zero is new.
    let wanted = match (revised, from_zero, kept) {
        (true, true, Some(kept)) => i64::from(asked_partition(kept)),
        (true, ..) => FROZEN,
        (false, ..) => live,
    };
    let written = annotation(new, names::USER_PARTITIONS);
    // A client that sends the partition it has read requests nothing, and neither does an update that comes back through
    // other webhooks. Only rolegate sets a frozen partition. The partitions set by the RoleBasedGroup operator are the steps
    // of its own rollout.
    let leaves_out = open && leaves_out(fields, old, new, manager);
    let asks_nothing = !leaves_out && (asked == FROZEN || (open && asked == live) || of_rbg);
    let told = written.or(kept).filter(|_| asks_nothing).map(str::to_owned);
    // The manager stands beside the partition that it asked for: a second review changes nothing.
    let by = match (&told, written) {
        (Some(_), Some(_)) => annotation(new, BY),
        (Some(_), None) => annotation(old, BY),
        (None, _) => applier(fields, new, manager),
    };
    let untold = match asks_nothing {
        _ if of_rbg || leaves_out => 0,
        true => live,
        false => asked,
    };
    let floor = told.unwrap_or_else(|| untold.to_string());
    let by = by.filter(|_| floor != "0").map(str::to_owned);
    let (user_partition, unclaimed) = if of_rbg {
        (names::USER_PARTITION_IN_RBG, names::UNCLAIMED_IN_RBG)
    } else {
        (names::USER_PARTITION, names::UNCLAIMED)
    };
    if by.is_none() {
        remove_notes(&mut patch, new, BY);
    }
    let mut annotations = vec![(user_partition, floor)];
    annotations.extend(by.map(|by| (names::USER_PARTITION_BY, by)));
    if !claimed {
        annotations.push((unclaimed, format!("{}/{}", claim.group.name, claim.role)));
    }
    patch.set_entries("/metadata/annotations", &meta.annotations, annotations);
    set_partition(fields, &mut patch, new, wanted);
    patch
}

/// Returns a warning where an update that freezes a workload adds replicas too, which its controller makes of the old template.
pub fn grows_old(kind: WorkloadKind, old: &Value, new: &Value, role: &str) -> Option<String> {
    let fields = kind.row().rollout?;
    let [before, after] =
        [old, new].map(|object| object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1));
    (0 < before && before < after && is_revised(fields, old, new)).then(|| {
        format!(
            "replicas {before} to {} of role {role:?} are made of the old template, and then updated in step with the others",
            after - 1
        )
    })
}

/// Reports whether an update replaces pods.
fn is_revised(fields: RolloutFields, old: &Value, new: &Value) -> bool {
    fields.revised.iter().any(|field| plain(old.pointer(field)) != plain(new.pointer(field)))
}

/// Labels a claimed workload at creation. While pods of its role exist, the workload was deleted without them, and they would
/// be replaced at once. So its creation counts as an update: its partition is stored, and it is frozen.
pub fn hold_created(
    kind: WorkloadKind,
    new: &Value,
    claim: &RolloutClaim,
    group: &Group,
    (has_pods, served): (bool, bool),
    manager: Option<&str>,
) -> Patch {
    let mut patch = Patch::default();
    let present = meta_of(new).labels;
    let labels = workload_labels(group, &claim.role).into_iter();
    // A selector may rely on an existing value.
    patch.set_entries("/metadata/labels", &present, labels.filter(|(key, _)| !present.contains_key(*key)));
    if has_pods {
        patch.extend(hold_rollout(kind, &json!({}), new, claim, group, served, manager));
    }
    patch
}

/// Ends the rollout of a workload that is no longer claimed and that nothing coordinates: it continues by itself, from the
/// partition of its user, if its update strategy takes one.
pub fn let_go(kind: WorkloadKind, old: &Value, new: &Value) -> Patch {
    let mut patch = Patch::default();
    let Some(fields) = kind.row().rollout else { return patch };
    let Some(kept) = annotation(old, names::USER_PARTITIONS) else { return patch };
    let (live, asked) = (partition_of(fields, old), partition_of(fields, new));
    remove_notes(&mut patch, new, names::NOTES_OF_ROLLOUTS);
    if may_have_partition(fields, new) && (asked == live || asked == FROZEN) {
        set_partition(fields, &mut patch, new, i64::from(asked_partition(kept)));
    }
    patch
}

/// Returns the JSON Merge Patch that sets a workload's partition; `None` leaves it, where the update strategy takes none. At the
/// end of a rollout it removes the annotation with the user's partition as well. `metadata` names the version of the workload.
/// `None` for a kind without a partition.
pub fn partition_patch(kind: WorkloadKind, partition: Option<u32>, ends: bool, mut metadata: Value) -> Option<Value> {
    let steps = kind.row().rollout?.partition.iter().rev();
    let set = |partition| steps.fold(json!(partition), |inner, step| json!({ (*step): inner }));
    let mut patch = partition.map_or_else(|| json!({}), set);
    if ends {
        let ours = names::NOTES_OF_ROLLOUTS.iter().map(|key| ((*key).to_owned(), Value::Null));
        let ours: Value = ours.collect();
        metadata.as_object_mut()?.insert("annotations".to_owned(), ours);
    }
    patch.as_object_mut()?.insert("metadata".to_owned(), metadata);
    Some(patch)
}

/// Returns the merge patch that ends the hold of a workload: it sets the user's partition and removes the annotations. `None`
/// when the workload is not held.
pub fn thaw(kind: WorkloadKind, workload: &Value) -> Option<Value> {
    let asked = asked_partition(annotation(workload, names::USER_PARTITIONS)?);
    let asked = Some(asked).filter(|_| kind.row().rollout.is_some_and(|fields| may_have_partition(fields, workload)));
    // Refused after a concurrent change, which may set another partition.
    let version = workload.pointer("/metadata/resourceVersion");
    partition_patch(kind, asked, true, json!({ "resourceVersion": version }))
}

/// Reports whether a workload is frozen by rolegate.
pub fn is_frozen(kind: WorkloadKind, workload: &Value) -> bool {
    let is_so = |fields| partition_of(fields, workload) == FROZEN;
    kind.row().rollout.is_some_and(is_so) && annotation(workload, names::USER_PARTITIONS).is_some()
}

/// Reports whether the manager that asked for the partition applies the workload server-side and leaves the partition out, and no other
/// applies one. Each step of the loop takes the field from its entry too: only a request of its own counts, and none that changes its
/// entry of updates.
fn leaves_out(fields: RolloutFields, old: &Value, new: &Value, manager: Option<&str>) -> bool {
    let Some(manager) = manager.filter(|manager| annotation(old, BY) == Some(*manager)) else { return false };
    let of = |object, operation| entries(object, operation).filter(|entry| is_of(entry, manager)).collect::<Vec<_>>();
    let is_applied = entries(new, APPLY).any(|entry| has_partition(fields, entry));
    !is_applied && !of(new, APPLY).is_empty() && of(old, UPDATE) == of(new, UPDATE)
}

/// Returns the manager that applies the partition server-side: that of the request, or another one.
fn applier<'a>(fields: RolloutFields, new: &'a Value, manager: Option<&str>) -> Option<&'a str> {
    let of_partition = || entries(new, APPLY).filter(|entry| has_partition(fields, entry));
    let of_request = of_partition().find(|entry| manager.is_some_and(|manager| is_of(entry, manager)));
    of_request.or_else(|| of_partition().next())?.get("manager")?.as_str()
}

/// Returns the entries of an operation on the object itself in `metadata.managedFields`.
fn entries<'a>(workload: &'a Value, operation: &'static str) -> impl Iterator<Item = &'a Value> {
    let all = workload.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &'a Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    all.filter(move |entry| text(entry, "operation") == operation && text(entry, "subresource").is_empty())
}

fn is_of(entry: &Value, manager: &str) -> bool {
    entry.get("manager").and_then(Value::as_str) == Some(manager)
}

fn has_partition(fields: RolloutFields, entry: &Value) -> bool {
    let mut steps = fields.partition.iter();
    entry.get("fieldsV1").and_then(|owned| steps.try_fold(owned, |at, step| at.get(format!("f:{step}")))).is_some()
}

/// Removes those of these annotations that a workload has.
fn remove_notes(patch: &mut Patch, workload: &Value, keys: &[&str]) {
    for key in keys.iter().filter(|key| annotation(workload, &[key]).is_some()) {
        patch.remove(format!("/metadata/annotations/{}", Token::new(*key).encoded()));
    }
}

fn may_have_partition(fields: RolloutFields, workload: &Value) -> bool {
    takes_partition(workload.pointer(fields.strategy).and_then(Value::as_str))
}

fn partition_of(fields: RolloutFields, workload: &Value) -> i64 {
    let partition = fields.partition.iter().try_fold(workload, |value, step| value.get(step));
    partition.and_then(Value::as_i64).unwrap_or(0)
}

/// Sets the partition unless it is equal, and creates missing parents.
fn set_partition(fields: RolloutFields, patch: &mut Patch, workload: &Value, partition: i64) {
    if partition_of(fields, workload) == partition {
        return;
    }
    let (mut at, mut value) = (String::new(), workload);
    let mut steps = fields.partition.iter();
    for step in steps.by_ref() {
        at = format!("{at}/{step}");
        match value.get(step).filter(|next| next.is_object()) {
            Some(next) => value = next,
            None => break,
        }
    }
    let missing = steps.rev().fold(json!(partition), |inner, step| json!({ (*step): inner }));
    patch.add(at, missing);
}

fn meta_of(workload: &Value) -> Meta {
    workload.get("metadata").map(Meta::deserialize).and_then(Result::ok).unwrap_or_default()
}

/// Returns the value of the first of these annotations that a workload has.
fn annotation<'a>(workload: &'a Value, keys: &[&str]) -> Option<&'a str> {
    let annotations = workload.get("metadata")?.get("annotations")?;
    keys.iter().find_map(|key| annotations.get(*key)?.as_str())
}

/// Returns a template as the API server compares it: absent, `null` and empty fields are equal.
fn plain(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Object(fields)) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), plain(Some(value))));
            let kept: serde_json::Map<_, _> = kept.filter(|(_, value)| !value.is_null()).collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Some(Value::Array(list)) if list.is_empty() => Value::Null,
        Some(Value::Array(list)) => list.iter().map(|value| plain(Some(value))).collect(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_that_come_with_a_new_template_are_told_to_be_old_at_first() {
        let set =
            |replicas: u32, image: &str| json!({ "spec": { "replicas": replicas, "template": { "image": image } } });
        let told = |old: &Value, new: &Value| grows_old(WorkloadKind::StatefulSet, old, new, "prefill");
        let text = "replicas 6 to 11 of role \"prefill\" are made of the old template, and then updated in step with the others";
        assert_eq!(told(&set(6, "a"), &set(12, "b")).as_deref(), Some(text));
        for (old, new) in [(set(6, "a"), set(12, "a")), (set(0, "a"), set(9, "b")), (set(6, "a"), set(6, "b"))] {
            assert_eq!(told(&old, &new), None);
        }
    }

    #[test]
    fn a_thawed_workload_goes_to_the_partition_that_its_user_asked_for() {
        let frozen = json!({ "metadata": { "resourceVersion": "7", "annotations": { (names::USER_PARTITION): "3" } } });
        let ours: Value = names::NOTES_OF_ROLLOUTS.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        let metadata = json!({ "resourceVersion": "7", "annotations": ours });
        let set = json!({ "updateStrategy": { "rollingUpdate": { "partition": 3 } } });
        let leader_worker_set = json!({ "rolloutStrategy": { "rollingUpdateConfiguration": { "partition": 3 } } });
        for (kind, spec) in [(WorkloadKind::StatefulSet, set), (WorkloadKind::LeaderWorkerSet, leader_worker_set)] {
            assert_eq!(thaw(kind, &frozen), Some(json!({ "metadata": metadata, "spec": spec })), "{kind:?}");
            assert_eq!(thaw(kind, &json!({ "metadata": {} })), None, "{kind:?}");
        }
        let on_delete = json!({ "metadata": frozen["metadata"], "spec": { "updateStrategy": { "type": "OnDelete" } } });
        assert_eq!(thaw(WorkloadKind::StatefulSet, &on_delete), Some(json!({ "metadata": metadata })));
        assert_eq!(thaw(WorkloadKind::Deployment, &frozen), None);
    }

    #[test]
    fn a_workload_that_is_let_go_is_set_to_what_its_user_asked_for_where_it_is_not_there_already() {
        let kept = json!({ "annotations": { (names::USER_PARTITION): "3" } });
        let at = |metadata: &Value, partition: i64| json!({ "metadata": metadata, "spec": { "updateStrategy": { "rollingUpdate": { "partition": partition } } } });
        let mut set = Patch::default();
        set.add("/spec/updateStrategy/rollingUpdate/partition", 3);
        for (live, asked, patch) in
            [(5, 5, set.clone()), (5, FROZEN, set), (3, 3, Patch::default()), (5, 2, Patch::default())]
        {
            let made = let_go(WorkloadKind::StatefulSet, &at(&kept, live), &at(&json!({}), asked));
            assert_eq!(made, patch, "{asked} is asked for at {live}");
        }
    }
}
