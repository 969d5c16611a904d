//! The format of test files, `cli.rolegate.dev/v1alpha1`; the README beside the cases describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use rolegate::api::ObjectKind;
use rolegate::cli::ready_kinds;
use rolegate::model::{Allowed, IgnoredResources, Mode, ignored_resources};
use rolegate::mutate::PodSettings;
use rolegate::plan::ObservedCounts;
use rolegate::rules::rule_setting::together;
use rolegate::rules::{KaiDialect, Operation, RuleSetting, RuleSettings};

/// `apiVersion` of test files.
pub const API_VERSION: &str = "cli.rolegate.dev/v1alpha1";
/// `kind` of test files.
pub const KIND: &str = "Test";

/// A test file, or one of its documents.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TestFile {
    /// Always `cli.rolegate.dev/v1alpha1`.
    pub api_version: String,
    /// Always `Test`.
    pub kind: String,
    /// Definitions for YAML anchors; otherwise ignored.
    #[serde(rename = "shared")]
    pub _shared: Option<Value>,
    pub cases: Vec<WrittenCase>,
}

/// A case as written in the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WrittenCase {
    /// Phrase that says what the case shows; unique within the file.
    pub name: String,
    /// The judged object; exclusive with `objects`.
    pub object: Option<Value>,
    /// The judged objects: each an object, or the path of a file or folder, relative to the test file.
    pub objects: Option<Vec<Value>>,
    /// Old versions of the objects, for an update: one, or a list.
    pub old: Option<Value>,
    /// Context objects: one, or a list.
    pub with: Option<Value>,
    /// Operation; by default UPDATE if there is an old object, else CREATE.
    pub operation: Option<Action>,
    /// The judge.
    #[serde(rename = "as")]
    pub asks: Option<Asks>,
    /// Rights of the author; unknown by default.
    pub author: Option<Author>,
    /// Options, named like the flags of the commands.
    pub options: Option<CaseOptions>,
    /// Counts for a single decision of `plan`, as in `--state`.
    pub state: Option<ObservedCounts>,
    /// Expected answers.
    pub expect: Option<Expect>,
}

/// An operation, spelled as in an AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Action {
    /// The object is new.
    Create,
    /// The object replaces the one in `old`.
    Update,
    /// The object is deleted; it is given as it was.
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

/// The judge of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asks {
    /// `rolegate check`: objects outside the files may exist.
    #[default]
    Files,
    /// The webhook of a cluster with the objects of `with` only.
    Webhook,
}

/// Rights of an object's author, for rules that ask for them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Author {
    /// May delete pods in the object's namespace.
    pub may_delete_pods: Option<bool>,
    /// May create PodGroups of any scheduler in the object's namespace.
    pub may_create_pod_groups: Option<bool>,
    /// May create CapacityBuffers and ProvisioningRequests in the object's namespace.
    pub may_request_nodes: Option<bool>,
    /// May scale the workloads of the roles.
    pub may_scale: Option<bool>,
    /// May get the objects that `readyWhen` names, of kinds that rolegate watches.
    pub may_get: Option<bool>,
}

/// Flags of the commands; each command reads its own.
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
    /// `serve --allow`.
    pub allow: Option<Allowed>,
    /// `serve --ready-kinds`.
    #[serde(default, deserialize_with = "kinds")]
    pub ready_kinds: Option<&'static [ObjectKind]>,
    /// `check --ignore-resources`, and that of `fit` and `plan`.
    #[serde(default, deserialize_with = "resources")]
    pub ignore_resources: IgnoredResources,
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
    /// Field manager of the update, as in `kubectl apply --field-manager`.
    pub field_manager: Option<String>,
}

/// Parses the kinds whose objects `readyWhen` may name.
fn kinds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static [ObjectKind]>, D::Error> {
    let written = Vec::<String>::deserialize(deserializer)?;
    let kinds: Result<Vec<_>, _> = written.iter().map(|kind| ready_kinds::parse(kind)).collect();
    Ok(Some(kinds.map_err(de::Error::custom)?.leak()))
}

/// Parses the resources that need not be on a node.
fn resources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IgnoredResources, D::Error> {
    let written = Vec::<String>::deserialize(deserializer)?;
    let read: Result<Vec<_>, _> = written.iter().map(|one| ignored_resources::parse(one)).collect();
    read.map(IgnoredResources::of).map_err(de::Error::custom)
}

/// Parses the settings of rules; unknown rules and settings are errors.
fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RuleSettings>, D::Error> {
    let written = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let word = |value: &Value| match value {
        Value::String(word) => word.clone(),
        // YAML reads `off` without quotes as false.
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    };
    let read = written.iter().map(|(rule, value)| format!("{rule}={}", word(value)).parse::<RuleSetting>());
    let settings = read.collect::<Result<Vec<_>, _>>().map_err(de::Error::custom)?;
    together(settings).map(Some).map_err(de::Error::custom)
}

/// Treatment of pods whose `rolegate.dev/group` names a group without their role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnknownRole {
    /// The pods are held until the group has the role.
    Hold,
    /// The pods pass with a warning.
    Pass,
}

impl CaseOptions {
    /// Reports whether an option of `check` is set.
    pub(crate) fn of_check(&self) -> bool {
        let words = self.kai_dialect.is_some() || self.mode.is_some();
        let rules = self.strict_roles.is_some() || self.rules.is_some();
        words || rules || self.allow.is_some() || self.ready_kinds.is_some()
    }

    /// Reports whether an option of commands that look at nodes is set.
    pub(crate) fn of_room(&self) -> bool {
        self.ignore_resources != IgnoredResources::default()
    }

    /// Reports whether an option of `mutate` is set.
    pub(crate) fn of_mutate(&self) -> bool {
        let texts = [&self.cluster_domain, &self.segment_label, &self.cohort_label, &self.field_manager];
        texts.iter().any(|text| text.is_some()) || self.discovery.is_some() || self.unknown_role.is_some()
    }

    /// Converts the options to the settings of mutation.
    pub(crate) fn settings(&self) -> PodSettings {
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

/// Expected answers by command. A command without a value has an answer still to be written by `--update`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    #[serde(default)]
    pub check: Part<CheckExpect>,
    #[serde(default)]
    pub mutate: Part<MutateExpect>,
    #[serde(default)]
    pub plan: Part<AnswerExpect>,
    #[serde(default)]
    pub fit: Part<AnswerExpect>,
}

/// The expectation for a command.
#[derive(Debug, Default)]
pub(crate) enum Part<T> {
    /// Nothing is expected.
    #[default]
    Absent,
    /// The expected answer is still to be written.
    Unwritten,
    Written(T),
}

impl<T> Part<T> {
    /// Returns how the answer is compared; `None` when nothing is expected.
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

/// How an answer is compared with its expectation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Match {
    /// The answer equals the expectation.
    #[default]
    Exact,
    /// The answer contains the expectation.
    Partial,
}

/// The verdict of the rules, as in `rolegate check -o json`. Absent fields are not compared, except violations and
/// warnings in an exact match.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(crate) struct CheckExpect {
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// Whether all objects are admitted.
    pub allowed: Option<bool>,
    /// Errors, in order.
    pub violations: Option<Vec<Finding>>,
    /// Warnings, in order.
    pub warnings: Option<Vec<Finding>>,
    /// Rules that were not judged, in order.
    pub notes: Option<Vec<Finding>>,
}

/// A finding; absent fields are not compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(crate) struct Finding {
    /// Name of the object, if there are several.
    pub object: Option<String>,
    pub rule: String,
    pub field: String,
    /// Cause, such as `FieldValueInvalid`.
    pub reason: Option<String>,
    /// Text without the field.
    pub message: Option<String>,
}

/// The mutated objects; workloads are replaced by their pods, unless they have an `old`. Absent fields are not
/// compared, except warnings and refusals in an exact match.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(crate) struct MutateExpect {
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// Whether all mutated objects are admitted.
    pub allowed: Option<bool>,
    /// Names of all resulting objects, in order.
    pub names: Option<Vec<String>>,
    /// JSON Patches by object name; with a partial match, the expected operations only.
    pub patches: Option<BTreeMap<String, Vec<Value>>>,
    /// Mutated objects by name; with a partial match, the expected fields only. Other objects are not compared.
    pub objects: Option<BTreeMap<String, Map<String, Value>>>,
    /// Names of objects by label key and value. Other labels are not compared.
    pub labels: Option<BTreeMap<String, BTreeMap<String, Vec<String>>>>,
    /// Environments by pod and container: each variable as `NAME=value`, or `NAME` if its value comes from elsewhere.
    /// With a partial match, only the beginning. Other pods and containers are not compared.
    pub env: Option<BTreeMap<String, BTreeMap<String, Vec<String>>>>,
    /// Warnings for the client, each text once.
    pub warnings: Option<Vec<String>>,
    /// Errors of the mutated objects, each text once.
    pub refused: Option<Vec<String>>,
}

/// The answer of a command, as in its `-o json`. A list may be replaced by any of `count`, `first` and `last`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is what an expectation may say: comparing looks at it as it is written")]
pub(crate) struct AnswerExpect {
    #[serde(default, rename = "match")]
    pub matching: Match,
    pub exit: Option<u8>,
    pub groups: Option<Value>,
}

/// A command with an expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    Check,
    Mutate,
    Plan,
    Fit,
}

impl Asked {
    /// All commands, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Check, Self::Mutate, Self::Plan, Self::Fit];

    /// Returns the command's name, which is also the key of its expectation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Mutate => "mutate",
            Self::Plan => "plan",
            Self::Fit => "fit",
        }
    }
}

/// The expected answer of one command.
#[derive(Clone, Debug)]
pub struct Expected {
    pub asked: Asked,
    pub matching: Match,
    /// The expectation without `match`; `None` when it is still to be written.
    pub written: Option<Map<String, Value>>,
}

/// The input of a case.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The judged objects, including those from files.
    pub objects: Vec<Value>,
    /// Old versions of the objects.
    pub old: Vec<Value>,
    /// Context objects.
    pub with: Vec<Value>,
    /// The operation, if given.
    pub operation: Option<Action>,
    pub asks: Asks,
    /// Rights of the author.
    pub author: Author,
    pub options: CaseOptions,
    /// Counts for a single decision of `plan`.
    pub state: Option<ObservedCounts>,
}

/// A runnable case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Path of its file.
    pub file: String,
    /// Line of the file on which it begins, counted from 1.
    pub line: u64,
    /// Index of its document in the file, and its index in that document.
    pub place: (usize, usize),
    pub name: String,
    pub input: Input,
    /// Expected answers; not empty.
    pub expected: Vec<Expected>,
}
