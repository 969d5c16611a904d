//! A rolegate under attack: how much memory it takes, and what those notice who call it in good faith.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::common::figures;
use crate::common::http::Caller;
use crate::common::prelude::*;

/// How much more memory than when nobody calls an attack may make it take.
const MOST_OVER_IDLE: u64 = 64 << 20;
/// How long a review in good faith may take, on two processors that are shared with the attackers; more where each review of
/// theirs is answered by a build that is not optimised.
const SLOWEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 100 });
/// Between two reviews of the one who calls all the time.
const STEADY: Duration = Duration::from_millis(20);
/// Between two who come anew.
const ANEW: Duration = Duration::from_secs(1);

/// A pod's review, as an API server sends it.
pub fn review() -> Vec<u8> {
    include_bytes!("../../../fixtures/reviews/bare/pod-create-dryrun.json").to_vec()
}

/// The same of another namespace, and of a group where one is named.
pub fn review_of(namespace: &str, group: Option<&str>) -> Vec<u8> {
    let mut review: serde_json::Value = serde_json::from_slice(&review()).unwrap();
    let request = &mut review["request"];
    request["namespace"] = namespace.into();
    let metadata = &mut request["object"]["metadata"];
    metadata["namespace"] = namespace.into();
    if let Some(group) = group {
        metadata["labels"] = serde_json::json!({ "rolegate.dev/group": group, "rolegate.dev/role": "prefill" });
    }
    review.to_string().into_bytes()
}

/// A rolegate beside the real API server.
pub struct Target {
    stage: Stage,
    pub rolegate: Rolegate,
    pub ca: Vec<u8>,
    /// Bytes of memory before the first attack.
    idle: u64,
}

impl Target {
    /// Starts one for a namespace.
    pub async fn start(namespace: &str) -> Self {
        let stage = Stage::new(namespace).await;
        let launch = stage.launch();
        Self::of(stage, launch).await
    }

    /// Starts this one.
    pub async fn of(stage: Stage, launch: Launch) -> Self {
        // Its callers are the attackers, and ours.
        let launch = launch.flag("reach", "loopback");
        // As its Deployment has it.
        let launch = launch.env("MIMALLOC_PURGE_DELAY", "0").env("MIMALLOC_ALLOW_THP", "0");
        let rolegate = launch.start().await;
        let ca = launch.ca_bundle().await;
        let mut target = Self { stage, rolegate, ca, idle: 0 };
        target.caller().await;
        target.idle = target.settled().await;
        target
    }

    /// Where the webhook listens.
    pub fn address(&self) -> SocketAddr {
        self.rolegate.webhook
    }

    /// A connection that has had a review answered.
    pub async fn caller(&self) -> Caller {
        let mut caller = Caller::connect(self.address(), &self.ca).await;
        assert_eq!(caller.post("/mutate?timeout=3s", review()).await.unwrap().0, 200);
        caller
    }

    /// Lets an attack happen beside callers in good faith, and says what both have seen. The attack returns what it got.
    pub async fn endure(&self, attack: impl Future<Output = String>) -> Seen {
        let mut idle_caller = self.caller().await;
        let good = GoodCallers::start(self.address(), self.ca.clone(), self.stage.namespace.clone());
        tokio::time::sleep(STEADY * 50).await;
        let memory = Memory::watch(self.rolegate.pid());
        let attacker = attack.await;
        let peak = memory.peak();
        let (reviews, newcomers) = good.finish();
        let kept = idle_caller.post("/mutate?timeout=3s", review()).await;
        assert_eq!(kept.expect("an idle connection of a good caller is kept").0, 200);
        let after = self.settled().await;
        Seen { idle: self.idle, peak, after, reviews, newcomers, attacker }
    }

    /// The memory it takes once that no longer falls.
    async fn settled(&self) -> u64 {
        let pid = self.rolegate.pid();
        let (mut least, mut since) = (resident(pid), Instant::now());
        eventually(PATIENT, "memory that no longer falls", async || {
            let now = resident(pid);
            if now + (256 << 10) < least {
                (least, since) = (now, Instant::now());
            }
            if since.elapsed() > Duration::from_secs(3) { Ok(now) } else { Err(now) }
        })
        .await
    }
}

/// What became of an attack, in bytes of resident memory and in time.
pub struct Seen {
    pub idle: u64,
    pub peak: u64,
    pub after: u64,
    pub reviews: Times,
    pub newcomers: Times,
    pub attacker: String,
}

impl Seen {
    /// Writes down what was seen, and holds it to the limits.
    pub fn record(&self, attack: &str) {
        let mib = |bytes: u64| format!("{} MiB", bytes.saturating_sub(self.idle).div_ceil(1 << 20));
        let memory = format!("{}, {} afterwards", mib(self.peak), mib(self.after));
        let meanwhile = format!("{}; on new connections {}", self.reviews, self.newcomers);
        figures::record("network", &[attack, &memory, &meanwhile, &self.attacker]);
        self.hold();
    }

    /// Holds the memory to its limit; beside other tests no time says anything.
    pub fn hold_memory(&self) {
        let over = self.peak.saturating_sub(self.idle);
        assert!(over <= MOST_OVER_IDLE, "{} KiB over {} KiB", over >> 10, self.idle >> 10);
    }

    /// Holds what was seen to the limits.
    fn hold(&self) {
        self.hold_memory();
        assert!(self.reviews.slowest() <= SLOWEST, "{}", self.reviews);
    }
}

/// How long each of many took.
pub struct Times(Vec<Duration>);

impl Times {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn slowest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort();
        let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
        match (sorted.get(sorted.len() / 2), sorted.last()) {
            (Some(middle), Some(last)) => write!(f, "{:.1} to {:.1} ms", milliseconds(middle), milliseconds(last)),
            _ => f.write_str("none"),
        }
    }
}

/// Who calls in good faith, for pods of a namespace that is there: one on the connection that it has had from before, and one who
/// comes anew each time, for a pod of a group that nobody has heard of, which is read live. They have a thread of their own, or
/// they would wait for the attackers of this process.
struct GoodCallers {
    stop: CancellationToken,
    thread: JoinHandle<(Vec<Duration>, Vec<Duration>)>,
}

impl GoodCallers {
    fn start(address: SocketAddr, ca: Vec<u8>, namespace: String) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let steady = steadily(address, &ca, &namespace, &stopped);
            runtime.block_on(async { tokio::join!(steady, anew(address, &ca, &namespace, &stopped)) })
        });
        Self { stop, thread }
    }

    fn finish(self) -> (Times, Times) {
        self.stop.cancel();
        let (steady, anew) = self.thread.join().expect("good callers are answered");
        (Times(steady), Times(anew))
    }
}

async fn steadily(address: SocketAddr, ca: &[u8], namespace: &str, stop: &CancellationToken) -> Vec<Duration> {
    let mut caller = Caller::connect(address, ca).await;
    let review = Bytes::from(review_of(namespace, None));
    let mut times = Vec::new();
    while !stop.is_cancelled() {
        let start = Instant::now();
        assert_eq!(caller.post("/mutate?timeout=3s", review.clone()).await.unwrap().0, 200);
        times.push(start.elapsed());
        tokio::time::sleep(STEADY).await;
    }
    times
}

async fn anew(address: SocketAddr, ca: &[u8], namespace: &str, stop: &CancellationToken) -> Vec<Duration> {
    let mut times = Vec::new();
    while !stop.is_cancelled() {
        let review = Bytes::from(review_of(namespace, Some(&format!("group-{}", times.len()))));
        let start = Instant::now();
        // Among thousands of others it may have to try again.
        let answered = async {
            loop {
                let Ok(mut caller) = Caller::try_connect(address, ca).await else { continue };
                if caller.post("/mutate?timeout=3s", review.clone()).await.is_ok_and(|(status, _)| status == 200) {
                    return;
                }
            }
        };
        // One who is waiting when the attack is over is not waited for.
        if stop.run_until_cancelled(answered).await.is_some() {
            times.push(start.elapsed());
            stop.run_until_cancelled(tokio::time::sleep(ANEW)).await;
        }
    }
    times
}

/// Watches the memory of a process.
struct Memory {
    peak: Arc<AtomicU64>,
    stop: CancellationToken,
}

impl Memory {
    fn watch(pid: u32) -> Self {
        let (peak, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let (highest, stopped) = (peak.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stopped.is_cancelled() {
                highest.fetch_max(resident(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { peak, stop }
    }

    fn peak(self) -> u64 {
        self.stop.cancel();
        self.peak.load(Ordering::Relaxed)
    }
}

/// Bytes of memory that a process holds, beside pages of its program's file.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
