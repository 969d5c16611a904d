//! Parts of the control plane stop.

use std::time::Duration;

use crate::common::{ControlPlane, Stage};
use crate::faults::story::{Story, tell};

/// How long a component is paused.
const PAUSE: Duration = Duration::from_secs(20);

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn the_api_server_and_etcd_are_paused() {
    let plane = ControlPlane::own_with_groups().await;
    let mut story = Story::begin(Stage::on(plane.clone(), "faults-paused").await).await;
    for replica in [&mut story.leader, &mut story.follower] {
        replica.as_mut().unwrap().overlooks_refusals = true;
    }
    for component in ["kube-apiserver", "etcd"] {
        plane.command("pause", component).await;
        tokio::time::sleep(PAUSE).await;
        plane.command("resume", component).await;
        let time = story.moves_again().await;
        let fault = format!("{component} paused (SIGSTOP) for {} s", PAUSE.as_secs());
        tell(&fault, time, "nobody leads meanwhile; one does when the Lease can be written again");
    }
    story.end().await;
}
