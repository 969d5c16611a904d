use super::*;
use crate::common::pods::Pod;
use std::time::Duration;

pub async fn show(stage: &Stage) {
    println!("--- pods");
    stage.pods.now(|now| for pod in now.all() { println!("{} gates={:?} node={:?} ready={}", pod.name, pod.gates, pod.node, pod.ready); });
    println!("{}", stage.plane.must(&["-n", &stage.namespace, "get", "workloads.kueue.x-k8s.io", "-o", "wide"], ""));
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn explore_sets() {
    let stage = stage("x-sets", 18).await;
    stage.add_node("all", 40).await;
    let _rolegate = stage.launch().start().await;
    let group = Group::three_segments();
    stage.create_group(&group).await;
    create_queued_sets(&stage, &group).await;
    stage.pods.until("all", |now| now.count_all(|_| true) == 18).await;
    for k in 0..3 {
        stage.pods.until("scheduled", |now| now.count_all(Pod::is_scheduled) == (k + 1) * 6).await;
        if k == 0 { show(&stage).await;
        println!("{}", stage.plane.must(&["-n", &stage.namespace, "get", "pod", "llm-prefill-0", "-o", "yaml"], ""));
        println!("{}", printed(&stage, &["explain", "pod", "llm-prefill-5"]).await);
        }
        stage.let_ready(|_| true).await;
    }
    show(&stage).await;
    // eviction by hand
    tokio::time::sleep(Duration::from_secs(1)).await;
}
