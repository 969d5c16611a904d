//! `rolegate plan`: shows whether a group would be admitted, and in what order its gates are lifted, without a cluster.

mod chart;
#[cfg(test)]
mod claims_tests;
mod json;
mod stairs;
mod svg;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::api::status::{Condition, GroupStatus};
use crate::cli::check::judge;
use crate::cli::context::context;
use crate::cli::data::Data;
use crate::cli::documents::{Document, Documents, Unreadable, name_of, views};
use crate::cli::fit::FileCluster;
use crate::cli::options::RoomArgs;
use crate::cli::progress::Progress;
use crate::cli::serving::StrictArg;
use crate::cli::terminal::end;
use crate::fit::{Fitted, fit_of_run};
use crate::model::{AwaitedKind, Claims, Coordination, Group};
use crate::plan::simulate::RunError;
use crate::plan::status::conditions::conflicted;
use crate::plan::{AwaitedObjects, ObservedCounts, Run, decide_once, simulate};
use crate::rules::decode::decode;
use crate::rules::rule_setting::together;
use crate::rules::{Judged, Operation, Options, World, read_group};

/// Arguments of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Files, directories of *.yaml, *.yml and *.json, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Existing objects, such as the workloads of a RoleCoordination; with nodes, only pods that fit there run, and the
    /// plan shows the place of each batch.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Counts for one decision instead of the whole run: {roles: {NAME: {created, released, scheduled, ready, unavailable}},
    /// everReady, accepted, recoveries}; in a rollout each role also has updated, updatedReady and updatedOrdinals, those at the
    /// new version, and `failed: true` lets those that are not ready fail it, `rolledBack: true` is of one that went back.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    strict: StrictArg,
    #[command(flatten)]
    room: RoomArgs,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// How plans are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text.
    Text,
    /// Text with the share of each role that is released after each release.
    Wide,
    /// A chart with a column for each release.
    Chart,
    /// The chart as SVG.
    Svg,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

struct Planned<'a> {
    document: &'a Document,
    judged: Judged,
    plan: Result<Plan, NoPlan>,
}

struct Plan {
    group: Arc<Group>,
    run: Result<Run, RunError>,
    /// The places of batches; empty when the files have no nodes.
    fitted: Vec<Fitted>,
}

/// The reason why an object has no plan.
#[derive(Debug, thiserror::Error)]
enum NoPlan {
    /// It does not have the shape of its kind.
    #[error("unreadable")]
    Shape,
    /// Another object carries the group; the status is what the loop would write.
    #[error("controls nothing, since another object carries the group")]
    Conflicted(Arc<Group>, Box<GroupStatus>),
    /// A RoleBasedGroup that names a RoleCoordination: its pods are held until the RoleCoordination exists.
    #[error("waits for RoleCoordination {1:?}, which is not in the files")]
    Waits(Arc<Group>, String),
}

impl Planned<'_> {
    fn run(&self) -> Option<&Run> {
        self.plan.as_ref().ok()?.run.as_ref().ok()
    }

    fn group(&self) -> Option<&Group> {
        match &self.plan {
            Ok(Plan { group, .. }) | Err(NoPlan::Conflicted(group, _) | NoPlan::Waits(group, _)) => Some(group),
            Err(NoPlan::Shape) => None,
        }
    }

    /// Returns why the plan is missing or incomplete.
    fn error(&self) -> Option<&dyn Error> {
        match &self.plan {
            Ok(plan) => plan.run.as_ref().err().map(|error| error as &dyn Error),
            Err(error) => Some(error),
        }
    }

    fn conditions(&self) -> &[Condition] {
        match (&self.plan, self.run()) {
            (Err(NoPlan::Conflicted(_, status)), _) => &status.conditions,
            (_, Some(run)) => &run.seen.status.conditions,
            _ => &[],
        }
    }

    /// Returns the places of batches, if known.
    fn fitted(&self) -> &[Fitted] {
        self.plan.as_ref().map(|plan| plan.fitted.as_slice()).unwrap_or_default()
    }

    fn is_complete(&self) -> bool {
        self.run().is_some_and(|run| run.complete)
    }
}

/// Plans the groups in the files. The exit code is 0 when all are admitted and complete, 1 when not, 2 when something
/// is unreadable; a single decision need not complete a group.
pub fn run(args: &PlanArgs) -> ExitCode {
    write(args, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Like [`run`], but prints to `out`.
pub fn write(args: &PlanArgs, out: &mut impl Write) -> ExitCode {
    if args.state.is_some() && matches!(args.output, Output::Chart | Output::Svg) {
        let message = "a chart or a picture shows a whole run: not with --state";
        super::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
    let mut read = Documents::read(&args.files);
    let with = Documents::read_dump(&args.with);
    read.unreadable.extend(with.unreadable);
    let observed = args.state.as_ref().map(read_state).transpose().unwrap_or_else(|fault| {
        read.unreadable.push(fault);
        None
    });
    let observed = args.state.as_ref().zip(observed.as_ref()).map(|(path, counts)| (name_of(path), counts));
    let progress = Progress::of("planning");
    let rules = together(args.strict.setting()).unwrap_or_default();
    let options = Options { rules, ignored_resources: args.room.ignored(), ..Options::default() };
    let planned = planned(&read.documents, &with.documents, observed.as_ref(), options, &mut read.unreadable);
    drop(progress);
    if planned.is_empty() && read.unreadable.is_empty() {
        eprintln!("{NO_GROUP}");
        return ExitCode::from(2);
    }
    let detail = text::Detail { single: observed.is_some(), shares: args.output == Output::Wide };
    let mut data = |data: Data| out.write_all(data.text(&json::answer(&planned)).as_bytes());
    let printed = match args.output {
        Output::Json => data(Data::Json),
        Output::Yaml => data(Data::Yaml),
        Output::Text | Output::Wide => text::print(out, &planned, detail),
        Output::Chart => chart::print(out, &planned),
        // Without a readable group there is no picture.
        Output::Svg if planned.is_empty() => Ok(()),
        Output::Svg => out.write_all(svg::picture(&planned).as_bytes()),
    };
    end(out, printed);
    read.unreadable.iter().for_each(|unreadable| eprintln!("{unreadable}"));
    ExitCode::from(if read.unreadable.is_empty() { verdict(&planned, args.state.is_some()) } else { 2 })
}

/// Error when there is nothing to plan.
const NO_GROUP: &str = "rolegate: no RoleBasedGroup and no RoleCoordination in the files";

/// The file name of observed counts, and the counts.
type State<'a> = (String, &'a ObservedCounts);

/// An object that carries a group, the group, and the number of its view.
type Found<'a> = (&'a Document, Result<Arc<Group>, NoPlan>, usize);

/// Plans the groups of files.
fn planned<'a>(
    files: &'a [Document],
    with: &'a [Document],
    observed: Option<&State<'_>>,
    options: Options,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<Planned<'a>> {
    let is_judged = |document: &Document| document.carrier_kind().is_some();
    let views = views(files, with);
    let mut all = Vec::new();
    let mut found = Vec::new();
    for (number, (own, seen)) in views.iter().enumerate() {
        // What is unreadable is told once.
        let faults = if number == 0 { &mut *unreadable } else { &mut Vec::new() };
        let file = own.first().map(|first| first.source.name.as_str()).filter(|_| views.len() > 1);
        let world = context(options, (files, is_judged), with, file, faults);
        let cluster = FileCluster::with_nodes(seen.iter().copied(), options.ignored_resources, faults);
        found.extend(carried(own, seen, &world).into_iter().map(|(document, group)| (document, group, number)));
        all.push((world, cluster));
    }
    if let Some((file, message)) = observed.and_then(|(file, counts)| Some((file, unknown_role(counts, &found)?))) {
        unreadable.push(Unreadable { file: file.clone(), at: None, message });
    }
    let counts = observed.map(|(_, counts)| *counts);
    let mut planned = |(document, group, view): Found<'a>| {
        let (world, cluster) = all.get(view)?;
        let given = group.as_ref().ok().map(|group| awaited(group, files.iter().chain(with), unreadable));
        let counts = counts.map(|counts| ObservedCounts { objects: given.unwrap_or_default(), ..counts.clone() });
        Some(plan(document, group, world, counts.as_ref(), cluster.as_ref()))
    };
    found.into_iter().filter_map(&mut planned).collect()
}

/// Returns the objects in files that a group waits for.
fn awaited<'a>(
    group: &Group,
    files: impl Iterator<Item = &'a Document>,
    unreadable: &mut Vec<Unreadable>,
) -> AwaitedObjects {
    let when = group.coordinations.iter().flat_map(Coordination::ready_when);
    let kinds: BTreeSet<_> = when.filter_map(|when| Some(&when.object.as_ref()?.kind)).collect();
    let mut given = Vec::new();
    for document in files {
        let (api_group, kind, namespace, name) = document.identity();
        let kind = AwaitedKind { group: api_group.to_owned(), kind: kind.to_owned() };
        if !kinds.contains(&kind) || *namespace != *group.key.namespace {
            continue;
        }
        match decode(&document.json) {
            Ok(object) => given.push((kind, name, object)),
            Err(error) => unreadable.push(document.misshapen(&error)),
        }
    }
    AwaitedObjects::given(given)
}

/// Returns the exit code. A single decision need not complete a group.
fn verdict(planned: &[Planned<'_>], single: bool) -> u8 {
    if planned.iter().any(|planned| matches!(&planned.plan, Ok(Plan { run: Err(_), .. }))) {
        return 2;
    }
    let fails = |planned: &Planned<'_>| !planned.judged.is_allowed() || (!single && !planned.is_complete());
    u8::from(planned.iter().any(fails))
}

/// Returns the exit code and the JSON output for files.
pub fn data(
    files: &[Document],
    with: &[Document],
    observed: Option<&State<'_>>,
    options: Options,
    unreadable: &mut Vec<String>,
) -> (u8, Value) {
    let mut faults = Vec::new();
    let planned = planned(files, with, observed, options, &mut faults);
    unreadable.extend(faults.iter().map(ToString::to_string));
    if planned.is_empty() && unreadable.is_empty() {
        unreadable.push(NO_GROUP.to_owned());
    }
    // The answer has no keys that are not strings.
    let answer = serde_json::to_value(json::answer(&planned)).unwrap_or_default();
    (verdict(&planned, observed.is_some()), answer)
}

/// Returns the objects that define groups, each with its group, or why it carries none. A RoleBasedGroup that another
/// object coordinates belongs to that object.
fn carried<'a>(
    documents: &'a [Document],
    seen: &[&'a Document],
    world: &World,
) -> Vec<(&'a Document, Result<Arc<Group>, NoPlan>)> {
    let read = |document: &'a Document| {
        let group = read_group(document.carrier_kind()?, &document.stored(), world);
        Some((document, group.ok().map(Arc::new)))
    };
    let objects: Vec<_> = documents.iter().filter_map(read).collect();
    let is_beside = |document: &&Document| !documents.as_ptr_range().contains(&std::ptr::from_ref(*document));
    let beside = seen.iter().copied().filter(is_beside);
    let context = beside.filter_map(|document| read(document)?.1);
    let all = objects.iter().filter_map(|(_, group)| group.clone());
    let claims = Claims::by_group(all.chain(context));
    let outcome = |group: Arc<Group>| match claims.get(&group.key) {
        Some(claims) if claims.group.is_same_object(&group) => Some(Ok(group)),
        Some(claims) if group.is_claim() => {
            let status = Box::new(conflicted(&group, &claims.group));
            Some(Err(NoPlan::Conflicted(group, status)))
        }
        Some(_) => None,
        None => {
            let name = group.coordinated_by.clone().unwrap_or_default();
            Some(Err(NoPlan::Waits(group, name)))
        }
    };
    let outcomes = objects.into_iter().filter_map(|(document, group)| match group {
        Some(group) => Some((document, outcome(group)?)),
        None => Some((document, Err(NoPlan::Shape))),
    });
    outcomes.collect()
}

fn plan<'a>(
    document: &'a Document,
    carried: Result<Arc<Group>, NoPlan>,
    world: &World,
    observed: Option<&ObservedCounts>,
    cluster: Option<&FileCluster>,
) -> Planned<'a> {
    let judged = judge(document, Operation::Create, None, world);
    let plan = carried.map(|group| {
        let of_role = |role: &crate::model::Role| {
            let workload = world.workload(role.workload.key.as_ref()?).present()?;
            Some((role.name.clone(), workload.replica_size))
        };
        let sizes: BTreeMap<_, _> = group.roles.iter().filter_map(of_role).collect();
        let site = cluster.map(|cluster| cluster.site(&group));
        let run = match observed {
            Some(observed) => decide_once(&group, &judged.errors, observed, &sizes, site),
            None => simulate(&group, &judged.errors, &sizes, site),
        };
        let fitted = run.as_ref().map(|run| fit_of_run(&group, run)).unwrap_or_default();
        Plan { group, run, fitted }
    });
    Planned { document, judged, plan }
}

fn read_state(path: &PathBuf) -> Result<ObservedCounts, Unreadable> {
    let mut read = Documents::read([path]);
    if let Some(fault) = read.unreadable.pop() {
        return Err(fault);
    }
    let fault = |message: String| Unreadable { file: name_of(path), at: None, message };
    let [state] = read.documents.as_slice() else {
        return Err(fault(format!("must be one document, and is {}", read.documents.len())));
    };
    decode(&state.json).map_err(|error| fault(error.to_string()))
}

/// Returns an error for a role of the state that no group has: it is misspelt, or the state is of another group.
fn unknown_role(observed: &ObservedCounts, carried: &[Found<'_>]) -> Option<String> {
    let groups: Vec<_> = carried.iter().filter_map(|(_, group, _)| group.as_ref().ok()).collect();
    let known = |role: &str| groups.iter().any(|group| group.role(role).is_some());
    let unknown = observed.roles.keys().find(|role| !known(role))?;
    Some(format!("roles.{unknown}: no group has this role"))
}
