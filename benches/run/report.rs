//! From samples to a table.

use std::time::Duration;

/// One server in one round.
pub struct Sample {
    /// Requests in the closed loop.
    pub count: usize,
    /// How long the closed loop took.
    pub time: Duration,
    /// The server's time on processors meanwhile.
    pub cpu: Duration,
    /// Time to each answer in the closed loop.
    pub closed: Vec<Duration>,
    /// Time to each answer in the open loop.
    pub open: Vec<Duration>,
    /// Resident memory in KiB afterwards.
    pub resident: u32,
}

/// What is measured: one row of the table for each server.
const ROWS: [&str; 7] = [
    "CPU µs/request",
    "requests/s",
    "closed loop p50 µs",
    "closed loop p99 µs",
    "open loop p50 µs",
    "open loop p99 µs",
    "resident MiB",
];

/// What was measured: by server, by row, by round.
pub struct Report {
    servers: Vec<(&'static str, [Vec<f64>; ROWS.len()])>,
}

impl Report {
    pub fn new(servers: impl Iterator<Item = &'static str>) -> Self {
        Self { servers: servers.map(|name| (name, Default::default())).collect() }
    }

    pub fn add(&mut self, server: usize, sample: &Sample) {
        let count = f64::from(u32::try_from(sample.count).unwrap());
        let values = [
            micros(sample.cpu) / count,
            count / sample.time.as_secs_f64(),
            percentile(&sample.closed, 50),
            percentile(&sample.closed, 99),
            percentile(&sample.open, 50),
            percentile(&sample.open, 99),
            f64::from(sample.resident) / 1024.0,
        ];
        for (row, value) in self.servers[server].1.iter_mut().zip(values) {
            row.push(value);
        }
    }

    pub fn print(&self, time: Duration) {
        println!("{:20} {:10} {:>9} {:>9} {:>9}", "", "", "min", "median", "max");
        for (number, row) in ROWS.into_iter().enumerate() {
            for (server, values) in &self.servers {
                let [min, median, max] = spread(&values[number]);
                println!("{row:20} {server:10} {min:9.1} {median:9.1} {max:9.1}");
            }
        }
        for (what, over, under) in [("rolegate / floor", 1, 0), ("peer / rolegate", 2, 1)] {
            // Round by round: its two sides had the same neighbours on the machine.
            let ratios =
                self.servers[over].1[0].iter().zip(&self.servers[under].1[0]).map(|(over, under)| over / under);
            let [min, median, max] = spread(&ratios.collect::<Vec<_>>());
            println!("{:20} {what:16} {min:3.1} {median:9.1} {max:9.1}", "CPU ratio");
        }
        println!("{} rounds, {:.0} s in all", self.servers[0].1[0].len(), time.as_secs_f64());
    }
}

/// What small reviews take beside callers with large ones, and alone.
pub fn compare(alone: &[Duration], beside: &[Duration], crowd: usize) {
    let (alone, beside) = (percentile(alone, 99), percentile(beside, 99));
    println!("open loop p99 µs     rolegate   {alone:9.1} alone, {beside:.1} beside {crowd} callers with 1,000 roles");
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
