//! The format of test files, `cli.rolegate.dev/v1alpha1`. docs/guides/testing-your-specs.md tells it to authors.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::model::Mode;
use crate::mutate::PodSettings;
use crate::plan::ObservedCounts;
use crate::rules::rule_setting::together;
use crate::rules::{KaiDialect, Operation, RuleSetting, RuleSettings};

/// `apiVersion` of test files.
pub const API_VERSION: &str = "cli.rolegate.dev/v1alpha1";
/// `kind` of test files.
pub const KIND: &str = "Test";

/// A test file, or one of its documents.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TestFile {
    /// Always `cli.rolegate.dev/v1alpha1`.
    pub api_version: String,
    /// Always `Test`.
    pub kind: String,
    /// What cases refer to by YAML's anchors; nobody else looks at it.
    #[serde(rename = "shared")]
    pub _shared: Option<Value>,
    /// The cases.
    pub cases: Vec<WrittenCase>,
}

/// A case as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenCase {
    /// What it shows, in a phrase; no other case of the file has it.
    pub name: String,
    /// The object that is asked about; or
    pub object: Option<Value>,
    /// the objects. Each is an object, or the path of a file or folder from where the test file lies.
    pub objects: Option<Vec<Value>>,
    /// The same objects before, so that an update is judged: one, or a list of them.
    pub old: Option<Value>,
    /// What is there besides: one, or a list of them.
    pub with: Option<Value>,
    /// What is done with the objects: UPDATE where there is an old one, else CREATE.
    pub operation: Option<Action>,
    /// Who judges.
    #[serde(rename = "as")]
    pub asks: Option<Asks>,
    /// What its author may do; not known by default.
    pub author: Option<Author>,
    /// As the flags of the commands are called.
    pub options: Option<CaseOptions>,
    /// Counts from which `plan` decides once, as its `--state` has them.
    pub state: Option<ObservedCounts>,
    /// What must come out.
    pub expect: Option<Expect>,
}

/// What is done with an object, as an AdmissionReview spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Action {
    /// It is new.
    Create,
    /// It replaces what is in `old`.
    Update,
    /// It goes away; the object is what it was.
    Delete,
}

impl From<Action> for Operation {
    fn from(action: Action) -> Self {
        match action {
            Action::Create => Self::Create,
            Action::Update => Self::Update,
            Action::Delete => Self::Delete,
        }
    }
}

/// Who judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asks {
    /// `rolegate check`: what is in no file may be there all the same.
    #[default]
    Files,
    /// The webhook of a cluster that has what is in `with`, and nothing else.
    Webhook,
}

/// What the author of an object may do, where rules ask for it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Author {
    /// Delete pods in the object's namespace.
    pub may_delete_pods: Option<bool>,
    /// Create PodGroups there, of whichever scheduler.
    pub may_create_pod_groups: Option<bool>,
    /// Scale the workloads of the roles.
    pub may_scale: Option<bool>,
}

/// Flags of the commands, each of which is read by those that have it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CaseOptions {
    /// `check --kai-dialect`.
    pub kai_dialect: Option<KaiDialect>,
    /// `check --strict-roles`.
    pub strict_roles: Option<bool>,
    /// `check --rule`: `deny`, `warn` or `off` by the id of the rule.
    #[serde(default, deserialize_with = "rules")]
    pub rules: Option<RuleSettings>,
    /// `check --mode`.
    pub mode: Option<Mode>,
    /// `mutate --cluster-domain`.
    pub cluster_domain: Option<String>,
    /// `mutate --discovery`: false is `off`.
    pub discovery: Option<bool>,
    /// `mutate --unknown-role`.
    pub unknown_role: Option<UnknownRole>,
    /// `mutate --segment-label`.
    pub segment_label: Option<String>,
    /// `mutate --cohort-label`.
    pub cohort_label: Option<String>,
}

/// Rules that are there, set to what they may be set to.
fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RuleSettings>, D::Error> {
    let written = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let word = |value: &Value| match value {
        Value::String(word) => word.clone(),
        // `off` without quotes is that in YAML.
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    };
    let read = written.iter().map(|(rule, value)| format!("{rule}={}", word(value)).parse::<RuleSetting>());
    let settings = read.collect::<Result<Vec<_>, _>>().map_err(de::Error::custom)?;
    together(settings).map(Some).map_err(de::Error::custom)
}

/// Pods that name a group by our own label, and a role that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnknownRole {
    /// They are held until the group has the role.
    Hold,
    /// They pass, with a warning.
    Pass,
}

impl CaseOptions {
    /// Those of `check` that are set.
    pub(super) fn of_check(&self) -> bool {
        self.kai_dialect.is_some() || self.strict_roles.is_some() || self.rules.is_some() || self.mode.is_some()
    }

    /// Those of `mutate` that are set.
    pub(super) fn of_mutate(&self) -> bool {
        let texts = [&self.cluster_domain, &self.segment_label, &self.cohort_label];
        texts.iter().any(|text| text.is_some()) || self.discovery.is_some() || self.unknown_role.is_some()
    }

    /// How pods are mutated.
    pub(super) fn settings(&self) -> PodSettings {
        let default = PodSettings::default();
        PodSettings {
            discovery: self.discovery.unwrap_or(default.discovery),
            frees_unknown_roles: self.unknown_role == Some(UnknownRole::Pass),
            cluster_domain: self.cluster_domain.clone().unwrap_or(default.cluster_domain),
            segment_label: self.segment_label.clone(),
            cohort_label: self.cohort_label.clone(),
            ..PodSettings::default()
        }
    }
}

/// What must come out, by the command that says it. A command without a value is one whose answer is still to be written
/// down (`--update`).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// The verdict of the rules.
    #[serde(default)]
    pub check: Part<CheckExpect>,
    /// What becomes of the objects.
    #[serde(default)]
    pub mutate: Part<MutateExpect>,
    /// In what order gates are lifted.
    #[serde(default)]
    pub plan: Part<AnswerExpect>,
    /// What fits.
    #[serde(default)]
    pub fit: Part<AnswerExpect>,
}

/// What is written of a command's answer.
#[derive(Debug, Default)]
pub(super) enum Part<T> {
    /// Nothing is expected.
    #[default]
    Absent,
    /// Something is, which is still to be written down.
    Unwritten,
    /// This is.
    Written(T),
}

impl<T> Part<T> {
    /// How it is compared; `None` where nothing is expected.
    pub fn matching(&self, of: fn(&T) -> Match) -> Option<Match> {
        match self {
            Self::Absent => None,
            Self::Unwritten => Some(Match::Exact),
            Self::Written(part) => Some(of(part)),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Part<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Unwritten, Self::Written))
    }
}

/// How an expectation is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Match {
    /// What is written is all there is.
    #[default]
    Exact,
    /// What is written is there, among other things.
    Partial,
}

/// The verdict of the rules, in the words of `rolegate check -o json`. What is not written is not compared; but of an exact
/// match violations and warnings always are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(super) struct CheckExpect {
    /// How it is compared.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// Whether all objects are admitted.
    pub allowed: Option<bool>,
    /// What refuses them, in order.
    pub violations: Option<Vec<Finding>>,
    /// What is shown to their author, in order.
    pub warnings: Option<Vec<Finding>>,
    /// What is not judged, in order.
    pub notes: Option<Vec<Finding>>,
}

/// A finding; what is not written of it is not compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(super) struct Finding {
    /// Name of the object, where there are several.
    pub object: Option<String>,
    /// Id of the rule.
    pub rule: String,
    /// Path of the field.
    pub field: String,
    /// Cause, as `FieldValueInvalid`.
    pub reason: Option<String>,
    /// The text, without the field.
    pub message: Option<String>,
}

/// What becomes of the objects; workloads are shown as their pods, unless they have an `old`. What is not written is not
/// compared; but of an exact match warnings and what is refused always are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(super) struct MutateExpect {
    /// How it is compared.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// Whether all objects are admitted afterwards.
    pub allowed: Option<bool>,
    /// Names of all objects that come out, in order.
    pub names: Option<Vec<String>>,
    /// JSON Patches by the object's name: all of them, or with a partial match those that are written.
    pub patches: Option<BTreeMap<String, Vec<Value>>>,
    /// Objects afterwards by name, whole, or with a partial match the fields that are written. Others are not compared.
    pub objects: Option<BTreeMap<String, Map<String, Value>>>,
    /// Who comes out with which value of a label: key, value, names. Other labels are not compared.
    pub labels: Option<BTreeMap<String, BTreeMap<String, Vec<String>>>>,
    /// Environments by pod and container, each variable as `NAME=value`, or `NAME` where its value comes from elsewhere: the
    /// whole, or with a partial match its beginning. Others are not compared.
    pub env: Option<BTreeMap<String, BTreeMap<String, Vec<String>>>>,
    /// What is shown to whoever creates the objects, each text once.
    pub warnings: Option<Vec<String>>,
    /// Why objects are refused afterwards, each text once.
    pub refused: Option<Vec<String>>,
}

/// The answer of a command, in the words of its `-o json`. Of a long list, `count`, `first` and `last`, or some of them, may
/// stand for the whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(super) struct AnswerExpect {
    /// How it is compared.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// Exit code of the command.
    pub exit: Option<u8>,
    /// Its groups.
    pub groups: Option<Value>,
}

/// A command whose answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// `rolegate check`.
    Check,
    /// `rolegate mutate`.
    Mutate,
    /// `rolegate plan`.
    Plan,
    /// `rolegate fit`.
    Fit,
}

impl Asked {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 4] = [Self::Check, Self::Mutate, Self::Plan, Self::Fit];

    /// The command's name, and the key of its expectation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Mutate => "mutate",
            Self::Plan => "plan",
            Self::Fit => "fit",
        }
    }
}

/// What one command must answer, as it is written.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The command.
    pub asked: Asked,
    /// How it is compared.
    pub matching: Match,
    /// What is written, without `match`; `None` where nothing is yet.
    pub written: Option<Map<String, Value>>,
}

/// What a case asks about.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The objects, those of files among them.
    pub objects: Vec<Value>,
    /// The same before.
    pub old: Vec<Value>,
    /// What is there besides.
    pub with: Vec<Value>,
    /// What is done with them, where that is written.
    pub operation: Option<Action>,
    /// Who judges.
    pub asks: Asks,
    /// What their author may do.
    pub author: Author,
    /// Flags.
    pub options: CaseOptions,
    /// Counts from which is planned.
    pub state: Option<ObservedCounts>,
}

/// A case that can be run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its file, as it was found.
    pub file: String,
    /// Line of the file on which it begins, from 1.
    pub line: u64,
    /// Which document of the file it is in, and which case of that.
    pub place: (usize, usize),
    /// What it shows.
    pub name: String,
    /// What it asks about.
    pub input: Input,
    /// What must come out, at least one thing.
    pub expected: Vec<Expected>,
}
