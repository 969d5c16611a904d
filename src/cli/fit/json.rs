//! JSON output of `fit`.

use serde_json::{Value, json};

use super::FittedGroup;
use crate::report::coordination;

pub(super) fn answer(groups: &[FittedGroup]) -> Value {
    let groups: Vec<_> = groups
        .iter()
        .map(|fitted| {
            let key = &fitted.group.key;
            let coordinations: Vec<_> = fitted.coordinations.iter().map(coordination).collect();
            let faults: Vec<_> = fitted.faults.iter().map(|fault| format!("{}: {fault}", fault.rule)).collect();
            json!({ "namespace": &*key.namespace, "name": &*key.name, "faults": faults, "coordinations": coordinations })
        })
        .collect();
    json!({ "groups": groups })
}
