//! What is asked for, and what stands in the way.

use std::fmt;

use super::target::Size;

/// What is asked for.
pub struct Asked<'a> {
    pub namespace: &'a str,
    pub group: Option<&'a str>,
    pub sizes: &'a [Size],
    pub max_skew: &'a str,
}

/// Everything that stands in the way, a line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}
