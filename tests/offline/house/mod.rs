//! The architecture of `src`: imports follow the tables, and pure rooms stay pure.

mod areas;
mod graph;
pub mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use graph::Graph;
use source::{Mention, SRC, Sources, files};

static SOURCES: LazyLock<Sources> = LazyLock::new(Sources::read);

/// A module and the siblings that it may import: each is listed before it, and each is imported.
type Row = (&'static str, &'static [&'static str]);

/// The rooms. `plan` uses `rules`: a stored group is planned by the same rules that admitted it.
const ROOMS: &[Row] = &[
    ("api", &[]),
    ("model", &["api"]),
    ("rules", &["api", "model"]),
    ("mutate", &["api", "model"]),
    ("plan", &["api", "model", "rules"]),
    ("fit", &["api", "model", "mutate", "plan", "rules"]),
    ("report", &["api", "fit", "model", "plan"]),
    ("tls", &[]),
    ("cluster", &["api", "fit", "model", "mutate", "plan", "rules", "tls"]),
    ("server", &["api", "cluster", "fit", "model", "mutate", "plan", "report", "rules", "tls"]),
    ("cli", &["api", "cluster", "fit", "model", "mutate", "plan", "report", "rules", "server", "tls"]),
];

/// The rooms whose modules have such a table.
const WITHIN: &[(&str, &[Row])] = &[
    (
        "plan",
        &[
            ("view", &[]),
            ("once", &[]),
            ("devices", &["once"]),
            ("placement", &["devices", "once"]),
            ("rollout", &["view"]),
            ("recovery", &["rollout", "view"]),
            ("provision", &["placement", "recovery", "view"]),
            ("marks", &["view"]),
            ("elastic", &["marks", "view"]),
            ("decide", &["elastic", "placement", "provision", "recovery", "rollout", "view"]),
            ("status", &["decide", "elastic", "recovery", "rollout", "view"]),
            ("evaluate", &["decide", "placement", "rollout", "status", "view"]),
            ("gangs", &["decide", "placement", "view"]),
            (
                "reconcile",
                &[
                    "decide",
                    "elastic",
                    "evaluate",
                    "gangs",
                    "marks",
                    "placement",
                    "provision",
                    "recovery",
                    "rollout",
                    "status",
                    "view",
                ],
            ),
            ("simulate", &["decide", "elastic", "evaluate", "placement", "rollout", "status", "view"]),
        ],
    ),
    (
        "cluster",
        &[
            ("locked", &[]),
            ("capacity", &["locked"]),
            ("failure", &[]),
            ("index", &[]),
            ("lease", &["failure"]),
            ("metrics", &[]),
            ("objects", &["failure"]),
            ("watch", &["capacity", "failure", "index", "locked", "metrics", "objects"]),
            ("read", &["capacity", "failure", "index", "locked", "objects", "watch"]),
            ("leader_flags", &["lease", "read"]),
            ("gauges", &["capacity", "index", "metrics", "read"]),
            ("write", &["failure", "index", "lease", "locked", "metrics", "objects", "read", "watch"]),
            ("certificates", &["write"]),
            ("registration", &["certificates", "write"]),
            ("run", &["capacity", "index", "metrics", "write"]),
        ],
    ),
    ("server", &[("http", &[]), ("admission", &["http"]), ("page", &["http"])]),
];

/// Files that name a kind of workload, each with the reason. Other differences between kinds are in the rows of kinds.
const NAME_A_WORKLOAD_KIND: &[(&str, &str)] = &[
    ("cluster/index/pods.rs", "labels and owners tell which kind has made a pod"),
    ("cluster/index/workloads.rs", "StatefulSets alone begin to count anywhere"),
    ("cluster/read/lookup/named.rs", "StatefulSets alone are read before their pods are numbered"),
    ("core/model/hosts.rs", "RBG names the pods of each kind in its own way"),
    ("core/model/workload_kind.rs", "the rows"),
    ("core/model/workload_object.rs", "the types"),
    ("server/admission/pods.rs", "StatefulSets alone are read before their pods are numbered"),
    ("server/admission/rollout.rs", "LeaderWorkerSets before v0.9 do not say what their controller has seen"),
];

/// Names used by every module that writes to the API server.
const WRITES: &[&str] = &["PatchParams", "PostParams", "DeleteParams"];

/// Modules that write, each with the reason.
const WRITERS: &[(&str, &str)] = &[
    ("cli/doctor/reads.rs", "tries what becomes of a pod, as a dry run"),
    ("cli/doctor/rights.rs", "asks for rights, which is said by creating reviews"),
    ("cluster/objects.rs", "hands on what the writer says, once names are checked"),
    ("cluster/lease.rs", "its deadlines are those of leadership, shorter than a write's"),
    ("cluster/read/lookup/world.rs", "asks what an author may do, which is said by creating a review"),
    ("cluster/write", "the writer"),
    ("cluster/registration/webhooks.rs", "our own webhook configurations, which every replica keeps"),
    ("cluster/certificates/mod.rs", "our own Secret, which every replica keeps"),
];

/// Modules that use kube's APIs directly, without checks of names: their names come from rolegate itself.
const NAMES_UNCHECKED: &[(&str, &str)] = &[
    ("cli/doctor/reads.rs", "what is installed, by the names of the command line"),
    ("cli/doctor/rights.rs", "the same"),
    ("cluster/lease.rs", "our own Lease"),
    ("cluster/objects.rs", "checks names"),
    ("cluster/read/lookup/gone.rs", "definitions of kinds that we know"),
    ("cluster/read/lookup/world.rs", "creates a review, which has no name"),
    ("cluster/write/events.rs", "Events, which we name ourselves"),
    ("cluster/registration/webhooks.rs", "our own webhook configurations"),
    ("cluster/certificates/mod.rs", "our own Secret"),
];

/// Names used by every module that opens a connection.
const DIALS: &[&[&str]] = &[
    &["TcpStream", "connect"],
    &["TcpSocket"],
    &["UdpSocket"],
    &["UnixStream"],
    &["lookup_host"],
    &["ToSocketAddrs"],
    &["ClientBuilder"],
    &["Client", "try_from"],
    &["Client", "try_default"],
    &["hyper_util", "client"],
    &["Command", "new"],
];

/// Modules that open connections, each with the target. No field of an object is part of a target.
const DIALLERS: &[(&str, &str)] = &[
    ("cli/connection.rs", "the API server of the kubeconfig or of the pod's own account"),
    ("cli/kubeconfig.rs", "nobody: it asks which addresses take a proxy"),
    ("cluster/watch/client.rs", "the same"),
    ("server/http/listen.rs", "nobody: it listens"),
    ("server/http/self_dial.rs", "our own port"),
];

/// Rooms without async code and clock. That they have no client and no runtime, the dependencies of their crate guarantee.
const PURE: &[&str] = &["api", "model", "rules", "mutate", "plan", "fit", "report"];

/// Paths that a pure room may not contain.
const IMPURE: &[&[&str]] = &[&["SystemTime", "now"], &["Instant", "now"], &["Timestamp", "now"], &["Zoned", "now"]];

/// Places that must not refer to documents outside the repository.
const READ: &[&str] = &["src", "tests", "docs", "examples", "benches", "deploy", "policies", "README.md", "Makefile"];
/// Documents outside the repository.
const ELSEWHERE: &[&str] = &[concat!("SP", "EC"), concat!("sha", "red/"), concat!("se", "eds/")];

fn allowed(rows: &[Row]) -> Graph {
    let names = |used: &[&str]| used.iter().map(|name| (*name).to_owned()).collect();
    Graph(rows.iter().map(|(name, used)| ((*name).to_owned(), names(used))).collect())
}

fn holds(rows: &[Row], found: &Graph, place: &str) {
    for (row, (name, used)) in rows.iter().enumerate() {
        for other in *used {
            let before = rows.iter().take(row).any(|(before, _)| before == other);
            assert!(before, "{place}: {name} may not use {other}, which is not listed before it");
        }
    }
    assert!(allowed(rows) == *found, "{place}: the table is not what is imported, which is\n{found}");
}

/// Returns the files that mention something like this outside of their tests.
fn files_that(mentions: impl Fn(&Mention) -> bool) -> BTreeSet<&'static str> {
    let found = SOURCES.0.values().filter(|module| module.mentions.iter().any(|one| !one.test && mentions(one)));
    found.map(|module| module.file.strip_prefix(SRC).unwrap().to_str().unwrap()).collect()
}

fn listed(files: &[(&'static str, &str)]) -> BTreeSet<&'static str> {
    files.iter().map(|(file, _)| *file).collect()
}

#[test]
fn rooms_import_each_other_as_the_table_says() {
    let mut found = Graph::of(&SOURCES, &[], true);
    // The binary is not a room.
    found.0.remove("main");
    holds(ROOMS, &found, "rooms");
}

#[test]
fn modules_of_a_room_import_each_other_as_the_table_says() {
    for (room, rows) in WITHIN {
        holds(rows, &Graph::of(&SOURCES, &[(*room).to_owned()], false), room);
    }
}

#[test]
fn no_files_of_a_folder_import_each_other() {
    let folders: BTreeSet<_> = SOURCES.0.keys().filter_map(|name| Some(name.split_last()?.1)).collect();
    let circles = folders.into_iter().filter_map(|folder| {
        let circles = Graph::of(&SOURCES, folder, false).circles();
        (!circles.0.is_empty()).then(|| format!("{}:\n{circles}", folder.join("::")))
    });
    let circles: Vec<_> = circles.collect();
    assert!(circles.is_empty(), "they import each other, or use those that do: {}", circles.join(""));
}

#[test]
fn pure_rooms_know_no_clock_and_wait_for_nothing() {
    for room in PURE {
        for module in SOURCES.below(&[(*room).to_owned()]) {
            let file = module.file.display();
            assert!(!module.has_async, "{file}: async code in a pure room");
            for mention in &module.mentions {
                let impure = |words: &&&[&str]| mention.names.windows(words.len()).any(|names| names == **words);
                let found = IMPURE.iter().find(impure);
                assert_eq!(found, None, "{file}: in a pure room");
            }
        }
    }
}

#[test]
fn a_kind_of_workload_is_named_only_where_there_is_a_reason() {
    let kinds = ["StatefulSet", "LeaderWorkerSet", "Deployment"];
    let kind = |names: &[String]| names[0] == "WorkloadKind" && kinds.contains(&names[1].as_str());
    let naming = files_that(|mention| mention.names.windows(2).any(kind));
    assert_eq!(naming, listed(NAME_A_WORKLOAD_KIND), "add a column to the rows of core/model/workload_kind.rs instead");
}

#[test]
fn only_the_writer_writes() {
    let writing = files_that(|mention| mention.names.iter().any(|name| WRITES.contains(&name.as_str())));
    let is_of = |file: &str, writer: &str| Path::new(file).starts_with(writer);
    let writer = |file| WRITERS.iter().map(|(writer, _)| *writer).find(|writer| is_of(file, writer)).unwrap_or(file);
    let writers: BTreeSet<_> = writing.into_iter().map(writer).collect();
    assert_eq!(writers, listed(WRITERS), "another one writes, or a writer writes nothing");
}

/// Users who write objects cannot choose the target of a request.
#[test]
fn connections_are_opened_to_the_api_server_and_to_ourselves_only() {
    let opens = |mention: &Mention, words: &[&str]| mention.names.windows(words.len()).any(|names| names == words);
    let found = files_that(|mention| DIALS.iter().any(|words| opens(mention, words)));
    assert_eq!(found, listed(DIALLERS));
}

#[test]
fn names_are_checked_before_they_are_asked_for() {
    let apis = ["all", "all_with", "namespaced", "namespaced_with", "default_namespaced", "default_namespaced_with"];
    let unchecked = |mention: &Mention| {
        let names: Vec<_> = mention.names.iter().map(String::as_str).collect();
        let asks = names.windows(2).any(|pair| pair[0] == "Api" && apis.contains(&pair[1]));
        asks || names.starts_with(&["kube", "core", "request"]) || names.ends_with(&["core", "Request"])
    };
    assert_eq!(files_that(unchecked), listed(NAMES_UNCHECKED), "cluster/objects.rs checks names");
}

#[test]
fn the_root_of_a_module_with_a_folder_is_its_mod_rs() {
    for file in files(Path::new(SRC)) {
        let folder = file.with_extension("");
        assert!(!folder.is_dir(), "{}: it belongs into {} as mod.rs", file.display(), folder.display());
    }
}

#[test]
fn nobody_is_sent_to_a_document_that_is_not_here() {
    let word = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    for file in READ.iter().flat_map(|place| files(Path::new(place))) {
        // Binary files have no references.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for document in ELSEWHERE {
            let named = text.match_indices(document).find(|(at, _)| {
                let (before, after) = (&text[..*at], &text[at + document.len()..]);
                !before.ends_with(word) && (document.ends_with('/') || !after.starts_with(word))
            });
            let line = named.map(|(at, _)| text[..at].lines().count());
            assert_eq!(line, None, "{}: this line sends the reader to {document}", file.display());
        }
    }
}

/// Two tests in the same namespace fail when they run in one process.
#[test]
fn each_live_test_has_a_namespace_of_its_own() {
    let mut seen = BTreeMap::new();
    for file in files(Path::new("tests/live")) {
        let text = fs::read_to_string(&file).unwrap();
        for namespace in text.split("Stage::new(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let other = seen.insert(namespace.to_owned(), file.clone());
            assert_eq!(other, None, "{namespace} is used twice, also in {}", file.display());
        }
    }
    assert!(seen.len() > 50, "namespaces are made in another way: {}", seen.len());
}

/// `cargo test --test offline figures -- --nocapture` prints them.
#[test]
fn figures_of_the_rooms() {
    println!("{:<10}{:>8}{:>8}{:>8}", "room", "modules", "levels", "edges");
    for (room, _) in ROOMS {
        let graph = Graph::of(&SOURCES, &[(*room).to_owned()], false);
        let levels = graph.levels().map_or_else(|| "circle".to_owned(), |levels| levels.to_string());
        println!("{room:<10}{:>8}{:>8}{:>8}", graph.0.len(), levels, graph.edges());
    }
}
