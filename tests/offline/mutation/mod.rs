//! Reads and runs golden mutations.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rolegate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use rolegate::api::{self, Pod, pod_group::POD_GROUP};
use rolegate::model::{CliqueSet, Dialect, GangTree, identify_clique_pod};
use rolegate::mutate::{Patch, Subject, discover, fill_in_subgroup};
use serde::Deserialize;
use serde_json::Value;

/// Folders of cases.
pub const FOLDERS: &[&str] = &["tests/cases/discovery", "tests/cases/subgroup"];
/// Folder of recorded reviews.
const REVIEWS: &str = "tests/fixtures/reviews";

/// One case.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What it shows, in a phrase.
    pub name: String,
    /// The pod; or
    object: Option<Value>,
    /// the recorded review that it comes in.
    review: Option<String>,
    /// Objects that are there.
    #[serde(default)]
    with: Vec<Value>,
    /// Recorded reviews of objects that are there.
    #[serde(default)]
    with_reviews: Vec<String>,
    /// End of every DNS name.
    cluster_domain: Option<String>,
    /// What must come out.
    expect: Expect,
}

/// What must come out; what is left out is not compared.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// The patch, word for word.
    patch: Option<Value>,
    /// The whole environment of containers and init containers, by name: `NAME=value`, or `NAME` alone for other sources.
    #[serde(default)]
    env: BTreeMap<String, Vec<String>>,
    /// The first variables of containers.
    #[serde(default)]
    first: BTreeMap<String, Vec<String>>,
    /// Labels.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// All warnings.
    #[serde(default)]
    warnings: Vec<String>,
}

/// What a case makes of its pod.
pub struct Outcome {
    /// The changes.
    pub patch: Patch,
    /// The pod with them.
    pub after: Value,
    /// What is shown.
    pub warnings: Vec<String>,
}

impl Case {
    /// Mutates the pod and compares.
    pub fn run(&self) -> Result<(), String> {
        let Outcome { patch, after, warnings } = self.mutate();
        let mut wrong = Vec::new();
        let mut compare = |what: &str, expected: &dyn std::fmt::Debug, found: &dyn std::fmt::Debug| {
            if format!("{expected:?}") != format!("{found:?}") {
                wrong.push(format!("  {what}, expected: {expected:#?}\n  {what}, found: {found:#?}"));
            }
        };
        let expect = &self.expect;
        if let Some(expected) = &expect.patch {
            compare("patch", expected, &serde_json::from_str::<Value>(&patch.to_json()).expect("a patch is JSON"));
        }
        for (container, expected) in &expect.env {
            compare(container, expected, &environment(&after, container));
        }
        for (container, expected) in &expect.first {
            let found: Vec<_> = environment(&after, container).into_iter().take(expected.len()).collect();
            compare(container, expected, &found);
        }
        for (key, expected) in &expect.labels {
            compare(key, &Some(expected.as_str()), &after["metadata"]["labels"][key].as_str());
        }
        compare("warnings", &expect.warnings, &warnings);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// The case with another pod.
    pub fn with_pod(self, pod: Value) -> Self {
        Self { object: Some(pod), review: None, ..self }
    }

    /// Mutates the pod.
    pub fn mutate(&self) -> Outcome {
        let before = match (&self.object, &self.review) {
            (Some(object), None) => object.clone(),
            (None, Some(review)) => recorded(review),
            _ => panic!("{}: has one of object and review", self.name),
        };
        let with: Vec<_> =
            self.with.iter().cloned().chain(self.with_reviews.iter().map(|path| recorded(path))).collect();
        let pod: Pod = serde_json::from_value(before.clone()).expect("a pod");
        let namespace = pod.metadata.namespace().to_owned();
        let mut outcome = Outcome { patch: Patch::default(), after: before, warnings: Vec::new() };
        if let Some(place) = identify_clique_pod(&pod) {
            let sets = with.iter().filter_map(clique_set);
            let set = sets.filter(|set| *set.key.namespace == *namespace).find(|set| *set.key.name == place.set);
            let domain = self.cluster_domain.as_deref().unwrap_or("cluster.local");
            let discovery = discover(&pod, &namespace, &place, set.as_ref(), domain);
            outcome.patch.extend(discovery.patch);
            outcome.warnings.extend(discovery.warnings);
        }
        let subject = Subject::of(&pod, &namespace, &());
        if let (Some(key), Some(identity)) = (&subject.pod_group, &subject.identity)
            && let Some(tree) = with.iter().filter_map(gang_tree).find(|tree| tree.key == *key)
        {
            outcome.patch.extend(fill_in_subgroup(&pod, identity, &tree));
        }
        let operations: json_patch::Patch = serde_json::from_str(&outcome.patch.to_json()).expect("a JSON Patch");
        json_patch::patch(&mut outcome.after, &operations).expect("the patch applies");
        outcome
    }
}

fn recorded(path: &str) -> Value {
    let text = fs::read_to_string(Path::new(REVIEWS).join(path)).expect("the recorded review is there");
    serde_json::from_str::<Value>(&text).expect("it is JSON")["request"]["object"].clone()
}

fn clique_set(object: &Value) -> Option<CliqueSet> {
    let kind = [POD_CLIQUE_SET, POD_GANG_SET].into_iter().find(|kind| object["kind"] == kind.kind)?;
    let set: api::PodCliqueSet = serde_json::from_value(object.clone()).expect("a Grove set");
    Some(CliqueSet::from_set(kind, &set))
}

fn gang_tree(object: &Value) -> Option<GangTree> {
    (object["kind"] == POD_GROUP.kind).then(|| {
        let group: api::PodGroup = serde_json::from_value(object.clone()).expect("a PodGroup");
        GangTree::from_pod_group(&group, Dialect::of_object(&group.spec))
    })
}

/// The environment of a container or init container.
pub fn environment(pod: &Value, container: &str) -> Vec<String> {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| pod["spec"][list].as_array());
    let container = lists.flatten().find(|there| there["name"] == container).expect("the container is there");
    let variable = |variable: &Value| match (variable["name"].as_str(), variable["value"].as_str()) {
        (Some(name), Some(value)) => format!("{name}={value}"),
        (name, None) => name.unwrap_or_default().to_owned(),
        (None, Some(value)) => format!("={value}"),
    };
    container["env"].as_array().into_iter().flatten().map(variable).collect()
}

/// The case files of a folder, sorted.
pub fn files(folder: &str) -> Vec<(PathBuf, Vec<Case>)> {
    let entries = fs::read_dir(folder).expect("the folder of cases is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("its entries are readable").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a case file is readable");
        let cases = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, cases)
    };
    paths.into_iter().map(read).collect()
}
