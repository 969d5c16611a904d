//! Parses YAML and JSON into nodes with positions, within limits of size.

use serde_saphyr::{DuplicateKeyPolicy, Options};

use super::node::{Node, Position};

/// A document, or the position and the message of an error.
pub type Parsed = Result<Node, (Option<Position>, String)>;

/// Parses the documents of a YAML stream. After an error, parsing continues where the parser can recover.
pub fn parse(text: &str) -> Vec<Parsed> {
    let mut reader = text.as_bytes();
    let nodes = serde_saphyr::read_with_options::<_, Node>(&mut reader, options());
    nodes
        .map(|node| {
            node.map_err(|error| {
                let at = error.location().map(Position::from).filter(|at| at.line > 0);
                (at, plain(&error))
            })
        })
        .collect()
}

/// Returns the first line of an error, without the position, which is printed separately.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or_default();
    if line.contains("budget breached") {
        return format!("too large or too deep: more than {MOST_VALUES} values, or more than {MOST_LEVELS} levels");
    }
    if line.contains("alias replay limit") {
        return format!("too large: its aliases repeat more than {MOST_REPEATED} values");
    }
    // The rest of the message is for callers of the parser.
    let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
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
