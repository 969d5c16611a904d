//! Pods of RoleBasedGroups under every scheme of labels, with and without numbers.

use crate::common::prelude::*;
use crate::pods::shapes::SCHEMES;
use crate::pods::support::{BATCH, INDEX, coordinated, rolling_deploy, stage};

/// The selector and the template of a role's pods, under another scheme of labels.
fn labelled(group: &Group, stage: &Stage, (group_key, role_key): (&str, &str)) -> (Value, Value) {
    let labels = json!({ group_key: group.name, role_key: "main" });
    let mut template = group.set(group.find("main"), &stage.namespace)["spec"]["template"].clone();
    template["metadata"]["labels"] = labels.clone();
    (json!({ "matchLabels": labels }), template)
}

#[tokio::test]
async fn pods_without_numbers_are_numbered_when_they_are_released() {
    let (stage, _rolegate) = stage("unnumbered").await.with_room(12).await.serve().await;
    for (number, scheme) in SCHEMES.into_iter().enumerate() {
        let group = Group::new(&format!("llm-{number}")).role("main", 4, 2).held_back();
        let strategy = rolling_deploy("host", "soft", &json!({ "main": 2 }));
        stage.create(coordinated(&group, &strategy)).await;
        let (selector, template) = labelled(&group, &stage, scheme);
        let spec = json!({ "replicas": 4, "selector": selector, "template": template });
        stage.create(object("apps/v1", "Deployment", &group.name).spec(spec)).await;
    }
    stage.pods.until("all have a node", |now| now.count_all(Pod::is_scheduled) == 12).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 12);
    assert!(stage.pods.births().iter().all(|pod| !pod.labels.contains_key(INDEX)));
    stage.pods.now(|now| {
        for number in 0..SCHEMES.len() {
            let of_group = now.all().filter(|pod| pod.name.starts_with(&format!("llm-{number}-")));
            let mut given: Vec<_> =
                of_group.map(|pod| (pod.labels[INDEX].clone(), pod.labels[BATCH].clone())).collect();
            given.sort();
            let expected = [("0", "pd-0"), ("1", "pd-0"), ("2", "pd-1"), ("3", "pd-1")];
            assert_eq!(given, expected.map(|(index, batch)| (index.to_owned(), batch.to_owned())));
        }
    });
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn numbered_pods_are_known_by_each_scheme() {
        let (stage, _rolegate) = stage("schemes").await.with_room(12).await.serve().await;
        for (number, scheme) in SCHEMES.into_iter().enumerate() {
            let group = Group::new(&format!("llm-{number}")).role("main", 4, 2).held_back();
            stage.create_group(&group).await;
            let (selector, template) = labelled(&group, &stage, scheme);
            let mut set = group.set(group.find("main"), &stage.namespace);
            set["spec"]["selector"] = selector;
            set["spec"]["template"] = template;
            stage.create(set).await;
            let of_group = |pod: &Pod| pod.name.starts_with(&group.name);
            for released in [2, 4] {
                let found = |pod: &Pod| of_group(pod) && pod.is_scheduled();
                stage.pods.until("a segment more", |now| now.count_all(found) == released).await;
                stage.pods.now(|now| {
                    let lowest = |pod: &Pod| of_group(pod) && (pod.index as usize) < released && pod.is_released();
                    assert_eq!(now.count_all(lowest), released, "{now}");
                    assert_eq!(now.count_all(|pod| of_group(pod) && pod.is_released()), released, "{now}");
                });
                stage.let_ready(|pod| of_group(pod) && pod.is_released()).await;
            }
        }
        assert_eq!(invariants::all_born_held(&stage.pods), 12);
        for pod in stage.pods.births() {
            assert_eq!((&pod.gates[..], &pod.labels[INDEX]), (&[GATE.to_owned()][..], &pod.index.to_string()));
            assert_eq!(pod.labels["rolebasedgroup.workloads.x-k8s.io/name"], pod.name[..5]);
        }
    }
}
