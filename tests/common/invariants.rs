//! Checks invariants at every recorded event (S1, S2, and that every pod is created held).

use std::collections::HashSet;

use super::group::{Group, Progression};
use super::pods::{Event, Pod, PodLog, Step, View};
use super::status::StatusLog;

/// Checks that every pod was held at its creation; returns their number.
pub fn all_born_held(pods: &PodLog) -> usize {
    let births = pods.births();
    let ungated: Vec<_> = births.iter().filter(|pod| !pod.is_held()).map(|pod| &pod.name).collect();
    assert!(ungated.is_empty(), "{} of {} pods slipped in without the gate: {ungated:?}", ungated.len(), births.len());
    births.len()
}

/// S1: checks that at each release, the progression allowed it for all earlier segments. A pod whose replica was
/// released before may be recreated at any time (S3).
pub fn released_in_order(pods: &PodLog, group: &Group) {
    let earlier: fn(&Pod) -> bool = match group.progression {
        Progression::OrderedReady => Pod::is_ready,
        Progression::Ordered => Pod::is_released,
        Progression::Parallel => return,
    };
    let (mut view, mut before) = (View::default(), HashSet::new());
    for batch in pods.events().chunk_by(|a, b| a.batch == b.batch) {
        batch.iter().for_each(|event| view.take(event));
        let released = batch.iter().filter(|event| event.step == Step::Released);
        for pod in released.map(|event| &event.pod).filter(|pod| before.insert(pod.name.clone())) {
            let Some(role) = group.roles.iter().find(|role| role.name == pod.role) else { continue };
            let segment = pod.index / role.segment;
            for other in &group.roles {
                let bound = (segment * other.segment).min(other.replicas);
                let passing = view.count(&other.name, |pod| pod.index < bound && earlier(pod));
                assert!(
                    passing == usize::try_from(bound * other.size).unwrap(),
                    "{} of segment {segment} was released too early, when the pods were: {view}",
                    pod.name,
                );
            }
        }
    }
}

/// S5: checks that the status committed each release before it happened. Pods created without a gate need no commit.
pub fn committed_before_released(pods: &PodLog, statuses: &StatusLog) {
    committed_before_released_of(pods, statuses, |_| true);
}

/// Like [`committed_before_released`], for the pods of one group among others.
pub fn committed_before_released_of(pods: &PodLog, statuses: &StatusLog, is_of_group: impl Fn(&Pod) -> bool) {
    let free: HashSet<_> = pods.births().into_iter().filter(|pod| !pod.is_held()).map(|pod| pod.uid).collect();
    let released = |event: &&Event| event.step == Step::Released && !free.contains(&event.pod.uid);
    for event in pods.events().iter().filter(released).filter(|event| is_of_group(&event.pod)) {
        let (pod, before) = (&event.pod, statuses.before(event.pod.version));
        let committed = before.released(&pod.role);
        assert!(
            u64::from(pod.index) < committed,
            "{} was released when {committed} were committed: {before}",
            pod.name
        );
    }
}

/// S2: checks that released counts in the status never fall.
pub fn released_counts_never_fell(statuses: &StatusLog, group: &Group) {
    for role in &group.roles {
        let counts: Vec<_> = statuses.all().iter().map(|status| status.released(&role.name)).collect();
        assert!(counts.is_sorted(), "released counts of {}: {counts:?}", role.name);
    }
}

/// S2: checks that no existing pod is held again after its replica was released.
pub fn nobody_was_held_again(pods: &PodLog) {
    let mut released = HashSet::new();
    for event in pods.events() {
        if event.step == Step::Released {
            released.insert(event.pod.uid.clone());
        }
        assert!(!(event.pod.is_held() && released.contains(&event.pod.uid)), "{} got its gate back", event.pod.name);
    }
}

/// Checks each event after all pods of these roles were ready for the first time: the updated shares of two roles
/// differ by at most the skew, or one replica of the role behind, and no role exceeds its unavailable replicas.
/// Returns the number of checked events.
pub fn rolled_in_step(
    pods: &PodLog,
    roles: [(&str, u32); 2],
    is_new: impl Fn(&Pod) -> bool,
    skew: u32,
    unavailable: &dyn Fn(u32) -> u32,
) -> usize {
    let (mut view, mut looks, mut served) = (View::default(), 0, false);
    for batch in pods.events().chunk_by(|a, b| a.batch == b.batch) {
        batch.iter().for_each(|event| view.take(event));
        let ready = |(name, _): (&str, u32)| u32::try_from(view.count(name, Pod::is_ready)).unwrap();
        served |= roles.iter().all(|role| ready(*role) == role.1);
        if !served {
            continue;
        }
        looks += 1;
        let updated = |(name, _): (&str, u32)| u32::try_from(view.count(name, &is_new)).unwrap();
        for role in roles {
            let down = role.1 - ready(role).min(role.1);
            assert!(down <= unavailable(role.1), "{down} of {} are unavailable: {view}", role.0);
        }
        for (ahead, behind) in [(roles[0], roles[1]), (roles[1], roles[0])] {
            let (a, b) = (i64::from(updated(ahead)), i64::from(updated(behind)));
            let (of_a, of_b) = (i64::from(ahead.1), i64::from(behind.1));
            let distance = 100 * (a * of_b - b * of_a);
            let bound = (i64::from(skew) * of_a * of_b).max(100 * of_a);
            assert!(distance <= bound, "{a}/{of_a} {} and {b}/{of_b} {}", ahead.0, behind.0);
        }
    }
    looks
}

/// Checks that from this event on, at most one instance is incomplete at a time: its number of ready pods, by the
/// instance number in this label, is one of the sizes.
pub fn at_most_one_instance_down(pods: &PodLog, from: usize, label: &str, instances: usize, sizes: &[usize]) {
    let mut view = View::default();
    for (number, event) in pods.events().iter().enumerate() {
        view.take(event);
        if number < from {
            continue;
        }
        let of = |instance: usize| move |pod: &Pod| pod.ready && pod.labels.get(label) == Some(&instance.to_string());
        let down: Vec<_> = (0..instances).filter(|instance| !sizes.contains(&view.count_all(of(*instance)))).collect();
        assert!(down.len() <= 1, "instances {down:?} are not whole after {:?} of {}", event.step, event.pod.name);
    }
}
