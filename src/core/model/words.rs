//! Enums whose variants are words of statuses, metrics and Events.

/// Defines an enum with the list of all its variants, and the stable word of each.
macro_rules! words {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$of:meta])* $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $word,)*
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// Returns a stable word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => stringify!($word),)*
                }
            }

            /// Returns the variant with this word.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

pub(crate) use words;
