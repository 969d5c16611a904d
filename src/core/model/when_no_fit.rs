//! Action for a batch that must share a domain and fits in none.

use super::words::words;

words! {
#[derive(Default)]
pub enum WhenNoFit {
    /// The batch is held until it fits.
    #[default]
    Hold = "hold",
    /// The batch goes to a domain in which it would fit without pods of lower priority, which are preempted.
    Preempt = "preempt",
    /// The batch goes to the domain with room for most of it, and waits there for the rest.
    Release = "release",
    /// The batch is held, and nodes are requested for it.
    Provision = "provision",
}
}

impl WhenNoFit {
    /// Reports whether the batch is held until it fits.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Provision)
    }
}
