//! `rolegate release`: lifts our gates and thaws rollouts by hand in an emergency, regardless of the planner.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use futures::{StreamExt, stream};
use kube::api::ListParams;
use serde::Serialize;

use super::connection::{Connection, Failure, LiveArgs, block_on};
use super::live;
use super::options::{Output, Subject};
use super::terminal::{report, says_yes, shown};
use crate::api::workload::{LEADER_WORKER_SET, LeaderWorkerSet, STATEFUL_SET, StatefulSet};
use crate::cluster::objects::api;
use crate::cluster::write::deadline::WRITE_TIMEOUT;
use crate::cluster::write::removal;
use crate::cluster::write::writer::Writer;
use crate::model::wording::counted;
use crate::model::{RolledWorkload, WorkloadObject, names};
use crate::plan::PodRef;

/// Arguments of `release`.
#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// Kind of the object.
    #[arg(value_enum, required_unless_present = "all", requires = "name")]
    kind: Option<Subject>,
    /// Name of the object.
    name: Option<String>,
    /// Release every held pod and every frozen workload of the namespace.
    #[arg(long, conflicts_with = "kind", requires = "namespace")]
    all: bool,
    #[command(flatten)]
    live: LiveArgs,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Writes in flight at a time.
const AT_A_TIME: usize = 16;
/// Maximum number of names in the question.
const NAMED: usize = 5;

#[derive(Debug, Default, Serialize)]
struct Outcome {
    namespace: String,
    released: Vec<String>,
    /// Pods that were deleted before their gate was lifted.
    gone: Vec<String>,
    /// Workloads whose partition is the user's again.
    thawed: Vec<String>,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    /// Name of a pod, or `Kind/name` of a workload.
    object: String,
    error: String,
}

/// Lifts gates. The exit code is 0 when all are lifted, 1 when one is not, or when the user declines.
pub fn run(args: &ReleaseArgs) -> ExitCode {
    block_on(release(args))
}

async fn release(args: &ReleaseArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let pods = held_pods(args, &connection).await?;
    let workloads = open_rollouts(args, &connection).await?;
    let nothing = pods.is_empty() && workloads.is_empty();
    if !nothing && !args.yes && !confirm(&pods, &workloads, &connection.namespace) {
        return Err(Failure::Other("nothing was released: not confirmed".to_owned()));
    }
    let writer = Writer::new(connection.client.clone(), WRITE_TIMEOUT);
    let lift = async |pod: PodRef| {
        let released = writer.in_time(writer.release_unseen(&connection.namespace, &pod)).await;
        (released, pod.name.to_string())
    };
    let mut results = stream::iter(pods).map(lift).buffer_unordered(AT_A_TIME);
    let mut outcome = Outcome { namespace: connection.namespace.clone(), ..Outcome::default() };
    while let Some((result, pod)) = results.next().await {
        match result {
            Ok(Some(_)) => outcome.released.push(pod),
            Ok(None) => outcome.gone.push(pod),
            Err(error) => outcome.failed.push(Failed { error: connection.failure(&error).to_string(), object: pod }),
        }
    }
    outcome.released.sort();
    for workload in workloads {
        let name = format!("{}/{}", workload.key.kind.as_str(), workload.key.name);
        let thaw = writer.set_partition(&workload, workload.asked_partition(), true);
        match writer.in_time(thaw).await {
            Ok(Some(_)) => outcome.thawed.push(name),
            Ok(None) => {
                outcome.failed.push(Failed { error: "it was changed meanwhile: try again".to_owned(), object: name });
            }
            Err(error) => outcome.failed.push(Failed { error: connection.failure(&error).to_string(), object: name }),
        }
    }
    let text = args.output.data().map_or_else(|| outcome.text(), |data| data.text(&outcome));
    Ok(report(&text, outcome.failed.iter().map(|Failed { object, error }| shown(object) + ": " + error)))
}

/// Returns the selected pods with our gate.
async fn held_pods(args: &ReleaseArgs, connection: &Connection) -> Result<Vec<PodRef>, Failure> {
    let namespace = &connection.namespace;
    match (args.kind, args.name.as_deref()) {
        (Some(Subject::Pod), Some(name)) => {
            let pod = live::pod(connection, name).await?;
            Ok(removal::held(&pod).into_iter().collect())
        }
        (Some(Subject::Group), Some(name)) => {
            let seen = live::list(connection, Some(namespace)).await?;
            let picture = live::named(&seen.index, namespace, name)?;
            Ok(picture.snapshot.pods.held().map(|pod| pod.pod.clone()).collect())
        }
        _ => {
            let pods = removal::held_pods(&connection.client, Some(namespace)).await;
            let pods = pods.map_err(|error| connection.failure(&error))?;
            Ok(pods.into_iter().map(|(_, pod)| pod).collect())
        }
    }
}

/// Returns the selected workloads with an open rollout.
async fn open_rollouts(args: &ReleaseArgs, connection: &Connection) -> Result<Vec<RolledWorkload>, Failure> {
    let namespace = &connection.namespace;
    let workloads = match (args.kind, args.name.as_deref()) {
        (Some(Subject::Pod), _) => Vec::new(),
        (Some(Subject::Group), Some(name)) => {
            let seen = live::list(connection, Some(namespace)).await?;
            live::named(&seen.index, namespace, name)?.snapshot.workloads
        }
        _ => {
            let sets = api::<StatefulSet>(&connection.client, STATEFUL_SET, Some(namespace));
            let sets = sets.list(&ListParams::default()).await.map_err(|error| connection.failure(&error))?;
            let groups = api::<LeaderWorkerSet>(&connection.client, LEADER_WORKER_SET, Some(namespace));
            let groups = match groups.list(&ListParams::default()).await {
                Ok(groups) => groups.items,
                Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
                Err(error) => return Err(connection.failure(&error)),
            };
            let sets = sets.items.iter().filter_map(WorkloadObject::rolled);
            sets.chain(groups.iter().filter_map(WorkloadObject::rolled)).collect()
        }
    };
    // A manual thaw applies at any revision.
    let open = workloads.into_iter().filter(RolledWorkload::is_open);
    Ok(open.map(|workload| RolledWorkload { update_revision: None, ..workload }).collect())
}

/// Asks for confirmation.
fn confirm(pods: &[PodRef], workloads: &[RolledWorkload], namespace: &str) -> bool {
    let mut named: Vec<_> = pods.iter().take(NAMED).map(|pod| shown(&pod.name)).collect();
    if pods.len() > NAMED {
        named.push("…".to_owned());
    }
    let mut question = String::new();
    if !pods.is_empty() {
        _ = write!(
            question,
            "Lift the gate {} from {} in namespace {namespace:?} ({})?\nThey are scheduled at once. ",
            names::GATE,
            counted(pods.len(), "pod"),
            named.join(", "),
        );
    }
    if !workloads.is_empty() {
        let named: Vec<_> = workloads.iter().map(|workload| shown(&workload.key.name)).collect();
        _ = write!(
            question,
            "Thaw {} in namespace {namespace:?} ({})?\nThey are rolled out at once, each by itself. ",
            counted(workloads.len(), "workload"),
            named.join(", "),
        );
    }
    says_yes(question.trim_end())
}

impl Outcome {
    fn text(&self) -> String {
        if [&self.released, &self.gone, &self.thawed].iter().all(|list| list.is_empty()) && self.failed.is_empty() {
            return "no pod carries the gate: nothing to do\n".to_owned();
        }
        let mut text = String::new();
        for (word, pods) in [("released", &self.released), ("gone", &self.gone), ("thawed", &self.thawed)] {
            text.extend(pods.iter().map(|pod| format!("{word} {}/{}\n", self.namespace, shown(pod))));
        }
        let (released, gone, failed) = (self.released.len(), self.gone.len(), self.failed.len());
        let thawed = match self.thawed.len() {
            0 => String::new(),
            count => format!(", {count} thawed"),
        };
        text + &format!("{released} released, {gone} gone{thawed}, {failed} failed\n")
    }
}
