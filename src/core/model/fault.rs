//! Faults of reading: fields that are missing, misplaced or of a wrong form. The rule that each of them breaks reports it.

use std::time::Duration;

use jiff::SignedDuration;

use super::FieldPath;

/// The kind of a fault, with the names of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A required field is missing.
    Required,
    /// A value breaks a requirement.
    Invalid,
    /// A word is not one of the allowed ones.
    NotSupported,
    /// A value that must be unique occurs before.
    Duplicate,
    /// A referenced object does not exist.
    NotFound,
    /// A field may not be set here.
    Forbidden,
    /// The author has no right to what rolegate would do for the field.
    NoRight,
    /// A text is too long.
    TooLong,
    /// A list has too many entries.
    TooMany,
    /// The value is legal: a warning or note on its consequences.
    Notice,
}

impl Cause {
    /// Returns the `reason` of a `metav1.StatusCause`.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the words of Kubernetes for it.
    pub const fn words(self) -> &'static str {
        self.row().1
    }

    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Required => ("FieldValueRequired", "Required value"),
            Self::Invalid => ("FieldValueInvalid", "Invalid value"),
            Self::NotSupported => ("FieldValueNotSupported", "Unsupported value"),
            Self::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            Self::NotFound => ("FieldValueNotFound", "Not found"),
            Self::Forbidden | Self::NoRight => ("FieldValueForbidden", "Forbidden"),
            Self::TooLong => ("FieldValueTooLong", "Too long"),
            Self::TooMany => ("FieldValueTooMany", "Too many"),
            Self::Notice => ("Notice", ""),
        }
    }
}

/// What could not be read in an object. The value that was read in its place is the default, or the strictest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Id of the rule that is broken.
    pub rule: &'static str,
    /// The coordination; empty for the group itself.
    pub subject: String,
    pub at: FieldPath,
    pub cause: Cause,
    /// Value as JSON; `None` when the field is missing or misplaced.
    pub value: Option<String>,
    /// Requirement that the field does not meet.
    pub detail: String,
}

/// Reads the fields of one block for one rule, and notes the faults.
pub(super) struct Reader<'a> {
    pub(super) rule: &'static str,
    pub(super) subject: &'a str,
    /// Path of the block.
    pub(super) at: FieldPath,
    pub(super) faults: &'a mut Vec<Fault>,
}

impl<'a> Reader<'a> {
    /// Returns a reader of a group, or of a block that no object has.
    pub(super) fn of_group(faults: &'a mut Vec<Fault>) -> Self {
        Self { rule: "group-shape", subject: "", at: FieldPath::default(), faults }
    }

    /// Returns a reader of the same block for another rule.
    pub(super) fn by_rule(&mut self, rule: &'static str) -> Reader<'_> {
        Reader { rule, subject: self.subject, at: self.at.clone(), faults: self.faults }
    }

    /// Returns a reader of the block in a field.
    pub(super) fn within(&mut self, rule: &'static str, field: &'static str) -> Reader<'_> {
        Reader { at: self.at.child(field), ..self.by_rule(rule) }
    }

    pub(super) fn note(&mut self, at: FieldPath, cause: Cause, value: Option<String>, detail: impl Into<String>) {
        let (rule, subject) = (self.rule, self.subject.to_owned());
        self.faults.push(Fault { rule, subject, at, cause, value, detail: detail.into() });
    }

    /// Notes a field of a wrong form; without a value it is missing.
    pub(super) fn wrong(&mut self, at: FieldPath, value: Option<String>, detail: &str) {
        let cause = if value.is_some() { Cause::Invalid } else { Cause::Required };
        self.note(at, cause, value, detail);
    }

    /// Reads a word, of which an empty one stands for the default; `None` for an unknown one.
    pub(super) fn word<T: Copy>(
        &mut self,
        field: &'static str,
        written: Option<&str>,
        spellings: &[(&str, T)],
        default: T,
    ) -> Option<T> {
        let Some(written) = written.filter(|word| !word.is_empty()) else { return Some(default) };
        let known = spellings.iter().find(|(word, _)| *word == written);
        if known.is_none() {
            let detail = supported(spellings.iter().map(|(word, _)| *word));
            self.note(self.at.child(field), Cause::NotSupported, quoted(written), detail);
        }
        known.map(|(_, meant)| *meant)
    }

    /// Reads a time; an empty one is none.
    pub(super) fn time(&mut self, field: &'static str, written: Option<&str>) -> Option<Duration> {
        let text = written.filter(|text| !text.is_empty())?;
        self.or_wrong(field, read_time(text), quoted(text), MUST_BE_A_TIME)
    }

    /// Reads a number from 1 to `most`.
    pub(super) fn number(
        &mut self,
        field: &'static str,
        written: Option<i64>,
        (most, detail): (u32, &str),
    ) -> Option<u32> {
        let read = u32::try_from(written?).ok().filter(|read| (1..=most).contains(read));
        self.or_wrong(field, read, written.map(|number| number.to_string()), detail)
    }

    fn or_wrong<T>(&mut self, field: &'static str, read: Option<T>, value: Option<String>, detail: &str) -> Option<T> {
        if read.is_none() {
            self.wrong(self.at.child(field), value, detail);
        }
        read
    }
}

/// Longest time that is accepted.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
pub const MUST_BE_A_TIME: &str = "must be a duration from one second to a year, such as 30s, 10m or 1h30m";

/// Reads a time from one second to a year.
pub(super) fn read_time(text: &str) -> Option<Duration> {
    let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok())?;
    (Duration::from_secs(1)..=LONGEST).contains(&read).then_some(read)
}

/// Returns a string in quotes, as messages show it.
pub fn quoted(text: &str) -> Option<String> {
    Some(format!("{text:?}"))
}

/// Returns the detail of an unsupported word.
pub fn supported<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("supported values: {}", words.join(", "))
}
