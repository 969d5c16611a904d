//! `make bench-plan`: measures planning without an API server. The real index and reconciler take a group of prefill
//! and decode in segments of 10 + 5 from all held to all ready; each pod event, each pass and the whole run are timed.
//! Then `plan` simulates groups of rising size, and batches are placed on clusters of rising size.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops where it fails, and shows rounded times"
)]

mod placement;
#[path = "../planning.rs"]
mod planning;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use planning::{Loop, group};
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::model::Group;
use rolegate::plan::simulate;
use section::Section;

/// Pods of the groups that the loop brings up.
const LOOP: [u32; 4] = [300, 3_000, 9_990, 30_000];
/// Prefill replicas of the groups that `plan` simulates; decode has half as many.
const SIMULATED: [u32; 3] = [1_000, 8_000, 100_000];

fn main() {
    let mut out = Section::new("bench-plan");
    let room = placement::memory(&mut out);
    let resident = || u64::from(process::resident(std::process::id()));
    let before = resident();
    let kept = Loop::new(30_000 / 15);
    let held = (resident() - before) * 1024 / 30_000;
    writeln!(out, "{held} bytes for each of 30,000 held pods\n").unwrap();
    out.figure("memory for a held pod", format!("{held} bytes"));
    drop((kept, room));
    writeln!(out, "| pods | event, mean | pass, mean | pass, p99 | longest | passes | all planning |").unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|").unwrap();
    for pods in LOOP {
        run(&mut out, Loop::new(pods / 15));
    }
    writeln!(out, "\n| replicas | steps | `plan` |").unwrap();
    writeln!(out, "|---|---|---|").unwrap();
    for prefill in SIMULATED {
        let group = Group::from_rbg(ROLE_BASED_GROUP, &group(prefill / 10, "1", &GroupStatus::default()));
        let started = Instant::now();
        let run = simulate(&group, &[], &BTreeMap::new(), None).expect("it can be simulated");
        assert!(run.complete, "every group comes to its end");
        let time = shown(started.elapsed());
        writeln!(out, "| {prefill} + {} | {} | {time} |", prefill / 2, run.steps.len()).unwrap();
        match prefill {
            8_000 => out.figure("`plan` of 8,000 + 4,000 replicas", time),
            100_000 => out.figure("`plan` of 100,000 + 50,000", time),
            _ => {}
        }
    }
    placement::run(&mut out);
    out.finish();
}

/// Runs a pass after every three writes: events within 10 ms are planned together.
fn run(out: &mut Section, mut group: Loop) {
    let pods = group.segments * 15;
    while group.ready < pods {
        group.pass();
        for _ in 0..3 {
            group.write();
        }
    }
    group.passes.sort();
    let planning: Duration = group.passes.iter().sum();
    let mean = |times: &[Duration]| times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap();
    if pods == 9_990 {
        out.figure("a pass at 10,000 pods", shown(mean(&group.passes)));
    }
    writeln!(
        out,
        "| {pods} | {} | {} | {} | {} | {} | {} |",
        shown(mean(&group.events)),
        shown(mean(&group.passes)),
        shown(group.passes[group.passes.len() * 99 / 100]),
        shown(*group.passes.last().unwrap()),
        group.passes.len(),
        shown(planning + group.events.iter().sum::<Duration>()),
    )
    .unwrap();
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 0.001 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{:.1} µs", seconds * 1e6),
    }
}
