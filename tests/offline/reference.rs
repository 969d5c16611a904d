//! Reference pages list exactly the words of the code: reasons, keys, conditions, Events, versions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use rolegate::model::HoldReason;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemConst, ItemMod, LitStr, Macro};

use crate::house::source::files;

/// Files with words for the status and Events of groups.
const WORDS_OF_GROUPS: &[&str] = &[
    "src/core/plan/status",
    "src/core/plan/reconcile",
    "src/core/plan/elastic/text.rs",
    "src/core/plan/recovery/brake.rs",
    "src/core/plan/recovery/text.rs",
    "src/core/plan/rollout/standing.rs",
    "src/core/plan/decide/missing_pods.rs",
    "src/core/model/elastic.rs",
    "src/core/model/progress_state.rs",
];

/// Modules on the page of versions, by the file that sets their version.
const MODULES: &[(&str, &[&str])] = &[
    (
        "tests/controlplane/go.mod",
        &[
            "k8s.io/kubernetes",
            "go.etcd.io/etcd/server/v3",
            "sigs.k8s.io/kwok",
            "sigs.k8s.io/lws",
            "github.com/cert-manager/cert-manager",
            "go",
        ],
    ),
    ("tests/controlplane/tools/go.mod", &["helm.sh/helm/v4", "github.com/prometheus/prometheus"]),
    ("benches/peer/go.mod", &["sigs.k8s.io/controller-runtime"]),
    ("rust-toolchain.toml", &["channel"]),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the text below a heading, up to the next heading of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let level = heading.split(' ').next().unwrap();
    let start = page.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let rest = &page[start + 1 + heading.len()..];
    rest.find(&format!("\n{level} ")).map_or(rest, |end| &rest[..end])
}

/// Returns the words in back-quotes in these columns of all tables; columns count from 0.
fn quoted(text: &str, columns: &[usize]) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.flat_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::to_owned).collect();
        columns.iter().filter_map(move |column| cells.get(*column).cloned()).collect::<Vec<_>>()
    });
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The string literals of a file, without its tests.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    of_constants: Vec<String>,
    in_constant: bool,
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_const(&mut self, constant: &'ast ItemConst) {
        let before = std::mem::replace(&mut self.in_constant, true);
        visit::visit_item_const(self, constant);
        self.in_constant = before;
    }

    /// Doc comments are attributes, and must not count.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.take(text);
    }

    /// The content of macros such as `vec!["a"]` is tokens.
    fn visit_macro(&mut self, call: &'ast Macro) {
        self.take_tokens(call.tokens.clone());
    }
}

impl Texts {
    fn take(&mut self, text: &LitStr) {
        self.all.push(text.value());
        if self.in_constant {
            self.of_constants.push(text.value());
        }
    }

    fn take_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    syn::parse_str(&literal.to_string()).into_iter().for_each(|text| self.take(&text));
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// Returns the string literals of a file, or of all files of a folder.
fn texts(place: &str) -> Texts {
    let mut texts = Texts::default();
    for file in files(Path::new(place)).iter().filter(|file| !file.to_str().unwrap().ends_with("_tests.rs")) {
        texts.visit_file(&syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap());
    }
    texts
}

/// Reports whether a text has the form of a reason: `PreviousSegmentNotReady`.
fn is_word(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_alphabetic())
}

/// Returns the words for groups, without the statuses of conditions.
fn words_of_groups() -> BTreeSet<String> {
    let words = WORDS_OF_GROUPS.iter().flat_map(|place| texts(place).all).filter(|text| is_word(text));
    words.filter(|word| !["True", "False", "Unknown"].contains(&word.as_str())).collect()
}

#[test]
fn each_reason_has_its_section_in_their_order() {
    let page = read("docs/held.md");
    let reasons = section(&page, "## Reasons");
    let headings: Vec<_> = reasons.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let all: Vec<_> = HoldReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(headings, all);
    for reason in all {
        let link = format!("[{reason}](#{})", reason.to_lowercase());
        assert!(page.contains(&link), "the list from A to Z lacks {reason}");
        let own = section(reasons, &format!("### {reason}"));
        for part in ["\n- **means**: ", "\n- **shows**: ", "\n- **ends**: ", "\n- **do**: "] {
            assert!(own.contains(part), "{reason} has no part {part:?}");
        }
    }
}

#[test]
fn each_cause_of_missing_pods_has_its_row() {
    let page = read("docs/held.md");
    let rows = quoted(section(&page, "## Why pods are missing that others wait for"), &[0]);
    let causes: Vec<_> =
        texts("src/core/plan/decide/missing_pods.rs").all.into_iter().filter(|text| is_word(text)).collect();
    assert_eq!(rows, causes);
}

#[test]
fn each_key_is_in_the_reference() {
    let page = read("docs/reference.md");
    let named = texts("src/core/model/names.rs").of_constants;
    let is_key = |text: &String| text.split_once('/').is_some_and(|(domain, _)| domain.contains('.'));
    let keys: BTreeSet<_> =
        named.into_iter().chain(texts("src/core/model").of_constants.into_iter().filter(is_key)).collect();
    assert!(keys.len() > 40, "keys are written in another way: {keys:?}");
    let is_there = |key: &String| {
        if key.ends_with('/') { page.contains(&format!("`{key}<")) } else { page.contains(&format!("`{key}`")) }
    };
    let missing: Vec<_> = keys.iter().filter(|key| !is_there(key)).collect();
    assert!(missing.is_empty(), "docs/reference.md lacks {missing:?}");
    let rows = quoted(section(&page, "## Labels and annotations"), &[0]);
    let is_known = |row: &&String| keys.contains(row.split('<').next().unwrap());
    let unknown: Vec<_> = rows.iter().filter(|row| !is_known(row)).collect();
    assert!(unknown.is_empty(), "docs/reference.md has keys that the code does not: {unknown:?}");
}

#[test]
fn each_condition_state_and_event_is_in_the_reference() {
    let page = read("docs/reference.md");
    let states = quoted(section(&page, "## Status"), &[0]).into_iter().filter(|word| is_word(word));
    let conditions = quoted(section(&page, "## Conditions"), &[0, 2]);
    let events = quoted(section(&page, "## Events"), &[0]);
    let rows: BTreeSet<_> = states.chain(conditions).chain(events).collect();
    assert_eq!(rows, words_of_groups());
    assert!(section(&page, "## Events").contains("each reason of [held.md](held.md#reasons)"));
}

/// Returns a version: `k8s.io/kubernetes v1.36.3`, `require helm.sh/helm/v4 v4.2.4`, `channel = "1.95.0"`.
fn version(file: &str, module: &str) -> String {
    let of_line = |line: &str| {
        let mut words = line.split([' ', '\t', '=', '"']).filter(|word| !word.is_empty() && *word != "require");
        (words.next() == Some(module)).then(|| words.next().unwrap().to_owned())
    };
    read(file).lines().find_map(of_line).unwrap_or_else(|| panic!("{file} does not name {module}"))
}

#[test]
fn the_versions_of_the_page_are_those_that_are_built() {
    let page = read("docs/compatibility.md");
    let rows: Vec<_> = section(&page, "## Versions").lines().filter(|line| line.starts_with("| ")).collect();
    let mut count = 0;
    for (file, modules) in MODULES {
        let place = file.strip_suffix("/go.mod").unwrap_or(file);
        for module in *modules {
            let row = format!("| `{module}` in {place} | {} |", version(file, module));
            assert!(rows.iter().any(|found| found.contains(&row)), "docs/compatibility.md lacks {row}");
            count += 1;
        }
    }
    assert_eq!(rows.len(), count + 1, "a row has no module in the list of this test");
    let least = version("Cargo.toml", "rust-version");
    assert!(page.contains(&format!("the least that Cargo.toml asks for is {least}")), "{least}");
}

/// The page names the version of each neighbour that was last run, and `manifests` is for the newest version that is tested.
#[test]
fn the_versions_of_neighbours_and_of_manifests_are_those_that_are_run() {
    let (page, tables) = (read("docs/compatibility.md"), read("tests/neighbours/README.md"));
    let of_row = |row: &str| Some(row.strip_prefix("| last run | ")?.split(',').next()?.to_owned());
    let versions: Vec<_> = tables.lines().filter_map(of_row).collect();
    assert!(versions.len() >= 8, "{versions:?}");
    for version in versions {
        assert!(page.contains(&version), "docs/compatibility.md does not name {version}");
    }
    let kubernetes = version("tests/controlplane/go.mod", "k8s.io/kubernetes");
    let minor = kubernetes.trim_start_matches('v').rsplit_once('.').unwrap().0;
    assert!(page.contains(&format!("| {minor} | tested |")), "{minor}");
    let option = format!("or left out; `{minor}` by default");
    assert!(read("docs/cli.md").contains(&option), "`manifests --kubernetes` is for another version than {minor}");
}

#[test]
fn what_is_said_to_be_recorded_is() {
    let (page, fixtures) = (read("tests/live/worlds/README.md"), read("tests/fixtures/reviews/README.md"));
    let recorded = section(&page, "## Recorded, not run").split("\n### ").next().unwrap();
    let rows = recorded.lines().filter(|line| line.starts_with("| "));
    let versions: Vec<_> = rows.skip(1).filter_map(|row| row.split('|').nth(2)).map(str::trim).collect();
    assert!(!versions.is_empty());
    for version in versions {
        assert!(fixtures.contains(version), "tests/fixtures/reviews/README.md does not name {version}");
    }
}
