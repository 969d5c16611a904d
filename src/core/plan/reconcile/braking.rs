//! Recoveries of all groups: how many batches exist, look broken or are being recreated, and which groups wait for a change of
//! that.

use std::collections::{BTreeSet, HashSet};

use crate::model::GroupKey;
use crate::plan::recovery::{BrakeContext, Tally};

#[derive(Debug, Default)]
pub(in crate::plan) struct Braking {
    sum: Tally,
    /// Groups that were not looked at since this process leads.
    unseen: HashSet<GroupKey>,
    /// Groups with a recovery that waits for other groups.
    waits: BTreeSet<GroupKey>,
}

impl Braking {
    /// Resets what a new leader has to look at.
    pub(in crate::plan) fn lead(&mut self) {
        self.unseen.clear();
        self.waits.clear();
    }

    /// Adds groups that must be looked at before any recovery begins.
    pub(in crate::plan) fn see_first(&mut self, keys: &[GroupKey]) {
        self.unseen.extend(keys.iter().cloned());
    }

    /// Returns the context of a group whose last tally is `own`.
    pub(in crate::plan) fn context(&self, key: &GroupKey, own: Tally, most: Option<u32>) -> BrakeContext {
        BrakeContext { others: self.sum.minus(own), unseen: self.unseen.iter().any(|other| other != key), most }
    }

    /// Notes the new tally of a group; returns the groups that may proceed because of it.
    pub(in crate::plan) fn note(
        &mut self,
        key: &GroupKey,
        was: Tally,
        (is, waits): (Tally, bool),
    ) -> BTreeSet<GroupKey> {
        self.sum = self.sum.minus(was).plus(is);
        let was_last = self.unseen.remove(key) && self.unseen.is_empty();
        self.waits.remove(key);
        let go_on = if is.eases(was) || was_last { std::mem::take(&mut self.waits) } else { BTreeSet::new() };
        if waits {
            self.waits.insert(key.clone());
        }
        go_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_knows_of_the_others_and_goes_on_when_they_have_less_to_do() {
        let [a, b] = ["a", "b"].map(|name| GroupKey::new("prod", name));
        let tally = |under_way| Tally { batches: 4, unready: 0, under_way };
        let mut braking = Braking::default();
        braking.see_first(&[a.clone(), b.clone()]);
        assert!(braking.context(&a, Tally::default(), None).unseen);
        assert!(braking.note(&a, Tally::default(), (tally(1), true)).is_empty());
        let known = braking.context(&b, Tally::default(), Some(2));
        assert_eq!((known.others, known.unseen, known.most), (tally(1), false, Some(2)));
        let go_on = braking.note(&b, Tally::default(), (tally(1), true));
        assert_eq!(go_on.into_iter().collect::<Vec<_>>(), std::slice::from_ref(&a), "all groups were looked at");
        assert_eq!(braking.context(&a, tally(1), None).others, tally(1));
        assert!(braking.note(&a, tally(1), (tally(1), true)).is_empty());
        let go_on = braking.note(&a, tally(1), (tally(0), false));
        assert_eq!(go_on.into_iter().collect::<Vec<_>>(), std::slice::from_ref(&b));
        assert!(braking.note(&a, tally(0), (Tally::default(), false)).is_empty(), "it is told once");
        assert_eq!(braking.context(&b, tally(1), None).others, Tally::default());
    }
}
