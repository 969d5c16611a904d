//! Regular expressions of RE2, as far as they mean the same here.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder};

use super::{SelectorError, not_understood};

/// Memory of a compiled pattern.
const LARGEST: usize = 1 << 20;

/// Go counts how often a pattern repeats in all: no more than a thousand times.
const MOST_COUNTS: usize = 3;

/// The patterns that are understood: letters, escapes, classes, groups, alternatives and repeats, each repeated once.
static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let escape = r"\\(?:[dDwWsS]|[!-/:;=?@\[-^`{-~])";
    let class = format!(r"\[\^?(?:[0-9A-Za-z](?:-[0-9A-Za-z])?|[ _./:,;=#@]|{escape})+-?\]");
    let item = format!(r"(?:\)|\.|[^\\.+*?()|\[\]{{}}^$]|{escape}|{class})");
    Regex::new(&format!(r"^(?:\(\?i\))?(?:[\^$|]|\((?:\?:)?|{item}(?:[*+?]|\{{[0-9](?:,[0-9]?)?\}})?)*$")).ok()
});

static ESCAPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\\.").ok());

/// Compiles a pattern.
pub fn compile(pattern: &str) -> Result<Regex, SelectorError> {
    let understood = FORM.as_ref().filter(|form| form.is_match(pattern) && pattern.matches('{').count() <= MOST_COUNTS);
    let translated = understood.and(ESCAPE.as_ref()).map(|escape| escape.replace_all(pattern, ascii));
    let compiled = translated.and_then(|text| RegexBuilder::new(&text).size_limit(LARGEST).build().ok());
    compiled.map_or_else(|| not_understood(format!("the pattern {pattern:?}")), Ok)
}

/// The classes of letters are those of ASCII.
fn ascii(escape: &Captures<'_>) -> String {
    match escape.get(0).map_or("", |escape| escape.as_str()) {
        r"\d" => "[0-9]",
        r"\D" => "[^0-9]",
        r"\w" => "[0-9A-Za-z_]",
        r"\W" => "[^0-9A-Za-z_]",
        r"\s" => r"[\t\n\f\r ]",
        r"\S" => r"[^\t\n\f\r ]",
        other => other,
    }
    .to_owned()
}
