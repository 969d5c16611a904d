//! Action for a batch that must share a domain and fits in none.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenNoFit {
    /// The batch is held until it fits.
    #[default]
    Hold,
    /// The batch goes to a domain in which it would fit without pods of lower priority, which are preempted.
    Preempt,
    /// The batch goes to the domain with room for most of it, and waits there for the rest.
    Release,
    /// The batch is held, and nodes are requested for it.
    Provision,
}

/// Spellings of `whenNoFit`; the first is the default.
pub const WHEN_NO_FIT: &[(&str, WhenNoFit)] = &[
    ("hold", WhenNoFit::Hold),
    ("preempt", WhenNoFit::Preempt),
    ("release", WhenNoFit::Release),
    ("provision", WhenNoFit::Provision),
];

impl WhenNoFit {
    /// Reports whether the batch is held until it fits.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Hold | Self::Provision)
    }

    /// Reads a word; an unknown one counts as the default.
    pub fn parse(word: Option<&str>) -> Self {
        let known = WHEN_NO_FIT.iter().find(|(spelling, _)| Some(*spelling) == word);
        known.map(|(_, meant)| *meant).unwrap_or_default()
    }
}
