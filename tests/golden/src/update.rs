//! Writes answers into test files, and leaves everything else as it is, including comments and anchors.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::case::{Case, Match};
use super::outcome::Difference;
use super::yaml;
use rolegate::cli::node::{Node, Position};
use rolegate::cli::parse::parse;

/// The reason why a case cannot be updated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The expectation begins within a line.
    #[error("its expectation begins within a line: begin a line with `expect:`")]
    Inline,
    /// The change would affect other parts of the file, such as aliases of an anchor.
    #[error("what it expects cannot be replaced without changing other parts of the file: write it by hand")]
    Entangled,
    #[error("{0}")]
    File(#[from] std::io::Error),
}

/// Writes the answers of a case into its file.
pub(crate) fn update(file: &Path, case: &Case, differences: &[Difference]) -> Result<(), Refusal> {
    let text = fs::read_to_string(file)?;
    let (documents, mut values) = read(&text).ok_or(Refusal::Entangled)?;
    let (number, index) = case.place;
    let node = documents.get(number).ok_or(Refusal::Entangled)?;
    let expect = values
        .get_mut(number)
        .and_then(|value| value.pointer_mut(&format!("/cases/{index}/expect"))?.as_object_mut())
        .ok_or(Refusal::Entangled)?;
    let sections: Vec<_> =
        differences.iter().map(|difference| (difference.asked.name(), section(difference))).collect();
    expect.extend(sections.iter().map(|(name, section)| ((*name).to_owned(), section.clone().into())));
    let edits = edits_of(&text, node, index, expect, &sections)?;
    let written = apply(&text, edits);
    let is_right = read(&written).is_some_and(|(_, read)| read == values);
    if !is_right {
        return Err(Refusal::Entangled);
    }
    Ok(fs::write(file, written)?)
}

fn section(difference: &Difference) -> Map<String, Value> {
    let mut section = difference.found.clone();
    if difference.matching == Match::Partial {
        section.insert("match".to_owned(), "partial".into());
    }
    section
}

/// Parses the documents of a text, and their values.
fn read(text: &str) -> Option<(Vec<Node>, Vec<Value>)> {
    let nodes: Vec<Node> = parse(text).into_iter().collect::<Result<_, _>>().ok()?;
    let values = nodes.iter().map(Node::to_json).collect();
    Some((nodes, values))
}

/// First line, line after the last, and the replacement.
type Edit = (usize, usize, String);

/// Returns one edit per command if each begins a line, else one for the whole expectation.
fn edits_of(
    text: &str,
    document: &Node,
    index: usize,
    expect: &Map<String, Value>,
    sections: &[(&str, Map<String, Value>)],
) -> Result<Vec<Edit>, Refusal> {
    let at = |steps: &[&str]| {
        let case = [(false, "cases".to_owned()), (true, index.to_string())];
        let steps: Vec<_> = case.into_iter().chain(steps.iter().map(|step| (false, (*step).to_owned()))).collect();
        document.locate(&steps)
    };
    let part = |at: Position, key: &str, value: &Map<String, Value>| {
        let (first, last, indent) = block(text, at, key)?;
        let lead: String = text.lines().nth(first)?.chars().take(indent).collect();
        Some((first, last, format!("{lead}{key}:\n{}", yaml::lines(value, indent + 2))))
    };
    let parts: Option<Vec<_>> =
        sections.iter().map(|(name, section)| part(at(&["expect", name]), name, section)).collect();
    match parts {
        Some(parts) => Ok(parts),
        None => part(at(&["expect"]), "expect", expect).map(|edit| vec![edit]).ok_or(Refusal::Inline),
    }
}

/// Returns the lines of a key with its value, and its indent; `None` when it does not begin a line.
fn block(text: &str, at: Position, key: &str) -> Option<(usize, usize, usize)> {
    let first = usize::try_from(at.line).ok()?.checked_sub(1)?;
    let indent = usize::try_from(at.column).ok()?.checked_sub(1)?;
    let line: Vec<char> = text.lines().nth(first)?.chars().collect();
    let (lead, rest) = (line.get(..indent)?, line.get(indent..)?);
    let begins = lead.iter().all(|letter| *letter == ' ' || *letter == '-');
    let rest: String = rest.iter().collect();
    if !begins || !rest.starts_with(&format!("{key}:")) {
        return None;
    }
    let mut last = first + 1;
    for (number, line) in text.lines().enumerate().skip(first + 1) {
        let trimmed = line.trim_start();
        // Blank lines and comments belong to the next key, unless the value continues after them.
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if line.len() - trimmed.len() <= indent {
            break;
        }
        last = number + 1;
    }
    Some((first, last, indent))
}

fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(first, ..)| *first);
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let (mut written, mut next) = (String::new(), 0);
    for (first, last, instead) in edits {
        written.extend(lines.get(next..first).unwrap_or_default().iter().copied());
        written.push_str(&instead);
        next = last;
    }
    written.extend(lines.get(next..).unwrap_or_default().iter().copied());
    written
}
