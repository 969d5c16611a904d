//! Wording of numbers, times and messages for people.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

use super::names;
use super::workload::{Lack, Unlabelled};

/// Returns `1 pod`, `2 pods`.
pub fn counted(count: impl TryInto<u64>, word: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Returns a time for people: `10s`, `1h 30m`.
pub fn time(time: Duration) -> String {
    SignedDuration::try_from(time).map_or_else(|_| format!("{}s", time.as_secs()), |time| format!("{time:#}"))
}

/// Returns numbers for people, with runs of them as one: `1-3, 5`.
pub fn numbers(sorted: &[u32]) -> String {
    let runs = sorted.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let written = runs.filter_map(|run| Some(ordinals(&(*run.first()?..=*run.last()?))));
    written.collect::<Vec<_>>().join(", ")
}

/// Returns the beginning of a text, cut after a whole character, at most `longest` bytes.
pub fn beginning(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// Returns the beginning of an answer that fits into a sentence.
pub fn answer(text: &str) -> &str {
    beginning(text, 300)
}

/// Returns `the pod template of StatefulSet "prefill" lacks labels rolegate.dev/group: "pd" and …; its pods are not held`.
pub fn not_labelled(lack: Unlabelled, (kind, name): (&str, &str), group: &str, role: &str) -> String {
    let (group_key, role_key) = (names::GROUP, names::ROLE);
    let template = format!("the {} of {kind} {name:?} lacks", lack.template.unwrap_or("pod template"));
    match lack.lack {
        Lack::Group => {
            format!("{template} labels {group_key}: {group:?} and {role_key}: {role:?}; its pods are not held")
        }
        Lack::Role => {
            format!("{template} label {role_key}: {role:?}; its pods count for that role, whose workload makes them")
        }
    }
}

/// Returns ordinals for people: `7`, `0-9`.
pub fn ordinals(range: &RangeInclusive<u32>) -> String {
    if range.start() == range.end() { range.start().to_string() } else { format!("{}-{}", range.start(), range.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_are_one() {
        assert_eq!(numbers(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7-8");
        assert_eq!(numbers(&[]), "");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            (counted(1, "pod"), counted(0, "pod"), ordinals(&(4..=4))),
            ("1 pod".into(), "0 pods".into(), "4".into())
        );
    }
}
