//! Nodes whose kubelets repeatedly refuse pods of a batch, or that the scheduler refuses although they have room: the batch avoids
//! them for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::Group;
use crate::model::wording::{counted, time};
use crate::plan::decide::placed::Refused;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::lasting::Timed;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::BatchId;
use crate::plan::view::{NodeRefusal, PodRef, count};

/// The reason of the Event on a node that a batch avoids.
pub const REFUSES: &str = "NodeRefusesPods";
/// The number of refusals before a batch avoids the node: the cause may pass by itself.
const OFTEN: u32 = 2;
/// The time for which a node is first avoided, and the maximum number of times that further refusals double it.
const FIRST: Duration = Duration::from_secs(60);
const DOUBLINGS: u32 = 6;

/// A batch, as the position of its coordination in the list of the group and its number from 0, and a node.
pub(in crate::plan) type Key = ((usize, u32), Arc<str>);

/// Nodes that batches avoid, each until a time, with the uids of the refused pods: each counts once.
pub(in crate::plan) type Refusing = Timed<Key, BTreeSet<Arc<str>>>;

impl Refusing {
    /// Returns the nodes to avoid now.
    pub(in crate::plan) fn now(&self, now: Uptime) -> Vec<Refused> {
        let all = self.0.iter().filter(|(_, (until, _))| *until > now);
        let one = |batch, node: &Arc<str>| Refused {
            batch,
            pod: None,
            why: Arc::default(),
            nodes: BTreeMap::from([(node.clone(), None)]),
        };
        all.map(|((batch, node), _)| one(*batch, node)).collect()
    }

    /// Notes refusals; returns new Events, and when the next node is no longer avoided.
    pub(in crate::plan) fn avoid(
        &mut self,
        group: &Group,
        refusals: &[NodeRefusal],
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        let mut of_batches = BTreeMap::<Key, (String, Vec<&NodeRefusal>)>::new();
        for refusal in refusals.iter().filter(|refusal| refusal.times >= OFTEN) {
            for batch in group.batches_of(&refusal.role, refusal.ordinal) {
                let key = ((batch.coordination.index, batch.index), refusal.node.clone());
                let name = batch.batching.batch_name(batch.index);
                of_batches.entry(key).or_insert_with(|| (name, Vec::new())).1.push(refusal);
            }
        }
        self.0.retain(|key, (until, _)| *until > now || of_batches.contains_key(key));
        let mut events = Vec::new();
        for (key, (name, refusals)) in of_batches {
            let known = self.0.get(&key);
            let is_new = |refusal: &&&NodeRefusal| known.is_none_or(|(_, pods)| !pods.contains(&refusal.pod.uid));
            let newest = refusals.iter().filter(is_new).max_by_key(|refusal| refusal.times);
            let Some(NodeRefusal { node, times, reason, role, .. }) = newest else { continue };
            let left_out = FIRST * (1 << (times - OFTEN).min(DOUBLINGS));
            let note = format!(
                "node {node} has refused a pod of {name} {} ({reason}): the batch is not placed there for {}",
                counted(*times, "time"),
                time(left_out),
            );
            events.push(EventNote::new(REFUSES, format!("{name} {node}"), note, true).of_roles([&**role]));
            let pods = refusals.iter().map(|refusal| refusal.pod.uid.clone()).collect();
            self.0.insert(key, (now + left_out, pods));
        }
        (events, self.next(Duration::ZERO, now))
    }
}

/// The time for which a node is avoided that does not change after the scheduler has refused it last.
const TURNED_DOWN: Duration = Duration::from_secs(600);

/// Nodes that the scheduler refused, by batch and pod, each until a time.
pub(in crate::plan) type TurnedDownUntil = Timed<(BatchId, Option<PodRef>), Refused>;

impl TurnedDownUntil {
    /// Returns the nodes to avoid now, as far as they have not changed.
    pub(in crate::plan) fn now(&self, now: Uptime) -> Vec<Refused> {
        self.0.values().filter(|(until, _)| *until > now).map(|(_, known)| known.clone()).collect()
    }

    /// Notes the nodes that are refused now; returns new Events, and when the next node is no longer avoided.
    pub(in crate::plan) fn turn_down(
        &mut self,
        group: &Group,
        found: &[Refused],
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        self.0.retain(|_, (until, _)| *until > now);
        let mut events = Vec::new();
        for of in found {
            let before = self.0.insert((of.batch, of.pod.clone()), (now + TURNED_DOWN, of.clone()));
            let is_known = |(node, state): (&Arc<str>, &Option<u64>)| {
                before.iter().any(|(_, of)| of.nodes.get(node) == Some(state))
            };
            let is_new = !of.nodes.iter().all(is_known);
            let Some((pod, coordination)) = of.pod.as_ref().zip(group.coordination(of.batch.0)).filter(|_| is_new)
            else {
                continue;
            };
            let name = coordination.batching().map(|batching| batching.batch_name(of.batch.1)).unwrap_or_default();
            let nodes = match of.nodes.keys().next() {
                Some(node) if of.nodes.len() == 1 => format!("node {node}"),
                _ => counted(count(of.nodes.len()), "node"),
            };
            let note = format!(
                "the scheduler refuses {nodes} to pod {} of {name} ({}): the batch is not placed there for {}",
                pod.name,
                of.why,
                time(TURNED_DOWN),
            );
            let subject = format!("{name} {}", pod.name);
            events.push(EventNote::new(REFUSES, subject, note, true).of_roles(coordination.role_names()));
        }
        (events, self.next(Duration::ZERO, now))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::mk_group;
    use crate::plan::view::PodRef;

    #[test]
    fn a_node_that_the_scheduler_refuses_is_avoided_for_ten_minutes_after_it_says_so_last() {
        let strategy = json!({ "segmentPlacement": { "segmentSize": { "p": 2, "d": 1 } } });
        let group = mk_group(&[("p", 4), ("d", 2)], &json!([{ "name": "pd", "strategy": strategy }]));
        let found = |nodes: &[&str]| {
            let pod = PodRef { name: "p-3".into(), uid: "u".into() };
            let nodes = nodes.iter().map(|node| (Arc::from(*node), Some(7))).collect();
            [Refused { batch: (0, 1), pod: Some(pod), why: "0/1 nodes are available: 1 why".into(), nodes }]
        };
        let mut known = TurnedDownUntil::default();
        let at = Uptime::from_secs;
        let (events, due) = known.turn_down(&group, &found(&["n1"]), at(0));
        let told = "the scheduler refuses node n1 to pod p-3 of segment 2 (0/1 nodes are available: 1 why): the batch is not \
                    placed there for 10m";
        assert_eq!((events[0].note.as_str(), due), (told, Some(at(600))));
        let (events, due) = known.turn_down(&group, &found(&["n1"]), at(60));
        assert_eq!((events.len(), due), (0, Some(at(660))), "it says so still");
        assert_eq!(known.now(at(659)), found(&["n1"]));
        let (events, _) = known.turn_down(&group, &found(&["n1", "n2"]), at(60));
        assert!(events[0].note.starts_with("the scheduler refuses 2 nodes to pod p-3"), "{}", events[0].note);
        assert_eq!((known.now(at(660)), known.turn_down(&group, &[], at(660)).1, known.len()), (vec![], None, 0));
    }

    #[test]
    fn a_node_is_left_out_after_the_second_refusal_for_twice_as_long_each_time() {
        let strategy = json!({ "segmentPlacement": { "segmentSize": { "p": 2, "d": 1 } } });
        let group = mk_group(&[("p", 4), ("d", 2)], &json!([{ "name": "pd", "strategy": strategy }]));
        let refused_of = |ordinal: u32, times: u32| {
            let (name, uid) = (format!("p-{ordinal}").into(), format!("{ordinal}.{times}").into());
            let (pod, node) = (PodRef { name, uid }, Arc::from("n1"));
            NodeRefusal { role: "p".into(), ordinal, pod, node, times, reason: "OutOfcpu".to_owned() }
        };
        let refused = |times| [refused_of(3, times)];
        let mut refusing = Refusing::default();
        let at = Uptime::from_secs;
        assert_eq!((refusing.avoid(&group, &refused(1), at(0)).1, refusing.len()), (None, 0), "once is no time");
        let (events, due) = refusing.avoid(&group, &refused(2), at(0));
        let told = "node n1 has refused a pod of segment 2 2 times (OutOfcpu): the batch is not placed there for 1m";
        assert_eq!((events[0].note.as_str(), due), (told, Some(at(60))));
        assert_eq!(refusing.now(at(59))[0].nodes, BTreeMap::from([("n1".into(), None)]));
        let (events, _) = refusing.avoid(&group, &refused(2), at(60));
        assert_eq!((events.len(), refusing.now(at(60))), (0, vec![]), "it is tried again");
        let (events, due) = refusing.avoid(&group, &refused(3), at(70));
        assert_eq!((events.len(), due), (1, Some(at(190))));
        let (events, _) = refusing.avoid(&group, &[refused_of(3, 3), refused_of(2, 2)], at(190));
        assert_eq!((events.len(), refusing.now(at(249)).len()), (1, 1), "another pod of the batch, after that");
        refusing.avoid(&group, &[], at(250));
        assert_eq!(refusing.len(), 0);
    }
}
