//! Pods of a question, by what they ask for.

use std::sync::Arc;

use super::needs::Needs;
use super::pack::Sort;
use super::room::Room;

/// Pods of one sort in a question.
pub(super) struct Asked<'a> {
    pub(super) needs: &'a Needs,
    /// Which of the constraints of the question are about them.
    pub(super) about: Vec<bool>,
    /// Positions of its pods in the question.
    pub(super) pods: Vec<usize>,
}

impl Asked<'_> {
    /// What one of them takes of a resource.
    pub(super) fn amount(&self, resource: &str) -> i64 {
        self.needs.load.amounts.get(resource).copied().unwrap_or_default()
    }

    pub(super) fn sort(&self, resources: &[Arc<str>]) -> Sort {
        Sort {
            amounts: resources.iter().map(|resource| self.amount(resource)).collect(),
            ports: self.needs.load.ports.clone(),
            count: u32::try_from(self.pods.len()).unwrap_or(u32::MAX),
        }
    }
}

/// The resources that any of them asks for, and some node has: of others nobody here knows where they are.
pub(super) fn resources(asked: &[Asked<'_>], room: &Room) -> Vec<Arc<str>> {
    let mut all: Vec<_> = asked.iter().flat_map(|asked| asked.needs.load.amounts.keys().cloned()).collect();
    all.sort();
    all.dedup();
    all.retain(|resource| room.has(resource));
    all
}

/// What pods take of a resource together.
pub(super) fn total(asked: &[Asked<'_>], resource: &str) -> i128 {
    let of = |asked: &Asked<'_>| i128::from(asked.amount(resource)) * i128::try_from(asked.pods.len()).unwrap_or(0);
    asked.iter().map(of).sum()
}
