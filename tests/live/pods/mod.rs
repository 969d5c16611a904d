//! Every pod is born right on a real control plane: what the API server stores, what the scheduler makes of it, and what
//! becomes of it beside other webhooks and the controllers of LeaderWorkerSets.

mod apart;
mod deadlocks;
mod devices;
mod discovery;
mod domains;
mod encodings;
mod engines;
pub mod gangs;
mod leader_worker_sets;
mod numbers;
mod offline;
pub mod pod_groups;
mod reinvocation;
mod requests;
mod room;
mod scheduled;
mod schemes;
mod shapes;
mod strays;
pub mod support;
mod volumes;
mod whole;
