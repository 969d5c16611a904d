//! The server side: HTTP, TLS and certificates, admission reviews, the status page.

pub mod admission;
pub mod http;
pub mod page;
pub mod tls;
