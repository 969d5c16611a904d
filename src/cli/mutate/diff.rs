//! A line diff, for objects of some hundred lines of which a few differ.

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// One line of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The lines of a diff, each with ` `, `-`, `+` or, where lines are left out, `@` in front.
pub(super) fn diff_lines(before: &str, after: &str) -> Vec<String> {
    let lines = compare(&before.lines().collect::<Vec<_>>(), &after.lines().collect::<Vec<_>>());
    let changed: Vec<_> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(at, _)| at).collect();
    let near = |at: usize| {
        let next = changed.partition_point(|change| *change < at);
        let distance = |change: Option<&usize>| change.is_some_and(|change| change.abs_diff(at) <= CONTEXT);
        distance(changed.get(next)) || next.checked_sub(1).is_some_and(|before| distance(changed.get(before)))
    };
    let mut shown = Vec::new();
    let mut skipped = 0;
    for (at, line) in lines.iter().enumerate() {
        if !near(at) {
            skipped += 1;
            continue;
        }
        if skipped > 0 {
            shown.push(format!("@ {skipped} lines"));
            skipped = 0;
        }
        shown.push(match line {
            Line::Same(text) => format!("  {text}"),
            Line::Gone(text) => format!("- {text}"),
            Line::New(text) => format!("+ {text}"),
        });
    }
    shown
}

/// The longest common subsequence of what remains between a common start and a common end.
fn compare<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (head, before) = before.split_at(start);
    let (_, after) = after.split_at(start);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (before, tail) = before.split_at(before.len() - end);
    let (after, _) = after.split_at(after.len() - end);
    let same = |line: &&'a str| Line::Same(line);
    head.iter().map(same).chain(middle(before, after)).chain(tail.iter().map(same)).collect()
}

fn middle<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    // lengths[i][j]: common lines of before[i..] and after[j..].
    let width = after.len() + 1;
    let mut lengths = vec![0_usize; (before.len() + 1) * width];
    let length = |lengths: &[usize], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or_default();
    for (i, a) in before.iter().enumerate().rev() {
        for (j, b) in after.iter().enumerate().rev() {
            let longest = if a == b {
                length(&lengths, i + 1, j + 1) + 1
            } else {
                length(&lengths, i + 1, j).max(length(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = longest;
            }
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    loop {
        match (before.get(i), after.get(j)) {
            (Some(a), Some(b)) if a == b => {
                lines.push(Line::Same(a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), Some(_)) if length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) => {
                lines.push(Line::Gone(a));
                i += 1;
            }
            (_, Some(b)) => {
                lines.push(Line::New(b));
                j += 1;
            }
            (Some(a), None) => {
                lines.push(Line::Gone(a));
                i += 1;
            }
            (None, None) => return lines,
        }
    }
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
