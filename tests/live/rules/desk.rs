//! Where a user sits: `kubectl` in one namespace.

pub use crate::common::build::labels as tied;
use crate::common::build::{stateful_set as stateful_set_of, with};
use crate::common::prelude::*;
use crate::rules::definitions;

/// A namespace on the shared control plane, where every kind is defined.
pub async fn stage(namespace: &str) -> Stage {
    Stage::on(definitions::PLANE.get(), namespace).await
}

/// What `kubectl` showed.
#[derive(Debug)]
pub struct Shown {
    pub done: bool,
    pub out: String,
    pub err: String,
}

impl Shown {
    /// What was printed as a warning, a line each.
    pub fn warnings(&self) -> Vec<&str> {
        self.err.lines().filter_map(|line| line.strip_prefix("Warning: ")).collect()
    }
}

/// Runs `kubectl` in a namespace.
pub fn kubectl(plane: &ControlPlane, namespace: &str, arguments: &[&str], stdin: &str) -> Shown {
    let output = plane.kubectl(&[&["--namespace", namespace], arguments].concat(), stdin);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Shown { done: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
}

/// `kubectl apply`.
pub fn apply(stage: &Stage, object: &Value) -> Shown {
    kubectl(&stage.plane, &stage.namespace, &["apply", "-f", "-"], &object.to_string())
}

/// `kubectl apply`, which must work without a word of warning.
pub fn put(stage: &Stage, object: &Value) {
    let shown = apply(stage, object);
    assert!(shown.done && shown.err.is_empty(), "{shown:?}\n{object:#}");
}

/// `kubectl apply` is refused for one reason, which is shown as the API server's own reasons are.
pub fn refused(stage: &Stage, object: &Value, reason: &str) {
    let shown = apply(stage, object);
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    assert!(!shown.done, "{shown:?}");
    assert_eq!(shown.err, format!("The {kind} {name:?} is invalid: {reason}\n"));
}

/// `kubectl apply` works, and shows exactly these warnings.
pub fn warned(stage: &Stage, object: &Value, warnings: &[&str]) {
    let shown = apply(stage, object);
    assert!(shown.done, "{shown:?}");
    assert_eq!(shown.warnings(), warnings, "{shown:?}");
}

/// `kubectl apply` is refused, with these words among others.
pub fn refused_in_words(stage: &Stage, object: &Value, words: &str) {
    let shown = apply(stage, object);
    assert!(!shown.done && shown.err.contains(words), "{shown:?}");
}

/// `path: message` of every cause, in the order of the answer.
pub fn causes(answer: &Answer) -> Vec<String> {
    let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    causes.map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"]))).collect()
}

/// The golden cases in a file, whose texts the live answers must bear too.
pub fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file);
    let file: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// A RoleCoordination with this spec.
pub fn coordination(name: &str, spec: &Value) -> Value {
    object("rolegate.dev/v1alpha1", "RoleCoordination", name).spec(spec)
}

/// A StatefulSet without pods; its template bears these labels besides its own.
pub fn stateful_set(name: &str, policy: &str, labels: &Value) -> Value {
    let metadata = json!({ "labels": with(labels.clone(), &json!({ "app": name })) });
    let main = json!({ "name": "main", "image": "registry.invalid/x:1" });
    let set = stateful_set_of(name, 0, &json!({ "metadata": metadata, "spec": { "containers": [main] } }));
    with(set, &json!({ "spec": { "podManagementPolicy": policy } }))
}
