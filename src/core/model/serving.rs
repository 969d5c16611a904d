//! Served namespaces and their modes, from the flags and from the labels of each namespace.

use std::collections::BTreeMap;

use crate::api::ObjectKind;
use crate::api::selector::LabelSelector;
use crate::model::words::words;
use crate::model::{IgnoredResources, Mode, Others, names};

/// Settings of the flags for all namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Mode of namespaces that name none, and of objects outside namespaces.
    pub mode: Mode,
    /// Served namespaces; an empty selector selects all.
    pub selector: LabelSelector,
    /// Other rolegates that serve namespaces.
    pub others: Others,
    /// Kinds whose objects groups may wait for; `None` where that is not known, as of an earlier release.
    pub ready_kinds: Option<Vec<ObjectKind>>,
    /// Resources that need not be on a node.
    pub ignored_resources: IgnoredResources,
}

/// Treatment of one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stance {
    pub mode: Mode,
    /// Reason for doing nothing in the namespace, if any.
    pub out: Option<Out>,
    /// True when the label names an unknown mode; the mode of the flag counts.
    pub has_unknown_mode: bool,
}

/// Reason for doing nothing in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Out {
    /// The namespace has opted out.
    OptedOut,
    /// The namespace selector does not match.
    NotSelected,
    /// The namespace selector does not match, and another rolegate serves the namespace or may do so: its held pods are not
    /// released.
    OfOther,
}

words! {
/// Reason for releasing everything that is held in a namespace, and writing no status in it.
pub enum LetGo {
    /// The namespace has opted out.
    OptedOut,
    /// The namespace selector does not match.
    NotSelected,
    /// The namespace is only observed.
    Observed,
}
}

impl LetGo {
    /// Returns a phrase, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OptedOut => "its namespace has opted out",
            Self::NotSelected => "its namespace is not selected",
            Self::Observed => "its namespace is only observed",
        }
    }

    /// Returns the label or the flag behind the reason.
    pub const fn said_by(self) -> &'static str {
        match self {
            Self::OptedOut => "label rolegate.dev/ignore",
            Self::NotSelected => "--namespace-selector",
            Self::Observed => "label rolegate.dev/mode, or --mode",
        }
    }
}

impl Serving {
    /// Returns the treatment of a namespace with these labels. Its own label takes precedence over the flag, as with Pod
    /// Security.
    pub fn stance(&self, labels: &BTreeMap<String, String>) -> Stance {
        let said = labels.get(names::MODE).map(|word| Mode::of_word(word));
        let out = if labels.contains_key(names::IGNORE) {
            Some(Out::OptedOut)
        } else {
            let left = if self.others.may_serve(labels) { Out::OfOther } else { Out::NotSelected };
            (!self.selector.matches(labels)).then_some(left)
        };
        Stance { mode: said.flatten().unwrap_or(self.mode), out, has_unknown_mode: said == Some(None) }
    }

    /// Returns the treatment of objects outside namespaces, and of a namespace of which nothing is known.
    pub fn unlabelled(&self) -> Stance {
        Stance { mode: self.mode, ..Stance::default() }
    }
}

impl Stance {
    /// Reports whether nothing is done at all, not even a release, because another rolegate serves the namespace.
    pub const fn is_of_other(self) -> bool {
        matches!(self.out, Some(Out::OfOther))
    }

    /// Returns why this rolegate holds nothing here, in one word: that of `lets_go`, or `OfOther`.
    pub const fn unserved(self) -> Option<&'static str> {
        match self.lets_go() {
            Some(why) => Some(why.as_str()),
            None if self.is_of_other() => Some("OfOther"),
            None => None,
        }
    }

    /// Returns why everything held here is released; `None` where this or another rolegate holds pods.
    pub const fn lets_go(self) -> Option<LetGo> {
        match (self.out, self.mode) {
            (Some(Out::OptedOut), _) => Some(LetGo::OptedOut),
            (Some(Out::NotSelected), _) => Some(LetGo::NotSelected),
            (None, Mode::Observe) => Some(LetGo::Observed),
            (Some(Out::OfOther), _) | (None, Mode::Enforce | Mode::Warn) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::selector::Requirement;
    use crate::model::Installation;

    fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_namespaces_label_goes_before_the_flag_and_a_word_that_is_none_does_not() {
        for flag in Mode::ALL.iter().copied() {
            let serving = Serving { mode: flag, ..Serving::default() };
            assert_eq!(serving.stance(&labels(&[])), Stance { mode: flag, ..Stance::default() });
            for said in Mode::ALL.iter().copied() {
                assert_eq!(serving.stance(&labels(&[(names::MODE, said.as_str())])).mode, said);
            }
            for wrong in ["", "Observe", "dryrun", "off"] {
                let stance = serving.stance(&labels(&[(names::MODE, wrong)]));
                assert_eq!((stance.mode, stance.has_unknown_mode), (flag, true), "{wrong:?}");
            }
        }
    }

    #[test]
    fn who_has_opted_out_or_is_not_selected_is_let_go_whatever_the_mode() {
        let selector = LabelSelector { match_labels: labels(&[("team", "llm")]), ..LabelSelector::default() };
        let serving = Serving { selector, ..Serving::default() };
        let lets_go = |of: &[(&str, &str)]| serving.stance(&labels(of)).lets_go();
        assert_eq!(lets_go(&[("team", "llm")]), None);
        assert_eq!(lets_go(&[("team", "web")]), Some(LetGo::NotSelected));
        assert_eq!(lets_go(&[("team", "llm"), (names::MODE, "warn")]), None);
        assert_eq!(lets_go(&[("team", "llm"), (names::MODE, "observe")]), Some(LetGo::Observed));
        assert_eq!(lets_go(&[("team", "llm"), (names::IGNORE, "")]), Some(LetGo::OptedOut));
    }

    #[test]
    fn what_is_not_selected_is_anothers_who_serves_it_or_may() {
        let installation = |key: &str, operator: &str| Installation {
            name: "other".to_owned(),
            namespaces: LabelSelector {
                match_expressions: vec![Requirement {
                    key: key.to_owned(),
                    operator: operator.to_owned(),
                    ..Requirement::default()
                }],
                ..LabelSelector::default()
            },
        };
        let selector = LabelSelector { match_labels: labels(&[("team", "llm")]), ..LabelSelector::default() };
        let known = |key, operator| Others::Known([installation(key, operator)].into());
        for (others, out) in [
            (Others::NotAsked, Out::NotSelected),
            (Others::Unknown, Out::OfOther),
            (Others::Known([].into()), Out::NotSelected),
            (known("canary", "Exists"), Out::NotSelected),
            (known("canary", "DoesNotExist"), Out::OfOther),
        ] {
            let serving = Serving { selector: selector.clone(), others: others.clone(), ..Serving::default() };
            let stance = |of: &[(&str, &str)]| serving.stance(&labels(of));
            assert_eq!(stance(&[("team", "web")]).out, Some(out), "{others:?}");
            assert_eq!(stance(&[("team", "web")]).lets_go().is_some(), out == Out::NotSelected);
            assert_eq!(stance(&[("team", "llm")]).out, None, "what is selected is ours");
            assert_eq!(stance(&[("team", "web"), (names::IGNORE, "")]).out, Some(Out::OptedOut));
        }
    }
}
