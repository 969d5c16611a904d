//! What is decided for one group.

use std::collections::BTreeMap;

use crate::model::HoldReason;
use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::held::Held;
use crate::plan::decide::lacking::Lacking;
use crate::plan::decide::missing_pods;
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::{Pin, Placed};
use crate::plan::decide::progression::Targets;
use crate::plan::decide::surplus::Surplus;
use crate::plan::elastic::ElasticPlan;
use crate::plan::recovery::RecoveryPlan;
use crate::plan::rollout::RolloutPlan;
use crate::plan::view::{HeldPod, PodRef};

/// A pod to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The pod.
    pub pod: HeldPod,
    /// True when it needs no commit: its replica was released before, or nothing batches it.
    pub at_once: bool,
    /// What it is bound to: a domain, or a node of it.
    pub pin: Pin,
}

/// One decision for one group.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Targets by role and coordination.
    pub targets: Targets,
    /// Released counts by batched role: to be committed before anything is released under them.
    pub released: BTreeMap<String, u32>,
    /// Pods to release, lowest ordinal first; those among them that were refused, or wait for their PodGroup, are tried again.
    pub release: Vec<Release>,
    /// Held pods that were made for another batch than theirs: they stay until they are made again.
    pub mis_stamped: Vec<PodRef>,
    /// Why the other held pods are held, and those that were refused or wait for their PodGroup.
    pub held: Vec<Held>,
    /// Why the next batch of a coordination waits for its turn, by the coordination's place in the group's list: also of a
    /// batch whose pods are not there yet.
    pub turns: BTreeMap<usize, HoldReason>,
    /// Where the open rollouts stand, and how far each role may go.
    pub rollout: RolloutPlan,
    /// Replicas that may run, and lack pods.
    pub missing_pods: Vec<MissingPods>,
    /// Why, as far as that was found out.
    pub diagnoses: Vec<Diagnosis>,
    /// What lacks pods and is released as a whole.
    pub incomplete: Vec<AllOrNothing>,
    /// Pods beyond the desired replicas that a rollout may have made.
    pub surplus: Vec<Surplus>,
    /// Where batches go that must share a domain.
    pub placed: Placed,
    /// What becomes of the workloads, where they are scaled.
    pub elastic: Option<ElasticPlan>,
    /// Which batches are made anew, and how far that is.
    pub recovery: RecoveryPlan,
    /// What roles lack of their workloads.
    pub lacking: Vec<Lacking>,
}

impl Decision {
    /// Why pods do not appear, role by role, in words.
    pub fn diagnosis_texts(&self) -> impl Iterator<Item = (&Diagnosis, String)> {
        self.diagnoses
            .iter()
            .filter_map(|diagnosis| Some((diagnosis, missing_pods::of(&self.missing_pods, diagnosis)?.text(diagnosis))))
    }
}
