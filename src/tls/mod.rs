//! TLS of the webhook, and its certificates: read from files, or issued by an own authority.

pub mod acceptor;
pub mod authority;
pub mod cert_files;
pub mod cert_info;
mod client_auth;
pub(crate) mod crypto;
pub mod files;
