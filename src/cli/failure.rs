//! Why a command that talks to a cluster ends, in one line.

use std::error::Error;

use super::terminal::{in_words, shown};
use crate::cluster::failure;

/// Why a command that talks to a cluster ends.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No kubeconfig, or none that can be used.
    #[error("no cluster to talk to: {0}")]
    Config(String),
    /// Certificates or keys of the kubeconfig cannot be used.
    #[error("client: {0}")]
    Client(kube::Error),
    /// The client certificate, or its key, cannot be used.
    #[error(
        "the client certificate of the kubeconfig, {certificate}, cannot be used: {reason}. One of X.509 version 3 can, with a \
         key of P-256, P-384 or Ed25519, or of RSA with 2048 bits or more"
    )]
    Certificate {
        /// Its subject, version and key.
        certificate: String,
        /// Why not.
        reason: String,
    },
    /// The API server does not answer.
    #[error("cannot reach the API server at {server}: {reason}")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why not.
        reason: String,
    },
    /// The API server refuses.
    #[error("{0}")]
    Refused(String),
    /// What was asked for is not there, or not to be done.
    #[error("{0}")]
    Other(String),
}

/// A text in one line, as a terminal may show it.
pub fn one_line(text: &str) -> String {
    shown(&in_words(&failure::one_line(text)))
}

/// The innermost cause of an error, likewise.
pub fn root_cause(error: &dyn Error) -> String {
    shown(&in_words(&failure::root_cause(error)))
}
