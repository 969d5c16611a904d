//! The definitions of groups go with all groups, and come back.

use crate::chaos::faults::story::{RECOVERY, Story, create, tell};
use crate::common::prelude::*;

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn definitions_are_removed_and_installed_again() {
    let plane = ControlPlane::own_with_groups().await;
    let mut story = Story::begin(Stage::on(plane.clone(), "faults-definitions").await).await;
    story.rest().await;
    story.nothing_went_wrong();
    let released = story.released_now().await;
    for crd in ["rolebasedgroups.workloads.x-k8s.io", "rolecoordinations.rolegate.dev"] {
        plane.must(&["delete", "crd", crd, "--timeout=60s"], "");
    }
    // Nobody knows how many replicas there are to be, nor in which order.
    always(Duration::from_secs(10), "held pods stay held", async || match story.released().await {
        Ok(found) if found != released => Err(format!("{found} released, {released} before")),
        _ => Ok(()),
    })
    .await;
    plane.define_groups();
    // Those that run when the groups come back count as released, without a commit before.
    story.observe_groups_anew();
    eventually(RECOVERY, "definitions that take groups", async || {
        let answer = story.stage.send("GET", "/apis/rolegate.dev/v1alpha1/rolecoordinations", &json!(null)).await;
        if answer.code == 200 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    create(&story.stage, &story.groups).await;
    let over = Instant::now();
    story.go_on();
    let time = story.moves_beyond(released, over).await;
    story.end().await;
    tell(
        "CustomResourceDefinitions of both kinds of groups removed with all groups, installed again after 10 s",
        time,
        "pods stay held while a kind is not defined; a recreated group takes in running pods",
    );
}
