//! `rolegate rollback`: sends the rollouts of a group back.

use std::process::ExitCode;

use clap::Args;

use super::asked::{AskArgs, Outcome, Request};
use super::connection::{Failure, LiveArgs, block_on};
use super::live;
use super::options::Output;
use crate::api::status::{CoordinationState, RolloutState};
use crate::model::moment::Moment;
use crate::model::{Group, names};

/// Arguments of `rollback`.
#[derive(Args, Debug)]
pub struct RollbackArgs {
    /// Name of the group.
    #[arg(value_name = "GROUP")]
    group: String,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    ask: AskArgs,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Asks for a rollback. The exit code is 0 when the request is written or no rollout is under way, 1 when it could
/// not be written, or the user declines.
pub fn run(args: &RollbackArgs) -> ExitCode {
    block_on(rollback(args))
}

async fn rollback(args: &RollbackArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let seen = live::list(&connection, Some(connection.namespace.as_str())).await?;
    let picture = live::named(&seen.index, &connection.namespace, &args.group)?;
    let all = picture.group().map(|group| (&**group, under_way(group))).into_iter().collect();
    let outcome = Outcome::of(&connection, &args.ask, "Send its rollouts back?", all).await?;
    let none = "nothing to send back: no rollout is under way, or it goes back already";
    Ok(outcome.tell(args.output, none, |group, of| {
        format!("{group} is asked to go back ({of}); its condition RolledBack tells whether it does")
    }))
}

/// Returns a request for each coordination whose rollout is under way and did not go back.
fn under_way(group: &Group) -> Vec<Request> {
    let open = |state: &CoordinationState| {
        let RolloutState { since, rolled_back: None, .. } = state.rollout.as_ref()? else { return None };
        let since = Moment::parse(since.as_deref()?)?;
        Some(Request { annotation: names::ROLLED_BACK_AT, of: state.name.clone(), since })
    };
    group.status.coordination_state.iter().filter_map(open).collect()
}
