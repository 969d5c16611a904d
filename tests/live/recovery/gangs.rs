//! A segment with a PodGroup starts together again when it is made anew.

use super::scene::{Scene, group, launch, phase, recreate};
use crate::common::prelude::*;
use crate::pods::gangs::stage;
use crate::pods::pod_groups::{define, members};

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn the_members_of_a_gang_that_were_lowered_rise_again_while_it_is_made_anew() {
        let stage = stage("recovery-gang").await;
        define(&stage.plane);
        stage.add_node("all", 12).await;
        let _rolegate = launch(&stage).start().await;
        let group = group(2, 1);
        let mut object = group.object();
        object["spec"]["coordination"][0]["strategy"] = json!({ "rollingDeploy": {
        "roleDeployStep": { "prefill": 2, "decode": 1 },
        "deployTopologyConstraint": { "podGroupPolicy": { "kubeScheduling": {} } },
        "recovery": recreate(),
    } });
        let scene = Scene::deployed(stage, group, object).await;
        members(&scene.stage, "llm-segments-0", 1).await;
        // An old pod that is long in going keeps the new ones.
        scene.finalizers("llm-prefill-0", &["example.com/wait"]).await;
        scene.delete("llm-decode-0").await;
        scene.statuses.until("it is made anew", phase("Recreating")).await;
        members(&scene.stage, "llm-segments-0", 3).await;
        scene.finalizers("llm-prefill-0", &[]).await;
        scene.comes_back(&[0]).await;
        members(&scene.stage, "llm-segments-0", 1).await;
    }
}
