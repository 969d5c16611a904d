//! Amounts as Kubernetes writes them: `500m`, `1.5`, `16Gi`, `2e3`.

/// An error: the text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no quantity: expected a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei")]
pub struct NoQuantity(String);

/// Suffixes and their factors: numerator and denominator.
const SUFFIXES: &[(&str, i128, i128)] = &[
    ("", 1, 1),
    ("n", 1, 1_000_000_000),
    ("u", 1, 1_000_000),
    ("m", 1, 1_000),
    ("k", 1_000, 1),
    ("M", 1_000_000, 1),
    ("G", 1_000_000_000, 1),
    ("T", 1_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000, 1),
    ("Ki", 1 << 10, 1),
    ("Mi", 1 << 20, 1),
    ("Gi", 1 << 30, 1),
    ("Ti", 1 << 40, 1),
    ("Pi", 1 << 50, 1),
    ("Ei", 1 << 60, 1),
];

/// Twice as many digits are read, before and after the point together; the API server keeps no more than 19.
const MOST_DIGITS: usize = 19;

/// The parts of a unit that `nanos` counts in.
pub const NANOS: i128 = 1_000_000_000;

/// A quantity as written: `mantissa * numerator / denominator`.
struct Written {
    negative: bool,
    mantissa: i128,
    numerator: i128,
    denominator: i128,
}

/// Returns the amount in parts of a unit, of which there are `parts` (1,000 for processors, which are counted in thousandths, 1
/// for everything else), rounded up as in the API server and the scheduler. An amount too large for the type becomes its
/// maximum.
///
/// # Errors
///
/// When the text is not a quantity.
pub fn amount(text: &str, parts: i64) -> Result<i64, NoQuantity> {
    let written = read(text).ok_or_else(|| NoQuantity(text.to_owned()))?;
    let parts = written.mantissa.checked_mul(i128::from(parts)).and_then(|parts| parts.checked_mul(written.numerator));
    let magnitude = match parts {
        // The API server rounds away from zero.
        Some(parts) => parts / written.denominator + i128::from(parts % written.denominator != 0),
        None => i128::from(i64::MAX),
    };
    let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
    Ok(if written.negative { -magnitude } else { magnitude })
}

/// Returns the exact amount in thousand-millionths of a unit. None when the text is not a quantity, or is one that the API
/// server rounds or limits.
pub fn nanos(text: &str) -> Option<i128> {
    let written = read(text)?;
    let parts = written.mantissa.checked_mul(NANOS)?.checked_mul(written.numerator)?;
    let magnitude = parts / written.denominator;
    let exact = parts % written.denominator == 0 && magnitude <= i128::from(i64::MAX) * NANOS;
    exact.then_some(if written.negative { -magnitude } else { magnitude })
}

fn read(text: &str) -> Option<Written> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole.trim_start_matches('0'), fraction].concat();
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || digits.len() > 2 * MOST_DIGITS {
        return None;
    }
    let mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let behind = u32::try_from(fraction.len()).ok()?;
    let (numerator, denominator) = multiplier(suffix)?;
    let denominator = 10_i128.checked_pow(behind).and_then(|tens| tens.checked_mul(denominator))?;
    Some(Written { negative, mantissa, numerator, denominator })
}

fn multiplier(suffix: &str) -> Option<(i128, i128)> {
    let named = SUFFIXES.iter().find(|(name, _, _)| *name == suffix);
    named.map(|(_, numerator, denominator)| (*numerator, *denominator)).or_else(|| {
        let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        let tens = 10_i128.checked_pow(exponent.unsigned_abs()).filter(|_| exponent.unsigned_abs() <= 18)?;
        Some(if exponent < 0 { (1, tens) } else { (tens, 1) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_the_api_server_reads_them() {
        let units = [
            ("0", 0),
            ("1", 1),
            ("+3", 3),
            ("-2", -2),
            ("1.", 1),
            (".5", 1),
            ("1500m", 2),
            ("1Ki", 1024),
            ("1.5Gi", 1_610_612_736),
            ("2k", 2000),
            ("2e3", 2000),
            ("2E3", 2000),
            ("1E", 1_000_000_000_000_000_000),
            ("25e-1", 3),
            ("1n", 1),
            ("9999999999999999999E", i64::MAX),
            ("007", 7),
        ];
        for (text, expected) in units {
            assert_eq!(amount(text, 1), Ok(expected), "{text}");
        }
        for (text, expected) in [("1", 1000), ("250m", 250), ("0.1", 100), ("1u", 1), ("1.0001", 1001)] {
            assert_eq!(amount(text, 1000), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_says_so() {
        for text in ["", "-", ".", "Gi", "1 Gi", "1gi", "1.2.3", "0x10", "1e", "1e99", "NaN", "1Kib", "１"] {
            assert_eq!(amount(text, 1), Err(NoQuantity(text.to_owned())), "{text}");
        }
        assert!(amount(&"9".repeat(100), 1).is_err());
    }

    #[test]
    fn exact_amounts_are_neither_rounded_nor_limited() {
        let written = [("1", 1_000_000_000), ("-1.5Ki", -1_536_000_000_000), ("1n", 1), ("2e3", 2_000_000_000_000)];
        for (text, expected) in written {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
        for text in ["", "1Kib", "0.5n", "8Ei", "9223372036854775808"] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
