//! Each service comes up whole; what rolegate adds to it is there.

use crate::common::prelude::*;
use crate::examples::support::{Example, RACK, Served};

const REVISION: &str = "controller-revision-hash";

#[tokio::test]
async fn vllm_on_stateful_sets_comes_up_and_is_updated_in_step() {
    let group = Group::new("vllm").role("prefill", 6, 2).role("decode", 3, 1);
    let example =
        Example { file: "vllm-statefulsets.yaml", gpu: "NVIDIA-H100-80GB-HBM3", racks: &[("v", 3)], group, others: 1 };
    let served = example.serve().await;
    served.is_whole(3, 2, 2).await;
    is_updated_in_step(&served).await;
}

/// A new image for prefill and decode: their updated shares stay together, and one pod of each role is away at most.
async fn is_updated_in_step(served: &Served) {
    let Served { stage, group, statuses, .. } = served;
    let revision = |pod: &Pod| pod.labels[REVISION].clone();
    let revisions = |role: &str| stage.pods.now(|now| now.of(role).map(revision).collect::<BTreeSet<_>>());
    let first = BTreeMap::from(["prefill", "decode"].map(|role| (role.to_owned(), revisions(role))));
    assert!(first.values().all(|revisions| revisions.len() == 1), "{first:?}");
    let (prefill, decode) = ("statefulset/vllm-prefill", "statefulset/vllm-decode");
    stage.kubectl(&["set", "image", prefill, decode, "vllm=vllm/vllm-openai:v0.27.1"]);
    let is_new = |pod: &Pod| first.get(&pod.role).is_some_and(|first| !first.contains(&revision(pod)));
    let all = usize::try_from(group.pods()).unwrap();
    stage.pods.until("all are new", |now| now.count_all(|pod| is_new(pod) && pod.is_ready()) == all).await;
    let done = |status: &Status| {
        // The rollout is the second coordination.
        let progress = &status.0["coordinationState"][1]["progress"];
        ["prefill", "decode"].iter().all(|role| progress[*role]["state"] == "Complete")
    };
    statuses.until("the rollout is complete", done).await;
    let roles = ["prefill", "decode"].map(|name| (name, group.find(name).replicas));
    let looks = invariants::rolled_in_step(&stage.pods, roles, is_new, 20, &|_| 1);
    assert!(looks > 18, "{looks}");
}

/// Two racks have room for a segment of six nodes, the third lacks one.
#[tokio::test]
async fn sglang_on_leader_worker_sets_comes_up_in_whole_racks() {
    let group = Group::new("sglang").role("prefill", 4, 2).role("decode", 2, 1).of_pods(2);
    let example = Example {
        file: "sglang-leaderworkersets.yaml",
        gpu: "NVIDIA-H200",
        racks: &[("a", 5), ("b", 6), ("c", 6)],
        group,
        others: 1,
    };
    let served = example.serve().await;
    // Two of LeaderWorkerSet's own.
    served.is_whole(5, 2, 1).await;
    let rack_of = |pod: &Pod| pod.node.as_ref().unwrap().rsplit('-').nth(1).unwrap().to_owned();
    let mut racks = BTreeMap::<_, BTreeSet<_>>::new();
    served.stage.pods.now(|now| {
        for role in &served.group.roles {
            for pod in now.of(&role.name) {
                racks.entry(pod.index / role.segment).or_default().insert(rack_of(pod));
            }
        }
    });
    let all: BTreeSet<_> = racks.values().flatten().map(String::as_str).collect();
    assert!(racks.values().all(|racks| racks.len() == 1), "{racks:?}");
    assert_eq!(all, BTreeSet::from(["b", "c"]));
}

#[tokio::test]
async fn llm_d_comes_up_with_its_labels_and_sidecar() {
    let group = Group::new("llm-d").role("prefill", 8, 4).role("decode", 2, 1).progression(Progression::Ordered);
    let example = Example { file: "llm-d.yaml", gpu: "NVIDIA-B200", racks: &[("x", 2), ("y", 2)], group, others: 0 };
    let served = example.serve().await;
    served.is_whole(2, 2, 0).await;
    for pod in served.stage.list::<ApiPod>().await {
        let (labels, spec) = (pod.metadata.labels.unwrap(), pod.spec.unwrap());
        assert_eq!(labels["llm-d.ai/role"], labels["rolegate.dev/role"]);
        let size = if labels["llm-d.ai/role"] == "prefill" { 4 } else { 1 };
        let ordinal: u32 = labels["apps.kubernetes.io/pod-index"].parse().unwrap();
        assert_eq!(labels["rolegate.dev/segment"], (ordinal / size).to_string());
        assert_eq!(spec.init_containers.is_some(), size == 1, "the sidecar is decode's");
        let near = spec.affinity.unwrap().pod_affinity.unwrap();
        let preferred = near.preferred_during_scheduling_ignored_during_execution.unwrap();
        assert!(preferred.iter().all(|term| term.pod_affinity_term.topology_key == RACK), "{preferred:?}");
    }
}

#[tokio::test]
async fn dynamo_comes_up_and_all_its_pods_know_where_etcd_is() {
    let group = Group::new("dynamo").role("prefill", 3, 1).role("decode", 6, 2);
    let example = Example { file: "dynamo.yaml", gpu: "NVIDIA-A100-SXM4-80GB", racks: &[("z", 2)], group, others: 3 };
    let served = example.serve().await;
    served.is_whole(4, 3, 1).await;
    let address = format!("dynamo-etcd-0.dynamo-etcd.{}.svc.cluster.local", served.stage.namespace);
    for pod in served.stage.list::<ApiPod>().await {
        let name = pod.metadata.name.unwrap();
        let env = pod.spec.unwrap().containers.remove(0).env.unwrap_or_default();
        let at = |wanted: &str| env.iter().position(|variable| variable.name == wanted);
        let etcd = at("STORE_ADDR").unwrap_or_else(|| panic!("{name} does not know where etcd is: {env:?}"));
        assert_eq!(env[etcd].value.as_deref(), Some(&*address), "{name}");
        // $(STORE_ADDR) stands for it only in what comes after.
        assert!(at("ETCD_ENDPOINTS").is_none_or(|endpoints| endpoints > etcd), "{name}: {env:?}");
    }
}
