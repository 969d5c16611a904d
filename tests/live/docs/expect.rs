//! Whether a command prints what its page says.

/// True when the lines say what was printed: spaces count as one, blank lines as none, ages are alike, `…` in a line is any
/// text, and `...` or `…` alone is any lines.
pub fn prints(lines: &[String], printed: &str) -> bool {
    let wanted: Vec<_> = lines.iter().map(|line| plain(line)).filter(|line| !line.is_empty()).collect();
    let found: Vec<_> = printed.lines().map(plain).filter(|line| !line.is_empty()).collect();
    all(&wanted, &found)
}

fn all(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if ["...", "…"].contains(&any.as_str()) => {
            (0..=found.len()).any(|skipped| all(rest, &found[skipped..]))
        }
        Some((first, rest)) => found.split_first().is_some_and(|(line, more)| is_like(first, line) && all(rest, more)),
    }
}

/// A line with single spaces, and one word for every age.
fn plain(line: &str) -> String {
    let words = line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// `5s`, `4m12s`, `17d`.
fn is_age(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let Some(after) = unit.strip_prefix(['d', 'h', 'm', 's']) else { return false };
        if unit.len() == rest.len() {
            return false;
        }
        rest = after;
    }
    !word.is_empty()
}

/// A line in which `…` is any text.
fn is_like(wanted: &str, found: &str) -> bool {
    let mut parts = wanted.split('…');
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            let Some((_, after)) = rest.split_once(between) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_so(wanted: &[&str], printed: &str) -> bool {
        prints(&wanted.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), printed)
    }

    #[test]
    fn spaces_ages_and_blank_lines_may_differ_and_nothing_else() {
        assert!(is_so(&["NAME  AGE", "pd    5s", ""], "NAME   AGE\n\npd     4m12s\n"));
        assert!(!is_so(&["pd 5s"], "pd five\n"));
        assert!(!is_so(&["a"], "a\nb\n"));
        assert!(!is_so(&["a", "b"], "a\n"));
        assert!(!is_so(&["1/3"], "2/3\n"));
        assert!(!["s", "5", "5x", ""].into_iter().any(is_age));
    }

    #[test]
    fn dots_are_any_text() {
        assert!(is_so(&["a", "...", "z"], "a\nb\nc\nz\n") && is_so(&["a", "…", "z"], "a\nz\n"));
        assert!(!is_so(&["a", "...", "z"], "a\nb\n"));
        assert!(is_so(&["a…c…e"], "abcde\n") && is_so(&["a…"], "a\n") && is_so(&["…a"], "ba\n"));
        assert!(!is_so(&["a…c"], "ab\n") && !is_so(&["a…c…e"], "abde\n") && !is_so(&["ab…b"], "ab\n"));
    }
}
