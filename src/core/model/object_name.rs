//! Names of objects, validated as in Kubernetes. Names come from labels, annotations and specs that anyone may write; an
//! invalid name must not become part of a request.

/// Maximum length of a DNS-1123 subdomain, the form of most object names.
const SUBDOMAIN_MAX: usize = 253;
/// Maximum length of a DNS-1123 label, the form of hostnames and of the names of namespaces.
pub const LABEL_MAX: usize = 63;

/// Returns the fault of a DNS-1123 label, in Kubernetes' words; `None` for a valid one.
pub fn label_fault(name: &str) -> Option<&'static str> {
    if name.len() > LABEL_MAX {
        return Some("must be no more than 63 characters");
    }
    (!is_part(name)).then_some(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character",
    )
}

/// Returns the fault of a DNS-1123 subdomain, in Kubernetes' words; `None` for a valid one.
pub fn subdomain_fault(name: &str) -> Option<&'static str> {
    if name.len() > SUBDOMAIN_MAX {
        return Some("must be no more than 253 characters");
    }
    (!name.split('.').all(is_part)).then_some(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character",
    )
}

fn is_part(part: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let ends = |letter: Option<&u8>| letter.is_some_and(|letter| *letter != b'-');
    let bytes = part.as_bytes();
    bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_kubernetes_does() {
        for name in ["a", "0", "pd-1", &"a".repeat(63)] {
            assert_eq!((label_fault(name), subdomain_fault(name)), (None, None), "{name}");
        }
        for name in ["a.b", "0.1-x.y", &"a".repeat(64), &"a".repeat(253)] {
            assert!(label_fault(name).is_some() && subdomain_fault(name).is_none(), "{name}");
        }
        for name in
            ["", "/", ".", "..", "a/b", "a?watch=true", "x/status", "A", "a_b", "-a", "a-", "a..b", ".a", "é", "a%2f"]
        {
            assert!(label_fault(name).is_some() && subdomain_fault(name).is_some(), "{name}");
        }
        assert!(subdomain_fault(&"a".repeat(254)).is_some());
    }
}
