//! The ClusterTopology that a group names comes after its pods.

use crate::common::prelude::*;
use crate::rules::turn::Turn;

const BATCH: &str = "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name";

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn pods_wait_for_the_layer_that_they_share_and_are_made_again_for_it() {
        // What belongs to the whole cluster is judged by the rolegates of other tests as well.
        let mut turn = Turn::alone("missing-layer").await;
        turn.start_as(turn.launch().switch("recreate-mis-stamped")).await;
        let (stage, rolegate) = (&*turn, turn.rolegate());
        for node in ["a", "b"] {
            stage.add_node(node, 6).await;
        }
        let group = Group::new("llm").role("prefill", 8, 4).role("decode", 4, 2);

        let constraint = json!({ "clusterTopologyName": stage.namespace, "topologyLayerName": "host" });
        let deploy = json!({ "roleDeployStep": { "prefill": 4, "decode": 2 }, "deployTopologyConstraint": constraint });
        let coordination = json!([{ "name": "pd", "strategy": { "rollingDeploy": deploy } }]);
        let statuses = stage.deploy_with(&group, &coordination).await;
        rolegate.until_metric(r#"rolegate_held_pods{reason="TopologyMissing"}"#, 12).await;
        let why = format!("layer \"host\" of ClusterTopology {:?} is not there", stage.namespace);
        statuses.until("it is told", |status| status.progressing().contains(&why)).await;
        let all_wait = |now: &View| now.count_all(|pod| pod.is_held() && !pod.labels.contains_key(BATCH)) == 12;
        stage.pods.always(Duration::from_secs(1), "none goes, and none is made again for nothing", all_wait).await;
        assert_eq!(stage.pods.births().len(), 12);

        let layers = object("rolegate.dev/v1alpha1", "ClusterTopology", &stage.namespace)
            .spec(json!({ "layers": [{ "name": "host", "key": "kubernetes.io/hostname" }] }));
        stage.plane.must(&["create", "-f", "-"], &layers.to_string());
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
        let released = stage.pods.events().into_iter().filter(|event| event.step == Step::Released);
        assert!(released.clone().count() == 12 && released.clone().all(|event| event.pod.labels.contains_key(BATCH)));
        stage.pods.now(|now| {
            for batch in ["pd-0", "pd-1"] {
                let of_batch = || now.all().filter(|pod| pod.labels.get(BATCH).is_some_and(|of| of == batch));
                let node = of_batch().next().and_then(|pod: &Pod| pod.node.clone());
                assert!(node.is_some() && of_batch().all(|pod| pod.node == node) && of_batch().count() == 6, "{now}");
            }
        });
    }
}
