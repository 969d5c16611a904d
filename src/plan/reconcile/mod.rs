//! Which group is looked at when, and what is to be done about it: the loop without its writes. It knows no clock and no
//! client, so that a simulated cluster can drive exactly what a real one does.

pub mod action;
pub mod events;
mod memory;
mod missing_group;
pub mod options;
mod pass;
pub mod reconciler;
mod rollout_events;
mod rollouts;
mod timing;
pub mod uptime;
