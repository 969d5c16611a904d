//! JSON strings written by hand, since most texts need no escapes.

use std::io::Write as _;

/// Reports whether JSON writes a text without escapes.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

/// Writes a text as a quoted JSON string.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    if is_plain(text) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to a vector cannot fail.
        _ = write!(out, "{}", serde_json::Value::from(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        for text in ["", "plain", "ünïcode \u{1f600} \u{7f}", "\"", "\\", "\n\t\0\u{1f}", "a\"b\\c"] {
            let mut out = Vec::new();
            write_text(&mut out, text);
            assert_eq!(out, serde_json::to_vec(text).unwrap(), "{text:?}");
        }
    }
}
