//! How many batches of a group fit, and where.

use std::collections::BTreeMap;

use super::cluster::{Cluster, NoAnswer};
use crate::model::{Batching, Coordination, Domain, Group};
use crate::plan::placement::{Amounts, BatchPods, NotModelled, Outlook, not_modelled, outlook, total};
use crate::rules::Shortage;

/// The node labels of the domains of coordinations that name a layer, by their position in the list.
pub type DomainKeys = BTreeMap<usize, String>;

/// The same of a group, as far as `find` knows the node label of a layer by the name of its ClusterTopology and its own.
pub fn domain_keys(group: &Group, find: impl Fn(&str, &str) -> Option<String>) -> DomainKeys {
    let key = |(coordination, batching): (&Coordination, &Batching)| {
        let (topology, layer) = batching.layer()?;
        Some((coordination.index, find(topology, layer)?))
    };
    group.batched().filter_map(key).collect()
}

/// What fits of the batches of one coordination.
#[derive(Debug)]
pub struct Fitted {
    /// Name of the coordination.
    pub name: String,
    /// Its position in the list.
    pub index: usize,
    /// How it makes batches.
    pub batching: Batching,
    /// The node label of which the pods of a batch share one value; `None` where they need not.
    pub key: Option<String>,
    /// Batches of which every pod is bound.
    pub bound: u32,
    /// Batches in all.
    pub total: u32,
    /// Desired replicas of the group's roles.
    pub desired: Vec<(String, u32)>,
    /// The answer.
    pub answer: Result<Answer, NoAnswer>,
}

/// What fits.
#[derive(Debug)]
pub struct Answer {
    /// Batches that fit one after the other, and what keeps the next one out.
    pub outlook: Outlook,
    /// What the pods of the first batch that is not bound ask for, in all.
    pub next: Amounts,
    /// What the scheduler looks at beside.
    pub not_modelled: Vec<NotModelled>,
}

/// What fits of each coordination of a group that makes batches, of so many batches that are not bound at `most`.
pub fn fit(group: &Group, keys: &DomainKeys, cluster: &Cluster, most: usize) -> Vec<Fitted> {
    let of = |(coordination, batching)| fit_coordination(group, coordination, batching, keys, cluster, most);
    group.batched().map(of).collect()
}

/// The coordinations of which fewer batches fit than are asked for, as far as that can be told.
pub fn shortages(fitted: &[Fitted]) -> Vec<Shortage> {
    let of = |fitted: &Fitted| {
        let outlook = &fitted.answer.as_ref().ok()?.outlook;
        let stop = outlook.stop.as_ref()?;
        Some(Shortage {
            coordination: fitted.index,
            fits: u32::try_from(outlook.fits.len()).unwrap_or(u32::MAX),
            of: fitted.total - fitted.bound,
            why: stop.no_fit.describe(fitted.domains(), &fitted.batching.batch_name(stop.index)),
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
    /// True when every batch that is not bound fits.
    pub fn all_fit(&self) -> bool {
        self.answer.as_ref().is_ok_and(|answer| answer.outlook.stop.is_none())
    }

    /// What people call the domains of its batches.
    pub fn domains(&self) -> Option<&str> {
        match &self.batching.topology.as_ref()?.domain {
            Domain::Layer { layer, .. } => self.key.is_some().then_some(layer),
            Domain::Key(_) => self.key.as_deref(),
        }
    }

    /// What fits, with the key and the bound batches noted as far as they are found out.
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
