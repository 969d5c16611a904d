//! Explains why a pod is held: its gates and their owners, its place in the group, one reason, and what happens next.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use super::engine::EngineStory;
use super::finds::{Finds, OfSet};
use super::gates::{Gate, gates};
use super::place::{Place, not_bound, pinned};
use crate::api::Pod;
use crate::cli::connection::Connection;
use crate::cli::live::{self, Rooms};
use crate::cli::status::{replicas, seconds_since};
use crate::cli::terminal::{Style, age, shown};
use crate::cluster::index::Index;
use crate::model::names::HOSTNAME;
use crate::model::wording::counted;
use crate::model::{Advice, Group, GroupKey, HoldReason, LetGo, PodIdentity, identify, names, placed_by};
use crate::plan::gangs::TreeSnapshot;
use crate::plan::{Held, PodRef};
use crate::report::{Awaited, Picture, TreePicture, of_held};

/// The state of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum State {
    /// The pod has our gate, for a reason.
    Held,
    /// The pod has our gate, which may be lifted now.
    Due,
    /// The pod has our gate, but names no group: nothing will lift it.
    Orphaned,
    /// The pod has only gates of others.
    GatedByOthers,
    /// The pod has no gate.
    #[default]
    NotGated,
}

/// The output of `explain pod`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    namespace: String,
    name: String,
    state: State,
    /// Age in seconds; gates are added at creation.
    age_seconds: Option<u64>,
    gates: Vec<Gate>,
    place: Option<Place>,
    /// Node selector entries that rolegate added at the release.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pinned: BTreeMap<String, String>,
    /// PodGroup of its batch, role or replica; a release puts the pod into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_group: Option<String>,
    /// The roles that a Grove pod finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    finds: Option<Finds>,
    /// The engine in the pod, and what it was given for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<EngineStory>,
    reason: Option<&'static str>,
    message: String,
    waits_for: Vec<Awaited>,
    next: String,
    you_can: Vec<String>,
}

/// The group or PodGroup of a pod.
#[derive(Debug)]
pub enum Whose {
    /// The KAI PodGroup that places the pod.
    PodGroup(TreeSnapshot),
    /// The group that the pod names.
    Group(PodIdentity, Box<Picture>),
    /// The pod belongs to nothing that holds pods.
    Nobody,
}

impl Whose {
    /// Returns the group or PodGroup of a pod.
    pub fn of(pod: &Pod, namespace: &str, index: &Index) -> Self {
        match (placed_by(&pod.metadata), identify(pod, namespace, index)) {
            (Some(name), _) => Self::PodGroup(index.tree_snapshot(&GroupKey::new(namespace, name))),
            (None, Some(identity)) => {
                let picture = Box::new(live::picture(index, &identity.group));
                Self::Group(identity, picture)
            }
            (None, None) => Self::Nobody,
        }
    }
}

impl Story {
    /// Explains a pod, with reads of further objects.
    pub async fn of(pod: &Pod, whose: Whose, connection: &Connection, now: Timestamp) -> Self {
        let mut story = Self::begin(pod, &connection.namespace, now);
        let (mut strayed, mut known) = (None, None);
        match whose {
            Whose::PodGroup(tree) => {
                let tree = live::tree(tree, connection, &Rooms::default()).await;
                story.take_tree(pod, &tree);
            }
            Whose::Group(identity, picture) => {
                let picture = Box::pin(live::diagnose(*picture, connection, &Rooms::default())).await;
                story.take_group(pod, &identity, &picture);
                let ordinal = story.place.as_ref().and_then(|place| place.ordinal);
                strayed = picture.group().and_then(|group| strays(pod, group, &identity, ordinal));
                known = Some((PodIdentity { ordinal, ..identity }, picture.group().cloned()));
            }
            Whose::Nobody if pod.has_gate(names::GATE) => story.orphaned(),
            Whose::Nobody => {}
        }
        if !pod.has_gate(names::GATE) {
            story.not_ours(pod);
        }
        story.you_can.extend(strayed);
        story.you_can.extend(native_gang(pod));
        let of_set = OfSet::read(pod, connection).await;
        story.finds = of_set.as_ref().and_then(|of| Finds::of(pod, &connection.namespace, of));
        story.engine = EngineStory::of(pod, &connection.namespace, known.as_ref(), of_set.as_ref());
        story
    }

    /// Explains a pod of a known group, without reads.
    #[cfg(test)]
    pub(super) fn seen(pod: &Pod, identity: &PodIdentity, picture: &Picture, now: Timestamp) -> Self {
        let mut story = Self::begin(pod, "ns", now);
        story.take_group(pod, identity, picture);
        if !pod.has_gate(names::GATE) {
            story.not_ours(pod);
        }
        story
    }

    /// Creates a story from the pod alone.
    fn begin(pod: &Pod, namespace: &str, now: Timestamp) -> Self {
        let created = pod.metadata.creation_timestamp.as_ref().and_then(|created| created.parse().ok());
        Self {
            namespace: namespace.to_owned(),
            name: pod.metadata.display_name().to_owned(),
            age_seconds: created.map(|created| seconds_since(created, now)),
            gates: gates(pod),
            ..Self::default()
        }
    }

    /// Explains our gate on a pod that waits for a place from its KAI PodGroup.
    fn take_tree(&mut self, pod: &Pod, TreePicture { snapshot, decision }: &TreePicture) {
        self.place = Some(Place {
            group: format!("{}/{}", snapshot.key.namespace, snapshot.key.name),
            carrier: snapshot.tree.as_ref().map(|tree| format!("PodGroup {}", tree.key.name)),
            role: pod.metadata.label(names::KAI_SUBGROUP).map(str::to_owned),
            ..Place::default()
        });
        let leaf = pod.metadata.label(names::KAI_SUBGROUP).unwrap_or_default();
        let within = snapshot.tree.as_ref().and_then(|tree| tree.placement.of(leaf)).map(|placed| &placed.within);
        let ours =
            |(label, _): &(&String, &String)| *label == HOSTNAME || within.is_some_and(|of| of.contains_key(*label));
        let ours = pod.spec.node_selector.iter().filter(|entry| within.is_some() && ours(entry));
        self.pinned = ours.map(|(label, value)| (label.clone(), value.clone())).collect();
        self.state = State::Held;
        let is_it = |other: &PodRef| Some(&*other.uid) == pod.metadata.uid.as_deref();
        let reason = match (&snapshot.tree, decision) {
            (None, _) => Some((HoldReason::GroupMissing, "its PodGroup is not there")),
            (Some(tree), _) if !tree.place => None,
            (_, Err(why)) => Some((HoldReason::RoomUnknown, why.as_str())),
            (_, Ok(decision)) => {
                let held = decision.held.iter().find(|held| held.pods.iter().any(is_it));
                held.map(|held| (held.reason, held.message.as_str()))
            }
        };
        match reason {
            _ if snapshot.lets_go().is_some() => self.let_go(snapshot.lets_go()),
            Some((reason, message)) => self.reason(reason, message),
            None => self.due("its gang may go"),
        }
    }

    /// Explains our gate on a pod without a group: its labels were removed.
    fn orphaned(&mut self) {
        self.state = State::Orphaned;
        "its labels name no group".clone_into(&mut self.message);
        "nobody lifts the gate by itself".clone_into(&mut self.next);
        self.you_can = vec!["put the group's labels back".to_owned(), self.by_hand()];
    }

    fn not_ours(&mut self, pod: &Pod) {
        let others = !self.gates.is_empty();
        self.state = if others { State::GatedByOthers } else { State::NotGated };
        self.waits_for.clear();
        let not_bound = HoldReason::PlacedNotBound;
        if self.reason == Some(not_bound.as_str()) && !pod.has_node() && !others {
            let message = std::mem::take(&mut self.message);
            self.reason(not_bound, &message);
            self.you_can.pop();
            return;
        }
        self.reason = None;
        let message = if others { "rolegate does not hold it; others do" } else { "it has no gate" };
        message.clone_into(&mut self.message);
        self.next = match (others, &self.place) {
            (true, _) => "it is scheduled when the owners of these gates lift them".to_owned(),
            (false, _) => {
                format!("the scheduler decides: see `kubectl describe pod {} -n {}`", self.name, self.namespace)
            }
        };
        self.you_can = self.gates.iter().filter(|gate| !gate.ask.is_empty()).map(|gate| gate.ask.to_owned()).collect();
        self.you_can.dedup();
    }

    fn take_group(&mut self, pod: &Pod, identity: &PodIdentity, picture: &Picture) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let is_it = |other: &PodRef| *other.uid == *uid;
        let counted = picture.seen.view.held().into_iter().find(|held| is_it(&held.pod));
        let seen = || picture.snapshot.pods.held().find(|held| is_it(&held.pod));
        let of_role = || identity.role.as_deref().and_then(|role| picture.seen.view.roles.get(role));
        let runs = || of_role()?.replicas.pods().find(|(_, known)| is_it(&known.pod)).map(|(ordinal, _)| ordinal);
        let ordinal = counted.as_ref().map(|held| held.ordinal).or_else(runs).or(identity.ordinal);
        let bound = pod;
        let pod = counted.or_else(seen);
        let decision = &picture.seen.decision;
        let place = Place::of(identity, ordinal, picture);
        self.pinned = pinned(bound, &place, picture);
        self.pod_group =
            picture.group().zip(identity.role.as_deref()).zip(ordinal).and_then(|((group, role), ordinal)| {
                group.pod_group_of(role, ordinal, identity.replica_size).map(|of| of.name)
            });
        self.state = State::Held;
        if picture.snapshot.lets_go().is_some() {
            self.let_go(picture.snapshot.lets_go());
        } else if let Some(held) = pod.and_then(|pod| decision.held.iter().find(|held| held.pods.has(&pod))) {
            self.held(held, picture);
        } else if let Some(held) = not_bound(bound, &place, picture) {
            self.held(held, picture);
        } else if decision.release.iter().any(|release| is_it(&release.pod.pod)) {
            self.due("its batch may go");
        } else {
            self.due("nothing holds it back");
        }
        self.place = Some(place);
    }

    /// Explains our gate on a pod in a namespace where nothing is held.
    fn let_go(&mut self, why: Option<LetGo>) {
        self.due(&why.map_or_else(String::new, |why| format!("{} ({})", why.words(), why.said_by())));
    }

    fn due(&mut self, message: &str) {
        self.state = State::Due;
        message.clone_into(&mut self.message);
        "rolegate lifts the gate within a second while it runs".clone_into(&mut self.next);
        let lease =
            "if the gate stays, check that rolegate runs and a replica leads: `kubectl get lease -A`".to_owned();
        self.you_can = vec![lease, self.by_hand()];
    }

    fn held(&mut self, held: &Held, picture: &Picture) {
        self.waits_for = Awaited::all_of(picture, held);
        self.advise(held.reason, &held.message, of_held(&picture.seen.decision, held));
    }

    fn reason(&mut self, reason: HoldReason, message: &str) {
        self.advise(reason, message, reason.row().advice);
    }

    fn advise(&mut self, reason: HoldReason, message: &str, advice: Advice) {
        self.reason = Some(reason.as_str());
        message.clone_into(&mut self.message);
        advice.next.clone_into(&mut self.next);
        let group = self.place.as_ref().and_then(|place| place.group.split_once('/'));
        let (namespace, name) = group.unwrap_or((&self.namespace, "GROUP"));
        self.you_can = advice.you_can(&GroupKey::new(namespace, name));
        self.you_can.push(self.by_hand());
    }

    fn by_hand(&self) -> String {
        format!("in an emergency, lift the gate by hand: `rolegate release pod {} -n {}`", self.name, self.namespace)
    }

    pub fn text(&self) -> String {
        let style = Style::of_stdout();
        let name = shown(&format!("{}/{}", self.namespace, self.name));
        let head = match self.state {
            State::Held => format!("{}held{}", style.moving, style.end),
            State::Due => format!("{}held, may go now{}", style.good, style.end),
            State::Orphaned => format!("{}held by nobody{}", style.bad, style.end),
            State::GatedByOthers => format!("{}gated by others{}", style.moving, style.end),
            State::NotGated => format!("{}not gated{}", style.good, style.end),
        };
        let since = self.age_seconds.map(|seconds| format!(", {} old", age(seconds))).unwrap_or_default();
        let mut text = format!("pod {}{name}{}: {head}{since}\n", style.strong, style.end);
        let gates = self.gates.iter().map(|gate| {
            let owner = if gate.ours { "rolegate, this program".to_owned() } else { format!("of {}", gate.owner) };
            format!("{} ({owner})", gate.name)
        });
        let pinned: Vec<_> = self.pinned.iter().map(|(label, value)| format!("{label}={value}")).collect();
        let pinned = (!pinned.is_empty()).then(|| format!("{} (nodeSelector, by rolegate)", pinned.join(", ")));
        let reason = self.reason.map(|reason| format!("{reason}: ")).unwrap_or_default() + &self.message;
        let held_in = self.place.as_ref().filter(|_| self.state == State::Held);
        let ahead = held_in.and_then(|place| {
            let ahead = counted(place.ahead.filter(|ahead| *ahead > 0)?, place.word);
            Some(format!("{ahead} of {:?}", place.coordination.as_deref().unwrap_or_default()))
        });
        lines(&mut text, "gates", gates);
        lines(&mut text, "place", self.place.iter().map(Place::text));
        lines(&mut text, "pinned", pinned);
        lines(&mut text, "PodGroup", self.pod_group.clone());
        lines(&mut text, "finds", self.finds.iter().flat_map(Finds::lines));
        lines(&mut text, "engine", self.engine.iter().flat_map(EngineStory::lines));
        lines(&mut text, "reason", [reason]);
        lines(&mut text, "ahead", ahead);
        if !self.waits_for.is_empty() {
            lines(&mut text, "waits for", [String::new()]);
            text.push_str(&replicas(&self.waits_for, 11));
        }
        lines(&mut text, "next", [self.next.clone()]);
        lines(&mut text, "you can", self.you_can.iter().cloned());
        text
    }
}

/// Appends lines, the first of which begins with a word.
fn lines(text: &mut String, word: &str, lines: impl IntoIterator<Item = String>) {
    for (position, line) in lines.into_iter().enumerate() {
        _ = writeln!(text, "  {:<9}{}", if position == 0 { word } else { "" }, shown(&line));
    }
}

/// Returns advice for a released pod without a node that is in another PodGroup than its own, as KAI's podgrouper causes before
/// v0.15, and an edit of the policy. A held pod is put into its own by its release.
fn strays(pod: &Pod, group: &Group, identity: &PodIdentity, ordinal: Option<u32>) -> Option<String> {
    if pod.has_gate(names::GATE) || pod.has_node() {
        return None;
    }
    let role = identity.role.as_deref()?;
    let own = group.pod_group_of(role, ordinal.or(identity.ordinal)?, identity.replica_size)?;
    let other = own.key.read(&pod.metadata).filter(|other| *other != own.name)?;
    let (key, name) = (own.key.as_str(), own.name.as_str());
    Some(format!(
        "see who changed {key} after the pod was released, or podGroupPolicy: it names PodGroup {other:?} and not {name:?}, its \
         present one, and its scheduler does not start it with those; then delete the pod, so that it is made again"
    ))
}

/// Returns advice for a pod without a node in a PodGroup of Kubernetes itself.
fn native_gang(pod: &Pod) -> Option<String> {
    let group = pod.spec.scheduling_group.as_ref().filter(|_| !pod.has_node())?;
    let name = &group.pod_group_name;
    Some(format!(
        "see whether PodGroup {name:?} of scheduling.k8s.io (spec.schedulingGroup) has pods of one batch only: its gang waits for \
         all of them, held ones among them"
    ))
}
