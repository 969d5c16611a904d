//! One setting of a rule, parsed from `ID=deny`, `ID=warn` or `ID=off`.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::catalogue;
use super::names::hint;
use super::settings::{RuleSettings, Setting, why_fixed};
use super::unknown_fields::UNKNOWN_FIELD;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetting {
    rule: &'static str,
    setting: Setting,
}

impl RuleSetting {
    /// Unknown fields refuse an object.
    pub const STRICT_FIELDS: Self = Self { rule: UNKNOWN_FIELD, setting: Setting::Deny };
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The text is not `ID=WORD`.
    #[error("must be ID=deny, ID=warn or ID=off")]
    Form,
    #[error("there is no rule {id:?}{hint}; docs/rules.md lists them")]
    Unknown {
        id: String,
        /// The suggested id, as a part of the sentence.
        hint: String,
    },
    /// The rule may only be `deny`.
    #[error("rule {id:?} can only be deny: {why}")]
    Fixed {
        id: &'static str,
        /// The purpose of the rule.
        why: &'static str,
    },
    /// A rule has two different settings.
    #[error("rule {0:?} is set twice")]
    Twice(&'static str),
}

impl FromStr for RuleSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (id, word) = text.split_once('=').ok_or(SettingError::Form)?;
        let setting = Setting::of_word(word).ok_or(SettingError::Form)?;
        let all = catalogue();
        let Some(known) = all.iter().find(|rule| rule.id == id) else {
            // Ids of one kind of object share their prefix, so only ids with the same first letter are compared.
            let names = all.iter().map(|rule| rule.id).filter(|known| known.chars().next() == id.chars().next());
            return Err(SettingError::Unknown { hint: hint(id, names), id: id.to_owned() });
        };
        match why_fixed(known.id) {
            Some(why) if setting != Setting::Deny => Err(SettingError::Fixed { id: known.id, why }),
            _ => Ok(Self { rule: known.id, setting }),
        }
    }
}

/// Combines the settings.
///
/// # Errors
///
/// When a rule is set to two different things.
pub fn together(settings: impl IntoIterator<Item = RuleSetting>) -> Result<RuleSettings, SettingError> {
    let mut all = BTreeMap::new();
    for RuleSetting { rule, setting } in settings {
        if all.insert(rule.to_owned(), setting).is_some_and(|before| before != setting) {
            return Err(SettingError::Twice(rule));
        }
    }
    Ok(RuleSettings::of(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::rules::settings::Setting;

    fn parse(text: &str) -> Result<RuleSetting, String> {
        text.parse().map_err(|error: SettingError| error.to_string())
    }

    #[test]
    fn a_rule_without_which_nothing_goes_can_only_deny() {
        let all = catalogue();
        let fixed: Vec<_> = all.iter().map(|rule| rule.id).filter(|id| why_fixed(id).is_some()).collect();
        assert_eq!(fixed.len(), 10, "a fixed rule is no rule: {fixed:?}");
        for id in fixed {
            assert!(parse(&format!("{id}=deny")).is_ok());
            for word in ["warn", "off"] {
                let error = parse(&format!("{id}={word}")).unwrap_err();
                assert!(error.starts_with(&format!("rule {id:?} can only be deny: ")), "{error}");
            }
        }
    }

    #[test]
    fn a_rule_is_set_once() {
        let of = |all: &[&str]| together(all.iter().map(|text| parse(text).unwrap()));
        let both = of(&["segment-ratio=off", "segment-remainder=deny", "segment-ratio=off"]).unwrap();
        assert_eq!(both.to_string(), "segment-ratio=off,segment-remainder=deny");
        assert_eq!(both.set_to(Setting::Off).collect::<Vec<_>>(), ["segment-ratio"]);
        let twice = of(&["segment-ratio=off", "segment-ratio=warn"]);
        assert_eq!(twice, Err(SettingError::Twice("segment-ratio")));
    }
}
