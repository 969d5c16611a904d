//! Groups that are made, scaled, updated and deleted for an hour: what grows meanwhile must shrink again.

mod churn;
mod sample;

use churn::{Answers, Kind, Slot};
use sample::Sample;

use crate::common::figures::record;
use crate::common::prelude::*;

/// Between two samples.
const SAMPLED_EVERY: Duration = Duration::from_secs(15);
/// Nodes and pods are watched for five minutes after the last placement; idle connections are closed after 90 seconds.
const RESTS_WITHIN: Duration = Duration::from_secs(600);
/// What the allocator may keep beyond what was held at the end of the first third, MiB.
const MAY_GROW: f64 = 4.0;

/// Figures of a sample, each with what it is called in the table.
type Measured<T, const N: usize> = [(&'static str, fn(&Sample) -> T); N];

struct Churn {
    stage: Stage,
    rolegate: Rolegate,
    slots: Vec<Slot>,
    answers: Answers,
}

impl Churn {
    /// So many groups at a time, of these kinds in turn.
    async fn new(stage: Stage, groups: usize, kinds: &[Kind]) -> Self {
        if kinds.contains(&Kind::Racks) {
            churn::add_racks(&stage).await;
        } else {
            stage.add_node("all", 400).await;
        }
        let rolegate = stage.launch().flag("lease-duration", "15s").start().await;
        rolegate.until_metric("rolegate_leader", 1).await;
        let slots = (0..groups).map(|number| Slot::new(number, kinds)).collect();
        Self { stage, rolegate, slots, answers: Answers::new() }
    }

    /// One step of one group every `pause`, until it is enough after so long. The samples that were taken meanwhile.
    async fn run(&mut self, pause: Duration, enough: impl Fn(&Self, Duration) -> bool) -> Vec<Sample> {
        let (start, mut samples) = (Instant::now(), Vec::new());
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last = start;
        for turn in 0.. {
            ticks.tick().await;
            if enough(self, start.elapsed()) {
                break;
            }
            let slot = turn % self.slots.len();
            self.slots[slot].go_on(&self.stage, &mut self.answers).await;
            if last.elapsed() >= SAMPLED_EVERY {
                let sample = Sample::of(&self.rolegate).await;
                println!("soak: after {:>4} s {}", start.elapsed().as_secs(), sample.line());
                last = Instant::now();
                samples.push(sample);
            }
        }
        samples
    }

    /// Deletes all groups, and waits until nothing of them is left but so many more connections at most.
    async fn end(&mut self, before: &Sample, within: Duration, more: i64) -> Sample {
        for slot in &mut self.slots {
            slot.end(&self.stage, &mut self.answers).await;
        }
        // 500: a machine that does more than this has an API server that does not get its answers in time.
        assert!(self.answers.keys().all(|code| [200, 201, 404, 409, 500].contains(code)), "{:?}", self.answers);
        let late = self.answers.get(&500).copied().unwrap_or_default();
        assert!(late * 100 <= self.answers.values().sum::<u32>(), "{:?}", self.answers);
        eventually(within, "all that was kept is given back", async || {
            let now = Sample::of(&self.rolegate).await;
            let grown = now.grown(before);
            let open = now.files > before.files + more || now.tasks > before.tasks + 2 * more;
            if grown.is_empty() && !open { Ok(now) } else { Err(format!("{}\n{grown:#?}", now.line())) }
        })
        .await
    }

    fn lives(&self) -> usize {
        self.slots.iter().map(Slot::lives).sum()
    }
}

/// Waits until connections of the start are closed that nobody needs any more: that of the last sample comes and goes.
async fn at_rest(rolegate: &Rolegate, still_for: Duration) -> Sample {
    let (mut least, mut since) = (Sample::of(rolegate).await, Instant::now());
    eventually(RESTS_WITHIN, "files and tasks become no fewer", async || {
        let now = Sample::of(rolegate).await;
        if now.files < least.files || now.tasks < least.tasks {
            (least, since) = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        if since.elapsed() >= still_for { Ok(least.clone()) } else { Err(least.line()) }
    })
    .await
}

/// A few groups, half of which are made again. Connections stay open for a while: there may be some more of them.
#[tokio::test]
async fn what_groups_took_is_given_back() {
    let stage = Stage::new("churn").await;
    let kinds = [Kind::Segments, Kind::Lockstep, Kind::Coordination, Kind::BarePods];
    let mut churn = Churn::new(stage, 8, &kinds).await;
    let before = Sample::of(&churn.rolegate).await;
    churn.run(Duration::from_millis(60), |churn, passed| churn.lives() >= 12 || passed >= PATIENT).await;
    let after = churn.end(&before, PATIENT, 40).await;
    println!("soak: {} groups, {:?}: {} | {}", churn.lives(), churn.answers, before.line(), after.line());
    assert!(churn.lives() >= 12 && after.deleted > 0, "{} groups, {:?}", churn.lives(), churn.answers);
}

#[tokio::test]
#[ignore = "an hour: make soak"]
async fn an_hour_of_churn_leaves_nothing_behind() {
    let minutes = std::env::var("ROLEGATE_SOAK").map_or(60, |minutes| minutes.parse().unwrap());
    let pause = Duration::from_millis(if minutes < 30 { 500 } else { 3000 });
    let stage = Stage::on(ControlPlane::own_with_groups().await, "soak").await;
    let kinds = [Kind::Segments, Kind::Lockstep, Kind::Racks, Kind::Coordination, Kind::BarePods];
    let mut churn = Churn::new(stage, 40, &kinds).await;
    let before = at_rest(&churn.rolegate, Duration::from_secs(100)).await;
    println!("soak: at the beginning {}", before.line());
    let time = Duration::from_secs(60 * minutes);
    let samples = churn.run(pause, |_, passed| passed >= time).await;
    let after = churn.end(&before, RESTS_WITHIN, 0).await;
    println!("soak: at the end {}, {:?}", after.line(), churn.answers);

    let most = |of: fn(&Sample) -> i64| samples.iter().map(of).max().unwrap().to_string();
    let mean = |samples: &[Sample]| {
        let count = u32::try_from(samples.len()).unwrap();
        samples.iter().map(|sample| sample.own).sum::<f64>() / f64::from(count)
    };
    let third = samples.len() / 3;
    let (early, late) = (mean(&samples[third..2 * third]), mean(&samples[2 * third..]));
    let highest = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
    let made = format!("groups made and deleted in {minutes} minutes");
    record("soak", &[&made, "0", "40 at a time", &churn.lives().to_string()]);
    let memories: Measured<f64, 2> = [
        ("resident memory, MiB", |sample| sample.memory),
        ("of that its own, beside pages of the program's file", |sample| sample.own),
    ];
    for (name, of) in memories {
        let memory = [of(&before), highest(of), of(&after)].map(|memory| format!("{memory:.1}"));
        record("soak", &[name, &memory[0], &memory[1], &memory[2]]);
    }
    let middle = format!("{early:.1} in the second third of the time, {late:.1} in the last");
    record("soak", &["its own on average", "", &middle, ""]);
    let counted: Measured<i64, 5> = [
        ("open files and connections", |sample| sample.files),
        ("threads", |sample| sample.threads),
        ("tasks", |sample| sample.tasks),
        ("entries of groups, pods, workloads, nodes and what is remembered of them", Sample::kept),
        ("entries of what was deleted, at most 4,096 of a kind", |sample| sample.deleted),
    ];
    for (name, of) in counted {
        record("soak", &[name, &of(&before).to_string(), &most(of), &of(&after).to_string()]);
    }
    let peak = |samples: &[Sample]| samples.iter().map(Sample::kept).max().unwrap();
    let peaks = (peak(&samples[third..2 * third]), peak(&samples[2 * third..]));
    assert!(peaks.1 <= peaks.0 + peaks.0 / 5, "entries grow while there are as many groups as before: {peaks:?}");
    assert!(after.silence < 300.0, "a watch is taken for silent: {:.0} s", after.silence);
    assert!(late <= early + MAY_GROW, "memory grows: {early:.1} MiB, then {late:.1} MiB");
    assert!(after.own <= early + MAY_GROW, "memory is not given back: {early:.1} MiB, at the end {:.1}", after.own);
}
