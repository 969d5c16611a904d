//! Resources that need not be on a node, as `--ignore-resources` and the Lease write them: an extender of the scheduler hands them
//! out.

use super::object_name::subdomain_fault;

/// The end of a text that stands for all resources with a prefix.
const ALL: &str = "/*";
/// The prefix of resources for huge pages.
pub const HUGE_PAGES: &str = "hugepages-";

/// Names and prefixes of resources. They live as long as the process, which reads its flags once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredResources(&'static [String]);

impl IgnoredResources {
    pub fn of(texts: Vec<String>) -> Self {
        Self(texts.leak())
    }

    /// Reads a text of [`Self::list`]; what names no resource is left out.
    pub fn parse_list(text: &str) -> Self {
        Self::of(text.split(',').filter_map(|one| parse(one).ok()).collect())
    }

    /// Returns these, or the others if there are none.
    #[must_use]
    pub const fn or(self, others: Self) -> Self {
        if self.0.is_empty() { others } else { self }
    }

    /// Returns all in one text.
    pub fn list(self) -> String {
        self.0.join(",")
    }

    /// Reports whether a resource is one of these.
    pub fn covers(self, resource: &str) -> bool {
        let is_of = |prefix: &str| resource.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
        self.0.iter().any(|one| one.strip_suffix(ALL).map_or(one == resource, is_of))
    }
}

/// Reads a resource as `example.com/device` or `hugepages-2Mi`, or a prefix as `example.com/*`.
///
/// # Errors
///
/// When the text is neither.
pub fn parse(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !name.is_empty() && name.chars().all(inner)
    };
    let is_resource = text.split_once('/').map_or_else(
        || text.strip_prefix(HUGE_PAGES).is_some_and(is_name),
        |(prefix, name)| subdomain_fault(prefix).is_none() && (name == "*" || is_name(name)),
    );
    let must = "must be an extended resource such as example.com/device, huge pages such as hugepages-2Mi, or a prefix such as \
                example.com/*";
    if is_resource { Ok(text.to_owned()) } else { Err(format!("{must}, and is {text:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_a_prefix_all_that_has_it() {
        let ignored = IgnoredResources::parse_list("example.com/device,gpu.io/*,hugepages-2Mi,cpu,a/b/c");
        assert_eq!(ignored.list(), "example.com/device,gpu.io/*,hugepages-2Mi");
        for covered in ["example.com/device", "gpu.io/mem", "gpu.io/core", "hugepages-2Mi"] {
            assert!(ignored.covers(covered), "{covered}");
        }
        for other in ["example.com/devices", "example.com/other", "my.gpu.io/mem", "gpu.io", "hugepages-1Gi", "cpu"] {
            assert!(!ignored.covers(other), "{other}");
        }
        assert_eq!(IgnoredResources::parse_list(""), IgnoredResources::default());
    }

    #[test]
    fn what_names_no_extended_resource_is_refused() {
        for text in
            ["", "*", "/*", "gpu", "cpu", "memory", "Example.com/a", "a/", "a/b/c", "a/b*", "hugepages-", "a b/c"]
        {
            assert!(parse(text).unwrap_err().ends_with(&format!("and is {text:?}")), "{text}");
        }
    }
}
