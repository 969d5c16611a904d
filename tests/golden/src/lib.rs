//! The golden cases of `tests/cases`: files of objects, each with the answers that `check`, `mutate`, `plan` and `fit` must give,
//! and the functions of these commands that give them. The README beside the cases describes the format.

mod answer;
pub mod case;
mod compare;
pub mod outcome;
mod read;
mod update;
mod yaml;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use case::Asked;
pub use case::Case;
use outcome::{Outcome, Verdict};
pub use read::{Suite, read};

/// Folder of the cases, as seen from the root of the repository.
pub const ROOT: &str = "tests/cases";

/// Returns all cases of the folder, in the order of their files.
///
/// # Panics
///
/// If a file has a fault or no case.
pub fn cases() -> Vec<Case> {
    let suite = read(&[PathBuf::from(ROOT)]);
    assert!(suite.faults.is_empty(), "{:#?}", suite.faults);
    assert_eq!(suite.others, 0, "every file holds cases");
    suite.cases
}

/// Returns folder and file of a case, without the extension: `group/segment-ratio`.
pub fn file_of(case: &Case) -> &str {
    let file = case.file.strip_prefix(ROOT).unwrap_or(&case.file).trim_start_matches('/');
    file.strip_suffix(".yaml").unwrap_or(file)
}

/// Returns what a case expects of a command.
pub fn expected(case: &Case, asked: Asked) -> Option<&Map<String, Value>> {
    case.expected.iter().find(|expected| expected.asked == asked)?.written.as_ref()
}

/// Runs the cases, and returns the outcomes of those that do not pass.
pub fn wrong<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<Outcome<'a>> {
    let outcomes = cases.into_iter().map(Case::run);
    outcomes.filter(|outcome| !matches!(outcome.verdict, Verdict::Passed)).collect()
}

/// Writes the answers of failed cases into their files, and returns what could not be written.
pub fn update(failed: &[Outcome<'_>]) -> Vec<String> {
    let mut refused = Vec::new();
    for Outcome { case, verdict } in failed {
        let Verdict::Failed(differences) = verdict else { continue };
        if let Err(why) = update::update(Path::new(&case.file), case, differences) {
            refused.push(format!("{}: {why}", case.title()));
        }
    }
    refused
}
