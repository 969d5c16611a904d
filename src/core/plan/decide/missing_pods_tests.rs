use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::plan::decide::held::CoordinationRef;
use crate::plan::test_support::{mk_diagnosis, mk_group, mk_missing, mk_role, mk_segments};
use crate::plan::view::PodFacts;

#[test]
fn replicas_that_may_run_and_do_not_exist_are_missing() {
    let mut group =
        mk_group(&[("prefill", 10), ("decode", 5)], &json!([mk_segments("s", "OrderedReady", &[("decode", 1)])]));
    group.roles[1].dependencies = vec!["prefill".to_owned()];
    let mut decode = mk_role(2, 2, 2);
    decode.desired = 5;
    let made = |second: u32| Some(format!("2026-01-01T00:00:0{second}Z").into());
    for ordinal in 0..2 {
        let pod = decode.replicas.pods_of(ordinal)[0].clone();
        decode.replicas.remove(&pod.pod, ordinal);
        decode.replicas.add(&PodFacts { created: made(7 - ordinal), ..(*pod).clone() }.into(), ordinal);
    }
    let view = GroupView {
        roles: [("prefill".to_owned(), mk_role(10, 10, 9)), ("decode".to_owned(), decode)].into(),
        ..GroupView::default()
    };
    let released = BTreeMap::from([("decode".to_owned(), 4), ("prefill".to_owned(), 10)]);
    let newest = Some("2026-01-01T00:00:07Z".into());
    let depends_on = Some("prefill".to_owned());
    let sibling = Some("0".into());
    let decode =
        MissingPods { role: "decode".to_owned(), missing: 2, of: 4, first: 2, newest, depends_on, sibling, job: None };
    assert_eq!(missing_pods(&group, &view, &released), [decode]);
}

fn mk_held(coordination: &str, reason: HoldReason) -> Held {
    let message = "segment 2 is held".to_owned();
    let index = usize::from(coordination != "a");
    let coordination = Some(CoordinationRef { index, name: coordination.to_owned() });
    Held { coordination, batch: Some(1), ..Held::new(reason, message, Vec::new()) }
}

#[test]
fn a_hold_says_what_keeps_its_pods_from_appearing() {
    let coordination = [mk_segments("a", "OrderedReady", &[("decode", 1)]), mk_segments("b", "Ordered", &[("x", 1)])];
    let group = mk_group(&[("decode", 5), ("x", 5)], &json!(coordination));
    let reasons = [HoldReason::PreviousSegmentNotReady, HoldReason::BlockedByCoordination];
    let mut held = vec![mk_held("a", reasons[0]), mk_held("b", reasons[0]), mk_held("a", reasons[1])];
    let before = held.clone();
    explain(&group, &[mk_missing(3)], &[mk_diagnosis(WhyMissing::QuotaExceeded)], &mut held);
    let message = r#"segment 2 is held; role "decode" lacks 3 of 5 replicas: because"#;
    assert_eq!((held[0].reason, held[0].message.as_str()), (HoldReason::QuotaDeadlock, message));
    assert_eq!(held[1..], before[1..], "another role, another reason");
    let mut held = before.clone();
    explain(&group, &[mk_missing(3)], &[mk_diagnosis(WhyMissing::WorkloadPaused)], &mut held);
    assert_eq!((held[0].reason, held[0].message.as_str()), (reasons[0], message));
}
