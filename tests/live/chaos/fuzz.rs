//! The targets of `tests/fuzz` under libFuzzer, one after the other: what they find is kept there, smaller.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output};

use crate::common::figures::record;
use crate::common::prelude::*;

/// The coverage that libFuzzer reads. Every crate is built with it: what a parser does with its input is as telling as what
/// is done with what was parsed.
const FLAGS: &[&str] = &[
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
const FOLDER: &str = "target/fuzz";
/// Bytes of the corpus that is kept of one target: an eighth of a megabyte.
const MOST_KEPT: u64 = 120 << 10;
/// And as many inputs of it, small ones and large ones alike: more would be thousands of files to check out.
const MOST_INPUTS: usize = 100;
/// Longest input.
const LONGEST: &str = "-max_len=32768";
/// Seconds by the clock after which it is kept what was found.
const AT_A_TIME: u64 = 600;
/// What all runs spent on each target: its name, the seconds of processor time, and the inputs tried.
const SPENT: &str = "tests/fuzz/spent";
/// Seconds that a failing input is made smaller for.
const SMALLER: &str = "-max_total_time=60";

fn binary() -> PathBuf {
    let host = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With a target of its own, so that build scripts and macros are built without coverage.
    build.args(["build", "--release", "--locked", "--manifest-path", "tests/fuzz/Cargo.toml", "--target", &host]);
    let status = build.env("CARGO_TARGET_DIR", FOLDER).env("RUSTFLAGS", FLAGS.join(" ")).status().unwrap();
    assert!(status.success(), "the fuzz targets are not built");
    fs::canonicalize(Path::new(FOLDER).join(host).join("release/fuzz")).unwrap()
}

/// An empty folder.
fn emptied(path: PathBuf) -> PathBuf {
    _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The files of a folder with their sizes, the smallest first.
fn files(folder: &Path) -> BTreeSet<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.metadata().unwrap().len(), entry.path())).collect()
}

/// CPU time of all processes that this one has waited for, in seconds.
fn cpu_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // cutime and cstime, in hundredths.
    [13, 14].iter().map(|field| fields[*field].parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

struct Fuzzer {
    binary: PathBuf,
    target: String,
    /// Inputs to begin with, and after a run those that cover more.
    seeds: PathBuf,
    /// Those to begin with.
    begun: BTreeSet<PathBuf>,
}

impl Fuzzer {
    fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Output {
        let mut command = Command::new(&self.binary);
        command.env("ROLEGATE_FUZZ_TARGET", &self.target).env("TMPDIR", emptied(self.folder("tmp")));
        command.args([
            "-timeout=60",
            // What expands as far as it may takes seconds with coverage, on a machine that is shared.
            "-report_slow_units=60",
            "-len_control=0",
            "-rss_limit_mb=3072",
            "-close_fd_mask=1",
            "-print_final_stats=1",
            LONGEST,
        ]);
        command.args(words).output().unwrap()
    }

    fn folder(&self, what: &str) -> PathBuf {
        fs::canonicalize(FOLDER).unwrap().join(what).join(&self.target)
    }

    /// Fuzzes for so many seconds by the clock: how many inputs it tried, and what is said where one failed, which is kept,
    /// made smaller.
    fn fuzz(&self, seconds: u64) -> (u64, Result<(), String>) {
        let (seeds, found) = (&self.seeds, self.folder("found"));
        let [corpus, regressions] =
            ["corpus", "regressions"].map(|what| Path::new("tests/fuzz").join(what).join(&self.target));
        for folder in [&found, &corpus, &regressions] {
            fs::create_dir_all(folder).unwrap();
        }
        let (time, prefix) =
            (format!("-max_total_time={seconds}"), format!("-artifact_prefix={}/", regressions.display()));
        let before = files(&regressions);
        let ended = self.run(&[
            OsStr::new(&time),
            OsStr::new(&prefix),
            found.as_ref(),
            corpus.as_ref(),
            regressions.as_ref(),
            seeds.as_ref(),
        ]);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let tried = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let tried = tried.map(|tried| tried.trim().parse().unwrap());
        if !ended.status.success() {
            for (_, artifact) in files(&regressions).difference(&before) {
                let found = fs::read(artifact).unwrap();
                let smaller = format!("-exact_artifact_path={}", artifact.display());
                self.run(&["-minimize_crash=1", SMALLER, &smaller, &artifact.display().to_string()]);
                // It writes an empty one where it finds none that is smaller.
                if fs::metadata(artifact).map_or(0, |file| file.len()) == 0 {
                    fs::write(artifact, found).unwrap();
                }
            }
            let last: Vec<_> = said.lines().rev().take(40).collect();
            return (tried.unwrap_or(0), Err(last.into_iter().rev().collect::<Vec<_>>().join("\n")));
        }
        self.keep(&found, &corpus);
        (tried.expect("the final statistics"), Ok(()))
    }

    /// Keeps of what covers more than the seeds do.
    fn keep(&self, found: &Path, corpus: &Path) {
        let seeds = &*self.seeds;
        let merged = self.run(&[OsStr::new("-merge=1"), seeds.as_ref(), corpus.as_ref(), found.as_ref()]);
        assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
        // What covers more is a seed now; the next merge does not read the rest again.
        emptied(found.to_owned());
        emptied(corpus.to_owned());
        let more: Vec<_> = files(seeds).into_iter().filter(|(_, path)| !self.begun.contains(path)).collect();
        let mut left = MOST_KEPT;
        for (size, path) in more.iter().step_by(more.len().div_ceil(MOST_INPUTS).max(1)) {
            let Some(less) = left.checked_sub(*size) else { break };
            left = less;
            fs::copy(path, corpus.join(path.file_name().unwrap())).unwrap();
        }
    }

    /// What was found so far.
    fn found(&self) -> String {
        match files(&Path::new("tests/fuzz/regressions").join(&self.target)).len() {
            0 => "nothing".to_owned(),
            1 => "1, corrected".to_owned(),
            count => format!("{count}, corrected"),
        }
    }
}

/// Processor time and inputs of one target.
#[derive(Clone, Copy, Default)]
struct Spent {
    seconds: f64,
    tried: u64,
}

impl Spent {
    /// Adds to what is kept of this target, and says what all runs come to.
    fn added(self, target: &str) -> Self {
        let kept = fs::read_to_string(SPENT).unwrap_or_default();
        let (rows, sum) = self.added_to(&kept, target);
        fs::write(SPENT, rows).unwrap();
        sum
    }

    fn added_to(self, kept: &str, target: &str) -> (String, Self) {
        let mut rows: BTreeMap<&str, Self> = kept.lines().map(Self::read).collect();
        let sum = rows.entry(target).or_default();
        sum.seconds += self.seconds;
        sum.tried += self.tried;
        let sum = *sum;
        let lines = rows.iter().map(|(name, spent)| format!("{name} {:.0} {}\n", spent.seconds, spent.tried));
        (lines.collect(), sum)
    }

    fn read(row: &str) -> (&str, Self) {
        let [name, seconds, tried] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{SPENT}: {row}") };
        (name, Self { seconds: seconds.parse().unwrap(), tried: tried.parse().unwrap() })
    }
}

#[test]
fn what_runs_spend_adds_up() {
    let (kept, sum) = Spent { seconds: 30.4, tried: 7 }.added_to("names 600 1000\nplan 90 5\n", "plan");
    assert_eq!(kept, "names 600 1000\nplan 120 12\n");
    assert_eq!(sum.tried, 12);
    assert_eq!(Spent { seconds: 1.0, tried: 1 }.added_to("", "plan").0, "plan 1 1\n");
}

fn in_words(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}

/// `ROLEGATE_FUZZ` is how many seconds of processor time each target has, an hour by default; `ROLEGATE_FUZZ_ONLY` names some
/// of them (`review,mutate`), so that several can run beside each other.
#[test]
#[ignore = "hours: make fuzz"]
fn every_target() {
    let seconds = std::env::var("ROLEGATE_FUZZ").map_or(3600.0, |seconds| seconds.parse().unwrap());
    let only = std::env::var("ROLEGATE_FUZZ_ONLY").ok();
    let binary = binary();
    let seeds = emptied(Path::new(FOLDER).join(format!("seeds-{}", only.as_deref().unwrap_or("all"))));
    let seeds = fs::canonicalize(seeds).unwrap();
    let written = Command::new(&binary).env("ROLEGATE_FUZZ_SEEDS", &seeds).status().unwrap();
    assert!(written.success(), "the seeds are not written");
    for (_, folder) in files(&seeds) {
        let target = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if only.as_deref().is_some_and(|only| !only.split(',').any(|name| name == target)) {
            continue;
        }
        let begun = files(&folder).into_iter().map(|(_, path)| path).collect();
        let (fuzzer, before) = (Fuzzer { binary: binary.clone(), target, seeds: folder, begun }, cpu_time());
        // On a machine that is shared an hour by the clock is less of the processor. What was found is kept now and then, so
        // that a run that is broken off was not for nothing.
        let mut spent = 0.0;
        while spent < seconds {
            let left = Duration::from_secs_f64(f64::max(seconds - spent, 1.0)).as_secs().min(AT_A_TIME);
            let (tried, ended) = fuzzer.fuzz(left);
            let this_run = cpu_time() - before;
            // Several runs beside each other write one file and one page.
            let kept = fs::OpenOptions::new().append(true).create(true).open(SPENT).unwrap();
            kept.lock().unwrap();
            let all = Spent { seconds: this_run - spent, tried }.added(&fuzzer.target);
            spent = this_run;
            // What led to a failure was spent all the same.
            ended.unwrap_or_else(|said| panic!("{} fails:\n{said}", fuzzer.target));
            let name = format!("`{}`", fuzzer.target);
            record("fuzz", &[&name, &in_words(all.seconds), &grouped(all.tried), &fuzzer.found()]);
        }
    }
}
