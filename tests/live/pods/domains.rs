//! Where the real scheduler puts batches: affinity as the pods are born with it.

use crate::common::prelude::*;
use crate::pods::support::{
    BATCH, HOST, RACK, add_rack, deploy, domains, each_batch_alone, rack_of, rolling_deploy, stage, stored, with_rack,
};

fn host(pod: &Pod) -> Option<String> {
    pod.node.clone()
}

#[tokio::test]
async fn kep_30_each_batch_of_two_prefills_and_a_decode_has_a_node() {
    let (stage, _rolegate) = with_rack("kep-30", "r1", &["a", "b", "c"], 8).await;
    let group = Group::new("llm").role("prefill", 6, 2).role("decode", 3, 1);
    let affinity = json!({ "topologyKey": HOST, "ratios": { "prefill": 2, "decode": 1 }, "batchMode": "Sequential" });
    let coordination =
        json!({ "name": "pair", "type": "AffinityScheduling", "strategy": { "affinityScheduling": affinity } });
    deploy(&stage, &group, &coordination).await;
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 9).await;
    stage.pods.now(|now| {
        let domains = domains(now, host);
        assert_eq!(domains.keys().collect::<Vec<_>>(), ["pair-0", "pair-1", "pair-2"]);
        each_batch_alone(&domains);
        for pod in now.all() {
            let batch = pod.index / if pod.role == "prefill" { 2 } else { 1 };
            assert_eq!(pod.labels[BATCH], format!("pair-{batch}"));
            assert_eq!(pod.labels["coordination.workloads.x-k8s.io/pair"], "member");
        }
    });
}

/// KEP-75: eight prefills and four decodes in steps of 4:2, none of which ever gets ready.
async fn eight_and_four(stage: &Stage, group: &Group) {
    for rack in ["r1", "r2"] {
        add_rack(stage, rack, &["a", "b", "c"], 4).await;
    }
    deploy(stage, group, &rolling_deploy("rack", "hard", &json!({ "prefill": 4, "decode": 2 }))).await;
    stage.pods.until("all have a node", |now| now.count_all(Pod::is_scheduled) == 12).await;
}

#[tokio::test]
async fn kep_75_each_step_has_a_rack_and_waits_until_the_one_before_is_scheduled() {
    let (stage, _rolegate) = stage("kep-75").await.serve().await;
    eight_and_four(&stage, &Group::new("llm").role("prefill", 8, 4).role("decode", 4, 2).held_back()).await;
    stage.pods.now(|now| {
        assert_eq!(now.count_all(Pod::is_ready), 0);
        let domains = domains(now, |pod| rack_of(&stage, pod));
        assert_eq!(domains.keys().collect::<Vec<_>>(), ["pd-0", "pd-1"]);
        each_batch_alone(&domains);
    });
    let events = stage.pods.events();
    let is = |step: Step, batch: &'static str| {
        move |event: &crate::common::pods::Event| event.step == step && event.pod.labels[BATCH] == batch
    };
    let first_of_next = events.iter().position(is(Step::Released, "pd-1")).unwrap();
    let scheduled = events[..first_of_next].iter().filter(|event| is(Step::Scheduled, "pd-0")(event)).count();
    assert_eq!(scheduled, 6);
}

#[tokio::test]
async fn kep_75_story_2_both_roles_serve_on_when_a_rack_is_lost() {
    let (stage, _rolegate) = stage("lost-rack").await.serve().await;
    eight_and_four(&stage, &Group::new("llm").role("prefill", 8, 4).role("decode", 4, 2)).await;
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 12).await;
    let lost = stage.pods.now(|now| now.named("llm-prefill-0").and_then(|pod| rack_of(&stage, pod))).unwrap();
    let before = stage.pods.events().len();
    let at = ListParams::default().labels(&format!("rolegate.dev/stage={},{RACK}={lost}", stage.namespace));
    stage.nodes().delete_collection(&DeleteParams::default(), &at).await.unwrap();
    let on_lost = ListParams::default().labels(&format!("{BATCH}=pd-0"));
    stage.api::<ApiPod>().delete_collection(&DeleteParams::default().grace_period(0), &on_lost).await.unwrap();

    // Those that are made anew were released once, and are at once again: into what is left.
    stage.pods.until("all have a node again", |now| now.count_all(Pod::is_ready) == 12).await;
    stage.pods.now(|now| assert!(now.all().all(|pod| rack_of(&stage, pod).as_ref() != Some(&lost)), "{now}"));
    let events = stage.pods.events();
    let unharmed = events[before..].iter().filter(|event| event.pod.labels[BATCH] == "pd-1");
    assert_eq!(unharmed.count(), 0, "the other rack's pods were ready all the time");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn two_groups_with_one_coordination_name_do_not_attract_each_other() {
        let (stage, _rolegate) = with_rack("one-name", "r1", &["a", "b"], 4).await;
        for name in ["one", "two"] {
            let group = Group::new(name).role("prefill", 2, 2).role("decode", 2, 2);
            let step = json!({ "prefill": 2, "decode": 2 });
            deploy(&stage, &group, &rolling_deploy("host", "hard", &step)).await;
        }
        // Neither node has room for a fifth pod: a group that is drawn to the other's node stays out.
        stage.pods.until("both run", |now| now.count_all(Pod::is_ready) == 8).await;
        stage.pods.now(|now| {
            let of = |group: &str| now.all().filter(|pod| pod.name.starts_with(group)).map(host).collect::<Vec<_>>();
            let (one, two) = (of("one"), of("two"));
            let together = |nodes: &[_]| nodes.iter().all(|node| *node == nodes[0]);
            assert!(together(&one) && together(&two), "{one:?} {two:?}");
            assert_ne!(one[0], two[0]);
        });
    }

    #[tokio::test]
    async fn soft_constraints_give_way_when_they_must() {
        let (stage, _rolegate) = with_rack("soft", "r1", &["a", "b", "c"], 2).await;
        let group = Group::new("llm").role("prefill", 4, 4).role("decode", 2, 2);
        deploy(&stage, &group, &rolling_deploy("host", "soft", &json!({ "prefill": 4, "decode": 2 }))).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
        let used = stage.pods.now(|now| domains(now, host)["pd-0"].len());
        assert_eq!(used, 3);
    }

    #[tokio::test]
    async fn kep_32_segments_stay_together_and_apart_from_each_other() {
        let stage = stage("segments-apart").await;
        for rack in ["r1", "r2", "r3"] {
            add_rack(&stage, rack, &["a", "b"], 8).await;
        }
        let _rolegate = stage.launch().start().await;
        let group = Group::new("llm").role("main", 12, 4).role("side", 3, 1);
        let affinity = json!({ "topologyKey": RACK, "strategy": "RequireSegmentAffinity", "spreadSegments": true });
        let segments = json!({ "segmentSize": { "main": 4, "side": 1 }, "topologyAffinity": affinity });
        let coordination = json!({ "name": "segments", "strategy": { "segmentPlacement": segments } });
        deploy(&stage, &group, &coordination).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 15).await;
        stage.pods.now(|now| {
            let domains = domains(now, |pod| rack_of(&stage, pod));
            assert_eq!(domains.len(), 3);
            each_batch_alone(&domains);
        });
    }

    #[tokio::test]
    async fn what_the_user_wrote_about_affinity_is_kept_and_obeyed() {
        let stage = stage("own-affinity").await;
        for rack in ["r1", "r2"] {
            add_rack(&stage, rack, &["a", "b"], 8).await;
        }
        let _rolegate = stage.launch().start().await;
        let only_r2 = json!({ "key": RACK, "operator": "In", "values": ["r2"] });
        let selector = json!({ "matchLabels": { "app": "noisy" } });
        let term = json!({ "labelSelector": selector, "topologyKey": HOST });
        let own = json!({
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [only_r2] }] },
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 7, "podAffinityTerm": term }],
            },
        });
        let group = Group::new("llm")
            .role("prefill", 4, 2)
            .role("decode", 2, 1)
            .template(&json!({ "spec": { "affinity": own } }));
        deploy(&stage, &group, &rolling_deploy("host", "hard", &json!({ "prefill": 2, "decode": 1 }))).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 6).await;
        stage.pods.now(|now| {
            assert!(now.all().all(|pod| rack_of(&stage, pod).as_deref() == Some("r2")));
            each_batch_alone(&domains(now, host));
        });
        let (required, preferred) =
            ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
        for pod in stored(&stage).await {
            let affinity = serde_json::to_value(pod.spec.unwrap().affinity).unwrap();
            assert_eq!(affinity["nodeAffinity"], own["nodeAffinity"]);
            assert_eq!(affinity["podAntiAffinity"][required], own["podAntiAffinity"][required]);
            let preferences = affinity["podAntiAffinity"][preferred].as_array().unwrap();
            assert_eq!((preferences.len(), &preferences[0]), (2, &own["podAntiAffinity"][preferred][0]), "{affinity}");
            assert_eq!(affinity["podAffinity"][required].as_array().map(Vec::len), Some(1), "{affinity}");
        }
    }
}
