//! `rolegate test`: runs cases from files, each with the expected answers of commands that need no cluster. The golden
//! cases of this repository run through the same functions.

mod answer;
pub mod case;
mod compare;
mod json;
mod junit;
pub mod outcome;
mod read;
mod text;
mod update;
mod yaml;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::data::Data;
use crate::cli::documents::{Unreadable, name_of};
use crate::cli::options::Color;
use crate::cli::progress::Progress;
use crate::cli::terminal::end;
use crate::rules::{RuleInfo, catalogue};
pub use case::Case;
use outcome::{Difference, Outcome, Verdict};
pub use read::{Suite, read};

/// Arguments of `test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Test files, or folders of *.yaml and *.yml.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Run only cases whose `FILE: NAME` contains this text; repeatable.
    #[arg(long, value_name = "TEXT")]
    name: Vec<String>,
    /// Write the results into the files of cases that fail.
    #[arg(long)]
    update: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Also write a JUnit report to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the number of cases in which each rule finds something.
    #[arg(long)]
    coverage: bool,
    /// Use of colours; NO_COLOR also turns them off.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

/// How outcomes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text: cases that fail.
    Text,
    /// Text: every case.
    Wide,
    /// JSON.
    Json,
    /// JUnit's XML.
    Junit,
}

struct Report<'a> {
    outcomes: Vec<Outcome<'a>>,
    unreadable: Vec<Unreadable>,
    /// Cases excluded by `--name`.
    left_out: usize,
    /// YAML files without cases.
    others: usize,
    /// Rules, each with the number of cases in which it has a finding; `None` unless requested.
    coverage: Option<Vec<(RuleInfo, usize)>>,
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Broken(_) => "error",
            Self::Updated => "updated",
        }
    }
}

impl Report<'_> {
    fn count(&self, is_it: fn(&Verdict) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is_it(&outcome.verdict)).count()
    }

    fn passed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Passed))
    }

    fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    fn updated(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Updated))
    }

    /// Returns the number of cases that could not be run.
    fn errors(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Broken(_)))
    }
}

/// Runs the cases. The exit code is 0 when all pass or were updated, 1 when one fails, 2 when something is unreadable
/// or there is no case.
pub fn run(args: &TestArgs) -> ExitCode {
    write(args, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Like [`run`], but prints to `out`.
pub fn write(args: &TestArgs, out: &mut impl Write) -> ExitCode {
    let progress = Progress::of("reading cases");
    let suite = read(&args.dirs);
    drop(progress);
    let mut unreadable = suite.faults;
    let is_readable = unreadable.is_empty();
    let is_chosen = |case: &&Case| args.name.is_empty() || args.name.iter().any(|text| case.title().contains(text));
    let chosen: Vec<_> = suite.cases.iter().filter(is_chosen).collect();
    let names: Vec<_> = args.dirs.iter().map(|dir| name_of(dir)).collect();
    let mut nothing = |message: String| {
        unreadable.push(Unreadable { file: names.join(", "), at: None, message });
    };
    if suite.cases.is_empty() && suite.files == 0 && is_readable {
        nothing(format!("no case in it; it holds {} other files of YAML", suite.others));
    } else if chosen.is_empty() && !suite.cases.is_empty() {
        nothing(format!("no case of {} has {} in its name", suite.cases.len(), args.name.join(" or ")));
    }
    let progress = Progress::of("running cases");
    let mut outcomes: Vec<_> = chosen.iter().map(|case| case.run()).collect();
    drop(progress);
    if args.update {
        update(&mut outcomes);
    } else {
        outcomes.iter_mut().for_each(refuse_unwritten);
    }
    let coverage = args.coverage.then(|| covered(&outcomes));
    let left_out = suite.cases.len() - chosen.len();
    let mut report = Report { outcomes, unreadable, left_out, others: suite.others, coverage };
    if let Some(path) = &args.junit
        && let Err(error) = fs::write(path, junit::text(&report))
    {
        report.unreadable.push(Unreadable { file: name_of(path), at: None, message: error.to_string() });
    }
    let printed = match args.output {
        Output::Text => text::print(out, &report, false, args.color.is_used()),
        Output::Wide => text::print(out, &report, true, args.color.is_used()),
        Output::Json => out.write_all(Data::Json.text(&json::answer(&report)).as_bytes()),
        Output::Junit => out.write_all(junit::text(&report).as_bytes()),
    };
    end(out, printed);
    report.unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
    if !report.unreadable.is_empty() || report.errors() > 0 {
        ExitCode::from(2)
    } else if report.failed() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Marks a case without a written expectation as broken, not as failed.
fn refuse_unwritten(outcome: &mut Outcome<'_>) {
    let Verdict::Failed(differences) = &outcome.verdict else { return };
    let unwritten = differences.iter().filter(|difference| difference.expected.is_none());
    let faults: Vec<_> = unwritten
        .map(|difference| format!("expect.{}: nothing is written yet: `--update` writes it", difference.asked.name()))
        .collect();
    if !faults.is_empty() {
        outcome.verdict = Verdict::Broken(faults);
    }
}

/// Writes the answers of failed cases into their files: all of a file at once, or one by one if a case cannot be
/// updated.
fn update(outcomes: &mut [Outcome<'_>]) {
    let mut by_file: BTreeMap<&str, Vec<(&mut Verdict, &Case)>> = BTreeMap::new();
    for outcome in outcomes.iter_mut().filter(|outcome| matches!(outcome.verdict, Verdict::Failed(_))) {
        by_file.entry(&outcome.case.file).or_default().push((&mut outcome.verdict, outcome.case));
    }
    for (file, mut failed) in by_file {
        if written(file, &mut failed).is_err() {
            for one in failed.chunks_mut(1) {
                if let Err(why) = written(file, one) {
                    one.iter_mut()
                        .for_each(|(verdict, _)| **verdict = Verdict::Broken(vec![format!("not updated: {why}")]));
                }
            }
        }
    }
}

fn written(file: &str, failed: &mut [(&mut Verdict, &Case)]) -> Result<(), update::Refusal> {
    let differences = |verdict: &Verdict| match verdict {
        Verdict::Failed(differences) => differences.clone(),
        _ => Vec::new(),
    };
    let cases: Vec<(&Case, Vec<Difference>)> =
        failed.iter().map(|(verdict, case)| (*case, differences(verdict))).collect();
    update::update(Path::new(file), &cases)?;
    failed.iter_mut().for_each(|(verdict, _)| **verdict = Verdict::Updated);
    Ok(())
}

/// Returns the rules, each with the number of cases in which it has a finding.
fn covered(outcomes: &[Outcome<'_>]) -> Vec<(RuleInfo, usize)> {
    let mut cases: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in outcomes.iter().flat_map(|outcome| &outcome.rules) {
        *cases.entry(rule).or_default() += 1;
    }
    let all = catalogue().into_iter();
    all.map(|rule| (cases.get(rule.id).copied().unwrap_or_default(), rule)).map(|(count, rule)| (rule, count)).collect()
}
