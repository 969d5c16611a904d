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
    fn put(&mut self, (namespace, name): &Name, object: Option<SeenObject>) -> bool {
        let known = self.objects.entry(namespace.clone()).or_default();
        if known.get(name).map(|known| &**known) == object.as_ref() {
            return false;
        }
        let all = Arc::make_mut(known);
        match object {
            Some(object) => _ = all.insert(name.clone(), Arc::new(object)),
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
        let groups = self.carriers.all().map(|(_, claims)| &claims.group);
        let all = groups.flat_map(|group| group.coordinations.iter().flat_map(Coordination::ready_when));
        let awaited = all.filter_map(|when| Some(when.object.as_ref()?.kind.clone()));
        let groups = self.carriers.all().map(|(_, claims)| &claims.group);
        awaited.chain(groups.flat_map(|group| requested_by(group)).map(AwaitedKind::of)).collect()
    }

    /// Applies an event of the watch of such a kind.
    pub fn awaited_change(&mut self, kind: ObjectKind, scope: Option<&str>, change: Change<ConditionedObject>) {
        let key: (AwaitedKind, Scope) = (AwaitedKind::of(kind), scope.map(Into::into));
        let of_kind = self.awaited_objects.get_or_insert_default().0.entry(key.clone()).or_default();
        let name = |object: &ConditionedObject| super::name_of(object.meta());
        let is_request = request_kinds().any(|known| known == kind);
        let seen = if is_request { SeenObject::with_messages } else { SeenObject::of };
        let is_there = matches!(change, Change::Applied(_));
        let changed = match change {
            Change::Listed(all) => {
                (of_kind.served, of_kind.objects) = (Some(true), HashMap::new());
                all.iter().for_each(|object| _ = of_kind.put(&name(object), Some(seen(object))));
                None
            }
            // It is told again and again.
            Change::NotServed if of_kind.served == Some(false) => return,
            Change::NotServed => {
                (of_kind.served, of_kind.objects) = (Some(false), HashMap::new());
                None
            }
            Change::Applied(object) | Change::Deleted(object) => {
                let name = name(&object);
                if !of_kind.put(&name, is_there.then(|| seen(&object))) {
                    return;
                }
                Some(name)
            }
        };
        let waiting = self.carriers.all().filter(|(_, claims)| waits_for(&claims.group, &key.0, changed.as_ref()));
        let waiting: Vec<GroupKey> = waiting.map(|(key, _)| key.clone()).collect();
        self.dirty.extend(waiting);
    }

    /// Returns the objects that a group may wait for.
    pub(super) fn awaited_by(&self, group: &Group) -> AwaitedObjects {
        let awaits = group.coordinations.iter().flat_map(Coordination::ready_when).any(|when| when.object.is_some());
        let waits = awaits || requested_by(group).next().is_some();
        match &self.awaited_objects {
            Some(awaited) if waits => awaited.of(&group.key.namespace),
            _ => AwaitedObjects::Unknown,
        }
    }
}

/// Reports whether a group names an object of a kind, or with a name one in its namespace.
fn waits_for(group: &Group, kind: &AwaitedKind, name: Option<&Name>) -> bool {
    let mut objects =
        group.coordinations.iter().flat_map(Coordination::ready_when).filter_map(|when| when.object.as_ref());
    let is_requested = || requested_by(group).any(|requested| AwaitedKind::of(requested) == *kind);
    name.is_none_or(|(namespace, _)| *namespace == group.key.namespace)
        && (objects.any(|object| object.kind == *kind) || is_requested())
}

/// Returns the kinds of objects by which a group requests nodes.
fn requested_by(group: &Group) -> impl Iterator<Item = ObjectKind> {
    group.batched().filter_map(|(coordination, _)| Some(coordination.provision()?.by.kind()))
}

#[cfg(test)]
#[path = "awaited_tests.rs"]
mod tests;
