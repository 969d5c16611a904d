//! Semantic versions.

/// A semantic version without its build, which does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major, minor and patch.
    numbers: [u64; 3],
    /// It has no pre-release: it comes after all that have one.
    is_release: bool,
    before: Vec<Identifier>,
}

/// A part of a pre-release: numbers come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Reads a version as written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        if !build.into_iter().flat_map(|build| build.split('.')).all(is_identifier) {
            return None;
        }
        let is_release = before.is_none();
        let before = before.into_iter().flat_map(|before| before.split('.')).map(identifier).collect::<Option<_>>()?;
        Some(Self { numbers: [number(major)?, number(minor)?, number(patch)?], is_release, before })
    }

    /// Returns major, minor or patch.
    pub fn number(&self, at: usize) -> Option<i64> {
        i64::try_from(*self.numbers.get(at)?).ok()
    }
}

fn number(text: &str) -> Option<u64> {
    let is_number = text == "0" || (!text.starts_with(['0', '+']) && !text.is_empty());
    if is_number { text.parse().ok() } else { None }
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
