//! Names and keys, judged as Kubernetes judges its own.

/// What a DNS-1123 label must be, in Kubernetes' words; `None` when the name is one.
pub(super) fn dns_label_fault(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let ends = |letter: Option<&u8>| letter.is_some_and(|letter| *letter != b'-');
    let bytes = name.as_bytes();
    let fits = bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last());
    (!fits).then_some(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character",
    )
}

/// What a label key must be; `None` when the text is one.
pub(super) fn label_key_fault(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix
        && (prefix.len() > 253 || prefix.split('.').any(|part| dns_label_fault(part).is_some()))
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

/// `; did you mean "prefill"?` for a word that is a typing mistake away from a name, else nothing.
pub(super) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match closest(word, names) {
        Some(name) => format!("; did you mean {name:?}?"),
        None => String::new(),
    }
}

/// Names that a word is compared with: a person has no more to choose from.
const MOST_COMPARED: usize = 50;

/// The name a typing mistake away, if there is one.
fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distances take time in the product of the lengths, and somebody waits for the answer.
    if word.len() > 63 {
        return None;
    }
    let near = names
        .into_iter()
        .filter(|name| name.len() <= 63)
        .take(MOST_COMPARED)
        .map(|name| (strsim::damerau_levenshtein(word, name), name));
    near.filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).min().map(|(_, name)| name)
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
    fn a_typing_mistake_gets_a_hint() {
        assert_eq!(hint("prefil", ["prefill", "decode"]), "; did you mean \"prefill\"?");
        assert_eq!(hint("router", ["prefill", "decode"]), "");
    }
}
