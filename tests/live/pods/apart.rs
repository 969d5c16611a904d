//! Pods of a batch that keep apart from each other, or are spread over nodes, on the real scheduler.

use crate::common::prelude::*;
use crate::pods::room::{group, one_step, only, racks};
use crate::pods::support::{coordinated, in_racks, stored};

mod tier2 {
    use super::*;

    /// Pods that keep apart from each other need a node each: a rack with room enough on one node is none for them.
    #[tokio::test]
    async fn pods_that_keep_apart_go_where_there_is_a_node_for_each() {
        let (stage, _rolegate) =
            in_racks("room-apart", &[("r1", &["a"], 20), ("r2", &["a", "b", "c"], 9)]).await.serve().await;
        let prefill = json!({ "matchLabels": { "rolegate.dev/role": "prefill" } });
        let other = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": prefill });
        let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [other] } });
        let group = group("llm", 3, 9).template(&json!({ "spec": { "affinity": apart } }));
        let mut bare = group.clone();
        bare.roles.retain(|role| role.name == "prefill");
        stage.create(coordinated(&group, &one_step(&group))).await;
        stage.create_sets(&bare).await;
        // Decode keeps apart from prefill as well, which would not fit beside it: it has a template of its own.
        stage.create_sets(&Group::new("llm").role("decode", 9, 9)).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 12).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r2"), "{now}"));
        let prefills =
            stored(&stage).await.into_iter().filter(|pod| pod.metadata.name.as_ref().unwrap().contains("prefill"));
        let pinned =
            prefills.map(|pod| pod.spec.unwrap().node_selector.unwrap().remove("kubernetes.io/hostname").unwrap());
        assert_eq!(pinned.collect::<BTreeSet<_>>().len(), 3);
    }

    /// Spread over nodes as evenly as it insists on, over more of them than one rack has. A pod that named its node would be alone
    /// with it in the eyes of the scheduler, which asks for three.
    #[tokio::test]
    async fn pods_that_are_spread_go_where_they_are_even() {
        let (stage, _rolegate) =
            in_racks("room-spread", &[("r1", &["a", "b"], 20), ("r2", &["a", "b", "c"], 4)]).await.serve().await;
        let decode = json!({ "matchLabels": { "rolegate.dev/role": "decode" } });
        let spread = json!({
            "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "minDomains": 3, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": decode, "nodeAffinityPolicy": "Honor",
        });
        let sets = Group::new("llm")
            .role("decode", 6, 6)
            .template(&json!({ "spec": { "topologySpreadConstraints": [spread] } }));
        let group = group("llm", 3, 6);
        stage.create(coordinated(&group, &one_step(&group))).await;
        stage.create_sets(&sets).await;
        stage.create_sets(&Group::new("llm").role("prefill", 3, 3)).await;
        // Two nodes are fewer than it asks for: there each could have one.
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 9).await;
        stage.pods.now(|now| assert_eq!(racks(&stage, now, "llm"), only("r2"), "{now}"));
        let mut nodes: BTreeMap<_, u32> = BTreeMap::new();
        for pod in stored(&stage).await.into_iter().filter(|pod| pod.metadata.name.as_ref().unwrap().contains("decode"))
        {
            *nodes.entry(pod.spec.unwrap().node_name.unwrap()).or_default() += 1;
        }
        assert_eq!(nodes.into_values().collect::<Vec<_>>(), [2, 2, 2]);
    }
}
