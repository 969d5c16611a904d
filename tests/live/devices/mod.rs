//! The real scheduler as judge of placements by devices: random clusters with ResourceSlices of two drivers, and batches that
//! ask for some by claims and by extended resources. What is said to fit is created with its pins, in any order, and every pod of
//! it must be bound; what is said not to fit has no place by a search through every way (`search`).
//!
//! `ROLEGATE_DEVICES=1000` tries as many, `ROLEGATE_DEVICES=1000..2000` those after them (`make long`). A case is the same each
//! time, by its number.

mod cases;
mod objects;
mod search;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::core::{ApiResource, GroupVersionKind};
use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::devices::DeviceObject;
use rolegate::plan::placement::{Fit, Needs, Placement, Question, Room, not_modelled, place};

use self::cases::{Case, Dice};
use self::objects::API;
use self::search::{Ways, holds, ways};
use crate::common::prelude::*;

/// Cases that are tried.
const CASES: usize = 60;
/// Cases of one control plane.
const TOGETHER: usize = 60;
/// Requests at a time.
const AT_ONCE: usize = 16;
const RACK: &str = "example.com/rack";
const CASE: &str = "example.com/case";
/// Clusters of at most so many nodes are searched through.
const SMALL: usize = 12;

/// After so long without another pod that is bound, the rest are not.
const QUIET: Duration = Duration::from_secs(30);

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Bound,
    NoPlace,
    /// It has a place with luck: with devices that the scheduler may not take, or in a certain order of the pods.
    NoSurePlace,
    /// Refused, and too large to be searched.
    NotSearched,
    NotModelled,
    /// Refused, and some order of search finds a place for every order of the pods.
    Missed,
    NotBound,
}

/// An answer: the nodes of released pods, and the placement of the batch.
struct Answer {
    /// The sort and the node of each.
    released: Vec<(usize, String)>,
    batch: Option<Placement>,
    not_modelled: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_agrees_about_devices() {
    let asked = std::env::var("ROLEGATE_DEVICES").unwrap_or_else(|_| CASES.to_string());
    let number = |text: &str| text.parse::<usize>().expect("a number of cases");
    let range = asked.split_once("..").map_or_else(|| 0..number(&asked), |(from, to)| number(from)..number(to));
    let mut all: BTreeMap<Outcome, Vec<usize>> = BTreeMap::new();
    let numbers: Vec<_> = range.collect();
    for some in numbers.chunks(TOGETHER) {
        for (case, outcome) in judged(some.iter().map(|number| Case::of(*number)).collect()).await {
            all.entry(outcome).or_default().push(case);
        }
        let count = |(outcome, cases): (&Outcome, &Vec<usize>)| format!("{outcome:?} {}", cases.len());
        println!("{}", all.iter().map(count).collect::<Vec<_>>().join(", "));
    }
    let count = |outcome| all.get(&outcome).map_or(0, Vec::len);
    let shown = count(Outcome::Bound) > numbers.len() / 4 && count(Outcome::NoPlace) > numbers.len() / 20;
    assert!(shown, "they show nothing");
    assert!(count(Outcome::NotModelled) * 10 <= numbers.len(), "{all:?}");
    for disagreement in [Outcome::Missed, Outcome::NotBound] {
        assert_eq!(all.get(&disagreement), None, "{disagreement:?}");
    }
}

async fn judged(cases: Vec<Case>) -> Vec<(usize, Outcome)> {
    // Hundreds of nodes are no company for other tests.
    let stage = Stage::on(ControlPlane::own_with_groups().await, "devices").await;
    let (nodes, pods) = (Api::<ApiNode>::all(stage.client.clone()), stage.api::<ApiPod>());
    each(cases.iter().flat_map(Case::node_objects), async |node| {
        nodes.create(&PostParams::default(), &typed(node)).await.unwrap();
    })
    .await;
    let objects = cases.iter().flat_map(|case| case.device_objects(&stage.namespace));
    each(objects, async |object| create(&stage, object).await).await;
    each(cases.iter().flat_map(Case::other_pods), async |pod| {
        pods.create(&PostParams::default(), &typed(pod)).await.unwrap();
    })
    .await;
    let uids = pods.list(&ListParams::default()).await.unwrap().into_iter();
    let uids: BTreeMap<_, _> = uids.map(|pod| (pod.metadata.name.unwrap(), pod.metadata.uid.unwrap())).collect();
    let claims = cases.iter().flat_map(|case| case.other_claims(|name| uids[name].clone()));
    each(claims, async |(claim, status)| {
        let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
        create(&stage, claim).await;
        let claims = any(&stage, "ResourceClaim");
        claims.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    })
    .await;
    until_ready(&nodes).await;
    let known = Known::of(&stage).await;
    let answers: Vec<_> = cases.iter().map(|case| known.answer(case, &stage.namespace)).collect();
    sent(&stage, &cases, &answers).await;
    let is_bound = |name: &str, now: &View| now.named(name).is_some_and(Pod::is_scheduled);
    let all: Vec<_> = cases.iter().zip(&answers).flat_map(|(case, answer)| wanted(case, answer)).collect();
    // As long as one is bound now and then.
    let count = |now: &View| all.iter().filter(|(name, ..)| is_bound(name, now)).count();
    loop {
        let before = stage.pods.now(count);
        let more = stage.pods.until("another is bound", |now| count(now) > before);
        if before == all.len() || tokio::time::timeout(QUIET, more).await.is_err() {
            break;
        }
    }
    let mut outcomes = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        let names = wanted(case, answer);
        let left = stage.pods.now(|now| names.iter().find(|(name, ..)| !is_bound(name, now)).cloned());
        outcomes.push((case.number, outcome(&stage, case, answer, left)));
    }
    outcomes
}

fn outcome(stage: &Stage, case: &Case, answer: &Answer, left: Option<Wanted>) -> Outcome {
    if answer.not_modelled {
        return Outcome::NotModelled;
    }
    let at = |name: &str| (0..case.nodes.len()).find(|node| case.node_name(*node) == name).unwrap();
    let released: Vec<_> = answer.released.iter().map(|(sort, node)| (*sort, at(node))).collect();
    if let Some((name, sort, node)) = left {
        let why = stage.pods.now(|now| now.named(&name).map(|pod| pod.unschedulable.clone()));
        let mut counts = vec![0; case.sorts.len()];
        let placed = answer.batch.iter().flat_map(|placement| &placement.nodes).zip(&case.batch);
        placed.filter(|(of, _)| ***of == *node).for_each(|(_, sort)| counts[*sort] += 1);
        let expected = holds(case, at(&node), &released, &counts);
        println!(
            "case {}: {name} (sort {sort}) is not bound to {node}, {counts:?} with {released:?}: {why:?}; the search expects {expected}",
            case.number
        );
        return Outcome::NotBound;
    }
    if answer.batch.is_some() {
        return Outcome::Bound;
    }
    if case.nodes.len() > SMALL {
        return Outcome::NotSearched;
    }
    match ways(case, &released) {
        Ways::None => Outcome::NoPlace,
        Ways::WithLuck => Outcome::NoSurePlace,
        Ways::TooMany => Outcome::NotSearched,
        Ways::InAnyOrder => {
            println!("case {}: there is a place", case.number);
            Outcome::Missed
        }
    }
}

/// The name of a pod, its sort, and the node that it is to be bound to.
type Wanted = (String, usize, String);

/// The pods that are to be bound.
fn wanted(case: &Case, answer: &Answer) -> Vec<Wanted> {
    let name = |what: &str, at: usize| format!("{what}-{}-{at}", case.number);
    let released = answer.released.iter().enumerate();
    let released = released.map(|(at, (sort, node))| (name("released", at), *sort, node.clone()));
    let batch = answer.batch.iter().flat_map(|placement| &placement.nodes).zip(&case.batch).enumerate();
    released.chain(batch.map(|(at, (node, sort))| (name("batch", at), *sort, node.to_string()))).collect()
}

/// Creates the pods that are to be bound, in any order.
async fn sent(stage: &Stage, cases: &[Case], answers: &[Answer]) {
    let of_case = |(case, answer): (&Case, &Answer)| {
        let pod = |(name, sort, node): Wanted| case.pod(&name, sort, Some(&node));
        wanted(case, answer).into_iter().map(pod).collect::<Vec<_>>()
    };
    let mut all: Vec<Value> = cases.iter().zip(answers).flat_map(of_case).collect();
    let mut dice = Dice::new(cases[0].number as u64);
    for at in 1..all.len() {
        all.swap(at, dice.below(at + 1));
    }
    let pods = stage.api::<ApiPod>();
    each(all, async |pod| _ = pods.create(&PostParams::default(), &typed(pod)).await.unwrap()).await;
}

async fn each<T>(all: impl IntoIterator<Item = T>, send: impl AsyncFn(T)) {
    let all: Vec<_> = all.into_iter().map(|one| send(one)).collect();
    stream::iter(all).buffer_unordered(AT_ONCE).for_each(async |()| ()).await;
}

fn any(stage: &Stage, kind: &str) -> Api<DynamicObject> {
    let (group, version) = API.split_once('/').unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind.starts_with("ResourceClaim") {
        Api::namespaced_with(stage.client.clone(), &stage.namespace, &resource)
    } else {
        Api::all_with(stage.client.clone(), &resource)
    }
}

async fn create(stage: &Stage, object: Value) {
    let api = any(stage, object["kind"].as_str().unwrap());
    let written = object.to_string();
    api.create(&PostParams::default(), &typed(object)).await.unwrap_or_else(|error| panic!("{error}: {written}"));
}

async fn until_ready(nodes: &Api<ApiNode>) {
    eventually(PATIENT, "every node is ready", async || {
        for node in nodes.list(&ListParams::default().labels(CASE)).await.map_err(|error| error.to_string())? {
            let node: Node = typed(serde_json::to_value(node).unwrap());
            let is_clear = node.spec.taints.iter().all(|taint| taint.key != "node.kubernetes.io/not-ready");
            (node.is_ready() && is_clear).then_some(()).ok_or("not yet")?;
        }
        Ok::<_, String>(())
    })
    .await;
}

/// What the API server shows before the batches come, by the prefix of the names of each case.
struct Known {
    nodes: Vec<Value>,
    pods: Vec<Value>,
    devices: Vec<(String, Value)>,
}

impl Known {
    async fn of(stage: &Stage) -> Self {
        let nodes = Api::<ApiNode>::all(stage.client.clone()).list(&ListParams::default()).await.unwrap();
        let pods = stage.api::<ApiPod>().list(&ListParams::default()).await.unwrap();
        let mut devices = Vec::new();
        for kind in ["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"] {
            let all = any(stage, kind).list(&ListParams::default()).await.unwrap();
            devices.extend(all.items.into_iter().map(|one| (kind.to_owned(), serde_json::to_value(one).unwrap())));
        }
        let nodes = nodes.items.iter().map(|node| serde_json::to_value(node).unwrap()).collect();
        let pods = pods.items.iter().map(|pod| serde_json::to_value(pod).unwrap()).collect();
        Self { nodes, pods, devices }
    }

    fn room(&self, case: &Case) -> Room {
        let mut room = Room::default();
        let is_of = |object: &&Value| object["metadata"]["labels"][CASE] == json!(case.number.to_string());
        for node in self.nodes.iter().filter(is_of) {
            room.apply_node(&typed(node.clone())).unwrap();
        }
        let by_name = |name: &str| {
            let of = name.trim_start_matches("other-").trim_start_matches('j');
            of.split('-').next() == Some(&case.number.to_string())
        };
        let devices = self.devices.iter().filter(|(_, object)| by_name(object["metadata"]["name"].as_str().unwrap()));
        let read = |(kind, object): &(String, Value)| match kind.as_str() {
            "DeviceClass" => DeviceObject::Class(typed(object.clone())),
            "ResourceClaim" => DeviceObject::Claim(typed(object.clone())),
            "ResourceClaimTemplate" => DeviceObject::Template(typed(object.clone())),
            "ResourceSlice" => DeviceObject::Slice(typed(object.clone())),
            _ => DeviceObject::TaintRule(typed(object.clone())),
        };
        room.devices_mut().apply_all(&devices.map(read).collect::<Vec<_>>());
        for pod in self.pods.iter().filter(is_of) {
            let pod: SchedulingPod = typed(pod.clone());
            let (needs, uid) = (Needs::of(&pod).unwrap(), pod.metadata.uid.clone().unwrap());
            room.apply_pod(&uid, pod.node().unwrap(), needs.load, &needs.peer);
        }
        room
    }

    /// Asks for the released pods one after the other, then for the batch.
    fn answer(&self, case: &Case, namespace: &str) -> Answer {
        let mut room = self.room(case);
        let needs = |sort: usize| {
            let mut pod = case.pod("asked", sort, None);
            pod["metadata"]["namespace"] = json!(namespace);
            Arc::new(Needs::of(&typed::<SchedulingPod>(pod)).unwrap())
        };
        let used = BTreeMap::new();
        let all: Vec<_> = (0..case.sorts.len()).map(needs).collect();
        let said = not_modelled(&all, &room);
        let mut answer = Answer { released: Vec::new(), batch: None, not_modelled: !said.is_empty() };
        if answer.not_modelled {
            return answer;
        }
        for (at, sort) in case.released.iter().enumerate() {
            let asked = [all[*sort].clone()];
            if let Fit::Fits(found) = place(&room, &Question::new(&asked, None, &used)) {
                let needs = &all[*sort];
                room.apply_pod(&format!("released-{at}"), &found.nodes[0], needs.load.clone(), &needs.peer);
                answer.released.push((*sort, found.nodes[0].to_string()));
            }
        }
        let batch: Vec<_> = case.batch.iter().map(|sort| all[*sort].clone()).collect();
        answer.batch = place(&room, &Question::new(&batch, Some(RACK), &used)).placement().cloned();
        answer
    }
}
