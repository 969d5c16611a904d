//! The page of the designs: each row names golden cases that exist, or says that it is planned.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rolegate_golden::{cases, file_of};

const PAGE: &str = "tests/cases/designs/README.md";

/// The last cells of the rows of all tables, with the number of the line.
fn last_cells(page: &str) -> Vec<(usize, &str)> {
    let lines: Vec<_> = page.lines().collect();
    let is_line = |line: &str| line.starts_with("|---");
    let is_row = |number: usize| {
        let is_head = lines.get(number + 1).is_some_and(|next| is_line(next));
        lines[number].starts_with('|') && !is_line(lines[number]) && !is_head
    };
    let rows = (0..lines.len()).filter(|number| is_row(*number));
    rows.map(|number| (number + 1, lines[number].trim_matches(['|', ' ']).rsplit('|').next().unwrap().trim())).collect()
}

#[test]
fn each_row_of_the_designs_names_cases_that_are_there() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let all: BTreeSet<_> = cases().iter().map(|case| format!("{}: {}", file_of(case), case.name)).collect();
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for (line, cell) in last_cells(&page).into_iter().filter(|(_, cell)| *cell != "planned") {
        let of_row: Vec<_> = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if of_row.is_empty() {
            wrong.push(format!("{PAGE}:{line}: names no case"));
        }
        let lost = of_row.iter().filter(|case| !all.contains(*case));
        wrong.extend(lost.map(|case| format!("{PAGE}:{line}: no case {case:?}")));
        named.extend(of_row);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let files: BTreeSet<_> = all.iter().filter(|case| case.starts_with("designs/")).map(|case| file(case)).collect();
    let lacking: Vec<_> = files.iter().filter(|of| !named.iter().any(|case| file(case) == **of)).collect();
    assert!(files.len() == 5 && lacking.is_empty(), "{PAGE} names no case of {lacking:?}");
}

fn file(case: &str) -> &str {
    case.split(": ").next().unwrap()
}
