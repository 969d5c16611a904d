//! The targets under libFuzzer: the one that `ROLEGATE_FUZZ_TARGET` names. With `ROLEGATE_FUZZ_SEEDS` nothing is fuzzed, and
//! the inputs to begin with are written there, in a folder for each target. `make fuzz` runs them all.

#![no_main]

#[path = "../targets/mod.rs"]
mod targets;

mod grammar;

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("ROLEGATE_FUZZ_TARGET").unwrap_or_default();
    let target = targets::TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("ROLEGATE_FUZZ_TARGET={name} is no target")).run
});

fuzz_target!(init: write_seeds(), |data: &[u8]| (*RUN)(data));

fn write_seeds() {
    let Some(folder) = std::env::var_os("ROLEGATE_FUZZ_SEEDS") else { return };
    for target in targets::TARGETS {
        let folder = PathBuf::from(&folder).join(target.name);
        fs::create_dir_all(&folder).unwrap();
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(number.to_string()), seed).unwrap();
        }
    }
    std::process::exit(0);
}

// What is JSON is mostly changed field by field, what is not byte by byte.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let changed = grammar::changed(&data[..size], seed).filter(|changed| changed.len() <= max_size);
    match changed {
        Some(changed) => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
    let crossed = grammar::crossed(one, other, seed).filter(|crossed| crossed.len() <= out.len());
    let crossed = crossed.unwrap_or_else(|| {
        let at = one.len().min(seed as usize % (one.len() + 1));
        let from = other.len().min(seed as usize % (other.len() + 1));
        one[..at].iter().chain(&other[from..]).copied().take(out.len()).collect()
    });
    out[..crossed.len()].copy_from_slice(&crossed);
    crossed.len()
});
