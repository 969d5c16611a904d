//! The house keeps its shape: pure rooms stay pure, imports point one way, generated files are those of their source.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms in the order of their imports: a room may use those before it. `plan` judges: a stored group is planned by the same
/// rules that admitted it.
const ROOMS: &[&str] = &["api", "model", "rules", "mutate", "plan", "cluster", "server", "cli"];
/// So many of them are pure.
const PURE: usize = 5;

/// Words that have no place in a pure room.
const IMPURE: &[&str] = &["async fn", "tokio::", "kube::Client", "SystemTime::now", "Instant::now", "Timestamp::now"];

fn sources(room: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "room {room} is empty");
    found
}

#[test]
fn pure_rooms_know_no_client_no_clock_and_no_runtime() {
    for room in ROOMS.iter().take(PURE) {
        for (path, text) in sources(room) {
            for word in IMPURE {
                assert!(!text.contains(word), "{}: {word:?} in a pure room", path.display());
            }
        }
    }
}

#[test]
fn imports_point_one_way() {
    for (floor, room) in ROOMS.iter().enumerate() {
        let above = ROOMS.iter().skip(floor + 1);
        let forbidden: Vec<_> = above.map(|room| format!("crate::{room}::")).collect();
        for (path, text) in sources(room) {
            for import in &forbidden {
                assert!(!text.contains(import.as_str()), "{}: uses {import}", path.display());
            }
        }
    }
}

/// What a file of a room is called there: its own name, or that of the folder that it is in.
fn name_in(room: &str, path: &Path) -> String {
    let place = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room)).unwrap();
    place.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned()
}

/// Words of the imports that begin so, tests aside.
fn imported<'a>(text: &'a str, begin: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let text = text.split("mod tests {").next().unwrap_or_default();
    let imports: Vec<_> = text.split(begin).skip(1).filter_map(|rest| rest.split(';').next()).collect();
    imports.into_iter().flat_map(|import| import.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

#[test]
fn no_files_of_a_room_import_each_other() {
    for room in ROOMS {
        let files = sources(room);
        let names: BTreeSet<_> =
            files.iter().map(|(path, _)| name_in(room, path)).filter(|name| name != "mod").collect();
        let mut uses: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (path, text) in &files {
            let name = name_in(room, path);
            // What `super` is to a file: the room, or a folder of it. That of the room itself only names its files.
            let place = if path.ends_with("mod.rs") { path.parent() } else { Some(path.as_path()) };
            let in_room =
                place.and_then(Path::parent).is_some_and(|folder| folder.ends_with(Path::new("src").join(room)));
            let here = imported(text, "use super::").filter(|_| in_room);
            let all = here.chain(imported(text, &format!("use crate::{room}::")));
            let others = all.filter(|other| *other != name && names.contains(*other)).collect::<BTreeSet<_>>();
            uses.entry(name).or_default().extend(others);
        }
        // Whoever uses nobody that is left may go; those that stay use each other in a circle.
        loop {
            let left: BTreeSet<_> = uses.keys().cloned().collect();
            uses.values_mut().for_each(|used| used.retain(|other| left.contains(*other)));
            uses.retain(|_, used| !used.is_empty());
            if uses.len() == left.len() {
                break;
            }
        }
        assert!(uses.is_empty(), "{room}: they import each other, or use those that do: {uses:#?}");
    }
}

/// Whoever writes names one of these.
const WRITES: &[&str] = &["PatchParams", "PostParams", "DeleteParams"];
/// The room of all writes, and who else writes, and why.
const WRITERS: &[&str] = &[
    "src/cluster/write",
    // Its deadlines are those of leadership, shorter than a write's.
    "src/cluster/lease.rs",
    // Asks what an author may do, which is said by creating a review.
    "src/cluster/read/live_world.rs",
    // The same, and what would become of a pod, by a dry run.
    "src/cli/doctor/reads.rs",
    // Our own Secret and our own webhook configurations, which every replica keeps, not only the one that leads.
    "src/server/tls/certificates/mod.rs",
    "src/server/admission/webhooks.rs",
];

#[test]
fn only_the_writer_writes() {
    for room in ROOMS {
        for (path, text) in sources(room) {
            let path = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
            let may = WRITERS.iter().any(|writer| path.starts_with(writer));
            let word = WRITES.iter().find(|word| text.contains(**word));
            assert!(may || word.is_none(), "{}: {word:?}, and is no writer", path.display());
        }
    }
    for writer in WRITERS {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(writer).exists(), "{writer} is not there");
    }
}

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    for (folder, optional) in [("deploy/crds", false), ("deploy/optional", true)] {
        for (name, yaml) in rolegate::api::crd::files(optional) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(&name);
            let stored = fs::read_to_string(path).unwrap_or_default();
            assert!(stored == yaml, "{folder}/{name} is not what the types say: run `make crds`");
        }
    }
}

/// The reference page of the rules, as their tables say it.
fn rules_page() -> String {
    use rolegate::rules::{Level, catalogue};
    let mut page =
        "# Rules\n\nEvery rule has an id that messages, metrics and tests use, and golden cases that fix what it \
         accepts and refuses\n(`tests/cases/<object>/<rule>.yaml`). **E** refuses, **W** warns.\n"
            .to_owned();
    let mut object = "";
    for rule in catalogue() {
        if rule.object != object {
            object = rule.object;
            _ = write!(page, "\n## {object}\n\n| id | | rule |\n|---|---|---|\n");
        }
        let level = match rule.level {
            Level::Error => "E",
            Level::Warning => "W",
            Level::Either => "E/W",
        };
        _ = writeln!(page, "| {} | {level} | {} |", rule.id, rule.summary);
    }
    page
}

#[test]
fn the_page_of_rules_is_that_of_their_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, rules_page()).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == rules_page(), "docs/rules.md is not what the tables say: run `make docs`");
}

#[test]
fn what_is_installed_is_what_the_program_prints() {
    for (path, text) in rolegate::cli::manifests::files() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        assert!(stored == text, "{path} is not what the program says: run `make docs`");
    }
}

/// Files that name a kind of workload, each with the reason. Whatever else differs between kinds stands in their rows.
const NAME_A_WORKLOAD_KIND: &[(&str, &str)] = &[
    ("cluster/index/pods.rs", "labels and owners tell which kind has made a pod"),
    ("cluster/index/workloads.rs", "StatefulSets alone begin to count anywhere"),
    ("cluster/read/lookup.rs", "StatefulSets alone are read before their pods are numbered"),
    ("cluster/write/writer.rs", "what a write answers is read as its type"),
    ("model/first_host.rs", "RBG names the pods of each kind in its own way"),
    ("model/workload_kind.rs", "the rows"),
    ("model/workload_object.rs", "the types"),
    ("server/admission/mod.rs", "StatefulSets alone are read before their pods are numbered"),
    ("server/admission/rollout.rs", "LeaderWorkerSets before v0.9 do not say what their controller has seen"),
];

#[test]
fn a_kind_of_workload_is_named_only_where_there_is_a_reason() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let kinds = ["StatefulSet", "LeaderWorkerSet", "Deployment"].map(|kind| format!("WorkloadKind::{kind}"));
    let files = ROOMS.iter().flat_map(|room| sources(room));
    let naming = files.filter(|(path, text)| {
        let text = text.split("mod tests {").next().unwrap_or_default();
        !path.to_string_lossy().ends_with("_tests.rs") && kinds.iter().any(|kind| text.contains(kind))
    });
    let naming: BTreeSet<_> =
        naming.map(|(path, _)| path.strip_prefix(&src).unwrap().to_string_lossy().into_owned()).collect();
    let listed: BTreeSet<_> = NAME_A_WORKLOAD_KIND.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(naming, listed, "add a column to the rows of model/workload_kind.rs instead");
}
