//! StatefulSets that the operator of RoleBasedGroups keeps: it takes a foreign annotation for an edit, and asks for the
//! partitions of its own rollout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::common::pods::Pod;
use crate::rollouts::support::Duo;

const NEW: &str = "registry.invalid/x:2";

/// What RBG v0.8 does with the StatefulSet of a role: as soon as it differs from what is wanted, it is written with the
/// partition at which a rollout begins, and after that with those of its next steps.
struct Operator {
    sets: Api<StatefulSet>,
    name: String,
    /// How often it took the StatefulSet for edited.
    edits: Arc<AtomicU32>,
}

impl Operator {
    async fn keep(self) {
        let mut resync = tokio::time::interval(Duration::from_millis(100));
        loop {
            resync.tick().await;
            self.reconcile().await;
        }
    }

    async fn reconcile(&self) {
        let live = self.sets.get(&self.name).await.unwrap();
        let spec = live.spec.as_ref().unwrap();
        let image = spec.template.spec.as_ref().unwrap().containers[0].image.as_deref();
        let own = ["deployment.kubernetes.io/revision", "rolebasedgroup.workloads.x-k8s.io/", "app.kubernetes.io/"];
        let is_foreign = |key: &&String| !own.iter().any(|prefix| key.starts_with(prefix));
        let foreign = live.metadata.annotations.iter().flat_map(|of| of.keys()).filter(is_foreign).count();
        let update = spec.update_strategy.as_ref().unwrap().rolling_update.as_ref().unwrap();
        let partition = match (image == Some(NEW) && foreign == 0, update.partition) {
            (false, _) => {
                self.edits.fetch_add(1, Ordering::Relaxed);
                spec.replicas.unwrap()
            }
            (true, Some(0) | None) => return,
            (true, Some(_)) => 0,
        };
        let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": partition } });
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": NEW }] } });
        let patch = Patch::Strategic(json!({ "spec": { "template": template, "updateStrategy": rolling } }));
        let params = PatchParams { field_manager: Some("rbg".to_owned()), ..PatchParams::default() };
        self.sets.patch(&self.name, &params, &patch).await.unwrap();
    }
}

#[tokio::test]
async fn their_operator_sees_no_edit_in_what_is_noted_and_its_steps_are_not_its_users() {
    let bounds = json!({ "maxSkew": "25%", "maxUnavailable": "25%" });
    let duo = Duo::serve("kept-by-rbg", 8, 4, bounds, &[]).await.ready().await;
    let uid = duo.kubectl(&["get", "rolebasedgroups.workloads.x-k8s.io", "llm", "-o=jsonpath={.metadata.uid}"], "");
    let owner = json!({
        "apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroup", "name": "llm", "uid": uid, "controller": true,
    });
    let patch = json!({ "metadata": { "ownerReferences": [owner] } }).to_string();
    let mut operators = tokio::task::JoinSet::new();
    let mut edits = Vec::new();
    for role in ["prefill", "decode"] {
        duo.kubectl(&["patch", &duo.target(role), "--type=merge", "-p", &patch], "");
        let operator =
            Operator { sets: duo.stage.api(), name: duo.group.set_name(role), edits: Arc::new(AtomicU32::new(0)) };
        edits.push(operator.edits.clone());
        operators.spawn(operator.keep());
    }
    duo.stage.pods.until("all are new", |now| now.count_all(|pod| duo.is_new(pod) && pod.is_ready()) == 12).await;
    duo.until_over().await;
    duo.assert_bounds(25, &|desired| desired / 4);
    assert_eq!(edits.iter().map(|edits| edits.load(Ordering::Relaxed)).collect::<Vec<_>>(), [1, 1]);
    duo.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 12, "{now}"));
}
