//! Builds the page about the fields of our own kinds, from the definitions.

use std::fmt::Write as _;

use rolegate::api::crd;
use serde_json::Value;

const HEAD: &str = "# API

The fields of rolegate's kinds, written by `make docs` from the types. `[]` stands for an entry of a list, `{}` for a value of a map.
The API server fills in a default that has its own sentence. [rules.md](rules.md) lists the further checks of the webhook.
`kubectl explain rcoord.status --recursive` has the fields within those of the status that only the loop reads again.

The RoleBasedGroup of `rolegate manifests --part optional-crds` has the same `spec.coordination[]` and `status` as a RoleCoordination.
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
        fields(page, &mut Vec::new(), schema, "");
    }
}

/// Fields of the status that only the loop reads again: what is in them, `kubectl explain` tells.
const OF_THE_LOOP: &[&str] = &["cohorts", "draining", "provisioning", "recoveries", "succeeded"];

/// Schemas with fields, and the path of each.
type Written = Vec<(Value, String)>;

/// Writes a row for each field below a schema, each followed by its own fields.
fn fields(page: &mut String, written: &mut Written, schema: &Value, at: &str) {
    let twin = twin(schema);
    if let Some((name, same)) = &twin {
        let same: Vec<_> = same.iter().map(|name| format!("`{name}`")).collect();
        _ = writeln!(page, "- {} (KEP-30's place for them): The same as in `{at}{name}`.", same.join(", "));
    }
    let same = twin.map(|(_, same)| same).unwrap_or_default();
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| !same.contains(name))
    {
        let path = format!("{at}{name}");
        let mut text = description(field);
        if required.contains(&name.as_str()) {
            text.insert_str(0, "Required. ");
        }
        if let Some(default) = field.get("default") {
            _ = write!(text, " Default: `{default}`.");
        }
        let known = written.iter().find(|(schema, _)| *schema == field["properties"]).map(|(_, path)| path.clone());
        if let Some(known) = &known {
            _ = write!(text, " Fields: those of `{known}`.");
        }
        _ = writeln!(page, "- `{path}` ({}): {text}", type_of(field));
        if OF_THE_LOOP.contains(&path.as_str()) {
            continue;
        }
        if known.is_none() {
            if field["properties"].is_object() {
                written.push((field["properties"].clone(), path.clone()));
            }
            below(page, written, field, &path);
        }
    }
}

/// The field whose own fields may also stand beside it, as `rollingUpdate` of KEP-30's flat form, and their names.
fn twin(schema: &Value) -> Option<(&String, Vec<&String>)> {
    let all = schema["properties"].as_object()?;
    let mut twins = all.iter().map(|(name, field)| {
        let own = field["properties"].as_object().into_iter().flatten();
        (name, own.filter(|(name, own)| all.get(*name) == Some(own)).map(|(name, _)| name).collect())
    });
    // `podGroupPolicy` is refused in several places, with one description.
    twins.find(|(_, same): &(_, Vec<_>)| same.len() > 1)
}

/// Writes the fields of an object, or of the entries of a list or map.
fn below(page: &mut String, written: &mut Written, schema: &Value, path: &str) {
    fields(page, written, schema, &format!("{path}."));
    for (entries, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[entries].is_object() {
            below(page, written, &schema[entries], &format!("{path}{step}"));
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
