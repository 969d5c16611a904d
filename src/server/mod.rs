//! Talks to callers: HTTP, TLS and certificates, admission reviews.

pub mod admission;
pub mod http;
pub mod tls;
