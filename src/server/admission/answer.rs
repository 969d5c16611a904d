//! From a verdict to the JSON answer for the API server.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::review::{Request, Status, StatusCause, StatusDetails};
use crate::model::Mode;
use crate::model::words::words;
use crate::mutate::Patch;
use crate::rules::{Judged, Violation};

/// Findings and changes of a request in mode `enforce`.
#[derive(Debug, Default)]
pub struct Verdict {
    pub judged: Judged,
    pub patch: Patch,
    /// Shown to the user, beside the findings.
    pub warnings: Vec<String>,
    /// Value of the annotation with the holder of the created pod.
    pub held_by: Option<String>,
}

impl Verdict {
    /// Returns a verdict with these findings only.
    pub fn of(judged: Judged) -> Self {
        Self { judged, ..Self::default() }
    }

    /// Returns a verdict that admits the object unchanged.
    pub fn pass() -> Self {
        Self::default()
    }

    /// Returns a verdict that admits the object with changes.
    pub fn change(patch: Patch) -> Self {
        Self { patch, ..Self::default() }
    }

    /// Returns a verdict that admits the object unchanged, with a warning.
    pub fn warn(warning: String) -> Self {
        Self { warnings: vec![warning], ..Self::default() }
    }

    /// Returns the outcome in a mode.
    pub fn in_mode(self, mode: Mode) -> Outcome {
        let Self { judged, patch, warnings, held_by } = self;
        let (would_deny, rules) = (!judged.is_allowed(), judged.rules());
        let judged = judged.in_mode(mode);
        let word = match (judged.is_allowed(), would_deny, &held_by) {
            (false, ..) => Word::Denied,
            (true, true, _) => Word::WouldDeny,
            (true, false, Some(_)) if mode == Mode::Observe => Word::WouldHold,
            (true, false, Some(_)) => Word::Held,
            (true, false, None) if patch.is_empty() => Word::Allowed,
            (true, false, None) if mode == Mode::Observe => Word::WouldPatch,
            (true, false, None) => Word::Patched,
        };
        let (patch, warnings) = if mode == Mode::Observe { Default::default() } else { (patch, warnings) };
        Outcome { judged, patch, warnings, word, audit: Audit { verdict: Some(word.as_str()), rules, held_by, mode } }
    }
}

words! {
/// The result of a request, as a word.
pub enum Word {
    /// Admitted unchanged.
    Allowed = "allowed",
    /// Admitted with changes, except a held pod.
    Patched = "patched",
    /// A pod with the gate.
    Held = "held",
    Denied = "denied",
    /// Would be changed in mode `enforce`.
    WouldPatch = "would-patch",
    /// A pod that would be held in mode `enforce`.
    WouldHold = "would-hold",
    /// Would be refused in mode `enforce`.
    WouldDeny = "would-deny",
}
}

/// The answer to a request in its mode.
#[derive(Debug)]
pub struct Outcome {
    /// The findings that count in the mode.
    judged: Judged,
    pub patch: Patch,
    warnings: Vec<String>,
    pub word: Word,
    pub audit: Audit,
}

/// Audit annotations. The API server prefixes each key with the webhook's name and a slash.
#[derive(Debug, Default)]
pub struct Audit {
    /// The result; `None` where another webhook of rolegate reports it, since each key is accepted once.
    pub verdict: Option<&'static str>,
    /// Rules with findings.
    pub rules: Vec<&'static str>,
    /// The holder, or would-be holder, of the pod.
    pub held_by: Option<String>,
    /// Written unless it is `enforce`.
    pub mode: Mode,
}

impl Audit {
    /// Returns the annotations of a request that could not be judged.
    pub fn unknown(mode: Mode) -> Self {
        Self { verdict: Some("unknown"), mode, ..Self::default() }
    }

    /// Writes the field of the response after a comma; nothing without annotations.
    fn write(&self, text: &mut String) {
        let rules = (!self.rules.is_empty()).then(|| self.rules.join(","));
        let mode = (self.mode != Mode::Enforce).then(|| self.mode.as_str());
        let all = [
            ("verdict", self.verdict),
            ("rules", rules.as_deref()),
            ("held-by", self.held_by.as_deref()),
            ("mode", mode.filter(|_| self.verdict.is_some())),
        ];
        let mut before = r#","auditAnnotations":{"#;
        for (key, value) in all.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            // Names come from users.
            _ = write!(text, r#"{before}"{key}":{}"#, Value::from(value));
            before = ",";
        }
        if before == "," {
            text.push('}');
        }
    }
}

impl Outcome {
    /// Returns an outcome that admits a request that could not be judged.
    pub fn unknown(mode: Mode) -> Self {
        Self { audit: Audit::unknown(mode), ..Verdict::pass().in_mode(mode) }
    }

    /// Returns the answer to a request, in the version of the request.
    pub fn into_json(self, api_version: &str, request: &Request<'_>) -> String {
        let Self { judged, patch, mut warnings, audit, .. } = self;
        let found = bounded(judged.warnings.iter().map(ToString::to_string), |more| more);
        warnings.splice(0..0, found);
        if judged.is_allowed() {
            return answer(api_version, &request.uid, true, &audit, &warnings, |text| patched(patch, text));
        }
        let status = refusal(request, &judged.errors, judged.is_forbidden());
        answer(api_version, &request.uid, false, &audit, &warnings, |text| {
            _ = write!(text, r#","status":{}"#, json!(status));
        })
    }
}

/// Builds the answer by hand, since nearly all are alike, and encodes the patch in place.
fn answer(
    api_version: &str,
    uid: &str,
    allowed: bool,
    audit: &Audit,
    warnings: &[String],
    more: impl FnOnce(&mut String),
) -> String {
    let mut text = String::with_capacity(512);
    text.push_str(r#"{"apiVersion":""#);
    text.push_str(api_version);
    text.push_str(r#"","kind":"AdmissionReview","response":{"uid":"#);
    // The uid comes from the caller.
    _ = write!(text, r#"{},"allowed":{allowed}"#, Value::from(uid));
    audit.write(&mut text);
    if !warnings.is_empty() {
        _ = write!(text, r#","warnings":{}"#, json!(warnings));
    }
    more(&mut text);
    text.push_str("}}");
    text
}

/// Base64 needs no escapes.
fn patched(patch: Patch, text: &mut String) {
    if patch.is_empty() {
        return;
    }
    let patch = patch.into_bytes();
    text.reserve(64 + patch.len() * 4 / 3);
    text.push_str(r#","patchType":"JSONPatch","patch":""#);
    STANDARD.encode_string(patch, text);
    text.push('"');
}

/// Largest number of violations in the message.
const IN_MESSAGE: usize = 10;
/// Largest number of causes, and of warnings, in one answer; the last one counts the rest.
const IN_ANSWER: usize = 100;

/// Returns the first entries, up to `IN_ANSWER`, the last of which stands for the rest.
fn bounded<T>(all: impl ExactSizeIterator<Item = T>, rest: impl FnOnce(String) -> T) -> Vec<T> {
    let count = all.len();
    if count <= IN_ANSWER {
        return all.collect();
    }
    let more = rest(format!("and {} more", count - IN_ANSWER + 1));
    all.take(IN_ANSWER - 1).chain([more]).collect()
}

fn refusal(request: &Request<'_>, violations: &[Violation], forbidden: bool) -> Status {
    let mut shown: Vec<_> = violations.iter().take(IN_MESSAGE).map(ToString::to_string).collect();
    if let Some(more) = violations.len().checked_sub(IN_MESSAGE).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    let list = shown.join(", ");
    let list = if violations.len() > 1 { format!("[{list}]") } else { list };
    let (kind, group) = (request.kind.kind.to_string(), request.kind.group.to_string());
    let name = request.name.as_deref().unwrap_or_default().to_owned();
    let qualified = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
    let (word, reason, code) = if forbidden { ("forbidden", "Forbidden", 403) } else { ("invalid", "Invalid", 422) };
    let causes = violations.iter().map(|violation| StatusCause {
        reason: violation.cause.as_str(),
        message: violation.message(),
        field: violation.path.to_string(),
    });
    let causes = bounded(causes, |message| StatusCause { message, ..StatusCause::default() });
    Status {
        status: "Failure",
        message: format!("{qualified} {name:?} is {word}: {list}"),
        reason,
        code,
        details: Some(StatusDetails { name, group, kind, causes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_hundred_counts_those_that_are_left_out() {
        let of = |count: u32| bounded((0..count).map(|number| number.to_string()), |more| more);
        assert_eq!((of(100).len(), of(100).last().map(String::as_str)), (100, Some("99")));
        assert_eq!((of(150).len(), of(150).last().map(String::as_str)), (100, Some("and 51 more")));
    }
}
