//! JobSet's own controllers and webhooks beside ours.

use std::sync::{Mutex, mpsc};

use crate::common::prelude::*;
use crate::program::{Neighbour, Running};

const JOBSET: Neighbour = Neighbour { name: "jobset", module: "sigs.k8s.io/jobset" };
const API: &str = "/apis/jobset.x-k8s.io/v1alpha2";
const COMPLETION: &str = "batch.kubernetes.io/job-completion-index";
const JOB_INDEX: &str = "jobset.sigs.k8s.io/job-index";
const RESTARTS: &str = "jobset.sigs.k8s.io/restart-attempt";
const EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
const SIZE: &str = "rolegate.dev/replica-size";
const RACK: &str = "example.com/rack";

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &[]);
    let built = JOBSET.built();
    plane.must(&["apply", "--server-side", "-f", built.join("crds").to_str().unwrap()], "");
    plane.until_defined();
    let (kubeconfig, files) = (plane.kubeconfig.to_str().unwrap().to_owned(), built.to_str().unwrap().to_owned());
    let (tell, started) = mpsc::channel();
    // It ends with the thread that starts it: those of tests are too short.
    std::thread::spawn(move || {
        let running = JOBSET.start("jobset", &["--kubeconfig-file", &kubeconfig, "--files", &files], &[]);
        *RUNNING.lock().unwrap() = Some(running);
        tell.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    started.recv().unwrap();
    plane
});

/// A namespace, once JobSet's webhooks are asked.
async fn stage(namespace: &str) -> Stage {
    let plane = tokio::task::spawn_blocking(|| PLANE.get()).await.unwrap();
    let stage = Stage::on(plane, namespace).await;
    let pod = json!({ "spec": { "containers": [{ "name": "c", "image": "x" }] } });
    let probe = set("probe", &json!([template("main", 1, 1, &pod)]));
    eventually(PATIENT, "a JobSet that its webhook has seen", async || {
        if let Some(end) = RUNNING.lock().unwrap().as_mut().and_then(Running::ended) {
            panic!("{end}");
        }
        let made = stage.post(API, "jobsets?dryRun=All", &probe).await;
        let seen = made.body["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed";
        if seen { Ok(()) } else { Err(format!("{made:?}")) }
    })
    .await;
    stage
}

fn set(name: &str, jobs: &Value) -> Value {
    let spec = json!({ "replicatedJobs": jobs });
    object("jobset.x-k8s.io/v1alpha2", "JobSet", name).spec(spec)
}

/// A replicatedJob: so many Jobs of so many pods.
fn template(name: &str, jobs: u32, pods: u32, pod: &Value) -> Value {
    let spec = json!({ "completions": pods, "parallelism": pods, "backoffLimit": 0, "template": pod });
    json!({ "name": name, "replicas": jobs, "template": { "spec": spec } })
}

/// Roles, each with its replicas and those of a segment, whose pods run and do not get ready by themselves.
struct Scene {
    stage: Stage,
    group: Group,
    statuses: StatusLog,
}

impl Scene {
    async fn new(stage: Stage, roles: &[(&str, u32, u32)], segments: &Value) -> Self {
        let group = roles.iter().fold(Group::new("llm"), |group, (name, all, size)| group.role(name, *all, *size));
        let group = group.held_back();
        let statuses = stage.coordination_statuses("llm");
        stage.create(group.coordination_of_numbers(segments)).await;
        Self { stage, group, statuses }
    }

    /// The pod template of a role.
    fn pod(&self, role: &str) -> Value {
        let mut pod = self.group.set(self.group.find(role), &self.stage.namespace)["spec"]["template"].clone();
        pod["spec"]["restartPolicy"] = json!("Never");
        pod
    }

    async fn until(&self, what: &str, test: impl Fn(&View) -> bool) {
        self.stage.pods.until(what, test).await;
    }

    /// Waits for a condition of the set, and until none of its pods is held.
    async fn until_over(&self, condition: &str) {
        self.stage.kubectl(&["wait", "jobset/train", &format!("--for=condition={condition}"), "--timeout=90s"]);
        self.until("nothing is held", |now| now.count_all(Pod::is_held) == 0).await;
    }

    /// All that run get ready.
    async fn ready(&self) {
        self.stage.let_ready(Pod::is_scheduled).await;
    }

    async fn all_ready(&self, pods: u32) {
        let ready = format!("True AllReplicasReady: {pods}/{pods} pods ready");
        self.statuses.until("all ready", |status| status.ready() == ready).await;
    }

    async fn end(&self, pod: &str, phase: &str) {
        let ready = json!({ "type": "Ready", "status": "False", "reason": "PodCompleted" });
        let status = json!({ "status": { "phase": phase, "conditions": [ready] } });
        self.stage.patch_status_of_pod(pod, status).await;
    }

    fn find(&self, test: impl Fn(&Pod) -> bool) -> String {
        self.stage.pods.now(|now| now.all().find(|pod| test(pod)).unwrap().name.clone())
    }

    /// The pods come up so many at a time, counted from the first: what runs gets ready, and only then the next are let go.
    async fn come_up(&self, steps: &[usize]) {
        for released in steps.iter().copied() {
            self.until("the next", |now| now.count_all(Pod::is_scheduled) == released).await;
            self.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
            self.ready().await;
        }
    }
}

fn index(pod: &Pod) -> u32 {
    pod.annotations[COMPLETION].parse().unwrap()
}

fn job(pod: &Pod) -> u32 {
    pod.labels[JOB_INDEX].parse().unwrap()
}

async fn add_racks(stage: &Stage, racks: &[&str]) {
    for rack in racks {
        // JobSet keeps its Jobs apart in all namespaces.
        stage.add_node_with(rack, 8, json!({ (RACK): format!("{}-{rack}", stage.namespace) })).await;
    }
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn two_jobs_of_a_set_come_up_in_segments() {
    let (stage, _rolegate) = stage("jobset-roles").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("leader", 2, 1), ("worker", 4, 2)], &json!({})).await;
    let jobs = json!([template("leader", 1, 2, &scene.pod("leader")), template("worker", 1, 4, &scene.pod("worker")),]);
    scene.stage.create(set("train", &jobs)).await;
    scene.until("all pods", |now| now.count_all(|_| true) == 6).await;
    scene.until("a segment", |now| now.count_all(Pod::is_scheduled) == 3).await;
    scene.stage.pods.now(|now| {
        let first = |pod: &Pod| index(pod) < if pod.role == "leader" { 1 } else { 2 };
        assert!(now.all().all(|pod| pod.is_released() == first(pod)), "{now}");
    });
    scene.ready().await;
    scene.until("the next", |now| now.count_all(Pod::is_scheduled) == 6).await;
    scene.ready().await;
    scene.all_ready(6).await;
    let result = "works: numbered by completion index; roles are declared with `replicas`";
    JOBSET.record("JobSet of two replicatedJobs of one Job each: roles of a group", result);
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn several_jobs_of_one_template_are_replicas_where_their_size_is_said() {
    let (stage, _rolegate) = stage("jobset-sized").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("main", 3, 1)], &json!({})).await;
    let mut pod = scene.pod("main");
    pod["metadata"]["annotations"][SIZE] = json!("2");
    scene.stage.create(set("serve", &json!([template("main", 3, 2, &pod)]))).await;
    for next in 0..3 {
        let released = (next as usize + 1) * 2;
        scene.until("the next Job", |now| now.count_all(Pod::is_scheduled) == released).await;
        scene.stage.pods.now(|now| assert!(now.all().all(|pod| pod.is_released() == (job(pod) <= next)), "{now}"));
        // With one of its two the Job is not ready.
        let one = scene.find(|pod| job(pod) == next && index(pod) == 1);
        scene.stage.let_ready(|pod| pod.name == one).await;
        scene.statuses.until("half", |status| status.ready().contains(&format!("{}/6", released - 1))).await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        scene.ready().await;
    }
    scene.all_ready(6).await;
    JOBSET.record(
        "several Jobs of one replicatedJob, annotation `rolegate.dev/replica-size` on the pod template",
        "each Job is a replica, numbered by the Job's index: its pods go together",
    );
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn several_jobs_of_one_template_are_single_pods_where_it_is_not_said() {
    let (stage, _rolegate) = stage("jobset-unsized").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("main", 6, 2)], &json!({})).await;
    scene.stage.create(set("serve", &json!([template("main", 3, 2, &scene.pod("main"))]))).await;
    scene.come_up(&[2, 4, 6]).await;
    scene.all_ready(6).await;
    let result = "each pod is a replica, numbered at its release";
    JOBSET.record("several Jobs of one replicatedJob without that annotation", result);
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn what_a_set_makes_again_goes_at_once_and_one_that_has_failed_leaves_nothing_held() {
    let (stage, _rolegate) = stage("jobset-restart").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("main", 4, 2)], &json!({})).await;
    let mut object = set("train", &json!([template("main", 1, 4, &scene.pod("main"))]));
    object["spec"]["failurePolicy"] = json!({ "maxRestarts": 1 });
    scene.stage.create(object).await;
    scene.until("a segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
    let attempt = |pod: &Pod, number: &str| pod.labels[RESTARTS] == number;
    let failed = scene.find(|pod| index(pod) == 0);
    scene.end(&failed, "Failed").await;
    let again = |now: &View| now.count_all(|pod| attempt(pod, "1") && pod.is_scheduled()) == 2;
    scene.until("made again, and gone on", again).await;
    let in_turn = |pod: &Pod| !attempt(pod, "1") || pod.is_released() == (index(pod) < 2);
    scene.stage.pods.now(|now| assert!(now.all().all(in_turn), "{now}"));
    // The second time it gives up while two are held.
    let failed = scene.find(|pod| attempt(pod, "1") && index(pod) == 0);
    scene.end(&failed, "Failed").await;
    scene.until_over("Failed").await;
    JOBSET.record(
        "a JobSet restarts (`failurePolicy.maxRestarts`), then fails",
        "recreated pods go at once if they were released before, else wait for their turn; a set that has failed leaves no held pod",
    );
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn a_set_that_has_succeeded_leaves_nothing_held() {
    let (stage, _rolegate) = stage("jobset-success").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("driver", 1, 1), ("worker", 4, 2)], &json!({})).await;
    let jobs = json!([template("driver", 1, 1, &scene.pod("driver")), template("worker", 1, 4, &scene.pod("worker")),]);
    let mut object = set("train", &jobs);
    object["spec"]["successPolicy"] = json!({ "operator": "All", "targetReplicatedJobs": ["driver"] });
    scene.stage.create(object).await;
    scene.until("a segment", |now| now.count_all(Pod::is_scheduled) == 3).await;
    scene.until("the rest is held", |now| now.count_all(Pod::is_held) == 2).await;
    let driver = scene.find(|pod| pod.role == "driver");
    scene.end(&driver, "Succeeded").await;
    scene.until_over("Completed").await;
    let result = "deletes the Jobs that are not done, with their held pods";
    JOBSET.record("a JobSet succeeds by its `successPolicy` while workers are held", result);
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn jobs_in_order_come_up_where_one_order_fits_the_other() {
    let (stage, _rolegate) = stage("jobset-in-order").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("driver", 1, 1), ("worker", 4, 2)], &json!({})).await;
    let jobs = json!([template("driver", 1, 1, &scene.pod("driver")), template("worker", 1, 4, &scene.pod("worker")),]);
    let mut object = set("train", &jobs);
    object["spec"]["startupPolicy"] = json!({ "startupPolicyOrder": "InOrder" });
    scene.stage.create(object).await;
    scene.come_up(&[1, 3, 5]).await;
    scene.all_ready(5).await;
    JOBSET.record("`startupPolicy: InOrder`, the first replicatedJob in the first segment as a whole", "works");
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn jobs_in_order_and_segments_across_them_wait_for_each_other_and_it_is_said() {
    let (stage, _rolegate) = stage("jobset-orders").await.with_room(20).await.serve().await;
    let scene = Scene::new(stage, &[("prefill", 4, 2), ("decode", 2, 1)], &json!({})).await;
    let jobs =
        json!([template("prefill", 1, 4, &scene.pod("prefill")), template("decode", 1, 2, &scene.pod("decode")),]);
    let mut object = set("serve", &jobs);
    object["spec"]["startupPolicy"] = json!({ "startupPolicyOrder": "InOrder" });
    scene.stage.create(object).await;
    scene.until("half of it", |now| now.count_all(Pod::is_scheduled) == 2).await;
    scene.ready().await;
    scene.statuses.until("the rest waits", |status| status.reason() == "PreviousSegmentNotReady").await;
    let held = scene.find(Pod::is_held);
    scene.stage.until_said(&["explain", "pod", &held], "0/1 decode ready").await;
    scene.stage.pods.now(|now| assert_eq!(now.count("decode", |_| true), 0, "{now}"));
    JOBSET.record(
        "`startupPolicy: InOrder` across the roles of one segment",
        "does not work: the second Job is made when all pods of the first are ready, which wait for the second Job",
    );
}

/// Two Jobs of three pods with exclusive placement on racks, each a segment near each other on a rack.
async fn exclusive_jobs(stage: Stage, strategy: &str) -> Scene {
    let scene = Scene::new(stage, &[("main", 2, 1)], &near(RACK, strategy)).await;
    let mut pod = scene.pod("main");
    pod["metadata"]["annotations"][SIZE] = json!("3");
    let mut object = set("serve", &json!([template("main", 2, 3, &pod)]));
    object["metadata"]["annotations"] = json!({ EXCLUSIVE: RACK });
    scene.stage.create(object).await;
    scene
}

/// Exclusive placement, with rolegate's webhook before and after theirs.
async fn exclusive(namespace: &str) {
    let stage = stage(namespace).await;
    add_racks(&stage, &["a", "b", "c"]).await;
    let _rolegate = stage.launch().start().await;
    let scene = exclusive_jobs(stage, "PreferSegmentAffinity").await;
    for next in 0..2 {
        let released = (next as usize + 1) * 3;
        scene.until("the whole Job", |now| now.count_all(|p| job(p) == next && p.is_scheduled()) == 3).await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        scene.ready().await;
    }
    scene.all_ready(6).await;
    scene.stage.pods.now(|now| {
        let nodes = |of: u32| now.all().filter(|p| job(p) == of).map(|p| p.node.clone()).collect::<Vec<_>>();
        let (first, second) = (nodes(0), nodes(1));
        let alone = |nodes: &[Option<String>]| nodes.iter().all(|node| *node == nodes[0]);
        assert!(alone(&first) && alone(&second) && first[0] != second[0], "{first:?} {second:?}");
    });
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn exclusive_placement_is_theirs_and_the_order_is_ours() {
    // Their configuration is `jobset-mutating-webhook-configuration`: webhooks are asked in the order of names.
    for namespace in ["before-jobset", "zz-after-jobset"] {
        exclusive(namespace).await;
    }
    JOBSET.record(
        "`alpha.jobset.sigs.k8s.io/exclusive-topology` beside segments, webhook before and after theirs",
        "works without a topology of rolegate, or with a preferred one; with `replica-size` the next segment waits for all pods of the Job",
    );
}

#[tokio::test]
#[ignore = "make neighbours builds jobset"]
async fn exclusive_placement_and_a_hard_topology_wait_for_each_other_and_it_is_said() {
    let stage = stage("jobset-both").await;
    add_racks(&stage, &["a", "b"]).await;
    let _rolegate = stage.launch().start().await;
    let scene = exclusive_jobs(stage, "RequireSegmentAffinity").await;
    scene.until("the leaders", |now| now.count_all(|_| true) == 2).await;
    let said = "follower pod node selector for topology domain not found";
    scene.statuses.until("it is said", |status| status.progressing().contains(said)).await;
    let held = scene.find(|pod| job(pod) == 0);
    scene.stage.until_said(&["explain", "pod", &held], "IncompleteBatch").await;
    scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 2, "{now}"));
    JOBSET.record(
        "`exclusive-topology` of JobSet beside a hard topology of rolegate's",
        "does not work: a batch that goes as a whole waits for followers that JobSet refuses before the first pod has a node (IncompleteBatch): use one of the two",
    );
}
