//! The installation on a real API server: what is printed is accepted, runs with the rights it is given and no more, and
//! never stands in its own way.

mod agreement;
mod cert_manager;
mod containment;
mod deadlock;
mod pods;
mod rights;
pub mod support;
