//! CPU time and memory of a process, from the kernel.

#![allow(dead_code, reason = "no benchmark asks for all of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Clock ticks per second in `/proc`: the same on every Linux that Rust supports.
const TICKS: u64 = 100;

/// Returns the CPU time since the process started, user and system.
pub fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The fields after the name, which may contain anything: field 3 is the state, 14 and 15 are the times.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Returns the resident memory in KiB.
pub fn resident(pid: u32) -> u32 {
    memory(pid, "VmRSS:")
}

/// Returns the peak of the resident memory in KiB.
pub fn peak(pid: u32) -> u32 {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, which: &str) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the pids of the control plane's components, by name.
pub fn components(folder: &Path) -> BTreeMap<String, u32> {
    let cluster: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("cluster.json")).unwrap()).unwrap();
    serde_json::from_value(cluster["pids"].clone()).unwrap()
}
