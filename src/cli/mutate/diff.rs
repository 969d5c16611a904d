//! Diffs of two texts, line by line.

use similar::{ChangeTag, DiffOp, TextDiff};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Returns the lines of a diff, prefixed with ` `, `-` or `+`; `@` marks omitted lines.
pub(in crate::cli) fn diff_lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let (mut shown, mut end) = (Vec::new(), 0);
    for hunk in diff.grouped_ops(CONTEXT) {
        let lines = || hunk.iter().map(DiffOp::old_range);
        let skipped = lines().next().map_or(0, |first| first.start - end);
        if skipped > 0 {
            shown.push(format!("@ {skipped} lines"));
        }
        for change in hunk.iter().flat_map(|part| diff.iter_changes(part)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            shown.push(format!("{sign} {}", change.value().trim_end_matches('\n')));
        }
        end = lines().next_back().map_or(end, |last| last.end);
    }
    shown
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
