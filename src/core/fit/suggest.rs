//! Segment sizes for a group: multiples of the ratio of its roles, each with the number of segments that the domains hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::{Cluster, DomainKeys, NoAnswer};
use super::fitted::key_of;
use super::rooms::{amounts, shortest};
use crate::model::batching::CLUSTER_KEY;
use crate::model::ratio::reduced;
use crate::model::{Batching, Coordination, Group};
use crate::plan::placement::needs::{HostPort, Needs};
use crate::plan::placement::place::least_priority;
use crate::plan::placement::{Counted, Fit, NotModelled, Question, Room, not_modelled, place};

/// Largest number of sizes to try.
pub const MOST_SIZES: usize = 64;
/// Largest number of pods of one segment: no domain has room for more.
const MOST_PODS: usize = 10_000;
/// Largest work of all placements together, in nodes and pods: some seconds.
const MOST_WORK: usize = 10_000_000;

/// Sizes for the segments of a coordination, or of a group without one.
#[derive(Debug)]
pub struct Suggestion {
    /// Name of the coordination.
    pub coordination: Option<String>,
    /// The node label of the domains; `None` where all nodes are one domain.
    pub key: Option<String>,
    /// Sizes of the coordination as written.
    pub now: BTreeMap<String, u32>,
    pub answer: Result<Sizes, NoSize>,
}

/// The sizes that were tried.
#[derive(Debug)]
pub struct Sizes {
    /// The smallest numbers of replicas in this ratio.
    pub ratio: BTreeMap<String, u32>,
    /// The scarcest resource.
    pub resource: Arc<str>,
    /// Free amount of the resource on nodes where pods of the roles may go.
    pub free: i64,
    /// Number of domains with such nodes.
    pub domains: usize,
    /// Sizes of which a domain holds a segment, best first: what leaves least unused, then what divides the replicas evenly,
    /// then the larger ones.
    pub sizes: Vec<Size>,
    /// Number of multiples of the ratio that a domain could hold and that were not tried.
    pub untried: u32,
    /// Constraints of the scheduler that are not modelled.
    pub not_modelled: Vec<NotModelled>,
}

/// One size of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Replicas of each role in a segment.
    pub sizes: BTreeMap<String, u32>,
    /// Number of segments that the desired replicas make.
    pub wanted: u32,
    /// Whether the last of them is as large as the others.
    pub even: bool,
    /// Number of segments that all domains hold together.
    pub fits: u32,
    /// Free amount of the resource beside them.
    pub unused: i64,
}

/// Reason for which no sizes can be suggested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSize {
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    #[error("no role has replicas")]
    NoReplicas,
    /// No node has the label and takes the pods.
    #[error("no node {}takes its pods", .0.as_ref().map(|key| format!("with the label {key} ")).unwrap_or_default())]
    NoNode(Option<String>),
}

/// Returns sizes for each coordination with batches, or for all roles of a group without one. `by` is the node label of the
/// domains, instead of the one of the coordination. Pods of these roles that run take no room.
pub fn suggest(group: &Group, keys: &DomainKeys, cluster: &Cluster, by: Option<&str>) -> Vec<Suggestion> {
    let of = |(coordination, batching): (&Coordination, &Batching)| {
        let domain = batching.hard_topology().map(|topology| &topology.domain);
        let key = match by {
            Some(by) => Ok(Some(by.to_owned())),
            None => domain.map(|domain| key_of(domain, coordination.index, keys)).transpose(),
        };
        let roles: Vec<_> = batching.sizes.keys().map(String::as_str).collect();
        let now = roles.iter().filter_map(|role| Some(((*role).to_owned(), batching.size(role)?)));
        suggestion(group, cluster, (Some(coordination.display_name()), key), &roles, now.collect())
    };
    let mut all: Vec<_> = group.batched().map(of).collect();
    if all.is_empty() {
        let roles: Vec<_> = group.roles.iter().map(|role| role.name.as_str()).collect();
        all.push(suggestion(group, cluster, (None, Ok(by.map(str::to_owned))), &roles, BTreeMap::new()));
    }
    all
}

fn suggestion(
    group: &Group,
    cluster: &Cluster,
    (coordination, key): (Option<String>, Result<Option<String>, NoAnswer>),
    roles: &[&str],
    now: BTreeMap<String, u32>,
) -> Suggestion {
    let known = key.as_ref().ok().cloned().flatten();
    let answer = key.map_err(NoSize::from).and_then(|key| {
        let trial = Trial::of(group, cluster, roles, &now, key.as_deref())?;
        Ok(trial.run())
    });
    Suggestion { coordination, key: known, now, answer }
}

/// The roles of a segment, and the room for it.
struct Trial {
    key: Option<String>,
    ratio: BTreeMap<String, u32>,
    desired: BTreeMap<String, u32>,
    /// Pods of one replica of each role.
    replicas: BTreeMap<String, Vec<Arc<Needs>>>,
    room: Room,
    resource: Arc<str>,
    /// One domain of each class of domains with the same room, and the number of domains of the class.
    classes: Vec<Class>,
    /// Work that may still be done.
    work: usize,
}

/// Domains with the same room.
struct Class {
    /// The value of the label of one of them; `None` for all nodes.
    domain: Option<String>,
    count: u32,
    /// Nodes of one of them where pods may go.
    nodes: Vec<Arc<str>>,
    /// The room of these nodes alone; `None` where the others matter too.
    own: Option<Room>,
}

/// The room of a node as far as it matters: free amounts, places for pods, host ports, and the pods that it takes.
type NodeKey = (Vec<i64>, i64, Vec<HostPort>, Vec<bool>);

impl Trial {
    fn of(
        group: &Group,
        cluster: &Cluster,
        roles: &[&str],
        now: &BTreeMap<String, u32>,
        key: Option<&str>,
    ) -> Result<Self, NoSize> {
        let known = |role: &&str| Some(group.role(role)?).filter(|role| role.desired > 0);
        if let Some(role) =
            roles.iter().filter_map(|role| group.role(role)).find(|role| role.workload.desired_is_unknown)
        {
            return Err(NoAnswer::NoPods(role.name.clone()).into());
        }
        let desired: BTreeMap<_, _> =
            roles.iter().filter_map(known).map(|role| (role.name.clone(), role.desired)).collect();
        let replicas = desired.keys().map(|role| Ok((role.clone(), cluster.replica_of(group, role)?)));
        let replicas = replicas.collect::<Result<BTreeMap<_, _>, NoAnswer>>()?;
        let room = cluster.room_without(group, desired.keys());
        let pods: Vec<_> = replicas.values().flatten().cloned().collect();
        let mut trial = Self {
            key: key.map(str::to_owned),
            ratio: ratio(&desired, now).ok_or(NoSize::NoReplicas)?,
            desired,
            replicas,
            resource: shortest(&room, &Counted::of(&pods, &room)),
            classes: Vec::new(),
            room: room.seen_with(least_priority(&pods)).into_owned(),
            work: MOST_WORK,
        };
        trial.classes = trial.classes(&pods);
        if trial.classes.is_empty() {
            return Err(NoSize::NoNode(trial.key));
        }
        Ok(trial)
    }

    /// Returns the domains by their room. Where pods keep apart, other labels matter: each domain is a class of its own.
    fn classes(&self, pods: &[Arc<Needs>]) -> Vec<Class> {
        let sorts: BTreeSet<*const Needs> = pods.iter().map(Arc::as_ptr).collect();
        let sorts: Vec<&Arc<Needs>> =
            sorts.iter().filter_map(|one| pods.iter().find(|pod| Arc::as_ptr(pod) == *one)).collect();
        let resources: BTreeSet<&Arc<str>> = pods.iter().flat_map(|needs| needs.load.amounts.keys()).collect();
        let keeps_apart = pods.iter().any(|needs| !needs.peer.apart.is_empty() || !needs.spread.is_empty())
            || self.room.wary().next().is_some()
            // Devices of one node differ in more than their number.
            || Counted::of(pods, &self.room).any_devices();
        let key = self.key.as_deref().unwrap_or(CLUSTER_KEY);
        let mut domains: BTreeMap<&str, (Vec<NodeKey>, Vec<Arc<str>>)> = BTreeMap::new();
        for (name, node, facts) in self.room.nodes() {
            let takes: Vec<_> = sorts.iter().map(|needs| facts.refusal(needs).is_none()).collect();
            let Some(domain) = facts.label(key).filter(|_| takes.contains(&true)) else { continue };
            let free = resources.iter().map(|resource| node.free(resource)).collect();
            let (keys, nodes) = domains.entry(domain).or_default();
            keys.push((free, node.free_pods(), node.ports().to_vec(), takes));
            nodes.push(name.clone());
        }
        let mut classes: BTreeMap<(Vec<NodeKey>, Option<&str>), Class> = BTreeMap::new();
        for (domain, (mut keys, nodes)) in domains {
            keys.sort();
            let class = classes.entry((keys, keeps_apart.then_some(domain))).or_insert_with(|| Class {
                domain: self.key.is_some().then(|| domain.to_owned()),
                count: 0,
                own: (!keeps_apart).then(|| self.room.of_nodes(&nodes)),
                nodes,
            });
            class.count += 1;
        }
        classes.into_values().collect()
    }

    /// Returns the pods of one replica of each role.
    fn one_of_each(&self) -> Vec<Arc<Needs>> {
        self.replicas.values().flatten().cloned().collect()
    }

    fn run(mut self) -> Sizes {
        let one_of_each = self.one_of_each();
        let of_class = |class: &Class| {
            free(&self.room, &class.nodes, &self.resource, &one_of_each).saturating_mul(i64::from(class.count))
        };
        let free = self.classes.iter().map(of_class).fold(0_i64, i64::saturating_add);
        let domains = self.classes.iter().map(|class| usize::try_from(class.count).unwrap_or(usize::MAX)).sum();
        let most = self.largest();
        let multiples = multiples(self.steps(), most);
        let mut sizes = Vec::new();
        for multiple in &multiples {
            let Some(size) = self.size(*multiple) else { break };
            sizes.push(size);
        }
        let untried = most.saturating_sub(u32::try_from(sizes.len()).unwrap_or(u32::MAX));
        sizes.sort_by_cached_key(|size| (size.unused, !size.even, Reverse(size.sizes.clone())));
        let not_modelled = not_modelled(&one_of_each, &self.room);
        let Self { ratio, resource, .. } = self;
        Sizes { ratio, resource, free, domains, sizes, untried, not_modelled }
    }

    /// Returns the largest multiple of the ratio that the desired replicas have.
    fn steps(&self) -> u32 {
        let steps = self.ratio.iter().filter_map(|(role, one)| self.desired.get(role)?.checked_div(*one));
        steps.min().unwrap_or_default().max(1)
    }

    /// Returns the largest multiple of which a domain holds a segment; 0 if none does. Where that takes more work than is left,
    /// any may be held.
    fn largest(&mut self) -> u32 {
        let most = u32::try_from(MOST_PODS / self.pods(1).len().max(1)).unwrap_or(u32::MAX);
        let (mut fits, mut too_large) = (0, self.steps().min(most) + 1);
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            let pods = self.pods(middle);
            let (key, work) = (self.key.as_deref(), &mut self.work);
            let holds = |Class { domain, own, .. }: &Class| {
                let room = own.as_ref().unwrap_or(&self.room);
                place_one(room, (key, domain.as_deref()), &pods, work).is_some()
            };
            let is_held = self.classes.iter().any(holds);
            if self.work == 0 {
                return self.steps();
            }
            *(if is_held { &mut fits } else { &mut too_large }) = middle;
        }
        fits
    }

    /// Counts the segments of a size; `None` if that takes more work than is left.
    fn size(&mut self, multiple: u32) -> Option<Size> {
        let pods = self.pods(multiple);
        let (mut fits, mut unused) = (0_u32, 0_i64);
        let one_of_each = self.one_of_each();
        for Class { domain, count, nodes, own } in &mut self.classes {
            let room = own.as_mut().unwrap_or(&mut self.room);
            let mut taken = Vec::new();
            let mut segments = 0_u32;
            while let Some(found) = place_one(room, (self.key.as_deref(), domain.as_deref()), &pods, &mut self.work) {
                for (needs, node) in pods.iter().zip(found) {
                    let uid = format!("suggested/{}", taken.len());
                    room.apply_pod(&uid, &node, needs.load.clone(), &needs.peer);
                    taken.push(uid);
                }
                segments += 1;
            }
            fits = fits.saturating_add(segments.saturating_mul(*count));
            unused = unused
                .saturating_add(free(room, nodes, &self.resource, &one_of_each).saturating_mul(i64::from(*count)));
            taken.iter().for_each(|uid| _ = room.remove_pod(uid));
        }
        if self.work == 0 {
            return None;
        }
        let sizes: BTreeMap<_, _> =
            self.ratio.iter().map(|(role, one)| (role.clone(), one.saturating_mul(multiple))).collect();
        let parts = || sizes.iter().filter_map(|(role, size)| Some((*self.desired.get(role)?, *size)));
        let wanted = parts().map(|(desired, size)| desired.div_ceil(size)).max().unwrap_or_default();
        let even = parts().all(|(desired, size)| desired == size.saturating_mul(wanted));
        Some(Size { sizes, wanted, even, fits, unused })
    }

    fn pods(&self, multiple: u32) -> Vec<Arc<Needs>> {
        let of_role = |(role, one): (&String, &u32)| {
            let replica = self.replicas.get(role)?;
            Some((0..one.saturating_mul(multiple)).flat_map(move |_| replica.iter().cloned()))
        };
        self.ratio.iter().filter_map(of_role).flatten().collect()
    }
}

/// Returns the node of each pod of a segment in a domain of a node label, if it holds one more.
fn place_one(
    room: &Room,
    (key, domain): (Option<&str>, Option<&str>),
    pods: &[Arc<Needs>],
    work: &mut usize,
) -> Option<Vec<Arc<str>>> {
    *work = work.saturating_sub(room.nodes().count() + pods.len());
    if *work == 0 {
        return None;
    }
    let none = BTreeMap::new();
    match place(room, &Question { only: domain, ..Question::new(pods, key, &none) }) {
        Fit::Fits(placement) => Some(placement.nodes),
        Fit::Not(_) => None,
    }
}

/// Returns the free amount of a resource for these pods on some nodes.
fn free(room: &Room, nodes: &[Arc<str>], resource: &str, pods: &[Arc<Needs>]) -> i64 {
    let counted = Counted::of(pods, room);
    let known = nodes.iter().filter_map(|name| Some((room.node(name)?, room.facts(name)?)));
    let free = known.map(|(node, facts)| amounts(&counted, node, facts, resource).1.max(0));
    free.fold(0_i64, i64::saturating_add)
}

/// Returns the smallest numbers in the ratio of the desired replicas, or of the written sizes if the desired ones have no
/// divisor in common.
fn ratio(desired: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Option<BTreeMap<String, u32>> {
    let (divisor, of_desired) = reduced(desired)?;
    let written = || Some(reduced(now)?.1).filter(|written| written.keys().eq(desired.keys()));
    Some(if divisor > 1 { of_desired } else { written().unwrap_or(of_desired) })
}

/// Returns the multiples to try, at most [`MOST_SIZES`] of those up to `most`: first those that divide all `steps` evenly, then
/// those that leave least of a domain for `most`, large ones first.
fn multiples(steps: u32, most: u32) -> Vec<u32> {
    let (even, mut others): (Vec<_>, Vec<_>) = (1..=most).rev().partition(|multiple| steps.is_multiple_of(*multiple));
    others.sort_by_key(|multiple| most % multiple);
    even.into_iter().chain(others).take(MOST_SIZES).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::ObjectKind;
    use crate::api::node::NODE;
    use crate::api::rbg::ROLE_BASED_GROUP;
    use crate::fit::{MOST_PODS, domain_keys};

    /// A group of prefills and decodes, each with one device, and racks of nodes with eight.
    fn suggested(replicas: (u32, u32), strategy: Option<Value>, racks: &[u32], by: Option<&str>) -> Vec<Suggestion> {
        let role = |name: &str, replicas: u32| {
            let template =
                json!({ "spec": { "containers": [{ "resources": { "limits": { "nvidia.com/gpu": 1 } } }] } });
            json!({ "name": name, "replicas": replicas, "template": template })
        };
        let coordination: Vec<_> =
            strategy.map(|strategy| json!({ "name": "pd", "strategy": strategy })).into_iter().collect();
        let roles = [role("prefill", replicas.0), role("decode", replicas.1)];
        let object = json!({ "metadata": { "name": "llm", "namespace": "ns" }, "spec": { "roles": roles, "coordination": coordination } });
        let group = Group::from_rbg(ROLE_BASED_GROUP, &serde_json::from_value(object.clone()).unwrap());
        let mut cluster = Cluster::new(MOST_PODS);
        let mut add =
            |kind: ObjectKind, object: Value| cluster.add(&kind.api_version(), kind.kind, &object, &()).unwrap();
        add(ROLE_BASED_GROUP, object);
        for (rack, nodes) in racks.iter().enumerate() {
            for node in 0..*nodes {
                let labels = json!({ "rack": format!("r{rack}") });
                let room = json!({ "nvidia.com/gpu": "8", "pods": "110" });
                add(NODE, crate::build::node(&format!("{rack}-{node}"), &labels, &room));
            }
        }
        suggest(&group, &domain_keys(&group, |_, _| None), &cluster, by)
    }

    fn racks(sizes: (u32, u32)) -> Value {
        let affinity = json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity" });
        let sizes = json!({ "prefill": sizes.0, "decode": sizes.1 });
        json!({ "segmentPlacement": { "segmentSize": sizes, "topologyAffinity": affinity } })
    }

    fn rows(suggestion: &Suggestion) -> Vec<(u32, u32, bool, u32, i64)> {
        let sizes = &suggestion.answer.as_ref().unwrap().sizes;
        sizes.iter().map(|size| (size.sizes["decode"], size.wanted, size.even, size.fits, size.unused)).collect()
    }

    #[test]
    fn the_largest_sizes_that_fill_racks_come_first() {
        // 16 devices in each rack hold five units of three devices.
        let all = suggested((12, 6), Some(racks((2, 1))), &[2, 2], None);
        let expected =
            [(1, 6, true, 10, 2), (5, 2, false, 2, 2), (2, 3, true, 4, 8), (4, 2, false, 2, 8), (3, 2, true, 2, 14)];
        assert_eq!(rows(&all[0]).len(), 5);
        let mut found = rows(&all[0]);
        assert_eq!(found.remove(0), expected[0], "of two that leave the same, the one that divides evenly");
        assert_eq!(found, expected[1..]);
        let sizes = all[0].answer.as_ref().unwrap();
        assert_eq!((sizes.free, sizes.domains, sizes.untried, &*sizes.resource), (32, 2, 0, "nvidia.com/gpu"));
        assert_eq!(all[0].now["prefill"], 2);
    }

    #[test]
    fn racks_of_different_sizes_are_counted_each() {
        let all = suggested((12, 6), Some(racks((2, 1))), &[1, 2, 2], None);
        let one = rows(&all[0]).into_iter().find(|row| row.0 == 1).unwrap();
        assert_eq!(one, (1, 6, true, 2 + 5 + 5, 2 + 1 + 1));
    }

    #[test]
    fn a_group_without_sizes_is_asked_for_by_a_label() {
        let all = suggested((8, 4), None, &[2], Some("rack"));
        assert_eq!((all[0].coordination.as_ref(), all[0].key.as_deref()), (None, Some("rack")));
        assert_eq!(rows(&all[0])[0], (1, 4, true, 5, 1));
        let all = suggested((8, 4), None, &[2], Some("block"));
        assert_eq!(all[0].answer.as_ref().unwrap_err().to_string(), "no node with the label block takes its pods");
    }

    #[test]
    fn replicas_without_a_ratio_take_that_of_the_written_sizes() {
        let all = suggested((7, 3), Some(racks((2, 1))), &[2], None);
        let sizes = all[0].answer.as_ref().unwrap();
        assert_eq!(sizes.ratio, [("decode".to_owned(), 1), ("prefill".to_owned(), 2)].into());
        assert_eq!(sizes.sizes.len(), 3, "no size is larger than what is there");
    }

    #[test]
    fn not_every_size_is_tried_and_it_is_said_how_many_are_not() {
        let all = suggested((2000, 1000), None, &[100], None);
        let sizes = all[0].answer.as_ref().unwrap();
        assert_eq!((sizes.sizes.len(), sizes.untried), (MOST_SIZES, 266 - 64));
        assert!(sizes.sizes.iter().any(|size| size.wanted == 4), "what divides evenly is tried first");
    }

    #[test]
    fn no_size_fits_where_no_rack_holds_one_of_each() {
        let all = suggested((2, 1), Some(racks((2, 1))), &[0, 0], None);
        assert!(all[0].answer.is_err(), "no node has the label");
        let all = suggested((20, 10), Some(racks((20, 10))), &[1], None);
        assert_eq!(rows(&all[0]).iter().map(|row| row.0).max(), Some(2));
    }
}
