//! The definitions of groups go with all groups, and come back.

use crate::chaos::faults::story::{Story, create, tell};
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
    let found = async || story.released().await.unwrap_or(released);
    stays(Duration::from_secs(10), "held pods stay held", found, released).await;
    plane.define_groups();
    // Those that run when the groups come back count as released, without a commit before.
    story.observe_groups_anew();
    let path = "/apis/rolegate.dev/v1alpha1/rolecoordinations";
    let code = async || story.stage.send("GET", path, &Value::Null).await.code;
    until_is("definitions that take groups", code, 200).await;
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
