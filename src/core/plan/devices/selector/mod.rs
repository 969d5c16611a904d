//! Selectors of devices, as requests for devices and DeviceClasses write them in CEL: which devices does one match?
//!
//! `parse` text → `check` types, before any device is seen → `run` with a device. A part of CEL is known, and it answers what
//! kube-scheduler answers: whatever is not known is an error, never another answer.

mod check;
mod functions;
mod parse;
mod pattern;
mod run;
mod value;
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
    /// The text is no expression, or one with words that are not known.
    #[error("{what} at character {at}")]
    Syntax {
        /// What is wrong.
        what: String,
        /// Where, counted from 1.
        at: usize,
    },
    /// A function or variable is not known, or has arguments of other types.
    #[error("{0}")]
    Unknown(String),
    /// The expression fails for the device.
    #[error("{0}")]
    Failed(String),
}

/// A selector, ready to be asked.
#[derive(Clone, Debug)]
pub struct Selector {
    text: Box<str>,
    expression: parse::Expr,
    words: Option<BTreeSet<Arc<str>>>,
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
    /// When something of the text is not known, or kube-scheduler refuses it.
    pub fn compile(text: &str) -> Result<Self, SelectorError> {
        let mut expression = parse::parse(text)?;
        let open = check::check(&mut expression)?;
        let words = (!open).then(|| parse::words(text, &expression));
        Ok(Self { text: text.into(), expression, words })
    }

    /// Whether the selector matches a device.
    ///
    /// # Errors
    ///
    /// When the expression fails for the device, for example because it has no such attribute.
    pub fn matches(&self, device: &DeviceFacts) -> Result<bool, SelectorError> {
        run::run(&self.expression, device)
    }

    /// The words of the text, also within its strings: an attribute or capacity whose identifier is not among them does not
    /// change the answer. None when any may.
    pub fn words(&self) -> Option<&BTreeSet<Arc<str>>> {
        self.words.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What kube-scheduler's evaluator answers, which `tests/fixtures/README.md` explains.
    const ANSWERS: &str = include_str!("../../../../../tests/fixtures/device-selectors.json");

    /// Expressions that it answers and we do not.
    const NOT_MODELLED: &[&str] = &[
        "device.attributes['gpu.nvidia.com'].index in [7.0]",
        "device.attributes['gpu.example.com'].index == 9007199254740992.0",
        "1.0 / 0.0 > 1.0",
        "--1 == 1",
        "b'a' == b'a'",
        "null == null",
        "device.attributes['gpu.nvidia.com'].type == null",
        "[] == []",
        "[1, 2,] == [1, 2]",
        "size(device.attributes['gpu.nvidia.com']) > 0",
        "size(device.attributes) > 0",
        "{'a': 1}['a'] == 1",
        "'a' in {'a': 1}",
        "device.attributes['gpu.example.com'].label.matches('(?m)Ω$')",
        "device.attributes['gpu.example.com'].label.charAt(0) == 'G'",
        "device.attributes['gpu.nvidia.com'].productName.split('') == ['x']",
        "device.attributes['gpu.nvidia.com'].productName.replace('A', 'B', 1) == 'NVIDIB'",
        "device.attributes['gpu.nvidia.com'].productName.lastIndexOf('A') > 0",
        "['a', 'b'].join('-') == 'a-b'",
        "device.attributes['gpu.nvidia.com'].type.matches('[[:alpha:]]+')",
        r"device.attributes['gpu.nvidia.com'].type.matches('\\p{L}+')",
        r"device.attributes['gpu.nvidia.com'].type.matches('\\Qgpu\\E')",
        r"device.attributes['gpu.nvidia.com'].type.matches('g\\<')",
        "device.attributes['gpu.nvidia.com'].type.matches('(?:g)(?P<name>p)u')",
        "device.attributes['gpu.nvidia.com'].type.matches('[a&&g]pu')",
        "semver('1.2.9999999999999999999').patch() > 0",
        "device.attributes['gpu.nvidia.com'].type == device.capacity['gpu.nvidia.com'].memory",
        "isQuantity('Gi')",
        "quantity('0.1n') == quantity('1n')",
        "quantity('9223372036854775808') == quantity('9223372036854775807')",
        "device.capacity['gpu.example.com'].share.isInteger()",
        "device.capacity['gpu.example.com'].odd.isInteger()",
        "device.capacity['gpu.example.com'].share.asApproximateFloat() > 1.4",
        "quantity('1.0').isInteger()",
        "quantity('1Ti').asInteger() == 1099511627776",
        "cel.bind(int, 1, int == 1)",
        "device.attributes['gpu.nvidia.com'].?type == optional.of('gpu')",
        "device.attributes['gpu.nvidia.com'].?type.value() == 'gpu'",
        "device.attributes['gpu.nvidia.com'].type.?x.hasValue()",
        "has(device.attributes['gpu.nvidia.com'].type.x)",
        "device.attributes['gpu.nvidia.com'].filter(k, k == 'type') == ['type']",
        "int(7.5) == 7",
        "uint(device.attributes['gpu.nvidia.com'].index) == 7u",
        "double(device.attributes['gpu.nvidia.com'].index) == 7.0",
        "type(device.attributes['gpu.nvidia.com'].index) == int",
        "string(1.5) == '1.5'",
        "device.attributes['gpu.nvidia.com'].type.format([]) == 'x'",
        "duration('1h') > duration('1m')",
        "ip('10.0.0.1') == ip('10.0.0.1')",
        ".device.driver == 'gpu.nvidia.com'",
        "device.attributes['gpu.nvidia.com'] == device.attributes['gpu.nvidia.com']",
        "device == device",
        "device.attributes['gpu.nvidia.com'].`type` == 'gpu'",
        "device.attributes['gpu.nvidia.com'].index in device.attributes['gpu.nvidia.com']",
        "[1, 2] + [3] == [1, 2, 3]",
        "[1, 2].sum() == 3",
        "[2, 1].isSorted()",
        "['gpu'].includes(device.attributes['gpu.nvidia.com'].type)",
        "device.attributes['gpu.nvidia.com'].type.includes('gpu')",
    ];

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
        let (mut wrong, mut silent) = (Vec::new(), Vec::new());
        for case in answers["cases"].as_array().unwrap() {
            let expression = case["expression"].as_str().unwrap();
            let selector = Selector::compile(expression);
            for (device, expected) in devices.iter().zip(case["answers"].as_array().unwrap()) {
                let answer = selector.as_ref().map_err(Clone::clone).and_then(|selector| selector.matches(device));
                match answer {
                    Ok(answer) if expected.as_bool() != Some(answer) => {
                        wrong.push(format!("{expression} for {}: {answer}, not {expected}", device.driver));
                    }
                    Err(_) if expected.is_boolean() && !silent.contains(&expression) => silent.push(expression),
                    _ => {}
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(silent, NOT_MODELLED);
    }

    #[test]
    fn what_no_word_of_a_selector_names_does_not_change_its_answer() {
        let answers: Value = serde_json::from_str(ANSWERS).unwrap();
        for case in answers["cases"].as_array().unwrap() {
            let Ok(selector) = Selector::compile(case["expression"].as_str().unwrap()) else { continue };
            let Some(words) = selector.words() else { continue };
            for device in devices(&answers) {
                let mut named = device.clone();
                let is_named = |name: &Arc<str>| words.contains(name.rsplit('/').next().unwrap());
                named.attributes.retain(|name, _| is_named(name));
                named.capacity.retain(|name, _| is_named(name));
                assert_eq!(selector.matches(&named), selector.matches(&device), "{}", case["expression"]);
            }
        }
    }

    #[test]
    fn words_are_given_unless_any_attribute_may_be_looked_up() {
        let words = |text: &str| Selector::compile(text).unwrap().words().cloned();
        let memory = words("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))").unwrap();
        assert!(memory.contains("memory") && memory.contains("Gi") && !memory.contains("type"));
        assert!(words(r"device.attributes['gpu.example.com']['t\x79pe'] == 'gpu'").unwrap().contains("type"));
        for text in [
            "device.attributes['gpu.example.com']['ty' + 'pe'] == 'gpu'",
            "device.attributes['gpu.example.com'].exists(name, name == 'type')",
            "'gpu.example.com' in device.attributes",
        ] {
            assert_eq!(words(text), None, "{text}");
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
