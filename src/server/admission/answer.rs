//! From a verdict to the answer that the API server understands.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::review::{Request, Status, StatusCause, StatusDetails};
use crate::model::Mode;
use crate::mutate::Patch;
use crate::rules::{Judged, Violation};

/// What is found of a request, and what is to be changed of its object, as if rolegate enforced.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What was found.
    pub judged: Judged,
    /// The changes.
    pub patch: Patch,
    /// Shown to the user, beside what was found.
    pub warnings: Vec<String>,
    /// What holds the pod that was made, as its annotation says it.
    pub held_by: Option<String>,
}

impl Verdict {
    /// What was judged. Rules that could not judge are no news to the user.
    pub fn of(judged: Judged) -> Self {
        Self { judged, ..Self::default() }
    }

    /// It passes as it is.
    pub fn pass() -> Self {
        Self::default()
    }

    /// It passes with changes.
    pub fn change(patch: Patch) -> Self {
        Self { patch, ..Self::default() }
    }

    /// It passes as it is, with a warning.
    pub fn warn(warning: String) -> Self {
        Self { warnings: vec![warning], ..Self::default() }
    }

    /// What becomes of it in a mode.
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

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It passed as it is.
    Allowed,
    /// It was changed, and is no pod that is held.
    Patched,
    /// A pod has our gate.
    Held,
    /// It was refused.
    Denied,
    /// It would be changed where rolegate enforces.
    WouldPatch,
    /// The pod would be held where rolegate enforces.
    WouldHold,
    /// It would be refused where rolegate enforces.
    WouldDeny,
}

impl Word {
    /// As audit annotations and traces have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Patched => "patched",
            Self::Held => "held",
            Self::Denied => "denied",
            Self::WouldPatch => "would-patch",
            Self::WouldHold => "would-hold",
            Self::WouldDeny => "would-deny",
        }
    }
}

/// What is answered.
#[derive(Debug)]
pub struct Outcome {
    /// What is left of the findings.
    judged: Judged,
    /// The changes.
    pub patch: Patch,
    warnings: Vec<String>,
    /// What became of it.
    pub word: Word,
    /// What the API server notes in its audit log.
    pub audit: Audit,
}

/// What the API server notes in its audit log, each key behind the webhook's name and a slash.
#[derive(Debug, Default)]
pub struct Audit {
    /// What became of the request; `None` where another webhook of ours says it, for a key is taken once.
    pub verdict: Option<&'static str>,
    /// Rules that found something.
    pub rules: Vec<&'static str>,
    /// What holds the pod, or would.
    pub held_by: Option<String>,
    /// Said where it is not `enforce`.
    pub mode: Mode,
}

impl Audit {
    /// What is noted of a request that nothing could be found out about.
    pub fn unknown(mode: Mode) -> Self {
        Self { verdict: Some("unknown"), mode, ..Self::default() }
    }

    /// As a field of the response, after a comma; nothing where there is nothing to note.
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
            // Names are other people's words.
            _ = write!(text, r#"{before}"{key}":{}"#, Value::from(value));
            before = ",";
        }
        if before == "," {
            text.push('}');
        }
    }
}

impl Outcome {
    /// It passes, for nothing could be found out about it and nothing is refused here.
    pub fn unknown(mode: Mode) -> Self {
        Self { audit: Audit::unknown(mode), ..Verdict::pass().in_mode(mode) }
    }

    /// The answer to a request, in the version that asked.
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

/// An answer: written by hand, since nearly all are alike, and the patch is encoded where it stands.
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
    // It is the caller's word.
    _ = write!(text, r#"{},"allowed":{allowed}"#, Value::from(uid));
    audit.write(&mut text);
    if !warnings.is_empty() {
        _ = write!(text, r#","warnings":{}"#, json!(warnings));
    }
    more(&mut text);
    text.push_str("}}");
    text
}

/// Nothing in base64 is to be escaped.
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

/// Violations in the message.
const IN_MESSAGE: usize = 10;
/// Causes, and warnings, of one answer; the last says how many more there are.
const IN_ANSWER: usize = 100;

/// The first so many, the last of which stands for the rest.
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
