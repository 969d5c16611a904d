//! `rolegate mutate`: shows what the webhook would change in objects of files.

pub mod diff;
pub mod known;
pub mod mutated;
mod print;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use known::Known;
use mutated::Mutated;

use crate::cli::documents::{Documents, Unreadable, views};
use crate::cli::options::{Color, PodArgs};
use crate::cli::terminal;

/// Arguments of `mutate`.
#[derive(Args, Debug)]
pub struct MutateArgs {
    /// Files, directories of *.yaml, *.yml and *.json, or - for standard input. A workload stands for its pods.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Existing objects: groups, topologies, Grove sets, PodGroups.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Workloads before an update; the update is shown instead of pods.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,
    /// Output format; `yaml` by default, `diff` on a terminal.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Use of colours; NO_COLOR also turns them off.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    pods: PodArgs,
}

/// How the outcome is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The resulting objects.
    Yaml,
    /// The resulting objects as a List.
    Json,
    /// The patches, as one JSON object.
    Patch,
    /// The differences as text.
    Diff,
}

/// Exit code when an object would be refused.
const REFUSED: u8 = 1;
/// Exit code when a file or object cannot be read.
const UNREADABLE: u8 = 2;

/// Prints the mutated objects. The exit code is 0, 1 when one would be refused, 2 when something is unreadable or
/// there is no object.
pub fn run(args: &MutateArgs) -> ExitCode {
    let (mut files, mut with, mut old) =
        (Documents::read_some(&args.files), Documents::read(&args.with), Documents::read(&args.old));
    let mut unreadable = Vec::new();
    for documents in [&mut files, &mut with, &mut old] {
        unreadable.append(&mut documents.unreadable);
    }
    let views = views(&files.documents, &with.documents);
    let mut misshapen = BTreeMap::new();
    let known = views.iter().map(|(_, seen)| {
        let mut found = Vec::new();
        let known = Known::of(seen.iter().copied(), &mut found);
        misshapen.extend(found.into_iter().map(|(document, error)| (document.place(), document.misshapen(&error))));
        known
    });
    let known: Vec<_> = known.collect();
    unreadable.extend(misshapen.into_values());
    let settings = args.pods.settings();
    let mut objects = Vec::new();
    for ((own, _), known) in views.iter().zip(&known) {
        objects.extend(mutated::all(own, &old.documents, known, &settings, &mut unreadable));
    }
    let is_read = io::stdout().is_terminal();
    let output = args.output.unwrap_or(if is_read { Output::Diff } else { Output::Yaml });
    let text = match output {
        Output::Yaml => print::yaml(&objects),
        Output::Json => print::json(&objects),
        Output::Patch => print::patches(&objects),
        Output::Diff => print::diff(&objects, args.color.is_used()),
    };
    terminal::print(&text);
    complain(&objects, &unreadable);
    match (unreadable.is_empty(), objects.iter().all(|object| object.refused.is_empty())) {
        (false, _) => ExitCode::from(UNREADABLE),
        (true, false) => ExitCode::from(REFUSED),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Prints warnings and errors, each text once: the pods of a workload share them.
fn complain(objects: &[Mutated], unreadable: &[Unreadable]) {
    let mut texts: BTreeMap<(&str, &str), Vec<&Mutated>> = BTreeMap::new();
    for object in objects {
        for (level, list) in [("warning", &object.warnings), ("refused", &object.refused)] {
            for text in list {
                texts.entry((level, text)).or_default().push(object);
            }
        }
    }
    for ((level, text), objects) in texts {
        let first = objects.first().map(|object| object.title()).unwrap_or_default();
        let more = if objects.len() > 1 { format!(" and {} more", objects.len() - 1) } else { String::new() };
        eprintln!("{level}: {first}{more}: {text}");
    }
    unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
}
