//! What a person asks of groups: `resume` and `rollback` write the time on the object that carries each group.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde::Serialize;

use super::connection::Connection;
use super::options::Output;
use super::terminal::{report, shown};
use crate::cluster::write::resumed;
use crate::model::Group;
use crate::model::moment::Moment;

/// The requests that were written, and those that could not be.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
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
    /// Writes requests about a group, if there are any.
    pub async fn ask(&mut self, connection: &Connection, group: &Group, requests: Vec<Request>) {
        let Some(since) = requests.iter().map(|request| request.since).max() else { return };
        let (namespace, name) = (group.key.namespace.to_string(), group.key.name.to_string());
        // The local clock may be behind the leader's.
        let at = Moment(jiff::Timestamp::now().as_second()).max(since);
        let annotations: BTreeSet<_> = requests.iter().map(|request| request.annotation).collect();
        match resumed::resume(&connection.client, group, (&annotations, at)).await {
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
            Self { asked, failed } if asked.is_empty() && failed.is_empty() => format!("{none}\n"),
            Self { asked, .. } => {
                let line = |Asked { namespace, group, of }: &Asked| {
                    line(&shown(&format!("{namespace}/{group}")), &shown(&of.join(", "))) + "\n"
                };
                asked.iter().map(line).collect()
            }
        };
        let text = output.data().map_or_else(text, |data| data.text(self));
        let failed =
            |Failed { namespace, group, error }: &Failed| shown(&format!("{namespace}/{group}")) + ": " + error;
        report(&text, self.failed.iter().map(failed))
    }
}
