//! `rolegate plan`: would a group be admitted, and in what order are its gates lifted? Without a cluster.

mod json;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::{ObjectKind, RoleBasedGroup, RoleCoordination};
use crate::cli::documents::{Document, Documents, Unreadable};
use crate::cli::options::Output;
use crate::cluster::watch::sources::CARRIERS;
use crate::model::{Group, GroupKey};
use crate::plan::simulate::RunError;
use crate::plan::{ObservedCounts, Run, decide_once, simulate};
use crate::rules::decode::decode;
use crate::rules::{Judged, Operation, Options, World, judge_json};

/// Arguments of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Files, directories of *.yaml, *.yml and *.json, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Objects that are there but not planned, as the workloads that a RoleCoordination refers to.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Plan one decision from these counts, instead of the whole run: {roles: {NAME: {created, released, scheduled, ready}}}.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A group with its plan.
struct Planned<'a> {
    document: &'a Document,
    judged: Judged,
    /// `None` when the object does not have the shape of its kind.
    plan: Option<Plan>,
}

struct Plan {
    group: Group,
    run: Result<Run, RunError>,
}

impl Planned<'_> {
    fn run(&self) -> Option<&Run> {
        self.plan.as_ref()?.run.as_ref().ok()
    }

    fn error(&self) -> Option<&RunError> {
        self.plan.as_ref()?.run.as_ref().err()
    }

    fn is_complete(&self) -> bool {
        self.run().is_some_and(|run| run.complete)
    }
}

/// Plans the groups in the files. The exit code is 0 when all are admitted and come up completely, 1 when not, 2 when
/// something is unreadable; a single decision need not complete anything.
pub fn run(args: &PlanArgs) -> ExitCode {
    let mut read = Documents::read(&args.files);
    let with = Documents::read(&args.with);
    read.unreadable.extend(with.unreadable);
    let mut world = World::of_manifests(Options::default());
    for document in read.documents.iter().chain(&with.documents) {
        // What does not have the shape of its kind is judged itself, and is no context.
        _ = world.add_json(&document.api_version, &document.kind, &document.json);
    }
    let observed = args.state.as_ref().map(read_state).transpose().unwrap_or_else(|fault| {
        read.unreadable.push(fault);
        None
    });
    let groups = groups(&read.documents, &world);
    if let Some(unknown) = observed.as_ref().and_then(|observed| unknown_role(observed, &groups)) {
        let file = args.state.iter().map(|path| path.display().to_string()).collect();
        read.unreadable.push(Unreadable { file, at: None, message: unknown });
    }
    if groups.is_empty() && read.unreadable.is_empty() {
        eprintln!("rolegate: no RoleBasedGroup and no RoleCoordination in the files");
        return ExitCode::from(2);
    }
    let planned: Vec<_> =
        groups.into_iter().map(|(document, group)| plan(document, group, &world, observed.as_ref())).collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let printed = match args.output {
        Output::Text => text::print(&mut out, &planned, observed.is_some()),
        Output::Json => json::print(&mut out, &planned),
    };
    // Whoever closed the pipe has seen enough; the verdict stands.
    _ = printed.and_then(|()| out.flush());
    for Unreadable { file, at, message } in &read.unreadable {
        let at = at.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
        eprintln!("{file}{at}: unreadable: {message}");
    }
    if !read.unreadable.is_empty() || planned.iter().any(|planned| planned.error().is_some()) {
        return ExitCode::from(2);
    }
    let fails =
        |planned: &Planned<'_>| !planned.judged.is_allowed() || (args.state.is_none() && !planned.is_complete());
    if planned.iter().any(fails) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Objects that carry groups, with the group where it can be read. A RoleBasedGroup without coordinations that a
/// RoleCoordination refers to is a part of that one.
fn groups<'a>(documents: &'a [Document], world: &World) -> Vec<(&'a Document, Option<Group>)> {
    let carriers = documents.iter().filter_map(|document| {
        let is_kind = |kind: &&ObjectKind| kind.kind == document.kind && kind.api_version() == document.api_version;
        let kind = CARRIERS.iter().find(is_kind)?;
        Some((document, read_group(*kind, &document.json, world)))
    });
    let carriers: Vec<_> = carriers.collect();
    let coordinated: BTreeSet<GroupKey> = carriers
        .iter()
        .filter_map(|(_, group)| group.as_ref())
        .filter(|group| group.reference.is_some())
        .map(|group| group.key.clone())
        .collect();
    let stands_alone = |group: &Group| {
        group.reference.is_some() || !group.coordinations.is_empty() || !coordinated.contains(&group.key)
    };
    carriers.into_iter().filter(|(_, group)| group.as_ref().is_none_or(stands_alone)).collect()
}

fn read_group(kind: ObjectKind, json: &str, world: &World) -> Option<Group> {
    if kind == ROLE_COORDINATION {
        let carrier: RoleCoordination = decode(json).ok()?;
        return Some(Group::from_role_coordination(kind, &carrier, world));
    }
    decode::<RoleBasedGroup>(json).ok().map(|rbg| Group::from_rbg(kind, &rbg))
}

fn plan<'a>(
    document: &'a Document,
    group: Option<Group>,
    world: &World,
    observed: Option<&ObservedCounts>,
) -> Planned<'a> {
    let judged = judge_json(&document.api_version, &document.kind, Operation::Create, &document.json, None, world);
    let judged = match judged {
        None => Judged::default(),
        Some(Ok(judged)) => judged,
        Some(Err(error)) => Judged { errors: vec![error.violation()], ..Judged::default() },
    };
    let plan = group.map(|group| {
        let size = |role: &crate::model::Role| {
            let workload = world.workload(role.workload.key.as_ref()?).present()?;
            Some((role.name.clone(), workload.replica_size))
        };
        let sizes: BTreeMap<_, _> = group.roles.iter().filter_map(size).collect();
        let run = match observed {
            Some(observed) => decide_once(&group, &judged.errors, observed, &sizes),
            None => simulate(&group, &judged.errors, &sizes),
        };
        Plan { group, run }
    });
    Planned { document, judged, plan }
}

fn read_state(path: &PathBuf) -> Result<ObservedCounts, Unreadable> {
    let mut read = Documents::read([path]);
    if let Some(fault) = read.unreadable.pop() {
        return Err(fault);
    }
    let fault = |message: String| Unreadable { file: path.display().to_string(), at: None, message };
    let [state] = read.documents.as_slice() else {
        return Err(fault(format!("must be one document, and is {}", read.documents.len())));
    };
    let mut json = serde_json::Deserializer::from_str(&state.json);
    let read = serde_path_to_error::deserialize::<_, ObservedCounts>(&mut json);
    read.map_err(|error| {
        let message = error.inner().to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        fault(if error.path().iter().len() == 0 { message.to_owned() } else { format!("{}: {message}", error.path()) })
    })
}

/// A state that names a role which no group has was made for something else, or is misspelt.
fn unknown_role(observed: &ObservedCounts, groups: &[(&Document, Option<Group>)]) -> Option<String> {
    let known = |role: &str| groups.iter().filter_map(|(_, group)| group.as_ref()).any(|g| g.role(role).is_some());
    let unknown = observed.roles.keys().find(|role| !known(role))?;
    Some(format!("roles.{unknown}: no group has this role"))
}
