//! `rolegate resume`: continues groups that wait for a user.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::connection::{Failure, LiveArgs, block_on};
use super::live;
use super::options::Output;
use super::terminal::shown;
use crate::cluster::write::resumed;
use crate::model::Group;
use crate::model::moment::Moment;
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
        let waits = waits(group);
        let Some(since) = waits.iter().map(|(_, since)| *since).max() else { continue };
        let (namespace, name) = (group.key.namespace.to_string(), group.key.name.to_string());
        // The local clock may be behind the leader's.
        let at = Moment(jiff::Timestamp::now().as_second()).max(since);
        match resumed::resume(&connection.client, group, at).await {
            Ok(()) => {
                let waited = waits.into_iter().map(|(condition, _)| condition.to_owned()).collect();
                outcome.resumed.push(Resumed { namespace, group: name, waited });
            }
            Err(error) => {
                let error = connection.write_failure(&error).to_string();
                outcome.failed.push(Failed { namespace, group: name, error });
            }
        }
    }
    let text = args.output.data().map_or_else(|| outcome.text(), |data| data.text(&outcome));
    // A closed pipe does not change the outcome.
    _ = io::stdout().lock().write_all(text.as_bytes());
    for Failed { namespace, group, error } in &outcome.failed {
        eprintln!("rolegate: {}: {error}", shown(&format!("{namespace}/{group}")));
    }
    Ok(if outcome.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the conditions by which a group waits for a user, and their times.
fn waits(group: &Group) -> Vec<(&'static str, Moment)> {
    let since = |kind: &'static str| {
        let told = group.status.condition(kind).filter(|told| told.status == "True")?;
        Some((kind, told.last_transition_time.as_deref().and_then(Moment::parse)?))
    };
    conditions::WAIT_FOR_A_PERSON.iter().filter_map(|kind| since(kind)).collect()
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
