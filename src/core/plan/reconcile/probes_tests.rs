use super::*;
use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::missing_pods::WhyMissing;
use crate::plan::test_support::{mk_diagnosis, mk_missing};

const SECOND: Duration = Duration::from_secs(1);

fn mk_pod(name: &str) -> PodRef {
    PodRef { name: name.into(), uid: name.into() }
}

fn mk_surplus(pods: &[&str]) -> Vec<Surplus> {
    vec![Surplus { role: "main".to_owned(), desired: 2, pods: pods.iter().map(|name| mk_pod(name)).collect() }]
}

#[test]
fn nobody_asks_before_a_wait_has_lasted_and_then_more_and_more_seldom() {
    let mut probe = MissingPodsProbe::default();
    assert_eq!(probe.note(&[], Uptime::ZERO), ProbeStep::Rest);
    assert_eq!(probe.note(&[mk_missing(4)], SECOND), ProbeStep::Wait(SECOND * 4));
    // One more pod appeared: they are being created.
    assert_eq!(probe.note(&[mk_missing(3)], SECOND * 2), ProbeStep::Wait(SECOND * 5));
    assert_eq!(probe.note(&[mk_missing(3)], SECOND * 5), ProbeStep::Ask);
    assert_eq!(probe.note(&[mk_missing(3)], SECOND * 6), ProbeStep::Rest);
    let mut now = SECOND * 6;
    for pause in [6, 12, 24, 48, 60, 60] {
        probe.answered(vec![mk_diagnosis(WhyMissing::WorkloadPaused)], now);
        assert_eq!(probe.note(&[mk_missing(3)], now), ProbeStep::Wait(now + SECOND * pause));
        now += SECOND * pause;
        assert_eq!(probe.note(&[mk_missing(3)], now), ProbeStep::Ask);
    }
}

#[test]
fn a_diagnosis_is_forgotten_when_the_role_is_complete() {
    let mut probe = MissingPodsProbe::default();
    probe.note(&[mk_missing(3)], Uptime::ZERO);
    probe.answered(vec![mk_diagnosis(WhyMissing::QuotaExceeded)], SECOND);
    probe.note(&[mk_missing(2)], SECOND);
    assert_eq!(probe.diagnoses().len(), 1);
    probe.note(&[], SECOND);
    assert!(probe.diagnoses().is_empty());
}

#[test]
fn new_pods_are_asked_about_at_once_and_the_same_ones_more_and_more_seldom() {
    let second = Duration::from_secs(1);
    let mut probe = SurgeProbe::default();
    assert_eq!(probe.note(&mk_surplus(&["a"]), Uptime::ZERO), ProbeStep::Ask);
    assert_eq!(probe.note(&mk_surplus(&["a", "b"]), Uptime::ZERO), ProbeStep::Rest);
    probe.answered(Vec::new(), Uptime::ZERO);
    assert_eq!(probe.note(&mk_surplus(&["a", "b"]), Uptime::ZERO), ProbeStep::Ask);
    probe.answered(Vec::new(), Uptime::ZERO);
    assert_eq!(probe.note(&mk_surplus(&["b"]), Uptime::ZERO), ProbeStep::Wait(second));
    assert_eq!(probe.note(&mk_surplus(&["b"]), second), ProbeStep::Ask);
    probe.answered(vec![mk_pod("b")], second);
    assert_eq!(probe.proven(), [mk_pod("b")]);
    assert_eq!(probe.note(&mk_surplus(&["b"]), second), ProbeStep::Wait(second * 3));
    assert_eq!(probe.note(&[], second), ProbeStep::Rest);
}

#[test]
fn what_lacks_pods_is_overdue_when_that_has_lasted_and_forgotten_when_it_has_them() {
    let whole = AllOrNothing::Replica { role: "decode".to_owned(), ordinal: 0 };
    let incomplete = std::slice::from_ref(&whole);
    let (mut since, after): (Timed<AllOrNothing>, _) = (Timed::default(), SECOND * 5);
    for now in 0..5 {
        assert_eq!(since.note(incomplete.iter().cloned(), after, SECOND * now), Some(after));
        assert!(since.overdue(after, SECOND * now).is_empty());
    }
    assert_eq!(since.overdue(after, after), incomplete);
    assert_eq!(since.note([], after, SECOND * 6), None);
    assert!(since.overdue(after, SECOND * 60).is_empty());
}

#[test]
fn a_domain_is_given_up_for_twice_as_long_each_time_and_forgotten_after_a_while() {
    let mut given_up = GivenUpUntil::default();
    let of = |domain: &str| GivenUp { domain: domain.to_owned(), pods: ["1".into()].into() };
    let found = |domain: &str| BTreeMap::from([((0, 1), of(domain))]);
    let (minute, at) = (Duration::from_secs(60), Uptime::from_secs);
    assert_eq!(given_up.give_up(&found("r1"), minute, at(0)), Some(at(120)));
    assert_eq!(given_up.now(at(119)), [((0, 1), of("r1"))]);
    assert_eq!(given_up.give_up(&found("r1"), minute, at(60)), Some(at(120)), "it is one and the same time");
    assert_eq!((given_up.now(at(120)), given_up.give_up(&found("r1"), minute, at(120))), (vec![], Some(at(360))));
    assert_eq!(given_up.give_up(&found("r2"), minute, at(130)), Some(at(610)), "another domain");
    given_up.give_up(&BTreeMap::new(), minute, at(610 + 60 * 64));
    assert_eq!(given_up.len(), 0);
}
