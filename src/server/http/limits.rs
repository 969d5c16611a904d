//! Limits of time, bytes and connections of callers.

use std::time::Duration;

/// Limits of one listener. [`Limits::default`] is meant for an admission webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its headers. Does not count while a kept-alive connection waits for its
    /// next request: that is [`Limits::idle`].
    pub header: Duration,
    /// Largest request body in bytes.
    pub body_bytes: usize,
    /// Longest time for a request body to arrive.
    pub body_time: Duration,
    /// Bytes of request bodies that may be buffered at a time, over all connections.
    pub body_memory: usize,
    /// Longest time of a connection without a request in flight. Longer than the 90 s after which the API server closes an
    /// idle connection itself, so that the server never closes one just as it sends a request.
    pub idle: Duration,
    /// Longest time of one write to a peer that does not read.
    pub write: Duration,
    /// Open connections; further ones wait in the kernel's backlog.
    pub connections: usize,
    /// Largest number of newcomers among them: connections without a review yet.
    pub newcomers: usize,
    /// Time of a newcomer for its first request while all places of newcomers are taken and others wait; a quarter of it
    /// without a request in flight.
    pub newcomer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
            // Two objects of 3 MiB (etcd's limit with its margin), one of them the old one, and 1 MiB for the envelope.
            body_bytes: 7 << 20,
            body_time: Duration::from_secs(10),
            // Three of the largest, or thousands of a usual pod's.
            body_memory: 32 << 20,
            idle: Duration::from_secs(120),
            write: Duration::from_secs(10),
            // An API server opens as many as it has concurrent calls, some hundreds, and keeps 25; there are three or five
            // servers.
            connections: 2048,
            newcomers: 1024,
            newcomer: Duration::from_secs(4),
        }
    }
}

impl Limits {
    /// Limits the connections to half of the open files: the other half is for outgoing requests.
    #[must_use]
    pub fn within(self, open_files: usize) -> Self {
        let connections = self.connections.min(open_files / 2);
        Self { connections, newcomers: self.newcomers.min(connections / 2), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_others() {
        assert_eq!(Limits::default().within(1 << 20), Limits::default());
        let Limits { connections, newcomers, .. } = Limits::default().within(256);
        assert_eq!((connections, newcomers), (128, 64));
    }
}
