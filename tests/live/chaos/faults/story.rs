//! A run beside which something breaks: two groups come up segment by segment under two rolegates, whatever happens is seen by
//! observers that ask the API server themselves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;

use crate::common::figures::record;
use crate::common::prelude::*;
use crate::common::stage::is_held;

/// Within this time after a fault something must move again, and a run that was disturbed must end.
pub const RECOVERY: Duration = Duration::from_secs(180);
/// Between two rounds in which released pods become ready.
const PACE: Duration = Duration::from_millis(250);
/// Pods of both groups.
pub const PODS: usize = 120;

/// A run under way.
pub struct Story {
    pub stage: Arc<Stage>,
    pub groups: [Group; 2],
    pub statuses: [StatusLog; 2],
    /// The address under which the API server finds both replicas.
    pub service: Proxy,
    pub leader: Option<Rolegate>,
    pub follower: Option<Rolegate>,
    /// Pods that were released before what is observed now: nobody saw how.
    released_before: HashSet<String>,
    /// How the second replica was started.
    launch: Launch,
    /// While false no pod becomes ready.
    goes_on: Arc<AtomicBool>,
    kubelet: JoinHandle<()>,
}

/// Two groups of 60 pods in twenty segments each; their roles have different names.
fn groups() -> [Group; 2] {
    let group = |name, large, small| Group::new(name).role(large, 40, 2).role(small, 20, 1).held_back();
    [group("one", "prefill", "decode"), group("two", "reader", "writer")]
}

/// The first is a RoleBasedGroup, the second a RoleCoordination.
pub async fn create(stage: &Stage, [one, two]: &[Group; 2]) {
    stage.create_group(one).await;
    let mut object = two.object();
    object["apiVersion"] = json!("rolegate.dev/v1alpha1");
    object["kind"] = json!("RoleCoordination");
    stage.create(object).await;
}

/// Observes the status of both.
pub fn observe(stage: &Stage, [one, two]: &[Group; 2]) -> [StatusLog; 2] {
    [stage.statuses(one), stage.coordination_statuses(&two.name)]
}

pub async fn leads(rolegate: &Rolegate) {
    rolegate.until_metric("rolegate_leader", 1).await;
}

impl Story {
    /// Begins one with two replicas that are started alike.
    pub async fn begin(stage: Stage) -> Self {
        Self::begin_with(stage, |launch| launch, |launch| launch).await
    }

    /// Begins one; returns when both replicas serve, the first leads, and pods are being released.
    pub async fn begin_with(
        stage: Stage,
        of_leader: impl FnOnce(Launch) -> Launch,
        of_follower: impl FnOnce(Launch) -> Launch,
    ) -> Self {
        let (service, launch) = stage.behind_a_service().await;
        Self::begin_at(stage, service, of_leader(launch.clone()), of_follower(launch)).await
    }

    /// The same behind an address that is there already.
    pub async fn begin_at(stage: Stage, service: Proxy, of_leader: Launch, of_follower: Launch) -> Self {
        let leader = of_leader.start_unready().await;
        service.lead_to(&[leader.webhook]);
        leads(&leader).await;
        let follower = of_follower.start().await;
        service.lead_to(&[leader.webhook, follower.webhook]);
        stage.add_node("one", 80).await;
        stage.add_node("two", 80).await;
        let (stage, groups) = (Arc::new(stage), groups());
        let statuses = observe(&stage, &groups);
        create(&stage, &groups).await;
        for group in &groups {
            stage.create_sets(group).await;
        }
        stage.pods.until("all pods are made", |now| now.count_all(|_| true) == PODS).await;
        let goes_on = Arc::new(AtomicBool::new(true));
        let kubelet = tokio::spawn(let_ready(stage.clone(), goes_on.clone()));
        let (leader, follower, released_before) = (Some(leader), Some(follower), HashSet::new());
        let launch = of_follower;
        let story =
            Self { stage, groups, statuses, service, leader, follower, released_before, launch, goes_on, kubelet };
        story.until_released(PODS / 5).await;
        story
    }

    /// Requests of both replicas are refused, and that is no fault of theirs.
    pub fn overlook_refusals(&mut self) {
        for replica in [&mut self.leader, &mut self.follower] {
            replica.as_mut().unwrap().overlooks_refusals = true;
        }
    }

    /// A pod of the first group that is tried.
    pub async fn try_pod(&self) -> Result<ApiPod, kube::Error> {
        self.stage.try_pod(self.groups[0].pod("prefill", "probe", &self.stage.namespace)).await
    }

    /// Waits until so many pods have been released.
    pub async fn until_released(&self, pods: usize) {
        self.stage.pods.until("more is released", |now| now.count_all(Pod::is_released) >= pods).await;
    }

    /// No pod becomes ready until `go_on`, and all that may be released is.
    pub async fn rest(&self) {
        self.goes_on.store(false, Ordering::SeqCst);
        let mut before = usize::MAX;
        eventually(RECOVERY, "a rest", async || {
            let released = self.released().await?;
            let rests = released == std::mem::replace(&mut before, released);
            tokio::time::sleep(Duration::from_secs(1)).await;
            if rests { Ok(()) } else { Err(format!("{released} pods are released")) }
        })
        .await;
    }

    /// Forgets what was seen so far, while the run rests: observers that were cut off have missed what was written meanwhile,
    /// or what is seen from now on is of another history.
    pub async fn observe_anew(&mut self) {
        self.kubelet.abort();
        self.stage = Arc::new(self.stage.again().await);
        self.stage.pods.until("all pods are seen", |now| now.count_all(|_| true) == PODS).await;
        self.observe_groups_anew();
        for statuses in &self.statuses {
            statuses.until("the status is seen", |status| !status.0.is_null()).await;
        }
        self.kubelet = tokio::spawn(let_ready(self.stage.clone(), self.goes_on.clone()));
    }

    /// The same of the groups alone, which need not be there.
    pub fn observe_groups_anew(&mut self) {
        self.statuses = observe(&self.stage, &self.groups);
        let released = |pod: &&Pod| pod.is_released();
        self.released_before =
            self.stage.pods.now(|now| now.all().filter(released).map(|pod| pod.uid.clone()).collect());
    }

    /// Pods become ready again.
    pub fn go_on(&self) {
        self.goes_on.store(true, Ordering::SeqCst);
    }

    pub fn leader(&self) -> &Rolegate {
        self.leader.as_ref().unwrap()
    }

    pub fn follower(&self) -> &Rolegate {
        self.follower.as_ref().unwrap()
    }

    /// Kills the replica that leads; new admissions go to the other.
    pub async fn kill_leader(&mut self) {
        self.service.lead_to(&[self.follower().webhook]);
        self.leader.take().unwrap().kill().await;
    }

    /// Both replicas end by themselves and are started again, as a kubelet does; returns what the first had logged.
    pub async fn restart_ended(&mut self) -> String {
        let (mut leader, mut follower) = (self.leader.take().unwrap(), self.follower.take().unwrap());
        let ends = tokio::join!(leader.ended(), follower.ended());
        assert!(!ends.0.success() && !ends.1.success(), "{ends:?}");
        let next = self.launch.start_unready().await;
        self.service.lead_to(&[next.webhook]);
        (self.leader, self.follower) = (Some(next), Some(self.launch.start().await));
        leader.log()
    }

    /// How many pods are released, by a list.
    pub async fn released(&self) -> Result<usize, String> {
        let (pods, all) = (self.stage.api::<ApiPod>(), ListParams::default());
        let pods = tokio::time::timeout(Duration::from_secs(5), pods.list(&all)).await;
        let pods = pods.map_err(|_| "no answer".to_owned())?;
        Ok(pods.map_err(|error| error.to_string())?.items.iter().filter(|pod| !is_held(pod)).count())
    }

    /// The same where the API server may be away for a moment.
    pub async fn released_now(&self) -> usize {
        eventually(RECOVERY, "a list of pods", async || self.released().await).await
    }

    /// The fault is over: waits until one more pod is released than were then, and returns how long that took.
    pub async fn moves_again(&self) -> Duration {
        let over = Instant::now();
        let before = self.released_now().await;
        assert!(before < PODS, "the fault came when all was over");
        self.moves_beyond(before, over).await
    }

    /// Waits until more than these pods are released, and returns how long that took.
    pub async fn moves_beyond(&self, before: usize, over: Instant) -> Duration {
        eventually(RECOVERY, "another release", async || match self.released().await? {
            released if released > before => Ok(()),
            released => Err(format!("{released} pods are released")),
        })
        .await;
        over.elapsed()
    }

    /// All becomes ready in the end, and nothing was released wrongly at any time.
    pub async fn end(&self) {
        self.go_on();
        let done = |status: &Status| status.ready() == "True AllReplicasReady: 60/60 pods ready";
        for statuses in &self.statuses {
            statuses.until_within(RECOVERY, "all ready", done).await;
        }
        let pods = &self.stage.pods;
        pods.until_within(RECOVERY, "all are seen ready", |now| now.count_all(Pod::is_ready) == PODS).await;
        self.nothing_went_wrong();
    }

    /// What must hold of all that was seen so far.
    pub fn nothing_went_wrong(&self) {
        let pods = &self.stage.pods;
        let free: Vec<_> = pods.births().into_iter().filter(|pod| !pod.is_held()).collect();
        assert!(free.is_empty(), "slipped in: {free:?}");
        for (group, statuses) in self.groups.iter().zip(&self.statuses) {
            let is_asked = |pod: &Pod| {
                let is_of_group = pod.labels.get("rolegate.dev/group") == Some(&group.name);
                is_of_group && !self.released_before.contains(&pod.uid)
            };
            invariants::released_in_order(pods, group);
            invariants::committed_before_released_of(pods, statuses, is_asked);
            invariants::released_counts_never_fell(statuses, group);
        }
        invariants::nobody_was_held_again(pods);
    }
}

/// Lets pods become ready round by round while `goes_on`.
async fn let_ready(stage: Arc<Stage>, goes_on: Arc<AtomicBool>) {
    loop {
        if goes_on.load(Ordering::SeqCst) {
            stage.try_let_ready(Pod::is_scheduled).await;
        }
        tokio::time::sleep(PACE).await;
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

/// A row of the page: after a run in which nothing went wrong.
pub fn tell(fault: &str, recovered: Duration, how: &str) {
    record("faults", &[fault, &seconds(recovered), how]);
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
