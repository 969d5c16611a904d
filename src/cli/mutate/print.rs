//! Output formats of `rolegate mutate`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::diff::diff_lines;
use super::mutated::Mutated;

/// Prints the mutated objects as a stream of YAML documents.
pub(super) fn yaml(objects: &[Mutated]) -> String {
    let documents: Vec<_> = objects.iter().map(|object| to_yaml(&object.after)).collect();
    documents.join("---\n")
}

/// Prints the mutated objects as a `v1 List`.
pub(super) fn json(objects: &[Mutated]) -> String {
    let items: Vec<_> = objects.iter().map(|object| &object.after).collect();
    pretty(&json!({ "apiVersion": "v1", "kind": "List", "items": items }))
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
    pretty(&json!({ "objects": objects }))
}

/// Prints a diff of each object's YAML.
pub(super) fn diff(objects: &[Mutated], coloured: bool) -> String {
    let paint = |text: &str, code: &str| {
        if coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let mut text = String::new();
    let mut unchanged = 0;
    for object in objects {
        if object.patch.is_empty() {
            unchanged += 1;
            continue;
        }
        let _ = writeln!(text, "{}", paint(&object.title(), "1"));
        for line in diff_lines(&to_yaml(&object.before), &to_yaml(&object.after)) {
            let painted = match line.get(..1) {
                Some("+") => paint(&line, "32"),
                Some("-") => paint(&line, "31"),
                Some("@") => paint(&line, "36"),
                _ => line,
            };
            let _ = writeln!(text, "{painted}");
        }
    }
    if unchanged > 0 {
        let _ = writeln!(text, "{unchanged} of {} objects do not change", objects.len());
    }
    text
}

fn to_yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_default()
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
