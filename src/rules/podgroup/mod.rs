//! Rules of KAI PodGroups and of the pods that name one (SPEC §2.3).

mod constraints;
mod counts;
mod leaf;
mod sets;
mod tree;

use std::collections::BTreeSet;

use super::decode::{DecodeError, decode};
use super::question::{Judged, Operation, Question};
use super::rule::{Rule, run};
use super::{KaiDialect, Need, World};
use crate::api;
use crate::api::pod_group::PodGroupSpec;
use crate::model::{Dialect, GangTree};

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
    Rule::error("podgroup-set", "sets of subgroups are apart", sets::apart),
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
            Self::Proposal => Some(Dialect::Proposal),
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

/// What the rules of a PodGroup look up: the order of the levels that its constraints name.
pub(super) fn needs(question: Question<'_>, world: &World) -> Result<Vec<Need>, DecodeError> {
    let group = decode::<api::PodGroup>(question.object)?;
    let tree = GangTree::from_pod_group(&group, world.options.kai_dialect.resolve(world.kai_crd, &group.spec));
    let names: BTreeSet<_> =
        constraints::all(&tree).filter_map(|(_, constraint)| constraint.topology.clone()).collect();
    Ok(names.into_iter().flat_map(|name| [Need::ClusterTopology(name.clone()), Need::KaiTopology(name)]).collect())
}

/// What the rules of a pod look up: its PodGroup.
pub(super) fn needs_of_pod(question: Question<'_>, _: &World) -> Result<Vec<Need>, DecodeError> {
    if question.operation != Operation::Create {
        return Ok(Vec::new());
    }
    let pod = decode::<api::Pod>(question.object)?;
    Ok(leaf::pod_group(&pod).into_iter().map(Need::PodGroup).collect())
}
