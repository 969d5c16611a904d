//! How much single rules weigh, where whoever runs rolegate says so: `--rule ID=deny|warn|off`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de};

use super::names::hint;
use super::{Cause, Severity, Violation, catalogue};

/// How much a rule weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Whatever it finds refuses the object, also what it would only warn about.
    Deny,
    /// Whatever it finds is a warning.
    Warn,
    /// It finds nothing.
    Off,
}

impl Setting {
    const ALL: &[(&str, Self)] = &[("deny", Self::Deny), ("warn", Self::Warn), ("off", Self::Off)];
}

/// What a rule is for that only `deny` is taken for.
const FIXED: &[(&str, &str)] = &[
    ("group-bounds", "it bounds what one object may cost"),
    ("group-shape", "nothing can be planned for a group without a shape"),
    ("group-claimed-twice", "two objects would steer the same pods"),
    ("pod-group-rights", "it keeps authors from what only rolegate may do"),
    ("recovery", "it keeps authors from what only rolegate may do"),
    ("segments-scale", "it keeps authors from what only rolegate may do"),
    ("pod-names", "names become part of requests"),
];

/// True for a rule without which rolegate does not go: it cannot be off, and the loop goes by it in every mode.
pub fn is_fixed(rule: &str) -> bool {
    FIXED.iter().any(|(id, _)| *id == rule)
}

/// Ids of all rules, in the order of the catalogue.
static IDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| catalogue().iter().map(|rule| rule.id).collect());

/// A set of rules: a bit for each, by its place in the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RuleSet(u128);

impl RuleSet {
    fn bit(rule: &str) -> u128 {
        let place = IDS.iter().position(|id| *id == rule).and_then(|place| u32::try_from(place).ok());
        place.and_then(|place| 1_u128.checked_shl(place)).unwrap_or_default()
    }

    const fn has(self, bit: u128) -> bool {
        self.0 & bit != 0
    }
}

/// How much single rules weigh; each of the others as its table has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings {
    deny: RuleSet,
    warn: RuleSet,
    off: RuleSet,
}

/// One setting as it is written: `ID=deny`, `ID=warn` or `ID=off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetting {
    rule: &'static str,
    setting: Setting,
}

/// Why a setting is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is not `ID=WORD`.
    #[error("must be ID=deny, ID=warn or ID=off")]
    Form,
    /// No rule has this id.
    #[error("there is no rule {id:?}{hint}; docs/rules.md lists them")]
    Unknown {
        /// The id.
        id: String,
        /// The one that may be meant, as a part of the sentence.
        hint: String,
    },
    /// The rule must stay.
    #[error("rule {id:?} can only be deny: {why}")]
    Fixed {
        /// The id.
        id: &'static str,
        /// What it is for.
        why: &'static str,
    },
    /// A rule is set to two things.
    #[error("rule {0:?} is set twice")]
    Twice(&'static str),
}

impl FromStr for RuleSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (id, word) = text.split_once('=').ok_or(SettingError::Form)?;
        let (_, setting) = Setting::ALL.iter().find(|(known, _)| *known == word).ok_or(SettingError::Form)?;
        Self::of(id, *setting)
    }
}

impl RuleSetting {
    fn of(id: &str, setting: Setting) -> Result<Self, SettingError> {
        let all = catalogue();
        let Some(known) = all.iter().find(|rule| rule.id == id) else {
            // The names of one kind of object are the nearest where a mistake keeps the beginning.
            let names = all.iter().map(|rule| rule.id).filter(|known| known.chars().next() == id.chars().next());
            return Err(SettingError::Unknown { hint: hint(id, names), id: id.to_owned() });
        };
        match FIXED.iter().find(|(fixed, _)| *fixed == known.id) {
            Some((id, why)) if setting != Setting::Deny => Err(SettingError::Fixed { id, why }),
            _ => Ok(Self { rule: known.id, setting }),
        }
    }
}

impl RuleSettings {
    /// All of them together.
    ///
    /// # Errors
    ///
    /// When a rule is set to two different things.
    pub fn of(settings: impl IntoIterator<Item = RuleSetting>) -> Result<Self, SettingError> {
        let mut all = Self::default();
        for RuleSetting { rule, setting } in settings {
            if all.get(rule).is_some_and(|before| before != setting) {
                return Err(SettingError::Twice(rule));
            }
            let set = match setting {
                Setting::Deny => &mut all.deny,
                Setting::Warn => &mut all.warn,
                Setting::Off => &mut all.off,
            };
            set.0 |= RuleSet::bit(rule);
        }
        Ok(all)
    }

    /// What a rule is set to, if it is.
    fn get(self, rule: &str) -> Option<Setting> {
        let bit = RuleSet::bit(rule);
        let sets = [(self.deny, Setting::Deny), (self.warn, Setting::Warn), (self.off, Setting::Off)];
        sets.into_iter().find(|(set, _)| set.has(bit)).map(|(_, setting)| setting)
    }

    /// Rules that are set to this, in the order of the catalogue.
    pub fn set_to(self, setting: Setting) -> impl Iterator<Item = &'static str> {
        IDS.iter().copied().filter(move |rule| self.get(rule) == Some(setting))
    }

    /// What findings weigh.
    pub fn weigh(self, mut found: Vec<Violation>) -> Vec<Violation> {
        if self == Self::default() {
            return found;
        }
        found.retain_mut(|violation| match (self.get(violation.rule), violation.severity) {
            (None, _) | (Some(Setting::Deny | Setting::Warn), Severity::Note) => true,
            (Some(Setting::Deny), _) => {
                violation.severity = Severity::Error;
                // What refuses has a cause that Kubernetes knows.
                if violation.cause == Cause::Notice {
                    violation.cause = Cause::Invalid;
                }
                true
            }
            (Some(Setting::Warn), _) => {
                violation.severity = Severity::Warning;
                true
            }
            (Some(Setting::Off), _) => false,
        });
        found
    }
}

impl fmt::Display for RuleSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |setting| Setting::ALL.iter().find(|(_, known)| *known == setting).map_or("", |(word, _)| word);
        let set = IDS.iter().filter_map(|rule| Some((rule, self.get(rule)?)));
        let all: Vec<_> = set.map(|(rule, setting)| format!("{rule}={}", word(setting))).collect();
        f.write_str(&all.join(","))
    }
}

impl<'de> Deserialize<'de> for RuleSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, String>::deserialize(deserializer)?;
        let settings = written.iter().map(|(rule, word)| format!("{rule}={word}").parse());
        settings.collect::<Result<Vec<_>, _>>().and_then(Self::of).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RuleSetting, String> {
        text.parse().map_err(|error: SettingError| error.to_string())
    }

    #[test]
    fn what_is_no_setting_is_said_with_a_hint() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("segment-ratio"), "must be ID=deny, ID=warn or ID=off");
        assert_eq!(error("segment-ratio=no"), "must be ID=deny, ID=warn or ID=off");
        assert_eq!(
            error("segment-ration=off"),
            "there is no rule \"segment-ration\"; did you mean \"segment-ratio\"?; docs/rules.md lists them"
        );
        assert_eq!(error("xyz=off"), "there is no rule \"xyz\"; docs/rules.md lists them");
    }

    #[test]
    fn a_rule_without_which_nothing_goes_can_only_deny() {
        for (id, _) in FIXED {
            assert!(catalogue().iter().any(|rule| rule.id == *id), "{id} is no rule");
            assert!(parse(&format!("{id}=deny")).is_ok());
            for word in ["warn", "off"] {
                let error = parse(&format!("{id}={word}")).unwrap_err();
                assert!(error.starts_with(&format!("rule {id:?} can only be deny: ")), "{error}");
            }
        }
    }

    #[test]
    fn a_rule_is_set_once() {
        assert!(IDS.len() <= 128, "a set has a bit for each rule");
        let of = |all: &[&str]| RuleSettings::of(all.iter().map(|text| parse(text).unwrap()));
        let both = of(&["segment-ratio=off", "segment-remainder=deny", "segment-ratio=off"]).unwrap();
        assert_eq!(both.to_string(), "segment-remainder=deny,segment-ratio=off");
        assert_eq!(both.set_to(Setting::Off).collect::<Vec<_>>(), ["segment-ratio"]);
        let twice = of(&["segment-ratio=off", "segment-ratio=warn"]);
        assert_eq!(twice, Err(SettingError::Twice("segment-ratio")));
    }
}
