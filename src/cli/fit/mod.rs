//! `rolegate fit`: do the batches of a group fit into the room that a cluster has left, how many of them, and where? From
//! files, without a cluster.

mod cluster;
mod json;
mod text;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use cluster::Cluster;

use crate::cli::documents::{Document, Documents};
use crate::cli::mutate::known::{Known, in_namespace};
use crate::cli::options::Output;
use crate::model::{Batching, Coordination, Domain, Group};
use crate::plan::placement::{BatchPods, NotModelled, Outlook, not_modelled, outlook};
use crate::rules::read_group;

/// Arguments of `fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// Groups: files, directories of *.yaml, *.yml and *.json, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What is there: nodes, pods, workloads, topologies, as `kubectl get nodes,pods,statefulsets -A -o json` prints them.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A group with what fits of it.
struct Fitted {
    group: Arc<Group>,
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
    /// No object in the files has the role's pods.
    #[error("nothing in the files says what the pods of role {0:?} ask for: add its workload, or its pods")]
    NoPods(String),
    /// The layer is not in the files.
    #[error("layer {1:?} of ClusterTopology {0:?} is not in the files")]
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
    let (files, with) = (Documents::read_some(&args.files), Documents::read(&args.with));
    let mut unreadable: Vec<_> =
        [&files, &with].iter().flat_map(|read| &read.unreadable).map(ToString::to_string).collect();
    let all: Vec<&Document> = files.documents.iter().chain(&with.documents).collect();
    let known = Known::of(all.iter().copied(), &mut unreadable);
    let cluster = Cluster::of(&all, &known, &mut unreadable);
    let groups = groups(&files.documents, &known);
    if groups.is_empty() && unreadable.is_empty() {
        unreadable.push("rolegate: no RoleBasedGroup and no RoleCoordination in the files".to_owned());
    }
    if cluster.room.nodes().next().is_none() && unreadable.is_empty() {
        unreadable.push("rolegate: no nodes in the files: add them by --with".to_owned());
    }
    let fitted: Vec<_> = if unreadable.is_empty() {
        groups.into_iter().map(|group| fit(&group, &known, &cluster)).collect()
    } else {
        Vec::new()
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let printed = match args.output {
        Output::Text => text::print(&mut out, &fitted),
        Output::Json => json::print(&mut out, &fitted),
    };
    // Whoever closed the pipe has seen enough; the verdict stands.
    _ = printed.and_then(|()| out.flush());
    for unreadable in &unreadable {
        eprintln!("{unreadable}");
    }
    let coordinations = || fitted.iter().flat_map(|fitted| &fitted.coordinations);
    if !unreadable.is_empty() || coordinations().any(|coordination| coordination.answer.is_err()) {
        ExitCode::from(2)
    } else if coordinations().all(FittedCoordination::all_fit) {
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

fn fit(group: &Arc<Group>, known: &Known, cluster: &Cluster) -> Fitted {
    let of = |(coordination, batching)| fit_coordination(group, coordination, batching, known, cluster);
    Fitted { group: group.clone(), coordinations: group.batched().map(of).collect() }
}

fn fit_coordination(
    group: &Group,
    coordination: &Coordination,
    batching: &Batching,
    known: &Known,
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
    let hard = batching.topology.as_ref().filter(|topology| topology.is_hard());
    let key = hard.map(|topology| match &topology.domain {
        Domain::Key(key) => Ok(key.clone()),
        Domain::Layer { topology, layer } => {
            let layers = known.world.topology(topology).present();
            let found = layers.and_then(|layers| layers.layer(layer)).map(|layer| layer.key);
            found.ok_or_else(|| NoAnswer::NoLayer(topology.clone(), layer.clone()))
        }
    });
    match key.transpose() {
        Ok(key) => fitted.key = key,
        Err(error) => {
            fitted.answer = Err(error);
            return fitted;
        }
    }
    let (batches, bound) = match cluster.batches(group, batching, fitted.key.as_deref()) {
        Ok(batches) => batches,
        Err(error) => {
            fitted.answer = Err(error);
            return fitted;
        }
    };
    fitted.bound = bound.count;
    let spread = hard.is_some_and(|topology| topology.spread);
    let pods: Vec<_> = batches.iter().flat_map(|batch: &BatchPods| batch.pods.iter().cloned()).collect();
    fitted.answer = Ok(Answer {
        not_modelled: not_modelled(&pods),
        outlook: outlook(&cluster.room, batches, fitted.key.as_deref(), spread.then_some(bound.domains)),
    });
    fitted
}
