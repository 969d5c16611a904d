//! What is so of a group, for people. Each sentence is made once, and text, JSON and page show it.

use super::{Picture, Segments};
use crate::plan::Held;
use crate::plan::provision::text::requests;
use crate::plan::recovery::text::recoveries;
use crate::plan::rollout::rollouts;

/// What is so of a group; each part is made when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a>(pub(super) &'a Picture);

impl<'a> Story<'a> {
    pub const fn of(group: &'a Picture) -> Self {
        Self(group)
    }

    /// Returns the wanted segments of a group whose workloads are scaled together.
    pub(super) fn segments(self) -> Option<Segments> {
        Segments::of(self.0.group()?, &self.0.seen)
    }

    /// Returns a sentence for each batch that has lost a replica.
    pub(super) fn recoveries(self) -> Vec<String> {
        let Some(group) = self.0.group() else { return Vec::new() };
        recoveries(group, &self.0.seen.decision.recovery).collect()
    }

    /// Returns a sentence for each request for nodes.
    pub(super) fn requests(self) -> Vec<String> {
        self.0.group().map(|group| requests(group, &group.status.provisioning).collect()).unwrap_or_default()
    }

    /// Returns the holds that are worth telling.
    pub fn holds(self) -> impl Iterator<Item = &'a Held> {
        self.0.seen.decision.held.iter().filter(|held| held.is_told())
    }

    /// Returns a line for all that is under way.
    pub fn lines(self) -> Vec<String> {
        let segments = self.segments().map(|segments| segments.sentence).filter(|sentence| !sentence.is_empty());
        let rollouts = rollouts(&self.0.seen.decision.rollout, &self.0.seen.rollouts);
        let engines = self.engines().into_iter().map(|outdated| outdated.sentence);
        let in_part = self.in_part().into_iter().map(|part| part.sentence);
        let begun = segments.into_iter().chain(rollouts).chain(self.recoveries());
        begun.chain(engines).chain(in_part).chain(self.requests()).collect()
    }
}
