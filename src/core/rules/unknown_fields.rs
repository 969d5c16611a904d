//! Fields that rolegate's own kinds do not have. The API server drops or refuses them; files give no hint.

use serde_json::Value;

use super::names::hint;
use super::{Cause, Severity, Violation};
use crate::api::{ObjectKind, crd};
use crate::model::FieldPath;

const OF_EVERY_KIND: &[&str] = &["apiVersion", "kind", "metadata"];

/// Returns the fields of an object that its schema lacks; none for kinds of others.
pub(super) fn unknown_fields(kind: ObjectKind, object: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(schema) = crd::schema_of(kind) else { return found };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(object) {
        fields.retain(|name, _| !OF_EVERY_KIND.contains(&name.as_str()));
        walk(schema, &Value::Object(fields), &FieldPath::default(), &mut found);
    }
    found
}

fn walk(schema: &Value, value: &Value, at: &FieldPath, found: &mut Vec<Violation>) {
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                walk(schema, item, &at.index(index), found);
            }
        }
        Value::Object(fields) if schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(true)) => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties");
            for (name, value) in fields {
                match (known.and_then(|known| known.get(name)), others, known) {
                    (Some(schema), _, _) => walk(schema, value, &at.child(name.clone()), found),
                    (None, Some(schema), _) => walk(schema, value, &at.key(name), found),
                    (None, None, Some(known)) => found.push(unknown(name, known.keys().map(String::as_str), at)),
                    (None, None, None) => {}
                }
            }
        }
        _ => {}
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>, at: &FieldPath) -> Violation {
    let path = at.child(name.to_owned());
    Violation {
        rule: "unknown-field",
        severity: Severity::Warning,
        cause: Cause::Notice,
        value: None,
        detail: format!("no such field: it has no effect{}", hint(name, known)),
        subject: path.to_string(),
        path,
    }
}
