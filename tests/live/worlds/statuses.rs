//! Groups whose own operator writes to their status.

use super::habits::{Habit, READY_KEPT, STATUS_REPLACED};
use super::operator::{Operator, Wanted};
use super::{stage, tries_in, until_at_rest, writes};
use crate::common::prelude::*;

async fn beside(namespace: &str, habit: &'static Habit) -> (Stage, Rolegate, Group, StatusLog, Operator) {
    let (stage, rolegate) = stage(namespace).await.with_room(12).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
    let statuses = stage.create_watched(&group).await;
    let operator = Operator::start(&stage, "llm", Wanted::default(), &[habit]).await;
    statuses.until("theirs is written", |status| status.ready() == "False RolesReady: 0 of 2 roles").await;
    stage.create_sets(&group).await;
    (stage, rolegate, group, statuses, operator)
}

#[tokio::test]
async fn a_ready_that_another_writes_is_left_to_it_and_all_else_goes_on() {
    let (stage, _rolegate, _, statuses, operator) = beside("their-ready", &READY_KEPT).await;
    let end = statuses.until("all segments", |status| status.minimum().starts_with("True AllSegmentsReady")).await;
    assert_eq!(end.ready(), "False RolesReady: 0 of 2 roles");
    // What we remember ourselves of being ready does not hang on theirs.
    let end = statuses.until("ready once", |status| status.0["firstReadyTime"].is_string()).await;
    assert_eq!((end.ready(), end.progressing()), ("False RolesReady: 0 of 2 roles".into(), "True Complete".into()));
    until_at_rest(&stage, &operator).await;
    assert!(operator.done().of(&READY_KEPT) <= 3, "{:?}", operator.done());
}

mod tier2 {
    use super::*;

    /// An operator in Go that writes its type of the status by `Update` drops what that type does not know.
    #[tokio::test]
    async fn a_status_that_another_replaces_is_written_more_and_more_seldom_and_no_pod_goes_early() {
        let (stage, _rolegate, group, statuses, operator) = beside("their-status", &STATUS_REPLACED).await;
        stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 8).await;
        stage.until_event("StatusOverwritten", &["more and more seldom"]).await;
        let (since, before) = (Instant::now(), writes(&stage)["patch rolebasedgroups/status"]);
        let told = |status: &Status| status.minimum().starts_with("True AllSegmentsReady");
        statuses.until("it is written again", told).await;
        // After 0.2, 0.4, 0.8, ... s.
        let more = writes(&stage)["patch rolebasedgroups/status"] - before;
        let most = 2 + tries_in(since.elapsed());
        assert!(more <= most, "{more} in {:?}: {:?}", since.elapsed(), operator.done());
        invariants::released_in_order(&stage.pods, &group);
    }
}
