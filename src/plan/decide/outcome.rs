//! What becomes of a held pod: it goes, or it stays for a reason.

use crate::model::HoldReason;
use crate::plan::view::HeldPod;

/// A pod to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The pod.
    pub pod: HeldPod,
    /// True when it needs no commit: its replica was released before, or nothing batches it.
    pub at_once: bool,
}

/// Pods that are held for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Coordination whose batch is held, `None` when no coordination is the reason.
    pub coordination: Option<String>,
    /// The lowest batch that is held, from 0.
    pub batch: Option<u32>,
    /// Why.
    pub reason: HoldReason,
    /// For people.
    pub message: String,
    /// How many pods.
    pub pods: u32,
    /// True for pods that may go by their count, and wait for others of their own batch or replica.
    pub waits_for_own: bool,
}
