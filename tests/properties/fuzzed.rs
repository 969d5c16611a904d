//! What fuzzing begins with and what it has found, without libFuzzer: seeds, the kept corpus, and inputs that once failed.

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::path::Path;
use std::time::Instant;
use std::{fs, io, panic, thread};

use targets::{TARGETS, Target};

use crate::prelude::*;

/// Longest time that one input may take, on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folders = ["corpus", "regressions"].map(|folder| Path::new("tests/fuzz").join(folder).join(target.name));
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths: io::Result<Vec<_>> = files.map(|entry| entry.map(|entry| entry.path())).collect();
    let read = |path: &std::path::PathBuf| (path.display().to_string(), fs::read(path).unwrap());
    paths.unwrap().iter().map(read).collect()
}

/// Bytes of stack that a program's first thread has: what is nested deep takes more of it in a build that is not optimised than a
/// test's thread has.
const STACK: usize = 8 << 20;

fn replay(name: &'static str) {
    let replayed = thread::Builder::new().stack_size(STACK).spawn(|| replay_all(name)).unwrap().join();
    replayed.unwrap_or_else(|failed| panic::resume_unwind(failed));
}

fn replay_all(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = (target.seeds)().into_iter().enumerate().map(|(number, seed)| (format!("seed {number}"), seed));
    let all: Vec<_> = seeds.chain(kept(target)).collect();
    assert!(all.len() > 5, "{} inputs", all.len());
    for (input, data) in &all {
        let begun = Instant::now();
        let tried = panic::catch_unwind(|| (target.run)(data));
        assert!(tried.is_ok(), "{name} fails with {input}: {}", String::from_utf8_lossy(data));
        assert!(begun.elapsed() < LONGEST, "{name} takes {:?} with {input}", begun.elapsed());
    }
}

macro_rules! replays {
    ($($name:ident),*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), [$(stringify!($name)),*]);
        }
    };
}

replays!(review, mutate, names, documents, plan, status, secrets, placement);
