//! Histories without faults: workloads are edited and scaled, pods are recreated and become ready, watches lag by less
//! than a second. No Warning is written.

use crate::history::{Act, Fate, History, Step};
use crate::prelude::*;
use crate::settle::settle;

/// Returns the history of a seed.
pub fn history(seed: u64) -> History {
    let mut random = Random::new(seed);
    let mut setup = Setup::random(&mut random);
    while setup.wish == Wish::Wrong {
        setup.wish = Wish::random(&mut random);
    }
    if !seed.is_multiple_of(3) {
        setup = setup.rolled(&mut random);
    }
    // A recovery writes a Warning about the lost pod.
    if let Wish::All(all) = &mut setup.wish {
        all.iter_mut().for_each(|coordination| coordination.recovers = false);
    }
    (setup.two, setup.operator, setup.broken) = (false, true, false);
    let steps = (0..10 + random.below(40)).flat_map(|_| step(&mut random, setup.rolling.is_some()));
    let steps: Vec<_> = std::iter::once(Step::Flow(30)).chain(steps.collect::<Vec<_>>()).collect();
    History { setup, steps }
}

/// Returns a change, and the steps until the cluster is settled.
fn step(random: &mut Random, rolls: bool) -> Vec<Step> {
    let n = random.below(40) as usize;
    let role = random.pick(&[0, 0, 1, 1, 2]);
    let happens = match random.below(20) {
        0..=1 => Step::Scale(role, random.below(6)),
        2..=8 if rolls => Step::Set(random.below(2) as usize % ROLLED, SetStep::Image(random.below(4))),
        9..=10 => Step::Pod(random.pick(&[Fate::Evicted, Fate::Ready, Fate::Scheduled]), n),
        11..=12 => Step::Control { role, most: 1 + n % 6, stale: false },
        13..=14 => Step::At(0, Act::Deliver { watch: n % 6, most: 1 + n % 12, duplicate: false }),
        15 => Step::At(0, Act::Answer { n }),
        _ => Step::Flow(1 + random.below(3)),
    };
    let mut steps = vec![happens];
    if random.percent(30) {
        // A group without progress for long causes a Warning.
        steps.extend([Step::Flow(random.pick(&[1, 40])), Step::Wait(Duration::from_millis(random.pick(&[90, 400])))]);
    }
    if random.percent(10) {
        steps.extend([Step::Flow(60), Step::Wait(Duration::from_secs(12)), Step::Flow(60)]);
    }
    steps
}

/// Runs the history; fails when a Warning is written.
pub fn run(history: &History) -> Result<(), Broken> {
    let mut world = World::new(&history.setup, None);
    let told = |world: &World| -> Result<(), Broken> {
        let warned: Vec<_> = world.replicas.iter().flat_map(|replica| &replica.warned).collect();
        hold!(warned.is_empty(), "a Warning, and nothing is wrong: {warned:?}");
        Ok(())
    };
    for step in &history.steps {
        world.step(step)?;
        told(&world)?;
    }
    settle(&mut world)?;
    told(&world)
}

/// The share that stays old keeps prefill at half, and the edit of decode is taken back: its lower half never left the revision.
#[test]
fn a_role_that_is_taken_back_does_not_wait_for_what_stays_old() {
    let rolling = Some(Rolling { unavailable: 2, partition: 40, ..Rolling::default() });
    let setup = Setup { rolling, operator: true, ..Setup::plain([4, 4, 0]) };
    let edit = |role, image| Step::Set(role, SetStep::Image(image));
    let begun = [Step::Flow(60), edit(0, 3), Step::Flow(1), Step::Wait(Duration::from_secs(12)), Step::Flow(60)];
    let edited = [edit(1, 2), Step::Flow(1), edit(0, 2), Step::Flow(3), edit(1, 0)];
    run(&History { setup, steps: begun.into_iter().chain(edited).collect() }).unwrap();
}
