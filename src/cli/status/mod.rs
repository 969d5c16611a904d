//! `rolegate status`: shows groups with their batches.

mod batches;
mod json;
mod pod_groups;
mod text;

use text::Detail;
pub use text::{conditions, replicas, seconds_since};

use std::process::ExitCode;

use clap::Args;
use futures::future::join_all;

use crate::cli::connection::{Connection, Failure, LiveArgs, block_on};
use crate::cli::data::Data;
use crate::cli::live::{self, Rooms};
use crate::cli::options::WideOutput;
use crate::cli::terminal::Style;
use crate::cli::watch::Show;
use crate::cluster::index::Index;
use crate::plan::gangs::TreeSnapshot;
use crate::report::{Picture, PodGroupStatus, TreePicture};

/// Arguments of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Name of one group, which is shown with its conditions, and with what helps.
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    live: LiveArgs,
    /// Show groups of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "group"])]
    all_namespaces: bool,
    /// Output format; `wide` adds a row for each batch.
    #[arg(short, long, value_enum, default_value_t = WideOutput::Text)]
    output: WideOutput,
    /// Print again at each change, until interrupted; with JSON a line, with YAML a document.
    #[arg(short, long)]
    watch: bool,
}

/// Prints the groups. The exit code is 0 when they could be read.
pub fn run(args: &StatusArgs) -> ExitCode {
    block_on(async {
        let connection = args.live.connect(args.watch).await?;
        let scope = (!args.all_namespaces).then_some(connection.namespace.as_str());
        let show = Show::new(args.watch, args.output.data());
        let look = |index: &Index| pictures(args, &connection, index);
        show.run(&connection, scope, look, async |seen| Ok(render(args, show.data, &connection, seen).await)).await
    })
}

struct Seen {
    groups: Vec<Picture>,
    trees: Vec<TreeSnapshot>,
}

fn pictures(args: &StatusArgs, connection: &Connection, index: &Index) -> Result<Seen, Failure> {
    let trees = index.tree_snapshots(args.group.as_deref());
    let groups = match &args.group {
        None => live::pictures(index).into_iter().filter(Picture::concerns_us).collect(),
        Some(name) => match live::named(index, &connection.namespace, name) {
            Ok(picture) => vec![picture],
            Err(_) if !trees.is_empty() => Vec::new(),
            Err(none) => return Err(none),
        },
    };
    Ok(Seen { groups, trees })
}

async fn render(args: &StatusArgs, data: Option<Data>, connection: &Connection, seen: Seen) -> String {
    let rooms = Rooms::default();
    let groups = join_all(seen.groups.into_iter().map(async |picture| match &args.group {
        Some(_) => Box::pin(live::diagnose_alone(picture, connection)).await,
        None => Box::pin(live::diagnose(picture, connection, &rooms)).await,
    }))
    .await;
    let trees = join_all(seen.trees.into_iter().map(|tree| live::tree(tree, connection, &rooms))).await;
    match data {
        Some(data) => data.text(&json::answer(&groups, &trees)),
        None if groups.is_empty() && trees.is_empty() && args.all_namespaces => "no groups\n".to_owned(),
        None if groups.is_empty() && trees.is_empty() => format!("no groups in namespace {:?}\n", connection.namespace),
        None => {
            text(&groups, &trees, Detail { of_one: args.group.is_some(), batches: args.output == WideOutput::Wide })
        }
    }
}

fn text(groups: &[Picture], trees: &[TreePicture], detail: Detail) -> String {
    let groups_text = text::render(groups, detail, jiff::Timestamp::now());
    let texts = [groups_text, pod_groups::text(trees), text::legend(groups)];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Formats a single PodGroup.
pub fn pod_group(picture: &TreePicture, data: Option<Data>) -> String {
    let seen = PodGroupStatus::of(picture);
    data.map_or_else(|| pod_groups::one(&seen, Style::of_stdout()), |data| data.text(&seen))
}

/// Formats a single group with its conditions and advice, as text.
pub fn one(picture: &Picture) -> String {
    text(std::slice::from_ref(picture), &[], Detail { of_one: true, batches: false })
}
