//! Writes and live reads that are under way, and the pauses after those that failed. The key is the unique id of the object that is
//! written, or the name of a read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::uptime::Uptime;

/// Writes and reads of one group or PodGroup.
#[derive(Debug, Default)]
pub(in crate::plan) struct Tries {
    under_way: HashSet<Arc<str>>,
    failed: HashMap<Arc<str>, Failed>,
}

#[derive(Debug)]
struct Failed {
    times: u32,
    again: Uptime,
    /// The answer; empty if it is not known.
    why: Arc<str>,
}

/// Whether a write begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Begin {
    Now,
    /// Another write of the object is under way.
    UnderWay,
    /// The last one failed: not before this time.
    At(Uptime),
}

impl Tries {
    /// Begins a write, unless one is under way or the pause after a failure lasts.
    pub(in crate::plan) fn begin(&mut self, id: &Arc<str>, now: Uptime) -> Begin {
        match self.due(id) {
            Some(at) if at > now => Begin::At(at),
            _ if self.under_way.insert(id.clone()) => Begin::Now,
            _ => Begin::UnderWay,
        }
    }

    /// Keys of what is under way.
    pub(in crate::plan) fn under_way(&self) -> &HashSet<Arc<str>> {
        &self.under_way
    }

    pub(in crate::plan) fn is_under_way(&self, id: &str) -> bool {
        self.under_way.contains(id)
    }

    /// Notes the end of a write; returns when the next pass is due. `why` is the answer to one that failed, if known.
    pub(in crate::plan) fn end(&mut self, id: &str, why: Option<&str>, now: Uptime) -> Uptime {
        self.under_way.remove(id);
        let Some(why) = why else {
            self.failed.remove(id);
            return now;
        };
        let before = self.failed.remove_entry(id);
        let (id, times) = before.map_or_else(|| (id.into(), 0), |(id, failed)| (id, failed.times));
        let again = now + pause(times + 1);
        self.failed.insert(id, Failed { times: times + 1, again, why: why.into() });
        again
    }

    /// Notes the end of a write that counts neither as taken nor as failed; false if none was under way.
    pub(in crate::plan) fn drop(&mut self, id: &str) -> bool {
        self.under_way.remove(id)
    }

    /// When a write that failed may be tried again; `None` if none failed.
    pub(in crate::plan) fn due(&self, id: &str) -> Option<Uptime> {
        self.failed.get(id).map(|failed| failed.again)
    }

    /// Keys of the writes that failed last, each with the answer.
    pub(in crate::plan) fn refused(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.failed.iter().map(|(id, failed)| (id.clone(), failed.why.clone())).collect()
    }

    pub(in crate::plan) fn has_failed(&self, id: &str) -> bool {
        self.failed.contains_key(id)
    }

    pub(in crate::plan) fn have_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Forgets failures of objects that are gone.
    pub(in crate::plan) fn keep_only(&mut self, is_there: impl Fn(&str) -> bool) {
        self.failed.retain(|id, _| is_there(id));
    }

    pub(in crate::plan) fn len(&self) -> usize {
        self.under_way.len() + self.failed.len()
    }
}
