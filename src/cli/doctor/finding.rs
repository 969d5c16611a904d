//! What `doctor` finds.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Info,
    /// Works, or will not for long.
    Warning,
    /// Does not work.
    Error,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the check.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Collects the findings of one check.
pub struct Findings {
    check: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    /// None yet.
    pub fn of(check: &'static str) -> Self {
        Self { check, found: Vec::new() }
    }

    fn add(&mut self, level: Level, what: impl Into<String>, hint: Option<String>) {
        self.found.push(Finding { check: self.check, level, what: what.into(), hint });
    }

    /// As it should be.
    pub fn ok(&mut self, what: impl Into<String>) {
        self.add(Level::Ok, what, None);
    }

    /// Good to know.
    pub fn info(&mut self, what: impl Into<String>) {
        self.add(Level::Info, what, None);
    }

    /// Good to know, with what to do about it.
    pub fn note(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Info, what, Some(hint.into()));
    }

    /// Works, or will not for long.
    pub fn warning(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Warning, what, Some(hint.into()));
    }

    /// Does not work.
    pub fn error(&mut self, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Error, what, Some(hint.into()));
    }

    /// What was read; when it could not be, that is the finding.
    pub fn known<'a, T>(&mut self, read: &'a Result<T, String>, what: &str) -> Option<&'a T> {
        match read {
            Ok(known) => Some(known),
            Err(why) => {
                self.add(Level::Info, format!("not checked: {what} cannot be read: {why}"), None);
                None
            }
        }
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}
