//! Which suites of live tests a file concerns: `tests/areas.txt`, and the script that reads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::source::files;

/// What rows may name instead of suites.
const NO_SUITES: [&str; 2] = ["all", "none"];

/// Prefixes of paths, each with its suites.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string("tests/areas.txt").unwrap();
    let row = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.collect())
    };
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

/// The suites of `tests/live`.
fn suites() -> BTreeSet<String> {
    let main = fs::read_to_string("tests/live/main.rs").unwrap();
    let suites = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).map(str::to_owned);
    suites.filter(|name| !["common", "golden", "markdown"].contains(&name.as_str())).collect()
}

#[test]
fn each_file_has_its_suites_and_each_suite_is_there() {
    let (rows, suites) = (rows(), suites());
    assert!(rows.is_sorted() && rows.windows(2).all(|pair| pair[0].0 != pair[1].0), "rows are sorted, each there once");
    let files = ["src", "tests", "deploy"].iter().flat_map(|root| files(Path::new(root)));
    let files: Vec<_> = files.map(|file| file.to_str().unwrap().to_owned()).collect();
    for file in &files {
        assert!(rows.iter().any(|(prefix, _)| file.starts_with(prefix)), "tests/areas.txt has no row for {file}");
    }
    for (prefix, named) in &rows {
        let is_there = files.iter().any(|file| file.starts_with(prefix)) || !prefix.contains('/');
        assert!(is_there || Path::new(prefix).exists(), "{prefix}: there is no such file");
        let alone = named.len() == 1 && NO_SUITES.contains(&named[0].as_str());
        assert!(alone || !named.is_empty() && named.iter().all(|name| suites.contains(name)), "{prefix}: {named:?}");
        assert!(named.is_sorted(), "{prefix}: {named:?}");
    }
    for suite in suites {
        let place = format!("tests/live/{suite}");
        let own = rows.iter().find(|(prefix, _)| [format!("{place}/"), format!("{place}.rs")].contains(prefix));
        assert_eq!(own.map(|(_, named)| named.as_slice()), Some([suite].as_slice()), "{place}");
    }
}

#[test]
fn the_script_asks_for_the_suites_of_changed_files_and_for_all_if_it_does_not_know_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for file in ["tests/areas.sh", "tests/areas.txt"] {
        write(file, &fs::read_to_string(file).unwrap());
    }
    let asked = || run("bash", &["tests/areas.sh"]).lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(asked(), suites(), "nothing was ever green");
    // What came as an archive may be where there is no git.
    if !Path::new(".git").exists() {
        return;
    }
    let commit = || {
        run("git", &["add", "."]);
        run("git", &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "a"]);
        run("git", &["rev-parse", "HEAD"])
    };
    run("git", &["init", "--quiet"]);
    write("src/core/plan/elastic/scales.rs", "1");
    let green = commit();
    write("tests/all-green", &format!("{}\n", green.trim().replace(|_: char| true, "0")));
    assert_eq!(asked(), suites(), "a commit that is not here");
    write("tests/all-green", &green);
    assert_eq!(asked(), BTreeSet::new());
    write("src/core/plan/elastic/scales.rs", "2");
    assert_eq!(asked(), ["elastic".to_owned()].into());
    commit();
    write("docs/new.md", "");
    write("src/core/rules/engine.rs", "");
    assert_eq!(asked(), ["elastic", "pods", "rules"].map(str::to_owned).into());
    write("src/core/api/new.rs", "");
    assert_eq!(asked(), suites());
}
