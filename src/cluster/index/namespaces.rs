//! Namespaces, as far as their labels say how they are served.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Change, Index, SourceId};
use crate::api::Object;
use crate::api::webhook_configuration::MutatingWebhookConfiguration;
use crate::model::{Installation, Others, Out, Serving, Stance};

/// How namespaces are served, by name.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    serving: Serving,
    stances: HashMap<Arc<str>, Stance>,
    /// Labels of those that are not selected: they become another rolegate's, or nobody's.
    left: HashMap<Arc<str>, BTreeMap<String, String>>,
    /// Other rolegates by name, once they have been told of.
    others: BTreeMap<String, Installation>,
    /// Every namespace that there is has been told of once.
    listed: bool,
}

impl Namespaces {
    /// How a namespace is served; `None` for one that nobody has told of yet.
    pub(super) fn stance(&self, name: &str) -> Option<Stance> {
        let known = self.stances.get(name).copied();
        // Who is told of none goes by the flags.
        known.or_else(|| (name.is_empty() || !self.listed).then(|| self.serving.unlabelled()))
    }

    pub(super) fn len(&self) -> usize {
        self.stances.len()
    }

    fn forget(&mut self, name: &str) {
        self.stances.remove(name);
        self.left.remove(name);
    }

    /// Knows other rolegates from now on; returns the namespaces that are served in another way.
    fn told_of_others(&mut self) -> Vec<Arc<str>> {
        self.serving.others = Others::Known(self.others.values().cloned().collect());
        let left = std::mem::take(&mut self.left);
        left.iter().filter(|(name, labels)| self.apply(name, labels)).map(|(name, _)| name.clone()).collect()
    }

    /// Takes in the labels of a namespace; true when it is served in another way from now on.
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
    /// Says how namespaces are served, before any is taken in.
    pub fn serve(&mut self, serving: Serving) {
        self.namespaces.serving = serving;
    }

    /// How a namespace is served, `""` for what is in none; `None` for one that nobody has told of yet.
    pub fn stance(&self, namespace: &str) -> Option<Stance> {
        self.namespaces.stance(namespace)
    }

    /// True where nothing is done: nobody has told of the namespace yet, or another rolegate serves it.
    pub(super) fn rests_in(&self, namespace: &str) -> bool {
        self.stance(namespace).is_none_or(Stance::is_of_other)
    }

    /// Takes in what a watch of webhook configurations reports of rolegates other than `own`.
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

    /// How all namespaces are served that have been told of.
    pub fn stances(&self) -> impl Iterator<Item = (&Arc<str>, Stance)> {
        self.namespaces.stances.iter().map(|(name, stance)| (name, *stance))
    }

    /// How a namespace is served by the labels that it has.
    pub fn stance_of<T: Object>(&self, namespace: &T) -> Stance {
        self.namespaces.serving.stance(&namespace.meta().labels)
    }

    /// Takes in a namespace that was read live before its watch has told of it.
    pub fn namespace_read<T: Object>(&mut self, namespace: &T) {
        let name = namespace.meta().display_name();
        if !self.namespaces.stances.contains_key(name) {
            self.namespaces.apply(name, &namespace.meta().labels);
            self.touch_namespaces(&|of| of == name);
        }
    }

    /// Takes in what a watch of namespaces reports.
    pub fn namespace_change<T: Object>(&mut self, source: SourceId, change: Change<T>) {
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
                self.awaited.remove(&source);
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
            Change::NotServed => _ = self.awaited.remove(&source),
        }
    }

    /// Has all groups and PodGroups looked at again that are in these namespaces.
    fn touch_namespaces(&mut self, touched: &dyn Fn(&str) -> bool) {
        let keys = self.keys().into_iter().chain(self.tree_keys());
        let keys: Vec<_> = keys.filter(|key| touched(&key.namespace)).collect();
        self.dirty.extend(keys);
    }
}
