//! Resource usage of this process from `/proc`; nothing on systems other than Linux.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Handle;

/// Ticks per second in `/proc`: a constant of the kernel's interface on every supported architecture.
const TICKS: f64 = 100.0;

/// Raises the limit of open files to its maximum, and returns it. The initial limit is often low (1,024) for the sake of
/// programs with `select`.
pub fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    if setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).is_err() {
        tracing::debug!(?limit, "the limit of open files cannot be raised");
    }
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Collector of processor time, memory, open files, threads and tasks.
#[derive(Clone, Copy, Debug)]
pub struct ProcessUsage;

impl Collector for ProcessUsage {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
            let help = "Processor time that this process has used";
            let counter = ConstCounter::new(seconds);
            let name = "process_cpu";
            counter.encode(encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?)?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(bytes) = resident_bytes(&status) {
            let help = "Memory that this process holds";
            let gauge = ConstGauge::new(bytes);
            let name = "process_resident_memory";
            gauge.encode(encoder.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?)?;
        }
        // Without the descriptor that reads the directory.
        let files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1));
        let tasks = Handle::try_current().ok().map(|runtime| runtime.metrics().num_alive_tasks());
        for (name, help, count) in [
            ("process_open_fds", "Files and connections that are open", files),
            ("process_threads", "Threads", threads(&status)),
            ("process_tasks", "Tasks of the runtime that have not ended", tasks),
        ] {
            let Some(count) = count.and_then(|count| i64::try_from(count).ok()) else { continue };
            ConstGauge::new(count).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

/// Parses `/proc/self/stat`: `pid (name) state …`. The name may hold any character; user and system time are the 14th and
/// 15th field.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// Parses the line `VmRSS:     5432 kB` of `/proc/self/status`.
fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<i64>().ok()? * 1024)
}

/// Parses the line `Threads:` of `/proc/self/status`.
fn threads(status: &str) -> Option<usize> {
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_memory_are_read_as_the_kernel_writes_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 9 0 100 1000 200";
        assert_eq!((cpu_seconds(stat), cpu_seconds("7 (a"), cpu_seconds("")), (Some(3.0), None, None));
        let status = "Name:\trolegate\nVmHWM:\t   6000 kB\nVmRSS:\t   5432 kB\nThreads:\t9\n";
        assert_eq!((resident_bytes(status), resident_bytes("VmRSS: 1 MB")), (Some(5432 * 1024), None));
        assert_eq!((threads(status), threads("Threads: many")), (Some(9), None));
    }
}
