//! Pods of a question, grouped by needs.

use std::sync::Arc;

use super::needs::{Amounts, Needs};
use super::pack::Sort;
use super::room::Room;

/// The interchangeable pods of a question.
pub(super) struct Asked<'a> {
    pub(super) needs: &'a Needs,
    /// For each constraint of the question, whether it selects these pods.
    pub(super) about: Vec<bool>,
    /// The positions of these pods in the question.
    pub(super) pods: Vec<usize>,
    /// The number of devices by the name of the counted request.
    pub(super) devices: Amounts,
    /// The position of their claims in the demand for devices.
    pub(super) demand: usize,
}

impl Asked<'_> {
    /// Returns the amount of a resource that one pod takes.
    pub(super) fn amount(&self, resource: &str) -> i64 {
        let amount = self.needs.load.amounts.get(resource).or_else(|| self.devices.get(resource));
        amount.copied().unwrap_or_default()
    }

    pub(super) fn sort(&self, resources: &[Arc<str>]) -> Sort {
        Sort {
            amounts: resources.iter().map(|resource| self.amount(resource)).collect(),
            ports: self.needs.load.ports.clone(),
            count: u32::try_from(self.pods.len()).unwrap_or(u32::MAX),
            demand: self.demand,
        }
    }
}

/// Returns the resources by which the pods are placed. Where other resources are is not known.
pub(super) fn resources(asked: &[Asked<'_>], room: &Room) -> Vec<Arc<str>> {
    let mut all: Vec<_> = asked.iter().flat_map(|asked| room.counted(asked.needs)).cloned().collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the amount of a resource that all pods take together.
pub(super) fn total(asked: &[Asked<'_>], resource: &str) -> i128 {
    let of = |asked: &Asked<'_>| i128::from(asked.amount(resource)) * i128::try_from(asked.pods.len()).unwrap_or(0);
    asked.iter().map(of).sum()
}
