//! A promise that was broken, in words.

/// What was broken, and how.
#[derive(Clone, Debug)]
pub struct Broken(pub String);

/// Ends with `Broken` unless it holds.
macro_rules! hold {
    ($test:expr, $($text:tt)*) => {
        if !$test {
            return Err($crate::broken::Broken(format!($($text)*)));
        }
    };
}

pub(crate) use hold;
