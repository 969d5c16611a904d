//! The number of pods that meet across replicas: those of a pod's birth, and those of now.

use std::fmt;

use super::engine::Scope;
use super::{Group, Role, names};
use crate::api::Meta;

/// The pods that meet in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Meeting {
    pub scope: Scope,
    pub pods: u32,
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.scope.as_str(), self.pods)
    }
}

impl Meeting {
    /// Returns the meeting of a pod that is created now, in a replica of so many pods; `None` where their number is not known.
    pub fn now(group: &Group, role: &Role, scope: Scope, size: u32) -> Option<Self> {
        let replicas = match scope {
            Scope::Replica => 1,
            Scope::Role if role.workload.desired_is_unknown => return None,
            Scope::Role => role.desired,
            Scope::Segment => group.batch_size(&role.name)?,
        };
        Some(Self { scope, pods: replicas.saturating_mul(size) })
    }

    /// Returns the meeting for which a pod was created, by its annotation; `None` for a pod that meets its own replica alone.
    pub fn at_birth(meta: &Meta) -> Option<Self> {
        let (scope, pods) = meta.annotation(names::ENGINE_PODS)?.split_once('=')?;
        Some(Self { scope: Scope::of_word(scope)?, pods: pods.parse().ok()? })
    }

    /// Tells of so many pods that were created for this meeting, beside those of now; `None` where the number is the same.
    pub fn outdated(self, pods: u32, now: Self) -> Option<String> {
        let were = if pods == 1 { "pod was" } else { "pods were" };
        let (born, of) = (self.pods, self.scope.as_str());
        (now.pods != born).then(|| {
            format!(
                "{pods} {were} created when {born} pods of the {of} met, and a pod created now meets as one of {}: delete the pods \
                 of the {of}, so that all count the same",
                now.pods
            )
        })
    }
}
