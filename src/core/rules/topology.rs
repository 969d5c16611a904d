//! Rules of ClusterTopology (KEP-75, Cluster Topology Definition).

use std::collections::{BTreeMap, BTreeSet};

use super::decode::{DecodeError, decode};
use super::judged::{JudgedObject, run};
use super::names::label_key_fault;
use super::question::Question;
use super::rule::{Change, ChangeRule, Rule, error};
use super::violation::quoted;
use super::{Cause, Need, Report, World};
use crate::model::{FieldPath, Group, Layers};

const RULES: &[Rule<Layers>] = &[
    error("topology-layers", "there is at least one layer, with a name and key of its own", layers),
    error("topology-key", "keys are label keys", keys),
    error("topology-scope", "topologyScope orders every layer, without ties", scope),
];

/// Rules on updates.
const CHANGE_RULES: &[ChangeRule<Layers>] = &[error("topology-immutable", "the spec does not change", immutable)];

/// Rules on deletes.
const DELETE_RULES: &[Rule<Layers>] =
    &[error("topology-in-use", "a topology that is referred to is not deleted", not_in_use)];

impl JudgedObject for Layers {
    const TITLE: &'static str = "cluster-topology";
    const RULES: &'static [Rule<Self>] = RULES;
    const CHANGE_RULES: &'static [ChangeRule<Self>] = CHANGE_RULES;
    const DELETE_RULES: &'static [Rule<Self>] = DELETE_RULES;

    fn read(question: Question<'_>, json: &str, _: &World) -> Result<Self, DecodeError> {
        Ok(Self::parse(question.kind, &decode(json)?))
    }

    fn passes(&self) -> bool {
        self.deleting
    }

    fn delete_needs(&self) -> Vec<Need> {
        vec![Need::TopologyReferrers(self.name.clone())]
    }
}

/// Reports whether no rule is broken: only a valid topology may be referred to.
pub fn is_valid(layers: &Layers) -> bool {
    run(RULES, layers, &World::default()).is_empty()
}

fn layers(layers: &Layers, _: &World, report: &mut Report) {
    if layers.spec.layers.is_some() && layers.spec.layers_kep75.is_some() {
        report.forbid("", FieldPath::new("spec").child("Layers"), "may not be set together with `layers`");
    }
    if layers.spec.layers().is_empty() {
        report.require("", layers.at.clone(), "must have at least one layer");
    }
    let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for (index, layer) in layers.spec.layers().iter().enumerate() {
        let at = layers.at.index(index);
        let name = layer.name.as_str();
        if name.is_empty() {
            report.require(name, at.child("name"), "must name the layer");
        } else if !names.insert(name) {
            report.error(name, at.child("name"), Cause::Duplicate, quoted(name), "");
        }
        if layer.key.is_empty() {
            report.require(name, at.child("key"), "must name a node label");
        } else if !keys.insert(layer.key.as_str()) {
            report.error(name, at.child("key"), Cause::Duplicate, quoted(&layer.key), "");
        }
    }
}

fn keys(layers: &Layers, _: &World, report: &mut Report) {
    for (index, layer) in layers.spec.layers().iter().enumerate().filter(|(_, layer)| !layer.key.is_empty()) {
        if let Some(fault) = label_key_fault(&layer.key) {
            report.error(&layer.name, layers.at.index(index).child("key"), Cause::Invalid, quoted(&layer.key), fault);
        }
    }
}

fn scope(layers: &Layers, _: &World, report: &mut Report) {
    let Some(scope) = layers.spec.topology_scope.as_ref().filter(|scope| !scope.is_empty()) else { return };
    let at = FieldPath::new("spec").child("topologyScope");
    let names: BTreeSet<_> = layers.spec.layers().iter().map(|layer| layer.name.as_str()).collect();
    let must = format!("must name an entry of `{}`", layers.at);
    let mut taken = BTreeMap::new();
    for (name, width) in scope {
        let path = at.key(name.as_str());
        if !names.contains(name.as_str()) {
            let detail = report.with_hint(&must, name, names.iter().copied());
            report.error(name, path, Cause::NotFound, quoted(name), detail);
        } else if let Some(other) = taken.insert(width, name) {
            let detail = format!("must differ from that of layer {other:?}");
            report.error(name, path, Cause::Invalid, Some(width.to_string()), detail);
        }
    }
    for name in names.into_iter().filter(|name| !name.is_empty() && !scope.contains_key(*name)) {
        report.require(name, at.key(name), "must be set, since `topologyScope` orders all layers or none");
    }
}

fn immutable(change: &Change<'_, Layers>, _: &World, report: &mut Report) {
    if change.old.spec != change.new.spec {
        report.forbid("", FieldPath::new("spec"), "may not change; make another ClusterTopology and refer to that");
    }
}

/// Largest number of referrers named in a message; the others are counted.
const NAMED: usize = 5;

fn not_in_use(layers: &Layers, world: &World, report: &mut Report) {
    let need = Need::TopologyReferrers(layers.name.clone());
    let path = FieldPath::new("metadata").child("name");
    let referrers: Vec<_> = world.groups().filter(|group| refers_to(group, &layers.name)).collect();
    if referrers.is_empty() {
        if !world.is_answered(&need) {
            report.not_judged(&layers.name, path, &need);
        }
        return;
    }
    let first = referrers.iter().take(NAMED);
    let mut names: Vec<_> = first
        .map(|group| format!("{} {}/{}", group.carrier.kind.kind, group.key.namespace, group.carrier.name))
        .collect();
    if referrers.len() > NAMED {
        names.push(format!("{} more", referrers.len() - NAMED));
    }
    report.forbid(&layers.name, path, format!("may not be deleted while it is referred to by {}", names.join(", ")));
}

fn refers_to(group: &Group, topology: &str) -> bool {
    let mut layers = group.coordinations.iter().flat_map(|c| &c.batchings).filter_map(|batching| batching.layer());
    !group.deleting && layers.any(|(name, _)| name == topology)
}
