//! Findings of `doctor`.

use serde::Serialize;

use crate::model::wording::counted;

/// Entries of a list to name; further ones are counted.
pub const NAMED: usize = 5;
/// Hint to what is not named.
pub const SEE_ALL: &str = "`rolegate status -A`";

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Good to know.
    Info,
    /// Works now, but may not for long.
    Warning,
    /// Does not work.
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the check.
    pub check: &'static str,
    pub level: Level,
    pub what: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Collects the findings of one check.
pub struct Findings {
    check: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    /// Creates an empty list of findings for a check.
    pub fn of(check: &'static str) -> Self {
        Self { check, found: Vec::new() }
    }

    fn add(&mut self, level: Level, what: impl Into<String>, hint: Option<String>) {
        self.found.push(Finding { check: self.check, level, what: what.into(), hint });
    }

    pub fn ok(&mut self, what: impl Into<String>) {
        self.add(Level::Ok, what, None);
    }

    pub fn info(&mut self, what: impl Into<String>) {
        self.add(Level::Info, what, None);
    }

    /// Adds an info with a hint.
    pub fn note(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Info, what, Some(hint.into()));
    }

    pub fn warning(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Warning, what, Some(hint.into()));
    }

    pub fn error(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Error, what, Some(hint.into()));
    }

    /// Returns the fact; when it could not be read, adds that as a finding.
    pub fn known<T>(&mut self, read: Result<T, &String>, what: &str) -> Option<T> {
        let unread = |why| self.info(format!("not checked: {what} cannot be read: {why}"));
        read.map_err(unread).ok()
    }

    /// Tells the first entries of a list, and how many more there are; `none` when it is empty.
    pub fn each<T>(
        &mut self,
        all: &[T],
        none: &str,
        (word, rest, hint): (&str, &str, &str),
        tell: impl Fn(&mut Self, &T),
    ) {
        if all.is_empty() {
            self.ok(none);
        }
        all.iter().take(NAMED).for_each(|one| tell(self, one));
        if let Some(more @ 1..) = all.len().checked_sub(NAMED) {
            self.warning(format!("{} more {rest}", counted(more, word)), hint);
        }
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}

/// Returns the first names, and how many more there are.
pub fn listed<'a>(all: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let all: Vec<_> = all.into_iter().collect();
    let more = all.len().checked_sub(most).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    all.iter().take(most).copied().collect::<Vec<_>>().join(", ") + &more.unwrap_or_default()
}
