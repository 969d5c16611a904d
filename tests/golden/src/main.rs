//! `cargo run -p rolegate-golden -- [--update] [TEXT]`: runs the golden cases whose file and name contain a text, and shows the
//! difference of those that fail. `--update` writes the answers into their files.

use std::path::PathBuf;
use std::process::ExitCode;

use rolegate_golden::{ROOT, read, update, wrong};

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    let updates = arguments.iter().position(|argument| argument == "--update").map(|at| arguments.remove(at)).is_some();
    let suite = read(&[PathBuf::from(ROOT)]);
    suite.faults.iter().for_each(|fault| eprintln!("{fault}"));
    let chosen: Vec<_> =
        suite.cases.iter().filter(|case| arguments.iter().all(|text| case.title().contains(text))).collect();
    let failed = wrong(chosen.iter().copied());
    failed.iter().for_each(|outcome| print!("{outcome}"));
    println!("{} of {} cases fail", failed.len(), chosen.len());
    if updates {
        update(&failed).iter().for_each(|refusal| eprintln!("not updated: {refusal}"));
    }
    if failed.is_empty() && suite.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
