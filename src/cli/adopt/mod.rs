//! `rolegate adopt`: makes running workloads the roles of a group, without holding a pod.

mod asked;
mod coordination;
mod plan;
pub(in crate::cli) mod running;
mod steps;
pub(in crate::cli) mod target;
mod text;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize as _;

use self::asked::{Asked, Refused};
use self::plan::{Plan, plan};
use self::running::{Carrier, Running};
use self::steps::Steps;
use self::target::{Size, Target};
use crate::api::ObjectKind;
use crate::api::autoscaler::AUTOSCALER;
use crate::api::disruption_budget::POD_DISRUPTION_BUDGET;
use crate::cli::connection::{Connection, Failure, LiveArgs, block_on};
use crate::cli::duration;
use crate::cli::options::{Output, parse_subdomain};
use crate::cli::terminal::{print, says_yes, shown};
use crate::cluster::watch::sources::NAMESPACE;
use crate::cluster::write::adoption::Adoption;
use crate::cluster::write::deadline::WRITE_TIMEOUT;
use crate::model::CARRIERS;

/// Arguments of `adopt`.
#[derive(Args, Debug)]
pub struct AdoptArgs {
    /// Running workloads: statefulset/prefill, lws/decode, deployment/router; with a role name,
    /// prefill=statefulset/llm-prefill.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<Target>,
    /// Name of the group; by default that of the group that refers to the workloads, or the common beginning of their
    /// names.
    #[arg(long, value_name = "NAME", value_parser = parse_subdomain)]
    group: Option<String>,
    /// Replicas of roles in a segment, as prefill=2,decode=1; by default the ratio of the running replicas.
    #[arg(long, value_name = "ROLE=N", value_delimiter = ',')]
    segment_size: Vec<Size>,
    /// `maxSkew` of the rollout; by default 25%.
    #[arg(long, value_name = "PERCENT")]
    max_skew: Option<String>,
    #[command(flatten)]
    live: LiveArgs,
    /// Print the changes, and whether they are allowed, without making them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Time-out for the group to become ready.
    #[arg(long, value_parser = duration::parse, default_value = "2m", value_name = "DURATION")]
    timeout: Duration,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Runs `adopt`. The exit code is 0 on success, and 1 when the adoption is refused, declined or fails.
pub fn run(args: &AdoptArgs) -> ExitCode {
    block_on(adopt(args))
}

async fn adopt(args: &AdoptArgs) -> Result<ExitCode, Failure> {
    let connection = args.live.connect(false).await?;
    let api = Adoption::new(connection.client.clone(), &connection.namespace, WRITE_TIMEOUT);
    is_served(&connection, &api).await?;
    let plan = match planned(args, &connection, &api).await? {
        Ok(plan) => plan,
        Err(refused) => {
            refused.0.iter().for_each(|why| eprintln!("rolegate: not adopted: {}", shown(why)));
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Some(object) = &plan.coordination {
        api.create(object, true).await.map_err(|error| connection.write_failure(&error))?;
    }
    let data = args.output.data();
    if data.is_none() {
        print(&text::before(&plan));
    }
    if !args.yes && !args.dry_run && !says_yes("Do all this?") {
        return Err(Failure::Other("nothing was done: not confirmed".to_owned()));
    }
    if !args.dry_run {
        let tell = |line: &str| if data.is_none() { println!("{}", shown(line)) } else { eprintln!("{}", shown(line)) };
        Steps { connection: &connection, api: &api, plan: &plan, timeout: args.timeout, tell: &tell }.all().await?;
    }
    print(&match data {
        Some(data) => data.text(&text::account(&plan, args.dry_run)),
        None => text::after(&plan, args.dry_run),
    });
    Ok(ExitCode::SUCCESS)
}

/// Checks that the namespace is served: in a namespace where nothing is held, a labelled workload rolls at once.
async fn is_served(connection: &Connection, api: &Adoption) -> Result<(), Failure> {
    // A user who may not read the namespace learns it from the dry run of the template.
    let Ok(Some(namespace)) = api.read(NAMESPACE, &connection.namespace).await else { return Ok(()) };
    let labels = namespace.pointer("/metadata/labels").map(BTreeMap::deserialize).and_then(Result::ok);
    let stance = connection.serving().await.stance(&labels.unwrap_or_default());
    let Some(why) = stance.lets_go() else { return Ok(()) };
    let (words, said_by) = (why.words(), why.said_by());
    Err(Failure::Other(format!(
        "not adopted: {words} ({said_by}), so that nothing of it would be held or rolled in lockstep"
    )))
}

async fn planned(args: &AdoptArgs, connection: &Connection, api: &Adoption) -> Result<Result<Plan, Refused>, Failure> {
    let fault = |error: &kube::Error| connection.write_failure(error);
    let pods = api.pods().await.map_err(|error| fault(&error))?;
    let (mut running, mut refused) = (Vec::new(), Vec::new());
    for target in &args.workloads {
        if running.iter().any(|known: &Running| known.target.kind == target.kind && known.target.name == target.name) {
            continue;
        }
        let found = api.read(target.kind.object_kind(), &target.name).await.map_err(|error| fault(&error))?;
        match found.map(|object| Running::of(target.clone(), object, &pods)) {
            Some(Ok(one)) => running.push(one),
            Some(Err(why)) => refused.push(why),
            None => refused.push(format!("{target} is not in namespace {:?}", connection.namespace)),
        }
    }
    if !refused.is_empty() {
        return Ok(Err(Refused(refused)));
    }
    let mut carriers = Vec::new();
    for kind in CARRIERS {
        let found = api.list(*kind).await.map_err(|error| fault(&error))?;
        carriers.extend(found.into_iter().map(|object| Carrier { kind: *kind, object }));
    }
    let mut others: Vec<(ObjectKind, _)> = Vec::new();
    for kind in [AUTOSCALER, POD_DISRUPTION_BUDGET] {
        // Objects that cannot be read cause no warnings.
        let found = api.list(kind).await.unwrap_or_default();
        others.extend(found.into_iter().map(|object| (kind, object)));
    }
    let asked = Asked {
        namespace: &connection.namespace,
        group: args.group.as_deref(),
        sizes: &args.segment_size,
        max_skew: args.max_skew.as_deref(),
    };
    Ok(plan(&asked, &running, &carriers, &others))
}
