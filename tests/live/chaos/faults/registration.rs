//! The webhook configurations go, or become those of another version, while pods wait.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};

use crate::chaos::faults::story::{RECOVERY, Story, tell};
use crate::common::prelude::*;
use crate::common::stage::is_held;

/// Waits until the API server has a pod held again, and returns how long that took.
async fn holds_again(story: &Story, since: Instant) -> Duration {
    eventually(RECOVERY, "a pod that is held", async || {
        let pod = story.try_pod().await.map_err(|error| error.to_string())?;
        if is_held(&pod) { Ok(()) } else { Err("not held".to_owned()) }
    })
    .await;
    since.elapsed()
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn webhook_configurations_are_deleted_or_exchanged() {
    let story = Story::begin(Stage::new("faults-configurations").await).await;
    let name = story.stage.namespace.clone();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(story.stage.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(story.stage.client.clone());

    // As another version of it would have them: other names and paths, nothing to hold pods by.
    story.rest().await;
    let known = mutating.get(&name).await.unwrap().webhooks.unwrap();
    let mut other = known[0].clone();
    other.name = "other.rolegate.dev".to_owned();
    other.rules = Some(vec![typed(json!({
        "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"],
    }))]);
    other.match_conditions = None;
    let exchanged = Instant::now();
    let patch = Patch::Merge(json!({ "webhooks": [other] }));
    mutating.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let time = holds_again(&story, exchanged).await;
    story.go_on();
    story.moves_again().await;
    let how = "restored by the leader; pods created before are not held";
    tell("webhook configuration replaced by one of another version", time, how);

    story.rest().await;
    let deleted = Instant::now();
    mutating.delete(&name, &DeleteParams::default()).await.unwrap();
    validating.delete(&name, &DeleteParams::default()).await.unwrap();
    story.go_on();
    let moved = story.moves_again().await;
    let time = holds_again(&story, deleted).await;
    let how = format!("{how}; held pods went on by their turns after {:.1} s", moved.as_secs_f64());
    tell("webhook configurations deleted", time, &how);
    story.end().await;
}
