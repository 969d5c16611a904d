//! What is said of a group while it is rolled: who waits for it is not told too early.

use kube::ResourceExt as _;

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, REVISION};

/// As a pipeline looks.
const EVERY: Duration = Duration::from_millis(200);

impl Duo {
    /// `kubectl wait` for a condition of the group; true when it holds.
    fn waited(&self, condition: &str) -> bool {
        let wait = format!("--for=condition={condition}");
        let arguments = ["-n", &self.stage.namespace, "wait", "rbg/llm", &wait, "--timeout=0"];
        self.stage.plane.kubectl(&arguments, "").status.success()
    }

    fn old_pods(&self, now: &View, role: &str) -> usize {
        now.of(role).filter(|pod| !self.is_new(pod)).count()
    }

    async fn old_pods_now(&self, role: &str) -> usize {
        let of_role = ListParams::default().labels(&format!("rolegate.dev/role={role}"));
        let pods = self.stage.api::<ApiPod>().list(&of_role).await.unwrap().items;
        let first = self.first.get(role);
        pods.iter().filter(|pod| pod.labels().get(REVISION) == first).count()
    }

    /// Waits again and again, until the group is ready and the rollout of this role is over; returns how often it was not.
    async fn until_told(&self, role: &str) -> u32 {
        let mut not_yet = 0;
        loop {
            let told = ["Ready", "RolloutComplete"].map(|condition| self.waited(condition));
            // Read afterwards, and not from a watch that may be behind: what was old before is only ever replaced.
            let old = self.old_pods_now(role).await;
            let status = self.statuses.now();
            assert!(old == 0 || told == [false, false], "{told:?}, and {old} of {role} are old\n{status}");
            if told == [true, true] {
                return not_yet;
            }
            not_yet += 1;
            tokio::time::sleep(EVERY).await;
        }
    }
}

/// Of one role that is edited alone: it waits for the edit of the other, and goes on step by step.
#[tokio::test]
async fn who_waits_for_a_group_is_told_when_the_last_old_pod_is_gone() {
    let bounds = json!({ "maxSkew": "25%", "maxUnavailable": 1 });
    let duo = Duo::serve("who-waits", 8, 4, bounds, &[("settle", "3s")]).await.ready().await;
    let patch = json!({
        "metadata": { "annotations": { "rolegate.dev/rollout": "r2" } },
        "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "registry.invalid/x:2" }] } } },
    });
    duo.kubectl(&["patch", &duo.target("prefill"), "--type=strategic", "-p", &patch.to_string()], "");
    let named = "--for=jsonpath={.status.observedWorkloads.prefill.rollout}=r2";
    duo.kubectl(&["wait", "rbg/llm", named, "--timeout=30s"], "");
    let not_yet = duo.until_told("prefill").await;
    assert!(not_yet > 5, "it waits for three seconds before anything moves: {not_yet} looks");
    let first = duo.statuses.all().into_iter().find(|status| status.ready().starts_with("False RolloutInProgress"));
    assert!(first.is_some_and(|status| status.ready().contains("prefill 0/8")), "{}", duo.statuses.now());
    duo.stage.pods.now(|now| assert_eq!(duo.old_pods(now, "decode"), 4, "{now}"));
    let is_over = |status: &Status| status.condition("RolloutComplete").starts_with("True AllReplicasUpdated");
    duo.statuses.until("its rollout is over", is_over).await;
}

/// At the partition of its author a group is ready, and its rollout is not complete.
#[tokio::test]
async fn a_rollout_that_is_paused_where_its_author_asked_leaves_the_group_ready() {
    let bounds = json!({ "maxSkew": "50%", "maxUnavailable": 2, "partition": "50%" });
    let duo = Duo::serve("paused-ready", 4, 2, bounds, &[]).await.ready().await;
    duo.set_images("registry.invalid/x:2");
    let paused = |now: &View| {
        let new = |role: &str| now.count(role, |pod: &Pod| duo.is_new(pod) && pod.is_ready());
        (new("prefill"), new("decode")) == (2, 1)
    };
    duo.stage.pods.until("half of both is new", paused).await;
    let status = duo.statuses.until("it is told", |status| status.ready().starts_with("True RolloutPaused")).await;
    assert!(status.ready().contains("decode 1/2, prefill 2/4"), "{status}");
    assert!(status.condition("RolloutComplete").starts_with("False RolloutPaused"), "{status}");
    let ready = duo.statuses.all().into_iter().map(|status| status.ready());
    let since = ready.skip_while(|ready| !ready.starts_with("False RolloutInProgress")).collect::<Vec<_>>();
    assert!(since.iter().all(|ready| !ready.starts_with("True AllReplicasReady")), "{since:#?}");
}
