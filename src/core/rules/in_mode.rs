//! The effect of findings in a mode, shared by webhook, loop and offline commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::settings::why_fixed;
use super::{Judged, Violation};
use crate::model::Mode;

/// Suffix of an error that mode `warn` turns into a warning.
const WOULD: &str = " (refused once rolegate enforces)";

impl Judged {
    /// Returns the findings in a mode. `warn` turns errors into warnings, `observe` all findings into notes, except for missing
    /// rights of the author, whom rolegate would act for: what is stored counts as soon as the mode is another one.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        if mode == Mode::Enforce {
            return self;
        }
        let (refused, mut let_in): (Vec<_>, Vec<_>) = self.errors.into_iter().partition(Violation::is_missing_right);
        self.errors = refused;
        if mode == Mode::Warn {
            let_in.iter_mut().for_each(|violation| violation.detail.push_str(WOULD));
            self.warnings.extend(let_in);
            self.warnings.sort_by(|a, b| a.path.cmp(&b.path));
        } else {
            self.notes.extend(let_in.into_iter().chain(self.warnings.drain(..)));
            self.notes.sort_by(|a, b| a.path.cmp(&b.path));
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
    use crate::rules::{Cause, Severity};

    fn found(rule: &'static str, severity: Severity, cause: Cause) -> Violation {
        let (path, detail, subject) = (FieldPath::new("spec"), "must".to_owned(), String::new());
        Violation { rule, severity, path, cause, value: None, detail, subject }
    }

    /// What each mode refuses and says: `tests/cases/group/recovery.yaml` and `segment-size-conflict.yaml`.
    #[test]
    fn a_rule_with_findings_is_named_once_and_refusing_ones_first() {
        let errors = ["segment-size", "recovery", "recovery", "rollout-by"];
        let errors = errors.map(|rule| found(rule, Severity::Error, Cause::Invalid)).into_iter();
        let warning = found("segment-ratio", Severity::Warning, Cause::Notice);
        let judged = Judged::of([warning].into_iter().chain(errors).collect());
        assert_eq!(judged.rules(), ["segment-size", "recovery", "rollout-by", "segment-ratio"]);
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
