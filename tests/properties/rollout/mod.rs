//! What holds of every rollout in lockstep, whatever the roles, the speeds and the failures, and in whichever order the
//! workloads' controllers, the pods and the planner come to move.

mod bounds;
mod cases;
mod world;
