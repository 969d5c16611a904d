//! `rolegate resume`: continues groups that wait for a user.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::connection::{Failure, LiveArgs, block_on};
use super::live;
use super::options::Output;
use super::terminal::{report, shown};
use crate::cluster::write::resumed;
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
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Default, Serialize)]
struct Outcome {
    resumed: Vec<Resumed>,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Resumed {
    namespace: String,
    group: String,
    /// Conditions by which the group waited.
    waited: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Failed {
    namespace: String,
    group: String,
    error: String,
}

/// Resumes groups. The exit code is 0 when all waiting groups are resumed, 1 when one could not be.
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
    let mut outcome = Outcome::default();
    for group in pictures.iter().filter_map(|picture| picture.group()) {
        let waits: Vec<_> =
            Work::ALL.iter().filter(|work| work.is_asked(args)).flat_map(|work| work.waits(group)).collect();
        let Some(since) = waits.iter().map(|(.., since)| *since).max() else { continue };
        let (namespace, name) = (group.key.namespace.to_string(), group.key.name.to_string());
        // The local clock may be behind the leader's.
        let at = Moment(jiff::Timestamp::now().as_second()).max(since);
        let annotations: BTreeSet<_> = waits.iter().map(|(work, ..)| work.annotation()).collect();
        match resumed::resume(&connection.client, group, (&annotations, at)).await {
            Ok(()) => {
                let waited = waits.into_iter().map(|(_, condition, _)| condition.to_owned()).collect();
                outcome.resumed.push(Resumed { namespace, group: name, waited });
            }
            Err(error) => {
                let error = connection.write_failure(&error).to_string();
                outcome.failed.push(Failed { namespace, group: name, error });
            }
        }
    }
    let text = args.output.data().map_or_else(|| outcome.text(), |data| data.text(&outcome));
    let failed = |Failed { namespace, group, error }: &Failed| shown(&format!("{namespace}/{group}")) + ": " + error;
    Ok(report(&text, outcome.failed.iter().map(failed)))
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

    /// Returns the conditions by which a group waits, and their times.
    fn waits(self, group: &Group) -> impl Iterator<Item = (Self, &'static str, Moment)> {
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
            Some((self, kind, since))
        };
        kinds.iter().filter_map(move |kind| since(kind))
    }
}

impl Outcome {
    fn text(&self) -> String {
        if self.resumed.is_empty() && self.failed.is_empty() {
            return "no group waits\n".to_owned();
        }
        let line = |one: &Resumed| {
            let (namespace, group) = (shown(&one.namespace), shown(&one.group));
            format!("{namespace}/{group} goes on ({})\n", one.waited.join(", "))
        };
        self.resumed.iter().map(line).collect()
    }
}
