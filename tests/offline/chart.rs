//! The Helm chart is written by hand: what it has in common with the program is the same. `tests/live/install` renders it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rolegate::cli::manifests::{authors, given};
use serde_json::{Value, json};

fn read(path: &str) -> Value {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn what_is_packed_by_hand_is_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = read("deploy/chart/Chart.yaml");
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(version), &json!(version)));
    assert_eq!(chart["description"], env!("CARGO_PKG_DESCRIPTION"));
    assert_eq!(read("deploy/krew/rolegate.yaml")["spec"]["version"], format!("v{version}"));
    let shown: Value = serde_json::from_str(chart["annotations"]["artifacthub.io/crds"].as_str().unwrap()).unwrap();
    let names = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    let shown = names(shown.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect());
    let files = rolegate::api::crd::files(false);
    assert_eq!(shown, names(files.iter().map(|(name, _)| name.strip_suffix(".yaml").unwrap()).collect()));
}

/// Values that may be left out, of those that have a schema of their own.
fn missing(schema: &Value, values: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else { return };
    for (name, field) in fields {
        match values.get(name) {
            Some(value) if value.as_object().is_some_and(|value| !value.is_empty()) => {
                missing(field, value, &format!("{at}{name}."), faults);
            }
            Some(_) => {}
            None => faults.push(format!("{at}{name}")),
        }
    }
}

#[test]
fn the_schema_of_the_values_has_no_value_that_is_not_there_and_the_bounds_of_the_program() {
    let (schema, values) = (read("deploy/chart/values.schema.json"), read("deploy/chart/values.yaml"));
    let mut faults = Vec::new();
    missing(&schema, &values, "", &mut faults);
    // Helm adds `global`, and what a part of the pod takes is not all set.
    faults
        .retain(|fault| !["global", "podSecurityContext.", "resources."].iter().any(|known| fault.starts_with(known)));
    assert_eq!(faults, [""; 0]);
    let properties = &schema["properties"];
    let given = format!("^--({})(=|$)", given().join("|"));
    assert_eq!(properties["extraArguments"]["items"]["not"]["pattern"], given);
    assert_eq!(properties["readyKinds"]["maxItems"], authors::MOST_READY_KINDS);
}
