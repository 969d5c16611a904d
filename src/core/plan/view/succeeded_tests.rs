use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_pod, mk_segments};
use crate::plan::view::{GroupPods, GroupView, ReplicaIs};

fn pod(ordinal: u32, job: &str, is_done: bool) -> PodFacts {
    let made = mk_pod(&format!("{job}-{ordinal}"), "train", ordinal);
    let job = Some(Arc::new(JobOf { uid: job.into(), is_one_of_many: false, is_done }));
    PodFacts { held: false, scheduled: true, ready: is_done, job, ..made }
}

fn group(desired: u32, known: &[(&str, &str)]) -> Group {
    let mut group = mk_group(&[("train", desired)], &json!([mk_segments("s", "OrderedReady", &[("train", 1)])]));
    let entry = |(job, replicas): &(&str, &str)| Succeeded {
        job: (*job).to_owned(),
        replicas: (*replicas).to_owned(),
        size: 1,
    };
    group.status.succeeded = [("train".to_owned(), known.iter().map(entry).collect())].into();
    group
}

/// Returns the number of ready replicas, and the remembered ones.
fn look(group: &Group, pods: &[PodFacts]) -> (u32, Vec<(String, String)>) {
    let view = GroupView::build(group, &pods.iter().cloned().collect::<GroupPods>());
    let known = view.succeeded.get("train").into_iter().flatten();
    let known = known.map(|known| (known.job.clone(), known.replicas.clone())).collect();
    (view.roles["train"].replicas.count_in(.., ReplicaIs::Ready), known)
}

fn known(job: &str, replicas: &str) -> Vec<(String, String)> {
    vec![(job.to_owned(), replicas.to_owned())]
}

#[test]
fn what_has_succeeded_is_remembered_when_its_pod_is_gone() {
    let seen = look(&group(3, &[]), &[pod(0, "a", true), pod(1, "a", false)]);
    assert_eq!(seen, (1, known("a", "0")));
    // The pod garbage collector has deleted the first.
    assert_eq!(look(&group(3, &[("a", "0")]), &[pod(1, "a", true)]), (2, known("a", "0-1")));
    // The Job is gone with all its pods.
    assert_eq!(look(&group(3, &[("a", "0-2")]), &[]), (3, known("a", "0-2")));
}

#[test]
fn another_job_begins_anew() {
    assert_eq!(look(&group(3, &[("a", "0-2")]), &[pod(0, "b", false)]), (0, Vec::new()));
    assert_eq!(look(&group(3, &[("a", "0-2")]), &[pod(0, "b", true)]), (1, known("b", "0")));
    let other = PodFacts { job: None, ..pod(0, "b", false) };
    assert_eq!(look(&group(3, &[("a", "0-2")]), &[other]), (0, Vec::new()));
}

#[test]
fn of_several_jobs_only_the_one_that_is_made_again_begins_anew() {
    let one_of = |ordinal, job: &str| {
        let job = JobOf { uid: job.into(), is_one_of_many: true, is_done: false };
        PodFacts { job: Some(Arc::new(job)), ..pod(ordinal, "x", false) }
    };
    let group = group(3, &[("a", "0"), ("b", "1"), ("c", "2")]);
    let (ready, left) = look(&group, &[one_of(1, "d")]);
    assert_eq!((ready, left.len()), (2, 2));
}

#[test]
fn what_is_no_longer_wanted_is_forgotten() {
    assert_eq!(look(&group(1, &[("a", "0-2")]), &[]), (1, known("a", "0")));
}
