//! `rolegate uninstall`: removes rolegate from a cluster, so that nothing is held any more.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::time::Instant;

use super::connection::{Connection, ConnectionArgs, Failure, LiveArgs, block_on};
use super::manifests::OWN_LABEL;
use super::options::{Output, parse_dns_label, parse_subdomain};
use super::terminal::{self, Table, says_yes, shown};
use crate::cluster::write::deadline::WRITE_TIMEOUT;
use crate::cluster::write::removal::{Item, Removal, RemovalAction, RemovalError};
use crate::cluster::write::writer::Writer;
use crate::model::wording::counted;

/// Arguments of `uninstall`.
#[derive(Args, Debug)]
pub struct UninstallArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Namespace of rolegate.
    #[arg(short, long, default_value = "rolegate-system", value_parser = parse_dns_label)]
    namespace: String,
    /// Name of the webhook configurations, the Lease and the Deployment.
    #[arg(long, default_value = "rolegate", value_parser = parse_subdomain)]
    name: String,
    /// Print the changes without making them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const AT_A_TIME: usize = 16;
/// Time in which held pods may still appear: API servers notice the removed webhook with a delay.
const SETTLE: Duration = Duration::from_secs(2);
/// Interval of searches for held pods.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for the Deployment's replicas to end, in addition to the duration of their Lease.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Serialize)]
struct Outcome {
    /// Completed items; with a dry run, planned items.
    items: Vec<Item>,
    failed: Vec<Failed>,
    /// Other rolegate installations; everything in their namespaces is left to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_to: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Failed {
    item: Item,
    error: String,
}

/// Uninstalls rolegate. The exit code is 0 when nothing is left, 1 when something is left or the user declines.
pub fn run(args: &UninstallArgs) -> ExitCode {
    block_on(uninstall(args))
}

async fn uninstall(args: &UninstallArgs) -> Result<ExitCode, Failure> {
    let connection = LiveArgs::new(args.connection.clone(), &args.namespace).connect(false).await?;
    let removal = Removal::new(Writer::new(connection.client.clone(), WRITE_TIMEOUT), &args.namespace, &args.name);
    let others = removal.others().await.map_err(|error| connection.failure(&error))?;
    let others: Vec<_> = others.into_iter().map(|other| other.name).collect();
    let plan = removal.plan().await.map_err(|error| connection.failure(&error))?;
    if args.dry_run || plan.is_empty() {
        return Ok(report(args, &Outcome { items: plan, failed: Vec::new(), left_to: others }));
    }
    if !args.yes && !says_yes(&format!("{}Do all this?", table(&plan))) {
        return Err(Failure::Other("nothing was done: not confirmed".to_owned()));
    }
    let mut work =
        Work { connection: &connection, removal: &removal, outcome: Outcome { left_to: others, ..Outcome::default() } };
    work.all().await?;
    Ok(report(args, &work.outcome))
}

struct Work<'a> {
    connection: &'a Connection,
    removal: &'a Removal,
    outcome: Outcome,
}

impl Work<'_> {
    /// Removes first what holds pods, then the replicas, then the gates of held pods. A running replica would restore
    /// its webhook configurations: if it cannot be ended, nothing is changed.
    async fn all(&mut self) -> Result<(), Failure> {
        let fault = |error: &kube::Error| self.connection.failure(error);
        let deployment = self.removal.deployment().await.map_err(|error| fault(&error))?;
        if deployment.is_empty() {
            self.until_quiet(Duration::ZERO).await?;
        }
        self.carry_out(self.removal.holds().await).await?;
        if !deployment.is_empty() {
            self.carry_out(Ok(deployment)).await?;
            self.until_quiet(PATIENCE).await?;
            self.carry_out(self.removal.holds().await).await?;
        }
        let since = Instant::now();
        loop {
            let found = self.carry_out(self.removal.marks().await).await?;
            if since.elapsed() > SETTLE && (found == 0 || !self.outcome.failed.is_empty()) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.carry_out(self.removal.own().await).await?;
        Ok(())
    }

    async fn until_quiet(&self, patience: Duration) -> Result<(), Failure> {
        self.removal.until_quiet(patience).await.map_err(|error| match error {
            RemovalError::StillRuns(_) => Failure::Other(format!("{error}: end it first, then call this again")),
            RemovalError::Api(error) => self.connection.failure(&error),
        })
    }

    /// Carries out the items, and returns their number.
    async fn carry_out(&mut self, found: Result<Vec<Item>, kube::Error>) -> Result<usize, Failure> {
        let found = found.map_err(|error| self.connection.failure(&error))?;
        let count = found.len();
        // An item that failed before is retried now.
        self.outcome.failed.retain(|failed| !found.iter().any(|item| same(item, &failed.item)));
        let steps = found.into_iter().map(async |item| (self.removal.carry_out(&item).await, item));
        let mut steps = stream::iter(steps).buffer_unordered(AT_A_TIME);
        while let Some((result, item)) = steps.next().await {
            match result {
                Ok(()) => self.outcome.items.push(item),
                Err(error) => {
                    let error = self.connection.failure(&error).to_string();
                    self.outcome.failed.push(Failed { item, error });
                }
            }
        }
        Ok(count)
    }
}

fn same(one: &Item, other: &Item) -> bool {
    (one.action, one.kind, &one.namespace, &one.name) == (other.action, other.kind, &other.namespace, &other.name)
}

fn report(args: &UninstallArgs, outcome: &Outcome) -> ExitCode {
    let text = match args.output.data() {
        Some(data) => data.text(outcome),
        None if outcome.items.is_empty() && outcome.failed.is_empty() => "rolegate is not installed\n".to_owned(),
        None if args.dry_run => table(&outcome.items),
        None => {
            table(&outcome.items)
                + &format!(
                    "{} done, {} failed; definitions, roles and namespaces stay: delete them with the tool that installed them, and \
                     what `--allow` added with `kubectl delete clusterroles,clusterrolebindings -l {OWN_LABEL}={}`\n",
                    outcome.items.len(),
                    outcome.failed.len(),
                    args.name
                )
        }
    };
    let left =
        format!("objects in namespaces of {} and ClusterTopologies are left alone\n", outcome.left_to.join(", "));
    let text = if outcome.left_to.is_empty() || args.output.data().is_some() { text } else { text + &left };
    let failed = |Failed { item, error }: &Failed| format!("{} {}: {error}", item.kind, shown(&item.name));
    terminal::report(&text, outcome.failed.iter().map(failed))
}

/// Held pods to name; further ones are counted.
const NAMED: usize = 10;

fn table(items: &[Item]) -> String {
    let mut table = Table::default();
    let is_pod = |item: &&Item| item.action == RemovalAction::Release;
    let pods = items.iter().filter(is_pod).count();
    let named = items.iter().filter(is_pod).take(NAMED);
    for item in items.iter().filter(|item| !is_pod(item)).chain(named) {
        let action = match item.action {
            RemovalAction::Delete => "delete",
            RemovalAction::Release => "release",
            RemovalAction::Thaw => "thaw",
            RemovalAction::Unprotect => "remove the finalizer of rolegate",
        };
        let place = if item.namespace.is_empty() { String::new() } else { format!("{}/", item.namespace) };
        table.row([action.to_owned(), item.kind.to_owned(), format!("{place}{}", item.name)]);
    }
    if let Some(more @ 1..) = pods.checked_sub(NAMED) {
        table.row(["release".to_owned(), "Pod".to_owned(), format!("and {} more", counted(more, "pod"))]);
    }
    table.text(0)
}
