//! `rolegate status`: groups with their batches.

mod json;
mod pod_groups;
mod text;

pub use text::seconds_since;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures::future::join_all;

use crate::cli::connection::{Connection, Failure, LiveArgs, block_on};
use crate::cli::live::{self, Rooms};
use crate::cli::options::Output;
use crate::cli::terminal::Style;
use crate::cluster::index::{Index, SharedIndex};
use crate::cluster::watch::sources::Sources;
use crate::plan::gangs::TreeSnapshot;
use crate::report::{Picture, PodGroupStatus, TreePicture};

/// Arguments of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Only this group, with its conditions.
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    live: LiveArgs,
    /// Groups of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "group"])]
    all_namespaces: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print again whenever something changes, until interrupted; with JSON one line each time.
    #[arg(short, long)]
    watch: bool,
}

/// Changes within this time are shown together.
const COALESCE: Duration = Duration::from_millis(200);
/// How long to wait for the first lists of a watch; what may not be read never arrives.
const FIRST_LISTS: Duration = Duration::from_secs(3);
/// Moves to the top and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prints the groups. The exit code is 0 when they could be read.
pub fn run(args: &StatusArgs) -> ExitCode {
    block_on(status(args))
}

async fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(args.watch).await?;
    let scope = (!args.all_namespaces).then_some(connection.namespace.as_str());
    // The first list shows what is wrong with the connection; a watch would try for ever.
    let seen = live::list(&connection, scope).await?;
    let first = render(args, &connection, pictures(args, &connection, &seen.index)?).await;
    drop(seen);
    // Whoever closed the pipe has seen enough.
    let shown = show(args, &first);
    if !args.watch || shown.is_err() {
        return Ok(ExitCode::SUCCESS);
    }
    let index = SharedIndex::default();
    let namespaces: Vec<_> = scope.map(str::to_owned).into_iter().collect();
    let _sources = Sources::of_groups(&connection.client, &index, &namespaces);
    _ = tokio::time::timeout(FIRST_LISTS, index.synced().wait_for(|synced| *synced)).await;
    let mut last = first;
    loop {
        // A group that is gone for a moment is shown again when it is back.
        let found = pictures(args, &connection, &index.read());
        let now = match found {
            Ok(seen) => render(args, &connection, seen).await,
            Err(failure) => format!("{failure}\n"),
        };
        if now != last {
            if show(args, &now).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            last = now;
        }
        index.changed().await;
        tokio::time::sleep(COALESCE).await;
    }
}

/// What is shown.
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

async fn render(args: &StatusArgs, connection: &Connection, seen: Seen) -> String {
    let rooms = Rooms::default();
    let groups = join_all(seen.groups.into_iter().map(async |picture| match &args.group {
        Some(_) => live::diagnose_alone(picture, connection).await,
        None => live::diagnose(picture, connection, &rooms).await,
    }))
    .await;
    let trees = join_all(seen.trees.into_iter().map(|tree| live::tree(tree, connection, &rooms))).await;
    let now = jiff::Timestamp::now();
    match args.output {
        Output::Json => json::render(&groups, &trees, args.watch),
        Output::Text if groups.is_empty() && trees.is_empty() && args.all_namespaces => "no groups\n".to_owned(),
        Output::Text if groups.is_empty() && trees.is_empty() => {
            format!("no groups in namespace {:?}\n", connection.namespace)
        }
        Output::Text => {
            let texts = [text::render(&groups, args.group.is_some(), now), pod_groups::text(&trees)];
            texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
    }
}

/// One PodGroup, as it is shown among others.
pub fn pod_group(picture: &TreePicture, output: Output) -> String {
    let seen = PodGroupStatus::of(picture);
    match output {
        Output::Json => serde_json::to_string_pretty(&seen).unwrap_or_default() + "\n",
        Output::Text => pod_groups::one(&seen, Style::of_stdout()),
    }
}

fn show(args: &StatusArgs, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.watch && args.output == Output::Text {
        out.write_all(if out.is_terminal() { CLEAR } else { "---\n" }.as_bytes())?;
    }
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// One group with its conditions, for people.
pub fn one(picture: &Picture) -> String {
    text::render(std::slice::from_ref(picture), true, jiff::Timestamp::now())
}
