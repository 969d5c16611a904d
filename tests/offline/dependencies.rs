//! Licences, duplicates and sources of all dependencies, by the lists of `deny.toml`. `make release` has cargo-deny itself look
//! as well, which takes minutes to build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Returns the quoted texts of a list in `deny.toml`.
fn listed(deny: &str, list: &str) -> Vec<String> {
    let list = deny.split_once(&format!("\n{list} = [")).unwrap().1.split_once(']').unwrap().0;
    list.lines()
        .filter(|line| !line.trim().starts_with('#'))
        .filter_map(|line| Some(line.split('"').nth(1)?.to_owned()))
        .collect()
}

/// A package of the tree of dependencies.
struct Package {
    name: String,
    version: String,
    /// Where it comes from, if it is not the registry.
    source: Option<String>,
    licence: String,
}

/// Returns the packages that are built for a target, dev-dependencies included.
fn packages(target: &str) -> Vec<Package> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--workspace", "--prefix=none", "--edges=normal,build,dev", "--format={p}|{l}|"]);
    let output = tree.args(["--target", target]).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: BTreeSet<_> =
        text.lines().filter_map(|line| line.rsplit_once('|').map(|(package, _)| package)).collect();
    lines.into_iter().map(package).collect()
}

/// Reads `serde v1.0.2|MIT OR Apache-2.0`; behind the version may stand `(proc-macro)` and where it comes from.
fn package(line: &str) -> Package {
    let (package, licence) = line.split_once('|').unwrap();
    let package = package.replace(" (proc-macro)", "");
    let (name, rest) = package.split_once(" v").unwrap();
    let (version, source) = rest.split_once(" (").map_or((rest, None), |(version, source)| (version, Some(source)));
    Package { name: name.into(), version: version.into(), source: source.map(str::to_owned), licence: licence.into() }
}

/// Reports whether an SPDX expression permits use under the listed licences.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let (permitted, rest) = any_of(&words, allowed);
    permitted && rest.is_empty()
}

fn any_of<'a>(words: &'a [&'a str], allowed: &[String]) -> (bool, &'a [&'a str]) {
    let (mut permitted, mut rest) = all_of(words, allowed);
    while let ["OR", more @ ..] = rest {
        let (other, after) = all_of(more, allowed);
        (permitted, rest) = (permitted || other, after);
    }
    (permitted, rest)
}

fn all_of<'a>(words: &'a [&'a str], allowed: &[String]) -> (bool, &'a [&'a str]) {
    let (mut permitted, mut rest) = licence(words, allowed);
    while let ["AND", more @ ..] = rest {
        let (other, after) = licence(more, allowed);
        (permitted, rest) = (permitted && other, after);
    }
    (permitted, rest)
}

fn licence<'a>(words: &'a [&'a str], allowed: &[String]) -> (bool, &'a [&'a str]) {
    let known = |name: &str| allowed.iter().any(|allowed| allowed == name);
    match words {
        ["(", inner @ ..] => {
            let (permitted, rest) = any_of(inner, allowed);
            (permitted && rest.first() == Some(&")"), rest.get(1..).unwrap_or_default())
        }
        [name, "WITH", exception, rest @ ..] => (known(&format!("{name} WITH {exception}")), rest),
        [name, rest @ ..] => (known(name), rest),
        [] => (false, words),
    }
}

#[test]
fn licences_are_read_as_expressions() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/GPL-3.0", true),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Zlib", true),
        ("Zlib AND (GPL-3.0 OR LGPL-3.0)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("", false),
    ] {
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn dependencies_have_known_licences_and_sources_and_one_version() {
    let deny = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml")).unwrap();
    let (allowed, skipped) = (listed(&deny, "allow"), listed(&deny, "skip"));
    let targets = deny.split_once("\ntargets = [").unwrap().1.split_once(']').unwrap().0;
    let (mut faults, mut needless) = (BTreeSet::new(), skipped.iter().cloned().collect::<BTreeSet<_>>());
    for target in targets.split('"').skip(1).step_by(2) {
        let packages = packages(target);
        assert!(packages.len() > 200, "{target}: {}", packages.len());
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for Package { name, version, source, licence } in &packages {
            match source {
                Some(path) if path.starts_with(env!("CARGO_MANIFEST_DIR")) => continue,
                Some(other) => _ = faults.insert(format!("{name} {version} is of {other}")),
                None => {}
            }
            if !permits(licence, &allowed) {
                faults.insert(format!("{name} {version} has licence {licence:?}"));
            }
            let is_skipped = |skipped: &&String| {
                let (of, begin) = skipped.split_once('@').unwrap();
                of == name && (version == begin || version.starts_with(&format!("{begin}.")))
            };
            match skipped.iter().find(is_skipped) {
                Some(skipped) => _ = needless.remove(skipped),
                None => _ = versions.entry(name).or_default().insert(version),
            }
        }
        let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
        faults.extend(several.map(|(name, versions)| format!("{name} has several versions: {versions:?}")));
    }
    faults.extend(needless.iter().map(|skipped| format!("deny.toml skips {skipped}, which nothing asks for")));
    let wildcard = |line: &str| line.contains("= \"*\"");
    for manifest in ["Cargo.toml", "src/core/Cargo.toml"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
        faults.extend(text.lines().filter(|line| wildcard(line)).map(|line| format!("{manifest}: {line}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
