//! The installation on a real API server: what is printed is accepted, runs with the rights it is given and no more, and
//! never stands in its own way.

pub mod agreement;
mod cert_manager;
mod containment;
mod deadlock;
mod gitops;
mod ipv6;
#[path = "../../properties/authors/made.rs"]
#[allow(dead_code, reason = "what differs is what the rules say here")]
mod made;
mod people;
mod pods;
mod releases;
pub mod render;
pub mod rights;
pub mod support;
mod two;
mod values;
