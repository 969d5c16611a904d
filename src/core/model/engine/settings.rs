//! The settings of an engine, read from an annotation or from the field of a role: one meaning for both.

use std::fmt;

use super::serves::PHASES;
use super::{Engine, EngineKind, KINDS, Scope};
use crate::api::engine::EngineSettings;
use crate::model::identity::number as whole;
use crate::model::{FieldPath, names};

/// The values that a setting may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Numbers { least: i64, most: i64 },
    Words(&'static [&'static str]),
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers { least, most } => write!(f, "{least} to {most}"),
            Self::Words(words) => f.write_str(&words.join(", ")),
        }
    }
}

/// A setting of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in the annotation and in the field.
    pub name: &'static str,
    pub values: Values,
}

const PORTS: Values = Values::Numbers { least: 1, most: 65_535 };

/// All settings.
pub const SETTINGS: &[Setting] = &[
    Setting { name: "procsPerPod", values: Values::Numbers { least: 1, most: 1024 } },
    Setting { name: "scope", values: Values::Words(&["replica", "role", "segment"]) },
    Setting { name: "port", values: PORTS },
    Setting { name: "bootstrapPort", values: PORTS },
    Setting { name: "serves", values: Values::Words(PHASES) },
];

/// The form of the annotation, for messages.
const FORM: &str = "`KIND[, KIND][; SETTING=VALUE]`, as in `vllm; procsPerPod=8; scope=role`";

/// What is wrong with the settings of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No kind is named.
    NoKind,
    /// A kind that is not in the table.
    UnknownKind,
    /// A kind or a setting that occurs before.
    Twice,
    /// A setting that is not in the table.
    UnknownSetting,
    /// A part of the annotation without `=`.
    NoValue,
    /// A value that the setting does not have.
    Value(Setting),
}

/// A fault of the settings of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineFault {
    pub at: FieldPath,
    /// The word or number as written.
    pub written: String,
    pub kind: FaultKind,
}

impl EngineFault {
    /// Returns the words that may stand there; none where any number of a range may.
    pub fn known(&self) -> Vec<&'static str> {
        match self.kind {
            FaultKind::UnknownKind => KINDS.iter().map(|(word, ..)| *word).collect(),
            FaultKind::UnknownSetting => SETTINGS.iter().map(|setting| setting.name).collect(),
            FaultKind::Value(Setting { values: Values::Words(words), .. }) => words.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the requirement that is not met, as a lowercase phrase.
    pub fn detail(&self) -> String {
        match self.kind {
            FaultKind::NoKind => format!("must name an engine: {FORM}"),
            FaultKind::Twice => "occurs twice".to_owned(),
            FaultKind::NoValue => format!("must have the form {FORM}"),
            FaultKind::Value(Setting { name, values: Values::Numbers { least, most } }) => {
                format!("`{name}` must be a number from {least} to {most}")
            }
            FaultKind::Value(Setting { name, .. }) => format!("`{name}` must be one of {}", self.known().join(", ")),
            FaultKind::UnknownKind => format!("supported engines: {}", self.known().join(", ")),
            FaultKind::UnknownSetting => format!("supported settings: {}", self.known().join(", ")),
        }
    }
}

/// Reads the annotation `rolegate.dev/engine`.
///
/// # Errors
///
/// All faults of the text.
pub fn read_annotation(text: &str) -> Result<Engine, Vec<EngineFault>> {
    let at = FieldPath::annotation(names::ENGINE);
    let mut reader = Reader::default();
    let mut parts = text.split(';').map(str::trim);
    let kinds = parts.next().unwrap_or_default();
    for kind in kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty()) {
        reader.kind(kind, &at);
    }
    for part in parts.filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) => reader.setting(name.trim(), value.trim(), &at),
            None => reader.fault(part, FaultKind::NoValue, &at),
        }
    }
    reader.engine(&at)
}

/// Reads the field `engine` of a role.
///
/// # Errors
///
/// All faults of its values.
pub fn read_settings(settings: &EngineSettings, at: &FieldPath) -> Result<Engine, Vec<EngineFault>> {
    let mut reader = Reader::default();
    let kinds_at = at.child("kinds");
    for (index, kind) in settings.kinds.iter().enumerate() {
        reader.kind(kind, &kinds_at.index(index));
    }
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let written = [
        ("procsPerPod", number(settings.procs_per_pod)),
        ("scope", settings.scope.clone()),
        ("port", number(settings.port)),
        ("bootstrapPort", number(settings.bootstrap_port)),
        ("serves", settings.serves.clone()),
    ];
    for (name, value) in written {
        if let Some(value) = value {
            reader.setting(name, &value, &at.child(name));
        }
    }
    reader.engine(&kinds_at)
}

#[derive(Debug, Default)]
struct Reader {
    kinds: Vec<EngineKind>,
    settings: Vec<(&'static str, String)>,
    faults: Vec<EngineFault>,
}

impl Reader {
    fn fault(&mut self, written: &str, kind: FaultKind, at: &FieldPath) {
        self.faults.push(EngineFault { at: at.clone(), written: written.to_owned(), kind });
    }

    fn kind(&mut self, written: &str, at: &FieldPath) {
        match KINDS.iter().find(|(word, ..)| *word == written) {
            None => self.fault(written, FaultKind::UnknownKind, at),
            Some((_, kind, _)) if self.kinds.contains(kind) => self.fault(written, FaultKind::Twice, at),
            Some((_, kind, _)) => self.kinds.push(*kind),
        }
    }

    fn setting(&mut self, name: &str, value: &str, at: &FieldPath) {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            return self.fault(name, FaultKind::UnknownSetting, at);
        };
        let fits = match setting.values {
            Values::Numbers { least, most } => whole(value).is_some_and(|number: i64| (least..=most).contains(&number)),
            Values::Words(words) => words.contains(&value),
        };
        if self.settings.iter().any(|(known, _)| *known == name) {
            self.fault(name, FaultKind::Twice, at);
        } else if fits {
            self.settings.push((setting.name, value.to_owned()));
        } else {
            self.fault(value, FaultKind::Value(*setting), at);
        }
    }

    fn engine(mut self, at: &FieldPath) -> Result<Engine, Vec<EngineFault>> {
        if self.kinds.is_empty() && self.faults.is_empty() {
            self.fault("", FaultKind::NoKind, at);
        }
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let of = |name: &str| self.settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        let number = |name| of(name).and_then(whole::<i64>);
        let port = |name| number(name).and_then(|port| u16::try_from(port).ok());
        let scope = of("scope").and_then(Scope::of_word);
        Ok(Engine {
            procs_per_pod: number("procsPerPod").and_then(|number| u32::try_from(number).ok()),
            scope: scope.unwrap_or_default(),
            port: port("port"),
            bootstrap_port: port("bootstrapPort"),
            serves: of("serves").and_then(|word| PHASES.iter().copied().find(|phase| *phase == word)),
            kinds: self.kinds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str) -> Setting {
        *SETTINGS.iter().find(|setting| setting.name == name).unwrap()
    }

    #[test]
    fn an_annotation_and_a_field_of_the_same_settings_are_the_same_engine() {
        let by_text = read_annotation("vllm, llm-d; procsPerPod=8; scope = role;port=29600; serves=decode;").unwrap();
        let field = EngineSettings {
            kinds: vec!["vllm".to_owned(), "llm-d".to_owned()],
            procs_per_pod: Some(8),
            scope: Some("role".to_owned()),
            port: Some(29_600),
            serves: Some("decode".to_owned()),
            ..EngineSettings::default()
        };
        assert_eq!(Ok(&by_text), read_settings(&field, &FieldPath::new("engine")).as_ref());
        assert_eq!((by_text.scope, by_text.procs_per_pod), (Scope::Role, Some(8)));
        assert_eq!(by_text.words(), "vllm, llm-d");
    }

    #[test]
    fn a_kind_alone_is_enough() {
        let engine = read_annotation("torch").unwrap();
        assert_eq!((engine.kinds.as_slice(), engine.scope), ([EngineKind::Torch].as_slice(), Scope::Replica));
        assert_eq!((engine.port_of(EngineKind::Torch), engine.bootstrap_port()), (Some(29_500), 8998));
    }

    /// The other faults: `tests/cases/podgroup/pod-engine.yaml`.
    #[test]
    fn what_is_no_number_in_range_is_told() {
        for number in ["+8", "-1", "8.0", "eight", "", "1025", "99999999999999999999"] {
            let faults = read_annotation(&format!("torch; procsPerPod={number}")).unwrap_err();
            let found: Vec<_> = faults.into_iter().map(|fault| (fault.written, fault.kind)).collect();
            assert_eq!(found, [(number.to_owned(), FaultKind::Value(setting("procsPerPod")))], "{number}");
        }
    }

    #[test]
    fn words_of_settings_are_those_that_have_a_meaning() {
        let words: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        assert_eq!(setting("scope").values, Values::Words(&["replica", "role", "segment"]));
        assert_eq!(words, ["replica", "role", "segment"]);
    }
}
