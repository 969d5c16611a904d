//! Fields that the kinds which rolegate reads do not have. The API server drops, refuses or keeps them; files give no hint.

use serde_json::Value;

use super::names::hint;
use super::{Cause, Severity, Violation};
use crate::api::{ObjectKind, crd};
use crate::model::FieldPath;

pub(super) const UNKNOWN_FIELD: &str = "unknown-field";
pub(super) const SUMMARY: &str = "fields of coordinations and of rolegate's own kinds exist";

/// Fields of every kind, and the status, which has no fields of users.
const NOT_JUDGED: &[&str] = &["apiVersion", "kind", "metadata", "status"];

/// Returns the fields of an object that its schema lacks; none for kinds without a schema.
pub(super) fn unknown_fields(kind: ObjectKind, object: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(schema) = crd::schema_of_read(kind) else { return found };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(object) {
        fields.retain(|name, _| !NOT_JUDGED.contains(&name.as_str()));
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
        Value::Object(fields) => {
            // Others may add fields here: only what resembles an absent one of ours is a mistake.
            let is_open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
            let known = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties");
            for (name, value) in fields {
                match (known.and_then(|known| known.get(name)), others, known) {
                    (Some(schema), _, _) => walk(schema, value, &at.child(name.clone()), found),
                    (None, Some(schema), _) => walk(schema, value, &at.key(name), found),
                    (None, None, Some(known)) => {
                        let absent = known.keys().map(String::as_str).filter(|known| !fields.contains_key(*known));
                        let meant = hint(name, absent);
                        if !is_open || !meant.is_empty() {
                            found.push(unknown(name, &meant, at));
                        }
                    }
                    (None, None, None) => {}
                }
            }
        }
        _ => {}
    }
}

fn unknown(name: &str, meant: &str, at: &FieldPath) -> Violation {
    let path = at.child(name.to_owned());
    Violation {
        rule: UNKNOWN_FIELD,
        severity: Severity::Warning,
        cause: Cause::Notice,
        value: None,
        detail: format!("no such field: it has no effect{meant}"),
        subject: path.to_string(),
        path,
    }
}
