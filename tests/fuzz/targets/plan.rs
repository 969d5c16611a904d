//! `plan` of any groups, from the beginning and from any counts: it ends soon, with releases that never fall.

use std::collections::BTreeMap;
use std::fs;

use rolegate::api::ObjectKind;
use rolegate::cli::{check, fit, plan};
use rolegate::model::{CARRIERS, Group};
use rolegate::plan::{ObservedCounts, decide_once, simulate};
use rolegate::rules::{Options, World, judge_group, read_group};
use serde_json::{Value, json};

use super::documents::{args, in_folder};
use super::scenario::{Scenario, type_of};

/// Tries one input.
pub fn run(data: &[u8]) {
    let Some(scenario) = Scenario::read(data) else { return };
    commands(&scenario);
    let mut world = World::of_manifests(Options::default());
    for object in scenario.all() {
        let (api_version, kind) = type_of(object);
        _ = world.add_json(api_version, kind, &object.to_string());
    }
    for (kind, object) in carriers(&scenario) {
        let Ok(group) = read_group(kind, &object.to_string(), &world) else { continue };
        let faults = judge_group(&group, None, &world).errors;
        // Also of what would be refused: a stored group may be of before its rule.
        whole(&group);
        let state = scenario.state.clone().and_then(|state| serde_json::from_value::<ObservedCounts>(state).ok());
        _ = decide_once(&group, &faults, &state.unwrap_or_default(), &BTreeMap::new(), None);
    }
}

/// The objects that carry groups.
pub fn carriers(scenario: &Scenario) -> impl Iterator<Item = (ObjectKind, &Value)> {
    scenario.objects.iter().filter_map(|object| {
        let (api_version, kind) = type_of(object);
        let kind = CARRIERS.iter().find(|known| known.kind == kind && known.api_version() == api_version)?;
        Some((*kind, object))
    })
}

fn whole(group: &Group) {
    let Ok(run) = simulate(group, &[], &BTreeMap::new(), None) else { return };
    for pair in run.steps.windows(2) {
        for (role, count) in &pair[0] {
            assert!(pair[1].get(role).is_some_and(|next| next >= count), "{role} falls: {:?}", run.steps);
        }
    }
}

fn commands(scenario: &Scenario) {
    in_folder(|folder| {
        let file = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let objects = |objects: &[Value]| json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
        let (about, with) =
            (file("about.json", objects(&scenario.objects)), file("with.json", objects(&scenario.with)));
        let state = scenario.state.as_ref().map(|state| file("state.json", state.to_string()));
        let mut out = Vec::new();
        for output in ["json", "chart", "svg"] {
            plan::write(&args(&[&about, "--with", &with, "-o", output]), &mut out);
        }
        if let Some(state) = &state {
            plan::write(&args(&[&about, "--with", &with, "--state", state, "-o", "wide"]), &mut out);
        }
        fit::write(&args(&[&about, "--with", &with, "-o", "json"]), &mut out);
        check::write(&args(&[&about, "--with", &with, "-o", "json"]), &mut out);
        String::from_utf8(out).expect("what is printed is text");
    });
}
