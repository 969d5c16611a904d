//! Label keys, checked as Kubernetes does, and names in messages.

use super::Report;
use crate::model::object_name::subdomain_fault;

/// Returns the requirement that a label key breaks; `None` for a valid one.
pub fn label_key_fault(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix
        && subdomain_fault(prefix).is_some()
    {
        return Some("the prefix of a label key must be a lowercase RFC 1123 subdomain");
    }
    let edge = |letter: Option<&u8>| letter.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |letter: &u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.');
    let bytes = name.as_bytes();
    let fits = bytes.len() <= 63 && bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last());
    (!fits).then_some(
        "a label key must consist of at most 63 alphanumeric characters, '-', '_' or '.', must start and end with an \
         alphanumeric character, and may have a prefix and '/'",
    )
}

/// Returns `; did you mean "prefill"?` for a word that is a typing mistake away from a name, else `""`.
pub(super) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match closest(word, names) {
        Some(name) => format!("; did you mean {name:?}?"),
        None => String::new(),
    }
}

impl Report {
    /// Returns the requirement with a hint, which only the first findings get: comparing names is slow.
    pub(super) fn with_hint<'a>(&self, must: &str, word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
        const SHOWN: usize = 10;
        if self.len() < SHOWN { format!("{must}{}", hint(word, names)) } else { must.to_owned() }
    }
}

/// Returns the name that is a typing mistake away, if there is one.
fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A distance takes time in the product of the lengths. No valid name is longer, and a client waits.
    const LONGEST: usize = 63;
    const COMPARED: usize = 50;
    if word.len() > LONGEST {
        return None;
    }
    let compared = names.into_iter().filter(|name| name.len() <= LONGEST).take(COMPARED);
    let near = compared.map(|name| (strsim::damerau_levenshtein(word, name), name));
    near.filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).min().map(|(_, name)| name)
}

/// Returns the first ten names, and the number of further ones.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 10;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(SHOWN).copied().collect();
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_are_judged_as_kubernetes_does() {
        for key in ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack", "a/B_c.d"] {
            assert_eq!(label_key_fault(key), None, "{key}");
        }
        for key in ["", "/", "a/", "/b", "a b", "A.b/c", "a/b/c", "-a", "a/-b", &"x".repeat(64)] {
            assert!(label_key_fault(key).is_some(), "{key}");
        }
    }

    #[test]
    fn at_most_ten_names_are_listed() {
        let names: Vec<_> = (0..12).map(|index| format!("r{index}")).collect();
        assert!(listed(names.iter().map(String::as_str)).ends_with("r9 and 2 more"));
        assert_eq!(listed(["a", "b"]), "a, b");
    }
}
