//! `rolegate resume`: continues groups that wait for a user.

use std::process::ExitCode;

use clap::Args;

use super::asked::{AskArgs, Outcome, Request};
use super::connection::{Failure, LiveArgs, block_on};
use super::live;
use super::options::Output;
use crate::model::moment::Moment;
use crate::model::{Group, names};
use crate::plan::status::conditions;

/// Arguments of `resume`.
#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// Name of the group.
    #[arg(value_name = "GROUP", required_unless_present = "all_recoveries")]
    group: Option<String>,
    /// Resume every group of all namespaces whose recovery is paused or exhausted.
    #[arg(long, conflicts_with_all = ["group", "namespace"])]
    all_recoveries: bool,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    ask: AskArgs,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Resumes groups. The exit code is 0 when all waiting groups are resumed, 1 when one could not be, or the user declines.
pub fn run(args: &ResumeArgs) -> ExitCode {
    block_on(resume(args))
}

async fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let scope = args.group.is_some().then_some(connection.namespace.as_str());
    let seen = live::list(&connection, scope).await?;
    let pictures = match &args.group {
        Some(name) => vec![live::named(&seen.index, &connection.namespace, name)?],
        None => live::pictures(&seen.index),
    };
    let requests = |group: &Group| {
        let asked = Work::ALL.iter().filter(|work| work.is_asked(args));
        asked.flat_map(|work| work.waits(group)).collect()
    };
    let groups = pictures.iter().filter_map(|picture| Some(&**picture.group()?));
    let all = groups.map(|group| (group, requests(group))).collect();
    let outcome = Outcome::of(&connection, &args.ask, "Let all that waits there go on?", all).await?;
    Ok(outcome.tell(args.output, "no group waits", |group, of| format!("{group} goes on ({of})")))
}

/// Work that waits for a user.
#[derive(Clone, Copy)]
enum Work {
    Recovery,
    Rollout,
}

impl Work {
    const ALL: &[Self] = &[Self::Recovery, Self::Rollout];

    /// Reports whether the command is about such work: `--all-recoveries` ends no pause of a rollout.
    fn is_asked(self, args: &ResumeArgs) -> bool {
        matches!(self, Self::Recovery) || !args.all_recoveries
    }

    /// Returns the annotation that lets it go on.
    fn annotation(self) -> &'static str {
        match self {
            Self::Recovery => names::RESUMED_AT,
            Self::Rollout => names::ROLLOUT_RESUMED_AT,
        }
    }

    /// Returns a request for each condition by which a group waits.
    fn waits(self, group: &Group) -> impl Iterator<Item = Request> {
        let kinds: &'static [&'static str] = match self {
            Self::Recovery => conditions::RECOVERIES_WAIT,
            Self::Rollout => &[conditions::ROLLOUT_PAUSED],
        };
        let rollouts = group.status.coordination_state.iter().filter_map(|state| state.rollout.as_ref());
        let paused = rollouts.filter_map(|state| Moment::parse(state.paused_since.as_deref()?)).max();
        let since = move |kind: &'static str| {
            let told = group.status.condition(kind).filter(|told| told.status == "True")?;
            let told = told.last_transition_time.as_deref().and_then(Moment::parse)?;
            // A pause may follow another one, and the condition stays.
            let since = paused.filter(|_| matches!(self, Self::Rollout)).map_or(told, |paused| told.max(paused));
            Some(Request { annotation: self.annotation(), of: kind.to_owned(), since })
        };
        kinds.iter().filter_map(move |kind| since(kind))
    }
}
