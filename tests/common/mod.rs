//! Common parts of the suites on the real control plane: the control plane, rolegate as a process, groups and nodes,
//! and observers that record events, so that invariants are checked at every event.
//!
//! A test uses a [`Stage`]: a namespace on the shared control plane, with nodes of its own, and a rolegate that serves
//! only this namespace.

#![allow(dead_code, unused_imports, reason = "each suite uses a part of it")]

pub mod account;
pub mod audit;
pub mod control_plane;
pub mod figures;
pub mod group;
pub mod http;
pub mod invariants;
pub mod pods;
pub mod policies;
pub mod proxy;
pub mod request_proxy;
pub mod rolegate;
pub mod stage;
pub mod status;
pub mod terminal;
pub mod tls;
pub mod tunnel;
pub mod wait;

pub use control_plane::ControlPlane;
pub use group::{Group, Progression};
pub use pods::PodLog;
pub use stage::Stage;
pub use wait::{PATIENT, always, eventually};
