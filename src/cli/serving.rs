//! Options for the served namespaces, the modes and the weights of rules.

use clap::{Args, ValueEnum};

use crate::api::selector::{LabelSelector, Requirement};
use crate::model::names::is_label_value;
use crate::model::{Mode, Serving};
use crate::rules::decode::decode;
use crate::rules::rule_setting::{SettingError, together};
use crate::rules::settings::Setting;
use crate::rules::{RuleSetting, RuleSettings, label_key_fault};

/// How much is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Refuse objects that break a rule; hold pods.
    #[default]
    Enforce,
    /// Admit objects that break a rule, with a warning; hold pods.
    Warn,
    /// Change nothing, and refuse a missing right of the author only; report verdicts in audit annotations, metrics and log.
    Observe,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Enforce => Self::Enforce,
            ModeArg::Warn => Self::Warn,
            ModeArg::Observe => Self::Observe,
        }
    }
}

/// Options that say how much is done, and how much single rules weigh.
#[derive(Args, Clone, Debug)]
pub struct ModeArgs {
    /// Default mode of namespaces. The label `rolegate.dev/mode` of a namespace overrides it.
    #[arg(long, value_enum, default_value = "enforce")]
    pub mode: ModeArg,
    /// Effect of single rules: `deny` (also for warnings), `warn` or `off`.
    #[arg(long = "rule", value_delimiter = ',', value_name = "ID=deny|warn|off", value_parser = parse_rule)]
    rules: Vec<RuleSetting>,
}

impl ModeArgs {
    /// Returns the weights of single rules.
    ///
    /// # Errors
    ///
    /// When a rule is set to two different weights.
    pub fn rules(&self) -> Result<RuleSettings, SettingError> {
        self.rules_and(None)
    }

    /// Returns the weights of single rules, with one more.
    ///
    /// # Errors
    ///
    /// When a rule is set to two different weights.
    pub fn rules_and(&self, one: Option<RuleSetting>) -> Result<RuleSettings, SettingError> {
        together(self.rules.iter().cloned().chain(one))
    }

    /// Returns a message about rule settings without effect in this mode.
    pub fn without_effect(&self) -> Option<String> {
        let rules = self.rules().unwrap_or_default();
        let denied: Vec<_> = rules.set_to(Setting::Deny).collect();
        let mode = Mode::from(self.mode);
        (mode != Mode::Enforce && !denied.is_empty()).then(|| {
            let (mode, denied) = (mode.as_str(), denied.join(", "));
            format!("--mode {mode}: deny of --rule has an effect only where a namespace's label says enforce: {denied}")
        })
    }
}

/// The option to refuse unknown fields.
#[derive(Args, Clone, Copy, Debug)]
pub struct StrictArg {
    /// Refuse fields that do not exist, as `--rule unknown-field=deny` does.
    #[arg(long)]
    strict: bool,
}

impl StrictArg {
    pub fn setting(self) -> Option<RuleSetting> {
        self.strict.then_some(RuleSetting::STRICT_FIELDS)
    }
}

fn parse_rule(text: &str) -> Result<RuleSetting, String> {
    text.parse().map_err(|error: SettingError| error.to_string())
}

/// Formats a selector as an argument in the same form as Helm: keys in order, without empty fields.
pub fn selector_text(selector: &LabelSelector) -> String {
    let mut all = serde_json::Map::new();
    let requirement = |one: &Requirement| {
        let mut fields = serde_json::Map::new();
        fields.insert("key".to_owned(), one.key.clone().into());
        fields.insert("operator".to_owned(), one.operator.clone().into());
        if !one.values.is_empty() {
            fields.insert("values".to_owned(), one.values.clone().into());
        }
        serde_json::Value::Object(fields)
    };
    if !selector.match_expressions.is_empty() {
        all.insert("matchExpressions".to_owned(), selector.match_expressions.iter().map(requirement).collect());
    }
    if !selector.match_labels.is_empty() {
        let labels = selector.match_labels.iter().map(|(key, value)| (key.clone(), value.clone().into()));
        all.insert("matchLabels".to_owned(), serde_json::Value::Object(labels.collect()));
    }
    serde_json::Value::Object(all).to_string()
}

/// Returns how namespaces are served by default, from the flags.
pub fn serving(mode: Mode, selector: Option<&LabelSelector>) -> Serving {
    Serving { mode, selector: selector.cloned().unwrap_or_default(), ..Serving::default() }
}

/// Parses a selector of namespaces, as `kubectl get -l` takes it, or as a JSON `metav1.LabelSelector`.
pub fn parse_selector(text: &str) -> Result<LabelSelector, String> {
    let selector = if text.trim_start().starts_with('{') {
        decode(text).map_err(|error| format!("must be a LabelSelector in JSON: {error}"))?
    } else {
        let terms = terms(text);
        let requirements = terms.iter().map(|term| requirement(term));
        LabelSelector { match_expressions: requirements.collect::<Result<_, _>>()?, ..LabelSelector::default() }
    };
    let labels = selector.match_labels.iter().map(|(key, value)| (key, std::slice::from_ref(value)));
    let expressions = selector.match_expressions.iter().map(|one| (&one.key, one.values.as_slice()));
    for (key, values) in labels.chain(expressions) {
        if let Some(fault) = label_key_fault(key) {
            return Err(format!("{key:?}: {fault}"));
        }
        if let Some(wrong) = values.iter().find(|value| !value.is_empty() && !is_label_value(value)) {
            return Err(format!("{wrong:?} is no value of a label"));
        }
    }
    for one in &selector.match_expressions {
        match (one.operator.as_str(), one.values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
            (operator, _) => return Err(format!("{:?} does not go with operator {operator:?}", one.key)),
        }
    }
    Ok(selector)
}

/// Splits the requirements at commas outside parentheses.
fn terms(text: &str) -> Vec<String> {
    let (mut terms, mut depth) = (vec![String::new()], 0_i32);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match terms.last_mut() {
            Some(term) if letter != ',' || depth > 0 => term.push(letter),
            _ => terms.push(String::new()),
        }
    }
    terms.into_iter().map(|term| term.trim().to_owned()).collect()
}

fn requirement(term: &str) -> Result<Requirement, String> {
    let of = |key: &str, operator: &str, values: Vec<String>| Requirement {
        key: key.trim().to_owned(),
        operator: operator.to_owned(),
        values,
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = term.split_once("!=") {
        return Ok(of(key, "NotIn", one(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Ok(of(key, "In", one(value)));
    }
    if let Some(list) = term.strip_suffix(')') {
        let (head, list) = list.split_once('(').ok_or_else(|| format!("{term:?} has no opening bracket"))?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        return match head.split_whitespace().collect::<Vec<_>>()[..] {
            [key, "in"] => Ok(of(key, "In", values)),
            [key, "notin"] => Ok(of(key, "NotIn", values)),
            _ => Err(format!("{term:?} must be KEY in (…) or KEY notin (…)")),
        };
    }
    Ok(match term.strip_prefix('!') {
        Some(key) => of(key, "DoesNotExist", Vec::new()),
        None => of(term, "Exists", Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_read_as_kubectl_reads_it() {
        let read = |text: &str| {
            let selector = parse_selector(text).unwrap();
            let all = selector.match_expressions.into_iter();
            all.map(|one| (one.key, one.operator, one.values.join("|"))).collect::<Vec<_>>()
        };
        let is = |key: &str, operator: &str, values: &str| (key.to_owned(), operator.to_owned(), values.to_owned());
        assert_eq!(read("team=llm"), [is("team", "In", "llm")]);
        assert_eq!(read("a==1, b!=2"), [is("a", "In", "1"), is("b", "NotIn", "2")]);
        assert_eq!(
            read("env in (a, b),!x.io/y,tier notin (c)"),
            [is("env", "In", "a|b"), is("x.io/y", "DoesNotExist", ""), is("tier", "NotIn", "c")]
        );
        assert_eq!(read("rolegate.dev/serve"), [is("rolegate.dev/serve", "Exists", "")]);
    }

    #[test]
    fn a_selector_may_be_json_as_helm_writes_it() {
        let selector = parse_selector(r#"{"matchLabels":{"team":"llm"}}"#).unwrap();
        assert_eq!(selector.match_labels.get("team").map(String::as_str), Some("llm"));
    }

    #[test]
    fn what_is_no_selector_is_said() {
        for (text, error) in [
            ("", "a label key must consist"),
            ("a in b", "a label key must consist"),
            ("a in (b", "a label key must consist"),
            ("a b (c)", "must be KEY in"),
            ("a=b c", "is no value of a label"),
            (r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#, "does not go with operator"),
            (r#"{"matchExpressions":[{"key":"a","operator":"Is","values":["b"]}]}"#, "does not go with operator"),
            ("{", "must be a LabelSelector in JSON: not JSON"),
        ] {
            let found = parse_selector(text).unwrap_err();
            assert!(found.contains(error), "{text:?}: {found}");
        }
    }
}
