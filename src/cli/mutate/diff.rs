//! Diffs of two texts, line by line.

use similar::algorithms::{Capture, Replace, myers};
use similar::{ChangeTag, DiffOp, group_diff_ops};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Returns the lines of a diff, prefixed with ` `, `-` or `+`; `@` marks omitted lines.
pub fn diff_lines(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    // The library's front compiles all of its algorithms.
    let mut changes = Replace::new(Capture::new());
    let Ok(()) = myers::diff(&mut changes, &before[..], 0..before.len(), &after[..], 0..after.len());
    let (mut shown, mut end) = (Vec::new(), 0);
    for hunk in group_diff_ops(changes.into_inner().into_ops(), CONTEXT) {
        let lines = || hunk.iter().map(DiffOp::old_range);
        let skipped = lines().next().map_or(0, |first| first.start - end);
        if skipped > 0 {
            shown.push(format!("@ {skipped} lines"));
        }
        for change in hunk.iter().flat_map(|part| part.iter_changes(&before[..], &after[..])) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            shown.push(format!("{sign} {}", change.value()));
        }
        end = lines().next_back().map_or(end, |last| last.end);
    }
    shown
}

/// Colours a text on a terminal.
pub(in crate::cli) fn painted(text: &str, code: &str, coloured: bool) -> String {
    if coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Colours a line of a diff by its prefix.
pub(in crate::cli) fn painted_line(line: &str, coloured: bool) -> String {
    let code = match line.get(..1) {
        Some("+") => "32",
        Some("-") => "31",
        Some("@") => "36",
        _ => return line.to_owned(),
    };
    painted(line, code, coloured)
}

#[cfg(test)]
mod tests {
    use super::diff_lines;

    #[test]
    fn lines_that_differ_are_shown_with_their_surroundings() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\ne\nf\nx\ng\nh2\n";
        assert_eq!(diff_lines(before, after), ["@ 3 lines", "  d", "  e", "  f", "+ x", "  g", "- h", "+ h2"]);
        assert!(diff_lines(before, before).is_empty());
        assert_eq!(diff_lines("", "a"), ["+ a"]);
    }
}
