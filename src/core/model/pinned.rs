//! Entries that rolegate added to the `nodeSelector` of a released pod, as an annotation of the pod stores them. A copy of the
//! pod, such as one from a backup, would otherwise ask for an outdated place.

use std::collections::BTreeMap;

/// Returns `example.com/rack=r1,kubernetes.io/hostname=n1`.
pub fn text(pin: &BTreeMap<String, String>) -> String {
    pin.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Returns the entries of a text; unreadable entries are skipped.
pub fn read(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|entry| entry.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let pin = BTreeMap::from([("example.com/rack", "r1"), ("kubernetes.io/hostname", "")]);
        let pin = pin.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(text(&pin), "example.com/rack=r1,kubernetes.io/hostname=");
        assert_eq!(read(&text(&pin)).collect::<Vec<_>>(), [("example.com/rack", "r1"), ("kubernetes.io/hostname", "")]);
        assert_eq!(read("").chain(read("rack")).count(), 0);
    }
}
