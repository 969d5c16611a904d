//! Pictures for the viewers of the page: computed once for all viewers of a subject, only while there is one, and sent when
//! changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::api::event::Event;
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::failure::short;
use crate::cluster::index::SharedIndex;
use crate::cluster::locked::locked;
use crate::cluster::read::events::events_of;
use crate::fit::Cluster;
use crate::model::{GroupKey, Mode};
use crate::plan::Sight;
use crate::plan::gangs::TreeSnapshot;
use crate::plan::placement::Capacity;
use crate::report::{Drawing, Findings, Line, Picture, PodGroupStatus, TreePicture};
use crate::server::http::admin::Readiness;

/// Shortest time between two pictures of a subject.
const PAUSE: Duration = Duration::from_secs(1);
/// Ratio of the pause to the drawing time: a feed takes at most a tenth of a processor.
const REST: u32 = 10;
/// Shortest time between two reads of the Events of a group.
const EVENTS_PAUSE: Duration = Duration::from_secs(5);
/// Largest number of shown Events.
const MOST_EVENTS: usize = 50;

/// The input of pictures.
#[derive(Clone)]
pub struct Source {
    /// Client for reads of Events.
    pub client: Client,
    /// Groups, pods and workloads.
    pub index: SharedIndex,
    /// Nodes and pods; `None` where nothing is placed.
    pub capacity: Option<SharedCapacity>,
    /// Whether this replica leads.
    pub leader: watch::Receiver<bool>,
    pub identity: String,
    pub readiness: Readiness,
    /// Mode of namespaces without a mode label.
    pub mode: Mode,
}

/// The subject of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    All,
    One(GroupKey),
}

/// The pictures with viewers.
pub struct Feeds {
    source: Source,
    open: Mutex<HashMap<Subject, watch::Sender<Arc<str>>>>,
}

#[derive(Serialize)]
struct Replica<'a> {
    identity: &'a str,
    leads: bool,
    /// Names and reasons of failing readiness checks.
    failing: Vec<(String, String)>,
    /// Mode of namespaces without a mode label.
    mode: &'static str,
    /// True until every watch has listed: the picture is incomplete.
    listing: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct All<'a> {
    replica: Replica<'a>,
    groups: Vec<Line<'a>>,
    pod_groups: Vec<PodGroupStatus<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    replica: Replica<'a>,
    /// Absent where neither the group nor a pod of it exists.
    group: Option<Drawing<'a>>,
    /// Why the room is unknown, where batches share domains.
    room: Option<String>,
    events: Vec<EventLine<'a>>,
    /// Why Events cannot be read.
    silence: Option<&'a str>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    time: &'a str,
    reason: &'a str,
    message: &'a str,
    warning: bool,
}

impl<'a> EventLine<'a> {
    fn of(event: &'a Event) -> Self {
        let Event { reason, message, r#type, .. } = event;
        Self { time: event.last_seen(), reason, message, warning: r#type == "Warning" }
    }
}

/// The Events of a group as last read.
#[derive(Default)]
struct GroupEvents {
    at: Option<Instant>,
    events: Vec<Event>,
    silence: Option<String>,
}

impl Feeds {
    pub fn new(source: Source) -> Self {
        Self { source, open: Mutex::default() }
    }

    /// Subscribes to the pictures of a subject, which are drawn while there is a subscriber.
    pub(super) fn follow(feeds: &Arc<Self>, subject: Subject) -> watch::Receiver<Arc<str>> {
        let mut open = locked(&feeds.open);
        if let Some(sender) = open.get(&subject) {
            let mut receiver = sender.subscribe();
            // A later subscriber gets the last picture at once.
            receiver.mark_changed();
            return receiver;
        }
        let (sender, receiver) = watch::channel(Arc::from(""));
        open.insert(subject.clone(), sender.clone());
        tokio::spawn(Arc::clone(feeds).draw(subject, sender));
        receiver
    }

    async fn draw(self: Arc<Self>, subject: Subject, sender: watch::Sender<Arc<str>>) {
        let mut read = GroupEvents::default();
        loop {
            let (source, about) = (self.source.clone(), subject.clone());
            if let Subject::One(key) = &about {
                self.source.read_events(key, &mut read).await;
            }
            let started = Instant::now();
            let drawn = tokio::task::spawn_blocking(move || {
                let picture = source.picture(&about, &read);
                (picture, read)
            });
            // A panic is logged where it happens; the next picture may still succeed.
            let Ok((picture, again)) = drawn.await else { return self.close(&subject) };
            read = again;
            sender.send_if_modified(|last| {
                let changed = **last != *picture;
                if changed {
                    *last = picture.into();
                }
                changed
            });
            sleep(PAUSE.max(started.elapsed() * REST)).await;
            if self.closes_unseen(&subject, &sender) {
                return;
            }
        }
    }

    /// Closes a feed without viewers. The lock keeps new ones out meanwhile.
    fn closes_unseen(&self, subject: &Subject, sender: &watch::Sender<Arc<str>>) -> bool {
        let mut open = locked(&self.open);
        let unseen = sender.receiver_count() == 0;
        if unseen {
            open.remove(subject);
        }
        unseen
    }

    fn close(&self, subject: &Subject) {
        locked(&self.open).remove(subject);
    }
}

impl Source {
    fn replica(&self) -> Replica<'_> {
        Replica {
            identity: &self.identity,
            leads: *self.leader.borrow(),
            failing: self.readiness.failing(),
            mode: self.mode.as_str(),
            listing: !self.index.read().is_synced(),
        }
    }

    async fn read_events(&self, key: &GroupKey, read: &mut GroupEvents) {
        if read.at.is_some_and(|at| at.elapsed() < EVENTS_PAUSE) {
            return;
        }
        // Those of the object that carries it.
        let Some(group) = self.index.read().group(key) else { return };
        read.at = Some(Instant::now());
        match events_of(&self.client, &key.namespace, &group.carrier, MOST_EVENTS).await {
            Ok(events) => (read.events, read.silence) = (events, None),
            Err(error) => read.silence = Some(short(&error)),
        }
    }

    fn picture(&self, subject: &Subject, read: &GroupEvents) -> String {
        let picture = match subject {
            Subject::All => self.all(),
            Subject::One(key) => self.one(key, read),
        };
        // Serialization of strings, numbers and maps with string keys cannot fail.
        picture.unwrap_or_default()
    }

    fn all(&self) -> serde_json::Result<String> {
        let (groups, trees) = {
            let index = self.index.read();
            (index.snapshots(), index.tree_snapshots(None))
        };
        let groups: Vec<_> = groups.into_iter().map(|(key, snapshot)| Picture::of(&key, snapshot)).collect();
        let is_held = |tree: &TreeSnapshot| tree.held().next().is_some();
        let room = if trees.iter().any(is_held) { self.room() } else { Err(String::new()) };
        let tree = |tree: TreeSnapshot| {
            if is_held(&tree) {
                TreePicture::of(tree, room.as_ref().map_err(String::as_str))
            } else {
                TreePicture::at_rest(tree)
            }
        };
        let trees: Vec<_> = trees.into_iter().map(tree).collect();
        serde_json::to_string(&All {
            replica: self.replica(),
            groups: groups.iter().filter(|picture| picture.concerns_us()).map(Line::of).collect(),
            pod_groups: trees.iter().map(PodGroupStatus::of).collect(),
        })
    }

    fn one(&self, key: &GroupKey, read: &GroupEvents) -> serde_json::Result<String> {
        let snapshot = self.index.read().snapshot(key);
        let is_there = snapshot.claims.is_some() || !snapshot.pods.is_empty();
        let mut picture = Picture::of(key, snapshot);
        let (mut cluster, mut unknown) = (None, None);
        if picture.is_placed() {
            match self.room() {
                Ok(mut room) => {
                    let seen = cluster.insert(Cluster::seen(&room, key, &picture.snapshot.pods, 0));
                    picture = picture.with(&Findings::default(), Some(Sight::Known(&mut room))).fitted_into(seen);
                }
                Err(why) => unknown = Some(why),
            }
        }
        serde_json::to_string(&One {
            replica: self.replica(),
            group: is_there.then(|| Drawing::of(&picture, cluster.as_ref())),
            room: unknown,
            events: read.events.iter().map(EventLine::of).collect(),
            silence: read.silence.as_deref(),
        })
    }

    /// Returns the room as this replica knows it. The first call starts the watches.
    fn room(&self) -> Result<Capacity, String> {
        let Some(capacity) = &self.capacity else { return Err("nothing is placed: --placement=off".to_owned()) };
        capacity.ask();
        capacity.look(|sight| match sight {
            Sight::Known(capacity) => Ok(capacity.clone()),
            Sight::NotYet => Err("nodes and pods are being listed".to_owned()),
            Sight::Refused(why) => Err(why.to_owned()),
        })
    }
}
