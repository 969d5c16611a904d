//! Rollouts in lockstep (KEP-30) on a real control plane: StatefulSets and LeaderWorkerSets with their own controllers,
//! changed as users change them, and watched from outside.

mod cohorts;
mod failures;
mod leader_worker_sets;
mod lockstep;
mod readiness;
mod rollbacks;
mod rounds;
mod segments;
mod steps;
pub mod support;
mod thaw;
mod users;
mod warnings;
