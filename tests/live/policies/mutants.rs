//! Golden cases with one field changed: what nobody thought of as a case. Twin and rule must agree there as well.

use futures::StreamExt;
use rolegate::rules::{Operation, Options, World, judge_json};

use crate::common::prelude::*;
use crate::policies::cluster::{AT_ONCE, api_of, may_create};
use crate::policies::readme::Coverage;
use crate::policies::trial::Trial;
use crate::policies::twins;

/// How many are tried.
const COUNT: usize = 2000;
/// Which ones.
const SEED: u64 = 75;

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
        json!(null),
        json!(0),
        json!(-1),
        json!(1),
        json!(7),
        json!(2_147_483_648_u64),
        json!(""),
        json!("a"),
        json!("A b"),
        json!("prefill"),
        json!("decode"),
        json!("nil"),
        json!("0%"),
        json!("007%"),
        json!("101%"),
        json!("50%"),
        json!([]),
        json!({}),
        json!("OrderedReady"),
        json!("Parallel"),
        json!("soft"),
        json!("kubernetes.io/hostname"),
        json!("a/b/c"),
        json!({"kai": {}}),
        json!({"a": 1}),
        json!([{"name": "prefill"}]),
        json!("x".repeat(64)),
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

/// Removes, repeats or replaces one field or entry.
fn mutate(object: &mut Value, dice: &mut Dice) {
    let mut found = Vec::new();
    paths(&object["spec"], "/spec", &mut found);
    if found.is_empty() {
        return;
    }
    let path = &found[dice.below(found.len())];
    let values = values();
    let value = match dice.below(2) {
        0 => values[dice.below(values.len())].clone(),
        _ => object.pointer(&found[dice.below(found.len())]).unwrap().clone(),
    };
    // A list where an object belongs is for the schema to refuse.
    let fits = value.is_array() == object.pointer(path).unwrap().is_array();
    let choice = dice.below(4);
    let (parent, key) = path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent).unwrap() {
        Value::Object(fields) if choice == 0 => _ = fields.remove(&key),
        Value::Object(fields) if fits => _ = fields.insert(key, value),
        Value::Array(list) => {
            let index: usize = key.parse().unwrap();
            match choice {
                0 => _ = list.remove(index),
                1 => list.push(list[index].clone()),
                _ if fits => list[index] = value,
                _ => {}
            }
        }
        _ => {}
    }
}

/// What twin and rule do not agree about. Only whether they refuse: of several faults that hang together, each may name others.
pub async fn disagreements(client: &Client, trials: &[Trial], coverage: &BTreeMap<String, Coverage>) -> Vec<String> {
    let mut dice = Dice(SEED);
    let is_alone = |trial: &&Trial| trial.case.is_a_creation() && trial.case.with.is_empty();
    let creations: Vec<_> = trials.iter().filter(is_alone).collect();
    let mutants: Vec<_> = (0..COUNT)
        .map(|_| {
            let trial = creations[dice.below(creations.len())];
            let mut object = trial.case.object.clone();
            for _ in 0..=dice.below(2) {
                mutate(&mut object, &mut dice);
            }
            (trial, object)
        })
        .collect();
    let asked = mutants.into_iter().map(|(trial, object)| async move {
        let (kind, json) = (trial.kind, object.to_string());
        let world = World::of_manifests(Options::default());
        // What the rules cannot read they do not judge.
        let judged = judge_json(&kind.api_version(), kind.kind, Operation::Create, &json, None, &world)?.ok()?;
        let place = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let answer = may_create(&api_of(client, kind, place), &object).await;
        let (what, details) = twins::disagreement(&judged, &answer, coverage)?;
        let differs = !matches!(what, "other words" | "more");
        differs.then(|| format!("{}\n  {what}\n{details}    {}", trial.name, object["spec"]))
    });
    futures::stream::iter(asked).buffer_unordered(AT_ONCE).filter_map(async |found| found).collect().await
}
