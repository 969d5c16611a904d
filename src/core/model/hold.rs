//! Reasons for holding pods: one list for condition, Event, metric and every command, with a row of what is so of each.

use super::GroupKey;
use super::words::words;

words! {
/// Reason for holding a batch, in order of precedence: reasons on which a person has to act come first.
pub enum HoldReason {
    /// The group that the pods name does not exist.
    GroupMissing,
    /// The group that the pods name does not have their role.
    UnknownRole,
    /// The pods were not created by the workload of their role, so they are not its replicas.
    NotAReplica,
    /// The stored group breaks a rule.
    InvalidCoordination,
    /// A workload that a role refers to does not exist: the desired replicas of the role are unknown.
    WorkloadMissing,
    /// The pods of a workload do not name their group and role: nothing holds them.
    WorkloadNotLabelled,
    /// The topology layer that the batch must share does not exist: its nodes are unknown.
    TopologyMissing,
    /// The pods were created for another batch than the one they are in now.
    StampMismatch,
    /// The PodGroup of the batch could not be created: the pods would be scheduled without it.
    PodGroupMissing,
    /// The API server refused the release.
    PatchFailed,
    /// A quota leaves no room for pods that others wait for, and the held pods use it up.
    QuotaDeadlock,
    /// No domain has room for the batch.
    NoRoom,
    /// No domain has room for the batch, and nodes are requested for it.
    NodesRequested,
    /// The batch was given room, but pods of it are not bound in time.
    PlacedNotBound,
    /// The batch is in one domain, and pods of it run in another.
    BatchSplit,
    /// Other controllers gate pods of the batch and may choose their nodes: the batch is placed after that.
    GatedByOthers,
    /// It is not known yet whether there is room for the batch.
    RoomUnknown,
    /// The batch lost a replica and is recreated: its new pods wait for each other.
    Recovering,
    /// The workload created more replicas than the group declares.
    BeyondDesired,
    /// Fewer segments are wanted, but none is removed for now.
    ScaleInDeferred,
    /// A rollout cannot go on: its workload waits for held replicas with higher ordinals.
    RolloutBehindHeldBatch,
    /// The segment before is ready, and its object does not have the condition that it waits for.
    SegmentNotAccepted,
    /// The first segment is a canary, and a pause follows it.
    CanaryPaused,
    /// A role has fewer replicas than the batch takes: the roles may be scaled one after another, and the batch waits for that.
    SegmentGrowing,
    /// Pods of the batch were made of an old template: the rollout replaces them before they run.
    SegmentOutdated,
    /// Another coordination that shares a role waits.
    BlockedByCoordination,
    /// Replicas of an earlier segment are missing or not ready.
    PreviousSegmentNotReady,
    /// Replicas of an earlier deploy step are missing or not scheduled.
    PreviousStepNotScheduled,
    /// Pods of the batch do not exist yet.
    IncompleteBatch,
}
}

/// What is so of a reason beyond its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Only the loop finds it, from its own attempts or from the duration of a state; other readers take it from the status.
    ByLoop,
    /// It is told before the pods of the batch are created.
    OfUnmade,
    /// It may apply without a pod: to a batch whose pods do not exist yet, to a batch with room but without a node, or to a
    /// rollout.
    WithoutPods,
    /// It is a wait for a turn, which was asked for and ends with a release.
    IsTurn,
    /// It is expected too: a person need not look at it.
    IsExpected,
    /// It ends only by a person, and no other text of the condition covers it.
    EndsByPerson,
    /// Pods that do not appear may be its cause.
    AwaitsPods,
}

/// What happens next, and what the user can do.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// What rolegate does next, and when.
    pub next: &'static str,
    /// What the user can do, best choice first. `GROUP` and `NAMESPACE` are placeholders.
    pub you_can: &'static [&'static str],
}

impl Advice {
    /// Returns what the user can do for this group.
    pub fn you_can(&self, group: &GroupKey) -> Vec<String> {
        let GroupKey { namespace, name } = group;
        let filled =
            |line: &&str| line.replace("GROUP", &format!("{name} -n NAMESPACE")).replace("NAMESPACE", namespace);
        self.you_can.iter().map(filled).collect()
    }
}

/// All that is said and asked of a reason.
#[derive(Clone, Copy, Debug)]
pub struct ReasonRow {
    facts: &'static [Fact],
    pub advice: Advice,
}

const fn row(facts: &'static [Fact], next: &'static str, you_can: &'static [&'static str]) -> ReasonRow {
    ReasonRow { facts, advice: Advice { next, you_can } }
}

/// What the user can do about an object that a batch waits for.
pub const LOOK: &str = "look at the object that the message names: `kubectl get KIND NAME -n NAMESPACE -o yaml`";

impl HoldReason {
    pub fn is(self, fact: Fact) -> bool {
        self.row().facts.contains(&fact)
    }

    /// Reports whether a person should look at the hold.
    pub fn is_warning(self) -> bool {
        !(self.is(Fact::IsTurn) || self.is(Fact::IsExpected))
    }

    /// Returns the row of the reason.
    #[expect(clippy::too_many_lines, reason = "a table: a row for each reason")]
    pub const fn row(self) -> ReasonRow {
        use Fact::{AwaitsPods, ByLoop, EndsByPerson, IsExpected, IsTurn, OfUnmade, WithoutPods};
        match self {
            Self::GroupMissing => row(
                &[],
                "it is planned as soon as the missing object appears; `serve --missing-group` limits the wait for a group that never comes",
                &[
                    "apply the group, or the workload that it refers to",
                    "correct the group's name in the labels of the pod template, then delete the held pods: they keep their group and role",
                ],
            ),
            Self::UnknownRole => row(
                &[],
                "it goes by its turn as soon as the group has the role; `serve --unknown-role=pass` releases such pods",
                &[
                    "add the role to the group",
                    "correct the role's name in the labels of the pod template, then delete the held pods: they keep their group and role",
                ],
            ),
            Self::NotAReplica => row(
                &[],
                "it stays held: a replica's place, and its room, are for the pods that the workload makes",
                &[
                    "delete the pod",
                    "make the copy without the labels of its group: `kubectl debug` copies them only with `--keep-labels`",
                ],
            ),
            Self::InvalidCoordination => row(
                &[],
                "no new batch goes before the group is valid; pods of batches that ran are replaced meanwhile",
                &["correct the group; `rolegate check FILE` judges it before it is applied"],
            ),
            Self::WorkloadMissing => row(
                &[WithoutPods, EndsByPerson],
                "it is planned as soon as the missing object appears",
                &[
                    "apply the workload or RoleBasedGroup that the group refers to, in the namespace of the group",
                    "correct its kind and name in the group",
                ],
            ),
            Self::WorkloadNotLabelled => row(
                &[WithoutPods, EndsByPerson],
                "pods that name no group are not held, and count when they run",
                &[
                    "add the labels to the pod template of the workload: its pods are then recreated, and held until their turn",
                ],
            ),
            Self::TopologyMissing => row(
                &[EndsByPerson],
                "it is planned as soon as the layer exists; pods of before lack its affinity, and must be recreated",
                &[
                    "apply the ClusterTopology, then delete the held pods: their workload recreates them",
                    "correct the names of topology and layer in the group",
                ],
            ),
            Self::StampMismatch => row(
                &[EndsByPerson],
                "it stays held: neither the affinity nor the variables of a pod can be changed; with `serve --recreate-mis-stamped` rolegate recreates such pods, and with `--allow recovery` those that are older than their group",
                &["delete the pod: its workload recreates it for its present batch, with what its group gives"],
            ),
            Self::PodGroupMissing => row(
                &[ByLoop, EndsByPerson],
                "rolegate retries within half a minute, and releases the batch when the PodGroup exists",
                &[
                    "install the definition of its kind, or remove `podGroupPolicy` from the group",
                    "delete or rename the PodGroup of that name, if it is another object's",
                    "see the answer of the API server in the log of rolegate",
                ],
            ),
            Self::PatchFailed => row(
                &[ByLoop],
                "rolegate retries the release within half a minute",
                &["exempt rolegate's account from the webhook or policy that the answer names, if it does"],
            ),
            Self::QuotaDeadlock => row(
                &[ByLoop],
                "it continues when the quota has room: Kueue sees that at once, other controllers retry at growing intervals",
                &[
                    "raise the quota of the namespace or of Kueue's queue: held pods count in it",
                    "scale the group down to what the quota allows",
                ],
            ),
            Self::NoRoom => row(
                &[ByLoop, OfUnmade, WithoutPods],
                "it goes as a whole when there is room for all its pods, which an elastic group creates only then; rolegate checks again whenever room is freed",
                &[
                    "`rolegate fit GROUP` shows how to make room",
                    "a domain that waits for pods to be bound takes it when they are, whatever `whenNoFit` says: see why those have no node",
                    "`whenNoFit: preempt` lets it take the place of pods of lower priority, if none of its own has preemptionPolicy Never; `release` lets it go to the domain with room for most of it",
                    "`whenNoFit: provision` requests nodes for it: this needs an autoscaler that serves the requests, and `--allow provision`",
                ],
            ),
            Self::NodesRequested => row(
                &[ByLoop, OfUnmade, WithoutPods, IsExpected],
                "it goes as a whole when its nodes are there; if some do not come in time, the request is given up and made again later",
                &[
                    "see what the autoscaler says of the request: `kubectl get capacitybuffers,provisioningrequests -n NAMESPACE -o yaml`",
                    "see whether limits or quotas of the nodes allow as many: `rolegate fit GROUP` says what is missing",
                ],
            ),
            Self::PlacedNotBound => row(
                &[ByLoop, WithoutPods],
                "its room is given to others; its pods still wait for the scheduler",
                &[
                    "look at the pods without a node: `kubectl describe pod -n NAMESPACE` shows the reason of the scheduler",
                    "delete them: they are recreated and placed again; with `--allow recovery` rolegate does this",
                ],
            ),
            Self::BatchSplit => row(
                &[ByLoop, WithoutPods],
                "its pods serve where they run; with `--allow recovery` those outside of its domain are recreated one at a time",
                &[
                    "delete the pods that the message names, one after another: they are recreated in the domain of their batch",
                ],
            ),
            Self::GatedByOthers => row(
                &[IsExpected],
                "it goes as a whole when the last of these gates is lifted",
                &[
                    "see what the controller of the gate waits for; of Kueue: `kubectl get workloads.kueue.x-k8s.io -n NAMESPACE`",
                    "remove the gate from the pod template, if its controller waits for rolegate in turn",
                ],
            ),
            Self::RoomUnknown => row(
                &[ByLoop, WithoutPods],
                "rolegate checks again when nodes and pods have been listed",
                &["check that rolegate may list and watch nodes: `rolegate doctor`"],
            ),
            Self::Recovering => row(
                &[ByLoop],
                "its new pods go together when all of them exist and none of the old ones is left",
                &[
                    "see the cause of the loss in the Event `BatchBroken` or in `status.recoveries`",
                    "raise `maxConcurrent` of the recovery, or `--max-recoveries` of rolegate, if it waits for another recovery",
                    "look at old pods that do not end: pods of a node that does not answer stay until the node is deleted",
                    "set `recovery.policy: None` to let the pods go one by one",
                ],
            ),
            Self::BeyondDesired => row(
                &[],
                "it goes when the group declares this many replicas",
                &["raise `replicas` of the role in the group", "scale the workload down"],
            ),
            Self::ScaleInDeferred => row(
                &[WithoutPods, IsExpected],
                "segments are removed when the rollout is over",
                &["see the rollout in `rolegate status GROUP`", "ask for the segments again"],
            ),
            Self::RolloutBehindHeldBatch => row(
                &[ByLoop, WithoutPods, EndsByPerson],
                "the rollout goes on when these replicas run, or are no longer desired",
                &[
                    "make room for the held replicas",
                    "delete its old pods, by the command of the message, one after another; with `--allow recovery` rolegate does this in step",
                    "scale the role to the replicas that run, in the group and in its workload; scale it up again afterwards",
                ],
            ),
            Self::SegmentNotAccepted => row(
                &[OfUnmade, IsTurn],
                "it goes when the object of the segment before has the condition of `readyWhen`",
                &[LOOK],
            ),
            Self::CanaryPaused => row(
                &[OfUnmade, IsTurn],
                "it goes when the canary was ready for `soak`, or when the pause is ended",
                &["end the pause: `rolegate resume GROUP`", "undo the release, if the canary is bad"],
            ),
            Self::SegmentGrowing => row(
                &[ByLoop, IsTurn],
                "it goes at once when its roles have all replicas that it takes, and as it is after `serve --settle`",
                &[
                    "scale its other roles as well: the message says how many replicas of each there are",
                    "scale all roles by one number: `segments`, or the roles of a RoleBasedGroup",
                ],
            ),
            Self::SegmentOutdated => row(
                &[ByLoop, IsTurn],
                "it goes when the rollout has replaced its old pods, which takes `--allow recovery`",
                &["look at the rollout with `rolegate status`: a role that it waits for is named there"],
            ),
            Self::BlockedByCoordination => row(
                &[IsTurn],
                "it continues when the other coordination does",
                &["look at the replicas that the other one waits for"],
            ),
            Self::PreviousSegmentNotReady => row(
                &[IsTurn, AwaitsPods],
                "the next batch goes at once when the last of these replicas is ready",
                &[
                    "look at the pods that are not ready: `kubectl describe pod -n NAMESPACE`",
                    "scale the group down to what fits",
                ],
            ),
            Self::PreviousStepNotScheduled => row(
                &[IsTurn, AwaitsPods],
                "the next step goes at once when the last of these replicas has a node",
                &[
                    "look at the pods without a node: `kubectl describe pod -n NAMESPACE` shows the reason of the scheduler",
                    "scale the group down to what fits",
                ],
            ),
            Self::IncompleteBatch => row(
                &[IsExpected, AwaitsPods],
                "it goes when all pods of the batch exist",
                &["look at the workload for a quota, a pause, or `podManagementPolicy: OrderedReady`"],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_advice_for_every_reason() {
        for reason in HoldReason::ALL {
            assert!(!reason.row().advice.you_can.is_empty(), "{reason}");
        }
    }

    #[test]
    fn commands_name_the_group_and_its_namespace() {
        let you_can = HoldReason::NoRoom.row().advice.you_can(&GroupKey::new("prod", "llm"));
        assert!(you_can.concat().contains("`rolegate fit llm -n prod`"), "{you_can:?}");
    }
}
