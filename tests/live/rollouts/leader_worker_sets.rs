//! LeaderWorkerSets roll whole groups, by a partition of their own.

use crate::common::prelude::*;
use crate::pods::support::stage as with_leader_worker_sets;
use crate::rollouts::support::{
    FROZEN, LWS_REVISION, USER_PARTITION, create_leader_worker_sets, leader_worker_sets, revisions_of_groups, rolling,
};

const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";

async fn deploy(stage: &Stage, group: &Group) {
    create_leader_worker_sets(stage, group, &json!({})).await;
    let mut object = group.coordination_of("LeaderWorkerSet", &json!({}));
    object["spec"]["coordination"] = rolling(json!({ "maxSkew": "25%", "maxUnavailable": 1 }));
    stage.create(object).await;
}

/// Groups whose pods are all at another revision than the first, and ready.
fn renewed(now: &View, role: &str, size: usize, first: &str) -> usize {
    let mut groups = BTreeMap::<_, Vec<&Pod>>::new();
    now.of(role).for_each(|pod| groups.entry(&pod.labels[GROUP_INDEX]).or_default().push(pod));
    let is_new = |pod: &&Pod| pod.labels[LWS_REVISION] != first && pod.is_ready();
    groups.values().filter(|pods| pods.len() == size && pods.iter().all(is_new)).count()
}

/// KEP-32, story 3: groups grow, and are replaced as a whole, prefill and decode in step.
#[tokio::test]
async fn groups_that_grow_are_replaced_whole_and_in_step() {
    let (stage, _rolegate) = with_leader_worker_sets("lws-rollout").await.with_room(24).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 1).role("decode", 4, 1);
    deploy(&stage, &group).await;
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 16).await;
    let first = revisions_of_groups(&stage);
    let sets = leader_worker_sets(&stage);
    let get = async |role: &str| serde_json::to_value(sets.get(&group.set_name(role)).await.unwrap()).unwrap();
    let status = async || stage.coordinations().get("llm").await.unwrap().data["status"].take();
    until_found("the group was ready", status, |status| status["firstReadyTime"].is_string()).await;

    for role in ["prefill", "decode"] {
        let patch = json!({ "spec": { "leaderWorkerTemplate": { "size": 3 } } }).to_string();
        let name = group.set_name(role);
        stage.kubectl(&["patch", "lws", &name, "--type=merge", "-p", &patch]);
        if role == "prefill" {
            // Decode is not edited yet: prefill waits for it.
            let set = get(role).await;
            let partition = &set["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"];
            assert_eq!((partition, &set["metadata"]["annotations"][USER_PARTITION]), (&json!(FROZEN), &json!("0")));
        }
    }
    let all_new = |now: &View| ["prefill", "decode"].iter().all(|role| renewed(now, role, 3, &first[*role]) == 4);
    stage.pods.until_within(PATIENT * 2, "all groups of three", all_new).await;
    for role in ["prefill", "decode"] {
        until_found(
            "thawed",
            async || get(role).await,
            |set| {
                let partition = &set["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"];
                set["metadata"]["annotations"][USER_PARTITION].is_null() && *partition == 0
            },
        )
        .await;
    }
    in_step(&stage, &first);
}

/// At every event: no role has more than one whole group away, and none is more than one group ahead.
fn in_step(stage: &Stage, first: &BTreeMap<String, String>) {
    let (mut view, mut served) = (View::default(), false);
    for batch in stage.pods.events().chunk_by(|a, b| a.batch == b.batch) {
        batch.iter().for_each(|event| view.take(event));
        served |= view.count_all(Pod::is_ready) == 16;
        if !served {
            continue;
        }
        let begun = |role: &str| {
            let leaders = view.of(role).filter(|pod| pod.labels["leaderworkerset.sigs.k8s.io/worker-index"] == "0");
            leaders.filter(|pod| pod.labels[LWS_REVISION] != first[role]).count()
        };
        let (prefill, decode) = (begun("prefill"), begun("decode"));
        assert!(prefill.abs_diff(decode) <= 1, "{prefill} prefill and {decode} decode");
        for role in ["prefill", "decode"] {
            let old = |pod: &&Pod| pod.labels[LWS_REVISION] == first[role] && pod.is_ready();
            let old = view.of(role).filter(old).count() / 2;
            let whole = old + renewed(&view, role, 3, &first[role]);
            assert!(whole >= 3, "{role}: {whole} of 4 groups are whole: {view}");
        }
    }
}
