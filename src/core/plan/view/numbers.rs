//! Sets of numbers as text, as in the status: `0-3,5`, the format of the completed indexes of an indexed Job.

use std::ops::RangeInclusive;

/// A set of numbers: ascending ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::plan) struct Numbers(Vec<RangeInclusive<u32>>);

impl Numbers {
    /// Parses a text; skips invalid parts.
    pub(in crate::plan) fn parse(text: &str) -> Self {
        let mut read: Vec<_> = text
            .split(',')
            .filter_map(|run| {
                let (first, last) = run.trim().split_once('-').unwrap_or((run.trim(), run.trim()));
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(first..=last)
            })
            .collect();
        read.sort_by_key(|run| *run.start());
        let mut all = Self::default();
        read.into_iter().for_each(|run| all.push_run(run));
        all
    }

    /// Adds a number that is greater than all others in the set.
    pub(in crate::plan) fn push(&mut self, number: u32) {
        self.push_run(number..=number);
    }

    fn push_run(&mut self, run: RangeInclusive<u32>) {
        match self.0.last_mut() {
            Some(last) if *run.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=(*last.end()).max(*run.end());
            }
            _ => self.0.push(run),
        }
    }

    pub(in crate::plan) fn has(&self, number: u32) -> bool {
        let place = self.0.partition_point(|run| *run.end() < number);
        self.0.get(place).is_some_and(|run| run.contains(&number))
    }

    /// Formats the set as in the status.
    pub(in crate::plan) fn text(&self) -> String {
        let run = |run: &RangeInclusive<u32>| match (run.start(), run.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        self.0.iter().map(run).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whatever_stands_there_is_read() {
        for (text, read) in
            [("", ""), ("0-3,5", "0-3,5"), ("5, 1-2 ,3,x,9-7,4294967295", "1-3,5,4294967295"), ("0-9,2-3", "0-9")]
        {
            assert_eq!(Numbers::parse(text).text(), read, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn it_has_what_was_put_in(numbers in prop::collection::btree_set(0_u32..40, 0..30)) {
            let mut all = Numbers::default();
            numbers.iter().for_each(|number| all.push(*number));
            prop_assert_eq!(&Numbers::parse(&all.text()), &all);
            for number in 0..42 {
                prop_assert_eq!(all.has(number), numbers.contains(&number));
            }
        }
    }
}
