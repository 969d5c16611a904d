//! The policies of `policies/` in a real API server: the twins agree with the rules on every golden case, the guard keeps
//! holds closed, and pods are held without any webhook.

pub mod cluster;
mod guard;
pub mod hold;
mod labeller;
mod mutants;
mod older;
mod readme;
mod trial;
pub mod twins;
