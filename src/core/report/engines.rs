//! Pods whose engine counts pods that are no longer as many.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Story;
use crate::model::Meeting;

/// Pods of a role that were created for another number of pods than a pod that is created now.
#[derive(Debug, Serialize)]
pub struct OutdatedEngine<'a> {
    role: &'a str,
    /// Pods that meet: those of the role, or of a segment of it.
    scope: &'static str,
    pods: u32,
    /// Pods that met when they were created.
    born: u32,
    now: u32,
    pub(super) sentence: String,
}

impl<'a> Story<'a> {
    /// Returns pods whose engine counts pods that are no longer as many, role by role.
    pub fn engines(self) -> Vec<OutdatedEngine<'a>> {
        let Self(picture) = self;
        let Some(group) = picture.group() else { return Vec::new() };
        let mut all = Vec::new();
        for role in &group.roles {
            let Some(view) = picture.seen.view.roles.get(&role.name) else { continue };
            let mut born: BTreeMap<(Meeting, Meeting), u32> = BTreeMap::new();
            for (_, pod) in view.replicas.pods() {
                let Some(at_birth) = pod.stamp.meeting else { continue };
                let size = pod.identity.replica_size.max(1);
                if let Some(now) = Meeting::now(group, role, at_birth.scope, size) {
                    *born.entry((at_birth, now)).or_default() += 1;
                }
            }
            all.extend(born.into_iter().filter_map(|((at_birth, now), pods)| {
                let (scope, born) = (at_birth.scope.as_str(), at_birth.pods);
                let sentence = format!("role {:?}: {}", role.name, at_birth.outdated(pods, now)?);
                Some(OutdatedEngine { role: &role.name, scope, pods, born, now: now.pods, sentence })
            }));
        }
        all
    }
}
