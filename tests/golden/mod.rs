//! Reads and runs golden cases.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rolegate::api::ObjectKind;
use rolegate::fit::{Cluster, MOST_PODS, domain_keys, fit, shortages};
use rolegate::model::{CARRIERS, WorkloadKey, WorkloadKind};
use rolegate::rules::{Judged, Need, Operation, Options, Violation, World, judge_json, needs, read_group};
use serde::Deserialize;
use serde_json::Value;

/// Where the cases lie, as seen from the crate's root.
pub const ROOT: &str = "tests/cases";
/// Folders there whose cases are of another shape: `mutations`, `identity`, `mutate_cli` and `plan` in `tests/offline` run them.
const ELSEWHERE: &[&str] = &["discovery", "fit", "identity", "plan", "pod", "subgroup"];

/// API groups of the PodGroups that may be made.
const POD_GROUPS: [&str; 3] = ["scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"];

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
    pub old: Option<Value>,
    /// The object that is judged; for a DELETE, what it was.
    pub object: Value,
    /// Objects that are there.
    #[serde(default)]
    pub with: Vec<Value>,
    /// How to judge.
    #[serde(default)]
    pub options: Options,
    /// Judge as the webhook does, with all that is not in `with` known to be absent; else as `check` does.
    #[serde(default)]
    pub live: bool,
    /// Whether the author may delete pods; not known by default.
    #[serde(rename = "mayDeletePods")]
    pub may_delete_pods: Option<bool>,
    /// Whether the author may create PodGroups; not known by default.
    #[serde(rename = "mayCreatePodGroups")]
    pub may_create_pod_groups: Option<bool>,
    /// Whether the author may scale the workloads of the roles; not known by default.
    #[serde(rename = "mayScale")]
    pub may_scale: Option<bool>,
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
    /// What is not judged; not compared when absent.
    notes: Option<Vec<Finding>>,
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
        let notes = self.expect.notes.as_deref();
        if same(&self.expect.errors, &judged.errors)
            && same(&self.expect.warnings, &judged.warnings)
            && notes.is_none_or(|notes| same(notes, &judged.notes))
        {
            return Ok(());
        }
        let mut text = String::new();
        show(&mut text, "errors", &self.expect.errors, &judged.errors);
        show(&mut text, "warnings", &self.expect.warnings, &judged.warnings);
        show(&mut text, "notes", notes.unwrap_or_default(), &judged.notes);
        Err(text)
    }

    /// What is done with the object.
    pub fn operation(&self) -> Operation {
        match (&self.operation, &self.old) {
            (Some(name), _) => Operation::parse(name).unwrap_or_else(|| panic!("no operation {name}")),
            (None, Some(_)) => Operation::Update,
            (None, None) => Operation::Create,
        }
    }

    /// Where nodes are there: what does not fit of a group.
    fn add_shortages(&self, world: &mut World, object: &str) {
        let (api_version, kind) = type_of(&self.object);
        let is_it = |carrier: &&ObjectKind| carrier.kind == kind && carrier.api_version() == api_version;
        let Some(carrier) = CARRIERS.iter().find(is_it) else { return };
        if !self.with.iter().any(|object| type_of(object) == ("v1", "Node")) {
            return;
        }
        let mut cluster = Cluster::new(MOST_PODS);
        for object in self.with.iter().chain([&self.object]) {
            let (api_version, kind) = type_of(object);
            cluster.add(api_version, kind, object.clone(), &()).expect("an object that can be read");
        }
        cluster.number();
        let group = read_group(*carrier, object, world).expect("a group that can be read");
        let keys = domain_keys(&group, |topology, layer| world.layer_key(topology, layer));
        let shortages = shortages(&fit(&group, &keys, &cluster, usize::MAX));
        world.add_shortages(group.key, shortages);
    }

    /// The workloads that the roles refer to.
    fn workloads(&self, namespace: &str) -> Vec<WorkloadKey> {
        let roles = self.object.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
        let key = |role: &Value| {
            let kind = WorkloadKind::parse(role.pointer("/workloadRef/kind")?.as_str()?)?;
            let name = role.pointer("/workloadRef/name")?.as_str()?.to_owned();
            Some(WorkloadKey { namespace: namespace.to_owned(), kind, name })
        };
        roles.filter_map(key).collect()
    }

    /// Judges the object; the error says why it cannot be.
    pub fn judge(&self) -> Result<Judged, String> {
        let mut world = World::of_manifests(self.options);
        for object in &self.with {
            let (api_version, kind) = type_of(object);
            world.add_json(api_version, kind, &object.to_string()).map_err(|error| format!("  with: {error}"))?;
        }
        let namespace = self.object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        for api_group in self.may_create_pod_groups.iter().flat_map(|_| POD_GROUPS) {
            let need = Need::MayCreatePodGroups { namespace: namespace.to_owned(), api_group };
            world.answer(need, self.may_create_pod_groups == Some(true));
        }
        for key in self.may_scale.iter().flat_map(|_| self.workloads(namespace)) {
            world.answer(Need::MayScale(key), self.may_scale == Some(true));
        }
        if let Some(may) = self.may_delete_pods {
            world.answer(Need::MayDeletePods { namespace: namespace.to_owned() }, may);
        }
        let operation = self.operation();
        let old = self.old.as_ref().map(Value::to_string);
        let (api_version, kind) = type_of(&self.object);
        let object = self.object.to_string();
        self.add_shortages(&mut world, &object);
        if self.live {
            world.manifests = false;
            let needs = |world: &World| needs(api_version, kind, operation, &object, old.as_deref(), world);
            for need in needs(&world).map_err(|error| format!("  needs: {error}"))? {
                world.answer(need, false);
            }
        }
        match judge_json(api_version, kind, operation, &object, old.as_deref(), &world) {
            None => Ok(Judged::default()),
            Some(Ok(judged)) => Ok(judged),
            Some(Err(error)) => Err(format!("  does not have the shape of its kind: {error}")),
        }
    }
}

fn show(text: &mut String, title: &str, expected: &[Finding], found: &[Violation]) {
    let _ = writeln!(text, "  {title}, expected:");
    for finding in expected {
        let (rule, path) = (&finding.rule, &finding.path);
        let reason = finding.reason.as_deref().unwrap_or("*");
        let _ = writeln!(text, "    [{rule}] {path}: {reason} {}", finding.message.as_deref().unwrap_or("*"));
    }
    let _ = writeln!(text, "  {title}, found:");
    for violation in found {
        let (rule, cause) = (violation.rule, violation.cause.as_str());
        let _ = writeln!(text, "    [{rule}] {}: {cause} {}", violation.path, violation.message());
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
