//! Leaders that change while nothing moves, and an hour in which nobody leads.

use crate::prelude::*;

/// Time for which nobody leads when a leader is killed.
const SILENT: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// Returns two segments, of which no pod gets ready.
fn stuck() -> World {
    let wish = Wish::All(vec![Coordination::of(Progression::OrderedReady, [2, 1, 0])]);
    let mut world = World::new(&Setup { wish, ..Setup::plain([4, 2, 0]) }, None);
    world.outage(true);
    world
}

/// Has a new process lead.
fn lead_anew(world: &mut World, unled: Duration) {
    world.now += unled;
    let mut replica = Replica::new(world.now, true, None);
    replica.reconciler.nobody_led(Some(unled));
    world.replicas = vec![replica];
}

/// Lets this time go by; returns when the group is said to have stalled.
fn told_within(world: &mut World, time: Duration) -> Option<Duration> {
    let end = world.now + time;
    while world.now < end {
        world.now += Duration::from_secs(5);
        world.flow().unwrap();
        let status = world.server.group.as_ref().map(|group| group.status.clone()).unwrap();
        if status.conditions.iter().any(|condition| condition.reason == "ProgressDeadlineExceeded") {
            return Some(world.now);
        }
    }
    None
}

#[test]
fn a_stall_is_told_in_time_though_the_leader_is_killed_every_four_minutes() {
    let mut world = stuck();
    let told = (0..5).find_map(|_| {
        let told = told_within(&mut world, 4 * MINUTE);
        lead_anew(&mut world, SILENT);
        told
    });
    let told = told.expect("it is told");
    assert!((10 * MINUTE..11 * MINUTE).contains(&told), "{told:?}");
}

#[test]
fn an_hour_in_which_nobody_leads_is_no_stall_for_any_leader_that_follows() {
    let mut world = stuck();
    assert_eq!(told_within(&mut world, 4 * MINUTE), None);
    for unled in [60 * MINUTE, SILENT, SILENT] {
        lead_anew(&mut world, unled);
        assert_eq!(told_within(&mut world, 3 * MINUTE / 2), None, "{unled:?}");
    }
    world.outage(false);
    assert_eq!(told_within(&mut world, 20 * MINUTE), None);
}
