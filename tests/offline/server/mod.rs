//! The server over real sockets, with real TLS clients.

mod certificates;
mod drain;
mod limits;
mod requests;
mod support;
