//! Writes and live reads that are under way, and the pauses after those that failed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::plan::reconcile::owned_memory::OwnedId;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::uptime::Uptime;

/// A write or live read, of which one at a time is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::plan) enum Try {
    /// A write on the object with this uid.
    Object(Arc<str>),
    /// A write of an object that the carrier of the group owns.
    Owned(OwnedId),
    /// The list of the objects that the object with this uid owns.
    OwnedBy(String),
    /// A read.
    Read(Read),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::plan) enum Read {
    Group,
    Pods,
    Losses,
    Gone,
}

/// Writes and reads of one group or PodGroup.
#[derive(Debug, Default)]
pub(in crate::plan) struct Tries {
    /// Uids of objects with a write under way.
    objects: HashSet<Arc<str>>,
    /// Everything else that is under way.
    others: HashSet<Try>,
    failed: HashMap<Try, Failed>,
}

#[derive(Debug)]
struct Failed {
    times: u32,
    again: Uptime,
    /// The answer; empty if it is not known.
    why: Arc<str>,
}

/// Whether a write or read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Begin {
    Now,
    /// The last one is under way.
    UnderWay,
    /// The last one failed: not before this time.
    At(Uptime),
}

impl Tries {
    /// Begins a write or read, unless one is under way or the pause after a failure lasts.
    pub(in crate::plan) fn begin(&mut self, one: Try, now: Uptime) -> Begin {
        match self.due(&one) {
            Some(at) if at > now => Begin::At(at),
            _ if self.start(one) => Begin::Now,
            _ => Begin::UnderWay,
        }
    }

    fn start(&mut self, one: Try) -> bool {
        match one {
            Try::Object(uid) => self.objects.insert(uid),
            other => self.others.insert(other),
        }
    }

    pub(in crate::plan) fn is_idle(&self) -> bool {
        self.objects.is_empty() && self.others.is_empty()
    }

    /// Reports whether a write is under way, or the list of owned objects before one.
    pub(in crate::plan) fn writes(&self) -> bool {
        !self.objects.is_empty() || self.others.iter().any(|one| !matches!(one, Try::Read(_)))
    }

    /// Returns the uids of objects with a write under way.
    pub(in crate::plan) fn objects(&self) -> &HashSet<Arc<str>> {
        &self.objects
    }

    pub(in crate::plan) fn is_under_way(&self, one: &Try) -> bool {
        one.uid().map_or_else(|| self.others.contains(one), |uid| self.objects.contains(uid))
    }

    /// Notes an end; returns when the next pass is due. `why` is the answer to one that failed, if known.
    pub(in crate::plan) fn end(&mut self, one: Try, why: Option<&str>, now: Uptime) -> Uptime {
        match &one {
            Try::Object(uid) => _ = self.objects.remove(uid),
            other => _ = self.others.remove(other),
        }
        let before = self.failed.remove(&one);
        let Some(why) = why else { return now };
        let times = before.map_or(1, |failed| failed.times + 1);
        let again = now + pause(times);
        self.failed.insert(one, Failed { times, again, why: why.into() });
        again
    }

    /// Returns when one that failed may be tried again; `None` if it did not fail.
    pub(in crate::plan) fn due(&self, one: &Try) -> Option<Uptime> {
        self.failed.get(one).map(|failed| failed.again)
    }

    /// Returns the uids of objects whose last write failed, each with the answer.
    pub(in crate::plan) fn refused(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.failed.iter().filter_map(|(one, failed)| Some((one.uid()?.clone(), failed.why.clone()))).collect()
    }

    pub(in crate::plan) fn has_failed(&self, one: &Try) -> bool {
        self.failed.contains_key(one)
    }

    pub(in crate::plan) fn have_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Forgets failures of objects that are gone.
    pub(in crate::plan) fn keep_only(&mut self, is_there: impl Fn(&Try) -> bool) {
        self.failed.retain(|one, _| is_there(one));
    }

    pub(in crate::plan) fn len(&self) -> usize {
        self.objects.len() + self.others.len() + self.failed.len()
    }
}

impl Try {
    fn uid(&self) -> Option<&Arc<str>> {
        if let Self::Object(uid) = self { Some(uid) } else { None }
    }
}
