//! Pods that are or would be held for one reason.

use serde::Serialize;

use crate::plan::Held;

#[derive(Serialize)]
pub struct Hold<'a> {
    coordination: Option<&'a str>,
    batch: Option<u32>,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
    pub(super) pods: u32,
}

impl<'a> Hold<'a> {
    pub(super) fn of(held: &'a Held) -> Self {
        let Held { batch, reason, message, .. } = held;
        let (coordination, pods) = (held.coordination_name(), held.count());
        Self { coordination, batch: *batch, reason: reason.as_str(), message, pods }
    }
}
