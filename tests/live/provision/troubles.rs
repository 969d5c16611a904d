//! What an autoscaler may do, and what may befall whoever asks it.

use super::{Scene, launch, racks, refusing, requests_of, served};
use crate::common::prelude::*;
use crate::worlds::cluster_autoscaler::{CONSUMES, Cloud};

#[tokio::test]
async fn a_request_that_is_refused_waits_and_is_met_when_there_is_capacity() {
    let (stage, _rolegate) = served("provision-refused").await;
    let scene = Scene::new(stage, 1, refusing(), &json!({})).await;
    scene.autoscaler.until_said("Provisioned=False/CapacityIsNotFound").await;
    scene.stage.until_said(&["explain", "group", "pd"], "NodesRequested").await;
    scene.autoscaler.now(|cloud| cloud.refuses = false);
    scene.until_met().await;
}

#[tokio::test]
async fn a_booking_that_expires_before_its_nodes_are_there_is_made_again() {
    let (stage, _rolegate) = served("provision-expired").await;
    let cloud = Cloud { booking: Duration::from_secs(1), late: Duration::from_secs(600), ..racks(&["r1"]) };
    let scene = Scene::new(stage, 1, cloud, &json!({})).await;
    let first = scene.until_requested().await.metadata.name.unwrap();
    scene.autoscaler.until_said("BookingExpired=True/CapacityReservationTimeExpired").await;
    scene.autoscaler.now(|cloud| {
        (cloud.booking, cloud.late) = (Duration::from_secs(600), Duration::ZERO);
        // The nodes of the first never come.
        cloud.racks[0].1 = 6;
    });
    scene.until_another(&first).await;
    scene.until_ready(1).await;
}

#[tokio::test]
async fn capacity_that_is_revoked_is_asked_for_again() {
    let (stage, _rolegate) = served("provision-revoked").await;
    let cloud = Cloud { revokes: true, late: Duration::from_secs(600), ..racks(&["r1"]) };
    let scene = Scene::new(stage, 1, cloud, &json!({})).await;
    let first = scene.until_requested().await.metadata.name.unwrap();
    scene.autoscaler.until_said("CapacityRevoked=True/CapacityRevoked").await;
    scene.autoscaler.now(|cloud| {
        (cloud.revokes, cloud.late) = (false, Duration::ZERO);
        cloud.racks[0].1 = 6;
    });
    scene.until_another(&first).await;
    scene.until_ready(1).await;
}

#[tokio::test]
async fn a_group_that_goes_leaves_no_request() {
    let (stage, _rolegate) = served("provision-gone").await;
    let scene = Scene::new(stage, 1, refusing(), &json!({})).await;
    scene.until_requested().await;
    scene.stage.coordinations().delete("pd", &DeleteParams::default()).await.unwrap();
    scene.until_none_is_left().await;
}

#[tokio::test]
async fn a_leader_that_dies_after_it_has_asked_leaves_a_request_that_the_next_one_knows() {
    let (stage, first) = served("provision-leader").await;
    let cloud = Cloud { late: Duration::from_secs(3), ..racks(&["r1"]) };
    let scene = Scene::new(stage, 1, cloud, &json!({})).await;
    let asked = scene.until_requested().await;
    first.kill().await;
    let _second = launch(&scene.stage).start().await;
    scene.until_met().await;
    scene.none_went_in_part();
    let said = scene.autoscaler.said();
    let name = asked.metadata.name.unwrap();
    assert!(said.iter().all(|line| line.starts_with(&name)), "a second attempt: {said:?}");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn nodes_that_come_in_part_are_given_back_and_asked_for_again() {
        let (stage, _rolegate) = served("provision-part").await;
        let cloud = Cloud { lost: 1, ..racks(&["r1", "r2"]) };
        let scene = Scene::new(stage, 1, cloud, &json!({ "deadline": "5s" })).await;
        let first = scene.until_requested().await.metadata.name.unwrap();
        scene.stage.until_event("NodesMissing", &[]).await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 15, "{now}"));
        scene.autoscaler.now(|cloud| cloud.lost = 0);
        scene.until_another(&first).await;
        scene.until_met().await;
        scene.none_went_in_part();
    }

    #[tokio::test]
    async fn a_template_that_somebody_deletes_fails_the_request_and_the_next_one_has_its_own() {
        let (stage, _rolegate) = served("provision-template-gone").await;
        let scene = Scene::new(stage, 1, refusing(), &json!({})).await;
        scene.until_requested().await;
        let templates = scene.stage.api::<k8s_openapi::api::core::v1::PodTemplate>();
        templates.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        scene.autoscaler.until_said("Failed=True/FailedToCreatePods").await;
        scene.autoscaler.now(|cloud| cloud.refuses = false);
        scene.until_met().await;
    }

    #[tokio::test]
    async fn a_spec_that_asks_no_longer_leaves_no_request() {
        let (stage, _rolegate) = served("provision-withdrawn").await;
        let scene = Scene::new(stage, 1, refusing(), &json!({})).await;
        scene.until_requested().await;
        scene.withdraw().await;
        scene.until_none_is_left().await;
        scene.statuses.until("it waits for room", |status| status.reason() == "NoRoom").await;
    }

    #[tokio::test]
    async fn a_leader_that_dies_between_release_and_binding_leaves_a_request_that_all_pods_use_until_they_have_nodes() {
        let (stage, first) = served("provision-leader-late").await;
        let scene = Scene::gated(stage, racks(&["r1"]), &json!({})).await;
        let name = scene.until_requested().await.metadata.name.unwrap();
        scene.stage.pods.until("the first pod goes", |now| now.count_all(Pod::is_released) > 0).await;
        first.kill().await;
        let _second = launch(&scene.stage).start().await;
        scene.stage.pods.until("all go", |now| now.count_all(Pod::is_released) == 15).await;
        assert_eq!(scene.requests().await, std::slice::from_ref(&name));
        scene.lift_other_gates().await;
        scene.until_ready(1).await;
        scene.stage.pods.now(|now| assert!(now.all().all(|pod| pod.annotations[CONSUMES] == name), "{now}"));
        scene.until_none_is_left().await;
        assert_eq!(scene.made("provisioningrequests"), 1);
    }

    #[tokio::test]
    async fn two_groups_that_want_the_last_rack_get_it_one_after_the_other() {
        let (stage, _rolegate) = served("provision-two").await;
        let scene = Scene::new(stage, 1, racks(&["r1"]), &json!({ "deadline": "5s" })).await;
        let other = Group::new("second").role("prefill", 10, 10).role("decode", 5, 5);
        scene.stage.create(crate::provision::coordination(&other, &json!({ "deadline": "5s" }))).await;
        scene.stage.create_sets(&other).await;
        let ready = |now: &View, group: &str| now.count_all(|pod| pod.name.starts_with(group) && pod.is_ready());
        let one_runs = |now: &View| ready(now, "pd-") == 15 || ready(now, "second-") == 15;
        scene.stage.pods.until("one of both runs", one_runs).await;
        let none_in_part = |now: &View| [0, 15].contains(&now.count_all(|pod| pod.is_released() && !pod.is_ready()));
        scene.stage.pods.always(Duration::from_secs(3), "the other is whole or held", none_in_part).await;
        scene.autoscaler.now(|cloud| cloud.racks.push(("r2", 3)));
        scene.stage.pods.until("both run", |now| now.count_all(Pod::is_ready) == 30).await;
        let left = async || requests_of(&scene.stage).list(&ListParams::default()).await.unwrap().items.len();
        until_found("no request is left", left, |left| *left == 0).await;
    }
}
