//! Two replicas are replaced one after another while pods are admitted through the API server, and the one that leads in the
//! middle of a batch.

use std::sync::Mutex;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::common::figures::record;
use crate::common::http;
use crate::common::prelude::*;
use crate::common::stage::is_held;

/// Between two looks at who is ready: a kubelet looks every second, but tells of a pod that is ending at once.
const LOOK: Duration = Duration::from_millis(50);
/// How long a replica that is told to end goes on with taking connections.
const GRACE: &str = "1s";
/// Admissions that are under way at a time.
const AT_A_TIME: usize = 64;

/// One address for all replicas: new connections go to one that is ready, as by a Service.
struct Service {
    address: SocketAddr,
    replicas: Arc<Mutex<Vec<Replica>>>,
    ready: watch::Receiver<Vec<SocketAddr>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy)]
struct Replica {
    webhook: SocketAddr,
    admin: SocketAddr,
    /// Told to end: no longer among the endpoints, whatever it says.
    ends: bool,
}

impl Service {
    async fn new() -> Self {
        let proxy = Proxy::before("127.0.0.1:1".parse().unwrap()).await;
        let replicas: Arc<Mutex<Vec<Replica>>> = Arc::default();
        let (tell, ready) = watch::channel(Vec::new());
        let (address, known) = (proxy.address, replicas.clone());
        let task = tokio::spawn(async move {
            loop {
                let asked = known.lock().unwrap().clone();
                let mut ready = Vec::new();
                for replica in asked.iter().filter(|replica| !replica.ends) {
                    if matches!(http::get(replica.admin, "/readyz").await, Ok((200, _))) {
                        ready.push(replica.webhook);
                    }
                }
                proxy.lead_to(&ready);
                tell.send_replace(ready);
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { address, replicas, ready, _task: AbortOnDropHandle::new(task) }
    }

    fn launch(&self, stage: &Stage) -> Launch {
        stage.launch().behind(self.address).flag("drain-grace", GRACE).flag("lease-duration", "15s")
    }

    /// Starts a replica; returns when it is among the endpoints.
    async fn start(&self, launch: &Launch) -> Rolegate {
        let rolegate = launch.start_unready().await;
        let replica = Replica { webhook: rolegate.webhook, admin: rolegate.admin, ends: false };
        self.replicas.lock().unwrap().push(replica);
        let mut ready = self.ready.clone();
        let waiting = ready.wait_for(|ready| ready.contains(&replica.webhook));
        tokio::time::timeout(PATIENT, waiting).await.expect("it gets ready").unwrap();
        rolegate
    }

    /// Ends a replica as a kubelet does: it leaves the endpoints while it is told to end.
    async fn end(&self, rolegate: Rolegate) {
        for replica in self.replicas.lock().unwrap().iter_mut() {
            replica.ends |= replica.webhook == rolegate.webhook;
        }
        let (status, _) = rolegate.terminate().await;
        assert!(status.success(), "{status}");
    }
}

/// Pods that are created for nothing, so many a second.
struct Load {
    stop: watch::Sender<bool>,
    task: JoinHandle<Admitted>,
}

#[derive(Default)]
struct Admitted {
    count: u32,
    failed: Vec<String>,
    slowest: Duration,
    time: Duration,
}

impl Admitted {
    fn a_second(&self) -> f64 {
        f64::from(self.count) / self.time.as_secs_f64()
    }
}

impl Load {
    fn start(stage: &Stage, a_second: u32) -> Self {
        let (stop, stopped) = watch::channel(false);
        let pods = stage.api::<ApiPod>();
        let pod: ApiPod = typed(Group::new("probe").role("main", 1, 0).pod("main", "probe", &stage.namespace));
        let task = tokio::spawn(run(pods, pod, a_second, stopped));
        Self { stop, task }
    }

    async fn end(self) -> Admitted {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }
}

async fn run(pods: Api<ApiPod>, pod: ApiPod, a_second: u32, stopped: watch::Receiver<bool>) -> Admitted {
    let (pods, pod, turns) = (Arc::new(pods), Arc::new(pod), Arc::new(Semaphore::new(AT_A_TIME)));
    let (all, start) = (Arc::new(Mutex::new(Admitted::default())), Instant::now());
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / a_second);
    while !*stopped.borrow() {
        ticks.tick().await;
        // Its time counts from when it was due.
        let due = Instant::now();
        let turn = turns.clone().acquire_owned().await.unwrap();
        let (pods, pod, all) = (pods.clone(), pod.clone(), all.clone());
        tokio::spawn(async move {
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            let result = pods.create(&dry_run, &pod).await;
            let time = due.elapsed();
            let mut all = all.lock().unwrap();
            all.count += 1;
            all.slowest = all.slowest.max(time);
            match result {
                Ok(pod) if is_held(&pod) => {}
                Ok(_) => all.failed.push("not held".to_owned()),
                Err(error) => all.failed.push(error.to_string()),
            }
            drop(turn);
        });
    }
    // Those that are under way.
    let _all = turns.acquire_many(u32::try_from(AT_A_TIME).unwrap()).await.unwrap();
    let mut admitted = std::mem::take(&mut *all.lock().unwrap());
    admitted.time = start.elapsed();
    admitted
}

/// Replaces both replicas so many times under load, the leader while a batch is half released. None of the admissions fails.
async fn replace(stage: Stage, rounds: u32, a_second: u32) -> Admitted {
    stage.add_node("all", 90).await;
    let service = Service::new().await;
    let launch = service.launch(&stage);
    let mut replicas = vec![service.start(&launch).await, service.start(&launch).await];
    eventually(PATIENT, "a pod that is held", async || {
        let probe = Group::new("probe").pod("main", "probe", &stage.namespace);
        let pod = stage.try_pod(probe).await.map_err(|error| error.to_string())?;
        if is_held(&pod) { Ok(()) } else { Err("not held".to_owned()) }
    })
    .await;
    let group = Group::new("llm").role("prefill", 20, 10).role("decode", 10, 5).held_back();
    let statuses = stage.deploy_watched(&group).await;
    stage.pods.until("the first segment is released", |now| now.count_all(Pod::is_released) == 15).await;
    let load = Load::start(&stage, a_second);
    for round in 0..rounds {
        for replica in &mut replicas {
            // A new one comes before the old one goes, as in a rolling update with a surge.
            let new = service.start(&launch).await;
            let old = std::mem::replace(replica, new);
            let leads = old.metric("rolegate_leader").await == 1;
            if leads && round == 0 {
                // The rest of the first segment gets ready now: its successor has the next batch to release.
                tokio::join!(stage.let_ready(Pod::is_released), service.end(old));
            } else {
                service.end(old).await;
            }
        }
    }
    // A node is drained: one replica goes, and another comes later.
    let gone = replicas.remove(0);
    service.end(gone).await;
    replicas.push(service.start(&launch).await);
    let admitted = load.end().await;
    stage.pods.until("all are released", |now| now.count_all(Pod::is_released) == 30).await;
    stage.let_ready(Pod::is_released).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 30/30 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    println!("{} admissions in {:?}, {:.0} a second", admitted.count, admitted.time, admitted.a_second());
    assert_eq!(admitted.failed, Vec::<String>::new(), "of {}", admitted.count);
    admitted
}

#[tokio::test]
async fn replicas_are_replaced_and_no_admission_fails() {
    let admitted = replace(Stage::new("rolling").await, 1, 50).await;
    assert!(admitted.count >= 100, "{}", admitted.count);
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn replicas_are_replaced_ten_times_under_five_hundred_admissions_a_second() {
    let stage = Stage::on(ControlPlane::own_with_groups().await, "rolling-long").await;
    let admitted = replace(stage, 10, 500).await;
    let tried = "two replicas replaced ten times, the leader in the middle of a batch, then one drained; 500 admissions a second asked for";
    let admissions = format!("{} ({:.0} a second)", admitted.count, admitted.a_second());
    let (failed, slowest) = (admitted.failed.len().to_string(), format!("{} ms", admitted.slowest.as_millis()));
    record("rolling", &[tried, &admissions, &failed, &slowest]);
}
