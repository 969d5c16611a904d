//! Number and place of the batches of a group that fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::{Cluster, DomainKeys, NoAnswer};
use crate::model::{Batching, Coordination, Domain, Group, Role};
use crate::plan::placement::{
    Amounts, BatchPods, Fit, NotModelled, Outlook, Placement, Question, Room, Stop, not_modelled, outlook, place, total,
};
use crate::plan::simulate::{Occupied, Run};
use crate::plan::{GroupView, PodFacts};
use crate::rules::Shortage;

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
#[derive(Debug, Default)]
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
    let room = cluster.room_for(group);
    group
        .batched()
        .map(|(coordination, batching)| {
            let desired = |role: &str| group.role(role).map(|role| role.desired);
            Fitted::of(group, (coordination, batching), keys, desired, |fitted| {
                fitted.ask(group, (cluster, &room), most)
            })
        })
        .collect()
}

/// Returns the fit of each coordination with batches as a simulation on nodes has found it: the batches with a node for each of
/// their pods, and the first other one, if there is no room for it beside them.
pub fn fit_of_run(group: &Group, run: &Run) -> Vec<Fitted> {
    let Some(occupied) = &run.occupied else { return Vec::new() };
    let view = &run.seen.view;
    group
        .batched()
        .map(|(coordination, batching)| {
            let desired = |role: &str| view.roles.get(role).map(|role| role.desired);
            Fitted::of(group, (coordination, batching), &occupied.layers, desired, |fitted| {
                fitted.ask_run(group, view, occupied)
            })
        })
        .collect()
}

/// Returns the coordinations of which fewer batches fit than wanted, where known.
pub fn shortages(fitted: &[Fitted]) -> Vec<Shortage> {
    let of = |fitted: &Fitted| {
        let Answer { outlook, not_modelled, .. } = fitted.answer.as_ref().ok()?;
        let stop = outlook.stop.as_ref()?;
        let beyond = NotModelled::beyond(not_modelled).map(|beyond| format!("; {beyond}"));
        Some(Shortage {
            coordination: fitted.index,
            fits: u32::try_from(outlook.fits.len()).unwrap_or(u32::MAX),
            of: fitted.total - fitted.bound,
            why: fitted.why(stop) + &beyond.unwrap_or_default(),
            on_empty_nodes: false,
        })
    };
    fitted.iter().filter_map(of).collect()
}

/// Returns the node label of the domains of a coordination.
pub(super) fn key_of(domain: &Domain, coordination: usize, keys: &DomainKeys) -> Result<String, NoAnswer> {
    match domain {
        Domain::Key(key) => Ok(key.clone()),
        Domain::Layer { topology, layer } => {
            let found = keys.get(&coordination).cloned();
            found.ok_or_else(|| NoAnswer::NoLayer(topology.clone(), layer.clone()))
        }
    }
}

impl Fitted {
    fn of(
        group: &Group,
        (coordination, batching): (&Coordination, &Batching),
        keys: &DomainKeys,
        desired: impl Fn(&str) -> Option<u32>,
        ask: impl FnOnce(&mut Self) -> Result<Answer, NoAnswer>,
    ) -> Self {
        let of_role = |role: &Role| Some((role.name.clone(), desired(&role.name)?));
        let mut fitted = Self {
            name: coordination.display_name(),
            index: coordination.index,
            batching: batching.clone(),
            key: None,
            bound: 0,
            total: batching.total(&desired),
            desired: group.roles.iter().filter_map(of_role).collect(),
            answer: Ok(Answer::default()),
        };
        fitted.answer = fitted.find_key(group, keys).and_then(|()| ask(&mut fitted));
        fitted
    }

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

    /// Sets the node label of the domains.
    ///
    /// # Errors
    ///
    /// Fails while a number of replicas or the label is not known.
    fn find_key(&mut self, group: &Group, keys: &DomainKeys) -> Result<(), NoAnswer> {
        let mut known = self.batching.sizes.keys().filter_map(|role| group.role(role));
        if let Some(role) = known.find(|role| role.workload.desired_is_unknown) {
            return Err(NoAnswer::NoPods(role.name.clone()));
        }
        let domain = self.batching.hard_topology().map(|topology| &topology.domain);
        self.key = domain.map(|domain| key_of(domain, self.index, keys)).transpose()?;
        Ok(())
    }

    pub(super) fn keeps_apart(&self) -> bool {
        self.batching.hard_topology().is_some_and(|topology| topology.spread)
    }

    /// Returns the answer for a room of a cluster; sets the bound batches on the way.
    fn ask(&mut self, group: &Group, (cluster, room): (&Cluster, &Room), most: usize) -> Result<Answer, NoAnswer> {
        let key = self.key.as_deref();
        let (batches, bound) = cluster.batches(group, &self.batching, key, most)?;
        self.bound = bound.count;
        let next = batches.first().map(|batch| total(&batch.pods)).unwrap_or_default();
        let pods: Vec<_> = batches.iter().flat_map(|batch: &BatchPods| batch.pods.iter().cloned()).collect();
        Ok(Answer {
            not_modelled: not_modelled(&pods, room),
            next,
            outlook: outlook(room, batches, key, self.keeps_apart().then_some(bound.domains)),
        })
    }

    /// Returns the answer of a simulation; sets the batches that ran before it on the way.
    fn ask_run(&mut self, group: &Group, view: &GroupView, occupied: &Occupied) -> Result<Answer, NoAnswer> {
        let Occupied { room, began, needs, .. } = occupied;
        let key = self.key.clone();
        let domain_of = |node: &Arc<str>| room.facts(node)?.label(key.as_deref()?).map(str::to_owned);
        let (mut answer, mut all, mut first_out) = (Answer::default(), Vec::new(), None);
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        for index in 0..self.total {
            let (before, new): (Vec<_>, Vec<_>) =
                self.pods(group, view, index).partition(|(_, pod)| began.contains(&pod.pod.uid));
            let node = |(_, pod): &(&str, &Arc<PodFacts>)| room.node_of(&pod.pod.uid).cloned();
            let mut domain = before.iter().filter_map(node).find_map(|node| domain_of(&node));
            self.bound += u32::from(new.is_empty());
            let asked = |(role, pod): &(&str, &Arc<PodFacts>)| {
                needs.get(&pod.pod.uid).cloned().ok_or_else(|| NoAnswer::NoPods((*role).to_owned()))
            };
            let pods = new.iter().map(asked).collect::<Result<Vec<_>, _>>()?;
            if let Some(nodes) = new.iter().map(node).collect::<Option<Vec<_>>>() {
                domain = domain.or_else(|| nodes.first().and_then(domain_of));
                if !new.is_empty() {
                    answer.outlook.fits.push((index, Placement { domain: domain.clone(), nodes }));
                }
                domain.into_iter().for_each(|domain| *used.entry(domain).or_default() += 1);
            } else if first_out.is_none() {
                let uids: Vec<_> = new.iter().map(|(_, pod)| pod.pod.uid.clone()).collect();
                first_out = Some((index, pods.clone(), uids, domain));
            }
            if all.is_empty() {
                answer.next = total(&pods);
            }
            all.extend(pods);
        }
        answer.not_modelled = not_modelled(&all, room);
        used.retain(|_, _| self.keeps_apart());
        answer.outlook.stop = first_out.and_then(|(index, pods, uids, domain)| {
            // What fits of it takes none of the room that it asks for as a whole.
            let mut room = room.clone();
            uids.iter().for_each(|uid| _ = room.remove_pod(uid));
            let question = Question { only: domain.as_deref(), ..Question::new(&pods, key.as_deref(), &used) };
            match place(&room, &question) {
                Fit::Not(no_fit) => Some(Stop::of(&room, index, &question, no_fit)),
                // It waits for something else.
                Fit::Fits(_) => None,
            }
        });
        Ok(answer)
    }

    /// Returns the pods of a batch, each with its role.
    fn pods<'a>(
        &self,
        group: &'a Group,
        view: &'a GroupView,
        index: u32,
    ) -> impl Iterator<Item = (&'a str, &'a Arc<PodFacts>)> {
        let roles = group.roles.iter().filter_map(|role| Some((role.name.as_str(), view.roles.get(&role.name)?)));
        roles.flat_map(move |(name, role)| {
            let ordinals = self.batching.ordinals(name, index, role.desired);
            ordinals.flat_map(move |ordinal| role.replicas.pods_of(ordinal).iter().map(move |pod| (name, pod)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::ObjectKind;
    use crate::api::node::NODE;
    use crate::api::rbg::ROLE_BASED_GROUP;
    use crate::fit::MOST_PODS;
    use crate::plan::simulate;

    /// A group of three segments of two prefills and a decode, and routers in no batch, each pod with one processor, and racks of
    /// one node each.
    fn mk(segments: &Value, routers: u32, racks: [u32; 3]) -> (Group, Cluster) {
        let template = json!({ "spec": { "containers": [{ "resources": { "requests": { "cpu": 1 } } }] } });
        let role = |name: &str, replicas: u32| json!({ "name": name, "replicas": replicas, "template": template });
        let coordination = json!([{ "name": "pd", "strategy": { "segmentPlacement": segments } }]);
        let roles = [role("prefill", 6), role("decode", 3), role("router", routers)];
        let spec = json!({ "roles": roles, "coordination": coordination });
        let object = json!({ "metadata": { "name": "llm", "namespace": "ns" }, "spec": spec });
        let group = Group::from_rbg(ROLE_BASED_GROUP, &serde_json::from_value(object.clone()).unwrap());
        let mut cluster = Cluster::new(MOST_PODS);
        let mut add =
            |kind: ObjectKind, object: Value| cluster.add(&kind.api_version(), kind.kind, &object, &()).unwrap();
        add(ROLE_BASED_GROUP, object);
        for (rack, cpu) in racks.iter().enumerate() {
            let name = format!("n{rack}");
            let room = json!({ "cpu": cpu.to_string(), "pods": "110" });
            add(NODE, crate::build::node(&name, &json!({ "rack": name }), &room));
        }
        (group, cluster)
    }

    #[test]
    fn a_run_places_what_fits_where_it_fits() {
        let sizes = json!({ "prefill": 2, "decode": 1 });
        let racks = |spread: bool| {
            let affinity =
                json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity", "spreadSegments": spread });
            json!({ "segmentSize": sizes, "topologyAffinity": affinity })
        };
        let kinds = [racks(false), racks(true), json!({ "segmentSize": sizes, "whole": true })];
        let racks = (0..6 * 6 * 6).map(|number| [number % 6, number / 6 % 6, number / 36]);
        let settings = kinds.iter().flat_map(|kind| [0, 2].map(|routers| (kind, routers)));
        for ((kind, routers), racks) in settings.flat_map(|one| racks.clone().map(move |racks| (one, racks))) {
            let (group, cluster) = mk(kind, routers, racks);
            let layers = DomainKeys::new();
            let site = cluster.site(&group, layers.clone());
            let run = simulate(&group, &[], &BTreeMap::new(), Some(site)).unwrap();
            let (by_run, alone) = (fit_of_run(&group, &run), fit(&group, &layers, &cluster, usize::MAX));
            let told = |fitted: &[Fitted]| {
                let outlook = &fitted[0].answer.as_ref().unwrap().outlook;
                let stop = outlook.stop.as_ref().map(|stop| (stop.index, fitted[0].why(stop), stop.remedies.clone()));
                // Pods that are alike may change places.
                let sorted = |(index, placement): &(u32, Placement)| {
                    let mut placement = placement.clone();
                    placement.nodes.sort();
                    (*index, placement)
                };
                (outlook.fits.iter().map(sorted).collect::<Vec<_>>(), stop)
            };
            assert_eq!(told(&by_run), told(&alone), "{kind} {routers} {racks:?}");
            assert_eq!(run.complete, by_run[0].all_fit(), "{kind} {routers} {racks:?}");
        }
    }
}
