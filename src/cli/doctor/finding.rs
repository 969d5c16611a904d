//! Findings of `doctor`.

use serde::Serialize;

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
    pub fn known<'a, T>(&mut self, read: &'a Result<T, String>, what: &str) -> Option<&'a T> {
        match read {
            Ok(known) => Some(known),
            Err(why) => {
                self.add(Level::Info, format!("not checked: {what} cannot be read: {why}"), None);
                None
            }
        }
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}
