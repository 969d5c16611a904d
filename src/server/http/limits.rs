//! What a caller may take: time, bytes and connections.

use std::time::Duration;

/// Limits of one listener. [`Limits::default`] is meant for an admission webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of an HTTP/1 request to the end of its headers. Not counted while a kept-alive connection
    /// waits for its next request: that is [`Limits::idle`].
    pub header: Duration,
    /// Largest request body in bytes.
    pub body_bytes: usize,
    /// Longest time for a request body to arrive.
    pub body_time: Duration,
    /// Bytes of request bodies that may be buffered at a time, over all connections.
    pub body_memory: usize,
    /// How long a connection may stay open with no request in flight. Longer than the 90 s after which the API server
    /// closes an idle connection itself, so that we never close one just as it sends a request.
    pub idle: Duration,
    /// Replaces [`Limits::idle`] while every connection is taken: then idle ones make room for waiting ones.
    pub idle_when_full: Duration,
    /// How long one write may wait for a peer that does not read.
    pub write: Duration,
    /// Connections open at once; further ones wait in the kernel's backlog.
    pub connections: usize,
    /// HTTP/2 streams open at once on one connection.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
            // Two objects of 3 MiB (etcd's limit with its margin), one of them the old one, and 1 MiB for the envelope.
            body_bytes: 7 << 20,
            body_time: Duration::from_secs(10),
            // Nine of the largest, or thousands of a usual pod's.
            body_memory: 64 << 20,
            idle: Duration::from_secs(120),
            idle_when_full: Duration::from_secs(1),
            write: Duration::from_secs(10),
            connections: 2048,
            streams: 128,
        }
    }
}
