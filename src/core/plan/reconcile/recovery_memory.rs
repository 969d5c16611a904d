//! Memory of recoveries between passes. All of it may be lost.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::{BatchId, Judged, RecoveryPlan, Tally, Verdict};

/// The interval between two reads of a batch that may or may not be broken.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The memory of batches that are, or may be, broken.
#[derive(Debug, Default)]
pub(in crate::plan) struct RecoveryMemory {
    judged: Vec<Judged>,
    /// When batches that may or may not be broken are read again.
    again: Option<Uptime>,
    /// Since when batches have unready replicas, and after which time these are lost.
    unready: BTreeMap<BatchId, (Uptime, Duration)>,
    /// Batches as the limits on recoveries of all groups count them.
    pub(in crate::plan) tally: Tally,
    /// A recovery waits for batches of other groups.
    pub(in crate::plan) braked: bool,
}

impl RecoveryMemory {
    /// Returns the verdicts, and the batches with replicas that were unready for too long.
    pub(in crate::plan) fn known(&self, now: Uptime) -> (Vec<Judged>, Vec<BatchId>) {
        let stands = |judged: &&Judged| self.again.is_none_or(|again| again > now) || !is_unknown(judged);
        let is_over = |(since, time): &(Uptime, Duration)| now.saturating_sub(*since) >= *time;
        let overdue = self.unready.iter().filter(|(_, since)| is_over(since)).map(|(id, _)| *id);
        (self.judged.iter().filter(stands).cloned().collect(), overdue.collect())
    }

    pub(in crate::plan) fn len(&self) -> usize {
        self.judged.len() + self.unready.len()
    }

    /// Notes the result of a read.
    pub(in crate::plan) fn looked(&mut self, judged: Option<Vec<Judged>>, now: Uptime) {
        self.judged.extend(judged.into_iter().flatten());
        if self.judged.iter().any(is_unknown) {
            self.again = Some(now + LOOK_AGAIN);
        }
    }

    /// Notes the findings of a pass; returns when the next replica will have been unready for too long, or when to read again.
    pub(in crate::plan) fn note(&mut self, plan: &RecoveryPlan, now: Uptime) -> Option<Uptime> {
        let is_over = self.again.is_some_and(|again| again <= now);
        self.judged.retain(|judged| plan.broken.contains(&judged.id) && !(is_over && is_unknown(judged)));
        self.again = self.again.filter(|_| self.judged.iter().any(is_unknown));
        let known = std::mem::take(&mut self.unready);
        let known = Some(known).filter(|_| !plan.brake.cleared).unwrap_or_default();
        let since = |id: &BatchId| known.get(id).map_or(now, |(since, _)| *since);
        self.unready = plan.unready.iter().map(|(id, time)| (*id, (since(id), *time))).collect();
        let due = self.unready.values().filter_map(|(since, time)| since.checked_add(*time));
        due.chain(self.again).filter(|due| *due > now).min()
    }
}

fn is_unknown(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Unknown { .. })
}
