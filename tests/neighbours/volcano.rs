//! Volcano: its scheduler beside the cluster's own, its controllers and its webhooks.

use std::sync::{LazyLock, Mutex};

use base64::Engine as _;

use crate::common::prelude::*;
use crate::common::rolegate::free_port;
use crate::gangs::{self, Gangs, gang_stories};
use crate::program::{Neighbour, Running};

static VOLCANO: Neighbour = Neighbour { name: "volcano", module: "volcano.sh/volcano" };
const SYSTEM: &str = "volcano-system";
/// What its chart has in the scheduler's file.
const CONFIG: &str = "\
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
";
/// Its webhooks: path, API group, version and resource of what they are asked of, and when.
const WEBHOOKS: &[(&str, &str, &str, &str, &[&str])] = &[
    ("/pods/mutate", "", "v1", "pods", &["CREATE"]),
    ("/pods/validate", "", "v1", "pods", &["CREATE"]),
    ("/podgroups/mutate", "scheduling.volcano.sh", "v1beta1", "podgroups", &["CREATE"]),
    ("/podgroups/validate", "scheduling.volcano.sh", "v1beta1", "podgroups", &["CREATE"]),
    ("/queues/mutate", "scheduling.volcano.sh", "v1beta1", "queues", &["CREATE"]),
    ("/queues/validate", "scheduling.volcano.sh", "v1beta1", "queues", &["CREATE", "UPDATE", "DELETE"]),
];

struct World {
    plane: Arc<ControlPlane>,
    programs: Mutex<[Running; 3]>,
}

static WORLD: LazyLock<Arc<World>> = LazyLock::new(|| gangs::start(begin));

fn begin() -> World {
    let plane = gangs::plane(&VOLCANO, &["crds", "jobflow-crds"]);
    plane.must(&["create", "namespace", SYSTEM], "");
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig.display());
    let controllers = ["--leader-elect=false", &kubeconfig];
    let controllers = VOLCANO.start("controllers", &controllers, &[]);
    let webhooks = webhooks(&plane, &kubeconfig);
    let file = plane.dir.join("conf/volcano-scheduler.conf");
    std::fs::write(&file, CONFIG).unwrap();
    let config = format!("--scheduler-conf={}", file.display());
    // So that a cycle a second is what it does, as by default.
    let scheduler = ["--leader-elect=false", "--cache-dumper=false", &kubeconfig, &config];
    let scheduler = VOLCANO.start("scheduler", &scheduler, &[]);
    World { plane, programs: Mutex::new([controllers, webhooks, scheduler]) }
}

/// They find their configurations by name, and write their CA there.
fn webhooks(plane: &ControlPlane, kubeconfig: &str) -> Running {
    let pki = plane.dir.join("pki");
    let port = free_port();
    let authority = std::fs::read(pki.join("ca.crt")).unwrap();
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    let url = format!("https://127.0.0.1:{port}");
    for (path, group, version, resource, operations) in WEBHOOKS {
        let kind = if path.ends_with("mutate") { "Mutating" } else { "Validating" };
        let name = path.replace('/', "-");
        let webhook = json!({
            "name": format!("webhook{name}.volcano.sh"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "NoneOnDryRun",
            "failurePolicy": "Fail",
            "clientConfig": { "url": format!("{url}{path}"), "caBundle": authority },
            "rules": [{ "apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": operations }],
        });
        let (kind, name) = (format!("{kind}WebhookConfiguration"), format!("volcano-admission-service{name}"));
        let object = object("admissionregistration.k8s.io/v1", &kind, &name).with(&json!({ "webhooks": [webhook] }));
        plane.must(&["create", "-f", "-"], &object.to_string());
    }
    let paths: Vec<_> = WEBHOOKS.iter().map(|(path, ..)| *path).collect();
    let of_pki = |flag: &str, file: &str| format!("--{flag}={}", Path::new(&pki).join(file).display());
    let arguments = [
        kubeconfig.to_owned(),
        format!("--enabled-admission={}", paths.join(",")),
        format!("--webhook-url={url}"),
        "--listen-address=127.0.0.1".to_owned(),
        format!("--port={port}"),
        of_pki("tls-cert-file", "apiserver.crt"),
        of_pki("tls-private-key-file", "apiserver.key"),
        of_pki("ca-cert-file", "ca.crt"),
    ];
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    VOLCANO.start("webhooks", &arguments, &[])
}

fn gangs(policy: &Value) -> Gangs {
    Gangs {
        neighbour: &VOLCANO,
        scheduler: "volcano",
        api: ("scheduling.volcano.sh", "v1beta1"),
        policy: json!({ "volcanoScheduling": policy }),
    }
}

/// A queue that is open, with these fields.
async fn queue(stage: &Stage, name: &str, spec: &Value) {
    let object = object("scheduling.volcano.sh/v1beta1", "Queue", name).spec(spec);
    let apply = async || stage.plane.kubectl(&["apply", "-f", "-"], &object.to_string());
    until_found("a queue that its webhooks take", apply, |made| made.status.success()).await;
    let found = async || stage.plane.must(&["get", "queue", name, "-o", "jsonpath={.status.state}"], "");
    until_is("a queue that is open", found, "Open").await;
}

/// A namespace, and the queue `llm`.
async fn stage(name: &str) -> Stage {
    gangs::all_run(&mut *WORLD.programs.lock().unwrap());
    let stage = Stage::on(WORLD.plane.clone(), name).await;
    queue(&stage, "llm", &json!({ "weight": 1 })).await;
    stage
}

gang_stories!("volcano", gangs(&json!({ "queue": "llm" })), stage, "make neighbours builds volcano");

/// Its scheduler counts a pod without requests as started before it has looked for a place.
#[tokio::test]
#[ignore = "make neighbours builds volcano"]
async fn pods_that_request_nothing_are_no_gang() {
    let (gangs, stage) = (gangs(&json!({ "queue": "llm" })), stage("volcano-nothing").await);
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 2, 2).role("decode", 1, 1);
    let group = group.template(&json!({ "spec": { "schedulerName": gangs.scheduler } }));
    stage.add_node("a", 2).await;
    gangs.deploy(&stage, &group).await;
    stage.pods.until("two of the three are bound", |now| now.count_all(Pod::is_scheduled) == 2).await;
    gangs.until_members(&stage, "the gang is of three", &[("llm-pd-0", 3)]).await;
    let result = "does not work: bound one by one";
    VOLCANO.record("pods that request nothing, room for a part", result);
}

/// Its webhook takes no PodGroup for a queue that is not there; and a queue has room for one step only.
#[tokio::test]
#[ignore = "make neighbours builds volcano"]
async fn a_queue_is_waited_for_and_its_quota_is_kept() {
    let (stage, _rolegate) = stage("volcano-queue").await.serve().await;
    let gangs = gangs(&json!({ "queue": "narrow" }));
    let group = gangs.group("llm", 2);
    let statuses = stage.statuses(&group);
    stage.add_node("a", 20).await;
    gangs.deploy(&stage, &group).await;
    let told = |status: &Status| status.reason() == "PodGroupMissing";
    statuses.until("it is told that the PodGroup is not taken", told).await;
    let explained = stage.said(&["explain", "group", "llm"]).await;
    assert!(explained.contains("PodGroupMissing"), "{explained}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 6, "{now}"));

    queue(&stage, "narrow", &json!({ "weight": 1, "capability": { "cpu": "4" } })).await;
    gangs.until_ready(&stage, &group, 1).await;
    VOLCANO.record("a queue that is made late", "held with PodGroupMissing until it exists");
    gangs.until_refused(&stage, &group, 1).await;
    let patch = json!({ "spec": { "capability": { "cpu": "6" } } }).to_string();
    stage.plane.must(&["patch", "queue", "narrow", "--type=merge", "-p", &patch], "");
    gangs.until_ready(&stage, &group, 2).await;
    let result = "the next batch is bound when the queue has room for all of it";
    VOLCANO.record("a queue with a capability for one batch and a part", result);
}

/// The one that came first has the lower priority.
#[tokio::test]
#[ignore = "make neighbours builds volcano"]
async fn the_batch_of_the_higher_priority_class_goes_first() {
    let (stage, _rolegate) = stage("volcano-priority").await.serve().await;
    let mut groups = Vec::new();
    for (name, value) in [("low", 10), ("high", 1000)] {
        gangs::priority_class(&stage, name, value);
        let gangs = gangs(&json!({ "queue": "llm", "priorityClassName": name }));
        let group = gangs.group(name, 1);
        gangs.deploy(&stage, &group).await;
        let released = |pod: &Pod| pod.name.starts_with(name) && pod.is_released();
        stage.pods.until("it waits for room", |now| now.count_all(released) == 3).await;
        groups.push((gangs, group));
    }
    stage.add_node("a", 3).await;
    let [(_, low), (gangs, high)] = groups.as_slice() else { panic!("two groups") };
    gangs.until_ready(&stage, high, 1).await;
    gangs.until_refused(&stage, low, 0).await;
    stage.add_node("b", 3).await;
    gangs.until_ready(&stage, low, 1).await;
    VOLCANO.record("two priority classes, room for one batch", "the higher one goes, though it came later");
}
