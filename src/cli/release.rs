//! `rolegate release`: lifts our gate by hand, in an emergency, whatever the planner says.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use futures::{StreamExt, stream};
use serde::Serialize;

use super::connection::{Connection, Failure, LiveArgs, block_on};
use super::live;
use super::terminal::{counted, says_yes, shown};
use crate::cluster::apply::{Released, Writer};
use crate::cluster::removal;
use crate::model::names;
use crate::plan::PodRef;

/// Arguments of `release`.
#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// What is released.
    #[arg(value_enum, required_unless_present = "all", requires = "name")]
    kind: Option<Subject>,
    /// Its name.
    name: Option<String>,
    /// Every pod of the namespace that carries our gate, whatever it belongs to.
    #[arg(long, conflicts_with = "kind", requires = "namespace")]
    all: bool,
    #[command(flatten)]
    live: LiveArgs,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// One pod.
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// All held pods of a group.
    #[value(aliases = ["groups", "rbg", "rolebasedgroup", "rcoord", "rolecoordination"])]
    Group,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// Writes in flight at a time.
const AT_A_TIME: usize = 16;
/// Names that a question lists.
const NAMED: usize = 5;

/// What became of the pods.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    namespace: String,
    released: Vec<String>,
    /// Deleted before their gate was lifted.
    gone: Vec<String>,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    pod: String,
    error: String,
}

/// Lifts gates. The exit code is 0 when all could be lifted, 1 when not, or when nobody said yes.
pub fn run(args: &ReleaseArgs) -> ExitCode {
    block_on(release(args))
}

async fn release(args: &ReleaseArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let pods = held_pods(args, &connection).await?;
    if !pods.is_empty() && !args.yes && !confirm(&pods, &connection.namespace) {
        return Err(Failure::Other("nothing was released: not confirmed".to_owned()));
    }
    let writer = Writer::new(connection.client.clone());
    let lift = async |pod: PodRef| (writer.release(&connection.namespace, &pod, &[]).await, pod.name.to_string());
    let mut results = stream::iter(pods).map(lift).buffer_unordered(AT_A_TIME);
    let mut outcome = Outcome { namespace: connection.namespace.clone(), ..Outcome::default() };
    while let Some((result, pod)) = results.next().await {
        match result {
            Ok(Released::Done(_)) => outcome.released.push(pod),
            Ok(Released::Gone) => outcome.gone.push(pod),
            Err(error) => outcome.failed.push(Failed { error: connection.failure(&error).to_string(), pod }),
        }
    }
    outcome.released.sort();
    let text = match args.output {
        Output::Text => outcome.text(),
        Output::Json => serde_json::to_string_pretty(&outcome).unwrap_or_default() + "\n",
    };
    // Whoever closed the pipe has seen enough; the outcome stands.
    _ = io::stdout().lock().write_all(text.as_bytes());
    for Failed { pod, error } in &outcome.failed {
        eprintln!("rolegate: {}: {error}", shown(pod));
    }
    Ok(if outcome.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The pods that are meant and carry our gate.
async fn held_pods(args: &ReleaseArgs, connection: &Connection) -> Result<Vec<PodRef>, Failure> {
    let namespace = &connection.namespace;
    match (args.kind, args.name.as_deref()) {
        (Some(Subject::Pod), Some(name)) => {
            let pod = live::pod(connection, name).await?;
            Ok(removal::held(&pod).into_iter().collect())
        }
        (Some(Subject::Group), Some(name)) => {
            let seen = live::look(connection, Some(namespace)).await?;
            let picture = live::named(&seen.index, namespace, name)?;
            let held = picture.snapshot.pods.into_iter().filter(|pod| pod.held);
            Ok(held.map(|pod| pod.pod).collect())
        }
        _ => {
            let pods = removal::held_pods(&connection.client, Some(namespace)).await;
            let pods = pods.map_err(|error| connection.failure(&error))?;
            Ok(pods.into_iter().map(|(_, pod)| pod).collect())
        }
    }
}

/// Asks; only a yes is a yes.
fn confirm(pods: &[PodRef], namespace: &str) -> bool {
    let mut named: Vec<_> = pods.iter().take(NAMED).map(|pod| shown(&pod.name)).collect();
    if pods.len() > NAMED {
        named.push("…".to_owned());
    }
    says_yes(&format!(
        "Lift the gate {} from {} in namespace {namespace:?} ({})?\nThey are scheduled at once, whatever they wait for.",
        names::GATE,
        counted(pods.len(), "pod"),
        named.join(", "),
    ))
}

impl Outcome {
    fn text(&self) -> String {
        if self.released.is_empty() && self.gone.is_empty() && self.failed.is_empty() {
            return "no pod carries the gate: nothing to do\n".to_owned();
        }
        let mut text = String::new();
        for (word, pods) in [("released", &self.released), ("gone", &self.gone)] {
            text.extend(pods.iter().map(|pod| format!("{word} {}/{}\n", self.namespace, shown(pod))));
        }
        let (released, gone, failed) = (self.released.len(), self.gone.len(), self.failed.len());
        text + &format!("{released} released, {gone} gone, {failed} failed\n")
    }
}
