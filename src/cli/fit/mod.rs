//! `rolegate fit`: how many batches of a group fit into a cluster, and where; or which sizes of segments fill it. Reads a live
//! cluster, or files.

mod files;
mod json;
mod live;
mod rooms;
mod sizes;
mod text;

pub use files::FileCluster;
pub use text::{brief, details};

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use crate::cli::connection::{LiveArgs, block_on};
use crate::cli::documents::{Document, Documents};
use crate::cli::options::WideOutput;
use crate::cli::progress::Progress;
use crate::cli::terminal::end;
use crate::fit::{Cluster, DomainKeys, Fitted, Rooms, Suggestion, fit, suggest};
use crate::model::Group;
use crate::rules::{Violation, judge_group};

/// Arguments of `fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// Names of groups of the cluster; or files, directories of *.yaml, *.yml and *.json, or - for standard input.
    #[arg(required = true, value_name = "GROUP|FILE")]
    groups: Vec<String>,
    /// Existing objects for groups of files, from `kubectl get nodes,pods,statefulsets -A -o json`.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Try segment sizes in the ratio of the roles: how many segments of each fit, and what they leave unused.
    #[arg(long)]
    suggest: bool,
    /// Node label of the domains that `--suggest` fills, such as a rack; by default that of the coordination.
    #[arg(long, value_name = "LABEL", requires = "suggest")]
    domain: Option<String>,
    #[command(flatten)]
    live: LiveArgs,
    /// Output format; `wide` adds a bar for each node, and every domain or size.
    #[arg(short, long, value_enum, default_value_t = WideOutput::Text)]
    output: WideOutput,
}

/// The question about each group.
#[derive(Clone, Copy, Debug)]
enum Asked<'a> {
    /// Which batches fit?
    Batches,
    /// Which sizes of segments fill the domains of this node label, or of the coordination?
    Sizes(Option<&'a str>),
}

impl FitArgs {
    fn asked(&self) -> Asked<'_> {
        if self.suggest { Asked::Sizes(self.domain.as_deref()) } else { Asked::Batches }
    }
}

/// A group and what fits of it.
struct FittedGroup {
    group: Arc<Group>,
    /// Rules that the group breaks: with any, no new batch is released.
    faults: Vec<Violation>,
    found: Found,
}

enum Found {
    /// The batches of each coordination, and the room for them.
    Batches(Vec<(Fitted, Option<Rooms>)>),
    Sizes(Vec<Suggestion>),
}

impl FittedGroup {
    fn new(
        group: Arc<Group>,
        faults: Vec<Violation>,
        layers: &DomainKeys,
        cluster: &Cluster,
        asked: Asked<'_>,
    ) -> Self {
        let with_rooms = |fitted: Fitted| {
            let rooms = Rooms::of(&fitted, &group, cluster);
            (fitted, rooms)
        };
        let found = match asked {
            Asked::Sizes(by) => Found::Sizes(suggest(&group, layers, cluster, by)),
            Asked::Batches => {
                Found::Batches(fit(&group, layers, cluster, usize::MAX).into_iter().map(with_rooms).collect())
            }
        };
        Self { group, faults, found }
    }

    /// Returns the exit code.
    fn verdict(&self) -> u8 {
        match &self.found {
            Found::Batches(all) if all.iter().any(|(fitted, _)| fitted.answer.is_err()) => 2,
            Found::Batches(all) => u8::from(!self.faults.is_empty() || !all.iter().all(|(fitted, _)| fitted.all_fit())),
            Found::Sizes(all) if all.iter().any(|one| one.answer.is_err()) => 2,
            Found::Sizes(all) => {
                u8::from(all.iter().any(|one| one.answer.as_ref().is_ok_and(|found| found.sizes.is_empty())))
            }
        }
    }
}

/// Runs `fit`. The exit code is 0 when every batch fits, or a size is found; 1 when not; 2 when something is unreadable
/// or unknown.
pub fn run(args: &FitArgs) -> ExitCode {
    write(args, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Like [`run`], but prints to `out`.
pub fn write(args: &FitArgs, out: &mut impl Write) -> ExitCode {
    let files: Vec<_> = args.groups.iter().filter(|group| is_file(group)).map(PathBuf::from).collect();
    match files.len() {
        0 if args.with.is_empty() => block_on(async {
            let connection = args.live.connect(false).await?;
            Ok(answer(&live::read(&connection, &args.groups, args.asked()).await?, args.output, out))
        }),
        count if count == args.groups.len() && !args.live.is_given() => of_files(&files, args, out),
        _ => {
            eprintln!(
                "rolegate: either groups of a cluster, with -n, --context and --kubeconfig, or files, with --with; what is \
                 neither there nor ends in .yaml, .yml or .json is no file"
            );
            ExitCode::from(2)
        }
    }
}

fn is_file(text: &str) -> bool {
    let path = Path::new(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    text == "-" || path.exists() || extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

fn of_files(files: &[PathBuf], args: &FitArgs, out: &mut impl Write) -> ExitCode {
    let (files, with) = (Documents::read_some(files), Documents::read_dump(&args.with));
    let progress = Progress::of("looking for room");
    let mut unreadable: Vec<_> = files.unreadable.iter().chain(&with.unreadable).map(ToString::to_string).collect();
    let groups = fitted(&files.documents, &with.documents, args.asked(), &mut unreadable);
    drop(progress);
    if unreadable.is_empty() {
        return answer(&groups, args.output, out);
    }
    unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
    ExitCode::from(2)
}

/// Returns the groups of files and what fits of them. Adds errors to `unreadable`.
fn fitted(files: &[Document], with: &[Document], asked: Asked<'_>, unreadable: &mut Vec<String>) -> Vec<FittedGroup> {
    let cluster = FileCluster::of(files.iter().chain(with));
    unreadable.extend(cluster.misshapen.iter().chain(&cluster.unmeasured).map(ToString::to_string));
    let groups: Vec<_> = groups(files, &cluster)
        .into_iter()
        .map(|group| {
            let faults = judge_group(&group, None, &cluster.known.world).errors;
            let layers = cluster.layers(&group);
            FittedGroup::new(group, faults, &layers, &cluster.cluster, asked)
        })
        .collect();
    if groups.is_empty() && unreadable.is_empty() {
        unreadable.push("rolegate: no RoleBasedGroup and no RoleCoordination in the files".to_owned());
    }
    if cluster.cluster.room.nodes().next().is_none() && unreadable.is_empty() {
        unreadable.push("rolegate: no nodes in the files: add them by --with".to_owned());
    }
    groups
}

/// Returns the exit code and the JSON output for files.
pub(in crate::cli) fn data(files: &[Document], with: &[Document], unreadable: &mut Vec<String>) -> (u8, Value) {
    let groups = fitted(files, with, Asked::Batches, unreadable);
    (verdict(&groups), json::answer(&groups))
}

fn answer(fitted: &[FittedGroup], output: WideOutput, out: &mut impl Write) -> ExitCode {
    let printed = match output.data() {
        None => text::print(out, fitted, output == WideOutput::Wide),
        Some(data) => out.write_all(data.text(&json::answer(fitted)).as_bytes()),
    };
    end(out, printed);
    ExitCode::from(verdict(fitted))
}

fn verdict(fitted: &[FittedGroup]) -> u8 {
    fitted.iter().map(FittedGroup::verdict).max().unwrap_or_default()
}

/// Returns the groups in the files, each once.
fn groups(files: &[Document], cluster: &FileCluster) -> Vec<Arc<Group>> {
    let keys: BTreeSet<_> = files.iter().filter_map(|document| Some(cluster.group(document)?.key)).collect();
    keys.iter().filter_map(|key| cluster.known.group(key).cloned().map(Arc::new)).collect()
}
