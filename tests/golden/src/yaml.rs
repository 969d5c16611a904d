//! Writes YAML for users to read and edit: values that fit on a line stay on one line.

use serde_json::{Map, Value};

/// Maximum width of a line.
const WIDTH: usize = 120;
/// Keys that come first; the others are sorted by name.
const FIRST: &[&str] = &[
    "match",
    "exit",
    "allowed",
    "names",
    "patches",
    "objects",
    "labels",
    "env",
    "violations",
    "warnings",
    "notes",
    "refused",
    "object",
    "rule",
    "field",
    "type",
    "status",
    "reason",
    "message",
    "apiVersion",
    "kind",
    "metadata",
    "namespace",
    "name",
];

/// Formats the entries of a map for a file, with an indent.
pub(crate) fn lines(map: &Map<String, Value>, indent: usize) -> String {
    let mut out = String::new();
    entries(&mut out, map, indent, WIDTH);
    out
}

/// Formats the entries of a map with each value on its own line, for diffs.
pub(crate) fn split_lines(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    entries(&mut out, map, 0, 0);
    out
}

fn entries(out: &mut String, map: &Map<String, Value>, indent: usize, width: usize) {
    for (key, value) in sorted(map) {
        out.push_str(&" ".repeat(indent));
        entry(out, key, value, indent, width);
    }
}

fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut all: Vec<_> = map.iter().collect();
    all.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    all
}

/// Writes `key: value` and the lines below it; the caller has written the indent.
fn entry(out: &mut String, key: &str, value: &Value, indent: usize, width: usize) {
    let key = scalar(&key.into());
    let flow = flow(value);
    let fits = indent + key.len() + 2 + flow.len() <= width && !is_list_of_several(value);
    match value {
        Value::Object(map) if !fits && !map.is_empty() => {
            out.extend([&key, ":\n"]);
            entries(out, map, indent + 2, width);
        }
        Value::Array(list) if !fits && !list.is_empty() => {
            out.extend([&key, ":\n"]);
            items(out, list, indent + 2, width);
        }
        _ => out.extend([&key, ": ", &flow, "\n"]),
    }
}

/// Reports whether a value is a list of several maps or lists: each gets a line, so that a difference is one line.
fn is_list_of_several(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.len() > 1 && list.iter().any(|item| item.is_object() || item.is_array()))
}

fn items(out: &mut String, list: &[Value], indent: usize, width: usize) {
    for item in list {
        out.push_str(&" ".repeat(indent));
        out.push_str("- ");
        let flow = flow(item);
        match item {
            Value::Object(map) if indent + 2 + flow.len() > width && !map.is_empty() => {
                for (number, (key, value)) in sorted(map).into_iter().enumerate() {
                    if number > 0 {
                        out.push_str(&" ".repeat(indent + 2));
                    }
                    entry(out, key, value, indent + 2, width);
                }
            }
            Value::Array(list) if indent + 2 + flow.len() > width && !list.is_empty() => {
                out.push('\n');
                items(out, list, indent + 2, width);
            }
            _ => out.extend([&flow, "\n"]),
        }
    }
}

/// Formats a value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{}: {}", scalar(&key.as_str().into()), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", ")),
        scalar_value => scalar(scalar_value),
    }
}

/// Quotes a text, unless YAML reads it as the same text without quotes.
fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./~".contains(letter));
    let is_other =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if is_word && !is_other {
        return text.clone();
    }
    let quotable = text.contains('"') && !text.chars().any(char::is_control);
    if quotable { format!("'{}'", text.replace('\'', "''")) } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again_as_it_was() {
        let long = "a text that goes on for so long that it does not stand on a line with anything else, ".repeat(2);
        let words = [
            "",
            "no",
            "0/18",
            "1e3",
            "null",
            "~",
            "a: b",
            "- a",
            "two\nlines",
            "#",
            "\u{1b}[31m",
            "é",
            "it's \"so\"",
            "'",
            ".inf",
            "Yes",
        ];
        let value = json!({
            "words": words, "long": [{ "rule": long, "field": "x" }, [long, [long]], {}], "deep": { "a": { long.clone(): [1, null] } },
            "numbers": [0, -1, 1.5], "nothing": null, "empty": [[], {}], "0": "a key that is a number", "true": true,
        });
        let text = lines(value.as_object().unwrap(), 0);
        let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, value, "{text}");
        let inner = format!("key:\n{}", lines(value.as_object().unwrap(), 4));
        let read: Value = serde_saphyr::from_str(&inner).unwrap();
        assert_eq!(read["key"], value, "{inner}");
    }

    #[test]
    fn what_fits_into_a_line_is_one_and_a_list_of_maps_has_a_line_for_each() {
        let value = json!({ "warnings": [{ "field": "spec.x[0]", "rule": "r" }, { "message": "m", "rule": "s" }], "match": "exact" });
        let text = lines(value.as_object().unwrap(), 2);
        assert_eq!(
            text,
            "  match: exact\n  warnings:\n    - {rule: r, field: \"spec.x[0]\"}\n    - {rule: s, message: m}\n"
        );
    }
}
