//! Markdown pages as their tests see them: fenced blocks, HTML comments, headings and links, each with its line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What stands in a page, in its order. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A fenced block.
    Fence(Fence),
    /// An HTML comment by itself, without its brackets; its line is that of its first word.
    Comment { line: usize, text: String },
    /// A heading, as it is written after its `#`.
    Heading { line: usize, text: String },
    /// Any other line.
    Text { line: usize, text: String },
}

/// A fenced block: its language, the `key=value` words after it, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// Of its first line inside.
    pub line: usize,
    pub language: String,
    pub options: BTreeMap<String, String>,
    pub lines: Vec<String>,
}

/// Pages outside of `docs`.
const OUTSIDE: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "benches/README.md",
    "src/README.md",
    "tests/cases/designs/README.md",
    "tests/live/chaos/README.md",
];

/// The pages of the root, everything in `docs`, and what stands beside the code, as seen from the crate's root.
pub fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<_> = OUTSIDE.iter().map(|page| root.join(page)).collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                None => folders.push(entry),
                Some(extension) if extension == "md" => found.push(entry),
                Some(_) => {}
            }
        }
    }
    found.sort();
    found.into_iter().map(|page| page.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
}

/// Reads a page by its path from the crate's root.
pub fn read(page: &str) -> Vec<Item> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
    parse(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Takes a page apart.
pub fn parse(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((line, text)) = lines.next() {
        let bare = text.trim_start();
        if let Some(info) = bare.strip_prefix("```") {
            let indent = text.len() - bare.len();
            let inside = lines.by_ref().map(|(_, text)| text).take_while(|text| text.trim() != "```");
            // A block inside a list is indented as the list is.
            let inside =
                inside.map(|text| text.get(indent.min(text.len() - text.trim_start().len())..).unwrap_or(text));
            let lines = inside.map(str::to_owned).collect();
            let mut words = info.split_whitespace().map(str::to_owned);
            let language = words.next().unwrap_or_default();
            let options = words.filter_map(|word| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())));
            items.push(Item::Fence(Fence { line: line + 1, language, options: options.collect(), lines }));
        } else if let Some(comment) = bare.strip_prefix("<!--") {
            let mut text = comment.to_owned();
            while !text.contains("-->") {
                let Some((_, next)) = lines.next() else { break };
                text.push('\n');
                text.push_str(next);
            }
            let text = text.split("-->").next().unwrap_or_default().trim().to_owned();
            items.push(Item::Comment { line, text });
        } else if let Some(heading) = heading(text) {
            items.push(Item::Heading { line, text: heading.to_owned() });
        } else {
            items.push(Item::Text { line, text: text.to_owned() });
        }
    }
    items
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(text)?.strip_prefix(' ').map(str::trim)
}

/// What links lead to by `#…`, as GitHub names headings: of two alike the second ends in `-1`.
pub fn anchors(items: &[Item]) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = items.iter().filter_map(|item| match item {
        Item::Heading { text, .. } => Some(text),
        _ => None,
    });
    let mut anchor = |text: &String| {
        let kept = text.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let slug: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = seen.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    };
    headings.map(&mut anchor).collect()
}

/// Where the links of a page lead, as they are written, with their lines. A link may go over the end of a line.
pub fn links(items: &[Item]) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for item in items {
        let (Item::Text { line, text } | Item::Heading { line, text }) = item else { continue };
        let prose: Vec<_> = text.split('`').step_by(2).collect();
        // What is code is no link, but it may be a link's text.
        let prose = prose.join("`");
        for after in prose.split("](").skip(1) {
            let target = after.split([')', ' ']).next().unwrap_or_default();
            links.push((*line, target.to_owned()));
        }
    }
    links
}
