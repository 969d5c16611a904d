//! Reads and runs golden cases.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rolegate::rules::{Judged, Operation, Options, Violation, World, judge_json};
use serde::Deserialize;
use serde_json::Value;

/// Where the cases lie, as seen from the crate's root.
pub const ROOT: &str = "tests/cases";
/// Folders there whose cases are of another shape: `tests/mutations.rs`, `tests/identity.rs` and `tests/mutate_cli.rs` run them.
const ELSEWHERE: &[&str] = &["discovery", "identity", "pod", "subgroup"];

/// One file: the cases of one rule.
pub struct CaseFile {
    /// Its path.
    pub path: PathBuf,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, in a phrase.
    pub name: String,
    /// CREATE, UPDATE or DELETE; UPDATE by default when there is an `old`, else CREATE.
    operation: Option<String>,
    /// The object before.
    old: Option<Value>,
    /// The object that is judged; for a DELETE, what it was.
    object: Value,
    /// Objects that are there.
    #[serde(default)]
    with: Vec<Value>,
    /// How to judge.
    #[serde(default)]
    options: Options,
    /// What must come out.
    pub expect: Expect,
}

/// What must come out: all of it, in this order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What refuses the object.
    #[serde(default)]
    errors: Vec<Finding>,
    /// What is shown.
    #[serde(default)]
    warnings: Vec<Finding>,
}

impl Expect {
    /// Errors and warnings.
    pub fn all(&self) -> impl Iterator<Item = &Finding> {
        self.errors.iter().chain(&self.warnings)
    }

    /// Errors, or warnings for rules that only warn.
    pub fn findings(&self, warnings: bool) -> impl Iterator<Item = &Finding> {
        if warnings { self.warnings.iter() } else { self.errors.iter() }
    }
}

/// A violation as far as the case fixes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Path of the field.
    path: String,
    /// Cause, `FieldValueInvalid`.
    reason: Option<String>,
    /// Text without the path.
    pub message: Option<String>,
}

impl Finding {
    fn matches(&self, found: &Violation) -> bool {
        self.rule == found.rule
            && self.path == found.path.to_string()
            && self.reason.as_deref().is_none_or(|reason| reason == found.cause.as_str())
            && self.message.as_ref().is_none_or(|message| *message == found.message())
    }
}

impl Case {
    /// Judges the object and compares; the error shows what came out.
    pub fn run(&self) -> Result<(), String> {
        let judged = self.judge()?;
        let same = |expected: &[Finding], found: &[Violation]| {
            expected.len() == found.len() && expected.iter().zip(found).all(|(expected, found)| expected.matches(found))
        };
        if same(&self.expect.errors, &judged.errors) && same(&self.expect.warnings, &judged.warnings) {
            return Ok(());
        }
        let mut text = String::new();
        for (title, expected, found) in
            [("errors", &self.expect.errors, &judged.errors), ("warnings", &self.expect.warnings, &judged.warnings)]
        {
            let _ = writeln!(text, "  {title}, expected:");
            for finding in expected {
                let _ = writeln!(
                    text,
                    "    [{}] {}: {} {}",
                    finding.rule,
                    finding.path,
                    finding.reason.as_deref().unwrap_or("*"),
                    finding.message.as_deref().unwrap_or("*")
                );
            }
            let _ = writeln!(text, "  {title}, found:");
            for violation in found {
                let (rule, cause) = (violation.rule, violation.cause.as_str());
                let _ = writeln!(text, "    [{rule}] {}: {cause} {}", violation.path, violation.message());
            }
        }
        Err(text)
    }

    fn judge(&self) -> Result<Judged, String> {
        let mut world = World { options: self.options, ..World::default() };
        for object in &self.with {
            let (api_version, kind) = type_of(object);
            world.add_json(api_version, kind, &object.to_string());
        }
        let operation = match (&self.operation, &self.old) {
            (Some(word), _) => Operation::parse(word).ok_or_else(|| format!("  no operation {word}"))?,
            (None, Some(_)) => Operation::Update,
            (None, None) => Operation::Create,
        };
        let old = self.old.as_ref().map(Value::to_string);
        let (api_version, kind) = type_of(&self.object);
        match judge_json(api_version, kind, operation, &self.object.to_string(), old.as_deref(), &world) {
            None => Ok(Judged::default()),
            Some(Ok(judged)) => Ok(judged),
            Some(Err(error)) => Err(format!("  does not have the shape of its kind: {error}")),
        }
    }
}

fn type_of(object: &Value) -> (&str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// All case files, sorted.
pub fn files() -> Vec<CaseFile> {
    let mut paths = Vec::new();
    collect(Path::new(ROOT), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a case file is readable");
        let cases = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        CaseFile { path, cases }
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of cases is there") {
        let path = entry.expect("its entries are readable").path();
        if path.is_dir() {
            if !ELSEWHERE.iter().any(|folder| path.ends_with(folder)) {
                collect(&path, paths);
            }
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
}
