//! Rules of groups: RoleBasedGroup and RoleCoordination.

mod advice;
mod bounds;
mod by_hand;
mod change;
mod claims;
mod conflicts;
mod deadlocks;
mod discovery;
mod elastic;
mod form;
mod guarded;
mod needs;
mod on_failure;
mod placement;
mod provision;
mod ready_when;
mod recovery;
mod rollout;
mod rollout_by;
mod rollout_steps;
mod shape;
mod values;
mod workload_name;

use super::carrier::read_group;
use super::decode::DecodeError;
use super::judged::JudgedObject;
use super::question::Question;
use super::rule::{ChangeRule, Rule, either, error, of_reading, warning};
use super::{Need, Violation, World, engine};
use crate::model::Group;
use crate::model::fault::Fault;

pub use needs::needs_of_group;

/// Rules that run before all others.
const SIZE_RULES: &[Rule<Group>] =
    &[error("group-bounds", "roles, coordinations and names are not too many to be judged", bounds::size)];

const RULES: &[Rule<Group>] = &[
    error("group-shape", "roles are well-formed, and fields that exclude each other are not both set", shape::shape),
    warning("group-reference", "the group that is referred to exists", shape::reference),
    error(
        "group-claimed-twice",
        "a group has one coordinating object, and a workload is in one group",
        claims::claimed_once,
    ),
    error("coordination-name", "names are unique DNS labels, there where something is named after them", form::name),
    error("coordination-type", "type matches the strategy", form::kind),
    either("coordination-role-unknown", "every role named in a coordination exists", values::roles_exist),
    error("coordination-roles-mismatch", "roles are those of the size map, two or more", form::roles),
    error("coordination-strategy", "one strategy that makes batches, with its required fields", form::strategy),
    error("segment-size", "sizes, ratios and steps are at least 1", values::sizes_are_positive),
    of_reading("progression", "progression and batchMode are known words"),
    of_reading("constraint-mode", "constraintMode is hard or soft"),
    of_reading("affinity-strategy", "topologyAffinity.strategy is a known word"),
    error("label-key", "topology keys are label keys", values::label_keys),
    of_reading("pod-group-policy", "podGroupPolicy names one known scheduler and a known level"),
    either(
        "when-no-fit",
        "whenNoFit is a known word, and stands where batches must share a domain or go whole",
        values::when_no_fit,
    ),
    either(
        "provision",
        "requests for nodes have a known kind, a class and times, and can be made",
        provision::provision,
    ),
    error("provision-rights", "the author may create the requests for nodes", provision::rights),
    error(
        "recovery",
        "recovery has a known policy, a limit and durations, and its author may delete pods",
        recovery::recovery,
    ),
    either(
        "ready-when",
        "readyWhen and soak have valid times and names, and stand where they have an effect; the author may get the object",
        ready_when::ready_when,
    ),
    error("segment-size-conflict", "coordinations agree on the batch size of a role", conflicts::sizes_agree),
    error("progression-conflict", "coordinations agree on the progression", conflicts::progressions_agree),
    error("topology-conflict", "a role is in at most one coordination with topology", conflicts::one_topology),
    error("rolling-update-format", "bounds are percentages or numbers of replicas", rollout::format),
    either("rollout-by", "by is a known word, and segments that are updated as a whole can be", rollout_by::by),
    error(
        "rollout-steps",
        "the steps of a rollout raise the shares of its roles, and lead to the end",
        rollout_steps::steps,
    ),
    either(
        "on-failure",
        "onFailure is a known word and failAfter a duration, and both stand where they have an effect",
        on_failure::on_failure,
    ),
    error("rollback-right", "the author of a rollout that goes back may delete pods", on_failure::rights),
    error("rollback-by-hand", "whoever asks for a rollback by hand may delete pods", by_hand::rollback),
    error("resume-by-hand", "whoever ends a wait by hand may delete pods", by_hand::resume),
    error("role-update-strategy", "a coordinated role has no update strategy of its own", rollout::own_strategy),
    warning("rollout-kind", "a coordinated role is of a kind with a partition", rollout::kind),
    warning("rollout-unclaimed", "a coordinated workload says that it is", rollout::claimed),
    error("lws-surge", "a coordinated LeaderWorkerSet has maxSurge 0", rollout::surge),
    warning("partition-in-manifest", "a coordinated workload's manifest sets no partition", rollout::partition),
    either("topology-reference", "the ClusterTopology exists, is valid and has the layer", placement::reference),
    either("topology-twice", "nobody else places pods that must share a domain", placement::placed_twice),
    warning("topology-ordinals", "roles that must share a domain have ordinals", placement::topology_ordinals),
    error("pod-group-conflict", "a role is in at most one coordination with podGroupPolicy", conflicts::one_gang),
    error("pod-group-ordinals", "roles with podGroupPolicy have ordinals", placement::gang_ordinals),
    error("pod-group-level", "a PodGroup for each replica has several pods", placement::gang_level),
    warning("pod-group-definition", "the PodGroups that are made are served", placement::gang_definition),
    error("pod-group-rights", "the author may create the PodGroups that are made", placement::rights),
    error("dependency-deadlock", "roles of one batch do not depend on each other", deadlocks::dependencies),
    either("whole-group-gang", "no gang over the whole group next to batches", deadlocks::gang),
    either("incremental-creation", "the pods of a batch are made together", deadlocks::one_by_one),
    warning("segment-remainder", "replicas are a multiple of the batch size", advice::remainder),
    warning("segment-ratio", "roles run out at the same batch", advice::ratio),
    warning("disruption-budget", "no disruption budget counts held pods", advice::budgets),
    either("segments-scale", "segments that are wanted can be had, and the author may scale them", elastic::scale),
    warning(
        "segments-autoscaler",
        "no autoscaler scales a workload that is scaled with its group, and one at most the group",
        elastic::autoscalers,
    ),
    either("engine", "the engine of a role is known, its settings are valid, and its pods have them", engine::of_roles),
    warning("discovery-service", "the addresses that pods are given resolve", discovery::addresses),
    warning(
        "workload-name",
        "the names that pods get from the name of their workload are not too long",
        workload_name::lengths,
    ),
    warning("discovery-scope", "discovery-scope stands where it has an effect", discovery::scope),
    warning("group-order", "a group stands before the workloads whose pods get variables of it", advice::order),
    warning("capacity", "the batches fit into the room that nodes have left", advice::capacity),
    warning("foreign-gate", "no other controller gates pods that go as a whole", advice::foreign_gates),
    warning("workload-not-labelled", "pods say which group and role they are of", advice::labelled),
];

const CHANGE_RULES: &[ChangeRule<Group>] =
    &[error("batch-change", "batches with topology do not change while they have pods", change::batches)];

impl JudgedObject for Group {
    const TITLE: &'static str = "group";
    const SIZE_RULES: &'static [Rule<Self>] = SIZE_RULES;
    const RULES: &'static [Rule<Self>] = RULES;
    const CHANGE_RULES: &'static [ChangeRule<Self>] = CHANGE_RULES;

    fn read(question: Question<'_>, json: &str, world: &World) -> Result<Self, DecodeError> {
        read_group(question.kind, json, world)
    }

    fn passes(&self) -> bool {
        self.deleting
    }

    fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn needs(&self, old: Option<&Self>, world: &World) -> Vec<Need> {
        let mut needs = needs::needs(self, old);
        // Without this right the autoscalers may not be listed, and they do not matter.
        if world.options.allowed.scale && self.elastic.is_some() {
            needs.push(Need::Autoscalers { namespace: self.key.namespace.to_string() });
        }
        needs
    }

    fn keeps(&self, old: &Self, missing: &Violation) -> bool {
        guarded::is_kept(old, self, missing)
    }
}
