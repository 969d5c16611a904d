//! Enums whose variants are words of specs, flags, statuses, metrics and Events.

/// Defines an enum with the list of all its variants, and the stable word of each: its name, unless another one is given.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident $(= $word:literal)?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$of])* $variant,)*
        }

        #[allow(dead_code, reason = "not every enum is read and listed")]
        impl $name {
            /// Every variant, in order.
            $vis const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Every variant with its word, in order.
            $vis const WORDS: &[(&str, Self)] = &[$((Self::$variant.as_str(), Self::$variant),)*];

            /// Returns a stable word.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $crate::words!(@ $variant $($word)?),)*
                }
            }

            /// Returns the variant with this word.
            $vis fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
    (@ $variant:ident) => {
        stringify!($variant)
    };
    (@ $variant:ident $word:literal) => {
        $word
    };
}

pub use words;
