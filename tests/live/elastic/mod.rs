//! Elastic groups on the real control plane: two workloads that are scaled together, in their ratio all the time.

mod autoscaler;
mod changes;
mod failures;
mod racks;
mod scaling;
mod support;
