//! What a running rolegate says that it uses and keeps.

use crate::common::prelude::*;

/// What was deleted is remembered in so many entries at most, and stays.
const MOST_DELETED: i64 = 4096;

/// At one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Resident memory in MiB.
    pub memory: f64,
    /// That without pages of files, in MiB: those of the program's file stay once they were run.
    pub own: f64,
    pub files: i64,
    pub threads: i64,
    pub tasks: i64,
    /// Entries of what ends with its objects, by metric and label.
    pub entries: BTreeMap<String, i64>,
    /// Entries of what was deleted.
    pub deleted: i64,
    /// Seconds since the API server last said anything on the most silent watch.
    pub silence: f64,
    /// Seconds of processor time so far.
    pub cpu: f64,
}

impl Sample {
    pub async fn of(rolegate: &Rolegate) -> Self {
        let mut sample = Self { own: own_memory(rolegate.pid()), ..Self::default() };
        for line in rolegate.metrics().await.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let number: f64 = value.parse().unwrap();
            let Some(name) = name.strip_prefix("rolegate_") else { continue };
            #[allow(clippy::cast_possible_truncation, reason = "counts")]
            let count = number as i64;
            match name {
                "process_resident_memory_bytes" => sample.memory = number / f64::from(1 << 20),
                "process_cpu_seconds_total" => sample.cpu = number,
                "process_open_fds" => sample.files = count,
                "process_threads" => sample.threads = count,
                "process_tasks" => sample.tasks = count,
                _ if name.starts_with("cache_age_seconds{") => sample.silence = sample.silence.max(number),
                _ if name.contains("_entries{of=\"deleted_") => {
                    assert!(count <= MOST_DELETED, "{line}");
                    sample.deleted += count;
                }
                // Those of the whole control plane, which other tests add to.
                _ if name.contains("_entries{of=\"namespaces") => {}
                _ if name.contains("_entries{") => _ = sample.entries.insert(name.to_owned(), count),
                _ => {}
            }
        }
        assert!(sample.memory > 0.0 && sample.files > 0 && sample.threads > 0 && sample.tasks > 0, "{sample:?}");
        assert!(sample.entries.len() > 15, "{sample:?}");
        sample
    }

    /// Entries of what ends with its objects.
    pub fn kept(&self) -> i64 {
        self.entries.values().sum()
    }

    /// Entries that are more than they were.
    pub fn grown(&self, before: &Self) -> Vec<String> {
        let more = |(name, count): (&String, &i64)| {
            let was = before.entries.get(name).copied().unwrap_or_default();
            (*count > was).then(|| format!("{name}: {was}, now {count}"))
        };
        self.entries.iter().filter_map(more).collect()
    }

    pub fn line(&self) -> String {
        format!(
            "{:.1} MiB ({:.1} of its own), {} files, {} threads, {} tasks, {} entries, {} of what was deleted, {:.1} s of processor time",
            self.memory,
            self.own,
            self.files,
            self.threads,
            self.tasks,
            self.kept(),
            self.deleted,
            self.cpu,
        )
    }
}

/// Of `/proc/PID/status`: `RssAnon:     7600 kB`.
fn own_memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<f64>().unwrap() / 1024.0
}
