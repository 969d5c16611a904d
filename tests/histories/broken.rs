//! The error of a broken promise.

/// The description of a broken promise.
#[derive(Clone, Debug)]
pub struct Broken(pub String);

/// Returns [`Broken`] unless the condition holds.
macro_rules! hold {
    ($test:expr, $($text:tt)*) => {
        if !$test {
            return Err($crate::broken::Broken(format!($($text)*)));
        }
    };
}

pub(crate) use hold;
