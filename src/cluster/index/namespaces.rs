//! Namespaces, as far as their labels say how they are served.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Change, Index, SourceId};
use crate::api::Object;
use crate::model::{Serving, Stance};

/// How namespaces are served, by name.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    serving: Serving,
    stances: HashMap<Arc<str>, Stance>,
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

    /// Takes in the labels of a namespace; true when it is served in another way from now on.
    fn apply(&mut self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let stance = self.serving.stance(labels);
        let before = self.stances.insert(name.into(), stance);
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

    /// True when every namespace that there is has been told of once.
    pub fn lists_namespaces(&self) -> bool {
        self.namespaces.listed
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
                self.namespaces.stances.remove(name);
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
