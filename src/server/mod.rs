//! The server side: HTTP, admission reviews, the status page.

pub mod admission;
pub mod http;
pub mod page;
