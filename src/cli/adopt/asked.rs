//! The request for an adoption, and the reasons to refuse it.

use std::fmt;

use super::running::Carrier;
use super::target::Size;

pub struct Asked<'a> {
    pub namespace: &'a str,
    pub group: Option<&'a str>,
    pub sizes: &'a [Size],
    pub max_skew: Option<&'a str>,
}

impl Asked<'_> {
    /// Returns messages about flags without effect: an existing group already says how it coordinates.
    pub fn without_effect(&self, carrier: Option<&Carrier>) -> Vec<String> {
        let Some(carrier) = carrier else { return Vec::new() };
        let given = [("--segment-size", !self.sizes.is_empty()), ("--max-skew", self.max_skew.is_some())];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        let (kind, meta) = (carrier.kind.kind, carrier.meta());
        given.map(|(flag, _)| format!("{flag} is for a new group: edit {kind} {}", meta.display_name())).collect()
    }
}

/// The reasons to refuse an adoption, one line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}
