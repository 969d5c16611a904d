//! `rolegate rollback`: sends the rollouts of a group back.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::connection::{Failure, LiveArgs, block_on};
use super::live;
use super::options::Output;
use super::terminal::{report, shown};
use crate::api::status::{CoordinationState, RolloutState};
use crate::cluster::write::resumed;
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
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Serialize)]
struct Outcome {
    namespace: String,
    group: String,
    /// Coordinations whose rollouts are asked to go back.
    coordinations: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Asks for a rollback. The exit code is 0 when the request is written or no rollout is under way, 1 when it could not be written.
pub fn run(args: &RollbackArgs) -> ExitCode {
    block_on(rollback(args))
}

async fn rollback(args: &RollbackArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let seen = live::list(&connection, Some(connection.namespace.as_str())).await?;
    let picture = live::named(&seen.index, &connection.namespace, &args.group)?;
    let (namespace, group) = (connection.namespace.clone(), args.group.clone());
    let mut outcome = Outcome { namespace, group, coordinations: Vec::new(), error: None };
    if let Some(group) = picture.group() {
        let (coordinations, since): (Vec<_>, Vec<_>) = under_way(group).unzip();
        // The local clock may be behind the leader's.
        let at = since.into_iter().fold(Moment(jiff::Timestamp::now().as_second()), Moment::max);
        if !coordinations.is_empty() {
            let annotations = BTreeSet::from([names::ROLLED_BACK_AT]);
            let written = resumed::resume(&connection.client, group, (&annotations, at)).await;
            outcome.error = written.err().map(|error| connection.write_failure(&error).to_string());
        }
        outcome.coordinations = coordinations;
    }
    let text = args.output.data().map_or_else(|| outcome.text(), |data| data.text(&outcome));
    let name = shown(&format!("{}/{}", outcome.namespace, outcome.group));
    Ok(report(&text, outcome.error.iter().map(|error| format!("{name}: {error}"))))
}

/// Returns the coordinations whose rollouts are under way and did not go back, and when their last edits were seen.
fn under_way(group: &Group) -> impl Iterator<Item = (String, Moment)> {
    let open = |state: &CoordinationState| {
        let RolloutState { since, rolled_back: None, .. } = state.rollout.as_ref()? else { return None };
        Some((state.name.clone(), Moment::parse(since.as_deref()?)?))
    };
    group.status.coordination_state.iter().filter_map(open)
}

impl Outcome {
    fn text(&self) -> String {
        let (namespace, group) = (shown(&self.namespace), shown(&self.group));
        if self.error.is_some() {
            String::new()
        } else if self.coordinations.is_empty() {
            "nothing to send back: no rollout is under way, or it goes back already\n".to_owned()
        } else {
            format!(
                "{namespace}/{group} is asked to go back ({}); its condition RolledBack tells whether it does\n",
                shown(&self.coordinations.join(", "))
            )
        }
    }
}
