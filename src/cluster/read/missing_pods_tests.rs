use serde_json::{Value, json};

use super::*;
use crate::api::rbg::ROLE_BASED_GROUP_V1ALPHA2;
use crate::api::workload::LeaderWorkerSet;
use crate::model::WorkloadKind;

const REFUSED: &str =
    r#"pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"#;

/// Returns an Event as a controller writes it: on an object, with a time.
fn mk_event(kind: &str, name: &str, last: &str) -> Event {
    serde_json::from_value(json!({
        "metadata": {"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "involvedObject": {"kind": kind, "name": name},
        "message": format!("Create Pod x in {kind} {name} failed error: {REFUSED}"),
        "lastTimestamp": last,
    }))
    .unwrap()
}

fn mk_absence(newest: Option<&str>) -> MissingPods {
    MissingPods {
        role: "decode".to_owned(),
        missing: 2,
        of: 4,
        first: 2,
        newest: newest.map(Into::into),
        depends_on: None,
        sibling: None,
        job: None,
    }
}

fn mk_group() -> Group {
    let object = json!({"metadata": {"name": "pd", "namespace": "ns"}, "spec": {"roles": [{"name": "decode"}]}});
    Group::from_rbg(ROLE_BASED_GROUP_V1ALPHA2, &serde_json::from_value(object).unwrap())
}

fn mk_set(replicas: u32, more: &Value) -> MakerState {
    let mut set = json!({"metadata": {"name": "pd", "namespace": "ns"}, "spec": {"replicas": replicas}});
    set["spec"]["startupPolicy"] = more.clone();
    MakerState::of(&serde_json::from_value::<LeaderWorkerSet>(set).unwrap())
}

fn found(seen: &MakerState, newest: Option<&str>, events: &[Event]) -> Option<WhyMissing> {
    why_of(&mk_absence(newest), seen, events).map(|(why, _)| why)
}

#[test]
fn the_sets_behind_a_leader_worker_set_speak_for_it() {
    let set = mk_set(4, &Value::Null);
    for name in ["pd", "pd-2"] {
        let events = [mk_event("StatefulSet", name, "2026-01-01T00:00:09Z")];
        assert_eq!(why_of(&mk_absence(None), &set, &events), Some((WhyMissing::QuotaExceeded, REFUSED.to_owned())));
    }
    let of_others = [("StatefulSet", "pd-1"), ("StatefulSet", "pd-22"), ("ReplicaSet", "pd")];
    for (kind, name) in of_others {
        assert_eq!(found(&set, None, &[mk_event(kind, name, "2026-01-01T00:00:09Z")]), None, "{kind} {name}");
    }
}

#[test]
fn what_went_wrong_before_the_last_pod_was_made_is_over() {
    let set = mk_set(4, &Value::Null);
    let events = [mk_event("StatefulSet", "pd", "2026-01-01T00:00:09Z")];
    assert_eq!(found(&set, Some("2026-01-01T00:00:09Z"), &events), Some(WhyMissing::QuotaExceeded));
    assert_eq!(found(&set, Some("2026-01-01T00:00:10Z"), &events), None);
    // Events in the newer form have fractions of seconds and no last time.
    let mut newer = mk_event("StatefulSet", "pd", "");
    newer.event_time = Some("2026-01-01T00:00:10.062883Z".to_owned());
    assert_eq!(found(&set, Some("2026-01-01T00:00:10Z"), &[newer]), Some(WhyMissing::QuotaExceeded));
}

#[test]
fn what_a_person_has_to_act_on_comes_first() {
    let events = [mk_event("StatefulSet", "pd", "2026-01-01T00:00:09Z")];
    let ordered = json!("LeaderReady");
    assert_eq!(found(&mk_set(2, &ordered), None, &events), Some(WhyMissing::FewerReplicas));
    assert_eq!(found(&mk_set(4, &ordered), None, &events), Some(WhyMissing::QuotaExceeded));
    assert_eq!(found(&mk_set(4, &ordered), None, &[]), Some(WhyMissing::MadeOneByOne));
    let paused = MakerState { paused: true, ..mk_set(4, &ordered) };
    assert_eq!(found(&paused, None, &events), Some(WhyMissing::WorkloadPaused));
    let denied =
        MakerState { failure: Some("admission webhook denied the request".to_owned()), ..mk_set(4, &Value::Null) };
    assert_eq!(found(&denied, None, &[]), Some(WhyMissing::CreationRefused));
}

#[test]
fn an_operator_is_known_by_the_names_of_its_objects() {
    let group = mk_group();
    let found = |name: &str| {
        let events = [mk_event("RoleInstance", name, "2026-01-01T00:00:09Z")];
        why(&group, &mk_absence(None), &Maker::Unknown, &events).map(|(why, _)| why)
    };
    assert_eq!(found("pd-decode-3"), Some(WhyMissing::QuotaExceeded));
    assert_eq!(found("pd-decode"), Some(WhyMissing::QuotaExceeded));
    assert_eq!((found("pd-decoder"), found("pd-decode-x"), found("pd-decode-")), (None, None, None));
    let waits = MissingPods { depends_on: Some("prefill".to_owned()), ..mk_absence(None) };
    let dependency = why(&group, &waits, &Maker::Unknown, &[]).unwrap();
    assert_eq!(dependency.0, WhyMissing::DependencyNotReady);
}

#[test]
fn what_controls_the_pods_that_are_there_speaks_for_those_that_are_not() {
    let group = mk_group();
    let job = Maker::Unread(OwnerReference { kind: "Job".to_owned(), name: "work".to_owned(), ..Default::default() });
    let found =
        |kind: &str, name: &str| why(&group, &mk_absence(None), &job, &[mk_event(kind, name, "2026-01-01T00:00:09Z")]);
    assert_eq!(found("Job", "work"), Some((WhyMissing::QuotaExceeded, REFUSED.to_owned())));
    let silent = "Job ns/work, which makes pods of the role, makes none of these".to_owned();
    assert_eq!(found("Job", "work-1"), Some((WhyMissing::NotMade, silent.clone())));
    assert_eq!(found("StatefulSet", "work"), Some((WhyMissing::NotMade, silent)));
}

#[test]
fn a_job_that_has_exceeded_its_deadline_is_known_by_the_pods_that_went_with_it() {
    let group = mk_group();
    let late = |name: &str, uid: &str| {
        let mut event = mk_event("Job", name, "2026-01-01T00:00:09Z");
        (event.reason, event.involved_object.uid) = ("DeadlineExceeded".to_owned(), uid.to_owned());
        event
    };
    let text = |name: &str| {
        let text = "has exceeded its activeDeadlineSeconds, which also runs while its pods are held";
        Some((WhyMissing::JobDeadlineExceeded, format!("Job ns/{name} {text}")))
    };
    let job = || OwnerReference { kind: "Job".to_owned(), name: "work".to_owned(), ..Default::default() };
    let set = WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: "pd-decode".to_owned() };
    let seen = MissingPods { job: Some("1".into()), ..mk_absence(None) };
    let why = |absence: &MissingPods, maker: &Maker, event: Event| why(&group, absence, maker, &[event]);
    for maker in [Maker::Unknown, Maker::Absent(set.clone())] {
        assert_eq!(why(&seen, &maker, late("work", "1")), text("work"));
        assert_eq!(why(&mk_absence(None), &maker, late("pd-decode", "2")), text("pd-decode"), "by its name");
        assert_ne!(why(&seen, &maker, late("work", "2")), text("work"), "of somebody else");
    }
    assert_eq!(why(&mk_absence(None), &Maker::Unread(job()), late("work", "2")), text("work"), "by a pod that is left");
    let later = MissingPods { newest: Some("2026-01-01T00:00:10Z".into()), ..seen.clone() };
    assert_ne!(why(&later, &Maker::Unread(job()), late("work", "1")), text("work"), "another one makes pods");
    let workload = Maker::Workload(Box::new(mk_set(4, &Value::Null)));
    assert_eq!(why(&seen, &workload, late("pd", "1")), None, "a workload makes them");
}
