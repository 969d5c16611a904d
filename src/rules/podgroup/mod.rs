//! Rules of KAI PodGroups and of the pods that name one (SPEC §2.3).

mod constraints;
mod counts;
mod leaf;
mod tree;

use super::judge::{DecodeError, Judged, Operation, Question, decode};
use super::rule::{Rule, run};
use super::{KaiDialect, World};
use crate::api::pod_group::{self, PodGroupSpec};
use crate::api::{self, ObjectKind};
use crate::model::{Dialect, GangTree, Levels};

/// A PodGroup as it is judged.
pub struct Subject {
    tree: GangTree,
    /// True when it replaces another version: some counts are then warned about only, as KAI's own webhook does.
    update: bool,
}

/// Rules of PodGroups, one row for each.
pub(super) const RULES: &[Rule<Subject>] = &[
    Rule::error("podgroup-name", "subgroup names are unique and fit a label", tree::names),
    Rule::error("podgroup-parent", "the parent of a subgroup exists", tree::parents),
    Rule::error("podgroup-cycle", "no subgroup is above itself", tree::cycles),
    Rule::either("podgroup-min-member", "no gang asks for more members than it can have", counts::minimums),
    Rule::either("podgroup-constraint", "a constraint names a level, and a part of the PodGroup", constraints::levels),
    Rule::error("podgroup-set", "sets of subgroups are apart", constraints::sets),
    Rule::warning("podgroup-backoff", "schedulingBackoff is -1 or 1", counts::backoff),
];

/// Rules of pods that name a PodGroup.
pub(super) const POD_RULES: &[Rule<api::Pod>] =
    &[Rule::error("podgroup-leaf", "a pod of a PodGroup with subgroups is in one of its leaves", leaf::pods)];

impl KaiDialect {
    /// The dialect of a PodGroup: the chosen one, else that of the installed CRD, else by the PodGroup's own fields;
    /// `None` when nothing tells, and only what both have in common is judged.
    pub fn resolve(self, crd: Option<Dialect>, spec: &PodGroupSpec) -> Option<Dialect> {
        match self {
            Self::Seed => Some(Dialect::Seed),
            Self::Upstream => Some(Dialect::Upstream),
            Self::Auto => crd.or_else(|| Dialect::of_object(spec)),
        }
    }
}

/// Judges a PodGroup. One without subgroups passes untouched.
pub(super) fn judge(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    let update = question.operation == Operation::Update;
    let read = |json| {
        let group = decode::<api::PodGroup>(json)?;
        let dialect = world.options.kai_dialect.resolve(world.kai_crd, &group.spec);
        Ok(Subject { tree: GangTree::from_pod_group(&group, dialect), update })
    };
    let subject = read(question.object)?;
    if question.operation == Operation::Delete || subject.tree.deleting || subject.tree.is_flat() {
        return Ok(Judged::default());
    }
    let judged = Judged::of(run(RULES, &subject, world));
    // An old object that cannot be read forgives nothing.
    let old = question.old.and_then(|old| read(old).ok());
    Ok(match old {
        Some(old) => judged.forgive(&run(RULES, &old, world)),
        None => judged,
    })
}

/// Judges a pod at CREATE; later its subgroup is a fact.
pub(super) fn judge_pod(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    if question.operation != Operation::Create {
        return Ok(Judged::default());
    }
    Ok(Judged::of(run(POD_RULES, &decode::<api::Pod>(question.object)?, world)))
}

/// Takes in what these rules look at: PodGroups, topologies, and the CRD that tells the dialect.
pub(super) fn add_json(world: &mut World, api_version: &str, kind: &str, object: &str) {
    let is = |known: ObjectKind| known.kind == kind && known.api_version() == api_version;
    if is(pod_group::POD_GROUP) {
        if let Ok(group) = decode::<api::PodGroup>(object) {
            let dialect = world.options.kai_dialect.resolve(world.kai_crd, &group.spec);
            world.pod_groups.push(GangTree::from_pod_group(&group, dialect));
        }
    } else if is(pod_group::TOPOLOGY) {
        if let Ok(topology) = decode::<pod_group::Topology>(object) {
            let name = topology.metadata.display_name().to_owned();
            world.topology_levels.insert(name, Levels::from_topology(&topology));
        }
    } else if kind == "CustomResourceDefinition"
        && let Ok(crd) = decode::<serde_json::Value>(object)
        && crd.pointer("/metadata/name").and_then(serde_json::Value::as_str) == Some(&pod_group::POD_GROUP.crd_name())
    {
        world.kai_crd = Dialect::of_crd(&crd);
    }
}
