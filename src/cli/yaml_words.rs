//! Errors of YAML in words of the text, not of the parser.

use serde_saphyr::Error;

use super::node::Position;

/// Returns the position of an error, if it has one, and the error in one line.
pub fn yaml_words(error: &Error) -> (Option<Position>, String) {
    let at = error.location().map(Position::from).filter(|at| at.line > 0);
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or_default();
    (at, words(line.strip_prefix("error: ").unwrap_or(line)))
}

/// Parts of the parser's messages, and what is wrong with the text. The first row that matches counts.
const WORDS: &[(&str, &str)] = &[
    (
        "mapping values are not allowed",
        "a `:` stands where no key can be: quote the value, or begin a new line for the key",
    ),
    ("misplaced bracket", "a bracket closes nothing"),
    ("expected ',' or ']'", "a list lacks `,` or `]`"),
    ("expected ',' or '}'", "an object lacks `,` or `}`"),
    ("multiline quoted scalar", "a quoted text does not end, or its next line is not indented"),
    ("unclosed quote", "a quoted text does not end"),
    ("unexpected document indicator", "a quoted text does not end before the next document"),
    ("unknown escape character", r"a quoted text has an unknown escape after `\`"),
    ("surrogate", "a quoted text has half of an escaped character"),
    ("hexadecimal number", "a quoted text has an escape that is not hexadecimal"),
    ("Unicode character escape", "a quoted text has an escape that is no character"),
    ("unknown anchor", "an alias (`*`) names nothing that was marked with `&` before"),
    ("an anchor or alias", "no name follows `&` or `*`: quote the value"),
    ("expected key", "a key is indented otherwise than those before it"),
    ("expected '-' indicator", "an entry of a list is indented otherwise than those before it, or lacks its `-`"),
    ("simple key expected", "a key lacks its `:`"),
    ("simple key is no longer valid", "a key lacks its `:`"),
    ("expected node content", "a value is missing"),
    ("tab", "a tab indents the text: use spaces"),
    ("in block scalar", "a line of a text after `|` or `>` is indented less than its first"),
    ("a block scalar", "`|` or `>` is followed by more than an indentation, `+` or `-`: quote the value"),
    ("plain scalar cannot start", "a value begins with `-` and a bracket or comma: quote it"),
    ("a tag", "a tag (`!`) is not well-formed: quote the value"),
    ("TAG", "a line that begins with `%` is no directive of YAML"),
    ("directive", "a line that begins with `%` is no directive of YAML"),
    ("non-finite float", "a number is not finite"),
    ("merge value", "`<<` must name an object, or a list of objects"),
    ("!!binary", "a value of type `!!binary` is not base64"),
    ("expected mapping start", "must be an object"),
    ("expected sequence start", "must be a list"),
    ("expected string", "must be a string"),
    ("invalid boolean", "must be true or false"),
    ("unexpected EOF", "the text ends too early"),
    ("unexpected eof", "the text ends too early"),
    ("unexpected end", "the text ends too early"),
];

fn words(line: &str) -> String {
    let of_name = [("duplicate mapping key: ", " is set twice"), ("missing field ", " must be set")];
    // The rest of such a message is for callers of the parser.
    let named = of_name.iter().find_map(|(start, end)| {
        let name = line.strip_prefix(start)?.split(',').next()?.trim_matches('`');
        Some(format!("{name}{end}"))
    });
    let begins = || {
        let letter = line.strip_prefix("unexpected character: `")?.strip_suffix('\'')?;
        Some(format!("no value begins with {letter}: quote it"))
    };
    let known = || WORDS.iter().find(|(part, _)| line.contains(part)).map(|(_, words)| (*words).to_owned());
    named.or_else(begins).or_else(known).unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn faults_of_a_text_are_told_in_its_own_words() {
        let told = |text: &str| {
            let (at, words) = yaml_words(&serde_saphyr::from_str::<Value>(text).unwrap_err());
            format!("{}: {words}", at.map_or(0, |at| at.line))
        };
        let cases = [
            ("a: b: c\n", "a `:` stands where no key can be"),
            ("a: [1, 2\n", "unclosed bracket '['"),
            ("a: \"x\n", "a quoted text does not end"),
            ("a: *x\n", "an alias (`*`) names nothing"),
            ("a: 1\na: 2\n", "a is set twice"),
            ("a:\n  - b\n c: d\n", "a key is indented otherwise"),
            ("a: @b\n", "no value begins with @: quote it"),
            ("a: \"\\q\"\n", "a quoted text has an unknown escape"),
            ("a: |x\n  b\n", "`|` or `>` is followed by more"),
        ];
        for (text, words) in cases {
            let told = told(text);
            assert!(told.contains(words), "{text:?}: {told}");
        }
    }
}
