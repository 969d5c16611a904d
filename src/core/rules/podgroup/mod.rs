//! Rules of KAI PodGroups, and of the names in pods.

mod constraints;
mod counts;
mod leaf;
mod named;
mod sets;
mod tree;

use std::collections::BTreeSet;

use super::decode::{DecodeError, decode};
use super::judged::{JudgedObject, run};
use super::question::{Judged, Operation, Question};
use super::rule::{Rule, either, error, warning};
use super::{KaiDialect, Need, RuleSettings, Severity, Violation, World, engine};
use crate::api;
use crate::api::pod_group::PodGroupSpec;
use crate::model::{Dialect, GangTree};

pub(super) struct JudgedPodGroup {
    tree: GangTree,
    /// True for an update: some counts then only cause warnings, as in KAI's own webhook.
    update: bool,
}

const RULES: &[Rule<JudgedPodGroup>] = &[
    error("podgroup-name", "subgroup names are unique and fit a label", tree::names),
    error("podgroup-parent", "the parent of a subgroup exists", tree::parents),
    error("podgroup-cycle", "no subgroup is above itself", tree::cycles),
    either("podgroup-min-member", "no gang asks for more members than it can have", counts::minimums),
    either("podgroup-constraint", "a constraint names a level, and a part of the PodGroup", constraints::levels),
    error("podgroup-set", "sets of subgroups are apart", sets::apart),
    warning("podgroup-backoff", "schedulingBackoff is -1 or 1", counts::backoff),
];

/// Runs before anything that a pod names is looked up.
const NAMES: Rule<api::Pod> = either("pod-names", "what a pod names can be the name of an object", named::objects);

/// Is judged before a pod is mutated: what it lacks cannot be added later.
const ENGINE: Rule<api::Pod> =
    error("pod-engine", "the engine of a pod is known, and its settings are valid", engine::of_pod);

/// Rules of pods that name a group or a PodGroup.
const POD_RULES: &[Rule<api::Pod>] =
    &[NAMES, ENGINE, error("podgroup-leaf", "a pod of a PodGroup with subgroups is in one of its leaves", leaf::pods)];

/// Judges the names in a pod, which needs no other object.
pub fn judge_names(pod: &api::Pod) -> Judged {
    Judged::of(run(&[NAMES], pod, &World::default()))
}

/// Judges the engine of a pod, which needs no other object.
pub fn judge_engine(pod: &api::Pod, settings: RuleSettings) -> Judged {
    Judged::of(settings.weigh(run(&[ENGINE], pod, &World::default())))
}

impl KaiDialect {
    /// Returns the dialect of a PodGroup: the chosen one, else that of the installed CRD, else that of the PodGroup's own
    /// fields; `None` when unknown: then only the common rules apply.
    pub fn resolve(self, crd: Option<Dialect>, spec: &PodGroupSpec) -> Option<Dialect> {
        self.chosen().or(crd).or_else(|| Dialect::of_object(spec))
    }

    /// Returns the dialect chosen for all PodGroups.
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

    fn passes(&self) -> bool {
        self.tree.deleting
    }

    /// PodGroups without subgroups are older than subgroups and stay admitted: their errors become warnings, unless they
    /// count subgroups.
    fn weigh(&self, mut found: Vec<Violation>) -> Vec<Violation> {
        let counts_subgroups = self.tree.dialect == Some(Dialect::Upstream) && self.tree.min_sub_group.is_some();
        if self.tree.is_flat() && !counts_subgroups {
            found.iter_mut().for_each(|violation| violation.severity = violation.severity.max(Severity::Warning));
        }
        found
    }

    /// Returns the topologies of its constraints, for the order of their levels.
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

    /// The subgroup is immutable after creation.
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
