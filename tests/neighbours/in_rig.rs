//! What is a part of the control plane of every test, and has no module of its own here.

use std::fs;
use std::path::Path;

use crate::program;

/// Writes down what was seen of a module in `tests/controlplane/go.mod`: `tried` and `result` are short sentences, and the row of
/// `table` is the one that begins with `tried`.
pub fn record(table: &str, module: &str, tried: &str, result: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/go.mod");
    let text = fs::read_to_string(path).unwrap();
    let named = text.lines().find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '));
    let version = named.and_then(|rest| rest.split_whitespace().next()).unwrap();
    program::record(table, version, tried, result);
}
