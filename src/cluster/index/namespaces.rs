//! Namespaces and how they are served, by their labels.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Change, Index, SourceId};
use crate::api::webhook_configuration::MutatingWebhookConfiguration;
use crate::api::{Object, ObjectKind};
use crate::model::{Installation, Others, Out, Serving, Stance};

pub const NAMESPACE: ObjectKind = ObjectKind::cluster_scoped("", "v1", "Namespace", "namespaces");

/// Stances by namespace.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    serving: Serving,
    pub(super) stances: HashMap<Arc<str>, Stance>,
    /// Labels of unselected namespaces. They are judged again once other installations are known.
    left: HashMap<Arc<str>, BTreeMap<String, String>>,
    /// Other installations by name.
    others: BTreeMap<String, Installation>,
    /// True after the first list.
    listed: bool,
}

impl Namespaces {
    /// Judges unselected namespaces again, with the known other installations; returns those whose stance changed.
    fn judge_left(&mut self) -> HashSet<Arc<str>> {
        self.serving.others = Others::Known(self.others.values().cloned().collect());
        let left = std::mem::take(&mut self.left);
        left.iter().filter_map(|(name, labels)| self.apply(name, labels)).collect()
    }

    /// Applies the labels of a namespace; returns its name when its stance changed.
    fn apply(&mut self, name: &str, labels: &BTreeMap<String, String>) -> Option<Arc<str>> {
        let stance = self.serving.stance(labels);
        let before = self.stances.insert(name.into(), stance);
        match stance.out {
            Some(Out::NotSelected | Out::OfOther) => _ = self.left.insert(name.into(), labels.clone()),
            Some(Out::OptedOut) | None => _ = self.left.remove(name),
        }
        if stance.has_unknown_mode && before != Some(stance) {
            let (label, mode) = (crate::model::names::MODE, self.serving.mode.as_str());
            let said = labels.get(label).map_or("", String::as_str);
            tracing::warn!(namespace = name, label, said, mode, "the label names no mode: that of --mode counts");
        }
        (before != Some(stance)).then(|| name.into())
    }
}

impl Index {
    /// Sets how namespaces are served. Must be called before any namespace is applied.
    pub fn serve(&mut self, serving: Serving) {
        self.namespaces.serving = serving;
    }

    /// Returns how a namespace is served; `None` for one that no watch has reported. `""` stands for cluster-scoped objects.
    pub fn stance(&self, namespace: &str) -> Option<Stance> {
        let Namespaces { stances, listed, serving, .. } = &self.namespaces;
        // Without a list, as with an empty name, the flags decide.
        let flags = || (namespace.is_empty() || !listed).then(|| serving.unlabelled());
        stances.get(namespace).copied().or_else(flags)
    }

    /// Reports whether nothing is done in a namespace: it is not reported yet, or another installation serves it.
    pub(super) fn rests_in(&self, namespace: &str) -> bool {
        self.stance(namespace).is_none_or(Stance::is_of_other)
    }

    /// Applies an event of the watch of webhook configurations, for installations other than `own`.
    pub fn others_change(&mut self, own: &str, change: Change<MutatingWebhookConfiguration>) {
        let of_other = |configuration: &MutatingWebhookConfiguration| {
            Installation::of(configuration).filter(|one| one.name != own).map(|one| (one.name.clone(), one))
        };
        let others = &mut self.namespaces.others;
        match change {
            Change::Listed(all) => *others = all.iter().filter_map(of_other).collect(),
            Change::Applied(one) => match of_other(&one) {
                Some((name, other)) => _ = others.insert(name, other),
                None => _ = others.remove(one.metadata.display_name()),
            },
            Change::Deleted(one) => _ = others.remove(one.metadata.display_name()),
            Change::NotServed => return,
        }
        let changed = self.namespaces.judge_left();
        self.touch_namespaces(&changed);
    }

    /// Returns the stances of all reported namespaces.
    pub fn stances(&self) -> impl Iterator<Item = (&Arc<str>, Stance)> {
        self.namespaces.stances.iter().map(|(name, stance)| (name, *stance))
    }

    /// Returns the stance that follows from the labels of a namespace.
    pub fn stance_of<T: Object>(&self, namespace: &T) -> Stance {
        self.namespaces.serving.stance(&namespace.meta().labels)
    }

    /// Applies a namespace that was read live before its watch reported it.
    pub fn namespace_read<T: Object>(&mut self, namespace: &T) {
        let name = namespace.meta().display_name();
        if !self.namespaces.stances.contains_key(name) {
            let changed = self.namespaces.apply(name, &namespace.meta().labels).into_iter().collect();
            self.touch_namespaces(&changed);
        }
    }

    /// Applies an event of the watch of namespaces.
    pub fn namespace_change<T: Object>(&mut self, source: SourceId, change: Change<T>) {
        self.heard(source, NAMESPACE, &change);
        let known = &mut self.namespaces;
        known.listed |= matches!(change, Change::Listed(_));
        let listed: HashSet<_> = change.there().iter().map(|namespace| namespace.meta().display_name()).collect();
        let is_gone = |name: &str| match &change {
            Change::Listed(_) => !listed.contains(name),
            Change::Deleted(namespace) => namespace.meta().display_name() == name,
            Change::Applied(_) | Change::NotServed => false,
        };
        let mut changed: HashSet<_> = known.stances.extract_if(|name, _| is_gone(name)).map(|(name, _)| name).collect();
        known.left.retain(|name, _| !is_gone(name));
        let there = change.into_there();
        let there = there.iter().map(Object::meta);
        changed.extend(there.filter_map(|meta| known.apply(meta.display_name(), &meta.labels)));
        self.touch_namespaces(&changed);
    }

    /// Marks all groups and PodGroups in these namespaces as changed.
    fn touch_namespaces(&mut self, changed: &HashSet<Arc<str>>) {
        if !changed.is_empty() {
            let keys = self.keys().into_iter().chain(self.tree_keys());
            let keys: Vec<_> = keys.filter(|key| changed.contains(&*key.namespace)).collect();
            self.dirty.extend(keys);
        }
    }
}
