//! Texts of failed requests, for users.

use std::error::Error;

use crate::rules::DecodeError;

/// Returns the message of the API server, else the innermost cause, in one line. Outer causes only name client layers.
pub fn short(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => one_line(&status.message),
        other => root_cause(other),
    }
}

/// Returns `None` for an answer with one of these status codes.
pub fn unless<T>(codes: &[u16], answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if codes.contains(&status.code) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns the message of an answer that forbids a request.
pub fn forbidden(error: &kube::Error) -> Option<&str> {
    match error {
        kube::Error::Api(status) if status.code == 403 => Some(&status.message),
        _ => None,
    }
}

/// Reports whether a write was refused because its namespace is being deleted or is gone.
pub fn namespace_is_gone(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let details = status.details.as_ref();
    let terminates = details.is_some_and(|of| of.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    terminates || status.code == 404 && details.is_some_and(|of| of.kind == "namespaces")
}

/// Returns the innermost cause of an error, in one line, and in words of the connection where the layers of a client say it.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if let Some(error) = cause.downcast_ref::<serde_json::Error>() {
        return format!("its answer cannot be read: {}", DecodeError::from(error));
    }
    let text = one_line(&cause.to_string());
    let text = text.split(" (os error ").next().unwrap_or_default();
    match WORDS.iter().find_map(|(start, words)| Some((words, text.strip_prefix(start)?))) {
        Some((words, rest)) if words.ends_with(' ') => format!("{words}{rest}"),
        Some((words, _)) => (*words).to_owned(),
        None => text.to_owned(),
    }
}

/// Beginnings of messages of libraries, and what the server at the other end does. The rest of a message follows words that
/// end with a space.
const WORDS: &[(&str, &str)] = &[
    ("received corrupt message of type InvalidContentType", "it answers without TLS"),
    ("received corrupt message", "its TLS cannot be understood"),
    ("received fatal alert: ", "it refuses the TLS connection: "),
    ("invalid peer certificate: UnknownIssuer", "its certificate is signed by no trusted authority"),
    ("invalid peer certificate: BadSignature", "its certificate has a wrong signature"),
    ("invalid peer certificate: certificate expired", "its certificate has expired"),
    ("invalid peer certificate: certificate not valid yet", "its certificate is not valid yet"),
    ("invalid peer certificate: certificate not valid for name ", "its certificate is not for "),
    ("invalid peer certificate: ", "its certificate cannot be trusted: "),
    ("tls handshake eof", "it ends the connection during the TLS handshake"),
    ("peer closed connection without sending TLS close_notify", "it ends the connection in the middle of an answer"),
    ("connection closed before message completed", "it ends the connection before it answers"),
    ("invalid HTTP version parsed", "it does not answer in HTTP"),
    ("invalid HTTP header parsed", "it does not answer in HTTP"),
    ("failed to lookup address information: ", "its address cannot be found: "),
    ("deadline has elapsed", "no answer in time"),
    ("operation timed out", "no answer in time"),
];

/// Replaces line breaks and repeated spaces by single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;
    use crate::cluster::write::deadline::Unfinished;

    #[test]
    fn it_is_what_the_api_server_says_or_the_innermost_cause() {
        let status = Status::failure("no room\n  for more", "Forbidden").with_code(403);
        assert_eq!(short(&kube::Error::Api(Box::new(status))), "no room for more");
        assert_eq!(short(&Unfinished::Panic.into()), "it panicked");
        let told = |text: &str| root_cause(&std::io::Error::other(text.to_owned()));
        assert_eq!(told("received corrupt message of type InvalidContentType"), "it answers without TLS");
        assert_eq!(
            told("invalid peer certificate: UnknownIssuer"),
            "its certificate is signed by no trusted authority"
        );
        assert_eq!(told("received fatal alert: BadCertificate"), "it refuses the TLS connection: BadCertificate");
        assert_eq!(told("Connection refused"), "Connection refused");
        let error = serde_json::from_str::<u8>("<html>").unwrap_err();
        assert_eq!(root_cause(&error), "its answer cannot be read: not JSON: a value is missing");
    }

    #[test]
    fn a_namespace_that_is_being_deleted_takes_nothing_new() {
        let says = |text: serde_json::Value| {
            namespace_is_gone(&kube::Error::Api(Box::new(serde_json::from_value(text).unwrap())))
        };
        let cause = json!({ "reason": "NamespaceTerminating", "message": "namespace a is being terminated" });
        assert!(says(json!({ "code": 403, "details": { "kind": "events", "causes": [cause] } })));
        assert!(says(json!({ "code": 404, "details": { "kind": "namespaces", "name": "a" } })));
        assert!(!says(json!({ "code": 403, "details": { "kind": "events" } })));
        assert!(!says(json!({ "code": 404, "details": { "kind": "pods", "name": "a" } })));
    }
}
