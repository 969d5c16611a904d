//! TLS, and its certificates: from files, or from an own authority in a Secret.

pub mod acceptor;
pub mod authority;
pub mod cert_files;
pub mod cert_info;
pub mod certificates;
mod client_auth;
pub(in crate::server) mod crypto;
pub mod files;
