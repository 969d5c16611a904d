//! Groups whose own operator writes to their status.

use super::habits::{Habit, READY_KEPT, STATUS_REPLACED};
use super::operator::{Operator, Wanted};
use super::{stage, until_at_rest, writes};
use crate::common::rolegate::Rolegate;
use crate::common::status::StatusLog;
use crate::common::{Group, Stage, invariants};

async fn beside(namespace: &str, habit: &'static Habit) -> (Stage, Rolegate, Group, StatusLog, Operator) {
    let stage = stage(namespace).await;
    stage.add_node("all", 12).await;
    let rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
    let statuses = stage.statuses(&group);
    stage.create_group(&group).await;
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
    println!("{:?} {:?}", operator.done(), writes(&stage));
}

#[tokio::test]
async fn a_status_that_another_replaces() {
    let (stage, rolegate, group, statuses, operator) = beside("their-status", &STATUS_REPLACED).await;
    stage.pods.until("all are there", |now| now.count_all(|_| true) == 8).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    println!("{:?} {:?} {}", operator.done(), writes(&stage), statuses.now());
    println!("{} {}", stage.pods.now(ToString::to_string), rolegate.log());
    println!(
        "{}",
        stage.plane.must(
            &[
                "-n",
                &stage.namespace,
                "get",
                "events",
                "-o",
                "custom-columns=R:.reason,O:.involvedObject.name,M:.message"
            ],
            ""
        )
    );
    invariants::released_in_order(&stage.pods, &group);
}
