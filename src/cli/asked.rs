//! What a person asks of groups: `resume` and `rollback` write the time on the object that carries each group.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::connection::{Connection, Failure};
use super::options::Output;
use super::terminal::{is_asked, report, says_yes, shown};
use crate::cluster::write::resumed;
use crate::model::Group;
use crate::model::moment::Moment;

/// Whether requests are written, and whether a person confirms them.
#[derive(Args, Debug)]
pub struct AskArgs {
    /// Print the requests without writing them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation, which is asked for on a terminal only.
    #[arg(short, long)]
    yes: bool,
}

/// The requests that were written, and those that could not be.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// True when nothing was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    asked: Vec<Asked>,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Asked {
    namespace: String,
    group: String,
    /// The conditions or coordinations that the request is about.
    of: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Failed {
    namespace: String,
    group: String,
    error: String,
}

/// A request about one condition or coordination.
#[derive(Debug)]
pub struct Request {
    /// The annotation that has the time.
    pub annotation: &'static str,
    pub of: String,
    /// Time since when there is something to ask for.
    pub since: Moment,
}

impl Outcome {
    /// Writes requests about groups, each with its own. `question` is asked before.
    pub async fn of(
        connection: &Connection,
        args: &AskArgs,
        question: &str,
        all: Vec<(&Group, Vec<Request>)>,
    ) -> Result<Self, Failure> {
        let all: Vec<_> = all.into_iter().filter(|(_, requests)| !requests.is_empty()).collect();
        if !all.is_empty() && !args.dry_run && !args.yes && is_asked() {
            let name = |group: &Group| shown(&format!("{}/{}", group.key.namespace, group.key.name));
            let names: Vec<_> = all.iter().map(|(group, _)| name(group)).collect();
            if !says_yes(&format!("{}\n{question}", names.join("\n"))) {
                return Err(Failure::Other("nothing was done: not confirmed".to_owned()));
            }
        }
        let mut outcome = Self { dry_run: args.dry_run, ..Self::default() };
        for (group, requests) in all {
            outcome.ask(connection, group, requests).await;
        }
        Ok(outcome)
    }

    /// Writes requests about a group, if there are any.
    async fn ask(&mut self, connection: &Connection, group: &Group, requests: Vec<Request>) {
        let Some(since) = requests.iter().map(|request| request.since).max() else { return };
        let (namespace, name) = (group.key.namespace.to_string(), group.key.name.to_string());
        // The local clock may be behind the leader's.
        let at = Moment(jiff::Timestamp::now().as_second()).max(since);
        let annotations: BTreeSet<_> = requests.iter().map(|request| request.annotation).collect();
        let written =
            if self.dry_run { Ok(()) } else { resumed::resume(&connection.client, group, &annotations, at).await };
        match written {
            Ok(()) => {
                let of = requests.into_iter().map(|request| request.of).collect();
                self.asked.push(Asked { namespace, group: name, of });
            }
            Err(error) => {
                let error = connection.write_failure(&error).to_string();
                self.failed.push(Failed { namespace, group: name, error });
            }
        }
    }

    /// Prints what was asked, a line for each group: `line` returns it from the group's name and what the request is about. `none`
    /// says that there was nothing to ask for. The exit code is 1 if a request could not be written.
    pub fn tell(&self, output: Output, none: &str, line: impl Fn(&str, &str) -> String) -> ExitCode {
        let text = || match self {
            Self { asked, failed, .. } if asked.is_empty() && failed.is_empty() => format!("{none}\n"),
            Self { asked, dry_run, .. } => {
                let line = |Asked { namespace, group, of }: &Asked| {
                    line(&shown(&format!("{namespace}/{group}")), &shown(&of.join(", "))) + "\n"
                };
                let nothing = if *dry_run { "nothing was done: this was a dry run\n" } else { "" };
                asked.iter().map(line).collect::<String>() + nothing
            }
        };
        let text = output.data().map_or_else(text, |data| data.text(self));
        let failed =
            |Failed { namespace, group, error }: &Failed| shown(&format!("{namespace}/{group}")) + ": " + error;
        report(&text, self.failed.iter().map(failed))
    }
}
