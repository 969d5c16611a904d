//! `make bench-review`: measures a pod's review by rolegate, between a floor and a peer.
//!
//! Three servers get the same reviews over the same TLS, in turns within one run, so that disturbances of the machine
//! affect all alike: the floor (`benches/floor`), rolegate as released on a real control plane, and a webhook on
//! controller-runtime that makes the same edits (`benches/peer`). The answers are compared first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where it fails"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
mod load;
#[path = "../process.rs"]
mod process;
mod report;
mod reviews;
#[path = "../section.rs"]
mod section;
mod servers;

use std::time::{Duration, Instant};

use load::{Crowd, Load, connect};
use report::{Closed, Report, Sample};
use section::Section;
use servers::{Server, Servers};

/// Rounds; each measures every server once in each way.
const ROUNDS: usize = 5;
/// Requests per second in the open loop: well below the capacity of the slowest server on half a machine.
const RATE: u32 = 400;
/// Duration of the open loop.
const OPEN: Duration = Duration::from_millis(1500);
/// Callers with large reviews, in the last measurement beside small ones.
const CROWD: usize = 4;
/// Time after which no further round begins.
const PATIENCE: Duration = Duration::from_secs(100);

#[tokio::main]
async fn main() {
    let started = Instant::now();
    let servers = Servers::start().await;
    let before = servers.all[1].resident();
    let bodies = reviews::of_decode_pods();
    servers.answers_agree(&bodies[0]).await;
    let mut loads = Vec::new();
    for server in &servers.all {
        let load = Load { callers: connect(server.address, &servers.ca).await, bodies: bodies.clone() };
        // Warms up code, caches and the peer's heap.
        loads.push(load.closed(server.count / 10).await.0);
    }
    let mut report = Report::new(servers.all.iter().map(|server| server.name));
    for round in 0..ROUNDS {
        if started.elapsed() > PATIENCE {
            eprintln!("time is up after {round} rounds");
            break;
        }
        for (number, server) in servers.all.iter().enumerate() {
            let (load, closed) = closed(server, loads.remove(number)).await;
            let (load, open) = load.open(RATE, OPEN).await;
            loads.insert(number, load);
            report.add(number, &Sample { closed, open, resident: server.resident() });
        }
    }
    let rolegate = &servers.all[1];
    let (load, alone) = loads.remove(1).open(RATE, OPEN).await;
    let crowd = Crowd::start(rolegate.address, &servers.ca, &reviews::of_wide_group(), CROWD).await;
    let (_, beside) = load.open(RATE, OPEN).await;
    drop(crowd);
    let mut out = Section::new("bench");
    report.print(&mut out, started.elapsed());
    report::compare(&mut out, &alone, &beside, CROWD);
    out.figure("memory before the first pod", format!("{:.1} MiB", f64::from(before) / 1024.0));
    let binary = std::fs::metadata(std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("rolegate"));
    out.figure("the binary", format!("{} kB", binary.unwrap().len() / 1000));
    out.finish();
    servers.stop().await;
}

async fn closed(server: &Server, load: Load) -> (Load, Closed) {
    let before = server.cpu();
    let start = Instant::now();
    let (load, answers) = load.closed(server.count).await;
    let (time, cpu) = (start.elapsed(), server.cpu().saturating_sub(before));
    (load, Closed { count: server.count, time, cpu, answers })
}
