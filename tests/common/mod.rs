//! Common parts of the suites on the real control plane: the control plane, rolegate as a process, groups and nodes,
//! and observers that record events, so that invariants are checked at every event.
//!
//! A test uses a [`Stage`]: a namespace on the shared control plane, with nodes of its own, and a rolegate that serves
//! only this namespace.

#![allow(dead_code, unused_imports, reason = "each suite uses a part of it")]

pub mod account;
pub mod audit;
pub mod build;
pub mod control_plane;
pub mod figures;
pub mod group;
pub mod http;
pub mod invariants;
pub mod ledger;
pub mod pods;
pub mod policies;
pub mod proxy;
pub mod request_proxy;
pub mod rolegate;
pub mod stage;
pub mod status;
pub mod swept;
pub mod terminal;
pub mod tls;
pub mod tunnel;
pub mod wait;

pub use control_plane::ControlPlane;
pub use group::{Group, Progression};
pub use pods::PodLog;
pub use stage::Stage;
pub use wait::{PATIENT, always, eventually, holds, stays, until_found, until_is, until_says};

/// The names that most tests on the control plane use.
pub mod prelude {
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::net::SocketAddr;
    pub use std::path::{Path, PathBuf};
    pub use std::process::Stdio;
    pub use std::sync::Arc;
    pub use std::time::{Duration, Instant};

    pub use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    pub use k8s_openapi::api::core::v1::{Node, Pod as ApiPod, Secret};
    pub use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
    pub use kube::{Api, Client};
    pub use serde_json::{Value, json};

    pub use super::audit::Account;
    pub use super::control_plane::{SYSTEM, Shared, scratch_dir};
    pub use super::group::{asking, bare_pod, near, node, object, owner};
    pub use super::pods::{GATE, Pod, Step, View};
    pub use super::proxy::Proxy;
    pub use super::rolegate::{Launch, Ran, Rolegate, ran, rolegate_command};
    pub use super::stage::{Answer, CORE, GROUPS, make_namespace, typed};
    pub use super::status::{Status, StatusLog};
    pub use super::wait::{holds, stays, until_is, until_says};
    pub use super::{ControlPlane, Group, PATIENT, Progression, Stage, always, eventually, invariants, until_found};
}
