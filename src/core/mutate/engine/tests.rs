//! The numbers that pods get for their engine follow from sizes alone, and a pod that is reviewed again stays as it is: tried with
//! all small sizes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::Pod;
use crate::api::grove::POD_CLIQUE_SET;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::build::{self, typed};
use crate::model::{CliqueSet, Group, names};
use crate::mutate::expand::expand;
use crate::mutate::{GroupLookup, Lookups, PodSettings, Subject, mutate_pod};

/// What makes the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    StatefulSet,
    LeaderWorkerSet,
    RoleBasedGroup,
    Grove,
}

const MADE: &[Made] = &[Made::StatefulSet, Made::LeaderWorkerSet, Made::RoleBasedGroup, Made::Grove];

/// The sizes of a workload: replicas of `size` pods, in segments of `segment` replicas.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    made: Made,
    replicas: u32,
    size: u32,
    segment: u32,
    processes: u32,
    /// Processes are the devices of the pod.
    by_devices: bool,
    scope: &'static str,
}

/// All small sizes of all workloads. A Grove set has no segments, and a role there is a clique.
fn all_sizes() -> Vec<Sizes> {
    let mut all = Vec::new();
    for made in MADE.iter().copied() {
        for (replicas, size, segment) in [(1, 1, 1), (1, 3, 1), (2, 2, 2), (3, 1, 2), (4, 2, 3), (3, 4, 1)] {
            let size = if made == Made::StatefulSet { 1 } else { size };
            for scope in ["replica", "role", "segment"] {
                for (processes, by_devices) in [(1, false), (2, false), (8, true)] {
                    if made != Made::Grove || scope == "replica" {
                        all.push(Sizes { made, replicas, size, segment, processes, by_devices, scope });
                    }
                }
            }
        }
    }
    all
}

/// The formula: pods that meet, and the first rank of a pod, from the sizes and the place alone.
fn expected(sizes: Sizes, replica: u32, member: u32) -> (u32, u32) {
    let Sizes { replicas, size, segment, .. } = sizes;
    match sizes.scope {
        "replica" => (size, member),
        "role" => (replicas * size, replica * size + member),
        _ => (segment * size, replica % segment * size + member),
    }
}

fn containers(sizes: Sizes) -> Value {
    let resources = if sizes.by_devices {
        json!({ "limits": { "nvidia.com/gpu": sizes.processes.to_string(), "cpu": "4", "rdma/hca": 2 } })
    } else {
        json!({})
    };
    json!([{ "name": "main", "resources": resources, "env": [{ "name": "OWN", "value": "$(MASTER_ADDR)" }] }, { "name": "side" }])
}

fn annotations(engine: &str, sizes: Sizes) -> Value {
    let processes = if sizes.by_devices { String::new() } else { format!("; procsPerPod={}", sizes.processes) };
    json!({ "rolegate.dev/engine": format!("{engine}; scope={}{processes}", sizes.scope) })
}

fn in_ns(object: Value) -> Value {
    build::with(object, &json!({ "metadata": { "namespace": "ns" } }))
}

fn group(sizes: Sizes) -> Group {
    let segments = build::coordination("s", &build::segments(&[("decode", sizes.segment)], &json!({})));
    let object = in_ns(build::group("llm", &[("decode", sizes.replicas)], &json!([segments])));
    Group::from_role_coordination(ROLE_COORDINATION, &typed(object), &())
}

fn clique_set(set: &Value) -> CliqueSet {
    CliqueSet::from_set(POD_CLIQUE_SET, &typed(set.clone()))
}

/// The pods as their controllers make them, each with its replica and its place there; and the Grove set.
fn pods(engine: &str, sizes: Sizes) -> (Vec<(u32, u32, Value)>, Option<CliqueSet>) {
    let metadata = json!({ "labels": build::labels("llm", "decode"), "annotations": annotations(engine, sizes) });
    let template = json!({ "metadata": metadata, "spec": { "containers": containers(sizes) } });
    let all = |version: &str, kind: &str, object: &Value| expand(version, kind, object, 1_000).unwrap().unwrap();
    let Sizes { replicas, size, .. } = sizes;
    let numbered = |pods: Vec<Value>| {
        (0..replicas)
            .flat_map(move |replica| (0..size).map(move |member| (replica, member)))
            .zip(pods)
            .map(|((replica, member), pod)| (replica, member, pod))
            .collect::<Vec<_>>()
    };
    match sizes.made {
        Made::StatefulSet => {
            let set = in_ns(build::stateful_set("decode", replicas, &template));
            (numbered(all("apps/v1", "StatefulSet", &set)), None)
        }
        Made::LeaderWorkerSet => {
            let set = in_ns(build::leader_worker_set("decode", replicas, size as usize, &template));
            (numbered(all("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", &set)), None)
        }
        Made::RoleBasedGroup => {
            let pod = |replica: u32, member: u32| {
                let mut pod = template.clone();
                let instance = format!("llm-decode-{replica}");
                pod["metadata"]["name"] = json!(format!("{instance}-{member}"));
                pod["metadata"]["namespace"] = json!("ns");
                pod["metadata"]["ownerReferences"] =
                    json!([{ "apiVersion": "v1", "kind": "RoleInstance", "name": instance, "controller": true }]);
                pod["metadata"]["labels"][names::RBG_INSTANCE_SIZE] = json!(size.to_string());
                pod["metadata"]["labels"][names::RBG_MEMBER] = json!(member.to_string());
                (replica, member, pod)
            };
            ((0..replicas).flat_map(|replica| (0..size).map(move |member| pod(replica, member))).collect(), None)
        }
        Made::Grove => {
            let clique = |name: &str, replicas: u32| {
                json!({
                    "name": name,
                    "annotations": annotations(engine, sizes),
                    "spec": { "roleName": name, "replicas": replicas, "podSpec": { "containers": containers(sizes) } },
                })
            };
            let workers = (size > 1).then(|| clique("w", size - 1));
            let cliques: Vec<_> = std::iter::once(clique("l", 1)).chain(workers).collect();
            let names: Vec<_> = cliques.iter().map(|clique| clique["name"].clone()).collect();
            let scaling = json!([{ "name": "g", "replicas": replicas, "cliqueNames": names }]);
            let template = json!({ "cliques": cliques, "podCliqueScalingGroups": scaling });
            let spec = json!({ "replicas": 1, "template": template });
            let set = in_ns(build::object("grove.io/v1alpha1", "PodCliqueSet", "llm", &spec));
            (numbered(all("grove.io/v1alpha1", "PodCliqueSet", &set)), Some(clique_set(&set)))
        }
    }
}

/// Reviews a pod, as the API server has it done.
fn reviewed(pod: &Value, group: &Group, set: Option<&CliqueSet>) -> (Value, Vec<String>) {
    let read: Pod = typed(pod.clone());
    let subject = Subject::of(&read, "ns", &());
    let lookups = Lookups { group: GroupLookup::Found(group), clique_set: set, ..Lookups::default() };
    let mutation = mutate_pod(&read, &subject, &lookups, &PodSettings { discovery: false, ..PodSettings::default() });
    let mut after = pod.clone();
    let patch: json_patch::Patch = serde_json::from_str(&mutation.patch.to_json()).unwrap();
    json_patch::patch(&mut after, &patch).unwrap();
    (after, mutation.warnings)
}

fn env(pod: &Value, container: usize) -> BTreeMap<String, String> {
    let env = pod["spec"]["containers"][container]["env"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    env.map(|variable| (text(&variable["name"]), text(&variable["value"]))).collect()
}

#[test]
fn ranks_and_sizes_follow_from_sizes_alone_whatever_makes_the_pods() {
    for sizes in all_sizes() {
        let (pods, set) = pods("torch, vllm, sglang", sizes);
        let group = group(sizes);
        assert_eq!(u32::try_from(pods.len()), Ok(sizes.replicas * sizes.size));
        let mut leaders: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for (replica, member, pod) in pods {
            let (after, warnings) = reviewed(&pod, &group, set.as_ref());
            assert!(warnings.is_empty(), "{warnings:?}");
            let (nodes, rank) = expected(sizes, replica, member);
            let (world, first) = (nodes * sizes.processes, rank * sizes.processes);
            let numbers = [
                ("NNODES", nodes),
                ("PET_NNODES", nodes),
                ("NODE_RANK", rank),
                ("PET_NODE_RANK", rank),
                ("WORLD_SIZE", world),
                ("DP_SIZE", world),
                ("RANK", first),
                ("DP_START_RANK", first),
                ("LOCAL_WORLD_SIZE", sizes.processes),
                ("PET_NPROC_PER_NODE", sizes.processes),
                ("DP_SIZE_LOCAL", sizes.processes),
            ];
            let meeting = match sizes.scope {
                "replica" => replica,
                "role" => 0,
                _ => replica / sizes.segment,
            };
            for container in 0..2 {
                let env = env(&after, container);
                for (name, number) in numbers {
                    assert_eq!(env[name], number.to_string(), "{name} in {sizes:?}");
                }
                let leader = &env["MASTER_ADDR"];
                assert_eq!(env["MASTER_PORT"], "29500", "the port of the first engine that names it");
                assert_eq!(env["DIST_INIT_ADDR"], format!("{leader}:20000"), "the port of its own engine");
                assert_eq!(nodes == 1, leader == "localhost", "{sizes:?}");
                let others = ["DP_ADDRESS", "PET_MASTER_ADDR", "VLLM_DP_MASTER_IP"];
                assert!(others.iter().all(|other| env[*other] == *leader), "{sizes:?}");
                leaders.entry(meeting).or_default().insert(leader.clone());
            }
            assert_eq!(after["metadata"]["labels"][names::NODE_RANK], json!(rank.to_string()));
        }
        assert!(leaders.values().all(|one| one.len() == 1), "all that meet know one address: {leaders:?}");
        let addresses: BTreeSet<_> = leaders.values().flatten().filter(|leader| *leader != "localhost").collect();
        assert!(addresses.is_empty() || addresses.len() == leaders.len(), "no two meetings share one: {leaders:?}");
    }
}

#[test]
fn a_pod_that_is_reviewed_again_stays_as_it_is_and_a_container_that_came_meanwhile_gets_the_same() {
    for (sizes, own) in all_sizes().into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)]) {
        let (pods, set) = pods("vllm, dynamo, llm-d", sizes);
        let group = group(sizes);
        for (_, _, mut pod) in pods {
            if own {
                let env = pod["spec"]["containers"][0]["env"].as_array_mut().unwrap();
                env.push(json!({ "name": "DP_SIZE", "value": "of the user" }));
            }
            let (once, _) = reviewed(&pod, &group, set.as_ref());
            assert_eq!(reviewed(&once, &group, set.as_ref()).0, once);
            assert_eq!(env(&once, 0)["DP_SIZE"] == "of the user", own);

            let mut between = once.clone();
            between["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({ "name": "proxy" }));
            // As when another webhook changes what a value is made of: the variable is ours, and follows.
            let side = between["spec"]["containers"][2]["env"].as_array_mut().unwrap();
            side.iter_mut().filter(|own| own["name"] == "NNODES").for_each(|own| own["value"] = json!("0"));
            let (third, _) = reviewed(&between, &group, set.as_ref());
            assert_eq!(reviewed(&third, &group, set.as_ref()).0, third);
            let (before, after) = (&once["spec"]["containers"], &third["spec"]["containers"]);
            let ours = after[0]["env"].as_array().unwrap();
            let (first, own) = before[1]["env"].as_array().unwrap().split_at(ours.len());
            assert_eq!(ours, first, "the new container has what one without its own has");
            let of_maker =
                |own: &Value| ["LWS_", "GROVE_"].iter().any(|maker| own["name"].as_str().unwrap().starts_with(maker));
            assert!(own.iter().all(of_maker), "{own:?}");
            assert_eq!((&after[1]["env"], &after[2]["env"]), (&before[0]["env"], &before[1]["env"]));
        }
    }
}
