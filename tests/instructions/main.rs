//! How many instructions the parts of a review and of a pass take: counted by valgrind, so that a busy machine does not show.
//! 5 % more than `tests/instructions/limits` says fails. Without valgrind nothing is counted, and that is said.
//!
//! `cargo test --test instructions -- print` prints what it counts; `… -- CASE COUNT` does one case so many times.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../../benches/planning.rs"]
mod planning;
#[allow(dead_code, reason = "the benchmark sends others as well")]
#[path = "../../benches/run/reviews.rs"]
mod reviews;
mod webhook;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use planning::Loop;
use rolegate::cluster::registration::table::Endpoint;
use rolegate::server::admission::decode;
use webhook::Webhook;

/// Something that is done again and again.
struct Case {
    name: &'static str,
    /// Iterations of the longer of two runs. The shorter has half as many, and what both have in common does not count.
    count: u32,
    run: fn(u32),
}

const CASES: &[Case] = &[
    Case { name: "decode", count: 40, run: decode },
    Case { name: "mutate-held", count: 40, run: |count| Webhook::of("held").mutate(count) },
    Case { name: "mutate-discovery", count: 40, run: |count| Webhook::of("discovery").mutate(count) },
    Case { name: "mutate-foreign", count: 40, run: |count| Webhook::of("foreign").mutate(count) },
    Case { name: "review-held", count: 40, run: |count| Webhook::of("held").review(count) },
    Case { name: "review-foreign", count: 40, run: |count| Webhook::of("foreign").review(count) },
    Case { name: "pass-100", count: 4, run: |count| passes(105, count) },
    Case { name: "pass-10000", count: 4, run: |count| passes(9_990, count) },
];

/// Instructions of one iteration of each case in a build for tests, which is not optimised.
const LIMITS: &str = include_str!("limits");

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--list") {
        CASES.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [name, count] => {
            let case = CASES.iter().find(|case| case.name == *name).expect("a case of this name");
            (case.run)(count.parse().expect("a count"));
            ExitCode::SUCCESS
        }
        // As with all tests: a word that is not in the name leaves it out.
        [word] if *word != "print" && !"instructions".contains(word) => ExitCode::SUCCESS,
        words => {
            if Command::new("valgrind").arg("--version").output().is_err() {
                let ignored = CASES.len();
                println!("instructions: NOT CHECKED, for there is no valgrind here");
                println!("test result: ok. 0 passed; 0 failed; {ignored} ignored; 0 measured; 0 filtered out");
                return if std::env::var_os("CI").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            }
            let counted = CASES.iter().map(|case| (case.name, instructions(case)));
            if words == ["print"] {
                counted.for_each(|(name, count)| println!("{name} {count}"));
                return ExitCode::SUCCESS;
            }
            check(counted)
        }
    }
}

fn check(counted: impl Iterator<Item = (&'static str, u64)>) -> ExitCode {
    let limits: BTreeMap<&str, u64> = LIMITS
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, count)| (name, count.parse().unwrap()))
        .collect();
    let (mut passed, mut failed) = (0, 0);
    for (name, count) in counted {
        let limit = *limits.get(name).unwrap_or_else(|| panic!("tests/instructions/limits does not have {name}"));
        let percent = i64::try_from(count * 100 / limit).unwrap() - 100;
        let verdict = match percent {
            5.. => {
                failed += 1;
                "FAILED: find what it is, or write the new count into tests/instructions/limits"
            }
            ..-5 => "ok: fewer, which tests/instructions/limits may as well hold",
            _ => "ok",
        };
        passed += u32::from(percent < 5);
        println!("instructions of {name}: {count}, {percent:+} % ... {verdict}");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Instructions of one iteration.
fn instructions(case: &Case) -> u64 {
    let half = case.count / 2;
    (total(case.name, case.count) - total(case.name, half)) / u64::from(case.count - half)
}

/// Instructions of a whole run.
fn total(case: &str, count: u32) -> u64 {
    let arguments = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    let program = std::env::current_exe().unwrap();
    let mut valgrind = Command::new("valgrind");
    let output = valgrind.args(arguments).arg(program).arg(case).arg(count.to_string()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {text}");
    let count = text.lines().find_map(|line| line.split_once("refs:")).expect("valgrind counts instructions").1;
    count.trim().replace(',', "").parse().unwrap()
}

fn decode(count: u32) {
    let body = &reviews::of_decode_pods()[0];
    for _ in 0..count {
        black_box(decode::decode(Endpoint::Mutate, black_box(body))).unwrap();
    }
}

/// A pass over a group of so many pods, and three of the writes that it asks for.
fn passes(pods: u32, count: u32) {
    let mut group = Loop::new(pods / 15);
    for _ in 0..count {
        group.pass();
        (0..3).for_each(|_| group.write());
    }
}
