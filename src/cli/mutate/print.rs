//! Output formats of `rolegate mutate`.

use std::fmt::Write as _;

use serde_json::json;

use super::diff::{diff_lines, painted, painted_line};
use super::mutated::Mutated;
use crate::cli::data::Data;

/// Prints the mutated objects as a stream of YAML documents.
pub(super) fn yaml(objects: &[Mutated]) -> String {
    let documents: Vec<_> = objects.iter().map(|object| Data::Yaml.text(&object.after)).collect();
    documents.join("---\n")
}

/// Prints the mutated objects as a `v1 List`.
pub(super) fn json(objects: &[Mutated]) -> String {
    let items: Vec<_> = objects.iter().map(|object| &object.after).collect();
    Data::Json.text(&json!({ "apiVersion": "v1", "kind": "List", "items": items }))
}

/// Prints the patches: `{"objects":[{"kind","namespace","name","patch","warnings"}]}`.
pub(super) fn patches(objects: &[Mutated]) -> String {
    let entry = |object: &Mutated| {
        json!({
            "kind": object.kind,
            "namespace": object.namespace,
            "name": object.name,
            "patch": object.patch,
            "warnings": object.warnings,
        })
    };
    let objects: Vec<_> = objects.iter().map(entry).collect();
    Data::Json.text(&json!({ "objects": objects }))
}

/// Prints a diff of each object's YAML.
pub(super) fn diff(objects: &[Mutated], coloured: bool) -> String {
    let mut text = String::new();
    let mut unchanged = 0;
    for object in objects {
        if object.patch.is_empty() {
            unchanged += 1;
            continue;
        }
        _ = writeln!(text, "{}", painted(&object.title(), "1", coloured));
        for line in diff_lines(&Data::Yaml.text(&object.before), &Data::Yaml.text(&object.after)) {
            _ = writeln!(text, "{}", painted_line(&line, coloured));
        }
    }
    if unchanged > 0 {
        _ = writeln!(text, "{unchanged} of {} objects do not change", objects.len());
    }
    text
}
