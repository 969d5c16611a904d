//! Advice for each hold reason: what happens next, and what the user can do.

use crate::model::{GroupKey, HoldReason};
use crate::plan::{Decision, Held, Lack, LackWhat};

#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// What rolegate does next, and when.
    pub next: &'static str,
    /// What the user can do, best choice first. `GROUP` and `NAMESPACE` are placeholders.
    you_can: &'static [&'static str],
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

/// Advice for every reason.
const ADVICE: &[(HoldReason, Advice)] = &[
    (
        HoldReason::GroupMissing,
        Advice {
            next: "it is planned as soon as the missing object appears; `serve --missing-group` limits the wait for a group that never comes",
            you_can: &[
                "apply the group, or the workload that it refers to",
                "correct the group's name in the labels of the pod template, then delete the held pods: they keep their group and role",
            ],
        },
    ),
    (
        HoldReason::UnknownRole,
        Advice {
            next: "it goes by its turn as soon as the group has the role; `serve --unknown-role=pass` releases such pods",
            you_can: &[
                "add the role to the group",
                "correct the role's name in the labels of the pod template, then delete the held pods: they keep their group and role",
            ],
        },
    ),
    (
        HoldReason::NotAReplica,
        Advice {
            next: "it stays held: a replica's place, and its room, are for the pods that the workload makes",
            you_can: &[
                "delete the pod",
                "make the copy without the labels of its group: `kubectl debug` copies them only with `--keep-labels`",
            ],
        },
    ),
    (
        HoldReason::InvalidCoordination,
        Advice {
            next: "no new batch goes before the group is valid; pods of batches that ran are replaced meanwhile",
            you_can: &["correct the group; `rolegate check FILE` judges it before it is applied"],
        },
    ),
    (
        HoldReason::WorkloadMissing,
        Advice {
            next: "it is planned as soon as the missing object appears",
            you_can: &[
                "apply the workload or RoleBasedGroup that the group refers to, in the namespace of the group",
                "correct its kind and name in the group",
            ],
        },
    ),
    (
        HoldReason::WorkloadNotLabelled,
        Advice {
            next: "pods that name no group are not held, and count when they run",
            you_can: &[
                "add the labels to the pod template of the workload: its pods are then recreated, and held until their turn",
            ],
        },
    ),
    (
        HoldReason::TopologyMissing,
        Advice {
            next: "it is planned as soon as the layer exists; pods of before lack its affinity, and must be recreated",
            you_can: &[
                "apply the ClusterTopology, then delete the held pods: their workload recreates them",
                "correct the names of topology and layer in the group",
            ],
        },
    ),
    (
        HoldReason::StampMismatch,
        Advice {
            next: "it stays held: neither the affinity nor the variables of a pod can be changed; with `serve --recreate-mis-stamped` rolegate recreates such pods, and with `--allow recovery` those that are older than their group",
            you_can: &["delete the pod: its workload recreates it for its present batch, with what its group gives"],
        },
    ),
    (
        HoldReason::PodGroupMissing,
        Advice {
            next: "rolegate retries within half a minute, and releases the batch when the PodGroup exists",
            you_can: &[
                "install the definition of its kind, or remove `podGroupPolicy` from the group",
                "delete or rename the PodGroup of that name, if it is another object's",
                "see the answer of the API server in the log of rolegate",
            ],
        },
    ),
    (
        HoldReason::QuotaDeadlock,
        Advice {
            next: "it continues when the quota has room: Kueue sees that at once, other controllers retry at growing intervals",
            you_can: &[
                "raise the quota of the namespace or of Kueue's queue: held pods count in it",
                "scale the group down to what the quota allows",
            ],
        },
    ),
    (
        HoldReason::GatedByOthers,
        Advice {
            next: "it goes as a whole when the last of these gates is lifted",
            you_can: &[
                "see what the controller of the gate waits for; of Kueue: `kubectl get workloads.kueue.x-k8s.io -n NAMESPACE`",
                "remove the gate from the pod template, if its controller waits for rolegate in turn",
            ],
        },
    ),
    (
        HoldReason::NoRoom,
        Advice {
            next: "it goes as a whole when there is room for all its pods, which an elastic group creates only then; rolegate checks again whenever room is freed",
            you_can: &[
                "`rolegate fit GROUP` shows how to make room",
                "a domain that waits for pods to be bound takes it when they are, whatever `whenNoFit` says: see why those have no node",
                "`whenNoFit: preempt` lets it take the place of pods of lower priority, if none of its own has preemptionPolicy Never; `release` lets it go to the domain with room for most of it",
                "`whenNoFit: provision` requests nodes for it: this needs an autoscaler that serves the requests, and `--allow provision`",
            ],
        },
    ),
    (
        HoldReason::NodesRequested,
        Advice {
            next: "it goes as a whole when its nodes are there; if some do not come in time, the request is given up and made again later",
            you_can: &[
                "see what the autoscaler says of the request: `kubectl get capacitybuffers,provisioningrequests -n NAMESPACE -o yaml`",
                "see whether limits or quotas of the nodes allow as many: `rolegate fit GROUP` says what is missing",
            ],
        },
    ),
    (
        HoldReason::PlacedNotBound,
        Advice {
            next: "its room is given to others; its pods still wait for the scheduler",
            you_can: &[
                "look at the pods without a node: `kubectl describe pod -n NAMESPACE` shows the reason of the scheduler",
                "delete them: they are recreated and placed again; with `--allow recovery` rolegate does this",
            ],
        },
    ),
    (
        HoldReason::BatchSplit,
        Advice {
            next: "its pods serve where they run; with `--allow recovery` those outside of its domain are recreated one at a time",
            you_can: &[
                "delete the pods that the message names, one after another: they are recreated in the domain of their batch",
            ],
        },
    ),
    (
        HoldReason::RoomUnknown,
        Advice {
            next: "rolegate checks again when nodes and pods have been listed",
            you_can: &["check that rolegate may list and watch nodes: `rolegate doctor`"],
        },
    ),
    (
        HoldReason::Recovering,
        Advice {
            next: "its new pods go together when all of them exist and none of the old ones is left",
            you_can: &[
                "see the cause of the loss in the Event `BatchBroken` or in `status.recoveries`",
                "raise `maxConcurrent` of the recovery, or `--max-recoveries` of rolegate, if it waits for another recovery",
                "look at old pods that do not end: pods of a node that does not answer stay until the node is deleted",
                "set `recovery.policy: None` to let the pods go one by one",
            ],
        },
    ),
    (
        HoldReason::BeyondDesired,
        Advice {
            next: "it goes when the group declares this many replicas",
            you_can: &["raise `replicas` of the role in the group", "scale the workload down"],
        },
    ),
    (
        HoldReason::RolloutBehindHeldBatch,
        Advice {
            next: "the rollout goes on when these replicas run, or are no longer desired",
            you_can: &[
                "make room for the held replicas",
                "delete its old pods, by the command of the message, one after another; with `--allow recovery` rolegate does this in step",
                "scale the role to the replicas that run, in the group and in its workload; scale it up again afterwards",
            ],
        },
    ),
    (
        HoldReason::SegmentGrowing,
        Advice {
            next: "it goes at once when its roles have all replicas that it takes, and as it is after `serve --settle`",
            you_can: &[
                "scale its other roles as well: the message says how many replicas of each there are",
                "scale all roles by one number: `segments`, or the roles of a RoleBasedGroup",
            ],
        },
    ),
    (
        HoldReason::SegmentOutdated,
        Advice {
            next: "it goes when the rollout has replaced its old pods, which takes `--allow recovery`",
            you_can: &["look at the rollout with `rolegate status`: a role that it waits for is named there"],
        },
    ),
    (
        HoldReason::BlockedByCoordination,
        Advice {
            next: "it continues when the other coordination does",
            you_can: &["look at the replicas that the other one waits for"],
        },
    ),
    (
        HoldReason::PreviousSegmentNotReady,
        Advice {
            next: "the next batch goes at once when the last of these replicas is ready",
            you_can: &[
                "look at the pods that are not ready: `kubectl describe pod -n NAMESPACE`",
                "scale the group down to what fits",
            ],
        },
    ),
    (
        HoldReason::SegmentNotAccepted,
        Advice {
            next: "it goes when the object of the segment before has the condition of `readyWhen`",
            you_can: &[LOOK],
        },
    ),
    (
        HoldReason::CanaryPaused,
        Advice {
            next: "it goes when the canary was ready for `soak`, or when the pause is ended",
            you_can: &["end the pause: `rolegate resume GROUP`", "undo the release, if the canary is bad"],
        },
    ),
    (
        HoldReason::PreviousStepNotScheduled,
        Advice {
            next: "the next step goes at once when the last of these replicas has a node",
            you_can: &[
                "look at the pods without a node: `kubectl describe pod -n NAMESPACE` shows the reason of the scheduler",
                "scale the group down to what fits",
            ],
        },
    ),
    (
        HoldReason::IncompleteBatch,
        Advice {
            next: "it goes when all pods of the batch exist",
            you_can: &["look at the workload for a quota, a pause, or `podManagementPolicy: OrderedReady`"],
        },
    ),
    (
        HoldReason::ScaleInDeferred,
        Advice {
            next: "segments are removed when the rollout is over",
            you_can: &["see the rollout in `rolegate status GROUP`", "ask for the segments again"],
        },
    ),
    (
        HoldReason::PatchFailed,
        Advice {
            next: "rolegate retries the release within half a minute",
            you_can: &["exempt rolegate's account from the webhook or policy that the answer names, if it does"],
        },
    ),
];

const LOOK: &str = "look at the object that the message names: `kubectl get KIND NAME -n NAMESPACE -o yaml`";
const CORRECT: &str = "correct `readyWhen.object` in the group";

/// What the user can do about an object that does not have its condition, by what is missing.
const OF_OBJECTS: &[(LackWhat, &[&str])] = &[
    (LackWhat::Look, &[LOOK]),
    (LackWhat::Watch, &["let rolegate watch its kind: `rolegate manifests --ready-kinds`", CORRECT]),
    (LackWhat::List, &["check that rolegate may list and watch its kind: `rolegate doctor`"]),
    (LackWhat::Object, &["apply it, with the definition of its kind if that is not served", CORRECT]),
    (LackWhat::Condition, &[LOOK, CORRECT]),
];

/// What rolegate does next when a step of a rollout waits for its object.
const OF_STEP: &str = "the next step begins when the object has the condition of `readyWhen`";

const UNKNOWN: Advice = Advice { next: "rolegate checks again whenever a pod or the group changes", you_can: &[] };

/// Returns the advice for a reason.
pub fn advice(reason: HoldReason) -> Advice {
    ADVICE.iter().find(|(known, _)| *known == reason).map_or(UNKNOWN, |(_, advice)| *advice)
}

/// Returns the advice for held pods: for an object that they wait for, by what is missing.
pub fn of_held(decision: &Decision, held: &Held) -> Advice {
    let advice = advice(held.reason);
    // A workload that does not exist has no pods to look at.
    let waits_for_pods = matches!(
        held.reason,
        HoldReason::PreviousSegmentNotReady | HoldReason::PreviousStepNotScheduled | HoldReason::IncompleteBatch
    );
    if waits_for_pods && decision.held.iter().any(|held| held.reason == HoldReason::WorkloadMissing) {
        return Advice { you_can: self::advice(HoldReason::WorkloadMissing).you_can, ..advice };
    }
    decision.lack(held).map_or(advice, |lack| Advice { you_can: of_object(lack.what), ..advice })
}

/// Returns the advice for a step of a rollout that waits for its object.
pub fn of_step(lack: &Lack) -> Advice {
    Advice { next: OF_STEP, you_can: of_object(lack.what) }
}

fn of_object(what: LackWhat) -> &'static [&'static str] {
    OF_OBJECTS.iter().find(|(known, _)| *known == what).map_or(&[], |(_, you_can)| *you_can)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_advice_for_every_reason() {
        for reason in HoldReason::ALL {
            assert!(!advice(*reason).you_can.is_empty(), "{reason}");
        }
    }

    #[test]
    fn who_waits_for_pods_of_a_workload_that_is_not_there_is_not_sent_to_look_at_pods() {
        let held = |reason| Held::new(reason, String::new(), Vec::new());
        let turn = held(HoldReason::PreviousSegmentNotReady);
        let advised = |reasons: &[HoldReason]| {
            let decision = Decision { held: reasons.iter().copied().map(held).collect(), ..Decision::default() };
            of_held(&decision, &turn).you_can.concat()
        };
        assert!(advised(&[turn.reason]).contains("kubectl describe pod -n NAMESPACE"));
        assert!(advised(&[turn.reason, HoldReason::WorkloadMissing]).starts_with("apply the workload"));
    }

    #[test]
    fn commands_name_the_group_and_its_namespace() {
        let you_can = advice(HoldReason::NoRoom).you_can(&GroupKey::new("prod", "llm"));
        assert!(you_can.concat().contains("`rolegate fit llm -n prod`"), "{you_can:?}");
    }
}
