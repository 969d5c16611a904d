//! For programs.

use std::io::{self, Write};

use serde_json::json;

use super::FittedGroup;
use crate::report::coordination;

pub(super) fn print(out: &mut impl Write, groups: &[FittedGroup]) -> io::Result<()> {
    let groups: Vec<_> = groups
        .iter()
        .map(|fitted| {
            let key = &fitted.group.key;
            let coordinations: Vec<_> = fitted.coordinations.iter().map(coordination).collect();
            let faults: Vec<_> = fitted.faults.iter().map(|fault| format!("{}: {fault}", fault.rule)).collect();
            json!({ "namespace": &*key.namespace, "name": &*key.name, "faults": faults, "coordinations": coordinations })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "groups": groups }))?;
    writeln!(out)
}
