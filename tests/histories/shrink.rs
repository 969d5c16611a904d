//! Runs a history, and shrinks one that breaks a promise.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::history::History;
use crate::prelude::*;
use crate::settle::settle;

pub fn run(history: &History, sabotage: Option<Sabotage>) -> Result<(), Broken> {
    let run = || {
        let mut world = World::new(&history.setup, sabotage);
        history.steps.iter().try_for_each(|step| world.step(step))?;
        settle(&mut world)
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Broken("it panicked, see above".to_owned())))
}

/// Returns a history that breaks the same promise with fewer steps, and the error.
pub fn shrunk(mut history: History, run: impl Fn(&History) -> Result<(), Broken>) -> (History, Broken) {
    let Err(mut broken) = run(&history) else { panic!("it breaks a promise only now and then") };
    let mut length = history.steps.len().max(1);
    loop {
        let mut start = 0;
        let mut shorter = false;
        while start < history.steps.len() {
            let mut steps = history.steps.clone();
            steps.drain(start..(start + length).min(steps.len()));
            let attempt = History { setup: history.setup.clone(), steps };
            match run(&attempt) {
                Err(other) if kind(&other) == kind(&broken) => {
                    (history, broken, shorter) = (attempt, other, true);
                }
                _ => start += length,
            }
        }
        if length > 1 {
            length = length.div_ceil(2);
        } else if !shorter {
            return (history, broken);
        }
    }
}

/// Returns the promise without its details.
fn kind(broken: &Broken) -> &str {
    broken.0.get(..16).unwrap_or(&broken.0)
}
