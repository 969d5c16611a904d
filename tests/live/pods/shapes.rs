//! Pods of every maker and with the longest names: the API server takes what we make of them.

use crate::common::prelude::*;
use crate::pods::support::{BATCH, HOST, coordinated, stage};

/// Label schemes that tie a pod to a group and a role.
pub const SCHEMES: [(&str, &str); 3] = [
    ("rolegate.dev/group", "rolegate.dev/role"),
    ("rbg.workloads.x-k8s.io/group-name", "rbg.workloads.x-k8s.io/role-name"),
    ("rolebasedgroup.workloads.x-k8s.io/name", "rolebasedgroup.workloads.x-k8s.io/role"),
];

/// Pods as they came to a webhook in real clusters, by file.
fn recorded() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/reviews");
    let folders = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let read = |path: PathBuf| {
        let review: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        let request = &review["request"];
        (request["kind"]["kind"] == "Pod" && request["operation"] == "CREATE")
            .then(|| (path, request["object"].clone()))
    };
    files.filter_map(read).collect()
}

/// The pod as its maker would send it to this namespace.
fn anew(mut pod: Value, stage: &Stage, number: usize) -> Value {
    let meta = pod["metadata"].as_object_mut().unwrap();
    for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion", "generation"] {
        meta.remove(field);
    }
    meta.insert("namespace".into(), json!(stage.namespace));
    if !meta.contains_key("name") && !meta.contains_key("generateName") {
        meta.insert("name".into(), json!(format!("shape-{number}")));
    }
    let spec = pod["spec"].as_object_mut().unwrap();
    for field in ["priority", "preemptionPolicy", "nodeName", "serviceAccount", "serviceAccountName"] {
        spec.remove(field);
    }
    pod.as_object_mut().unwrap().remove("status");
    pod
}

/// What rolegate adds to.
fn touched(pod: &Value) -> [&Value; 5] {
    let (meta, spec) = (&pod["metadata"], &pod["spec"]);
    [&meta["labels"], &meta["annotations"], &spec["affinity"], &spec["schedulingGates"], &spec["containers"]]
}

#[tokio::test]
async fn recorded_pods_are_accepted_with_what_they_are_given_and_given_nothing_twice() {
    let (stage, _rolegate) = stage("recorded").await.serve().await;
    let affinity = json!({ "topologyKey": HOST, "ratios": {} });
    let mut coordinated_pods = 0;
    let shapes = recorded();
    assert!(shapes.len() >= 14, "{}", shapes.len());
    for (number, (path, pod)) in shapes.into_iter().enumerate() {
        let pod = anew(pod, &stage, number);
        let labels = &pod["metadata"]["labels"];
        let named = SCHEMES.iter().find_map(|(group, role)| Some((labels[*group].as_str()?, labels[*role].as_str()?)));
        if let Some((group, role)) = named {
            let mut affinity = affinity.clone();
            affinity["ratios"][role] = json!(2);
            let strategy = json!({ "name": "near", "strategy": { "affinityScheduling": affinity } });
            let object = coordinated(&Group::new(group).role(role, 50, 2), &strategy);
            _ = stage.groups().delete(group, &kube::api::DeleteParams::default()).await;
            stage.create(object).await;
            // The index may still have the one before.
            let made = async || stage.post(CORE, "pods?dryRun=All", &pod).await;
            until_found("the role is known", made, |made| made.warnings.is_empty()).await;
        }
        let made = stage.post(CORE, "pods?dryRun=All", &pod).await;
        assert_eq!(made.code, 201, "{path:?}: {made:?}");
        if named.is_some() {
            coordinated_pods += 1;
            let ours = made.body["spec"]["schedulingGates"].as_array().into_iter().flatten();
            assert_eq!(ours.filter(|gate| gate["name"] == GATE).count(), 1, "{path:?}: {made:?}");
        }
        let again = stage.post(CORE, "pods?dryRun=All", &anew(made.body.clone(), &stage, number)).await;
        assert_eq!(again.code, 201, "{path:?}: {again:?}");
        assert_eq!(touched(&again.body), touched(&made.body), "{path:?}");
    }
    assert!(coordinated_pods >= 6, "{coordinated_pods}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn the_longest_names_make_labels_that_fit() {
        let (stage, _rolegate) = stage("long-names").await.serve().await;
        let long = |letter: &str| letter.repeat(63);
        let (group, role, coordination) = (long("g"), long("r"), long("c"));
        let affinity = json!({ "topologyKey": HOST, "ratios": { role.as_str(): 2 } });
        let strategy = json!({ "name": coordination, "strategy": { "affinityScheduling": affinity } });
        let llm = Group::new(&group).role(&role, 4, 2);
        stage.create(coordinated(&llm, &strategy)).await;
        let mut batches = std::collections::BTreeSet::new();
        for ordinal in 0..4 {
            let set = "p".repeat(251);
            let mut pod = llm.pod(&role, &format!("{set}-{ordinal}"), &stage.namespace);
            pod["metadata"]["ownerReferences"] = json!([owner("apps/v1", "StatefulSet", &set, "0")]);
            let made = stage.post(CORE, "pods", &pod).await;
            assert_eq!(made.code, 201, "{made:?}");
            let labels = &made.body["metadata"]["labels"];
            let batch = labels[BATCH].as_str().unwrap();
            assert!(batch.len() == 63 && batch.starts_with("cccc"), "{batch}");
            assert_eq!(labels["rolebasedgroup.workloads.x-k8s.io/name"], group);
            assert_eq!(labels[&format!("coordination.workloads.x-k8s.io/{coordination}")], "member");
            let near = &made.body["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
            assert!(near[0].to_string().contains(batch), "{near}");
            batches.insert(batch.to_owned());
        }
        assert_eq!(batches.len(), 2);
    }
}
