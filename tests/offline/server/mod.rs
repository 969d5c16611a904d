//! The server with real sockets and TLS clients.

mod certificates;
mod drain;
mod limits;
mod requests;
mod support;
