//! The data formats of command output.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Indented JSON.
    Json,
    /// JSON on one line, for a series of answers.
    JsonLine,
    Yaml,
}

impl Data {
    /// Returns the encoded value, which ends with a newline.
    pub fn text(self, value: &impl Serialize) -> String {
        // Serializing to a string fails only for keys that are no strings; no answer has such keys.
        match self {
            Self::Json => serde_json::to_string_pretty(value).unwrap_or_default() + "\n",
            Self::JsonLine => serde_json::to_string(value).unwrap_or_default() + "\n",
            Self::Yaml => serde_saphyr::to_string(value).unwrap_or_default(),
        }
    }
}

/// Escapes a text for XML, attributes included. XML cannot represent control characters.
pub fn xml(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\n' => written.push_str("&#10;"),
            '\t' => written.push_str("&#9;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => written.push('\u{fffd}'),
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn yaml_says_what_json_says() {
        let words = ["", "no", "0/18", "1e3", "0x1F", "null", "~", "a: b", "- a", "two\nlines", "#", "\u{1b}[31m", "é"];
        let value = json!({
            "words": words,
            "numbers": [0, -1, 1.5, u64::from(u32::MAX)],
            "nothing": null,
            "empty": [[], {}],
            "deep": [{ "a": [{ "b": { "yes": true } }] }],
            "0": "a key that is a number",
        });
        let read: Value = serde_saphyr::from_str(&Data::Yaml.text(&value)).unwrap();
        assert_eq!(read, value);
        assert_eq!(Data::JsonLine.text(&value).lines().count(), 1);
    }
}
