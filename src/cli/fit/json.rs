//! JSON output of `fit`.

use serde_json::{Value, json};

use super::{FittedBatches, FittedGroup, Found};
use crate::fit::{Missing, Size, Suggestion};
use crate::plan::placement::NotModelled;
use crate::report::coordination;

pub(super) fn answer(groups: &[FittedGroup]) -> Value {
    let groups: Vec<_> = groups
        .iter()
        .map(|fitted| {
            let key = &fitted.group.key;
            let faults: Vec<_> = fitted.faults.iter().map(|fault| format!("{}: {fault}", fault.rule)).collect();
            let (field, found): (_, Vec<_>) = match &fitted.found {
                Found::Batches(all) => ("coordinations", all.iter().map(batches).collect()),
                Found::Sizes(all) => ("suggestions", all.iter().map(suggestion).collect()),
            };
            json!({ "namespace": &*key.namespace, "name": &*key.name, "faults": faults, field: found })
        })
        .collect();
    json!({ "groups": groups })
}

/// Returns a coordination; `missing` only where some batch lacks nodes that could be added.
fn batches(one: &FittedBatches) -> Value {
    let mut answer = coordination(&one.fitted);
    let missing = one.missing.iter().map(|Missing { index, nodes }| match nodes {
        Some(nodes) => json!({ "index": index, "domain": nodes.domain, "nodes": nodes.shapes }),
        None => json!({ "index": index }),
    });
    if let Some(fields) = answer.as_object_mut().filter(|_| !one.missing.is_empty()) {
        fields.insert("missing".to_owned(), missing.collect());
    }
    answer
}

fn suggestion(suggestion: &Suggestion) -> Value {
    let Suggestion { coordination, key, now, answer } = suggestion;
    let found = match answer {
        Ok(found) => found,
        Err(error) => {
            return json!({ "coordination": coordination, "topologyKey": key, "now": now, "error": error.to_string() });
        }
    };
    let size = |size: &Size| {
        json!({
            "segmentSize": size.sizes,
            "wanted": size.wanted,
            "even": size.even,
            "fits": size.fits,
            "unused": size.unused,
        })
    };
    json!({
        "coordination": coordination,
        "topologyKey": key,
        "now": now,
        "ratio": found.ratio,
        "resource": &*found.resource,
        "free": found.free,
        "domains": found.domains,
        "sizes": found.sizes.iter().map(size).collect::<Vec<_>>(),
        "untried": found.untried,
        "notModelled": found.not_modelled.iter().map(NotModelled::describe).collect::<Vec<_>>(),
    })
}
