//! The rights of authors: an update is refused for a right exactly when a creation is, and what the right guards differs.

pub mod made;

use made::{Author, Made, refused, update};
use rolegate::model::Mode;

use crate::prelude::*;

proptest! {
    #![proptest_config(crate::tried(1000))]

    #[test]
    fn a_right_is_asked_for_unless_what_it_guards_is_as_before(
        pair in update(), author in any::<Author>(), words in any::<[u8; 2]>(),
    ) {
        let (was, is): (Made, Made) = pair;
        let (old, new) = (was.object("o", "prod", words[0]), is.object("o", "prod", words[1]));
        for mode in [Mode::Enforce, Mode::Warn, Mode::Observe] {
            let mut expected = refused((None, &new), author, mode);
            expected.retain(|(rule, subject)| is.differs(&was, rule, subject));
            prop_assert_eq!(refused((Some(&old), &new), author, mode), expected, "{:?}", mode);
        }
        let again = is.object("o", "prod", !words[1]);
        prop_assert_eq!(refused((Some(&new), &again), author, Mode::Enforce), BTreeSet::new());
    }
}
