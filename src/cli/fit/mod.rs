//! `rolegate fit`: how many batches of a group fit into a cluster, and where. Reads a live cluster, or files.

mod files;
mod json;
mod live;
mod rooms;
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
use crate::fit::{Cluster, Fitted, Rooms};
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
    #[command(flatten)]
    live: LiveArgs,
    /// Output format; `wide` adds a bar for each node, and every domain.
    #[arg(short, long, value_enum, default_value_t = WideOutput::Text)]
    output: WideOutput,
}

/// A group and its batches that fit.
struct FittedGroup {
    group: Arc<Group>,
    /// Rules that the group breaks: with any, no new batch is released.
    faults: Vec<Violation>,
    coordinations: Vec<Fitted>,
    /// Room for the batches of each coordination.
    rooms: Vec<Option<Rooms>>,
}

impl FittedGroup {
    fn new(group: Arc<Group>, faults: Vec<Violation>, coordinations: Vec<Fitted>, cluster: &Cluster) -> Self {
        let rooms = coordinations.iter().map(|fitted| Rooms::of(fitted, &group, cluster)).collect();
        Self { group, faults, coordinations, rooms }
    }
}

/// Runs `fit`. The exit code is 0 when every batch fits, 1 when one does not, 2 when something is unreadable or
/// unknown.
pub fn run(args: &FitArgs) -> ExitCode {
    write(args, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Like [`run`], but prints to `out`.
pub fn write(args: &FitArgs, out: &mut impl Write) -> ExitCode {
    let files: Vec<_> = args.groups.iter().filter(|group| is_file(group)).map(PathBuf::from).collect();
    match files.len() {
        0 if args.with.is_empty() => block_on(async {
            let connection = args.live.connect(false).await?;
            Ok(answer(&live::read(&connection, &args.groups).await?, args.output, out))
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
    let groups = fitted(&files.documents, &with.documents, &mut unreadable);
    drop(progress);
    if unreadable.is_empty() {
        return answer(&groups, args.output, out);
    }
    unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
    ExitCode::from(2)
}

/// Returns the groups of files and what fits of them. Adds errors to `unreadable`.
fn fitted(files: &[Document], with: &[Document], unreadable: &mut Vec<String>) -> Vec<FittedGroup> {
    let cluster = FileCluster::of(files.iter().chain(with));
    unreadable.extend(cluster.misshapen.iter().chain(&cluster.unmeasured).map(ToString::to_string));
    let groups: Vec<_> = groups(files, &cluster)
        .into_iter()
        .map(|group| {
            let faults = judge_group(&group, None, &cluster.known.world).errors;
            let coordinations = cluster.fit(&group);
            FittedGroup::new(group, faults, coordinations, &cluster.cluster)
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
    let groups = fitted(files, with, unreadable);
    (verdict(&groups), json::answer(&groups))
}

fn answer(fitted: &[FittedGroup], output: WideOutput, out: &mut impl Write) -> ExitCode {
    let printed = match output.data() {
        None => text::print(out, fitted, output == WideOutput::Wide),
        Some(data) => out.write_all(data.text(&json::answer(fitted)).as_bytes()),
    };
    // A closed pipe does not change the verdict.
    _ = printed.and_then(|()| out.flush());
    ExitCode::from(verdict(fitted))
}

fn verdict(fitted: &[FittedGroup]) -> u8 {
    let coordinations = || fitted.iter().flat_map(|fitted| &fitted.coordinations);
    if coordinations().any(|coordination| coordination.answer.is_err()) {
        2
    } else {
        let fits = coordinations().all(Fitted::all_fit) && fitted.iter().all(|fitted| fitted.faults.is_empty());
        u8::from(!fits)
    }
}

/// Returns the groups in the files, each once.
fn groups(files: &[Document], cluster: &FileCluster) -> Vec<Arc<Group>> {
    let keys: BTreeSet<_> = files.iter().filter_map(|document| Some(cluster.group(document)?.key)).collect();
    keys.iter().filter_map(|key| cluster.known.group(key).cloned().map(Arc::new)).collect()
}
