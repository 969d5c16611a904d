//! The replica that leads dies, or stops and comes back, at the worst of moments.

use crate::chaos::faults::story::{RECOVERY, Story, leads, tell};
use crate::common::prelude::*;
use crate::common::request_proxy::{Fate, Kind, RequestProxy};
use crate::rollouts::support::rolling;

/// PATCHes of pods: releases.
const RELEASES: Kind = Kind { method: "PATCH", path: "/pods/" };

#[tokio::test]
async fn it_is_killed_between_commit_and_release() {
    let stage = Stage::new("faults-committed").await;
    let proxy = RequestProxy::before(&stage.plane).await;
    let mut story = Story::begin_with(stage, |launch| launch.through_requests(&proxy), |launch| launch).await;
    // What it commits from now on it cannot release.
    proxy.meet(RELEASES, Fate::Lost);
    let before = story.released_now().await;
    eventually(RECOVERY, "commits without releases", async || {
        let committed =
            |group: &Group, status: &Status| group.roles.iter().map(|role| status.released(&role.name)).sum::<u64>();
        let groups = story.groups.iter().zip(&story.statuses);
        let committed: u64 = groups.map(|(group, statuses)| committed(group, &statuses.now())).sum();
        let released = story.released().await?;
        let is_so = committed > u64::try_from(released).unwrap() && proxy.lost() > 0;
        if is_so { Ok(()) } else { Err(format!("{committed} committed, {released} released")) }
    })
    .await;
    let killed = Instant::now();
    story.kill_leader().await;
    let time = story.moves_beyond(before.max(story.released_now().await), killed).await;
    story.end().await;
    tell(
        "leader killed (SIGKILL, as the OOM killer does) between commit and release",
        time,
        "another replica leads after the Lease, and first releases what is committed",
    );
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn it_is_killed_in_the_middle_of_a_batch() {
    let mut story = Story::begin(Stage::new("faults-killed").await).await;
    let killed = Instant::now();
    story.kill_leader().await;
    let before = story.released_now().await;
    let time = story.moves_beyond(before, killed).await;
    story.end().await;
    tell("leader killed in the middle of a batch", time, "another replica leads after the Lease");
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn it_is_stopped_until_another_leads_and_goes_on() {
    let story = Story::begin(Stage::new("faults-stopped").await).await;
    story.rest().await;
    let stale = story.leader();
    let written = async || stale.metric(r#"rolegate_status_writes_total{outcome="written"}"#).await;
    let before = written().await;
    story.service.lead_to(&[story.follower().webhook]);
    stale.signal("STOP").await;
    let stopped = Instant::now();
    let released = story.released_now().await;
    story.go_on();
    let time = story.moves_beyond(released, stopped).await;
    leads(story.follower()).await;
    story.until_released(released + 24).await;
    // It believes that it leads, and knows what was true long ago.
    stale.signal("CONT").await;
    stale.until_metric("rolegate_leader", 0).await;
    story.end().await;
    assert_eq!(written().await, before, "the stale leader has committed something");
    tell(
        "leader stopped (SIGSTOP) past its lease, continued beside the new one",
        time,
        "another replica leads; writes of the stale one are refused for their version",
    );
}

/// Two roles in step, claimed, with the leader killed between two steps.
#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn it_is_killed_between_two_steps_of_a_rollout() {
    let stage = Stage::new("faults-rollout").await.with_room(40).await;
    let launch = stage.launch();
    let mut leader = launch.start().await;
    let group = Group::new("llm").role("prefill", 20, 1).role("decode", 10, 1);
    let statuses = stage.statuses(&group);
    stage.create(group.coordinated(&rolling(json!({ "maxSkew": "10%", "maxUnavailable": 2 })))).await;
    stage.create_claimed_sets(&group).await;
    statuses.until("it serves", |status| status.ready().starts_with("True")).await;
    let first = stage.pods.uids();
    for role in &group.roles {
        let container = json!([{ "name": "main", "image": "registry.invalid/x:2" }]);
        let edit = json!({ "spec": { "template": { "spec": { "containers": container } } } });
        stage.patch::<StatefulSet>(&group.set_name(&role.name), &edit).await;
    }
    let is_new = |pod: &Pod| first.get(&pod.name) != Some(&pod.uid);
    let mut times = Vec::new();
    for updated in [3, 12] {
        stage.pods.until("more is updated", |now| now.count_all(is_new) >= updated).await;
        leader.kill().await;
        let killed = Instant::now();
        leader = launch.start().await;
        let before = stage.pods.now(|now| now.count_all(is_new));
        stage.pods.until("it goes on", |now| now.count_all(is_new) > before).await;
        times.push(killed.elapsed());
    }
    let done = |pod: &Pod| is_new(pod) && pod.is_ready();
    stage.pods.until_within(RECOVERY, "all are updated", |now| now.count_all(done) == 30).await;
    let annotations = async || {
        let sets = stage.list::<StatefulSet>().await;
        sets.into_iter().filter_map(|set| set.metadata.annotations).flatten().collect::<Vec<_>>()
    };
    until_found("both are thawed", annotations, |all| all.iter().all(|(key, _)| !key.contains("user-partition"))).await;
    let looks = invariants::rolled_in_step(&stage.pods, [("prefill", 20), ("decode", 10)], is_new, 10, &|_| 2);
    assert!(looks > 30, "only {looks} events");
    let longest = times.into_iter().max().unwrap_or(Duration::ZERO);
    let how = "the next leader continues from partitions and pods";
    tell("leader killed between two steps of a rollout, twice", longest, how);
}
