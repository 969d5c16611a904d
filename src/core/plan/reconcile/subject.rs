//! The subject of a pass: a group, or a KAI PodGroup that places its pods.

use crate::plan::gangs::TreeSnapshot;
use crate::plan::view::Snapshot;

#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    Group(&'a Snapshot),
    PodGroup(&'a TreeSnapshot),
}

impl<'a> From<&'a Snapshot> for Subject<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self::Group(snapshot)
    }
}

impl<'a> From<&'a TreeSnapshot> for Subject<'a> {
    fn from(snapshot: &'a TreeSnapshot) -> Self {
        Self::PodGroup(snapshot)
    }
}

impl Subject<'_> {
    /// Reports whether nothing is left of it.
    pub(in crate::plan) fn is_empty(self) -> bool {
        match self {
            Self::Group(snapshot) => snapshot.is_empty(),
            Self::PodGroup(snapshot) => snapshot.pods.is_empty(),
        }
    }
}
