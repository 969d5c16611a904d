//! LeaderWorkerSet's own features beside ours: its controllers and webhooks are a part of every control plane of tests.

use crate::common::prelude::*;

use crate::in_rig;

const OURS: &str = "/apis/rolegate.dev/v1alpha1";
const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
const SUBGROUP_EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
const SUBGROUP: &str = "leaderworkerset.sigs.k8s.io/subgroup-index";
const WORKER: &str = "leaderworkerset.sigs.k8s.io/worker-index";
const REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";
const RACK: &str = "example.com/rack";
const HOST: &str = "kubernetes.io/hostname";

static PLANE: Shared = Shared::new(|| ControlPlane::start_with_groups("kwok,lws", &[]));

async fn stage(namespace: &str) -> Stage {
    let plane = tokio::task::spawn_blocking(|| PLANE.get()).await.unwrap();
    Stage::on(plane, namespace).await
}

fn record(tried: &str, result: &str) {
    in_rig::record("lws", "sigs.k8s.io/lws", tried, result);
}

/// A group of one role on a LeaderWorkerSet of its name, one group of pods in each segment.
struct Scene {
    stage: Stage,
    group: Group,
    statuses: StatusLog,
}

impl Scene {
    fn new(stage: Stage, replicas: u32) -> Self {
        let group = Group::new("llm").role("main", replicas, 1).held_back().bare_names();
        let statuses = stage.coordination_statuses("llm");
        Self { stage, group, statuses }
    }

    /// What is asked to coordinate it: segments, with more in their strategy.
    fn coordination(&self, more: &Value) -> Value {
        self.group.coordination_of("LeaderWorkerSet", more)
    }

    /// A set of groups of so many pods; `more` is merged into it.
    fn set(&self, size: usize, more: &Value) -> Value {
        self.group.leader_worker_set("main", size, &self.stage.namespace, more)
    }

    async fn deploy(&self, segments: &Value, set: Value) {
        self.stage.create(self.coordination(segments)).await;
        self.stage.create(set).await;
    }

    async fn until(&self, what: &str, test: impl Fn(&View) -> bool) {
        self.stage.pods.until(what, test).await;
    }

    /// Groups of pods come up one after another, each with so many pods.
    async fn one_after_another(&self, groups: u32, size: usize) {
        for next in 0..groups {
            let of_it = |pod: &Pod| pod.index == next;
            // Workers may be made when their leader is ready.
            let has_a_node = |pod: &Pod| of_it(pod) && pod.is_scheduled();
            let leads = |pod: &Pod| has_a_node(pod) && pod.labels[WORKER] == "0";
            self.stage.let_ready_until(leads, |now| now.count_all(has_a_node) == size).await;
            self.stage.pods.now(|now| assert!(now.all().all(|p| p.is_held() == (p.index > next)), "{now}"));
            self.stage.let_ready(of_it).await;
        }
        let all = groups as usize * size;
        let ready = format!("True AllReplicasReady: {all}/{all} pods ready");
        self.statuses.until("all ready", |status| status.ready() == ready).await;
        self.each_after_the_one_before(size);
    }

    /// At every event: no group was let go before all pods of the one before were ready.
    fn each_after_the_one_before(&self, size: usize) {
        let mut ready = BTreeMap::<u32, BTreeSet<String>>::new();
        for event in self.stage.pods.events() {
            match event.step {
                Step::Ready => _ = ready.entry(event.pod.index).or_default().insert(event.pod.uid.clone()),
                Step::Released if event.pod.index > 0 => {
                    let before = ready.get(&(event.pod.index - 1)).map_or(0, BTreeSet::len);
                    assert!(before >= size, "{:?} after {before} of {size}", event.pod.name);
                }
                _ => {}
            }
        }
    }

    fn patch(&self, patch: &Value) {
        self.stage.kubectl(&["patch", "lws", "main", "--type=merge", "-p", &patch.to_string()]);
    }

    /// Nodes in racks, each with room for so many pods.
    async fn add_racks(&self, racks: &[&str], hosts: &[&str], room: u32) {
        for (rack, host) in racks.iter().flat_map(|rack| hosts.iter().map(move |host| (rack, host))) {
            self.stage.add_node_with(&format!("{rack}-{host}"), room, json!({ (RACK): rack })).await;
        }
    }

    /// Rack and host of a pod.
    fn place(&self, pod: &Pod) -> (String, String) {
        let name = pod.node.as_deref().unwrap().strip_prefix(&self.stage.namespace).unwrap();
        let (rack, host) = name[1..].split_once('-').unwrap();
        (rack.to_owned(), host.to_owned())
    }

    /// The racks of each group.
    fn racks(&self) -> BTreeMap<u32, BTreeSet<String>> {
        let mut racks = BTreeMap::<u32, BTreeSet<String>>::new();
        let mut take = |pod: &Pod| _ = racks.entry(pod.index).or_default().insert(self.place(pod).0);
        self.stage.pods.now(|now| now.all().for_each(&mut take));
        racks
    }

    /// A container of the pod was restarted, as its kubelet would say.
    async fn restart(&self, pod: &str) {
        let container = json!({ "name": "main", "image": "x", "imageID": "", "ready": true, "started": true, "restartCount": 1,
            "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } } });
        self.stage.patch_status_of_pod(pod, json!({ "status": { "containerStatuses": [container] } })).await;
    }
}

fn required(more: &str) -> Value {
    near(RACK, more)
}

/// Returns a RoleCoordination of sets that roll together.
fn in_lockstep(group: &Group, bounds: &Value) -> Value {
    let roles: Vec<_> = group.roles.iter().map(|role| &role.name).collect();
    let mut object = group.coordination_of("LeaderWorkerSet", &json!({}));
    object["spec"]["coordination"] =
        json!([{ "name": "roll", "roles": roles, "strategy": { "rollingUpdate": bounds } }]);
    object
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn both_startup_policies_fill_segments() {
    for (policy, namespace) in [("LeaderCreated", "leader-created"), ("LeaderReady", "leader-ready")] {
        let scene = Scene::new(stage(namespace).await, 3);
        scene.stage.add_node("all", 9).await;
        let _rolegate = scene.stage.launch().start().await;
        scene.deploy(&json!({}), scene.set(3, &json!({ "spec": { "startupPolicy": policy } }))).await;
        scene.one_after_another(3, 3).await;
    }
    let result = "each group goes after all pods of the one before are ready";
    record("`startupPolicy` LeaderCreated and LeaderReady, a group of three in each segment", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn workers_that_are_made_later_cannot_fill_a_batch_that_goes_as_a_whole() {
    let later = [
        ("leaders-first", json!({ "spec": { "startupPolicy": "LeaderReady" } }), "startupPolicy LeaderReady"),
        ("exclusive-first", json!({ "metadata": { "annotations": { EXCLUSIVE: RACK } } }), "exclusive topology"),
    ];
    for (namespace, more, why) in later {
        let scene = Scene::new(stage(namespace).await, 2);
        scene.add_racks(&["a", "b"], &["x"], 8).await;
        let _rolegate = scene.stage.launch().start().await;
        let set = scene.set(3, &more);
        scene.stage.create(set.clone()).await;
        let coordination = scene.coordination(&required("RequireSegmentAffinity"));
        let made = scene.stage.post(OURS, "rolecoordinations", &coordination).await;
        assert!(made.code == 422 && made.body["message"].as_str().unwrap().contains(why), "{made:?}");
        // The other order: the coordination was right when it was stored.
        scene.stage.kubectl(&["delete", "lws", "main"]);
        scene.until("gone", |now| now.count_all(|_| true) == 0).await;
        scene.stage.create(scene.coordination(&required("RequireSegmentAffinity"))).await;
        scene.stage.create(set.clone()).await;
        let status = scene.statuses.until("it is said", |status| status.reason() == "InvalidCoordination").await;
        assert!(status.progressing().contains(why), "{status}");
    }
    record(
        "LeaderReady, or `exclusive-topology`, beside a hard topology of rolegate's",
        "does not work: refused (incremental-creation), or held if the set comes after the coordination (InvalidCoordination)",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn an_exclusive_topology_is_theirs_and_the_order_is_ours() {
    let near = [("exclusive", json!({})), ("exclusive-near", required("PreferSegmentAffinity"))];
    for (namespace, segments) in near {
        let scene = Scene::new(stage(namespace).await, 3);
        scene.add_racks(&["a", "b", "c"], &["x", "y"], 4).await;
        let _rolegate = scene.stage.launch().start().await;
        scene.deploy(&segments, scene.set(3, &json!({ "metadata": { "annotations": { EXCLUSIVE: RACK } } }))).await;
        scene.one_after_another(3, 3).await;
        let racks = scene.racks();
        let all: BTreeSet<_> = racks.values().flatten().collect();
        assert!(racks.values().all(|racks| racks.len() == 1) && all.len() == 3, "{racks:?}");
    }
    let result = "works: each group has its own rack";
    record("`exclusive-topology` beside segments without a topology, or with a preferred one on the same key", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn subgroups_have_their_hosts_within_the_rack_of_their_segment() {
    // A leader with two pairs of workers, of which the first is with the leader; or a leader that is in none.
    let kinds = [
        ("subgroups", 4, "LeaderWorker", json!({})),
        ("subgroups-leader-excluded", 5, "LeaderExcluded", json!({})),
        ("subgroups-hard", 4, "LeaderWorker", required("RequireSegmentAffinity")),
        ("subgroups-hard-excluded", 5, "LeaderExcluded", required("RequireSegmentAffinity")),
    ];
    for (namespace, size, kind, segments) in kinds {
        let scene = Scene::new(stage(namespace).await, 2);
        scene.add_racks(&["a", "b"], &["x", "y", "z"], 3).await;
        let _rolegate = scene.stage.launch().start().await;
        let more = json!({
            "metadata": { "annotations": { SUBGROUP_EXCLUSIVE: HOST } },
            "spec": { "leaderWorkerTemplate": { "subGroupPolicy": { "subGroupSize": 2, "subGroupPolicyType": kind } } },
        });
        scene.deploy(&segments, scene.set(size, &more)).await;
        scene.one_after_another(2, size).await;
        let mut hosts = BTreeMap::<_, BTreeSet<_>>::new();
        scene.stage.pods.now(|now| {
            for pod in now.all().filter(|pod| pod.labels.contains_key(SUBGROUP)) {
                hosts.entry((pod.index, pod.labels[SUBGROUP].clone())).or_default().insert(scene.place(pod));
            }
        });
        let all: BTreeSet<_> = hosts.values().flatten().collect();
        assert_eq!((hosts.len(), all.len()), (4, 4), "{namespace}: {hosts:?}");
        assert!(hosts.values().all(|hosts| hosts.len() == 1), "{namespace}: {hosts:?}");
        if segments != json!({}) {
            assert!(scene.racks().values().all(|racks| racks.len() == 1), "{:?}", scene.racks());
        }
    }
    record(
        "`subGroupPolicy` LeaderWorker and LeaderExcluded with `subgroup-exclusive-topology` on the host, alone and within a hard \
         topology of racks",
        "works if each rack has free hosts for all subgroups of a segment",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn subgroups_that_have_too_few_hosts_in_any_rack_are_held_and_it_is_said() {
    let scene = Scene::new(stage("subgroups-too-few").await, 1);
    // Room for all four pods on one host, and both pairs want one of their own.
    scene.add_racks(&["a"], &["x"], 8).await;
    let _rolegate = scene.stage.launch().start().await;
    let more = json!({
        "metadata": { "annotations": { SUBGROUP_EXCLUSIVE: HOST } },
        "spec": { "leaderWorkerTemplate": { "subGroupPolicy": { "subGroupSize": 2 } } },
    });
    scene.deploy(&required("RequireSegmentAffinity"), scene.set(4, &more)).await;
    scene.statuses.until("it is said", |status| status.reason() == "NoRoom").await;
    scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 4, "{now}"));
    scene.add_racks(&["a"], &["y"], 2).await;
    scene.one_after_another(1, 4).await;
    record(
        "`subgroup-exclusive-topology` on the host, where a rack has room for all pods and too few hosts for the subgroups",
        "the segment is held with NoRoom until the rack has one more host",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn its_own_rolling_update_goes_on_with_surge_beside_segments() {
    let scene = Scene::new(stage("surge").await, 3);
    scene.stage.add_node("all", 12).await;
    let _rolegate = scene.stage.launch().start().await;
    let update = json!({ "maxSurge": 1, "maxUnavailable": 1 });
    let rollout = json!({ "type": "RollingUpdate", "rollingUpdateConfiguration": update });
    scene.deploy(&json!({}), scene.set(2, &json!({ "spec": { "rolloutStrategy": rollout } }))).await;
    scene.one_after_another(3, 2).await;
    let first = scene.stage.pods.now(|now| now.all().next().unwrap().labels[REVISION].clone());
    let container = json!([{ "name": "main", "image": "registry.invalid/x:2" }]);
    let template = json!({ "workerTemplate": { "spec": { "containers": container } } });
    scene.patch(&json!({ "spec": { "leaderWorkerTemplate": template } }));
    let is_new = |pod: &Pod| pod.labels[REVISION] != first;
    scene.until("a surge group", |now| now.count_all(|pod| pod.index == 3 && pod.is_scheduled()) == 2).await;
    let is_done = |pod: &Pod| is_new(pod) && pod.is_ready() && pod.index < 3;
    let no_surge = |now: &View| now.count_all(|_| true) == 6 && now.all().all(is_done);
    scene.stage.let_ready_until(Pod::is_scheduled, no_surge).await;
    // In lockstep such a set is refused.
    let both = Group::new("lockstep").role("main", 3, 1).role("other", 3, 1).bare_names();
    let lockstep = in_lockstep(&both, &json!({ "maxSkew": "50%" }));
    let made = scene.stage.post(OURS, "rolecoordinations?dryRun=All", &lockstep).await;
    assert!(made.code == 422 && made.body["message"].as_str().unwrap().contains("maxSurge"), "{made:?}");
    let result = "works beside segments; in a `rollingUpdate` of rolegate a set with `maxSurge` is refused (lws-surge)";
    record("its own rolling update with `maxSurge: 1`, `maxUnavailable: 1`", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn in_lockstep_it_may_have_as_many_away_as_the_coordination_says_and_no_more() {
    let (stage, _rolegate) = stage("lws-lockstep").await.with_room(24).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 1).role("decode", 4, 1);
    let statuses = stage.coordination_statuses("llm");
    stage.create(in_lockstep(&group, &json!({ "maxSkew": "25%", "maxUnavailable": 1 }))).await;
    for role in &group.roles {
        let rollout = json!({ "type": "RollingUpdate", "rollingUpdateConfiguration": { "maxUnavailable": 3 } });
        let more = json!({
            "metadata": { "labels": { "rolegate.dev/group": "llm", "rolegate.dev/role": role.name } },
            "spec": {
                "rolloutStrategy": rollout, "leaderWorkerTemplate": { "restartPolicy": "RecreateGroupOnPodRestart" },
            },
        });
        stage.create(group.leader_worker_set(&role.name, 2, &stage.namespace, &more)).await;
    }
    statuses.until("it serves", |status| status.ready().starts_with("True")).await;
    let first: BTreeSet<_> = stage.pods.now(|now| now.all().map(|pod| pod.labels[REVISION].clone()).collect());
    let before = stage.pods.events().len();
    let container = json!([{ "name": "main", "image": "registry.invalid/x:2" }]);
    let template = json!({ "workerTemplate": { "spec": { "containers": container } } });
    let patch = json!({ "spec": { "leaderWorkerTemplate": template } }).to_string();
    for role in &group.roles {
        stage.kubectl(&["patch", "lws", &group.set_name(&role.name), "--type=merge", "-p", &patch]);
    }
    let is_new = |pod: &Pod| !first.contains(&pod.labels[REVISION]) && pod.is_ready();
    stage.pods.until_within(PATIENT * 2, "all new", |now| now.count_all(is_new) == 16).await;
    let mut view = View::default();
    let whole = |view: &View, role: &str| {
        (0..4).filter(|index| view.of(role).filter(|pod| pod.index == *index && pod.is_ready()).count() == 2).count()
    };
    for (number, event) in stage.pods.events().into_iter().enumerate() {
        view.take(&event);
        for role in ["prefill", "decode"] {
            assert!(number < before || whole(&view, role) >= 3, "{role}: {view}");
        }
    }
    record(
        "its own `maxUnavailable: 3` in a `rollingUpdate` of rolegate's with `maxUnavailable: 1`, \
         `restartPolicy: RecreateGroupOnPodRestart`",
        "one group at a time, as rolegate asks",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_group_that_is_recreated_goes_at_once_where_it_ran_and_waits_where_it_was_held() {
    let scene = Scene::new(stage("recreate").await, 2);
    scene.stage.add_node("all", 8).await;
    let _rolegate = scene.stage.launch().start().await;
    let policy = json!({ "spec": { "leaderWorkerTemplate": { "restartPolicy": "RecreateGroupOnPodRestart" } } });
    scene.deploy(&json!({}), scene.set(3, &policy)).await;
    scene.until("the first group", |now| now.count_all(Pod::is_scheduled) == 3 && now.count_all(|_| true) == 6).await;
    let uids = |of: u32| {
        scene.stage.pods.now(|now| now.all().filter(|p| p.index == of).map(|p| p.uid.clone()).collect::<BTreeSet<_>>())
    };
    let (ran, held) = (uids(0), uids(1));
    // It runs, as kwok has written: what is written after that stays.
    scene.stage.let_ready(|pod| pod.name == "main-0-1").await;
    scene.until("it runs", |now| now.named("main-0-1").is_some_and(Pod::is_ready)).await;
    scene.restart("main-0-1").await;
    let anew = |pod: &Pod| pod.index == 0 && !ran.contains(&pod.uid);
    scene.until("all three anew", |now| now.count_all(|pod| anew(pod) && pod.is_scheduled()) == 3).await;
    assert_eq!(uids(1), held);
    // A held one is deleted: its whole group is made again, and waits as before.
    scene.stage.delete::<ApiPod>("main-1-2").await;
    let again = |pod: &Pod| pod.index == 1 && !held.contains(&pod.uid) && pod.is_held();
    scene.until("three anew, held", |now| now.count_all(again) == 3 && now.count_all(|pod| pod.index == 1) == 3).await;
    scene.one_by_one_from_here().await;
    record(
        "`restartPolicy: RecreateGroupOnPodRestart`: a container of a running group restarts, a pod of a held one is deleted",
        "the running group is recreated and goes at once; the held one waits for its turn",
    );
}

impl Scene {
    async fn one_by_one_from_here(&self) {
        self.stage.let_ready(Pod::is_scheduled).await;
        self.until("the second group", |now| now.count_all(|pod| pod.index == 1 && pod.is_scheduled()) == 3).await;
        self.stage.let_ready(|_| true).await;
        self.statuses.until("all ready", |status| status.ready().starts_with("True")).await;
    }
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_restart_before_the_group_has_started_waits_for_held_pods_that_are_pending() {
    let scene = Scene::new(stage("recreate-after-start").await, 2);
    scene.stage.add_node("all", 8).await;
    let _rolegate = scene.stage.launch().start().await;
    let policy = json!({ "spec": { "leaderWorkerTemplate": { "restartPolicy": "RecreateGroupAfterStart" } } });
    scene.deploy(&json!({}), scene.set(3, &policy)).await;
    scene.until("the first group", |now| now.count_all(Pod::is_scheduled) == 3 && now.count_all(|_| true) == 6).await;
    let (of, uid) = (1, |now: &View, name: &str| now.named(name).map(|pod| pod.uid.clone()));
    let leader = scene.stage.pods.now(|now| uid(now, "main-1")).unwrap();
    let worker = scene.stage.pods.now(|now| uid(now, "main-1-2")).unwrap();
    // All of the second group are pending: no restart of the group, the worker alone comes back.
    scene.stage.delete::<ApiPod>("main-1-2").await;
    scene.until("the worker anew", |now| uid(now, "main-1-2").is_some_and(|new| new != worker)).await;
    scene.until("all are held", |now| now.count_all(|pod| pod.index == of && pod.is_held()) == 3).await;
    assert_eq!(scene.stage.pods.now(|now| uid(now, "main-1")), Some(leader));
    scene.one_by_one_from_here().await;
    let result = "only the pod is recreated, since held pods are pending";
    record("`restartPolicy: RecreateGroupAfterStart`: a pod of a held group is deleted", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn groups_that_grow_are_made_again_and_go_at_once() {
    let scene = Scene::new(stage("resize").await, 2);
    scene.stage.add_node("all", 8).await;
    let _rolegate = scene.stage.launch().start().await;
    scene.deploy(&json!({}), scene.set(2, &json!({}))).await;
    scene.one_after_another(2, 2).await;
    scene.patch(&json!({ "spec": { "leaderWorkerTemplate": { "size": 3 } } }));
    eventually(PATIENT, "groups of three", async || {
        scene.stage.try_let_ready(Pod::is_scheduled).await;
        let status = scene.statuses.now();
        if status.ready() == "True AllReplicasReady: 6/6 pods ready" { Ok(()) } else { Err(status) }
    })
    .await;
    let result = "each group is replaced as a whole, goes at once, and counts by the size of its pods";
    record("resize: `leaderWorkerTemplate.size` from two to three", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_disaggregated_set_comes_up_in_segments_and_rolls_by_its_own_lockstep() {
    let (stage, _rolegate) = stage("disaggregated").await.with_room(40).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1).held_back();
    let statuses = stage.coordination_statuses("llm");
    stage.create(group.coordination_of_numbers(&json!({}))).await;
    let role = |name: &str, image: &str| {
        let role = group.find(name);
        let mut template = group.set(role, &stage.namespace)["spec"]["template"].clone();
        template["spec"]["containers"][0]["image"] = json!(image);
        let template = json!({ "size": 2, "workerTemplate": template });
        json!({ "name": name, "spec": { "replicas": role.replicas, "leaderWorkerTemplate": template } })
    };
    let roles = |image: &str| json!({ "spec": { "roles": [role("prefill", image), role("decode", image)] } });
    let set = object("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", "pd");
    stage.create(set.spec(&roles("registry.invalid/x:1")["spec"])).await;
    for released in [6, 12] {
        stage.pods.until("a segment", |now| now.count_all(Pod::is_scheduled) == released).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        stage.let_ready(Pod::is_scheduled).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
    let first = stage.pods.uids();
    let patch = roles("registry.invalid/x:2").to_string();
    stage.kubectl(&["patch", "disaggregatedset", "pd", "--type=merge", "-p", &patch]);
    let alike = "several makers number their pods of role";
    statuses.until("old and new are there", |status| status.progressing().contains(alike)).await;
    let is_new = |pod: &Pod| pod.is_ready() && first.get(&pod.name) != Some(&pod.uid);
    let all_are_new = |now: &View| now.count_all(is_new) == 12 && now.count_all(|_| true) == 12;
    stage.let_ready_until(Pod::is_scheduled, all_are_new).await;
    let over = "True AllReplicasReady: 12/12 pods ready";
    statuses.until("ready", |status| status.ready() == over && !status.progressing().contains(alike)).await;
    record(
        "DisaggregatedSet of two roles (its controller of v0.9.0)",
        "works with roles that are declared with `replicas`; it updates in its own lockstep, whose new groups go at once; meanwhile `Progressing` reports that several makers number their pods alike. No `rollingUpdate` of rolegate",
    );
}
