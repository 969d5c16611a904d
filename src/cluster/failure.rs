//! A failed request, as people are told of it.

use std::error::Error;

/// One line: what the API server says, else the innermost cause. The outer ones say by which layer it came.
pub fn short(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => one_line(&status.message),
        other => root_cause(other),
    }
}

/// The innermost cause of an error, in one line.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    one_line(&cause.to_string())
}

/// A text without line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::cluster::write::deadline::Unfinished;

    #[test]
    fn it_is_what_the_api_server_says_or_the_innermost_cause() {
        let status = Status::failure("no room\n  for more", "Forbidden").with_code(403);
        assert_eq!(short(&kube::Error::Api(Box::new(status))), "no room for more");
        assert_eq!(short(&Unfinished::Panic.into()), "it panicked");
    }
}
