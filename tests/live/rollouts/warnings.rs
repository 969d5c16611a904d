//! Whom a rollout tells to see to something: nobody while it goes well, and always when it does not.

use k8s_openapi::api::core::v1::Event;

use crate::common::prelude::*;
use crate::rollouts::support::Duo;

/// Warnings of ours about anything in the namespace.
async fn warnings(duo: &Duo) -> Vec<String> {
    let warnings = ListParams::default().fields("type=Warning");
    let events = duo.stage.api::<Event>().list(&warnings).await.unwrap().items;
    let ours = events.into_iter().filter(|event| event.reporting_component.as_deref() == Some("rolegate"));
    ours.map(|event| format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
}

mod tier2 {
    use super::*;

    /// Pods that are made again in a rollout are held until they are seen: nothing is said of that, and nothing else of what lasts a
    /// moment, so that the one that is stuck is heard.
    #[tokio::test]
    async fn three_clean_rollouts_warn_nobody_and_a_stuck_one_is_told() {
        let group = Group::new("llm").role("prefill", 12, 4).role("decode", 6, 2);
        let bounds = json!({ "maxSkew": "50%", "maxUnavailable": "50%" });
        let sizes = json!({ "segmentSize": { "prefill": 4, "decode": 2 } });
        let strategy = json!({ "rollingUpdate": bounds, "segmentPlacement": sizes });
        let both = json!([{ "name": "both", "roles": ["prefill", "decode"], "strategy": strategy }]);
        let flags = [("settle", "2s"), ("progress-deadline", "20s")];
        let duo = Duo::serve_group("clean-rollouts", group, &both, &flags).await.ready().await;
        for image in 2..5 {
            duo.set_images(&format!("registry.invalid/x:{image}"));
            duo.until_over().await;
            assert_eq!(warnings(&duo).await, [""; 0], "rollout {image}");
        }
        duo.edit_held_back("decode", "registry.invalid/broken:5");
        duo.stage.until_event("RolloutStalled", &["decode-5"]).await;
        duo.stage.until_event("ProgressDeadlineExceeded", &["decode"]).await;
    }
}
