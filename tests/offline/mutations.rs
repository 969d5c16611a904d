//! Golden mutations: `tests/cases/discovery/*.yaml` and `tests/cases/subgroup/*.yaml` say what a pod becomes. Each case is
//! also applied twice: the second time nothing may change.

use crate::mutation::{self, FOLDERS};

#[test]
fn every_case_gives_what_it_says() {
    let (mut count, mut failed) = (0, Vec::new());
    for (path, cases) in FOLDERS.iter().flat_map(|folder| mutation::files(folder)) {
        for case in &cases {
            count += 1;
            if let Err(why) = case.run() {
                failed.push(format!("{}: {}\n{why}", path.display(), case.name));
            }
        }
    }
    println!("{count} golden mutations, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {count} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn every_patch_is_gone_when_it_is_applied_again() {
    for case in FOLDERS.iter().flat_map(|folder| mutation::files(folder)).flat_map(|(_, cases)| cases) {
        let after = case.mutate().after;
        let again = case.with_pod(after.clone());
        assert_eq!(again.mutate().after, after, "{}", again.name);
        assert_eq!(again.mutate().patch.to_json(), "[]", "{}", again.name);
        let warnings = again.mutate().warnings;
        assert!(!warnings.iter().any(|warning| warning.contains("replaced")), "{}: {warnings:?}", again.name);
    }
}
