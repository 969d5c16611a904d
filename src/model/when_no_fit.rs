//! What happens to a batch that fits nowhere.

/// What happens to a batch that must share a domain, and fits into none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenNoFit {
    /// It is held until it fits.
    #[default]
    Hold,
    /// It goes to a domain in which it would fit without pods of lower priority, which make way for it.
    Preempt,
    /// It goes to the domain with room for most of it, and waits there for the rest.
    Release,
}

/// Spellings of `whenNoFit`; the first is the default.
pub const WHEN_NO_FIT: &[(&str, WhenNoFit)] =
    &[("hold", WhenNoFit::Hold), ("preempt", WhenNoFit::Preempt), ("release", WhenNoFit::Release)];

impl WhenNoFit {
    /// Reads a word; an unknown one reads as the default.
    pub fn parse(word: Option<&str>) -> Self {
        let known = WHEN_NO_FIT.iter().find(|(spelling, _)| Some(*spelling) == word);
        known.map(|(_, meant)| *meant).unwrap_or_default()
    }
}
