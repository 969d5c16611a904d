//! Which pods were rolled together, as their labels say it to a router.

use crate::common::prelude::*;
use crate::rollouts::support::{Duo, revision, rolling};

const COHORT: &str = "rolegate.dev/cohort";

fn cohort(pod: &Pod) -> String {
    pod.labels.get(COHORT).cloned().unwrap_or_default()
}

/// The cohorts of all pods that were ever made, by role and whether they were new.
fn cohorts(duo: &Duo) -> BTreeMap<(String, bool), BTreeSet<String>> {
    let mut cohorts: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for pod in duo.stage.pods.births() {
        cohorts.entry((pod.role.clone(), duo.is_new(&pod))).or_default().insert(cohort(&pod));
    }
    cohorts
}

fn each(prefill: [&str; 2], decode: [&str; 2]) -> BTreeMap<(String, bool), BTreeSet<String>> {
    let one = |role: &str, [old, new]: [&str; 2]| {
        let entry = |is_new: bool, cohort: &str| ((role.to_owned(), is_new), BTreeSet::from([cohort.to_owned()]));
        [entry(false, old), entry(true, new)]
    };
    one("prefill", prefill).into_iter().chain(one("decode", decode)).collect()
}

/// The cohort that the status has for the revision of this pod.
fn committed(duo: &Duo, pod: &Pod) -> Option<String> {
    let known = duo.statuses.now().0["cohorts"]["roles"][&pod.role].as_array().cloned().unwrap_or_default();
    let known = known.iter().find(|known| known["revision"] == json!(revision(pod)))?;
    known["cohort"].as_str().map(str::to_owned)
}

/// Old pods that are made again in the middle are of the old cohort, new ones of the new.
#[tokio::test]
async fn roles_that_are_rolled_together_get_a_cohort_and_old_pods_keep_theirs() {
    let flags = [("cohort-label", "example.com/revision")];
    let duo = Duo::serve("cohorts", 8, 4, json!({ "maxSkew": "25%", "maxUnavailable": 2 }), &flags).await.ready().await;
    duo.edit_both_held_back("registry.invalid/x:2");
    duo.until_partition("prefill", 6).await;
    duo.stage.pods.until("new ones", |now| now.count_all(|pod| duo.is_new(pod)) > 0).await;
    for name in ["llm-prefill-0", "llm-decode-0"] {
        duo.stage.replace_pod(name, |_| true).await;
    }
    let ready = |pod: &Pod| duo.is_new(pod) && pod.is_ready();
    duo.let_ready_until(|_| true, |now| now.count_all(ready) == 12).await;
    duo.until_over().await;
    assert_eq!(cohorts(&duo), each(["1", "2"], ["1", "2"]));
    for pod in duo.stage.pods.births() {
        assert_eq!(pod.labels.get("example.com/revision"), pod.labels.get(COHORT), "{pod:?}");
    }
    // What was before is forgotten, and the number is not given again.
    let tidy = |role: &str| duo.statuses.now().0["cohorts"]["roles"][role].as_array().map(Vec::len);
    duo.statuses.until("only what runs", |_| (tidy("prefill"), tidy("decode")) == (Some(1), Some(1))).await;
    for role in ["prefill", "decode"] {
        duo.edit_good(role, "registry.invalid/x:3");
    }
    duo.stage.pods.until("the third", |now| now.count_all(|pod| cohort(pod) == "3" && pod.is_ready()) == 12).await;
}

/// A stage with a leader, and the follower that is asked instead, behind a proxy.
struct Follows {
    stage: Stage,
    leader: Rolegate,
    behind: Proxy,
    _others: (Proxy, Rolegate),
}

async fn follows(namespace: &str) -> Follows {
    let stage = Stage::new(namespace).await.with_room(12).await;
    let (service, launch) = stage.behind_a_service().await;
    let launch = launch.flag("lease-duration", "15s");
    let leader = launch.start_unready().await;
    service.lead_to(&[leader.webhook]);
    leader.until_metric("rolegate_leader", 1).await;
    let behind = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let follower = launch.clone().through(&behind).start().await;
    service.lead_to(&[follower.webhook]);
    service.cut();
    // The API server finds the cut connection broken once.
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    eventually(PATIENT, "the follower is asked", async || {
        stage.groups().create(&dry_run, &typed(duo().object())).await.map(drop)
    })
    .await;
    Follows { stage, leader, behind, _others: (service, follower) }
}

fn duo() -> Group {
    Group::new("llm").role("prefill", 8, 1).role("decode", 4, 1)
}

/// The webhook that is asked has not heard yet that the group was ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_comes_before_the_news_that_all_is_ready_is_frozen_all_the_same() {
    let Follows { stage, leader, behind, _others } = follows("ready-late").await;
    let coordination = rolling(json!({ "maxSkew": "25%", "maxUnavailable": 1 }));
    let duo = Duo::create(stage, leader, duo().held_back(), &coordination).await;
    duo.stage.pods.until("all run", |now| now.count_all(Pod::is_scheduled) == 12).await;
    behind.delay(Duration::from_millis(700));
    duo.stage.let_ready(|_| true).await;
    let duo = duo.ready().await;
    duo.set_image("prefill", "registry.invalid/x:2");
    assert!(duo.partition("prefill").await > 0, "all of its pods are replaced at once");
}

/// The webhook that is asked hears one and a half seconds late of what the leader has committed; the status is lost on the way.
// kubectl is waited for while the proxies go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_come_before_the_news_of_their_cohort_have_it_all_the_same() {
    let Follows { stage, leader, behind, _others } = follows("cohort-late").await;
    // Pods of roles that nothing batches would have their group read live anyway.
    let placement = json!({ "segmentPlacement": { "segmentSize": { "prefill": 2, "decode": 1 } } });
    let roll = &rolling(json!({ "maxSkew": "25%", "maxUnavailable": 2 }))[0];
    let coordination = json!([{ "name": "segments", "strategy": placement }, roll]);
    let duo = Duo::create(stage, leader, duo(), &coordination).await.ready().await;
    // What the follower reads live has this behind it as well, and 2.25 s in all.
    behind.delay(Duration::from_millis(700));
    duo.set_images("registry.invalid/x:2");
    duo.stage.pods.until("new ones", |now| now.count_all(|pod| duo.is_new(pod)) > 0).await;
    let wipe = Patch::Merge(json!({ "status": { "cohorts": null } }));
    duo.stage.groups().patch_status("llm", &PatchParams::default(), &wipe).await.unwrap();
    duo.until_over().await;
    // Those that are made while nothing is known say nothing, and none says what is wrong.
    let mut said = cohorts(&duo);
    said.values_mut().for_each(|said| _ = said.remove(""));
    assert_eq!(said, each(["1", "2"], ["1", "2"]));
    let pods = duo.stage.pods.now(|now| now.all().cloned().collect::<Vec<_>>());
    duo.statuses.until("what pods say", |_| pods.iter().all(|pod| committed(&duo, pod) == Some("2".to_owned()))).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_role_that_is_rolled_alone_keeps_its_cohort() {
        let flags = [("settle", "2s")];
        let duo = Duo::serve("cohort-alone", 4, 4, json!({ "maxSkew": "25%" }), &flags).await.ready().await;
        duo.kubectl(&["rollout", "restart", &duo.target("prefill")], "");
        duo.until_new("prefill", 4).await;
        duo.until_closed("prefill").await;
        assert!(duo.stage.pods.births().iter().all(|pod| cohort(pod) == "1"), "{:#?}", duo.stage.pods.births());
    }

    #[tokio::test]
    async fn a_rollout_id_is_the_cohort() {
        let duo = Duo::serve("cohort-id", 4, 4, json!({ "maxSkew": "25%" }), &[]).await.ready().await;
        for role in ["prefill", "decode"] {
            duo.kubectl(&["annotate", &duo.target(role), "rolegate.dev/rollout=v2"], "");
            duo.set_image(role, "registry.invalid/x:2");
        }
        duo.until_over().await;
        assert_eq!(cohorts(&duo), each(["1", "v2"], ["1", "v2"]));
    }
}
