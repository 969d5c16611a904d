//! Two groups in the same racks, leaders that are killed, a watch that lags, and a scheduler that chooses at random among the nodes
//! that fit. G1: nothing is granted twice, so the scheduler finds a node for each released pod at any moment.

use rolegate::api::scheduling::SchedulingPod;
use rolegate::model::{GroupKey, WhenNoFit};
use rolegate::plan::Sight;
use rolegate::plan::placement::{Answer, Capacity, Line, Placer, Request};

use crate::build;
use crate::machines::{HOST, RACK};
use crate::prelude::*;

const ZONE: &str = "example.com/zone";
const GROUPS: usize = 2;
const BATCHES: usize = 3;
const STEPS: u32 = 120;

/// The fault of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Names no node, whatever the pods are.
    NamesNone,
    /// Looks at the other group's pods only when it comes to that group.
    LooksAtOne,
    /// Does not know which pods may go to any node of their domains.
    ForgetsLoose,
}

impl Fault {
    pub const ALL: [Self; 3] = [Self::NamesNone, Self::LooksAtOne, Self::ForgetsLoose];
}

#[derive(Clone, Debug)]
struct OnePod {
    uid: Arc<str>,
    cpu: u32,
    held: bool,
    pin: Pin,
    node: Option<usize>,
}

/// A batch with its committed domain.
#[derive(Clone, Debug, Default)]
struct Batch {
    pods: Vec<OnePod>,
    domain: Option<String>,
}

struct Node {
    rack: u32,
    cpu: u32,
}

#[derive(Default)]
struct Leader {
    capacity: Capacity,
    line: Line,
    /// Groups that it has not looked at.
    unkept: BTreeSet<usize>,
    cursor: usize,
}

struct Cluster {
    nodes: Vec<Node>,
    keys: [&'static str; GROUPS],
    batches: Vec<Vec<Batch>>,
    /// What the watch of pods tells: a pod, or the unique id of one that is gone.
    log: Vec<Result<(usize, OnePod), Arc<str>>>,
    leader: Leader,
    made: u32,
    now: Duration,
    fault: Option<Fault>,
}

fn key_of(group: usize) -> GroupKey {
    GroupKey::new(NAMESPACE, ["one", "other"][group])
}

fn labels(at: usize, node: &Node) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        (HOST, format!("n{at}")),
        (RACK, format!("r{}", node.rack)),
        (ZONE, format!("z{}", node.rack.min(1))),
    ])
}

fn show(capacity: &mut Capacity, group: usize, pod: &OnePod) {
    let gates: &[Value] = if pod.held { &[json!({ "name": names::GATE })] } else { &[] };
    let spec = json!({
        "containers": [{ "name": "main", "resources": { "requests": { "cpu": pod.cpu } } }],
        "schedulingGates": gates,
        "nodeSelector": pod.pin,
        "nodeName": pod.node.map(|node| format!("n{node}")),
    });
    let labels = json!({ (names::GROUP): &*key_of(group).name });
    let meta = json!({ "name": &*pod.uid, "namespace": NAMESPACE, "uid": &*pod.uid, "labels": labels });
    let pod: SchedulingPod = build::typed(json!({ "metadata": meta, "spec": spec }));
    capacity.apply_pod(&pod).unwrap();
}

impl Cluster {
    fn new(random: &mut Random, fault: Option<Fault>) -> Self {
        let nodes = (0..6).map(|at| Node { rack: at / 2, cpu: 2 + random.below(5) }).collect();
        let keys = [RACK, random.pick(&[RACK, RACK, ZONE, HOST])];
        let batches = vec![vec![Batch::default(); BATCHES]; GROUPS];
        let leader = Leader::default();
        let mut new = Self { nodes, keys, batches, log: Vec::new(), leader, made: 0, now: Duration::ZERO, fault };
        for (group, batch) in (0..GROUPS).flat_map(|group| (0..BATCHES).map(move |batch| (group, batch))) {
            new.make(random, group, batch);
        }
        new.lead();
        new
    }

    fn tell(&mut self, group: usize, pod: &OnePod) {
        self.log.push(Ok((group, pod.clone())));
    }

    /// Makes the pods of a batch, which are all alike, or of two sorts.
    fn make(&mut self, random: &mut Random, group: usize, batch: usize) {
        let sorts = [1 + random.below(2), if random.percent(50) { 1 } else { 1 + random.below(3) }];
        let alike = random.percent(60);
        let pods = (0..=random.below(4)).map(|at| {
            self.made += 1;
            let cpu = sorts[if alike { 0 } else { at as usize % 2 }];
            OnePod { uid: format!("p{}", self.made).into(), cpu, held: true, pin: Pin::new(), node: None }
        });
        let pods: Vec<_> = pods.collect();
        pods.iter().for_each(|pod| self.tell(group, pod));
        self.batches[group][batch] = Batch { pods, domain: None };
    }

    /// Deletes a pod, which is made again.
    fn make_again(&mut self, group: usize, batch: usize, at: usize) {
        self.made += 1;
        let pod = &mut self.batches[group][batch].pods[at];
        let gone = std::mem::replace(&mut pod.uid, format!("p{}", self.made).into());
        (pod.held, pod.pin, pod.node) = (true, Pin::new(), None);
        let pod = pod.clone();
        self.log.push(Err(gone));
        self.tell(group, &pod);
    }

    /// Lets a new leader begin with lists of all nodes and pods.
    fn lead(&mut self) {
        self.leader = Leader { unkept: (0..GROUPS).collect(), cursor: self.log.len(), ..Leader::default() };
        for (at, node) in self.nodes.iter().enumerate() {
            let amounts = json!({ "cpu": node.cpu.to_string(), "pods": "100" });
            let node = build::node(&format!("n{at}"), &json!(labels(at, node)), &amounts);
            self.leader.capacity.apply_node(&build::typed(node)).unwrap();
        }
        for (group, batches) in self.batches.iter().enumerate() {
            batches.iter().flat_map(|batch| &batch.pods).for_each(|pod| show(&mut self.leader.capacity, group, pod));
        }
    }

    /// Delivers the next event; returns false when there is none.
    fn see(&mut self) -> bool {
        let Some(event) = self.log.get(self.leader.cursor) else { return false };
        self.leader.cursor += 1;
        match event {
            Ok((group, pod)) => show(&mut self.leader.capacity, *group, pod),
            Err(gone) => self.leader.capacity.remove_pod(gone),
        }
        true
    }

    /// Lets the leader look at a group. A batch that was committed in an earlier pass is released, another one is committed.
    fn pass(&mut self, group: usize) {
        let Self { leader: Leader { capacity, line, unkept, .. }, batches, keys, fault, now, .. } = self;
        let (key, mut released) = (keys[group], Vec::new());
        let looks = *fault != Some(Fault::LooksAtOne);
        let others_first = looks && unkept.iter().any(|other| *other != group);
        let mut placer = Placer::new(key_of(group), Sight::Known(capacity), line, others_first, *now);
        unkept.remove(&group);
        let all = &mut batches[group];
        for batch in all.iter().filter(|batch| *fault != Some(Fault::ForgetsLoose) && batch.domain.is_some()) {
            // The watch of room may not have shown yet what the index knows to be bound.
            let is_unbound = |pod: &&OnePod| !pod.held && (pod.node.is_none() || placer.lacks(&pod.uid));
            let went = batch.pods.iter().filter(is_unbound);
            let uids: Vec<_> = went.map(|pod| pod.uid.clone()).collect();
            placer.keep(&uids, key, batch.domain.as_deref().unwrap());
        }
        for (index, batch) in all.iter_mut().enumerate() {
            let (held, others): (Vec<_>, Vec<_>) = batch.pods.iter().partition(|pod| pod.held);
            let uids = |pods: &[&OnePod]| pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>();
            let (pods, others) = (uids(&held), uids(&others));
            if pods.is_empty() {
                continue;
            }
            let request = Request {
                pods: &pods,
                needs: None,
                others: &others,
                sent: &[],
                key,
                committed: batch.domain.as_deref(),
                used: &BTreeMap::new(),
                grown: &[],
                refused_by: &[],
                awaits: &[],
                goes_with_others: false,
                when_no_fit: WhenNoFit::Hold,
            };
            let Answer::To { domain, hosts } = placer.place(&request) else { continue };
            // What follows its batch without room waits for a node like any other pod, and is not granted one.
            if pods.iter().any(|uid| placer.lacks(uid)) {
                continue;
            }
            let is_committed = batch.domain.as_ref() == Some(&domain);
            batch.domain = Some(domain.clone());
            if is_committed {
                for (pod, host) in batch.pods.iter_mut().filter(|pod| pod.held).zip(hosts) {
                    let host = host.filter(|_| *fault != Some(Fault::NamesNone)).map(|host| (HOST.to_owned(), host));
                    (pod.held, pod.pin) = (false, [(key.to_owned(), domain.clone())].into_iter().chain(host).collect());
                    released.push((index, pod.uid.clone()));
                }
            }
        }
        let held = all.iter().flat_map(|batch| &batch.pods).filter(|pod| pod.held).map(|pod| pod.uid.clone());
        let held: Vec<_> = held.collect();
        placer.finish(|| held.iter().cloned().collect());
        for (index, uid) in released {
            let pod = self.batches[group][index].pods.iter().find(|pod| pod.uid == uid).unwrap().clone();
            self.tell(group, &pod);
        }
    }

    /// Returns the pods that pass `which`.
    fn which(&self, which: impl Fn(&OnePod) -> bool) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (group, batches) in self.batches.iter().enumerate() {
            for (batch, of) in batches.iter().enumerate() {
                let pods = of.pods.iter().enumerate().filter(|(_, pod)| which(pod));
                found.extend(pods.map(|(at, _)| (group, batch, at)));
            }
        }
        found
    }

    /// G1: binds one of the released pods to one of the nodes that fit.
    fn schedule(&mut self, random: &mut Random) -> Result<bool, Broken> {
        let waiting = self.which(|pod| !pod.held && pod.node.is_none());
        if waiting.is_empty() {
            return Ok(false);
        }
        let (group, batch, at) = random.pick(&waiting);
        let pod = &self.batches[group][batch].pods[at];
        let used = |node: usize| {
            let on_it = self.which(|pod| pod.node == Some(node));
            on_it.into_iter().map(|(group, batch, at)| self.batches[group][batch].pods[at].cpu).sum::<u32>()
        };
        let takes = |node: &usize| {
            let labels = labels(*node, &self.nodes[*node]);
            let has = |(key, value): (&String, &String)| labels.get(&**key) == Some(value);
            pod.pin.iter().all(has) && used(*node) + pod.cpu <= self.nodes[*node].cpu
        };
        let fitting: Vec<_> = (0..self.nodes.len()).filter(takes).collect();
        hold!(!fitting.is_empty(), "G1: {:?} of batch {batch} of group {group} finds no node", pod);
        self.batches[group][batch].pods[at].node = Some(random.pick(&fitting));
        let pod = self.batches[group][batch].pods[at].clone();
        self.tell(group, &pod);
        Ok(true)
    }

    fn step(&mut self, random: &mut Random) -> Result<(), Broken> {
        self.now += Duration::from_millis(500);
        match random.below(20) {
            0..=6 => self.pass(random.below(2) as usize),
            7..=12 => _ = self.schedule(random)?,
            13..=17 => _ = self.see(),
            18 if random.percent(30) => self.lead(),
            _ => {
                let bound = self.which(|pod| pod.node.is_some());
                if let Some((group, batch, at)) = (!bound.is_empty()).then(|| random.pick(&bound)) {
                    let whole = self.batches[group][batch].pods.iter().all(|pod| pod.node.is_some());
                    if whole && random.percent(60) {
                        let gone: Vec<_> = self.batches[group][batch].pods.iter().map(|pod| pod.uid.clone()).collect();
                        self.log.extend(gone.into_iter().map(Err));
                        self.make(random, group, batch);
                    } else {
                        self.make_again(group, batch, at);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Runs one history.
pub fn run(seed: u64, fault: Option<Fault>) -> Result<u32, Broken> {
    let mut random = Random::new(seed);
    let mut cluster = Cluster::new(&mut random, fault);
    for _ in 0..STEPS {
        cluster.step(&mut random)?;
    }
    while cluster.schedule(&mut random)? {}
    Ok(u32::try_from(cluster.which(|pod| pod.node.is_some() && !pod.pin.contains_key(HOST)).len()).unwrap())
}
