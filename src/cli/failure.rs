//! Errors of commands that talk to a cluster, as one-line messages.

use std::error::Error;

use super::terminal::{in_words, shown};
use crate::cluster::failure;

/// The error of a command that talks to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No kubeconfig, or an unusable one.
    #[error("no cluster to talk to: {0}")]
    Config(String),
    /// Credentials of the kubeconfig are unusable.
    #[error("{0}")]
    Client(String),
    /// The client certificate, or its key, is unusable.
    #[error(
        "the client certificate of the kubeconfig, {certificate}, cannot be used: {reason}. One of X.509 version 3 can, with a \
         key of P-256, P-384 or Ed25519, or of RSA with 2048 bits or more"
    )]
    Certificate {
        /// Subject, version and key of the certificate.
        certificate: String,
        reason: String,
    },
    /// The API server does not answer.
    #[error("cannot reach the API server at {server}: {reason}")]
    Unreachable {
        /// URL of the API server.
        server: String,
        reason: String,
    },
    /// The API server refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The object does not exist, or the request is not possible.
    #[error("{0}")]
    Other(String),
}

/// Returns the text on one line, without control characters.
pub fn one_line(text: &str) -> String {
    shown(&in_words(&failure::one_line(text)))
}

/// Returns the innermost cause of an error, on one line and without control characters.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    shown(&in_words(&failure::root_cause(error)))
}
