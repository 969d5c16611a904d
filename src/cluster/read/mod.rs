//! Reads on demand, where a watch does not do: live reads before a denial, and lists for a single look.

pub mod devices;
pub mod events;
pub mod installations;
pub mod listing;
pub mod lookup;
pub mod losses;
pub mod missing_pods;
pub mod pod_groups;
pub mod pods;
pub mod shortages;
pub mod templates;
