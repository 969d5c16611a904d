//! Random roles, speeds, failures and edits.

use rolegate::model::{RollingBounds, RolloutStep};

use super::world::{Controller, Role, World, mk_bounds};
use crate::prelude::*;

const NAMES: &[&str] = &["prefill", "decode", "router", "encode"];

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    Plan,
    Control(usize, usize),
    Ready(usize, usize),
    Fail(usize, usize),
    Edit(usize, u8),
}

fn unavailable() -> impl Strategy<Value = Unavailable> {
    prop_oneof![(1..5_u32).prop_map(Unavailable::Count), (1..=100_u32).prop_map(Unavailable::Percent)]
}

/// One coordination of all roles, and maybe one of the first two.
fn all_bounds(count: usize, partition: u32) -> impl Strategy<Value = Vec<RollingBounds>> {
    let one = || (0..=100_u32, unavailable());
    (one(), proptest::option::of(one())).prop_map(move |((skew, unavailable), second)| {
        let mut bounds = vec![mk_bounds(&NAMES[..count], skew, unavailable, partition)];
        bounds.extend(second.map(|(skew, unavailable)| mk_bounds(&NAMES[..2], skew, unavailable, partition)));
        bounds
    })
}

fn roles(count: usize) -> impl Strategy<Value = BTreeMap<String, Role>> {
    let controller = prop_oneof![Just(Controller::StatefulSet), Just(Controller::Any)];
    proptest::collection::vec((1..30_u32, controller), count).prop_map(|roles| {
        let named = NAMES.iter().zip(roles);
        named.map(|(name, (desired, controller))| ((*name).to_owned(), Role::new(desired, controller))).collect()
    })
}

fn world(partition: impl Strategy<Value = u32>) -> impl Strategy<Value = World> {
    (2..=NAMES.len(), partition).prop_flat_map(|(count, partition)| {
        (all_bounds(count, partition), roles(count)).prop_map(|(bounds, roles)| World::new(bounds, roles))
    })
}

fn events(edits: bool) -> impl Strategy<Value = Vec<Event>> {
    let place = || (0..NAMES.len(), any::<usize>());
    let calm = prop_oneof![
        4 => Just(Event::Plan),
        6 => place().prop_map(|(role, choice)| Event::Control(role, choice)),
        12 => place().prop_map(|(role, index)| Event::Ready(role, index)),
    ];
    let wild = prop_oneof![
        20 => calm.clone(),
        1 => place().prop_map(|(role, index)| Event::Fail(role, index)),
        1 => (0..NAMES.len(), 0..4_u8).prop_map(|(role, revision)| Event::Edit(role, revision)),
    ];
    let one = if edits { wild.boxed() } else { calm.boxed() };
    proptest::collection::vec(one, 0..600)
}

fn happen(world: &mut World, event: &Event) {
    let names = world.names();
    let name = |role: &usize| names[role % names.len()].clone();
    match event {
        Event::Plan => plan_within_bounds(world),
        Event::Control(role, choice) => _ = world.control(&name(role), *choice),
        Event::Ready(role, index) => _ = world.get_ready(&name(role), *index),
        Event::Fail(role, index) => world.fail(&name(role), *index),
        Event::Edit(role, revision) => world.edit(&name(role), *revision),
    }
}

/// A plan that takes a ready replica leaves no more than the bound unavailable, even if all that it grants go at once.
fn plan_within_bounds(world: &mut World) {
    let before = world.clone();
    world.plan();
    for (name, role) in &world.roles {
        let (from, to) = (role.partition, before.roles[name].partition.min(role.desired()));
        let is_old = |ordinal: u32| role.pods[ordinal as usize].is_some_and(|pod| pod.revision != role.update);
        let is_ready = |ordinal: u32| role.pods[ordinal as usize].is_some_and(|pod| pod.ready);
        let takes = (from..to).any(|ordinal| is_old(ordinal) && is_ready(ordinal));
        let leaving = (from.min(role.desired())..role.desired()).filter(|at| is_old(*at) && is_ready(*at)).count();
        let down = role.unavailable() + u32::try_from(leaving).unwrap();
        assert!(!takes || down <= world.budget(name), "{name}: {down} may be unavailable");
    }
}

/// Returns steps with these shares, each at least those before, and the rest.
fn rising(names: &[String], shares: Vec<Vec<u32>>) -> Vec<RolloutStep> {
    let mut before = vec![0; NAMES.len()];
    let mut steps = Vec::new();
    for shares in shares.into_iter().chain([vec![100; NAMES.len()]]) {
        before.iter_mut().zip(shares).for_each(|(before, share)| *before = share.max(*before));
        let shares = names.iter().cloned().zip(before.iter().copied()).collect();
        steps.push(RolloutStep { shares, pause: None });
    }
    steps
}

/// A replica is updated only within the first step that some role has not come to the end of, or was before a role fell back.
fn one_after_another(world: &World) {
    let steps = &world.bounds[0].steps;
    for (name, role) in &world.roles {
        let Some(step) = steps.iter().position(|step| step.goal(name, role.desired()) >= role.updated()) else {
            continue;
        };
        for before in &steps[..step] {
            for (other, state) in &world.roles {
                let goal = before.goal(other, state.desired());
                assert!(
                    state.most >= goal,
                    "{name} is in step {}, and {other} was at {} of {goal}",
                    step + 1,
                    state.most
                );
            }
        }
    }
}

/// A plan that takes a segment whose replicas all serve leaves no more segments unavailable than may be, even if all that it
/// grants goes at once.
fn segments_within_bounds(world: &mut World) {
    let before = world.clone();
    world.plan();
    let sizes = before.bounds[0].segments.clone().unwrap();
    let count = before.roles.iter().map(|(name, role)| role.desired().div_ceil(sizes[name])).max().unwrap();
    let members = |world: &World, segment: u32, test: &dyn Fn(&Role, u32) -> bool| {
        world.roles.iter().any(|(name, role)| {
            let end = ((segment + 1) * sizes[name]).min(role.desired());
            (segment * sizes[name]..end).any(|ordinal| test(role, ordinal))
        })
    };
    let is_ready = |role: &Role, ordinal: u32| role.pods[ordinal as usize].is_some_and(|pod| pod.ready);
    let leaves = |role: &Role, ordinal: u32| {
        let is_old = role.pods[ordinal as usize].is_some_and(|pod| pod.revision != role.update);
        ordinal >= role.partition && is_old && is_ready(role, ordinal)
    };
    let is_down = |role: &Role, ordinal: u32| leaves(role, ordinal) || !is_ready(role, ordinal);
    let down = |world: &World| (0..count).filter(|segment| members(world, *segment, &is_down)).collect::<BTreeSet<_>>();
    let (was, is) = (down(&before), down(world));
    let budget = before.bounds[0].max_unavailable.of(count) as usize;
    assert!(
        is == was || before.stuck || is.len() <= budget,
        "segments {is:?} may be unavailable, and {was:?} were: {world:?}"
    );
}

fn ends(world: &mut World) {
    let plan = world.settle();
    assert!(world.all_are(&plan, ProgressState::Complete), "{plan:?} {world:?}");
}

/// A world of one coordination, which is changed, in which a revision is broken and what happens is followed.
fn runs(
    mut world: World,
    events: &[Event],
    change: impl FnOnce(&mut RollingBounds, &[String]),
    follow: fn(&mut World, &Event),
) {
    let names = world.names();
    world.bounds.truncate(1);
    change(&mut world.bounds[0], &names);
    world.broken.insert(3);
    events.iter().for_each(|event| follow(&mut world, event));
    take_broken_back(&mut world);
    ends(&mut world);
}

/// Edits the roles that are updated to the broken revision.
fn take_broken_back(world: &mut World) {
    for name in world.names() {
        if world.roles[&name].update == 3 {
            world.edit(&name, 2);
        }
    }
}

proptest! {
    #![proptest_config(crate::tried(150))]

    /// Without failures: nothing is ever further ahead or more unavailable than it may be, and the rollout ends.
    #[test]
    fn a_rollout_keeps_its_bounds_and_ends(mut world in world(Just(0)), events in events(false)) {
        for event in &events {
            happen(&mut world, event);
            for (name, role) in &world.roles {
                prop_assert!(role.unavailable() <= world.budget(name), "{name}: {} unavailable", role.unavailable());
            }
        }
        ends(&mut world);
    }

    /// One role's pods never get ready: it stops within its bound, the others with it, and both can be rolled back.
    #[test]
    fn a_broken_image_stops_all_and_is_rolled_back(mut world in world(Just(0)), events in events(false), back in 0..3_u8) {
        world.broken.insert(7);
        for name in world.names() {
            world.edit(&name, if name == "decode" { 7 } else { 4 });
        }
        for event in &events {
            happen(&mut world, event);
        }
        world.settle();
        for (name, role) in &world.roles {
            prop_assert!(role.unavailable() <= world.budget(name), "{name}: {} unavailable", role.unavailable());
        }
        prop_assert!(world.roles["decode"].updated() <= world.budget("decode"));
        // Back to what it was, or on to a third revision; the others as well, or not.
        for name in world.names() {
            if name == "decode" || back > 0 {
                world.edit(&name, if back == 2 { 2 } else { 0 });
            }
        }
        ends(&mut world);
    }

    /// Pods fail, templates are edited in mid-rollout, forth and back: no plan breaks a bound, and it ends when pods get
    /// ready.
    #[test]
    fn edits_and_failures_break_no_bound(mut world in world(Just(0)), events in events(true)) {
        world.broken.insert(3);
        events.iter().for_each(|event| happen(&mut world, event));
        take_broken_back(&mut world);
        ends(&mut world);
    }

    /// In steps: the order of the shares holds at every plan, whatever is slow or fails, and the rollout ends.
    #[test]
    fn steps_are_taken_one_after_another(
        mut world in world(Just(0)),
        shares in proptest::collection::vec(proptest::collection::vec(0..=100_u32, NAMES.len()), 0..4),
        events in events(true),
    ) {
        let names = world.names();
        world.bounds.truncate(1);
        world.bounds[0].steps = rising(&names, shares);
        for event in &events {
            if !matches!(event, Event::Edit(..)) {
                happen(&mut world, event);
                one_after_another(&world);
            }
        }
        ends(&mut world);
    }

    /// In steps, after edits forth and back and pods that fail: it ends when pods get ready.
    #[test]
    fn steps_lead_to_the_end(
        world in world(Just(0)),
        shares in proptest::collection::vec(proptest::collection::vec(0..=100_u32, NAMES.len()), 0..4),
        events in events(true),
    ) {
        runs(world, &events, |bounds, names| bounds.steps = rising(names, shares), happen);
    }

    /// By segment: no plan takes a segment that serves while as many as may be are unavailable, and the rollout ends.
    #[test]
    fn segments_go_one_after_another(
        world in world(Just(0)),
        sizes in proptest::collection::vec(1..5_u32, NAMES.len()),
        events in events(true),
    ) {
        let segments = |bounds: &mut RollingBounds, names: &[String]| {
            bounds.segments = Some(names.iter().cloned().zip(sizes).collect());
        };
        runs(world, &events, segments, |world, event| match event {
            Event::Plan => segments_within_bounds(world),
            _ => happen(world, event),
        });
    }

    /// What stays old stays old; the rest is updated, and the rollout pauses there.
    #[test]
    fn what_stays_old_stays_old(mut world in world(1..=99_u32), events in events(false)) {
        for event in &events {
            happen(&mut world, event);
        }
        let plan = world.settle();
        for (name, role) in &world.roles {
            let kept = world.bounds[0].kept_old(role.desired());
            for (index, pod) in role.pods.iter().enumerate() {
                let updated = pod.is_some_and(|pod| pod.revision == role.update);
                prop_assert_eq!(updated, index >= kept as usize, "{}-{}", name, index);
            }
            let state = if kept == 0 { ProgressState::Complete } else { ProgressState::Paused };
            prop_assert_eq!(plan[name].state, state);
        }
        // The user lowers it to nothing.
        world.bounds.iter_mut().for_each(|bounds| bounds.partition = 0);
        ends(&mut world);
        prop_assert!(world.roles.values().all(|role| role.partition < FROZEN));
    }
    /// After edits forth and back, too: what does not stay old is updated, and no role waits for another.
    #[test]
    fn what_is_taken_back_waits_for_nothing_that_stays_old(mut world in world(1..=99_u32), events in events(true)) {
        world.broken.insert(3);
        events.iter().for_each(|event| happen(&mut world, event));
        take_broken_back(&mut world);
        let plan = world.settle();
        for (name, role) in &world.roles {
            let kept = world.bounds[0].kept_old(role.desired());
            let left = role.pods.iter().skip(kept as usize).filter(|pod| !role.is_updated(**pod)).count();
            prop_assert_eq!(left, 0, "{} {:?} {:?}", name, plan, world);
        }
    }
}
