//! The loop without its writes: when each group is reconciled, and which actions follow. It has no clock and no client, so that
//! a simulated cluster can drive the same code as a real one.

pub mod action;
mod ahead;
mod behind;
mod braking;
pub mod dropped;
pub mod events;
mod lasting;
mod look;
mod memory;
mod missing_group;
pub mod options;
mod overwritten;
mod pass;
mod pauses;
mod pod_events;
pub mod pod_group_memory;
mod pod_groups;
mod probes;
mod queue;
pub mod reconciler;
mod recoveries;
mod recovery_events;
mod recovery_memory;
mod refused_status;
mod refusing;
mod rollout_events;
mod rollouts;
pub mod rounds;
pub mod scales;
mod scaling;
mod timing;
mod tree_memory;
mod trees;
pub mod uptime;
