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

use crate::api::Node;
use crate::api::node::NODE;
use crate::cli::connection::{LiveArgs, block_on};
use crate::cli::documents::{Document, Documents, name_of, views};
use crate::cli::options::{RoomArgs, WideOutput};
use crate::cli::progress::Progress;
use crate::cli::terminal::end;
use crate::fit::{Cluster, DomainKeys, Fitted, Missing, Rooms, Suggestion, fit, missing, shape, suggest};
use crate::model::{Group, IgnoredResources};
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
    /// Nodes that could be added, each any number of times: print which of them are missing, and in which domain.
    #[arg(long, value_name = "FILE", conflicts_with = "suggest")]
    provision: Option<PathBuf>,
    /// Node label of the domains that `--suggest` fills, such as a rack; by default that of the coordination.
    #[arg(long, value_name = "LABEL", requires = "suggest")]
    domain: Option<String>,
    #[command(flatten)]
    room: RoomArgs,
    #[command(flatten)]
    live: LiveArgs,
    /// Output format; `wide` adds a bar for each node, and every domain or size.
    #[arg(short, long, value_enum, default_value_t = WideOutput::Text)]
    output: WideOutput,
}

/// The question about each group.
#[derive(Clone, Copy, Debug)]
enum Asked<'a> {
    /// Which batches fit, and which nodes of these shapes do the others lack?
    Batches(&'a [Node]),
    /// Which sizes of segments fill the domains of this node label, or of the coordination?
    Sizes(Option<&'a str>),
}

impl FitArgs {
    fn asked<'a>(&'a self, shapes: &'a [Node]) -> Asked<'a> {
        if self.suggest { Asked::Sizes(self.domain.as_deref()) } else { Asked::Batches(shapes) }
    }
}

/// The fit of one coordination.
struct FittedBatches {
    fitted: Fitted,
    rooms: Option<Rooms>,
    missing: Vec<Missing>,
}

/// A group and what fits of it.
struct FittedGroup {
    group: Arc<Group>,
    /// Rules that the group breaks: with any, no new batch is released.
    faults: Vec<Violation>,
    found: Found,
}

enum Found {
    /// The batches of each coordination.
    Batches(Vec<FittedBatches>),
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
        let found = match asked {
            Asked::Sizes(by) => Found::Sizes(suggest(&group, layers, cluster, by)),
            Asked::Batches(shapes) => {
                let of = |fitted: Fitted| FittedBatches {
                    rooms: Rooms::of(&fitted, &group, cluster),
                    missing: if shapes.is_empty() { Vec::new() } else { missing(&group, &fitted, cluster, shapes) },
                    fitted,
                };
                Found::Batches(fit(&group, layers, cluster, usize::MAX).into_iter().map(of).collect())
            }
        };
        Self { group, faults, found }
    }

    /// Returns the exit code.
    fn verdict(&self) -> u8 {
        match &self.found {
            Found::Batches(all) if all.iter().any(|one| one.fitted.answer.is_err()) => 2,
            Found::Batches(all) => u8::from(!self.faults.is_empty() || !all.iter().all(|one| one.fitted.all_fit())),
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
    let shapes = match shapes(args.provision.as_deref()) {
        Ok(shapes) => shapes,
        Err(unreadable) => {
            unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
            return ExitCode::from(2);
        }
    };
    let asked = args.asked(&shapes);
    let files: Vec<_> = args.groups.iter().filter(|group| is_file(group)).map(PathBuf::from).collect();
    match files.len() {
        0 if args.with.is_empty() => block_on(async {
            let connection = args.live.connect(false).await?;
            let groups = live::read(&connection, &args.groups, asked, args.room.ignored()).await?;
            Ok(answer(&groups, args.output, out))
        }),
        count if count == args.groups.len() && !args.live.is_given() => of_files(&files, args, asked, out),
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

/// Reads the nodes that could be added.
fn shapes(file: Option<&Path>) -> Result<Vec<Node>, Vec<String>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let read = Documents::read_dump(&[file.to_owned()]);
    let mut unreadable: Vec<_> = read.unreadable.iter().map(ToString::to_string).collect();
    let mut shapes = Vec::new();
    for document in &read.documents {
        let node = serde_json::from_str::<Node>(&document.json).map_err(|error| error.to_string());
        let found = match node {
            _ if !document.is(NODE) => Err("is no Node".to_owned()),
            Ok(node) => shape(node).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        match found {
            Ok(shape) => shapes.push(shape),
            Err(error) => unreadable.push(document.unreadable(&error).to_string()),
        }
    }
    if shapes.is_empty() && unreadable.is_empty() {
        unreadable.push(format!("{}: no Node in it", name_of(file)));
    }
    if unreadable.is_empty() { Ok(shapes) } else { Err(unreadable) }
}

fn of_files(files: &[PathBuf], args: &FitArgs, asked: Asked<'_>, out: &mut impl Write) -> ExitCode {
    let (files, with) = (Documents::read_some(files), Documents::read_dump(&args.with));
    let progress = Progress::of("looking for room");
    let mut unreadable: Vec<_> = files.unreadable.iter().chain(&with.unreadable).map(ToString::to_string).collect();
    let ignored = args.room.ignored();
    let groups = fitted((&files.documents, &with.documents), ignored, asked, &mut unreadable);
    drop(progress);
    if unreadable.is_empty() {
        return answer(&groups, args.output, out);
    }
    unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
    ExitCode::from(2)
}

/// Returns the groups of files and what fits of them. Adds errors to `unreadable`.
fn fitted(
    (files, with): (&[Document], &[Document]),
    ignored: IgnoredResources,
    asked: Asked<'_>,
    unreadable: &mut Vec<String>,
) -> Vec<FittedGroup> {
    let (mut fitted, mut told, mut has_nodes) = (Vec::new(), BTreeSet::new(), false);
    for (own, seen) in views(files, with) {
        let cluster = FileCluster::of(seen.iter().copied(), ignored);
        told.extend(cluster.misshapen.iter().chain(&cluster.unmeasured).map(ToString::to_string));
        has_nodes |= cluster.cluster.room.nodes().next().is_some();
        fitted.extend(groups(own, &cluster).into_iter().map(|group| {
            let faults = judge_group(&group, None, &cluster.known.world).errors;
            let layers = cluster.layers(&group);
            FittedGroup::new(group, faults, &layers, &cluster.cluster, asked)
        }));
    }
    unreadable.extend(told);
    if fitted.is_empty() && unreadable.is_empty() {
        unreadable.push("rolegate: no RoleBasedGroup and no RoleCoordination in the files".to_owned());
    }
    let may_have_none = matches!(asked, Asked::Batches(shapes) if !shapes.is_empty());
    if !has_nodes && !may_have_none && unreadable.is_empty() {
        unreadable.push("rolegate: no nodes in the files: add them by --with".to_owned());
    }
    fitted
}

/// Returns the exit code and the JSON output for files.
pub fn data(all: (&[Document], &[Document]), ignored: IgnoredResources, unreadable: &mut Vec<String>) -> (u8, Value) {
    let groups = fitted(all, ignored, Asked::Batches(&[]), unreadable);
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
