//! `rolegate check`: judges files by the rules of the webhook.

mod github;
mod job_deadline;
pub(in crate::cli) mod json;
mod sarif;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Deserialize as _;
use serde_json::Value;

use self::job_deadline::job_deadlines;
use crate::cli::context::context;
use crate::cli::documents::{Document, Documents, Unreadable, repeated, seen_from};
use crate::cli::fit::FileCluster;
use crate::cli::node::Position;
use crate::cli::options::{Color, KaiDialectArg, RoomArgs};
use crate::cli::serving::{ModeArgs, StrictArg};
use crate::cli::terminal::end;
use crate::cluster::watch::sources::NAMESPACE;
use crate::fit::shortages;
use crate::model::words::words;
use crate::model::{Allowed, FieldPath, Mode, Serving};
use crate::rules::{
    Cause, DecodeError, Judged, Operation, Options, Severity, Violation, World, judge_json, judged_kinds, read_group,
};

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files, directories of *.yaml, *.yml and *.json, or - for standard input. At most 10,000 objects and 256 MiB; links that
    /// lead out of a directory are refused.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The same objects before an update.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,
    /// Existing objects, which are not judged.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Use of colours; NO_COLOR also turns them off.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    /// Version of KAI for which PodGroups are written.
    #[arg(long, value_enum, default_value_t = KaiDialectArg::Auto)]
    kai_dialect: KaiDialectArg,
    /// Require role names that are unique in a Grove set.
    #[arg(long)]
    strict_roles: bool,
    #[command(flatten)]
    strict: StrictArg,
    #[command(flatten)]
    modes: ModeArgs,
    #[command(flatten)]
    room: RoomArgs,
    /// Exit with 1 for warnings.
    #[arg(long)]
    fail_on_warning: bool,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text with the source line.
    Text,
    /// JSON.
    Json,
    /// Workflow commands of GitHub Actions.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

words! {
enum Weight {
    Error = "error",
    Warning = "warning",
    Note = "note",
}
}

/// An object and its verdict.
struct Checked<'a> {
    document: &'a Document,
    judged: Judged,
}

impl Checked<'_> {
    /// Returns all findings in the order of their lines.
    fn findings(&self) -> Vec<(Weight, &Violation, Position)> {
        let judged = &self.judged;
        let lists =
            [(Weight::Error, &judged.errors), (Weight::Warning, &judged.warnings), (Weight::Note, &judged.notes)];
        let found = lists.into_iter().flat_map(|(weight, list)| list.iter().map(move |violation| (weight, violation)));
        let located =
            found.map(|(weight, violation)| (weight, violation, self.document.node.locate_path(&violation.path)));
        let mut all: Vec<_> = located.collect();
        all.sort_by_key(|(_, _, at)| (at.line, at.column));
        all
    }
}

struct Checks<'a> {
    objects: Vec<Checked<'a>>,
    unreadable: &'a [Unreadable],
}

/// Judges the files. The exit code is 0 when all are allowed, 1 when an object is refused, 2 when a file is unreadable
/// or there is no object.
pub fn run(args: &CheckArgs) -> ExitCode {
    write(args, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Like [`run`], but prints to `out`.
pub fn write(args: &CheckArgs, out: &mut impl Write) -> ExitCode {
    let read = Documents::read_some(&args.files);
    let (with, old) = (Documents::read_dump(&args.with), Documents::read(&args.old));
    let mut unreadable = read.unreadable;
    unreadable.extend(with.unreadable);
    unreadable.extend(old.unreadable);
    let rules = match args.modes.rules_and(args.strict.setting()) {
        Ok(rules) => rules,
        Err(error) => {
            eprintln!("rolegate: --rule: {error}");
            return ExitCode::from(2);
        }
    };
    args.modes.without_effect().into_iter().for_each(|what| eprintln!("rolegate: {what}"));
    let options = Options {
        kai_dialect: args.kai_dialect.into(),
        strict_roles: args.strict_roles,
        allowed: Allowed::ALL,
        rules,
        // Each object is judged in the mode of its namespace.
        mode: Mode::Enforce,
        ignored_resources: args.room.ignored(),
        ..Options::default()
    };
    let worlds = Worlds::of(options, &read.documents, &with.documents, &mut unreadable);
    let serving = Serving { mode: args.modes.mode.into(), ..Serving::default() };
    let modes = modes(read.documents.iter().chain(&with.documents), &serving);
    let before: HashMap<_, _> = old.documents.iter().map(|document| (document.identity(), document)).collect();
    let twice: HashMap<_, _> = repeated(read.documents.iter())
        .into_iter()
        .filter(|(document, first)| differ(document, first))
        .map(|(document, first)| (std::ptr::from_ref(document), first))
        .collect();
    let objects = read.documents.iter().map(|document| {
        let old = before.get(&document.identity()).map(|old| old.stored());
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let mode = modes.get(document.identity().2).copied().unwrap_or(serving.mode);
        let mut judged =
            judge(document, operation, old.as_deref(), worlds.of_file(&document.source.name)).in_mode(mode);
        judged.warnings.extend(twice.get(&std::ptr::from_ref(document)).map(|first| stands_twice(document, first)));
        judged.warnings.extend(job_deadlines(document));
        Checked { document, judged }
    });
    let checks = Checks { objects: objects.collect(), unreadable: &unreadable };
    let printed = match args.output {
        Output::Text => text::print(out, &checks, args.color.is_used()),
        Output::Json => json::print(out, &checks),
        Output::Github => github::print(out, &checks),
        Output::Sarif => sarif::print(out, &checks),
    };
    end(out, printed);
    let fails = |judged: &Judged| !judged.is_allowed() || (args.fail_on_warning && !judged.warnings.is_empty());
    if !checks.unreadable.is_empty() {
        ExitCode::from(2)
    } else if checks.objects.iter().any(|checked| fails(&checked.judged)) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The contexts of the files: one for all, unless an object stands in several.
enum Worlds<'a> {
    One(World),
    Each(HashMap<&'a str, World>, World),
}

impl<'a> Worlds<'a> {
    fn of(options: Options, files: &'a [Document], with: &[Document], unreadable: &mut Vec<Unreadable>) -> Self {
        let whole = world(options, (files, true), with, None, unreadable);
        if repeated(files.iter().chain(with)).is_empty() {
            return Self::One(whole);
        }
        let names: BTreeSet<_> = files.iter().map(|document| document.source.name.as_str()).collect();
        // What is unreadable is told once.
        let of_file = |name: &'a str| (name, world(options, (files, true), with, Some(name), &mut Vec::new()));
        Self::Each(names.into_iter().map(of_file).collect(), whole)
    }

    fn of_file(&self, name: &str) -> &World {
        match self {
            Self::One(world) => world,
            Self::Each(worlds, whole) => worlds.get(name).unwrap_or(whole),
        }
    }
}

/// Reports whether two documents of one object say different things.
fn differ(one: &Document, other: &Document) -> bool {
    let read = |document: &Document| serde_json::from_str::<Value>(&document.json).unwrap_or_default();
    read(one) != read(other)
}

/// Returns the warning about an object that stands before, with other content.
fn stands_twice(document: &Document, first: &Document) -> Violation {
    let detail = format!(
        "this object stands in {} and, with other content, in {}: of what is applied together, the last counts",
        first.place(),
        document.place()
    );
    Violation {
        rule: "object-twice",
        severity: Severity::Warning,
        path: FieldPath::new("metadata").child("name"),
        cause: Cause::Duplicate,
        value: None,
        detail,
        subject: String::new(),
    }
}

/// Returns the context of the rules: `with`, and the files themselves if they exist in the cluster; with `own`, as that file sees
/// them. Adds objects with a wrong shape to `unreadable`.
pub fn world(
    options: Options,
    (files, are_there): (&[Document], bool),
    with: &[Document],
    own: Option<&str>,
    unreadable: &mut Vec<Unreadable>,
) -> World {
    let is_judged = |document: &Document| judged_kinds().any(|kind| document.is(kind));
    let known = if are_there { files } else { &[] };
    let mut world = context(options, (known, is_judged), with, own, unreadable);
    let all = files.iter().chain(with);
    let seen = own.map_or_else(|| all.clone().collect(), |own| seen_from(own, all.clone()));
    if let Some(cluster) = FileCluster::with_nodes(seen.iter().copied(), options.ignored_resources, unreadable) {
        add_shortages(&mut world, files, &cluster);
    }
    world
}

/// Returns the modes of the namespaces among the files, by name.
fn modes<'a>(all: impl Iterator<Item = &'a Document>, serving: &Serving) -> HashMap<&'a str, Mode> {
    let namespaces = all.filter(|document| document.is(NAMESPACE));
    namespaces.map(|document| (document.name.as_str(), serving.stance(&labels(document)).mode)).collect()
}

fn labels(document: &Document) -> BTreeMap<String, String> {
    let object: Value = serde_json::from_str(&document.json).unwrap_or_default();
    object.pointer("/metadata/labels").map(BTreeMap::deserialize).and_then(Result::ok).unwrap_or_default()
}

/// Adds the shortages of each group to `world`.
fn add_shortages(world: &mut World, files: &[Document], cluster: &FileCluster) {
    for document in files {
        let written = document.carrier_kind().and_then(|kind| read_group(kind, &document.stored(), world).ok());
        if let Some((written, group)) = written.zip(cluster.group(document)) {
            world.add_shortages(written.key, shortages(&cluster.fit(&group)));
        }
    }
}

/// Judges an object. An object without the shape of its kind is refused.
pub fn judge(document: &Document, operation: Operation, old: Option<&str>, world: &World) -> Judged {
    of_shape(judge_json(&document.api_version, &document.kind, operation, &document.stored(), old, world))
}

/// Returns the verdict of the rules, or a refusal of the shape.
pub(in crate::cli) fn of_shape(judged: Option<Result<Judged, DecodeError>>) -> Judged {
    match judged {
        None => Judged::default(),
        Some(Ok(judged)) => judged,
        Some(Err(error)) => Judged { errors: vec![error.violation()], ..Judged::default() },
    }
}

/// Displays an object in messages.
struct Name<'a>(&'a Document);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = self.0;
        f.write_str(if document.kind.is_empty() { "object" } else { &document.kind })?;
        match (document.namespace.as_str(), document.name.as_str()) {
            ("", name) => write!(f, " {name}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}
