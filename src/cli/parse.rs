//! Parses YAML and JSON into nodes with positions, within limits of size.

use serde_saphyr::{DuplicateKeyPolicy, Options};

use super::node::{Node, Position};
use super::yaml_words::yaml_words;

/// A document, or the position and the message of an error.
pub type Parsed = Result<Node, (Option<Position>, String)>;

/// Parses the documents of a YAML or JSON stream. If one of them cannot be read, each is read by itself, within the limits of one file.
pub fn parse(text: &str) -> Vec<Parsed> {
    let whole = parse_stream(text);
    let documents = documents(text);
    if documents.len() < 2 || whole.iter().all(Result::is_ok) {
        return whole;
    }
    let (mut parsed, mut values) = (Vec::new(), 0);
    for document in documents {
        if values > MOST_VALUES {
            parsed.push(Err((Some(document.0), within_limits("budget breached".to_owned()))));
            break;
        }
        let nodes = shifted(document);
        values += nodes.iter().map(|node| node.as_ref().map_or(OF_ERROR, Node::values)).sum::<usize>();
        parsed.extend(nodes);
    }
    parsed
}

/// Returns the documents of a stream with their positions: a line that begins with `---` begins one, whatever was before it, and so
/// does what follows a whole JSON value.
fn documents(text: &str) -> Vec<(Position, &str)> {
    sections(text).into_iter().flat_map(values_of).collect()
}

/// Returns the JSON values of a section, readable or not; a section that is no JSON is one value.
fn values_of((mut at, section): (Position, &str)) -> Vec<(Position, &str)> {
    let (mut values, mut rest) = (Vec::new(), section);
    while section.trim_start().starts_with(['{', '[']) && !rest.trim().is_empty() {
        let (value, after) = rest.split_at(end_of_value(rest));
        values.push((at, value));
        (at, rest) = (end_of(value).after(at), after);
    }
    if values.is_empty() { vec![(at, section)] } else { values }
}

/// Returns the length of the first JSON value of a text: up to where its brackets are closed, or up to a line that begins with `{`,
/// which is indented within a value. Words between values count as one.
fn end_of_value(text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    // Of each open bracket, whether it is that of an object.
    let (mut open, mut quoted, mut escaped, mut last) = (Vec::new(), false, false, ' ');
    for (at, char) in text.char_indices().filter(|(at, _)| *at >= start) {
        let is_bracket = !quoted && matches!(char, '{' | '[');
        if at > start && (last == '\n' && char == '{' || is_bracket && open.is_empty()) {
            return at;
        }
        match char {
            // No JSON string goes beyond its line.
            '\n' => (quoted, escaped) = (false, false),
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if is_bracket => open.push(char == '{'),
            // A brace closes what is open within its object; a bracket closes a list only.
            '}' | ']' if !quoted => {
                let is_object = |object: &bool| *object;
                open.truncate(match char {
                    '}' => open.iter().rposition(is_object).unwrap_or(0),
                    _ => open.len() - usize::from(open.last() == Some(&false)),
                });
                if open.is_empty() {
                    return at + 1;
                }
            }
            _ => {}
        }
        last = char;
    }
    text.len()
}

/// Returns the position behind a text that begins at the first position.
fn end_of(text: &str) -> Position {
    let last_line = text.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
    Position { line: text.matches('\n').count() as u64 + 1, column: last_line + 1 }
}

/// Returns the parts of a YAML stream with their positions: a line that begins with `---` begins one.
fn sections(text: &str) -> Vec<(Position, &str)> {
    let is_marker = |line: &str| {
        line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    // Directives and comments belong to the document that follows.
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with(['%', '#']);
    let (mut found, mut start, mut first, mut at, mut has_content) = (Vec::new(), 0, 1, 0, false);
    for (line, number) in text.split_inclusive('\n').zip(1_u64..) {
        if is_marker(line) && has_content {
            found.push((Position { line: first, column: 1 }, text.get(start..at).unwrap_or_default()));
            (start, first, has_content) = (at, number, false);
        }
        has_content |= is_marker(line) || is_content(&line);
        at += line.len();
    }
    found.push((Position { line: first, column: 1 }, text.get(start..).unwrap_or_default()));
    found
}

fn parse_stream(text: &str) -> Vec<Parsed> {
    let mut reader = text.as_bytes();
    let nodes = serde_saphyr::read_with_options::<_, Node>(&mut reader, options());
    nodes
        .map(|node| {
            node.map_err(|error| {
                let (at, words) = yaml_words(&error);
                (at, within_limits(words))
            })
        })
        .collect()
}

/// Returns the message of an error, which names the limit that a text exceeds.
fn within_limits(words: String) -> String {
    if words.contains("budget breached") {
        return format!("too large or too deep: more than {MOST_VALUES} values, or more than {MOST_LEVELS} levels");
    }
    if words.contains("alias replay limit") {
        return format!("too large: its aliases repeat more than {MOST_REPEATED} values");
    }
    words
}

/// Maximum number of values with positions in one file.
const MOST_VALUES: usize = 500_000;
/// So many values a document counts as that cannot be read.
const OF_ERROR: usize = MOST_VALUES / 20;
/// Maximum number of values that aliases (`*name`) repeat in one file. Each is parsed anew: a few hundred bytes could
/// expand to [`MOST_VALUES`].
const MOST_REPEATED: usize = 50_000;
/// Maximum depth of nesting.
const MOST_LEVELS: usize = 100;

fn options() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! {
            max_documents: 1_000_000,
            max_depth: MOST_LEVELS,
            max_nodes: MOST_VALUES,
            max_events: 2_000_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_REPEATED,
        },
    }
}

/// Returns the JSON values of a text with their positions; `None` when it is not JSON.
pub fn json_parts(text: &str) -> Option<Vec<(Position, &str)>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, Position { line: 1, column: 1 });
    while let Some(value) = stream.next() {
        value.ok()?;
        let end = stream.byte_offset();
        let part = text.get(start..end)?;
        parts.push((at, part));
        at = end_of(part).after(at);
        start = end;
    }
    Some(parts)
}

/// Parses a part of a file. JSON is parsed as YAML: one parser finds positions and duplicate keys.
pub fn shifted((start, text): (Position, &str)) -> Vec<Parsed> {
    let mut nodes = parse_stream(text);
    for node in &mut nodes {
        match node {
            Ok(node) => node.shift(start),
            Err((at, _)) => *at = at.map(|at| at.after(start)),
        }
    }
    nodes
}
