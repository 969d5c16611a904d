//! Pod templates of a role of a RoleBasedGroup, with the patches of leader and workers.

use serde_json::{Map, Value};

use crate::api::rbg::Role;

/// Fields whose lists a strategic merge patch merges, with the key of their entries. It replaces other lists.
const MERGED: &[(&str, &str)] = &[
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("topologySpreadConstraints", "topologyKey"),
];

/// Field by which a patch says that it replaces or deletes.
const DIRECTIVE: &str = "$patch";

/// Returns the pod templates of one replica of a role, that of the leader first, each with its number of pods. Returns none
/// where the templates stand elsewhere (`templateRef`) or in components.
pub fn role_templates(role: &Role) -> Vec<(Value, u64)> {
    let pattern = role.leader_worker_set.as_ref().or(role.leader_worker_pattern.as_ref());
    let inline = [pattern, role.standalone_pattern.as_ref()].into_iter().flatten().find_map(|of| of.get("template"));
    let Some(template) = role.template.as_ref().or(inline).filter(|template| template.is_object()) else {
        return Vec::new();
    };
    let field =
        |names: [&str; 2]| names.into_iter().find_map(|name| pattern?.get(name).filter(|found| !found.is_null()));
    // A replica without pods would still be iterated over.
    let size = pattern.and_then(|of| of.get("size")).and_then(Value::as_u64).unwrap_or(1).max(1);
    let patches = [["patchLeaderTemplate", "leaderTemplatePatch"], ["patchWorkerTemplate", "workerTemplatePatch"]];
    let [leader, workers] = patches.map(field);
    if leader.or(workers).is_none() {
        return vec![(template.clone(), size)];
    }
    let of = |patch: Option<&Value>| patch.map_or_else(|| template.clone(), |patch| patched(template.clone(), patch));
    [(of(leader), 1), (of(workers), size - 1)].into_iter().filter(|(_, pods)| *pods > 0).collect()
}

/// Returns a value changed by a strategic merge patch.
fn patched(value: Value, patch: &Value) -> Value {
    let (mut fields, Value::Object(changes)) = (object(value), patch) else { return patch.clone() };
    if directive(patch) == Some("replace") {
        fields.clear();
    }
    for (key, change) in changes.iter().filter(|(key, change)| *key != DIRECTIVE && !change.is_null()) {
        let old = fields.remove(key).unwrap_or_default();
        let new = match (MERGED.iter().find(|(field, _)| field == key), change) {
            (Some((_, key)), Value::Array(changes)) => Value::Array(merged(old, changes, key)),
            _ => patched(old, change),
        };
        fields.insert(key.clone(), new);
    }
    fields.retain(|key, _| !changes.get(key).is_some_and(Value::is_null));
    Value::Object(fields)
}

/// Returns a list whose entries of one key are patched; those with a new key are added.
fn merged(list: Value, changes: &[Value], key: &str) -> Vec<Value> {
    let mut entries = if let Value::Array(entries) = list { entries } else { Vec::new() };
    if changes.iter().any(|change| directive(change) == Some("replace")) {
        entries.clear();
    }
    for change in changes.iter().filter(|change| change.get(key).is_some()) {
        let at = entries.iter().position(|entry| entry.get(key) == change.get(key));
        let old = at.map(|at| entries.remove(at)).unwrap_or_default();
        if directive(change) != Some("delete") {
            entries.insert(at.unwrap_or(entries.len()), patched(old, change));
        }
    }
    entries
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

fn directive(patch: &Value) -> Option<&str> {
    patch.get(DIRECTIVE)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leader_and_workers_have_the_template_with_their_patches() {
        let container =
            |gpus: u32, env: Value| json!({ "name": "main", "resources": { "limits": { "gpu": gpus } }, "env": env });
        let (a, b) = (json!({ "name": "A", "value": "1" }), json!({ "name": "B", "value": "2" }));
        let template = json!({ "spec": { "containers": [container(8, json!([a]))], "tolerations": [{ "key": "x" }] } });
        let patch = json!({ "spec": {
            "containers": [{ "name": "main", "resources": { "limits": { "gpu": 3 } }, "env": [b, { "name": "A", "$patch": "delete" }] }],
            "tolerations": [{ "key": "y" }],
            "nodeSelector": { "zone": "a" },
        } });
        let patched = json!({ "spec": {
            "containers": [container(3, json!([b]))],
            "tolerations": [{ "key": "y" }],
            "nodeSelector": { "zone": "a" },
        } });
        let old = json!({ "template": template, "leaderWorkerSet": { "size": 3, "patchWorkerTemplate": patch } });
        let new = json!({ "leaderWorkerPattern": { "size": 3, "template": template, "workerTemplatePatch": patch } });
        for role in [old, new] {
            let role: Role = serde_json::from_value(role).unwrap();
            assert_eq!(role_templates(&role), [(template.clone(), 1), (patched.clone(), 2)]);
        }
        let removed =
            json!({ "spec": { "tolerations": null, "containers": [{ "$patch": "replace" }, { "name": "other" }] } });
        let role = json!({ "template": template, "leaderWorkerSet": { "patchLeaderTemplate": removed } });
        let leader = json!({ "spec": { "containers": [{ "name": "other" }] } });
        assert_eq!(role_templates(&serde_json::from_value(role).unwrap()), [(leader, 1)]);
        let elsewhere = json!({ "standalonePattern": { "templateRef": { "name": "t" } } });
        assert_eq!(role_templates(&serde_json::from_value(elsewhere).unwrap()), []);
    }
}
