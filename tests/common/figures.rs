//! Tables of pages whose rows are written by tests.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

static PAGE: Mutex<()> = Mutex::new(());

/// Prints a row. With `UPDATE_DOCS` set, it replaces the row with the same first cell in the page's table between
/// `<!-- figures: TABLE -->` and `<!-- end of figures -->`, or is added to it.
pub fn record_in(page: &str, table: &str, row: &[&str]) {
    let line = format!("| {} |", row.join(" | "));
    println!("{table}: {line}");
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return;
    }
    let _alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let page = fs::read_to_string(&path).unwrap();
    fs::write(&path, with_row(&page, table, row[0], &line)).unwrap();
}

/// Records a row of `tests/live/chaos/README.md`.
pub fn record(table: &str, row: &[&str]) {
    record_in("tests/live/chaos/README.md", table, row);
}

fn with_row(page: &str, table: &str, name: &str, line: &str) -> String {
    let mark = format!("<!-- figures: {table} -->");
    let begin = page.find(&mark).unwrap_or_else(|| panic!("the page has no {mark}"));
    let end = begin + page[begin..].find("<!-- end of figures -->").expect("an end of the table");
    let known = format!("| {name} |");
    let (mut rows, mut replaced) = (String::new(), false);
    for row in page[begin..end].lines() {
        let is_it = row.starts_with(&known);
        replaced |= is_it;
        rows.push_str(if is_it { line } else { row });
        rows.push('\n');
    }
    if !replaced {
        rows.push_str(line);
        rows.push('\n');
    }
    format!("{}{rows}{}", &page[..begin], &page[end..])
}

#[test]
fn a_row_is_replaced_or_added() {
    let page = "a\n<!-- figures: x -->\n| n | v |\n|---|---|\n| one | 1 |\n<!-- end of figures -->\nb\n";
    let changed = with_row(page, "x", "one", "| one | 2 |");
    assert_eq!(changed, page.replace("| one | 1 |", "| one | 2 |"));
    let added = with_row(page, "x", "two", "| two | 2 |");
    assert_eq!(added, page.replace("| one | 1 |\n", "| one | 1 |\n| two | 2 |\n"));
}
