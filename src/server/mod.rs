//! Talks to callers: TLS, accept loop, admission table and handler, admin port.
