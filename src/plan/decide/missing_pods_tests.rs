use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_role, mk_segments};

const SECOND: Duration = Duration::from_secs(1);

fn mk_absence(missing: u32) -> MissingPods {
    MissingPods { role: "decode".to_owned(), missing, of: 5, first: 5 - missing, newest: None, depends_on: None }
}

fn mk_found(why: WhyMissing) -> Found {
    Found { role: "decode".to_owned(), why, text: "because".to_owned() }
}

#[test]
fn what_may_run_and_does_not_exist_is_absent() {
    let mut group =
        mk_group(&[("prefill", 10), ("decode", 5)], &json!([mk_segments("s", "OrderedReady", &[("decode", 1)])]));
    group.roles[1].dependencies = vec!["prefill".to_owned()];
    let mut decode = mk_role(5, 3, 3);
    decode.replicas.retain(|ordinal, _| *ordinal < 2);
    decode.newest = Some("2026-01-01T00:00:07Z".into());
    let view = GroupView {
        roles: [("prefill".to_owned(), mk_role(10, 10, 9)), ("decode".to_owned(), decode)].into(),
        held: Vec::new(),
    };
    let released = BTreeMap::from([("decode".to_owned(), 4), ("prefill".to_owned(), 10)]);
    let newest = Some("2026-01-01T00:00:07Z".into());
    let depends_on = Some("prefill".to_owned());
    let decode = MissingPods { role: "decode".to_owned(), missing: 2, of: 4, first: 2, newest, depends_on };
    assert_eq!(missing_pods(&group, &view, &released), [decode]);
}

#[test]
fn nobody_asks_before_a_wait_has_lasted_and_then_more_and_more_seldom() {
    let mut watch = MissingPodsProbe::default();
    assert_eq!(watch.note(&[], Uptime::ZERO), ProbeStep::Rest);
    assert_eq!(watch.note(&[mk_absence(4)], SECOND), ProbeStep::Wait(SECOND * 4));
    // One more pod came: they are being made.
    assert_eq!(watch.note(&[mk_absence(3)], SECOND * 2), ProbeStep::Wait(SECOND * 5));
    assert_eq!(watch.note(&[mk_absence(3)], SECOND * 5), ProbeStep::Ask);
    assert_eq!(watch.note(&[mk_absence(3)], SECOND * 6), ProbeStep::Rest);
    let mut now = SECOND * 6;
    for pause in [6, 12, 24, 48, 60, 60] {
        watch.answered(vec![mk_found(WhyMissing::WorkloadPaused)], now);
        assert_eq!(watch.note(&[mk_absence(3)], now), ProbeStep::Wait(now + SECOND * pause));
        now += SECOND * pause;
        assert_eq!(watch.note(&[mk_absence(3)], now), ProbeStep::Ask);
    }
}

#[test]
fn what_was_found_is_forgotten_when_the_role_is_complete() {
    let mut watch = MissingPodsProbe::default();
    watch.note(&[mk_absence(3)], Uptime::ZERO);
    watch.answered(vec![mk_found(WhyMissing::QuotaExceeded)], SECOND);
    watch.note(&[mk_absence(2)], SECOND);
    assert_eq!(watch.found().len(), 1);
    watch.note(&[], SECOND);
    assert!(watch.found().is_empty());
}

fn mk_held(coordination: &str, reason: HoldReason) -> Held {
    let message = "segment 2 is held".to_owned();
    Held { coordination: Some(coordination.to_owned()), batch: Some(1), reason, message, pods: 3, waits_for_own: false }
}

#[test]
fn a_hold_says_what_keeps_its_pods_from_appearing() {
    let coordination = [mk_segments("a", "OrderedReady", &[("decode", 1)]), mk_segments("b", "Ordered", &[("x", 1)])];
    let group = mk_group(&[("decode", 5), ("x", 5)], &json!(coordination));
    let reasons = [HoldReason::PreviousSegmentNotReady, HoldReason::BlockedByCoordination];
    let mut held = vec![mk_held("a", reasons[0]), mk_held("b", reasons[0]), mk_held("a", reasons[1])];
    let before = held.clone();
    tell(&group, &[mk_absence(3)], &[mk_found(WhyMissing::QuotaExceeded)], &mut held);
    let message = r#"segment 2 is held; role "decode" lacks 3 of 5 replicas: because"#;
    assert_eq!((held[0].reason, held[0].message.as_str()), (HoldReason::QuotaDeadlock, message));
    assert_eq!(held[1..], before[1..], "another role, another reason");
    let mut held = before.clone();
    tell(&group, &[mk_absence(3)], &[mk_found(WhyMissing::WorkloadPaused)], &mut held);
    assert_eq!((held[0].reason, held[0].message.as_str()), (reasons[0], message));
}
