//! The decision for one group.

use std::collections::BTreeMap;

use crate::model::HoldReason;
use crate::plan::decide::acceptance::AcceptanceWait;
use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::held::Held;
use crate::plan::decide::lacking::Lacking;
use crate::plan::decide::missing_pods;
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::{Pin, Placed};
use crate::plan::decide::progression::Targets;
use crate::plan::decide::surplus::Surplus;
use crate::plan::elastic::ElasticPlan;
use crate::plan::provision::ProvisionPlan;
use crate::plan::recovery::RecoveryPlan;
use crate::plan::rollout::RolloutPlan;
use crate::plan::view::{HeldPod, Lack, PodRef};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub pod: HeldPod,
    /// Whether the release needs no commit: the replica was released before, or no coordination batches it.
    pub at_once: bool,
    /// The domain or node that the pod is bound to.
    pub pin: Pin,
}

impl Release {
    /// Returns the release of a pod that needs no commit and is bound to no place.
    pub(super) fn at_once(pod: HeldPod) -> Self {
        Self { pod, at_once: true, pin: Pin::new() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Targets by role and coordination.
    pub targets: Targets,
    /// Released counts by batched role: committed before any pod is released under them.
    pub released: BTreeMap<String, u32>,
    /// Pods to release, lowest ordinal first. They include pods whose release was refused or waits for a PodGroup; these are
    /// tried again.
    pub release: Vec<Release>,
    /// Held pods that were created for another batch or before their group: they stay held until they are recreated. Each says
    /// whether it lacks the variables of its group.
    pub mis_stamped: Vec<(PodRef, bool)>,
    /// The reasons why pods are held, including pods whose release was refused or waits for a PodGroup.
    pub held: Vec<Held>,
    /// The reason why the next batch of a coordination waits for its turn, even without pods, by the position of the
    /// coordination in the list of the group.
    pub turns: BTreeMap<usize, HoldReason>,
    /// The state of the open rollouts, and how far each role may go.
    pub rollout: RolloutPlan,
    /// Replicas that may run and lack pods.
    pub missing_pods: Vec<MissingPods>,
    /// The reasons for missing pods, as far as they are known.
    pub diagnoses: Vec<Diagnosis>,
    /// Units that lack pods and are released as a whole.
    pub incomplete: Vec<AllOrNothing>,
    /// Pods beyond the desired replicas that a rollout may have created.
    pub surplus: Vec<Surplus>,
    /// The domains of the batches that must share one.
    pub placed: Placed,
    /// The plan for the workloads, if they are scaled.
    pub elastic: Option<ElasticPlan>,
    /// The batches to recreate, and the progress of each.
    pub recovery: RecoveryPlan,
    /// The requests for nodes.
    pub provision: ProvisionPlan,
    /// Workloads that roles lack.
    pub lacking: Vec<Lacking>,
    /// Roles whose controllers wait for held pods before they replace old ones below.
    pub behind: Vec<String>,
}

impl Decision {
    /// Reports whether a coordination, as position in the list of the group, holds any pod of a role.
    pub fn holds(&self, coordination: usize, role: &str) -> bool {
        let is_its = |held: &&Held| held.coordination.as_ref().is_some_and(|of| of.index == coordination);
        self.held.iter().filter(is_its).any(|held| held.pods.has_role(role))
    }

    /// Returns what the object of `readyWhen` lacks, before which held pods may not go.
    pub fn lack(&self, held: &Held) -> Option<&Lack> {
        let of = held.coordination.as_ref().filter(|_| held.reason == HoldReason::SegmentNotAccepted)?;
        match self.targets.coordination(of.index)?.acceptance.wait.as_ref()? {
            AcceptanceWait::Object(lack) => Some(lack),
            AcceptanceWait::Canary(_) => None,
        }
    }

    /// Reports whether all that is held waits for the end of a pause after a canary.
    pub fn pauses(&self) -> bool {
        let pauses = |held: &Held| matches!(held.reason, HoldReason::CanaryPaused | HoldReason::BlockedByCoordination);
        self.targets.pauses().next().is_some() && self.held.iter().all(pauses)
    }

    /// Returns why pods do not appear, as text by role.
    pub fn diagnosis_texts(&self) -> impl Iterator<Item = (&Diagnosis, String)> {
        self.diagnoses
            .iter()
            .filter_map(|diagnosis| Some((diagnosis, missing_pods::of(&self.missing_pods, diagnosis)?.text(diagnosis))))
    }
}
