//! What the program, kustomize and Helm make of an installation.

use std::process::{Command, Output};

use crate::common::control_plane::{rig_binary, tool};
use crate::common::prelude::*;

/// By kind, namespace and name.
pub type Objects = BTreeMap<[String; 3], Value>;

/// The annotation by which an uninstall of Helm leaves an object.
pub const KEEP: &str = "helm.sh/resource-policy";

/// The objects of a text, each of which is there once.
pub fn objects(yaml: &str) -> Objects {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"])]
    };
    let count = documents.len();
    let objects: Objects = documents.into_iter().map(|object| (key(&object), object)).collect();
    assert!(objects.len() == count, "{count} documents: {:?}", objects.keys());
    objects
}

/// The first object of a kind; `null` when there is none.
pub fn first<'a>(objects: &'a Objects, kind: &str) -> &'a Value {
    objects.iter().find(|([known, ..], _)| known == kind).map_or(&Value::Null, |(_, object)| object)
}

/// The repository.
pub fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// The chart, as it is installed from the repository.
pub fn chart() -> String {
    root().join("deploy/chart").to_str().unwrap().to_owned()
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Helm, with nothing of the user who runs the tests.
pub fn helm_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(tool("helm"));
    command.args(arguments).env("HELM_PLUGINS", "/nonexistent");
    for (variable, folder) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
    {
        command.env(variable, scratch_dir().join("helm").join(folder));
    }
    command
}

/// Runs Helm.
pub fn try_helm(arguments: &[&str]) -> Output {
    helm_command(arguments).output().unwrap()
}

/// Runs Helm, which must work, and returns what it prints.
pub fn helm(arguments: &[&str]) -> String {
    let output = try_helm(arguments);
    assert!(output.status.success(), "helm {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The chart for a release called `rolegate`, with more arguments; what is made for a test or an uninstall only is left out.
pub fn template(more: &[&str]) -> String {
    helm(&[&["template", "rolegate", &chart(), "--namespace", SYSTEM, "--no-hooks"], more].concat())
}

/// A folder of kustomize.
pub fn kustomize(folder: &Path) -> String {
    let output = Command::new(rig_binary()).args(["kubectl", "kustomize"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
