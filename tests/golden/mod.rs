//! The golden cases, as `rolegate test` reads them.

use std::path::PathBuf;

pub use rolegate::cli::test::Case;
use rolegate::cli::test::case::Asked;
use rolegate::cli::test::read;
use serde_json::{Map, Value};

/// Where they lie, as seen from the crate's root.
pub const ROOT: &str = "tests/cases";

/// All of them, in the order of their files.
pub fn cases() -> Vec<Case> {
    let suite = read(&[PathBuf::from(ROOT)]);
    assert!(suite.faults.is_empty(), "{:#?}", suite.faults);
    assert_eq!(suite.others, 0, "every file holds cases");
    suite.cases
}

/// Folder and file, without the extension: `group/segment-ratio`.
pub fn file_of(case: &Case) -> &str {
    let file = case.file.strip_prefix(ROOT).unwrap().trim_start_matches('/');
    file.strip_suffix(".yaml").unwrap()
}

/// What a case expects of a command.
pub fn expected(case: &Case, asked: Asked) -> Option<&Map<String, Value>> {
    case.expected.iter().find(|expected| expected.asked == asked)?.written.as_ref()
}
