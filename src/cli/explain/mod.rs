//! `rolegate explain`: why a pod or a group is held, what comes next, and what one can do.

mod advice;
mod gates;
mod group;
mod pod;
mod replicas;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::cli::connection::{Connection, Failure, LiveArgs, block_on};
use crate::cli::live::{self, Rooms};
use crate::cli::options::{Output, Subject};
use crate::cli::status;

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// What is explained.
    #[arg(value_enum)]
    kind: Subject,
    /// Its name.
    name: String,
    #[command(flatten)]
    live: LiveArgs,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Explains. The exit code is 0 when the object is there, whatever it waits for.
pub fn run(args: &ExplainArgs) -> ExitCode {
    block_on(explain(args))
}

async fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let text = match args.kind {
        Subject::Pod => explain_pod(args, &connection).await?,
        Subject::Group => {
            let seen = live::list(&connection, Some(&connection.namespace)).await?;
            match live::named(&seen.index, &connection.namespace, &args.name) {
                Ok(picture) => {
                    let picture = live::diagnose_alone(picture, &connection).await;
                    match args.output {
                        Output::Text => group::text(&picture),
                        Output::Json => group::json(&picture),
                    }
                }
                Err(none) => {
                    let Some(tree) = seen.index.tree_snapshots(Some(&args.name)).pop() else { return Err(none) };
                    status::pod_group(&live::tree(tree, &connection, &Rooms::default()).await, args.output)
                }
            }
        }
    };
    // Whoever closed the pipe has seen enough.
    _ = io::stdout().lock().write_all(crate::cli::as_called(&text).as_bytes());
    Ok(ExitCode::SUCCESS)
}

async fn explain_pod(args: &ExplainArgs, connection: &Connection) -> Result<String, Failure> {
    let pod = live::pod(connection, &args.name).await?;
    let seen = live::list(connection, Some(&connection.namespace)).await?;
    let story = pod::Story::of(&pod, connection, &seen.index, jiff::Timestamp::now()).await?;
    Ok(match args.output {
        Output::Text => story.text(),
        Output::Json => serde_json::to_string_pretty(&story).unwrap_or_default() + "\n",
    })
}
