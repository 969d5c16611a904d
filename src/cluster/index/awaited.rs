//! Objects whose conditions groups wait for (`readyWhen`), of the kinds that rolegate may watch.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Change, Index, Name};
use crate::api::{ConditionedObject, Object, ObjectKind};
use crate::model::provision::request_kinds;
use crate::model::{AwaitedKind, Coordination, Group, GroupKey};
use crate::plan::{AwaitedObjects, SeenKind, SeenObject};

type Objects = Arc<BTreeMap<Arc<str>, Arc<SeenObject>>>;

/// A kind in one namespace, or in all of them.
type Scope = Option<Arc<str>>;

/// Objects by kind and scope of their watch.
#[derive(Debug, Default)]
pub(super) struct Awaited(BTreeMap<(AwaitedKind, Scope), OfKind>);

#[derive(Debug, Default)]
struct OfKind {
    /// Whether the API server serves the kind; `None` before the first list.
    served: Option<bool>,
    objects: HashMap<Arc<str>, Objects>,
}

impl OfKind {
    /// Stores an object, or removes it with `None`; returns whether that changes anything.
    fn put(&mut self, (namespace, name): &Name, object: Option<&SeenObject>) -> bool {
        let known = self.objects.entry(namespace.clone()).or_default();
        if known.get(name).map(|known| &**known) == object {
            return false;
        }
        let all = Arc::make_mut(known);
        match object {
            Some(object) => _ = all.insert(name.clone(), Arc::new(object.clone())),
            None => _ = all.remove(name),
        }
        self.objects.retain(|_, objects| !objects.is_empty());
        true
    }

    fn seen_in(&self, namespace: &str) -> SeenKind {
        match self.served {
            None => SeenKind::Unread,
            Some(false) => SeenKind::NotServed,
            Some(true) => SeenKind::Known(self.objects.get(namespace).cloned().unwrap_or_default()),
        }
    }
}

impl Awaited {
    pub(super) fn len(&self) -> usize {
        self.0.values().flat_map(|kind| kind.objects.values()).map(|objects| objects.len()).sum()
    }

    fn of(&self, namespace: &str) -> AwaitedObjects {
        let covers = |scope: &Scope| scope.as_deref().is_none_or(|scope| scope == namespace);
        let kinds = self.0.iter().filter(|((_, scope), _)| covers(scope));
        AwaitedObjects::Seen(kinds.map(|((kind, _), seen)| (kind.clone(), seen.seen_in(namespace))).collect())
    }
}

impl Index {
    /// Says that the objects of no kind are waited for until [`Self::await_kind`] names it. Before that, they are unknown.
    pub fn await_no_kinds(&mut self) {
        self.awaited_objects.get_or_insert_default();
    }

    /// Registers a kind whose objects are waited for, in one namespace or in all.
    pub fn await_kind(&mut self, kind: ObjectKind, scope: Option<&str>) {
        let key: (AwaitedKind, Scope) = (AwaitedKind::of(kind), scope.map(Into::into));
        self.awaited_objects.get_or_insert_default().0.entry(key).or_default();
    }

    /// Returns the kinds of the objects that groups wait for.
    pub fn waited_for(&self) -> BTreeSet<AwaitedKind> {
        self.carriers.all().flat_map(|(_, claims)| awaited_kinds(&claims.group)).collect()
    }

    /// Applies an event of the watch of such a kind.
    pub fn awaited_change(&mut self, kind: ObjectKind, scope: Option<&str>, change: Change<ConditionedObject>) {
        let key: (AwaitedKind, Scope) = (AwaitedKind::of(kind), scope.map(Into::into));
        let of_kind = self.awaited_objects.get_or_insert_default().0.entry(key.clone()).or_default();
        let is_request = request_kinds().any(|known| known == kind);
        let seen = if is_request { SeenObject::with_messages } else { SeenObject::of };
        // That a kind is not served is told again and again.
        let mut is_news = change.is_served().is_some_and(|served| served || of_kind.served != Some(false));
        if let Some(served) = change.is_served() {
            (of_kind.served, of_kind.objects) = (Some(served), HashMap::new());
        }
        let change = change.map(|object| (super::name_of(object.meta()), seen(&object)));
        let mut changed = None;
        let there = change.there().iter().map(|(name, object)| (name, Some(object)));
        for (name, object) in there.chain(change.gone().map(|(name, _)| (name, None))) {
            is_news |= of_kind.put(name, object);
            changed = Some(name).filter(|_| change.is_served().is_none());
        }
        let is_meant = |group: &Group| {
            let is_here = changed.is_none_or(|(namespace, _)| *namespace == group.key.namespace);
            is_news && is_here && awaited_kinds(group).any(|awaited| awaited == key.0)
        };
        let waiting = self.carriers.all().filter(|(_, claims)| is_meant(&claims.group));
        let waiting: Vec<GroupKey> = waiting.map(|(key, _)| key.clone()).collect();
        self.dirty.extend(waiting);
    }

    /// Returns the objects that a group may wait for.
    pub(super) fn awaited_by(&self, group: &Group) -> AwaitedObjects {
        match &self.awaited_objects {
            Some(awaited) if awaited_kinds(group).next().is_some() => awaited.of(&group.key.namespace),
            _ => AwaitedObjects::Unknown,
        }
    }
}

/// Returns the kinds of the objects that a group names, or by which it requests nodes.
fn awaited_kinds(group: &Group) -> impl Iterator<Item = AwaitedKind> {
    let all = group.coordinations.iter().flat_map(Coordination::ready_when);
    let named = all.filter_map(|when| Some(when.object.as_ref()?.kind.clone()));
    let requests = group.batched().filter_map(|(coordination, _)| Some(coordination.provision()?.by.kind()));
    named.chain(requests.map(AwaitedKind::of))
}

#[cfg(test)]
#[path = "awaited_tests.rs"]
mod tests;
