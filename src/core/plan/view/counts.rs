//! Replicas of a group as counts, for planning without a cluster (`plan --state`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::api::status::{CoordinationState, RecoveryState};
use crate::model::{Batching, Coordination, Group, PodIdentity};
use crate::plan::view::{AwaitedObjects, GroupPods, GroupView, LabelledPlace, PodFacts, PodRef};

/// The observed state of a group in a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ObservedCounts {
    /// By role; the default is that all replicas exist and none is released.
    pub roles: BTreeMap<String, RoleCounts>,
    /// Whether the group was complete once: missing replicas are then due to scaling, not deployment.
    pub ever_ready: bool,
    /// Broken batches, as in `status.recoveries`.
    pub recoveries: Vec<RecoveryState>,
    /// The number of accepted batches of each coordination with a canary or `readyWhen.object`.
    pub accepted: Option<u32>,
    /// Whether the updated replicas that are not ready did not get ready in time.
    pub failed: bool,
    /// Whether the rollouts go back.
    pub rolled_back: bool,
    /// The objects that batches and steps wait for: they are objects of their own, and not in the state file.
    #[serde(skip)]
    pub objects: AwaitedObjects,
}

/// Counts of replicas of one role: the lowest ordinals of each kind, and the highest for `updated…`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RoleCounts {
    /// The number of replicas that exist; all desired ones by default.
    pub created: Option<u32>,
    /// The number of replicas that may run.
    pub released: u32,
    /// The number of replicas with a node.
    pub scheduled: u32,
    pub ready: u32,
    /// The number of replicas at the update revision; absent if no rollout is open.
    pub updated: Option<u32>,
    /// The number of ready replicas at the update revision.
    pub updated_ready: u32,
    /// The ordinals at the update revision, if these are not the highest.
    pub updated_ordinals: Option<Vec<u32>>,
    pub unavailable: u32,
}

/// The error of a group that is too large to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pods} pods are more than can be planned ({MOST_PODS})")]
pub struct TooLarge {
    pub pods: u64,
}

/// The maximum number of pods of one group: above the largest cluster that Kubernetes supports.
pub const MOST_PODS: u64 = 200_000;

impl ObservedCounts {
    /// Returns the replicas of each role that may run.
    pub fn released(&self) -> BTreeMap<String, u32> {
        let of = |counts: &RoleCounts| counts.released.max(counts.scheduled).max(counts.ready);
        self.roles.iter().map(|(role, counts)| (role.clone(), of(counts))).collect()
    }

    /// Returns the accepted batches as a status keeps them.
    pub(in crate::plan) fn accepted(&self, group: &Group) -> Vec<CoordinationState> {
        let asked = group.batched().filter(|(_, batching)| batching.asks_acceptance());
        let state = |(coordination, _): (&Coordination, &Batching)| CoordinationState {
            name: coordination.display_name(),
            accepted: self.accepted,
            ..CoordinationState::default()
        };
        asked.map(state).collect()
    }

    /// Returns the counts as a view of pods. `sizes` holds the pods of one replica by role; the default is 1.
    ///
    /// # Errors
    ///
    /// Fails when the group has too many pods.
    pub fn view(&self, group: &Group, sizes: &BTreeMap<String, u32>) -> Result<GroupView, TooLarge> {
        let roles: Vec<_> = group
            .roles
            .iter()
            .map(|role| {
                let counts = self.roles.get(&role.name).cloned().unwrap_or_default();
                // Only a pod with a node becomes ready, and only a released pod gets a node.
                let scheduled = counts.scheduled.max(counts.ready);
                let counts = RoleCounts { scheduled, released: counts.released.max(scheduled), ..counts };
                let size = sizes.get(&role.name).copied().unwrap_or(1).max(1);
                (role, size, counts.created.unwrap_or(role.desired), counts)
            })
            .collect();
        let pods = roles.iter().map(|(_, size, created, _)| u64::from(*size) * u64::from(*created));
        let pods = pods.fold(0, u64::saturating_add);
        if pods > MOST_PODS {
            return Err(TooLarge { pods });
        }
        let mut pods = GroupPods::default();
        for (role, size, created, counts) in &roles {
            let replicas = (0..*created).flat_map(|ordinal| (0..*size).map(move |member| (ordinal, member)));
            for (ordinal, member) in replicas {
                pods.add(&Arc::new(PodFacts {
                    pod: name(&role.name, ordinal, member, *size),
                    identity: PodIdentity {
                        group: group.key.clone(),
                        role: Some(role.name.as_str().into()),
                        ordinal: Some(ordinal),
                        member: (*size > 1).then_some(member),
                        replica_size: *size,
                        made_at_once: *size > 1,
                        unnumbered: None,
                        named_by_us: true,
                    },
                    held: ordinal >= counts.released && group.batch_size(&role.name).is_some(),
                    scheduled: ordinal < counts.scheduled,
                    ready: ordinal < counts.ready,
                    labelled: group.batch_size(&role.name).map(|size| LabelledPlace::at(size, ordinal)),
                    ..PodFacts::default()
                }));
            }
        }
        let mut view = GroupView::build(group, &pods);
        for (role, _, _, counts) in roles {
            if let Some(seen) = view.roles.get_mut(&role.name) {
                seen.committed = Some(counts.released);
            }
        }
        Ok(view)
    }
}

/// Returns a pod name as given by a StatefulSet or a LeaderWorkerSet.
fn name(role: &str, ordinal: u32, member: u32, size: u32) -> PodRef {
    let name = if size > 1 { format!("{role}-{ordinal}-{member}") } else { format!("{role}-{ordinal}") };
    PodRef { name: name.into(), uid: format!("{role}/{ordinal}/{member}").into() }
}
