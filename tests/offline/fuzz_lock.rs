//! The fuzz targets have a lock file of their own, because only they need libFuzzer; its versions must be the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Returns the versions and the dependencies of each package in a lock file.
fn packages(path: &str) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut all: BTreeMap<_, (BTreeSet<_>, BTreeSet<_>)> = BTreeMap::new();
    for package in text.split("[[package]]\n").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"')).unwrap();
        let listed = package.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        let of_this = all.entry(value("name = \"").to_owned()).or_default();
        of_this.0.insert(value("version = \"").to_owned());
        of_this.1.extend(listed.map(str::to_owned));
    }
    all
}

#[test]
fn the_fuzz_targets_are_locked_to_what_is_released() {
    let (ours, theirs) = (packages("Cargo.lock"), packages("tests/fuzz/Cargo.lock"));
    assert!(theirs.len() > 100, "{}", theirs.len());
    for (name, (versions, _)) in &theirs {
        if let Some((released, _)) = ours.get(name) {
            assert!(versions.is_subset(released), "{name}: {versions:?}, released with {released:?}");
        }
    }
    // Our lock file includes dev-dependencies, which the fuzz targets do not build.
    let (all, fuzzed) = (&ours["rolegate"].1, &theirs["rolegate"].1);
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let section = manifest.split("\n[").find_map(|section| section.strip_prefix("dependencies]\n")).unwrap();
    let name = |line: &str| Some(line.split_once(" = ")?.0.trim().to_owned());
    let direct: BTreeSet<_> = section.lines().filter(|line| !line.starts_with('#')).filter_map(name).collect();
    let missing: Vec<_> = direct.iter().filter(|name| all.contains(*name) && !fuzzed.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}: cargo update --workspace --manifest-path tests/fuzz/Cargo.toml");
}
