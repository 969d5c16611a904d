//! `rolegate fit`: do the batches of a group fit into the room that a cluster has left, how many of them, and where? Of a
//! live cluster, or of files.

mod cluster;
mod json;
mod live;
mod text;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use cluster::Cluster;

use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::cli::connection::{LiveArgs, block_on};
use crate::cli::documents::{Document, Documents};
use crate::cli::mutate::known::{Known, in_namespace};
use crate::cli::options::Output;
use crate::cli::terminal::shown;
use crate::cluster::index::Index;
use crate::model::{Batching, Coordination, Domain, Group};
use crate::plan::placement::{BatchPods, NotModelled, Outlook, not_modelled, outlook};
use crate::rules::{Violation, judge_group, read_group};

/// Arguments of `fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// Groups of the cluster by name, or of files: *.yaml, *.yml and *.json, directories of them, or - for standard input.
    #[arg(required = true, value_name = "GROUP|FILE")]
    groups: Vec<String>,
    /// For groups of files: what is there, as `kubectl get nodes,pods,statefulsets -A -o json` prints it.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    #[command(flatten)]
    live: LiveArgs,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What is known beside the room.
trait Context {
    /// The node label of a layer of a ClusterTopology.
    fn layer_key(&self, topology: &str, layer: &str) -> Option<String>;
}

impl Context for Known {
    fn layer_key(&self, topology: &str, layer: &str) -> Option<String> {
        Some(self.world.topology(topology).present()?.layer(layer)?.key)
    }
}

impl Context for Index {
    fn layer_key(&self, topology: &str, layer: &str) -> Option<String> {
        Some(self.topology(topology)?.layer(layer)?.key)
    }
}

/// A group with what fits of it.
struct Fitted {
    group: Arc<Group>,
    /// Rules that it breaks: with any, nothing new of it is released.
    faults: Vec<Violation>,
    coordinations: Vec<FittedCoordination>,
}

/// The batches of one coordination.
struct FittedCoordination {
    name: String,
    batching: Batching,
    /// The node label of which the pods of a batch share one value; `None` where they need not.
    key: Option<String>,
    /// Batches of which every pod is bound.
    bound: u32,
    /// Batches in all.
    total: u32,
    /// Desired replicas of the group's roles.
    desired: Vec<(String, u32)>,
    answer: Result<Answer, NoAnswer>,
}

/// What fits.
struct Answer {
    outlook: Outlook,
    not_modelled: Vec<NotModelled>,
}

/// Why nobody can say what fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NoAnswer {
    /// No object has the role's pods.
    #[error("nothing says what the pods of role {0:?} ask for: neither pods nor a workload of it are known")]
    NoPods(String),
    /// The layer is not known.
    #[error("layer {1:?} of ClusterTopology {0:?} is not there")]
    NoLayer(String, String),
}

impl FittedCoordination {
    fn all_fit(&self) -> bool {
        self.answer.as_ref().is_ok_and(|answer| answer.outlook.stop.is_none())
    }

    /// What people call the domains of its batches.
    fn domains(&self) -> Option<&str> {
        match &self.batching.topology.as_ref()?.domain {
            Domain::Layer { layer, .. } => self.key.is_some().then_some(layer),
            Domain::Key(_) => self.key.as_deref(),
        }
    }
}

/// Says what fits: 0 when every batch does, 1 when one does not, 2 when something cannot be read or told.
pub fn run(args: &FitArgs) -> ExitCode {
    let files: Vec<_> = args.groups.iter().filter(|group| is_file(group)).map(PathBuf::from).collect();
    match files.len() {
        0 if args.with.is_empty() => block_on(async {
            let connection = args.live.connect(false).await?;
            let (groups, index, cluster) = live::read(&connection, &args.groups).await?;
            Ok(answer(&groups, &index, &cluster, args.output))
        }),
        count if count == args.groups.len() && !args.live.is_given() => of_files(&files, args),
        _ => {
            eprintln!(
                "rolegate: either groups of a cluster, with -n, --context and --kubeconfig, or files, with --with; what is \
                 neither there nor ends in .yaml, .yml or .json is no file"
            );
            ExitCode::from(2)
        }
    }
}

fn is_file(text: &str) -> bool {
    let path = Path::new(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    text == "-" || path.exists() || extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

fn of_files(files: &[PathBuf], args: &FitArgs) -> ExitCode {
    let (files, with) = (Documents::read_some(files), Documents::read_dump(&args.with));
    let mut unreadable: Vec<_> =
        [&files, &with].iter().flat_map(|read| &read.unreadable).map(ToString::to_string).collect();
    let all = || files.documents.iter().chain(&with.documents);
    // There may be very many of these two, and nothing about a group stands in them.
    let says_of_groups = |document: &&Document| document.kind != NODE.kind && document.kind != POD.kind;
    let known = Known::of(all().filter(says_of_groups), &mut unreadable);
    let mut cluster = Cluster::default();
    for document in all() {
        let (file, kind, name) = (&document.source.name, &document.kind, &document.name);
        let added = cluster.add(&document.api_version, kind, in_namespace(&document.json), &known);
        unreadable.extend(added.err().map(|error| format!("{file}: unreadable: {kind} {name:?}: {error}")));
    }
    cluster.number();
    let groups: Vec<_> = groups(&files.documents, &known)
        .into_iter()
        .map(|group| (judge_group(&group, None, &known.world).errors, group))
        .collect();
    if groups.is_empty() && unreadable.is_empty() {
        unreadable.push("rolegate: no RoleBasedGroup and no RoleCoordination in the files".to_owned());
    }
    if cluster.room.nodes().next().is_none() && unreadable.is_empty() {
        unreadable.push("rolegate: no nodes in the files: add them by --with".to_owned());
    }
    if unreadable.is_empty() {
        return answer(&groups, &known, &cluster, args.output);
    }
    unreadable.iter().for_each(|unreadable| eprintln!("{}", shown(unreadable)));
    ExitCode::from(2)
}

fn answer(
    groups: &[(Vec<Violation>, Arc<Group>)],
    context: &impl Context,
    cluster: &Cluster,
    output: Output,
) -> ExitCode {
    let fitted: Vec<_> = groups.iter().map(|(faults, group)| fit(group, faults, context, cluster)).collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let printed = match output {
        Output::Text => text::print(&mut out, &fitted),
        Output::Json => json::print(&mut out, &fitted),
    };
    // Whoever closed the pipe has seen enough; the verdict stands.
    _ = printed.and_then(|()| out.flush());
    let coordinations = || fitted.iter().flat_map(|fitted| &fitted.coordinations);
    if coordinations().any(|coordination| coordination.answer.is_err()) {
        ExitCode::from(2)
    } else if coordinations().all(FittedCoordination::all_fit) && fitted.iter().all(|fitted| fitted.faults.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The groups that the files are about, each once.
fn groups(files: &[Document], known: &Known) -> Vec<Arc<Group>> {
    let key = |document: &Document| {
        let json = in_namespace(&document.json).to_string();
        Some(read_group(document.carrier_kind()?, &json, &known.world).ok()?.key)
    };
    let keys: BTreeSet<_> = files.iter().filter_map(key).collect();
    keys.iter().filter_map(|key| known.group(key).cloned().map(Arc::new)).collect()
}

fn fit(group: &Arc<Group>, faults: &[Violation], context: &impl Context, cluster: &Cluster) -> Fitted {
    let of = |(coordination, batching)| fit_coordination(group, coordination, batching, context, cluster);
    Fitted { group: group.clone(), faults: faults.to_vec(), coordinations: group.batched().map(of).collect() }
}

fn fit_coordination(
    group: &Group,
    coordination: &Coordination,
    batching: &Batching,
    context: &impl Context,
    cluster: &Cluster,
) -> FittedCoordination {
    let desired = |role: &str| group.role(role).map(|role| role.desired);
    let mut fitted = FittedCoordination {
        name: coordination.display_name(),
        batching: batching.clone(),
        key: None,
        bound: 0,
        total: batching.total(desired),
        desired: group.roles.iter().map(|role| (role.name.clone(), role.desired)).collect(),
        answer: Ok(Answer { outlook: Outlook::default(), not_modelled: Vec::new() }),
    };
    fitted.answer = fitted.ask(group, context, cluster);
    fitted
}

impl FittedCoordination {
    /// What fits, with the key and the bound batches noted as far as they are found out.
    fn ask(&mut self, group: &Group, context: &impl Context, cluster: &Cluster) -> Result<Answer, NoAnswer> {
        let mut known = self.batching.sizes.keys().filter_map(|role| group.role(role));
        if let Some(role) = known.find(|role| role.workload.desired_is_unknown) {
            return Err(NoAnswer::NoPods(role.name.clone()));
        }
        let hard = self.batching.topology.as_ref().filter(|topology| topology.is_hard());
        let spread = hard.is_some_and(|topology| topology.spread);
        let key = hard.map(|topology| match &topology.domain {
            Domain::Key(key) => Ok(key.clone()),
            Domain::Layer { topology, layer } => {
                let found = context.layer_key(topology, layer);
                found.ok_or_else(|| NoAnswer::NoLayer(topology.clone(), layer.clone()))
            }
        });
        self.key = key.transpose()?;
        let key = self.key.as_deref();
        let (batches, bound) = cluster.batches(group, &self.batching, key)?;
        self.bound = bound.count;
        let pods: Vec<_> = batches.iter().flat_map(|batch: &BatchPods| batch.pods.iter().cloned()).collect();
        Ok(Answer {
            not_modelled: not_modelled(&pods),
            outlook: outlook(&cluster.room, batches, key, spread.then_some(bound.domains)),
        })
    }
}
