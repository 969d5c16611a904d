//! Golden cases with one field changed: what nobody thought of as a case. Twin and rule must agree there as well.

use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use rolegate::rules::judge::JUDGED;
use rolegate::rules::{Operation, World, judge_json};
use serde_json::{Value, json};

use crate::cluster::{Answer, may_create};
use crate::readme::Coverage;
use crate::twins::{self, Trial};

/// The same numbers in every run: a fault that is found once is found again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Values that some rule looks at.
fn values() -> Vec<Value> {
    vec![
        json!(null), json!(0), json!(-1), json!(1), json!(7), json!(2_147_483_648_u64), json!(""), json!("a"), json!("A b"),
        json!("prefill"), json!("decode"), json!("nil"), json!("0%"), json!("007%"), json!("101%"), json!("50%"), json!([]), json!({}),
        json!("OrderedReady"), json!("Parallel"), json!("soft"), json!("kubernetes.io/hostname"), json!("a/b/c"),
        json!({"kai": {}}), json!({"a": 1}), json!([{"name": "prefill"}]), json!("x".repeat(64)),
    ]
}

/// Paths of all fields and entries below a value.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{at}/{key}");
        paths(child, &path, found);
        found.push(path);
    }
}

fn mutate(object: &mut Value, dice: &mut Dice) -> String {
    let mut found = Vec::new();
    paths(&object["spec"], "/spec", &mut found);
    if found.is_empty() {
        return String::new();
    }
    let path = found.swap_remove(dice.below(found.len()));
    let (parent, key) = path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let values = values();
    let value = values[dice.below(values.len())].clone();
    let donor = found.get(dice.below(found.len().max(1))).and_then(|donor| object.pointer(donor)).cloned();
    let choice = dice.below(4);
    // A list where an object belongs is for the schema to refuse.
    let is_list = object.pointer(&path).is_some_and(Value::is_array);
    let (value, donor) = (Some(value), donor);
    let [value, donor] = [value, donor].map(|value| value.filter(|value| value.is_array() == is_list));
    match (object.pointer_mut(parent).unwrap(), choice) {
        (Value::Object(fields), 0) => _ = fields.remove(&key),
        (Value::Array(list), 0) => _ = list.remove(key.parse().unwrap()),
        (Value::Array(list), 1) => {
            let twice = list[key.parse::<usize>().unwrap()].clone();
            list.push(twice);
        }
        (Value::Object(fields), _) => {
            if let Some(value) = if choice == 2 { donor } else { value } {
                fields.insert(key, value);
            }
        }
        (Value::Array(list), _) => {
            if let Some(value) = value {
                list[key.parse::<usize>().unwrap()] = value;
            }
        }
        _ => {}
    }
    format!("{path} {choice}")
}

/// What the two do not agree about.
pub async fn disagreements(
    client: &Client,
    trials: &[Trial],
    coverage: &std::collections::BTreeMap<String, Coverage>,
    count: usize,
    seed: u64,
) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut mutants = Vec::new();
    let creations: Vec<_> =
        trials.iter().filter(|t| t.case.operation() == Operation::Create && t.case.before().is_none() && t.case.with.is_empty()).collect();
    while mutants.len() < count {
        let trial = creations[dice.below(creations.len())];
        let mut object = trial.case.object.clone();
        let what: Vec<_> = (0..=dice.below(2)).map(|_| mutate(&mut object, &mut dice)).collect();
        mutants.push((trial, object, what.join(", ")));
    }
    let asked = mutants.into_iter().map(|(trial, object, what)| async move {
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let world = World::of_manifests(rolegate::rules::Options::default());
        let judged = judge_json(api_version, kind, Operation::Create, &object.to_string(), None, &world)?.ok()?;
        let row = JUDGED.iter().map(|(row, _)| *row).find(|row| row.kind == kind && row.api_version() == api_version)?;
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(row.group, row.version, row.kind), row.plural);
        let api: Api<DynamicObject> = if row.namespaced {
            Api::namespaced_with(client.clone(), object["metadata"]["namespace"].as_str()?, &resource)
        } else {
            Api::all_with(client.clone(), &resource)
        };
        let answer = may_create(&api, &object).await;
        if matches!(answer, Answer::Invalid(_)) {
            return None;
        }
        let (kind, details) = twins::disagreement(&judged, &answer, coverage)?;
        if matches!(kind, "other words" | "more") {
            return None;
        }
        Some(format!("{} [{what}]\n  {kind}\n{details}    {}", trial.name, object["spec"]))
    });
    futures::stream::iter(asked).buffer_unordered(8).filter_map(async |found| found).collect().await
}
