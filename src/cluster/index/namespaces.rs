//! Namespaces and how they are served, by their labels.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Change, Index, SourceId};
use crate::api::Object;
use crate::api::webhook_configuration::MutatingWebhookConfiguration;
use crate::model::{Installation, Others, Out, Serving, Stance};

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
    fn forget(&mut self, name: &str) {
        self.stances.remove(name);
        self.left.remove(name);
    }

    /// Judges unselected namespaces again, with the known other installations; returns those whose stance changed.
    fn told_of_others(&mut self) -> Vec<Arc<str>> {
        self.serving.others = Others::Known(self.others.values().cloned().collect());
        let left = std::mem::take(&mut self.left);
        left.iter().filter(|(name, labels)| self.apply(name, labels)).map(|(name, _)| name.clone()).collect()
    }

    /// Applies the labels of a namespace; returns true when its stance changed.
    fn apply(&mut self, name: &str, labels: &BTreeMap<String, String>) -> bool {
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
        before != Some(stance)
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
        let changed = self.namespaces.told_of_others();
        self.touch_namespaces(&|of| changed.iter().any(|name| **name == *of));
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
            self.namespaces.apply(name, &namespace.meta().labels);
            self.touch_namespaces(&|of| of == name);
        }
    }

    /// Applies an event of the watch of namespaces.
    pub fn namespace_change<T: Object>(&mut self, source: SourceId, change: Change<T>) {
        self.heard(source, &change);
        match change {
            Change::Listed(namespaces) => {
                let before = std::mem::take(&mut self.namespaces.stances);
                self.namespaces.left.clear();
                for namespace in &namespaces {
                    let meta = namespace.meta();
                    self.namespaces.apply(meta.display_name(), &meta.labels);
                }
                self.namespaces.listed = true;
                let now = self.namespaces.stances.clone();
                self.touch_namespaces(&|of| before.get(of) != now.get(of));
            }
            Change::Applied(namespace) => {
                let name = namespace.meta().display_name();
                if self.namespaces.apply(name, &namespace.meta().labels) {
                    self.touch_namespaces(&|of| of == name);
                }
            }
            Change::Deleted(namespace) => {
                let name = namespace.meta().display_name();
                self.namespaces.forget(name);
                self.touch_namespaces(&|of| of == name);
            }
            Change::NotServed => {}
        }
    }

    /// Marks all groups and PodGroups in these namespaces as changed.
    fn touch_namespaces(&mut self, touched: &dyn Fn(&str) -> bool) {
        let keys = self.keys().into_iter().chain(self.tree_keys());
        let keys: Vec<_> = keys.filter(|key| touched(&key.namespace)).collect();
        self.dirty.extend(keys);
    }
}
