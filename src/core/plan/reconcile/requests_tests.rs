use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::ConditionedObject;
use crate::api::provisioning::{CAPACITY_BUFFER, PROVISIONING_REQUEST};
use crate::api::status::{GroupStatus, Summary};
use crate::build::{self, typed, with};
use crate::model::moment::Moment;
use crate::model::names;
use crate::model::names::HOSTNAME;
use crate::model::{Allowed, AwaitedKind, Claims, GroupKey, Queued};
use crate::plan::Reconciler;
use crate::plan::placement::{Capacity, Sight};
use crate::plan::provision::entry::{Content, RequestObject};
use crate::plan::reconcile::action::{Answer, Ended, StatusWrite};
use crate::plan::reconcile::options::LoopOptions;
use crate::plan::reconcile::owned_memory::FoundOwned;
use crate::plan::test_support::{mk_batches, mk_group};
use crate::plan::view::{AwaitedObjects, PodFacts, SeenKind, SeenObject};

const RACK: &str = "rack";
/// Seconds since 1970 at the beginning.
const BEGAN: i64 = 1_767_225_600;

/// Batches of two prefills and a decode that share a rack, each pod with one processor. What the loop asks for is done at once.
struct Scene {
    group: Arc<Group>,
    pods: Vec<PodFacts>,
    capacity: Capacity,
    reconciler: Reconciler,
    now: Duration,
    may_request: bool,
    /// Whether the kinds of requests are served.
    are_served: bool,
    objects: BTreeMap<(&'static str, String), RequestObject>,
    conditions: Vec<Value>,
    /// What each pod asks for, and its scheduler.
    asks: (Value, &'static str),
    /// The template of each pod's claim of devices.
    claims: Vec<&'static str>,
    /// How the names of objects end that a quota refuses.
    refused: Option<&'static str>,
    /// Whether a write of the status takes until the end of the next pass; the write that is under way.
    is_slow: bool,
    under_way: Option<(GroupStatus, Option<Ended>)>,
}

/// Returns the name of an object without the time of its request.
fn without_time(name: &str) -> String {
    let is_time = |part: &&str| part.len() == 8 && part.chars().all(|digit| digit.is_ascii_hexdigit());
    name.split('-').filter(|part| !is_time(part)).collect::<Vec<_>>().join("-")
}

fn coordination(when_no_fit: &str, provision: &Value) -> Value {
    let affinity = json!({ "topologyKey": RACK, "ratios": { "prefill": 2, "decode": 1 }, "batchMode": "Parallel" });
    let strategy = json!({ "affinityScheduling": affinity });
    json!([{ "name": "pair", "whenNoFit": when_no_fit, "provision": provision, "strategy": strategy }])
}

fn group(batches: u32, coordination: &Value) -> Group {
    let mut group = mk_group(&[("prefill", 2 * batches), ("decode", batches)], coordination);
    group.carrier.uid = "uid".to_owned();
    group
}

impl Scene {
    fn new(batches: u32, provision: &Value) -> Self {
        let mut scene = Self {
            group: Arc::new(group(batches, &coordination("provision", provision))),
            pods: mk_batches(batches),
            capacity: Capacity::default(),
            reconciler: Reconciler::default(),
            now: Duration::ZERO,
            may_request: true,
            are_served: true,
            objects: BTreeMap::new(),
            conditions: Vec::new(),
            asks: (json!({ "cpu": 1 }), ""),
            claims: Vec::new(),
            refused: None,
            is_slow: false,
            under_way: None,
        };
        scene.led_anew();
        (0..scene.pods.len()).for_each(|at| scene.show(at, None));
        scene
    }

    /// A batch for which nodes are requested beside a rack that is too small; what the request of it is like beside its time.
    fn requested(provision: &Value) -> Self {
        let mut scene = Self::new(1, &with(json!({ "after": "1s" }), provision));
        scene.node("a", "r1", 2);
        scene.after(0);
        scene.after(1);
        scene
    }

    /// Lets another process lead.
    fn led_anew(&mut self) {
        let allowed = Allowed { provision: self.may_request, ..Allowed::default() };
        self.reconciler = Reconciler::new(LoopOptions { allowed, ..LoopOptions::default() });
        self.reconciler.lead(true, [], self.now);
        self.reconciler.sync([GroupKey::new("ns", "pd")], self.now);
    }

    fn show(&mut self, at: usize, node: Option<&str>) {
        let pod = &self.pods[at];
        let gates = if pod.held { json!([{ "name": names::GATE }]) } else { json!([]) };
        let (requests, scheduler) = &self.asks;
        let containers = json!([{ "resources": { "requests": requests } }]);
        let claim = |template: &&str| json!({ "name": "gpu", "resourceClaimTemplateName": template });
        let claims: Vec<_> = self.claims.get(at).map(claim).into_iter().collect();
        let shown = json!({
            "metadata": { "uid": &*pod.pod.uid, "namespace": "ns", "labels": { (names::GROUP): "pd" } },
            "spec": { "nodeName": node, "schedulingGates": gates, "containers": containers, "schedulerName": scheduler, "resourceClaims": claims },
        });
        self.capacity.apply_pod(&serde_json::from_value(shown).unwrap()).unwrap();
    }

    fn node(&mut self, name: &str, rack: &str, cpu: u32) {
        self.node_of(name, rack, &json!({ "cpu": cpu.to_string(), "pods": "100" }));
    }

    fn node_of(&mut self, name: &str, rack: &str, allocatable: &Value) {
        let node = build::node(name, &json!({ RACK: rack, HOSTNAME: name }), allocatable);
        self.capacity.apply_node(&typed(node)).unwrap();
        self.reconciler.capacity_changed(self.capacity.freed(), self.now);
    }

    /// Runs passes after this time until nothing more is done; returns what was done with pods and requests. Pods that go have a
    /// node at once.
    fn after(&mut self, seconds: u64) -> Vec<String> {
        self.now += Duration::from_secs(seconds);
        let mut all = Vec::new();
        loop {
            let done = self.pass();
            if done.is_empty() {
                return all;
            }
            all.extend(done.into_iter().filter(|one| one != "read" && one != "commit"));
        }
    }

    fn pass(&mut self) -> Vec<String> {
        let key = GroupKey::new("ns", "pd");
        self.now += Duration::from_millis(20);
        let of = |object: &Value| -> ConditionedObject { serde_json::from_value(object.clone()).unwrap() };
        let seen = self.conditions.iter().map(of).map(|object| {
            (object.metadata.name.as_deref().unwrap().into(), Arc::new(SeenObject::with_messages(&object)))
        });
        let kinds = [CAPACITY_BUFFER, PROVISIONING_REQUEST].map(AwaitedKind::of);
        let seen = SeenKind::Known(Arc::new(seen.collect()));
        let seen = if self.are_served { seen } else { SeenKind::NotServed };
        let snapshot = Snapshot {
            claims: Claims::of([self.group.clone()]),
            pods: self.pods.iter().cloned().collect(),
            domain_keys: vec![(0, RACK.to_owned())],
            objects: AwaitedObjects::Seen(kinds.map(|kind| (kind, seen.clone())).into()),
            ..Snapshot::default()
        };
        self.reconciler.changed([key.clone()], self.now);
        let text = Moment(BEGAN + i64::try_from(self.now.as_secs()).unwrap()).text();
        let sight = Some(Sight::Known(&mut self.capacity));
        let written = self.under_way.take();
        let actions = self.reconciler.pass(&key, &snapshot, sight, self.now, &text);
        let mut done = Vec::new();
        if let Some((status, ended)) = written {
            Arc::make_mut(&mut self.group).status = status;
            ended.into_iter().for_each(|ended| self.reconciler.ended(key.clone(), ended, self.now));
            done.push("commit".to_owned());
        }
        for action in actions {
            let mut ended = action.ended(None);
            done.extend(match &action {
                Action::Read(Question::Owned { .. }) => {
                    let found = self.objects.values().map(|object| FoundOwned {
                        kind: object.kind,
                        name: object.name.clone(),
                        min_member: 1,
                    });
                    let answer = Answer::Owned { owner: "uid".to_owned(), found: Some(found.collect()) };
                    ended = Some(Ended::Read(answer));
                    Some("read".to_owned())
                }
                Action::Read(_) => Some("read".to_owned()),
                Action::WriteStatus(StatusWrite::Group { status, .. }) if self.is_slow => {
                    self.under_way = Some(((**status).clone(), ended.take()));
                    Some("commit".to_owned())
                }
                Action::WriteStatus(StatusWrite::Group { status, .. }) => {
                    Arc::make_mut(&mut self.group).status = (**status).clone();
                    Some("commit".to_owned())
                }
                Action::Release { pod, pin, consumes, .. } => {
                    let at = self.pods.iter().position(|known| known.pod == *pod).unwrap();
                    (self.pods[at].held, self.pods[at].scheduled) = (false, true);
                    self.show(at, pin.get(HOSTNAME).map(String::as_str));
                    let consumes =
                        consumes.as_ref().map(|(name, _)| format!(" with {}", without_time(name))).unwrap_or_default();
                    Some(format!("release {}{consumes}", pod.name))
                }
                Action::Delete { pod, .. } => Some(format!("delete {}", pod.name)),
                Action::WriteOwned { id, write: OwnedWrite::Create(_), .. }
                    if self.refused.is_some_and(|end| id.name.ends_with(end)) =>
                {
                    ended = action.ended(Some("exceeded quota"));
                    None
                }
                Action::WriteOwned { id, write: OwnedWrite::Create(object), .. } => {
                    // A new leader may not know yet of one that is there.
                    let known = self.objects.insert((id.kind.kind, id.name.clone()), (**object).clone());
                    let name = without_time(&id.name);
                    known.is_none().then(|| format!("make {} {name}", id.kind.kind)).or(Some("read".to_owned()))
                }
                Action::WriteOwned { id, write: OwnedWrite::Remove, .. } => {
                    self.objects.remove(&(id.kind.kind, id.name.clone()));
                    Some(format!("remove {} {}", id.kind.kind, without_time(&id.name)))
                }
                _ => None,
            });
            ended.into_iter().for_each(|ended| self.reconciler.ended(key.clone(), ended, self.now));
        }
        done
    }

    fn summary(&self) -> Summary {
        self.group.status.summary.clone().unwrap_or_default()
    }

    /// Runs so many passes, and lets another process lead and do what is left.
    fn led_anew_after(&mut self, passes: u32) {
        (0..passes).for_each(|_| _ = self.pass());
        self.led_anew();
        self.after(0);
    }

    /// Runs for a second, after which nodes for the first batch are requested.
    #[track_caller]
    fn requests(&mut self) {
        self.after(0);
        assert_eq!(self.after(1), each("make", &objects(0, 1)));
    }

    /// Runs for a minute beside a rack that is too small, in which nothing is requested; returns what is told.
    #[track_caller]
    fn requests_none(&mut self) -> String {
        self.node("a", "r1", 2);
        self.after(0);
        assert_eq!(self.after(60), [""; 0]);
        assert_eq!((self.summary().reason.as_str(), self.entries()), ("NoRoom", vec![]));
        self.summary().message
    }

    /// Returns the name of the object of a kind whose name ends so, without its time.
    fn named(&self, kind: &str, end: &str) -> String {
        let mut names = self.objects.keys().filter(|(of, _)| *of == kind).map(|(_, name)| name);
        names.find(|name| without_time(name).ends_with(end)).unwrap().clone()
    }

    /// Returns batch, phase, attempt and avoided domains of each entry.
    fn entries(&self) -> Vec<(u32, &str, u32, Vec<&str>)> {
        let entries = self.group.status.provisioning.iter();
        entries
            .map(|entry| {
                let avoided = entry.avoided.iter().map(String::as_str).collect();
                (entry.batch, entry.phase.as_str(), entry.attempt, avoided)
            })
            .collect()
    }

    /// Returns the domains that the templates avoid.
    fn avoided(&self) -> Vec<String> {
        let of = |object: &RequestObject| match &object.content {
            Content::Template { domains, .. } => domains.avoided.clone(),
            _ => Vec::new(),
        };
        self.objects.values().flat_map(of).collect()
    }

    fn edit(&mut self, coordination: &Value) {
        let batches = u32::try_from(self.pods.len() / 3).unwrap();
        let status = self.group.status.clone();
        self.group = Arc::new(group(batches, coordination));
        Arc::make_mut(&mut self.group).status = status;
    }
}

/// The objects of a request for a batch, in the order in which they are made.
fn objects(batch: u32, attempt: u32) -> Vec<String> {
    let of = |kind: &'static str| ["decode", "prefill"].map(|role| format!("{kind} pd-pair-{batch}-{attempt}-{role}"));
    [of("PodTemplate"), of("CapacityBuffer")].concat()
}

fn each(verb: &str, objects: &[String]) -> Vec<String> {
    objects.iter().map(|object| format!("{verb} {object}")).collect()
}

/// The same, as they are removed.
fn removed(batch: u32, attempt: u32) -> Vec<String> {
    let made = objects(batch, attempt);
    each("remove", &[&made[2..], &made[..2]].concat())
}

#[test]
fn nodes_are_requested_once_after_the_time_and_the_batch_goes_whole_when_they_are_there() {
    let mut scene = Scene::new(1, &json!({}));
    scene.node("a", "r1", 2);
    assert_eq!(scene.after(0), [""; 0]);
    assert_eq!((scene.summary().reason.as_str(), scene.entries()), ("NoRoom", vec![]));
    assert_eq!(scene.after(4), [""; 0]);
    assert_eq!(scene.after(1), each("make", &objects(0, 1)));
    assert_eq!(scene.entries(), [(0, "Requested", 1, vec!["r1"])], "it would be filled, and bind the rest");
    assert_eq!(scene.summary().reason, "NodesRequested");
    let told = scene.summary().message;
    assert!(
        told.starts_with("no rack fits batch 1: best r1 fits 2 of 3 pods, short of 1 cpu; nodes for 3 pods are"),
        "{told}"
    );
    assert_eq!(scene.after(60), [""; 0]);
    // A part of the nodes is not enough.
    scene.node("b", "r2", 2);
    assert_eq!(scene.after(1), [""; 0]);
    scene.node("c", "r2", 1);
    let released = ["release decode-0", "release prefill-0", "release prefill-1"].map(str::to_owned);
    let done = scene.after(1);
    let (with_gates, later) = done.split_at(5);
    let mut with_gates = with_gates.to_vec();
    with_gates.sort();
    let buffers = &removed(0, 1)[..2];
    assert_eq!(
        with_gates,
        [released.as_slice(), buffers].concat().into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    );
    assert_eq!(later, &removed(0, 1)[2..], "{done:?}");
    assert_eq!((scene.entries(), scene.objects.len()), (vec![], 0));
}

const GPU: &str = "nvidia.com/gpu";

/// A scene with processors in plenty, whose pods ask for a GPU each.
fn of_gpus(scheduler: &'static str) -> Scene {
    let mut scene = Scene::new(1, &json!({ "after": "1s" }));
    scene.asks = (json!({ "cpu": 1, (GPU): 1 }), scheduler);
    (0..scene.pods.len()).for_each(|at| scene.show(at, None));
    scene.node("a", "r1", 9);
    scene.node("b", "r2", 9);
    scene
}

#[test]
fn a_pool_at_zero_is_requested_and_a_node_whose_devices_are_not_registered_yet_is_no_room() {
    let mut scene = of_gpus("");
    scene.requests();
    let told = scene.summary().message;
    let lacks = "no rack fits batch 1: best r1 fits 0 of 3 pods, short of 3 nvidia.com/gpu, which no node has in its allocatable";
    assert!(told.starts_with(lacks) && told.contains("`serve --ignore-resources=nvidia.com/gpu`"), "{told}");
    let entry = &scene.group.status.provisioning[0];
    assert_eq!((&entry.resources, entry.avoided.len()), (&vec![GPU.to_owned()], 0), "no rack has room for a part");
    scene.node("c", "r3", 9);
    scene.node("d", "r3", 9);
    assert_eq!(scene.after(1), [""; 0], "the nodes are there, and not their devices");
    scene.node_of("c", "r3", &json!({ "cpu": 9, "pods": 9, (GPU): 2 }));
    assert_eq!(scene.after(1), [""; 0]);
    scene.led_anew();
    assert_eq!(scene.after(1), [""; 0], "nor for a new leader");
    scene.node_of("d", "r3", &json!({ "cpu": 9, "pods": 9, (GPU): 1 }));
    let done = scene.after(1);
    assert_eq!(done.iter().filter(|one| one.starts_with("release ")).count(), 3, "{done:?}");
}

/// Another scheduler may give a resource that no node has; but what was requested is waited for.
#[test]
fn what_was_requested_counts_as_long_as_the_request_lasts() {
    let mut scene = of_gpus("volcano");
    scene.node_of("c", "r3", &json!({ "cpu": 9, "pods": 9, (GPU): 1 }));
    scene.requests();
    // The only node with the resource goes away.
    scene.capacity.remove_node("c");
    scene.reconciler.capacity_changed(scene.capacity.freed() + 1, scene.now);
    assert_eq!(scene.after(1), [""; 0]);
    assert_eq!(scene.summary().reason, "NodesRequested");
    scene.led_anew();
    assert_eq!(scene.after(1), [""; 0]);
    // The request is given up, and made again.
    scene.after(900);
    scene.after(60);
    assert_eq!((scene.entries()[0].2, scene.summary().reason.as_str()), (2, "NodesRequested"));
    assert_eq!(scene.group.status.provisioning[0].resources, [GPU.to_owned()]);
    // Without a request, the scheduler knows where the resource is.
    let mut scene = of_gpus("volcano");
    let done = scene.after(0);
    assert_eq!(done.iter().filter(|one| one.starts_with("release ")).count(), 3, "{done:?}");
}

#[test]
fn without_the_right_nothing_is_requested_and_that_is_told() {
    let mut scene = Scene::new(1, &json!({}));
    scene.may_request = false;
    scene.led_anew();
    let told = scene.requests_none();
    assert!(told.ends_with("no nodes are requested, since rolegate runs without `--allow provision`"), "{told}");
}

#[test]
fn by_a_kind_that_is_not_served_nothing_is_requested_and_that_is_told() {
    let mut scene = Scene::new(1, &json!({ "after": "1s" }));
    scene.are_served = false;
    let told = scene.requests_none();
    let why = "the API server serves no CapacityBuffer of autoscaling.x-k8s.io/v1beta1: capacitybuffers.autoscaling.x-k8s.io is \
               not there, or lacks that version";
    assert!(told.ends_with(&format!("no nodes are requested, since {why}")), "{told}");
    scene.are_served = true;
    scene.requests();
}

#[test]
fn of_kueue_and_the_loop_one_requests_nodes_and_that_is_told() {
    let mut scene = Scene::new(1, &json!({ "after": "1s" }));
    scene.pods[0].queued = Queued::Provisioned;
    let told = scene.requests_none();
    let why = "rolegate requests no nodes, since an admission check of Kueue has requested them";
    assert!(told.ends_with(why), "{told}");
    scene.pods[0].queued = Queued::Admitted;
    scene.requests();
}

#[test]
fn a_name_does_not_recur_when_attempts_are_counted_anew() {
    let mut scene = Scene::requested(&json!({}));
    let first: BTreeSet<_> = scene.objects.keys().cloned().collect();
    scene.edit(&coordination("hold", &Value::Null));
    scene.after(0);
    scene.edit(&coordination("provision", &json!({ "after": "1s" })));
    scene.requests();
    assert!(scene.objects.keys().all(|object| !first.contains(object)), "{:?}", scene.objects.keys());
}

#[test]
fn another_leader_takes_away_what_the_spec_asks_for_no_longer() {
    for passes in 0..6 {
        let mut scene = Scene::requested(&json!({}));
        scene.edit(&coordination("hold", &Value::Null));
        scene.led_anew_after(passes);
        assert_eq!((scene.entries(), scene.objects.len()), (vec![], 0), "{passes}");
    }
}

#[test]
fn a_request_that_is_in_vain_is_given_up_and_made_again_elsewhere_after_growing_pauses() {
    let mut scene = Scene::new(1, &json!({ "after": "1s", "deadline": "2m" }));
    scene.requests();
    assert_eq!(scene.entries(), [(0, "Requested", 1, vec![])]);
    scene.node("a", "r1", 2);
    assert_eq!(scene.after(118), [""; 0]);
    assert_eq!(scene.after(2), removed(0, 1));
    assert_eq!(scene.entries(), [(0, "GivenUp", 1, vec!["r1"])]);
    assert_eq!(scene.summary().reason, "NoRoom");
    let told = scene.summary().message;
    assert!(told.contains("request 1 for nodes was given up: not all nodes came within 2m: no rack fits"), "{told}");
    assert_eq!(scene.after(9), [""; 0]);
    assert_eq!(scene.after(2), each("make", &objects(0, 2)));
    assert_eq!(scene.avoided(), ["r1", "r1"]);
    scene.node("b", "r2", 1);
    assert_eq!(scene.after(121), removed(0, 2));
    assert_eq!(scene.entries(), [(0, "GivenUp", 2, vec!["r1", "r2"])]);
    assert_eq!(scene.after(18), [""; 0], "the pause is longer");
    assert_eq!(scene.after(3), each("make", &objects(0, 3)));
    // Nothing came elsewhere: any rack is as good as another.
    assert_eq!(scene.after(121), removed(0, 3));
    assert_eq!(scene.entries(), [(0, "GivenUp", 3, vec![])]);
}

#[test]
fn another_leader_goes_on_at_each_step() {
    for passes in 0..6 {
        let mut scene = Scene::new(1, &json!({ "after": "1s", "deadline": "2m" }));
        scene.node("a", "r1", 2);
        scene.after(0);
        scene.now += Duration::from_secs(1);
        scene.led_anew_after(passes);
        scene.after(2);
        assert_eq!((scene.entries(), scene.objects.len()), (vec![(0, "Requested", 1, vec!["r1"])], 4), "{passes}");
        scene.now += Duration::from_secs(120);
        scene.led_anew_after(passes);
        assert_eq!((scene.entries(), scene.objects.len()), (vec![(0, "GivenUp", 1, vec![])], 0), "{passes}");
        scene.after(11);
        scene.node("b", "r2", 3);
        scene.led_anew_after(passes);
        assert_eq!((scene.entries(), scene.objects.len()), (vec![], 0), "{passes}");
        assert!(scene.pods.iter().all(|pod| !pod.held), "{passes}");
    }
}

#[test]
fn an_edit_in_the_middle_takes_the_request_away_or_makes_another() {
    let mut scene = Scene::requested(&json!({}));
    scene.edit(&coordination("provision", &json!({ "after": "1s", "by": "ProvisioningRequest", "class": "c" })));
    let done = scene.after(0);
    assert!(removed(0, 1).iter().all(|one| done.contains(one)), "{done:?}");
    assert_eq!(scene.entries(), [(0, "Requested", 2, vec!["r1"])]);
    let kinds: Vec<_> = scene.objects.keys().map(|(kind, name)| format!("{kind} {}", without_time(name))).collect();
    let templates = ["decode", "prefill"].map(|role| format!("PodTemplate pd-pair-0-2-{role}"));
    assert_eq!(kinds, [templates.as_slice(), &["ProvisioningRequest pd-pair-0-2".to_owned()]].concat());
    scene.edit(&coordination("provision", &json!({ "after": "1s", "by": "ProvisioningRequest", "class": "d" })));
    scene.after(0);
    assert_eq!(scene.entries(), [(0, "Requested", 3, vec!["r1"])], "of another class");
    scene.edit(&coordination("hold", &Value::Null));
    scene.after(0);
    assert_eq!((scene.entries(), scene.objects.len()), (vec![], 0));
}

#[test]
fn nodes_are_requested_for_as_many_batches_as_asked_for_and_no_more() {
    let mut scene = Scene::new(3, &json!({ "after": "1s", "maxSegmentsAhead": 2 }));
    scene.node("a", "r1", 2);
    scene.after(0);
    scene.after(1);
    assert_eq!(scene.entries(), [(0, "Requested", 1, vec!["r1"]), (1, "Requested", 1, vec!["r1"])]);
    assert_eq!(scene.objects.len(), 8);
    // With the first gone, it is the turn of the third.
    scene.node("b", "r2", 3);
    scene.after(0);
    scene.after(2);
    assert_eq!(scene.entries(), [(1, "Requested", 1, vec!["r1"]), (2, "Requested", 1, vec!["r1"])]);
    assert_eq!((scene.objects.len(), scene.pods.iter().filter(|pod| !pod.held).count()), (8, 3));
}

#[test]
fn a_provisioning_request_is_consumed_and_goes_when_its_pods_have_nodes() {
    let mut scene = Scene::requested(&json!({ "by": "ProvisioningRequest" }));
    scene.named("ProvisioningRequest", "pd-pair-0-1");
    scene.node("b", "r2", 3);
    let done = scene.after(0);
    let released = ["decode-0", "prefill-0", "prefill-1"].map(|pod| format!("release {pod} with pd-pair-0-1"));
    assert_eq!(done[..3], released);
    assert_eq!((scene.entries(), scene.objects.len()), (vec![], 0));
}

#[test]
fn a_request_that_the_autoscaler_refuses_is_given_up_at_once() {
    let mut scene = Scene::requested(&json!({ "by": "ProvisioningRequest" }));
    let condition = json!({ "type": "Failed", "status": "True", "reason": "OutOfResources", "message": "no more" });
    let name = scene.named("ProvisioningRequest", "pd-pair-0-1");
    scene.conditions = vec![json!({ "metadata": { "name": name }, "status": { "conditions": [condition] } })];
    scene.after(1);
    assert_eq!((scene.entries(), scene.objects.len()), (vec![(0, "GivenUp", 1, vec![])], 0));
    assert!(
        scene.summary().message.contains("request 1 for nodes was given up: Failed=True (OutOfResources): no more")
    );
}

#[test]
fn a_buffer_that_karpenter_cannot_place_is_given_up_when_that_lasts() {
    let mut scene = Scene::requested(&json!({}));
    let name = scene.named("CapacityBuffer", "pd-pair-0-1-prefill");
    let buffer = |message: &str| {
        let condition =
            json!({ "type": "Provisioning", "status": "False", "reason": "RequiresNewCapacity", "message": message });
        json!({ "metadata": { "name": name }, "status": { "conditions": [condition] } })
    };
    scene.conditions = vec![buffer("2/2 virtual pods required new capacity")];
    scene.after(61);
    assert_eq!(scene.entries(), [(0, "Requested", 1, vec!["r1"])]);
    scene.conditions = vec![buffer("1/2 virtual pods required new capacity, 1 failed")];
    scene.after(1);
    assert_eq!(scene.entries(), [(0, "GivenUp", 1, vec![])], "it was the wrong rack to leave out");
}

#[test]
fn a_request_of_which_a_part_is_refused_is_given_up_with_the_reason() {
    let mut scene = Scene::new(1, &json!({ "after": "1s" }));
    scene.refused = Some("prefill");
    scene.node("a", "r1", 2);
    scene.after(0);
    scene.after(1);
    assert_eq!(scene.entries(), [(0, "Requested", 1, vec!["r1"])]);
    scene.after(2);
    assert!(scene.summary().message.contains("cannot be created: exceeded quota"), "{}", scene.summary().message);
    scene.after(60);
    assert_eq!(scene.entries(), [(0, "GivenUp", 1, vec!["r1"])], "no other rack was looked for in vain");
    assert_eq!(scene.objects.len(), 0, "the nodes for the decode alone are given back");
    let told = scene.summary().message;
    assert!(told.contains("given up: CapacityBuffer \"pd-pair-0-1-") && told.contains("exceeded quota"), "{told}");
}

#[test]
fn pods_with_other_claims_are_requested_apart_and_an_edited_claim_makes_another_request() {
    let mut scene = Scene::new(1, &json!({ "after": "1s" }));
    let show = |scene: &mut Scene, claims: [&'static str; 3]| {
        scene.claims = claims.to_vec();
        (0..3).for_each(|at| scene.show(at, None));
    };
    // One decode, and two prefills that differ as the leader and the worker of a LeaderWorkerSet do.
    let of_role = |scene: &Scene, role: &str| scene.pods.iter().position(|pod| pod.pod.name.starts_with(role)).unwrap();
    let first = of_role(&scene, "prefill");
    let mut claims = ["one"; 3];
    claims[first] = "four";
    show(&mut scene, claims);
    scene.node("a", "r1", 2);
    scene.after(0);
    scene.after(1);
    let counts: Vec<_> =
        scene.group.status.provisioning[0].pod_sets.iter().map(|set| (set.name.clone(), set.count)).collect();
    assert_eq!(counts, [("decode", 1), ("prefill", 1), ("prefill.1", 1)].map(|(name, count)| (name.to_owned(), count)));
    claims[first] = "eight";
    show(&mut scene, claims);
    scene.after(0);
    assert_eq!(scene.entries()[0].2, 2, "what is asked for was edited");
}

/// The status that says so is still being written when the next pass begins the recovery.
#[test]
fn a_batch_that_moves_is_recreated_even_if_writes_of_the_status_are_slow() {
    for is_slow in [false, true] {
        let mut scene = Scene::new(1, &json!({}));
        scene.node("a", "r1", 3);
        scene.after(0);
        let allowed = Allowed { recovery: true, ..Allowed::default() };
        scene.reconciler = Reconciler::new(LoopOptions { allowed, ..LoopOptions::default() });
        scene.reconciler.lead(true, [], scene.now);
        scene.reconciler.sync([GroupKey::new("ns", "pd")], scene.now);
        scene.node("b", "r2", 3);
        scene.pods[2].scheduled = false;
        scene.pods[2].unschedulable = Some("0/2 nodes are available: 1 other, 1 of another rack".into());
        scene.show(2, None);
        scene.is_slow = is_slow;
        scene.after(0);
        assert_eq!(scene.after(60), ["delete decode-0", "delete prefill-0", "delete prefill-1"], "{is_slow}");
    }
}
