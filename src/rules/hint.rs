//! Hints for names that lead nowhere.

/// A requirement, with the name that was probably meant.
pub(super) fn with_hint<'a>(must: &str, word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match closest(word, names) {
        Some(name) => format!("{must}; did you mean {name:?}?"),
        None => must.to_owned(),
    }
}

/// The name a typing mistake away, if there is one.
fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing is quadratic in the length, and nobody mistypes a longer name by a few letters.
    if word.len() > 253 {
        return None;
    }
    let near = names.into_iter().map(|name| (strsim::damerau_levenshtein(word, name), name));
    near.filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).min().map(|(_, name)| name)
}

/// Names in a message: the first ten, then how many more.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 10;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(SHOWN).copied().collect();
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(with_hint("must exist", "prefil", ["decode", "prefill"]), "must exist; did you mean \"prefill\"?");
        assert_eq!(with_hint("must exist", "router", ["decode", "prefill"]), "must exist");
    }

    #[test]
    fn at_most_ten_names_are_listed() {
        let names: Vec<_> = (0..12).map(|index| format!("r{index}")).collect();
        assert!(listed(names.iter().map(String::as_str)).ends_with("r9 and 2 more"));
        assert_eq!(listed(["a", "b"]), "a, b");
    }
}
