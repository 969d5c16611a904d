//! Number and place of the batches of a group that fit.

use std::collections::BTreeMap;

use super::cluster::{Cluster, NoAnswer};
use crate::model::{Batching, Coordination, Domain, Group};
use crate::plan::placement::{Amounts, BatchPods, NotModelled, Outlook, Stop, not_modelled, outlook, total};
use crate::rules::Shortage;

/// Node labels of the domains of coordinations that name a layer, by index of the coordination.
pub type DomainKeys = BTreeMap<usize, String>;

/// Returns the domain keys of a group. `find` maps a ClusterTopology and a layer to a node label.
pub fn domain_keys(group: &Group, find: impl Fn(&str, &str) -> Option<String>) -> DomainKeys {
    let key = |(coordination, batching): (&Coordination, &Batching)| {
        let (topology, layer) = batching.layer()?;
        Some((coordination.index, find(topology, layer)?))
    };
    group.batched().filter_map(key).collect()
}

/// Advice on a batch that fits in part.
const GOES_IN_PART: &str = "what fits of it goes, unless `whole: true` keeps it back";

/// The fit of one coordination.
#[derive(Debug)]
pub struct Fitted {
    pub name: String,
    /// Index in the list of coordinations.
    pub index: usize,
    pub batching: Batching,
    /// The node label whose value all pods of a batch share; `None` where they need not share one.
    pub key: Option<String>,
    /// Number of batches whose pods are all bound.
    pub bound: u32,
    /// Total number of batches.
    pub total: u32,
    /// Desired replicas of the group's roles.
    pub desired: Vec<(String, u32)>,
    pub answer: Result<Answer, NoAnswer>,
}

/// The fit of the unbound batches.
#[derive(Debug)]
pub struct Answer {
    /// The batches that fit one after the other, and what keeps the next one out.
    pub outlook: Outlook,
    /// Total requests of the first unbound batch.
    pub next: Amounts,
    /// Constraints of the scheduler that are not modelled.
    pub not_modelled: Vec<NotModelled>,
}

/// Returns the fit of each coordination with batches, for at most `most` unbound batches each.
pub fn fit(group: &Group, keys: &DomainKeys, cluster: &Cluster, most: usize) -> Vec<Fitted> {
    let of = |(coordination, batching)| fit_coordination(group, coordination, batching, keys, cluster, most);
    group.batched().map(of).collect()
}

/// Returns the coordinations of which fewer batches fit than wanted, where known.
pub fn shortages(fitted: &[Fitted]) -> Vec<Shortage> {
    let of = |fitted: &Fitted| {
        let outlook = &fitted.answer.as_ref().ok()?.outlook;
        let stop = outlook.stop.as_ref()?;
        Some(Shortage {
            coordination: fitted.index,
            fits: u32::try_from(outlook.fits.len()).unwrap_or(u32::MAX),
            of: fitted.total - fitted.bound,
            why: fitted.why(stop),
        })
    };
    fitted.iter().filter_map(of).collect()
}

fn fit_coordination(
    group: &Group,
    coordination: &Coordination,
    batching: &Batching,
    keys: &DomainKeys,
    cluster: &Cluster,
    most: usize,
) -> Fitted {
    let desired = |role: &str| group.role(role).map(|role| role.desired);
    let mut fitted = Fitted {
        name: coordination.display_name(),
        index: coordination.index,
        batching: batching.clone(),
        key: None,
        bound: 0,
        total: batching.total(desired),
        desired: group.roles.iter().map(|role| (role.name.clone(), role.desired)).collect(),
        answer: Ok(Answer { outlook: Outlook::default(), next: Amounts::new(), not_modelled: Vec::new() }),
    };
    fitted.answer = fitted.ask(group, keys, cluster, most);
    fitted
}

impl Fitted {
    /// Reports whether every unbound batch fits.
    pub fn all_fit(&self) -> bool {
        self.answer.as_ref().is_ok_and(|answer| answer.outlook.stop.is_none())
    }

    /// Returns the name of the domains for people.
    pub fn domains(&self) -> Option<&str> {
        match &self.batching.topology.as_ref()?.domain {
            Domain::Layer { layer, .. } => self.key.is_some().then_some(layer),
            Domain::Key(_) => self.key.as_deref(),
        }
    }

    /// Returns why a batch does not fit, and advice where its pods go one by one all the same.
    pub fn why(&self, stop: &Stop) -> String {
        let why = stop.no_fit.describe(self.domains(), &self.batching.batch_name(stop.index));
        if self.batching.is_all_or_nothing() { why } else { format!("{why}; {GOES_IN_PART}") }
    }

    /// Returns the answer; sets the key and the bound batches on the way.
    fn ask(&mut self, group: &Group, keys: &DomainKeys, cluster: &Cluster, most: usize) -> Result<Answer, NoAnswer> {
        let mut known = self.batching.sizes.keys().filter_map(|role| group.role(role));
        if let Some(role) = known.find(|role| role.workload.desired_is_unknown) {
            return Err(NoAnswer::NoPods(role.name.clone()));
        }
        let hard = self.batching.topology.as_ref().filter(|topology| topology.is_hard());
        let spread = hard.is_some_and(|topology| topology.spread);
        let key = hard.map(|topology| match &topology.domain {
            Domain::Key(key) => Ok(key.clone()),
            Domain::Layer { topology, layer } => {
                let found = keys.get(&self.index).cloned();
                found.ok_or_else(|| NoAnswer::NoLayer(topology.clone(), layer.clone()))
            }
        });
        self.key = key.transpose()?;
        let key = self.key.as_deref();
        let (batches, bound) = cluster.batches(group, &self.batching, key, most)?;
        self.bound = bound.count;
        let next = batches.first().map(|batch| total(&batch.pods)).unwrap_or_default();
        let pods: Vec<_> = batches.iter().flat_map(|batch: &BatchPods| batch.pods.iter().cloned()).collect();
        Ok(Answer {
            not_modelled: not_modelled(&pods, &cluster.room),
            next,
            outlook: outlook(&cluster.room, batches, key, spread.then_some(bound.domains)),
        })
    }
}
