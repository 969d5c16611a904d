//! Objects as one input: those that are asked about, what they were before, and what is there beside them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// Golden cases, most of which have objects, old ones and others beside them.
const CASES: &str = "tests/cases";
/// Recorded AdmissionReviews.
const REVIEWS: &str = "tests/fixtures/reviews";

/// An input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Scenario {
    /// Objects that are asked about.
    pub objects: Vec<Value>,
    /// The same before.
    pub old: Vec<Value>,
    /// What is there beside them.
    pub with: Vec<Value>,
    /// Counts for `plan --state`.
    pub state: Option<Value>,
}

impl Scenario {
    /// Reads an input; `None` for what is none. What makes thousands of pods costs time and shows nothing new: such counts
    /// are made small, those beyond what is possible stay.
    pub fn read(data: &[u8]) -> Option<Self> {
        let mut scenario: Self = serde_json::from_slice(data).ok()?;
        let all = scenario.objects.iter_mut().chain(&mut scenario.old).chain(&mut scenario.with);
        all.chain(&mut scenario.state).for_each(|value| make_small(value, false));
        Some(scenario)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().chain(&self.with)
    }
}

/// Fields that count pods.
const COUNTS: &[&str] =
    &["replicas", "size", "created", "released", "scheduled", "ready", "updated", "minMember", "minAvailable"];

fn make_small(value: &mut Value, is_count: bool) {
    match value {
        Value::Number(number) if is_count => {
            if let Some(count) = number.as_u64().filter(|count| (200..5_000_000).contains(count)) {
                *value = (count % 200).into();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| make_small(value, is_count)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| make_small(value, COUNTS.contains(&key.as_str())));
        }
        _ => {}
    }
}

/// A text field of an object.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// API version and kind.
pub fn type_of(object: &Value) -> (&str, &str) {
    (text(object, "/apiVersion"), text(object, "/kind"))
}

/// The golden cases and recorded reviews.
pub fn seeds() -> Vec<Vec<u8>> {
    let cases = files(CASES, "yaml").into_iter().flat_map(|path| cases(&path));
    let reviews = reviews().into_iter().map(|review| {
        let request = &review["request"];
        json!({ "objects": list(&request["object"]), "old": list(&request["oldObject"]) })
    });
    cases.chain(reviews).map(|scenario| scenario.to_string().into_bytes()).collect()
}

/// The recorded reviews.
pub fn reviews() -> Vec<Value> {
    let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    files(REVIEWS, "json").into_iter().map(read).collect()
}

fn cases(path: &Path) -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().cloned().unwrap_or_default();
    let scenario = |case: &Value| {
        let objects = ["objects", "object"].iter().find_map(|field| case.get(*field))?;
        let (objects, old, with) = (list(objects), list(&case["old"]), list(&case["with"]));
        Some(json!({ "objects": objects, "old": old, "with": with, "state": case["state"] }))
    };
    cases.iter().filter_map(scenario).collect()
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        // The name of a file, whose objects are seeds of their own.
        Value::Null | Value::String(_) => Vec::new(),
        Value::Array(list) => list.iter().filter(|entry| entry.is_object()).cloned().collect(),
        one => vec![one.clone()],
    }
}

/// The files of a folder and those in it, sorted.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![PathBuf::from(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|of_it| of_it == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
