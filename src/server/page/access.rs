//! Access to the page. With a token: for its holders. Without: for callers from this machine or through `kubectl
//! port-forward` that use a local host name, so that no web site gains access by resolving its own name to this address.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};

use crate::server::http::Peer;

/// Shorter tokens can be guessed.
const LEAST_TOKEN: usize = 16;

/// Condition of access.
#[derive(Debug)]
pub enum Access {
    /// Callers with this token.
    Token(String),
    /// Callers from the same machine or pod.
    Loopback,
}

/// Reason for which a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Unreadable(PathBuf, std::io::Error),
    #[error("{}: a token has {LEAST_TOKEN} or more letters, digits and signs, and no space", .0.display())]
    Unusable(PathBuf),
}

impl Access {
    /// Reads the token from a file, trimmed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or has no usable token.
    pub fn of_file(path: &Path) -> Result<Self, TokenError> {
        let text = fs::read_to_string(path).map_err(|error| TokenError::Unreadable(path.to_owned(), error))?;
        let token = text.trim();
        if token.len() < LEAST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unusable(path.to_owned()));
        }
        Ok(Self::Token(token.to_owned()))
    }

    /// Reports why a request is refused.
    fn admits(&self, headers: &HeaderMap, peer: Option<SocketAddr>) -> Result<(), (StatusCode, &'static str)> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        match self {
            Self::Token(token) => {
                let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
                // The time to compare two digests reveals nothing about the tokens.
                let hash = |text: &str| digest(&SHA256, text.as_bytes());
                let is_it = |given: &str| hash(given.trim()).as_ref() == hash(token).as_ref();
                given.is_some_and(is_it).then_some(()).ok_or((StatusCode::UNAUTHORIZED, "this page asks for a token\n"))
            }
            Self::Loopback if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) => {
                let why = "without a token this page is shown through kubectl port-forward only; --page-token-file sets one\n";
                Err((StatusCode::FORBIDDEN, why))
            }
            Self::Loopback if !text(header::HOST).is_some_and(names_this_machine) => {
                Err((StatusCode::FORBIDDEN, "ask for this page as localhost or 127.0.0.1\n"))
            }
            Self::Loopback => Ok(()),
        }
    }
}

/// Matches `localhost:8080`, `127.0.0.1`, `[::1]:8080`.
fn names_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

/// Passes a request on, or answers why not.
pub(super) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    match access.admits(request.headers(), peer) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        authorization.iter().for_each(|value| _ = headers.insert(header::AUTHORIZATION, value.parse().unwrap()));
        headers
    }

    fn status(access: &Access, host: &str, authorization: Option<&str>, peer: &str) -> u16 {
        let peer = peer.parse().ok();
        access.admits(&headers(host, authorization), peer).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn without_a_token_only_this_machine_may_look_by_a_name_of_it() {
        let asked = |host: &str, peer: &str| status(&Access::Loopback, host, None, peer);
        for host in ["localhost", "localhost:9080", "127.0.0.1:1", "[::1]:9080", "[::1]"] {
            assert_eq!(asked(host, "127.0.0.1:5000"), 200, "{host}");
        }
        assert_eq!(asked("localhost", "[::ffff:127.0.0.1]:5000"), 200);
        for (host, peer) in
            [("localhost", "10.0.0.7:5000"), ("localhost", "nobody"), ("evil.example:9080", "127.0.0.1:5000")]
        {
            assert_eq!(asked(host, peer), 403, "{host} {peer}");
        }
    }

    #[test]
    fn with_a_token_whoever_has_it_may_look() {
        let access = Access::Token("0123456789abcdef".to_owned());
        let asked = |authorization: Option<&str>| status(&access, "gate.example", authorization, "10.0.0.7:5000");
        assert_eq!(asked(Some("Bearer 0123456789abcdef")), 200);
        for wrong in [None, Some("Bearer 0123456789abcdeF"), Some("Bearer "), Some("Basic 0123456789abcdef")] {
            assert_eq!(asked(wrong), 401, "{wrong:?}");
        }
    }

    #[test]
    fn a_file_without_a_usable_token_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(Access::of_file(&path).unwrap_err().to_string().contains("token: "));
        for text in ["", "short\n", "0123456789 abcdefgh", "0123456789abcdefg\u{e9}"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(Access::of_file(&path), Err(TokenError::Unusable(_))), "{text:?}");
        }
        fs::write(&path, " 0123456789abcdef\n").unwrap();
        assert!(matches!(Access::of_file(&path), Ok(Access::Token(token)) if token == "0123456789abcdef"));
    }
}
