//! The identity of pods: `tests/identities/*.yaml`, for every maker of pods and every trap in their labels, and pods
//! of real operators.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rolegate::api::Pod;
use rolegate::model::{CliquePod, OrdinalStarts, PodIdentity, identify, identify_clique_pod};
use serde::Deserialize;
use serde_json::{Value, json};

const ROOT: &str = "tests/identities";
const REVIEWS: &str = "tests/fixtures/reviews";
const NAMESPACE: &str = "ns";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    review: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    pod: Option<String>,
    generate_name: Option<String>,
    owner: Option<String>,
    #[serde(default)]
    start: i64,
    /// Whether it is stored already, with our gate or without.
    stored: Option<Gate>,
    is: Option<Identity>,
    clique: Option<Place>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Gate {
    Held,
    Free,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    group: String,
    role: Option<String>,
    ordinal: Option<u32>,
    member: Option<u32>,
    size: u32,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Place {
    set: String,
    set_replica: u32,
    scaling_group: Option<String>,
    group_replica: Option<u32>,
    clique: String,
    index: Option<u32>,
}

impl From<PodIdentity> for Identity {
    fn from(found: PodIdentity) -> Self {
        assert_eq!(&*found.group.namespace, NAMESPACE, "a group is in the namespace of the request");
        Self {
            group: found.group.name.to_string(),
            role: found.role.map(|role| role.to_string()),
            ordinal: found.ordinal,
            member: found.member,
            size: found.replica_size,
        }
    }
}

impl From<CliquePod> for Place {
    fn from(found: CliquePod) -> Self {
        let (scaling_group, group_replica) = found.scaling_group.unzip();
        Self {
            set: found.set,
            set_replica: found.set_replica,
            scaling_group,
            group_replica,
            clique: found.clique,
            index: found.index,
        }
    }
}

impl OrdinalStarts for Case {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        let owner = self.owner.as_deref().and_then(|owner| owner.strip_prefix("StatefulSet/"));
        if namespace == NAMESPACE && owner == Some(stateful_set) { self.start } else { 0 }
    }
}

impl Case {
    fn pod(&self) -> Pod {
        let mut object = match &self.review {
            Some(path) => {
                let text = fs::read_to_string(Path::new(REVIEWS).join(path)).expect("the recorded review is there");
                serde_json::from_str::<Value>(&text).expect("it is JSON")["request"]["object"].clone()
            }
            None => {
                json!({ "metadata": { "name": self.pod, "generateName": self.generate_name, "annotations": self.annotations } })
            }
        };
        for (key, value) in &self.labels {
            object["metadata"]["labels"][key] = json!(value);
        }
        if let Some((kind, name)) = self.owner.as_deref().and_then(|owner| owner.split_once('/')) {
            object["metadata"]["ownerReferences"] = json!([{ "kind": kind, "name": name, "controller": true }]);
        }
        if self.stored.is_some() {
            object["metadata"]["uid"] = json!("uid");
        }
        if self.stored == Some(Gate::Held) {
            object["spec"]["schedulingGates"] = json!([{ "name": "rolegate.dev/hold" }]);
        }
        serde_json::from_value(object).expect("a pod")
    }

    fn run(&self) -> Result<(), String> {
        let pod = self.pod();
        let identity = identify(&pod, NAMESPACE, self).map(Identity::from);
        let clique = identify_clique_pod(&pod).map(Place::from);
        if identity == self.is && clique == self.clique {
            return Ok(());
        }
        Err(format!("  expected {:?} {:?}\n  found    {identity:?} {clique:?}", self.is, self.clique))
    }
}

#[test]
fn every_case_is_who_it_says() {
    let (mut count, mut failed) = (0, Vec::new());
    for entry in fs::read_dir(ROOT).expect("the folder of cases is there") {
        let path = entry.expect("its entries are readable").path();
        let text = fs::read_to_string(&path).expect("a case file is readable");
        let cases: Vec<Case> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in cases {
            count += 1;
            if let Err(why) = case.run() {
                failed.push(format!("{}: {}\n{why}", path.display(), case.name));
            }
        }
    }
    println!("{count} identities, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {count} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
}
