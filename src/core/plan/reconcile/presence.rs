//! Since when a group or PodGroup is not there, and whether a live read has confirmed that.

use crate::api::ObjectKind;
use crate::plan::reconcile::uptime::Uptime;

#[derive(Debug, Default)]
pub(in crate::plan) struct Presence {
    pub(in crate::plan) missing_since: Option<Uptime>,
    /// Kind and unique id of the object when it was last there.
    pub(in crate::plan) carrier: Option<(ObjectKind, String)>,
    /// A live read has found the object gone, which counts for one pass.
    gone: bool,
}

impl Presence {
    /// Notes that an object is there; returns whether it is another one than before.
    pub(in crate::plan) fn note(&mut self, kind: ObjectKind, uid: &str) -> bool {
        self.missing_since = None;
        let is_new = self.carrier.as_ref().is_none_or(|(_, known)| known != uid);
        if is_new || self.carrier.as_ref().is_some_and(|(known, _)| *known != kind) {
            self.carrier = Some((kind, uid.to_owned()));
        }
        is_new
    }

    /// Notes the answer to a live read.
    pub(in crate::plan) fn answered(&mut self, gone: bool, now: Uptime) {
        self.gone = gone;
        if !gone {
            // The time counts from when all could be seen again.
            self.missing_since = Some(now);
        }
    }

    /// Reports whether a live read has found the object gone, once.
    pub(in crate::plan) fn take_gone(&mut self) -> bool {
        std::mem::take(&mut self.gone)
    }
}
