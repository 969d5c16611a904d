//! Rules of KAI PodGroups, and of what pods name.

mod constraints;
mod counts;
mod leaf;
mod named;
mod sets;
mod tree;

use std::collections::BTreeSet;

use super::decode::{DecodeError, decode};
use super::judged::JudgedObject;
use super::question::{Judged, Operation, Question};
use super::rule::{Rule, run};
use super::{KaiDialect, Need, World};
use crate::api;
use crate::api::pod_group::PodGroupSpec;
use crate::model::{Dialect, GangTree};

/// A PodGroup as it is judged.
pub(super) struct JudgedPodGroup {
    tree: GangTree,
    /// True when it replaces another version: some counts are then warned about only, as KAI's own webhook does.
    update: bool,
}

/// Rules of PodGroups, one row for each.
const RULES: &[Rule<JudgedPodGroup>] = &[
    Rule::error("podgroup-name", "subgroup names are unique and fit a label", tree::names),
    Rule::error("podgroup-parent", "the parent of a subgroup exists", tree::parents),
    Rule::error("podgroup-cycle", "no subgroup is above itself", tree::cycles),
    Rule::either("podgroup-min-member", "no gang asks for more members than it can have", counts::minimums),
    Rule::either("podgroup-constraint", "a constraint names a level, and a part of the PodGroup", constraints::levels),
    Rule::error("podgroup-set", "sets of subgroups are apart", sets::apart),
    Rule::warning("podgroup-backoff", "schedulingBackoff is -1 or 1", counts::backoff),
];

/// The rule that pods are refused by before anything that they name is looked up.
const NAMES: Rule<api::Pod> =
    Rule::either("pod-names", "what a pod names can be the name of an object", named::objects);

/// Rules of pods that name a group or a PodGroup.
const POD_RULES: &[Rule<api::Pod>] =
    &[NAMES, Rule::error("podgroup-leaf", "a pod of a PodGroup with subgroups is in one of its leaves", leaf::pods)];

/// Judges what a pod names, which takes no other object.
pub fn judge_names(pod: &api::Pod) -> Judged {
    Judged::of(run(&[NAMES], pod, &World::default()))
}

impl KaiDialect {
    /// The dialect of a PodGroup: the chosen one, else that of the installed CRD, else by the PodGroup's own fields;
    /// `None` when nothing tells, and only what all have in common is judged.
    pub fn resolve(self, crd: Option<Dialect>, spec: &PodGroupSpec) -> Option<Dialect> {
        self.chosen().or(crd).or_else(|| Dialect::of_object(spec))
    }

    /// The one that was chosen for all PodGroups.
    pub fn chosen(self) -> Option<Dialect> {
        match self {
            Self::Proposal => Some(Dialect::Proposal),
            Self::Upstream => Some(Dialect::Upstream),
            Self::Pods => Some(Dialect::Pods),
            Self::Auto => None,
        }
    }
}

impl JudgedObject for JudgedPodGroup {
    const TITLE: &'static str = "podgroup";
    const RULES: &'static [Rule<Self>] = RULES;

    fn read(question: Question<'_>, json: &str, world: &World) -> Result<Self, DecodeError> {
        let group = decode::<api::PodGroup>(json)?;
        let dialect = world.options.kai_dialect.resolve(world.kai_crd, &group.spec);
        let update = question.operation == Operation::Update;
        Ok(Self { tree: GangTree::from_pod_group(&group, dialect), update })
    }

    /// Those without subgroups are none of our business, unless they count them all the same.
    fn passes(&self) -> bool {
        let counts_subgroups = self.tree.dialect == Some(Dialect::Upstream) && self.tree.min_sub_group.is_some();
        self.tree.deleting || (self.tree.is_flat() && !counts_subgroups)
    }

    /// The order of the levels that its constraints name.
    fn needs(&self, _: Option<&Self>, _: &World) -> Vec<Need> {
        let names: BTreeSet<_> =
            constraints::all(&self.tree).filter_map(|(_, constraint)| constraint.topology.clone()).collect();
        names.into_iter().flat_map(|name| [Need::ClusterTopology(name.clone()), Need::KaiTopology(name)]).collect()
    }
}

impl JudgedObject for api::Pod {
    const TITLE: &'static str = "podgroup";
    const RULES: &'static [Rule<Self>] = POD_RULES;

    fn read(_: Question<'_>, json: &str, _: &World) -> Result<Self, DecodeError> {
        decode(json)
    }

    /// Later its subgroup is a fact.
    fn is_judged_at(operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self, _: Option<&Self>, _: &World) -> Vec<Need> {
        leaf::pod_group(self).into_iter().map(Need::PodGroup).collect()
    }
}
