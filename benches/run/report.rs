//! Prints samples as a table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::section::Section;

/// The measurements of a closed loop.
pub struct Closed {
    /// Number of requests.
    pub count: usize,
    /// Duration of the loop.
    pub time: Duration,
    /// CPU time of the server.
    pub cpu: Duration,
    /// Time to each answer.
    pub answers: Vec<Duration>,
}

/// The measurements of one server in one round.
pub struct Sample {
    /// At full load.
    pub closed: Closed,
    /// Time to each answer in the open loop.
    pub open: Vec<Duration>,
    /// Resident memory afterwards, in KiB.
    pub resident: u32,
}

/// The rows of the table.
const ROWS: [&str; 7] = [
    "CPU of a review, µs",
    "reviews a second, as many as it can",
    "p50 of these, µs",
    "p99 of these, µs",
    "p50 at 400 a second, µs",
    "p99 at 400 a second, µs",
    "resident, MiB",
];

impl Closed {
    fn values(&self) -> [f64; 4] {
        let count = f64::from(u32::try_from(self.count).unwrap());
        let [p50, p99] = [50, 99].map(|percent| percentile(&self.answers, percent));
        [micros(self.cpu) / count, count / self.time.as_secs_f64(), p50, p99]
    }
}

/// Rows whose ratio to the floor has a target.
const TARGETS: [(usize, &str); 2] =
    [(0, "CPU of a review over HTTP/1.1, against the floor"), (1, "reviews a second over HTTP/1.1, against the floor")];

/// Values by server, row and round.
pub struct Report {
    servers: Vec<(&'static str, [Vec<f64>; ROWS.len()])>,
}

impl Report {
    pub fn new(servers: impl Iterator<Item = &'static str>) -> Self {
        Self { servers: servers.map(|name| (name, Default::default())).collect() }
    }

    pub fn add(&mut self, server: usize, sample: &Sample) {
        let values = sample.closed.values().into_iter().chain([
            percentile(&sample.open, 50),
            percentile(&sample.open, 99),
            f64::from(sample.resident) / 1024.0,
        ]);
        for (row, value) in self.servers[server].1.iter_mut().zip(values) {
            row.push(value);
        }
    }

    /// Prints medians over all rounds, and rolegate's ratios to the other two.
    pub fn print(&self, out: &mut Section, time: Duration) {
        let names: Vec<_> = self.servers.iter().map(|(name, _)| *name).collect();
        writeln!(out, "| median (lowest to highest) | {} | rolegate / floor | peer / rolegate |", names.join(" | "))
            .unwrap();
        writeln!(out, "|---|---|---|---|---|---|").unwrap();
        for (number, row) in ROWS.into_iter().enumerate() {
            let of = |server: usize| &self.servers[server].1[number];
            let shown = (0..names.len()).map(|server| {
                let [min, median, max] = spread(of(server));
                format!("{median:.1} ({min:.1} to {max:.1})")
            });
            // Ratios are taken per round: both sides ran under the same load of the machine.
            let ratio = |over: usize, under: usize| {
                let ratios = of(over).iter().zip(of(under)).map(|(over, under)| over / under);
                spread(&ratios.collect::<Vec<_>>())[1]
            };
            let shown = shown.collect::<Vec<_>>().join(" | ");
            writeln!(out, "| {row} | {shown} | {:.2} | {:.2} |", ratio(1, 0), ratio(2, 1)).unwrap();
            for (_, what) in TARGETS.iter().filter(|(target, _)| *target == number) {
                out.figure(what, format!("{:.2} ×", ratio(1, 0)));
            }
        }
        writeln!(out, "\n{} rounds, {:.0} s in all.", self.servers[0].1[0].len(), time.as_secs_f64()).unwrap();
    }
}

/// Prints the latency of small reviews alone, and beside callers with large ones.
pub fn compare(out: &mut Section, alone: &[Duration], beside: &[Duration], crowd: usize) {
    let (alone, beside) = (percentile(alone, 99), percentile(beside, 99));
    writeln!(out, "p99 of rolegate at that rate: {alone:.1} µs alone, {beside:.1} µs beside {crowd} callers with groups of 1,000 roles.")
        .unwrap();
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    micros(times[(times.len() - 1) * percent / 100])
}

fn spread(values: &[f64]) -> [f64; 3] {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}
