//! Builds the page about the fields of our own kinds, from the output of `rolegate crds`.

use std::fmt::Write as _;

use rolegate::api::crd;
use serde_json::Value;

const HEAD: &str = "# API

Every field of the kinds that rolegate defines, as `rolegate crds` prints them. Written by `make docs` from the types; do not edit.

- `[]` stands for an entry of a list, `{}` for a value of a map.
- A default is filled in by the API server; where none is named, what is left out means is said in the description.
- What rolegate's webhook checks beyond this is in [rules.md](rules.md).

A RoleBasedGroup in the shape of the designs (`rolegate crds --optional`) takes the same `spec.coordination[]` as a RoleCoordination,
and gets the same `status`.
";

pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for (name, yaml) in crd::files(false) {
        let definition: Value = serde_saphyr::from_str(&yaml).unwrap_or_else(|error| panic!("{name}: {error}"));
        kind(&mut page, &definition);
    }
    page
}

fn kind(page: &mut String, definition: &Value) {
    let (spec, version) = (&definition["spec"], &definition["spec"]["versions"][0]);
    let (names, text) = (&spec["names"], |value: &Value| value.as_str().unwrap_or_default().to_owned());
    let api_version = format!("{}/{}", text(&spec["group"]), text(&version["name"]));
    _ = writeln!(page, "\n## {}\n", text(&names["kind"]));
    let scope = if spec["scope"] == "Namespaced" { "namespaced" } else { "cluster-wide" };
    _ = write!(page, "`apiVersion: {api_version}`, {scope}, `{}`", text(&names["plural"]));
    for short in names["shortNames"].as_array().into_iter().flatten() {
        _ = write!(page, ", short `{}`", text(short));
    }
    page.push_str(".\n");
    for part in ["spec", "status"] {
        let schema = &version["schema"]["openAPIV3Schema"]["properties"][part];
        _ = writeln!(page, "\n### {} {part}\n\n{}\n", text(&names["kind"]), description(schema));
        page.push_str("| field | type | required | default | |\n|---|---|---|---|---|\n");
        fields(page, schema, "");
    }
}

/// Writes a row for each field below a schema, each followed by its own fields.
fn fields(page: &mut String, schema: &Value, at: &str) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}{name}");
        let is_required = if required.contains(&name.as_str()) { "yes" } else { "" };
        let default = field.get("default").map(|default| format!("`{default}`")).unwrap_or_default();
        _ = writeln!(
            page,
            "| `{path}` | {} | {is_required} | {default} | {} |",
            type_of(field),
            description(field).replace('|', "\\|")
        );
        below(page, field, &path);
    }
}

/// Writes the fields of an object, or of the entries of a list or map.
fn below(page: &mut String, schema: &Value, path: &str) {
    fields(page, schema, &format!("{path}."));
    for (entries, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[entries].is_object() {
            below(page, &schema[entries], &format!("{path}{step}"));
        }
    }
}

/// Returns the description of a field, and the messages of its CEL rules.
fn description(schema: &Value) -> String {
    let checks = |schema: &Value| {
        let rules = schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
        rules.iter().filter_map(|rule| rule["message"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut text = schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    for check in [checks(schema), checks(&schema["items"])].concat() {
        _ = write!(text, " Checked: {check}.");
    }
    text
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<_> = words.filter(|word| !word.is_empty()).map(|word| format!("`{word}`")).collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        Some(kind) => match (&schema["minimum"], &schema["maximum"]) {
            (Value::Null, _) | (_, Value::Null) => kind.to_owned(),
            (least, most) => format!("{kind}, {least} to {most}"),
        },
        None => "anything".to_owned(),
    }
}
