//! Writes objects as YAML with comments, for a cluster or as templates of a Helm chart.
//!
//! Objects are JSON with marks: `"#key"` is a comment on `key`, `"?key"` names the condition on `key`. An item of a
//! list takes the form `{"=": item, "#": comment, "?": condition}`. A list inside a list is expanded in place; `null`
//! is omitted. The marks of a document are `"#"` and `"?"`.
//! Text with `{{` is a template expression: `{{with X}}` is the chart's value X of any type, or nothing when it is
//! empty; `{"{{with X}}": value}` is X, or `value` when X is empty. `"+"` in an object holds further entries, or the
//! chart's value with such entries.

use serde_json::{Map, Value};

use super::choices::{Choices, condition};

/// The reader of the YAML, which decides how conditions are written.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A cluster: parts whose condition is false are omitted.
    Cluster(&'a Choices),
    /// Helm: conditions become `if` actions.
    Chart,
}

/// Keys that come first; the others are sorted by name.
const FIRST: &[&str] = &["apiVersion", "kind", "name", "namespace", "metadata"];
/// Maximum width of a comment line.
const WIDTH: usize = 110;

/// Returns the documents of a file; each begins with `---`.
pub fn documents<'a>(objects: impl IntoIterator<Item = &'a Value>, target: Target<'_>) -> String {
    objects.into_iter().map(|object| document(object, target)).collect()
}

fn document(object: &Value, target: Target<'_>) -> String {
    let Value::Object(map) = object else { return String::new() };
    let mut writer = Writer { target, out: String::new() };
    writer.conditional(0, map.get("?"), |writer| {
        writer.line(0, "---");
        writer.comment(0, map.get("#"));
        writer.map(0, map);
    });
    writer.out
}

/// Returns a values file: a map with comments.
pub fn values(object: &Map<String, Value>) -> String {
    let mut writer = Writer { target: Target::Chart, out: String::new() };
    writer.map(0, object);
    writer.out
}

struct Writer<'a> {
    target: Target<'a>,
    out: String,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Writes a part if its condition holds, or within an `if` of Helm.
    fn conditional(&mut self, indent: usize, name: Option<&Value>, write: impl FnOnce(&mut Self)) {
        let found = name.and_then(Value::as_str).and_then(condition);
        match (found, self.target) {
            (None, _) => write(self),
            (Some(condition), Target::Cluster(choices)) => {
                if (condition.holds)(choices) {
                    write(self);
                }
            }
            (Some(condition), Target::Chart) => {
                self.line(indent, &format!("{{{{- if {} }}}}", condition.helm));
                write(self);
                self.line(indent, "{{- end }}");
            }
        }
    }

    fn comment(&mut self, indent: usize, text: Option<&Value>) {
        let mut line = String::new();
        for word in text.and_then(Value::as_str).unwrap_or_default().split_whitespace() {
            if !line.is_empty() && indent + line.len() + 1 + word.len() > WIDTH {
                self.line(indent, &line);
                line.clear();
            }
            line.push_str(if line.is_empty() { "# " } else { " " });
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(indent, &line);
        }
    }

    fn map(&mut self, indent: usize, map: &Map<String, Value>) {
        let plain = |key: &str| !key.starts_with(['#', '?', '+']);
        let first = |key: &str| FIRST.iter().position(|known| *known == key).unwrap_or(FIRST.len());
        let mut entries: Vec<_> = map.iter().filter(|(key, value)| plain(key) && !value.is_null()).collect();
        entries.sort_by_key(|(key, _)| first(key));
        for (key, value) in entries {
            self.conditional(indent, map.get(&format!("?{key}")), |writer| {
                writer.comment(indent, map.get(&format!("#{key}")));
                writer.entry(indent, key, value);
            });
        }
        match map.get("+") {
            Some(Value::Object(more)) => self.map(indent, more),
            Some(more) => self.item(indent, more),
            None => {}
        }
    }

    fn entry(&mut self, indent: usize, key: &str, value: &Value) {
        let key = scalar(&Value::String(key.to_owned()));
        let alternative = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.iter().next());
        let alternative = alternative.and_then(|(key, ours)| Some((with(key)?, Some(ours))));
        let alternative = alternative.or_else(|| Some((with(value.as_str()?)?, None)));
        if let Some((expression, ours)) = alternative {
            self.line(indent, &format!("{{{{- with {expression} }}}}"));
            self.line(indent, &format!("{key}:"));
            self.line(indent + 2, &format!("{{{{- toYaml . | nindent {} }}}}", indent + 2));
            if let Some(ours) = ours {
                self.line(indent, "{{- else }}");
                self.entry(indent, &key, ours);
            }
            self.line(indent, "{{- end }}");
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line(indent, &format!("{key}:"));
                self.map(indent + 2, map);
            }
            Value::Array(items) if items.iter().all(is_short) => {
                let items: Vec<_> = items.iter().map(scalar).collect();
                self.line(indent, &format!("{key}: [{}]", items.join(", ")));
            }
            Value::Array(items) => {
                self.line(indent, &format!("{key}:"));
                items.iter().for_each(|item| self.item(indent + 2, item));
            }
            value => self.line(indent, &format!("{key}: {}", scalar(value))),
        }
    }

    fn item(&mut self, indent: usize, item: &Value) {
        if let Some(expression) = item.as_str().and_then(with) {
            self.line(indent, &format!("{{{{- with {expression} }}}}"));
            self.line(indent, &format!("{{{{- toYaml . | nindent {indent} }}}}"));
            self.line(indent, "{{- end }}");
            return;
        }
        match item {
            Value::Null => {}
            Value::Array(items) => items.iter().for_each(|item| self.item(indent, item)),
            Value::Object(map) if map.contains_key("=") => self.conditional(indent, map.get("?"), |writer| {
                writer.comment(indent, map.get("#"));
                writer.item(indent, map.get("=").unwrap_or(&Value::Null));
            }),
            Value::Object(map) => {
                let mut inner = Writer { target: self.target, out: String::new() };
                inner.map(indent + 2, map);
                self.line(indent, &format!("- {}", inner.out.trim()));
            }
            value => self.line(indent, &format!("- {}", scalar(value))),
        }
    }
}

/// Returns the path of the chart's value in `{{with …}}`.
fn with(text: &str) -> Option<&str> {
    text.strip_prefix("{{with ")?.strip_suffix("}}")
}

/// Reports whether an item may share a line with others.
fn is_short(item: &Value) -> bool {
    match item {
        Value::String(text) => text.len() <= 30 && !text.contains("{{") && !text.starts_with('-'),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains("{{") && (text.starts_with('\'') || text.contains(": ")) => quoted(text),
        Value::String(text) if text.contains("{{") || is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Quotes a text with template expressions. These stay as they are: Helm replaces them before it reads the YAML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for (number, part) in text.split("{{").enumerate() {
        let (expression, rest) = part.split_once("}}").filter(|_| number > 0).unwrap_or(("", part));
        if number > 0 {
            out.extend(["{{", expression, "}}"]);
        }
        out.extend(rest.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| c == '"' || c == '\\').chain([c])));
    }
    out.push('"');
    out
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
    use crate::cli::manifests::settings::Certificates;

    fn object() -> Value {
        json!({
            "?": "cert-manager",
            "#": "About it all.",
            "a": { "x": "yes", "w": "a: b", "z": "9" },
            "#b": "About b.",
            "b": [1, { "=": "two", "#": "About two.", "?": "self-managed" }, ["three", "four"], { "k": 1, "l": [] }],
            "c": null,
            "d": "{{with .Values.d}}",
            "e": "{{ .Values.e }}",
            "f": { "{{with .Values.f}}": { "g": [] } },
            "h": { "i": 1, "+": "{{with .Values.h}}" },
        })
    }

    #[test]
    fn for_a_cluster_only_what_holds_is_written() {
        let choices = Choices { certificates: Certificates::CertManager, ..Choices::default() };
        let mut object = object();
        object.as_object_mut().unwrap().retain(|key, _| !["d", "e", "f"].contains(&key.as_str()));
        object["h"]["+"] = json!({ "a": "b" });
        let yaml = documents([&object], Target::Cluster(&choices));
        let expected = "---\n# About it all.\na:\n  w: \"a: b\"\n  x: \"yes\"\n  z: \"9\"\n\
                        # About b.\nb:\n  - 1\n  - three\n  - four\n  - k: 1\n    l: []\n\
                        h:\n  i: 1\n  a: b\n";
        assert_eq!(yaml, expected);
        assert_eq!(documents([&object], Target::Cluster(&Choices::default())), "");
    }

    #[test]
    fn for_a_chart_conditions_and_values_are_left_to_helm() {
        let yaml = documents([&object()], Target::Chart);
        let expected = "{{- if eq .Values.certificates \"cert-manager\" }}\n---\n# About it all.\n\
                        a:\n  w: \"a: b\"\n  x: \"yes\"\n  z: \"9\"\n# About b.\nb:\n  - 1\n  \
                        {{- if eq .Values.certificates \"self-managed\" }}\n  # About two.\n  - two\n  {{- end }}\n  \
                        - three\n  - four\n  - k: 1\n    l: []\n\
                        {{- with .Values.d }}\nd:\n  {{- toYaml . | nindent 2 }}\n{{- end }}\ne: {{ .Values.e }}\n\
                        {{- with .Values.f }}\nf:\n  {{- toYaml . | nindent 2 }}\n{{- else }}\nf:\n  g: []\n{{- end }}\n\
                        h:\n  i: 1\n  {{- with .Values.h }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n{{- end }}\n";
        assert_eq!(yaml, expected);
    }

    #[test]
    fn what_yaml_would_read_as_something_else_is_quoted() {
        for text in ["no", "1", "1e3", "a:", "", " a", "*", "a b", "2026-01-01", "0x1", "~", "---", "a #b"] {
            let read: String = serde_saphyr::from_str(&scalar(&json!(text))).unwrap();
            assert_eq!((read.as_str(), is_plain(text)), (text, false));
        }
    }
}
