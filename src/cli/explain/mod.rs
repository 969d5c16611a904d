//! `rolegate explain`: why a pod or a group is held, what happens next, and what the user can do.

mod engine;
mod finds;
mod gates;
mod place;
mod pod;
#[cfg(test)]
mod surfaces_tests;
mod workload;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use pod::Whose;
use serde::Serialize;

use crate::cli::connection::{Connection, Failure, LiveArgs, block_on};
use crate::cli::live::{self, Rooms};
use crate::cli::options::Output;
use crate::cli::status;
use crate::cli::watch::Show;
use crate::cluster::index::Index;
use crate::plan::gangs::TreeSnapshot;
use crate::report::{Explanation, Picture, Status, Story};

/// Kind of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// A pod.
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// A group or RoleCoordination with all its pods.
    #[value(aliases = ["groups", "rbg", "rolebasedgroup", "rcoord", "rolecoordination"])]
    Group,
    /// A workload: its group, its role, and missing labels. The name is NAME or KIND/NAME.
    #[value(aliases = ["workloads", "wl"])]
    Workload,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Kind of the object.
    #[arg(value_enum)]
    kind: Subject,
    /// Name of the object.
    name: String,
    #[command(flatten)]
    live: LiveArgs,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print again at each change of the group or its pods, until interrupted; with JSON a line, with YAML a document.
    #[arg(short, long)]
    watch: bool,
}

/// Runs `explain`. The exit code is 0 when the object exists, whatever its state.
pub fn run(args: &ExplainArgs) -> ExitCode {
    block_on(async {
        let connection = args.live.connect(args.watch).await?;
        let show = Show::new(args.watch, args.output.data());
        match args.kind {
            Subject::Pod => Box::pin(pod(args, show, &connection)).await,
            Subject::Group => Box::pin(group(args, show, &connection)).await,
            Subject::Workload => Box::pin(of_workload(args, show, &connection)).await,
        }
    })
}

async fn pod(args: &ExplainArgs, show: Show, connection: &Connection) -> Result<ExitCode, Failure> {
    let namespace = connection.namespace.as_str();
    // The group follows from the first read of the pod.
    let first = live::pod(connection, &args.name).await?;
    let look = |index: &Index| Ok(Whose::of(&first, namespace, index));
    let tell = async |whose: Whose| {
        let pod = live::pod(connection, &args.name).await?;
        let story = Box::pin(pod::Story::of(&pod, whose, connection, jiff::Timestamp::now())).await;
        Ok(show.data.map_or_else(|| story.text(), |data| data.text(&story)))
    };
    Box::pin(show.run(connection, Some(namespace), look, tell)).await
}

async fn of_workload(args: &ExplainArgs, show: Show, connection: &Connection) -> Result<ExitCode, Failure> {
    let namespace = connection.namespace.as_str();
    let found = workload::named(connection, &args.name, &[]).await?;
    let look = |index: &Index| Ok(found.iter().map(|one| workload::referring(index, one)).collect::<Vec<_>>());
    let tell = async |referring: Vec<_>| {
        // The workloads are read anew at each print.
        let pods = workload::pods(connection).await?;
        let now = workload::named(connection, &args.name, &pods).await?;
        let stories: Vec<_> = now.iter().zip(referring).map(|(one, of)| workload::Story::of(one, of)).collect();
        let texts = stories.iter().map(|story| show.data.map_or_else(|| story.text(), |data| data.text(story)));
        Ok(texts.collect::<Vec<_>>().join(if show.data.is_some() { "" } else { "\n" }))
    };
    show.run(connection, Some(namespace), look, tell).await
}

/// The output of `explain group` as data.
#[derive(Serialize)]
struct Answer<'a> {
    group: Status<'a>,
    explanations: Vec<Explanation<'a>>,
}

/// An object with the name of a group.
enum Named {
    Group(Box<Picture>),
    PodGroup(TreeSnapshot),
}

async fn group(args: &ExplainArgs, show: Show, connection: &Connection) -> Result<ExitCode, Failure> {
    let namespace = connection.namespace.as_str();
    let look = |index: &Index| match live::named(index, namespace, &args.name) {
        Ok(picture) => Ok(Named::Group(Box::new(picture))),
        Err(none) => index.tree_snapshots(Some(&args.name)).pop().map(Named::PodGroup).ok_or(none),
    };
    let tell = async |named: Named| {
        Ok(match named {
            Named::Group(picture) => {
                let picture = Box::pin(live::diagnose_alone(*picture, connection)).await;
                let answer =
                    || Answer { group: Status::of(&picture), explanations: Story::of(&picture).explanations() };
                show.data.map_or_else(|| status::one(&picture), |data| data.text(&answer()))
            }
            Named::PodGroup(tree) => {
                let picture = live::tree(tree, connection, &Rooms::default()).await;
                status::pod_group(&picture, show.data)
            }
        })
    };
    Box::pin(show.run(connection, Some(namespace), look, tell)).await
}
