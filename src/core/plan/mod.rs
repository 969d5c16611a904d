//! Turns observations into decisions. Pure: no client, no clock.
//!
//! `view` observed state → `rollout` how far updates may go → `recovery` what is recreated → `elastic` what is scaled →
//! `decide` what is released and why the rest is held → `marks` labels of running pods → `status` status of the group →
//! `evaluate` all of these together → {`reconcile` actions of the loop, and their time; `simulate` the same without a cluster};
//! `provision` nodes for batches that fit nowhere; `placement` where released pods fit, `gangs` the same for the tree of a KAI
//! PodGroup

pub mod decide;
pub mod devices;
pub mod elastic;
pub mod evaluate;
pub mod gangs;
pub mod marks;
mod once;
pub mod placement;
pub mod provision;
pub mod reconcile;
pub mod recovery;
pub mod rollout;
pub mod simulate;
pub mod status;
#[cfg(test)]
mod test_support;
pub mod view;

pub use decide::DecisionContext;
pub use decide::batches::{Batch, BatchState, batches};
pub use decide::decision::{Decision, Release};
pub use decide::held::{CoordinationRef, Held};
pub use decide::held_pods::HeldPods;
pub use decide::missing_pods::{Diagnosis, MissingPods, WhyMissing};
pub use decide::placed::{Moved, Pin, Placed};
pub use decide::pod_groups::{BatchPodGroup, MemberEdit, MissingOwned};
pub use decide::progression::{CoordinationTarget, Targets, WaitsFor, targets};
pub use decide::waits::{Missing, waits_for};
pub use evaluate::{Evaluation, Observation, evaluate};
pub use placement::Sight;
pub use reconcile::action::{
    About, Action, Answer, Ended, Extent, MissingLabels, OwnedWrite, Question, StatusWrite, Step, Target,
};
pub use reconcile::dropped::StatusCarrier;
pub use reconcile::options::{IncompleteBatch, LoopOptions, MissingGroup};
pub use reconcile::reconciler::Reconciler;
pub use reconcile::subject::Subject;
pub use reconcile::uptime::Uptime;
pub use recovery::{BatchId, Deletion, Judged, Loss, RecoveryContext, RecoveryPlan, Suspect, Verdict};
pub use simulate::{Run, decide_once, simulate};
pub use view::{
    AwaitedObjects, GroupPods, GroupView, HeldPod, Lack, LackWhat, LastWords, Leaving, LossKind, NodeRefusal,
    ObservedCounts, PodFacts, PodRef, Replica, ReplicaIs, RoleView, SeenKind, SeenObject, Snapshot, kubelet_refusal,
};
