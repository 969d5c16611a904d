//! Writes objects as YAML. An entry `"#"` of an object is no field: it is the comment above it.

use serde_json::{Map, Value};

/// Keys that come first; the others are sorted by name.
const FIRST: &[&str] = &["apiVersion", "kind", "name", "namespace", "metadata"];
/// Maximum width of a comment line.
const WIDTH: usize = 110;

/// Returns the documents of a file; each begins with `---`.
pub fn documents<'a>(objects: impl IntoIterator<Item = &'a Value>) -> String {
    objects.into_iter().flat_map(|object| ["---\n".to_owned(), text(object)]).collect()
}

/// Returns an object or a list.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) => items.iter().for_each(|item| write_item(&mut out, 0, item)),
        Value::Object(map) => {
            comment(&mut out, 0, map);
            write_map(&mut out, 0, map);
        }
        _ => {}
    }
    out
}

fn line(out: &mut String, indent: usize, text: &str) {
    out.extend([&" ".repeat(indent), text, "\n"]);
}

fn comment(out: &mut String, indent: usize, of: &Map<String, Value>) {
    let mut written = String::new();
    for word in of.get("#").and_then(Value::as_str).unwrap_or_default().split_whitespace() {
        if !written.is_empty() && indent + written.len() + 1 + word.len() > WIDTH {
            line(out, indent, &written);
            written.clear();
        }
        written.push_str(if written.is_empty() { "# " } else { " " });
        written.push_str(word);
    }
    if !written.is_empty() {
        line(out, indent, &written);
    }
}

fn write_map(out: &mut String, indent: usize, map: &Map<String, Value>) {
    let first = |key: &str| FIRST.iter().position(|known| *known == key).unwrap_or(FIRST.len());
    let mut entries: Vec<_> = map.iter().filter(|(key, value)| *key != "#" && !value.is_null()).collect();
    entries.sort_by_key(|(key, _)| first(key));
    for (key, value) in entries {
        let key = if is_plain(key) { key.clone() } else { format!("{key:?}") };
        match value {
            Value::Object(map) if !map.is_empty() => {
                line(out, indent, &format!("{key}:"));
                write_map(out, indent + 2, map);
            }
            Value::Array(items) if !items.iter().all(is_short) => {
                line(out, indent, &format!("{key}:"));
                items.iter().for_each(|item| write_item(out, indent + 2, item));
            }
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(scalar).collect();
                line(out, indent, &format!("{key}: [{}]", items.join(", ")));
            }
            value => line(out, indent, &format!("{key}: {}", scalar(value))),
        }
    }
}

fn write_item(out: &mut String, indent: usize, item: &Value) {
    match item {
        Value::Object(map) => {
            comment(out, indent, map);
            let mut inner = String::new();
            write_map(&mut inner, indent + 2, map);
            line(out, indent, &format!("- {}", inner.trim()));
        }
        value => line(out, indent, &format!("- {}", scalar(value))),
    }
}

/// Reports whether an item may share a line with others.
fn is_short(item: &Value) -> bool {
    match item {
        Value::String(text) => text.len() <= 30 && !text.starts_with('-'),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Reports whether YAML reads the unquoted text as this string. When in doubt, the text is quoted.
fn is_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        || (text.starts_with("--") && text.len() > 3);
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    starts_well && text.chars().all(safe) && !text.ends_with(':') && !word.iter().any(|w| text.eq_ignore_ascii_case(w))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_written_with_its_comments_and_without_what_is_null() {
        let object = json!({
            "#": "About it all.",
            "a": { "x": "yes", "w": "a: b", "z": "9" },
            "b": [1, { "#": "About two.", "k": "two" }, "three", { "k": 1, "l": [] }],
            "c": null,
            "d": ["x"],
            "e": {},
        });
        let expected = "---\n# About it all.\na:\n  w: \"a: b\"\n  x: \"yes\"\n  z: \"9\"\n\
                        b:\n  - 1\n  # About two.\n  - k: two\n  - three\n  - k: 1\n    l: []\n\
                        d: [x]\ne: {}\n";
        assert_eq!(documents([&object]), expected);
    }

    #[test]
    fn what_yaml_would_read_as_something_else_is_quoted() {
        for text in ["no", "1", "1e3", "a:", "", " a", "*", "a b", "2026-01-01", "0x1", "~", "---", "a #b"] {
            let read: String = serde_saphyr::from_str(&scalar(&json!(text))).unwrap();
            assert_eq!((read.as_str(), is_plain(text)), (text, false));
        }
    }
}
