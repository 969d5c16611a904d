//! Selectors of devices, as requests for devices and DeviceClasses write them in CEL: which devices does one match?
//!
//! `parse` text, with the types of all parts, before any device is seen → `run` with a device. The part of CEL that drivers'
//! documentation uses is understood, and answers what kube-scheduler answers: whatever else is an error, never another answer.

mod functions;
mod parse;
mod pattern;
mod run;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The value of an attribute of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribute {
    /// A string.
    Text(Arc<str>),
    /// A whole number.
    Number(i64),
    /// A boolean.
    Flag(bool),
    /// A semantic version, as written.
    Version(Arc<str>),
}

/// The properties of a device that selectors look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceFacts {
    /// The name of the driver.
    pub driver: Arc<str>,
    /// By qualified name, `domain/id`; a name without domain has been given the driver's.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// Quantities as written, by qualified name.
    pub capacity: BTreeMap<Arc<str>, Arc<str>>,
    /// Several requests may share the device.
    pub allow_multiple: bool,
}

/// An error of a selector: it is then unknown what it matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A word, function or type is not understood, or kube-scheduler refuses it.
    #[error("{0} is not understood")]
    NotUnderstood(String),
    /// The expression fails for the device.
    #[error("{0}")]
    Failed(String),
}

/// Names of attributes and capacities, each without its domain; None for any.
type Names = Option<BTreeSet<Arc<str>>>;

fn not_understood<T>(what: impl Into<String>) -> Result<T, SelectorError> {
    Err(SelectorError::NotUnderstood(what.into()))
}

/// A selector, ready to be asked.
#[derive(Clone, Debug)]
pub struct Selector {
    text: Box<str>,
    condition: run::Expr,
    names: Names,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// When something of the text is not understood, or kube-scheduler refuses it.
    pub fn compile(text: &str) -> Result<Self, SelectorError> {
        let (condition, names) = parse::parse(text)?;
        Ok(Self { text: text.into(), condition, names })
    }

    /// Whether the selector matches a device.
    ///
    /// # Errors
    ///
    /// When the expression fails for the device, for example because it has no such attribute.
    pub fn matches(&self, device: &DeviceFacts) -> Result<bool, SelectorError> {
        self.condition.holds(device)
    }

    /// The attributes and capacities that the selector looks at, each without its domain: no other changes the answer. None
    /// when any may.
    pub fn names(&self) -> Option<&BTreeSet<Arc<str>>> {
        self.names.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What kube-scheduler's evaluator answers, which `tests/fixtures/README.md` explains.
    const ANSWERS: &str = include_str!("../../../../../tests/fixtures/device-selectors.json");

    fn devices(answers: &Value) -> Vec<DeviceFacts> {
        answers["devices"].as_array().unwrap().iter().map(device).collect()
    }

    fn device(written: &Value) -> DeviceFacts {
        let driver = written["driver"].as_str().unwrap();
        let qualified = |name: &str| if name.contains('/') { name.into() } else { format!("{driver}/{name}").into() };
        let attributes = written["attributes"].as_object().into_iter().flatten();
        let capacity = written["capacity"].as_object().into_iter().flatten();
        DeviceFacts {
            driver: driver.into(),
            attributes: attributes.map(|(name, value)| (qualified(name), attribute(value))).collect(),
            capacity: capacity.map(|(name, text)| (qualified(name), text.as_str().unwrap().into())).collect(),
            allow_multiple: written["allowMultipleAllocations"].as_bool().unwrap_or_default(),
        }
    }

    fn attribute(value: &Value) -> Attribute {
        let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
        match kind.as_str() {
            "string" => Attribute::Text(value.as_str().unwrap().into()),
            "version" => Attribute::Version(value.as_str().unwrap().into()),
            "int" => Attribute::Number(value.as_i64().unwrap()),
            _ => Attribute::Flag(value.as_bool().unwrap()),
        }
    }

    #[test]
    fn selectors_answer_as_kube_scheduler_or_not_at_all() {
        let answers: Value = serde_json::from_str(ANSWERS).unwrap();
        let devices = devices(&answers);
        let mut wrong = Vec::new();
        for case in answers["cases"].as_array().unwrap() {
            let expression = case["expression"].as_str().unwrap();
            let selector = Selector::compile(expression);
            let mut is_silent = false;
            for (device, expected) in devices.iter().zip(case["answers"].as_array().unwrap()) {
                let answer = selector.as_ref().map_err(Clone::clone).and_then(|selector| selector.matches(device));
                if answer.as_ref().is_ok_and(|answer| expected.as_bool() != Some(*answer)) {
                    wrong.push(format!("{expression} for {}: {answer:?}, not {expected}", device.driver));
                }
                is_silent |= answer.is_err() && expected.is_boolean();
            }
            let is_said = case["judged"].as_bool() == Some(false);
            if is_silent != is_said || (case["source"].is_string() && (is_said || selector.is_err())) {
                wrong.push(format!("{expression}: judged {}, {:?}", !is_silent, selector.err()));
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn what_a_selector_does_not_name_does_not_change_its_answer() {
        let answers: Value = serde_json::from_str(ANSWERS).unwrap();
        for case in answers["cases"].as_array().unwrap() {
            let Ok(selector) = Selector::compile(case["expression"].as_str().unwrap()) else { continue };
            let Some(names) = selector.names() else { continue };
            for device in devices(&answers) {
                let mut bare = device.clone();
                let is_named = |name: &Arc<str>| names.contains(name.rsplit('/').next().unwrap());
                bare.attributes.retain(|name, _| is_named(name));
                bare.capacity.retain(|name, _| is_named(name));
                assert_eq!(selector.matches(&bare), selector.matches(&device), "{}", case["expression"]);
            }
        }
    }

    #[test]
    fn names_are_given_unless_any_attribute_may_be_looked_at() {
        let names = |text: &str| Selector::compile(text).unwrap().names().cloned();
        let memory = names("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))");
        assert_eq!(memory, Some(BTreeSet::from(["memory".into()])));
        let both =
            names("'type' in device.attributes['gpu.example.com'] && has(device.attributes['gpu.example.com'].model)");
        assert_eq!(both, Some(BTreeSet::from(["type".into(), "model".into()])));
        assert_eq!(names("'gpu.example.com' in device.attributes"), None);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let gpu = "device.attributes['gpu.example.com']";
        for (text, what) in [
            ("sets.contains(['a'], [device.driver])".to_owned(), "sets"),
            ("type(device.driver) == string".to_owned(), "type"),
            (format!("{gpu}.?model.orValue('') == 'x'"), "?"),
            (format!("{gpu}.exists(name, name == 'model')"), ".exists"),
            (format!("{gpu}.model.split(' ').size() == 2"), ".split"),
            (format!("{gpu}.index + 1 == 2"), "+"),
            (format!("10 / {gpu}.index == 2"), "/"),
            (format!("{gpu}.index < 7.5"), "the number 7."),
            (format!("{gpu}.index == 1 ? true : false"), "?"),
            (format!("{gpu}.model.matches('(?P<x>a)')"), "the pattern \"(?P<x>a)\""),
            (format!("{gpu}[device.driver] == 'x'"), "a key that is computed"),
        ] {
            let error = Selector::compile(&text).unwrap_err();
            assert_eq!(error, SelectorError::NotUnderstood(what.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_costs_too_much_is_given_up() {
        let list = vec!["'aaaaaaaaaaaaaaaaaaaa'"; 100].join(",");
        let text = format!("[{list}].all(a, [{list}].all(b, [{list}].all(c, a == b && b == c)))");
        assert!(Selector::compile(&text).and_then(|selector| selector.matches(&DeviceFacts::default())).is_err());
        for text in [format!("{}true", "(".repeat(3000)), "1+".repeat(2000) + "1 > 0", "true".repeat(2000)] {
            assert!(Selector::compile(&text).is_err());
        }
    }

    fn fragment() -> impl Strategy<Value = String> {
        let answers: Value = serde_json::from_str(ANSWERS).unwrap();
        let cases = answers["cases"].as_array().unwrap();
        let cases: Vec<String> = cases.iter().map(|case| case["expression"].as_str().unwrap().to_owned()).collect();
        let pieces = r#"device . ? [ ] ( ) , : == != < in && || ! - + * / % 0 1u 1.5 'a' "é" r'\' .5e9 matches has cel.bind x ''' \ 0x size exists"#;
        let pieces: Vec<String> = pieces.split(' ').map(str::to_owned).collect();
        let cut = (prop::sample::select(cases), any::<prop::sample::Index>(), any::<prop::sample::Index>());
        let cut = cut.prop_map(|(case, from, to)| {
            let letters: Vec<char> = case.chars().collect();
            let (from, to) = (from.index(letters.len() + 1), to.index(letters.len() + 1));
            letters[from.min(to)..from.max(to)].iter().collect()
        });
        prop_oneof![cut, prop::sample::select(pieces), any::<String>()]
    }

    proptest! {
        #[test]
        fn no_text_makes_a_selector_panic(fragments in prop::collection::vec(fragment(), 0..12)) {
            let answers: Value = serde_json::from_str(ANSWERS).unwrap();
            if let Ok(selector) = Selector::compile(&fragments.concat()) {
                for device in devices(&answers) {
                    let _ = selector.matches(&device);
                }
            }
        }

        #[test]
        fn no_pattern_makes_a_selector_panic(pattern in r"[a-c\[\]\\^$.|?*+(){},\-&~:iPdwsbDWé0-3]{0,12}") {
            if let Ok(pattern) = pattern::compile(&pattern) {
                let _ = pattern.is_match("abc");
            }
        }
    }
}
