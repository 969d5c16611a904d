//! Files of any text, as `check`, `fit` and `plan` read them: each command ends soon, and says something or nothing.

use std::fs;
use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use rolegate::cli::{check, fit, plan};
use serde_json::json;
use tempfile::TempDir;

use super::scenario::files;

/// Between the file that a command is about and what is there beside it.
const WITH: &str = "\n--- # with\n";

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

/// A folder of this thread for the files of commands.
pub fn in_folder<T>(work: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with(|folder| work(folder.path()))
}

/// The arguments of a command.
pub fn args<A: Args + FromArgMatches>(words: &[&str]) -> A {
    let command = A::augment_args(Command::new("rolegate").no_binary_name(true));
    A::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

/// Tries one text.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (about, with) = text.split_once(WITH).unwrap_or((&*text, ""));
    in_folder(|folder| {
        let [about, with] = [("about.yaml", about), ("with.yaml", with)].map(|(name, text)| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        });
        let (about, with, mut out) = (about.as_str(), with.as_str(), Vec::new());
        for (output, old) in [("text", about), ("sarif", with)] {
            let words = [about, "--with", with, "--old", old, "-o", output, "--color", "never"];
            check::write(&args(&words), &mut out);
        }
        fit::write(&args(&[about, "--with", with, "-o", "wide"]), &mut out);
        plan::write(&args(&[about, "--with", with, "-o", "wide"]), &mut out);
        let out = String::from_utf8(out).expect("what is printed is text");
        assert!(!out.contains('\x1b'), "{out:?}");
    });
}

/// The golden cases and examples as they are written, and YAML that is hard to read.
pub fn seeds() -> Vec<Vec<u8>> {
    let read = |path| fs::read(path).unwrap();
    let golden = ["tests/cases/designs", "tests/cases/grove", "tests/cases/cluster-topology", "examples"];
    let golden = golden.into_iter().flat_map(|folder| files(folder, "yaml")).map(read);
    let bomb: Vec<_> = (1..20).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}]\n", level - 1)).collect();
    let bomb = bomb.concat();
    let group = json!({
        "apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroup", "metadata": { "name": "g" },
        "spec": { "roles": [{ "name": "a", "replicas": 3, "template": { "spec": { "containers": [{}] } } }] },
    });
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 1e999, pods: -1}}}";
    let hard = [
        format!("a0: &a0 x\n{bomb}"),
        format!("{group}{WITH}{node}"),
        "[".repeat(2000),
        "? {a: *b}\n: &b !!binary 'x'\n--- |\n text\n...\n%YAML 1.2\n---\n<<: {a: 1}\n".to_owned(),
        "{apiVersion: v1, kind: List, items: [{kind: PodList, apiVersion: v1, items: [{}, 1, null]}]}".to_owned(),
        "\u{feff}a: 1\r\n'b': \"\\u0000\\x1b[31m\"\n0x10: .inf\n2001-01-01: ~\n".to_owned(),
    ];
    golden.chain(hard.into_iter().map(String::into_bytes)).collect()
}
