//! The effect of findings in a mode, shared by webhook, loop and offline commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::settings::why_fixed;
use super::{Cause, Judged, Violation};
use crate::model::Mode;

/// Suffix of an error that mode `warn` turns into a warning.
const WOULD: &str = " (refused once rolegate enforces)";

impl Judged {
    /// Returns the findings in a mode. `warn` turns errors into warnings, except for missing rights of the author, whom
    /// rolegate would act for. `observe` turns all findings into notes.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        match mode {
            Mode::Enforce => {}
            Mode::Warn => {
                let (refused, mut let_in): (Vec<_>, Vec<_>) =
                    self.errors.into_iter().partition(|found| found.cause == Cause::NoRight);
                let_in.iter_mut().for_each(|violation| violation.detail.push_str(WOULD));
                self.errors = refused;
                self.warnings.extend(let_in);
                self.warnings.sort_by(|a, b| a.path.cmp(&b.path));
            }
            Mode::Observe => {
                self.notes.extend(self.errors.drain(..).chain(self.warnings.drain(..)));
                self.notes.sort_by(|a, b| a.path.cmp(&b.path));
            }
        }
        self
    }

    /// Returns the ids of the rules with findings, each once, refusing ones first.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut seen = BTreeSet::new();
        let all = self.errors.iter().chain(&self.warnings).map(|violation| violation.rule);
        all.filter(|rule| seen.insert(*rule)).collect()
    }
}

/// Returns the faults of a stored group that keep the loop from releasing new batches in a mode. Outside `enforce` only
/// faults that make planning impossible do.
pub fn faults_in_mode(faults: Arc<[Violation]>, mode: Mode) -> Arc<[Violation]> {
    if mode == Mode::Enforce || faults.is_empty() {
        return faults;
    }
    faults.iter().filter(|fault| why_fixed(fault.rule).is_some()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FieldPath;
    use crate::rules::Severity;

    fn found(rule: &'static str, severity: Severity, cause: Cause) -> Violation {
        let (path, detail, subject) = (FieldPath::new("spec"), "must".to_owned(), String::new());
        Violation { rule, severity, path, cause, value: None, detail, subject }
    }

    fn judged() -> Judged {
        Judged::of(vec![
            found("segment-size", Severity::Error, Cause::Invalid),
            found("segment-ratio", Severity::Warning, Cause::Notice),
            found("recovery", Severity::Error, Cause::NoRight),
            found("recovery", Severity::Error, Cause::Invalid),
            found("rollout-by", Severity::Error, Cause::NoRight),
        ])
    }

    #[test]
    fn warn_lets_in_all_but_what_its_author_has_no_right_to() {
        let warned = judged().in_mode(Mode::Warn);
        let errors: Vec<_> = warned.errors.iter().map(|error| (error.rule, error.cause)).collect();
        assert_eq!(errors, [("recovery", Cause::NoRight), ("rollout-by", Cause::NoRight)]);
        let warnings: Vec<_> = warned.warnings.iter().map(|warning| &*warning.detail).collect();
        assert_eq!(
            warnings,
            ["must", "must (refused once rolegate enforces)", "must (refused once rolegate enforces)"]
        );
    }

    #[test]
    fn observe_says_nothing_and_forgets_nothing() {
        assert_eq!(judged().rules(), ["segment-size", "recovery", "rollout-by", "segment-ratio"]);
        let observed = judged().in_mode(Mode::Observe);
        assert_eq!((observed.errors.len(), observed.warnings.len(), observed.notes.len()), (0, 0, 5));
        assert!(observed.is_allowed());
    }

    #[test]
    fn what_only_warns_holds_no_batch_back_unless_nothing_can_be_planned_with_it() {
        let of = |rule| found(rule, Severity::Error, Cause::Invalid);
        let faults: Arc<[_]> = [of("segment-size-conflict"), of("group-shape")].into();
        assert_eq!(faults_in_mode(faults.clone(), Mode::Enforce).len(), 2);
        let left = faults_in_mode(faults, Mode::Warn);
        assert_eq!(left.iter().map(|fault| fault.rule).collect::<Vec<_>>(), ["group-shape"]);
    }
}
