//! Talks to callers: certificates, TLS, accept loop, admission table and handler, admin port.

pub mod accept;
pub mod admin;
pub mod admission;
pub mod admission_metrics;
pub mod answer;
pub mod authority;
pub mod cert_files;
pub mod cert_info;
pub mod certificates;
mod client_auth;
mod connection;
mod crypto;
pub mod decode;
pub mod files;
pub mod limits;
pub mod metrics;
mod pulse;
pub mod registration;
pub mod self_dial;
pub mod table;
pub mod tls;
pub mod webhooks;
