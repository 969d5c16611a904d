//! Texts of failed requests, for users.

use std::error::Error;

/// Returns the message of the API server, else the innermost cause, in one line. Outer causes only name client layers.
pub fn short(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => one_line(&status.message),
        other => root_cause(other),
    }
}

/// Returns `None` for an answer with one of these status codes.
pub fn unless<T>(codes: &[u16], answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
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

/// Returns the innermost cause of an error, in one line.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    one_line(&cause.to_string())
}

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
