//! Which namespaces are served, and in which mode: what the flags say, and what a namespace's own labels say.

use std::collections::BTreeMap;

use crate::api::selector::LabelSelector;
use crate::model::{Mode, Others, names};

/// What the flags say of all namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// The mode where a namespace names none, and of what is in no namespace.
    pub mode: Mode,
    /// Which namespaces are served; without requirements, all.
    pub selector: LabelSelector,
    /// Who else serves namespaces.
    pub others: Others,
}

/// How one namespace is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stance {
    /// How much is done in it.
    pub mode: Mode,
    /// Why nothing is done in it at all, if so.
    pub out: Option<Out>,
    /// Its label names a mode that there is none of: the flag's counts.
    pub has_unknown_mode: bool,
}

/// Why nothing is done in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Out {
    /// It has opted out.
    OptedOut,
    /// The selector of namespaces does not take it.
    NotSelected,
    /// Nor does the selector take it, and another rolegate serves it, or may: what is held there is not ours to let go.
    OfOther,
}

/// Why everything is let go that is held in a namespace, and nothing of it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetGo {
    /// It has opted out.
    OptedOut,
    /// The selector of namespaces does not take it.
    NotSelected,
    /// It is only observed.
    Observed,
}

impl LetGo {
    /// One word, for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OptedOut => "OptedOut",
            Self::NotSelected => "NotSelected",
            Self::Observed => "Observed",
        }
    }

    /// A phrase, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OptedOut => "its namespace has opted out",
            Self::NotSelected => "its namespace is not selected",
            Self::Observed => "its namespace is only observed",
        }
    }

    /// Where that is said.
    pub const fn said_by(self) -> &'static str {
        match self {
            Self::OptedOut => "label rolegate.dev/ignore",
            Self::NotSelected => "--namespace-selector",
            Self::Observed => "label rolegate.dev/mode, or --mode",
        }
    }
}

impl Serving {
    /// How a namespace with these labels is served. Its own label goes before the flag, as with Pod Security.
    pub fn stance(&self, labels: &BTreeMap<String, String>) -> Stance {
        let said = labels.get(names::MODE).map(|word| Mode::parse(word));
        let out = if labels.contains_key(names::IGNORE) {
            Some(Out::OptedOut)
        } else {
            let left = if self.others.may_serve(labels) { Out::OfOther } else { Out::NotSelected };
            (!self.selector.matches(labels)).then_some(left)
        };
        Stance { mode: said.flatten().unwrap_or(self.mode), out, has_unknown_mode: said == Some(None) }
    }

    /// How is served what is in no namespace, or in one of which nothing is known.
    pub fn unlabelled(&self) -> Stance {
        Stance { mode: self.mode, ..Stance::default() }
    }
}

impl Stance {
    /// True where nothing is done at all, not even let go: another rolegate does.
    pub const fn is_of_other(self) -> bool {
        matches!(self.out, Some(Out::OfOther))
    }

    /// Why nothing is held here by us, in one word: that of `lets_go`, or `OfOther`.
    pub const fn unserved(self) -> Option<&'static str> {
        match self.lets_go() {
            Some(why) => Some(why.as_str()),
            None if self.is_of_other() => Some("OfOther"),
            None => None,
        }
    }

    /// Why everything is let go that is held here; `None` where pods are held, by us or by others.
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
