//! Objects that name a thousand others, and many of them at a time: what they cost does not grow with what they name, and
//! others do not wait for them.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use futures::future::join_all;

use crate::common::prelude::*;
use crate::tenants::stage;

/// A group of so many roles, all of them in one coordination.
fn wide(roles: usize) -> Value {
    let mut group = Group::new("wide");
    for role in 0..roles {
        group = group.role(&format!("role-{role:04}"), 2, 1);
    }
    group.object()
}

/// Creates it without storing it.
async fn try_create(stage: &Stage, object: &Value) -> u16 {
    let path = format!("{GROUPS}/namespaces/{}/rolebasedgroups?dryRun=All", stage.namespace);
    stage.send("POST", &path, object).await.code
}

#[tokio::test]
async fn a_thousand_roles_cost_a_handful_of_reads() {
    let (stage, _rolegate) = stage("wide").await.serve().await;
    let account = Account::of(&stage);
    let reads = || {
        let requests = account.requests();
        let reads = requests.into_iter().filter(|request| {
            let is_read = ["get ", "list "].iter().any(|verb| request.what.starts_with(verb));
            is_read && !request.what.ends_with(" leases")
        });
        reads.map(|request| request.what).collect::<Vec<_>>()
    };
    let before = reads().len();
    assert_eq!(try_create(&stage, &wide(1000)).await, 201);
    let new = async || reads().split_off(before);
    let listed = |new: &Vec<String>| new.iter().any(|what| what == "list statefulsets");
    let new = until_found("the workloads are listed", new, listed).await;
    assert!(new.len() <= 8, "{new:?}");
}

#[tokio::test]
async fn a_pod_that_is_to_find_a_hundred_roles_costs_one_list() {
    let (stage, _rolegate) = stage("many-hosts").await.serve().await;
    let account = Account::of(&stage);
    let mut group = wide(100);
    group["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": "enabled" });
    stage.create(group).await;
    let reads = |verb: &str| account.counts().get(&format!("{verb} statefulsets")).copied().unwrap_or_default();
    let before = (reads("get"), reads("list"));
    let pod = Group::new("wide").pod("role-0000", "pod", &stage.namespace);
    stage.create(pod).await;
    until_found("the workloads are listed", async || reads("list"), |lists| *lists > before.1).await;
    assert_eq!((reads("get"), reads("list")), (before.0, before.1 + 1));
}

#[tokio::test]
async fn a_review_that_could_not_read_everything_logs_one_line() {
    let stage = stage("unread").await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let rolegate = stage.launch().through(&proxy).flag("lease-duration", "2m").start().await;
    let lines = || rolegate.log().lines().filter(|line| line.contains("rules that look at it do not judge")).count();
    let before = lines();
    proxy.delay(Duration::from_secs(3));
    let code = try_create(&stage, &wide(200)).await;
    proxy.delay(Duration::ZERO);
    assert_eq!(code, 201);
    assert_eq!(lines() - before, 1);
}

#[tokio::test]
async fn a_flood_in_one_namespace_does_not_stop_another() {
    let (victim, flooded) = (stage("victim").await, Arc::new(stage("flooded").await));
    victim.add_node("all", 30).await;
    let _rolegate = victim.launch().flag("namespaces", "victim,flooded").start().await;
    let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let object = Arc::new(wide(1000));
    let flood = (0..6).map(|_| {
        let (flooded, over, sent, object) = (flooded.clone(), over.clone(), sent.clone(), object.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                try_create(&flooded, &object).await;
                sent.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let flood: Vec<_> = flood.collect();
    until_found("the flood has begun", async || sent.load(Ordering::Relaxed), |sent| *sent >= 6).await;
    let started = Instant::now();
    victim.deploy(&Group::new("llm").role("prefill", 20, 4).role("decode", 10, 2)).await;
    victim.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 30).await;
    let time = started.elapsed();
    over.store(true, Ordering::Relaxed);
    for caller in flood {
        caller.await.unwrap();
    }
    // Counted, not timed: on a busy machine both are slower. Alone there are some 50.
    let sent = sent.load(Ordering::Relaxed);
    println!("30 pods in 5 segments after {time:?}, beside {sent} wide groups");
    assert!(sent < 250, "{sent} in {time:?}");
}

/// Groups that are kept changing beside the one that is measured.
const RESTLESS: u32 = 60;

#[tokio::test]
async fn groups_of_one_namespace_that_never_rest_let_those_of_another_go_on() {
    let (victim, restless) = (stage("calm").await, Arc::new(stage("restless").await));
    victim.add_node("calm", 60).await;
    let _rolegate = victim.launch().flag("namespaces", "calm,restless").start().await;
    let nowhere = json!({ "spec": { "nodeSelector": { "rolegate.test/nowhere": "" } } });
    let groups = (0..RESTLESS)
        .map(|number| Group::new(&format!("g{number}")).role("prefill", 2, 1).role("decode", 2, 1).template(&nowhere));
    let groups: Arc<Vec<_>> = Arc::new(groups.collect());
    for some in groups.chunks(4) {
        join_all(some.iter().map(|group| restless.deploy(group))).await;
    }
    let all = RESTLESS as usize * 4;
    restless.pods.until_within(PATIENT, "all pods are there", |now| now.count_all(|_| true) == all).await;
    let comes_up = async |name: &str| {
        let group = Group::new(name).role("prefill", 20, 4).role("decode", 10, 2);
        let (started, before) = (Instant::now(), victim.pods.now(|now| now.count_all(Pod::is_ready)));
        victim.deploy(&group).await;
        victim.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == before + 30).await;
        started.elapsed()
    };
    let alone = comes_up("alone").await;
    let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let changed = Arc::new(AtomicU32::new(0));
    let callers = (0..4).map(|_| {
        let (restless, groups, over, sent) = (restless.clone(), groups.clone(), over.clone(), sent.clone());
        let changed = changed.clone();
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let group = &groups[number % groups.len()];
                let size = 1 + number / groups.len() % 2;
                let placement = json!({ "segmentSize": { "prefill": size, "decode": size } });
                let coordination = json!([{ "name": "segments", "strategy": { "segmentPlacement": placement } }]);
                let change = json!({ "spec": { "coordination": coordination } });
                // A busy machine may let one of so many calls of the webhook end without an answer.
                let answer = restless.try_patch_group(group, &change).await;
                changed.fetch_add(u32::from(answer.code == 200), Ordering::Relaxed);
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    let beside = comes_up("beside").await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    let changed = changed.load(Ordering::Relaxed);
    println!(
        "30 pods in 5 segments: {alone:?} beside {RESTLESS} groups, {beside:?} while they changed {changed} times"
    );
    assert!(changed > 4, "the groups rested");
    assert!(beside < alone * 3 + Duration::from_secs(30), "{beside:?} beside {changed} changes, {alone:?} alone");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn four_thousand_roles_are_refused_in_time() {
        let (stage, _rolegate) = stage("too-wide").await.serve().await;
        // The API server waits for 3 s, and says 500 then.
        assert_eq!(try_create(&stage, &wide(4000)).await, 422);
    }
}
