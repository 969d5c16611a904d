//! Parses YAML and JSON into nodes with positions, within limits of size.

use serde_saphyr::{DuplicateKeyPolicy, Options};

use super::node::{Node, Position};
use super::yaml_words::yaml_words;

/// A document, or the position and the message of an error.
pub type Parsed = Result<Node, (Option<Position>, String)>;

/// Parses the documents of a YAML stream. After an error, parsing continues where the parser can recover.
pub fn parse(text: &str) -> Vec<Parsed> {
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
        let last_line = part.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
        let lines = part.matches('\n').count() as u64;
        at = Position { line: lines + 1, column: last_line + 1 }.after(at);
        start = end;
    }
    Some(parts)
}

/// Parses JSON as YAML: one parser finds positions and duplicate keys.
pub fn part((start, text): (Position, &str)) -> Vec<Parsed> {
    let mut nodes = parse(text);
    for node in &mut nodes {
        match node {
            Ok(node) => node.shift(start),
            Err((at, _)) => *at = at.map(|at| at.after(start)),
        }
    }
    nodes
}
