//! Semantic versions.

use std::cmp::Ordering;

/// A semantic version without its build, which does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major, minor and patch.
    pub numbers: [u64; 3],
    before: Vec<Identifier>,
}

/// A part of a pre-release: numbers come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Reads a version as written, or with `lenient` also one with a `v`, leading zeros or without minor and patch.
    pub fn parse(text: &str, lenient: bool) -> Option<Self> {
        if lenient { Self::strict(&normalized(text)?) } else { Self::strict(text) }
    }

    fn strict(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
            return None;
        }
        let before = before.map_or(Some(Vec::new()), |before| before.split('.').map(identifier).collect())?;
        Some(Self { numbers: [number(major)?, number(minor)?, number(patch)?], before })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // What has no pre-release comes after all that have one.
        let before = (self.before.is_empty(), &self.before).cmp(&(other.before.is_empty(), &other.before));
        self.numbers.cmp(&other.numbers).then(before)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero { text.parse().ok() } else { None }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-')
}

fn identifier(text: &str) -> Option<Identifier> {
    if text.bytes().all(|digit| digit.is_ascii_digit()) {
        number(text).map(Identifier::Number)
    } else {
        is_identifier(text).then(|| Identifier::Text(text.to_owned()))
    }
}

fn normalized(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return None;
        }
        parts.resize(3, "0".to_owned());
    }
    Some(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|digit: char| digit.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}
