//! Sizes of memory as Kubernetes writes them: `512Ki`, `64Mi`, `1Gi`.

/// Units of 1,024.
const UNITS: &[(&str, usize)] = &[("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("", 1)];

/// Reads a size in bytes.
///
/// # Errors
///
/// When the text is not a whole number, or has a unit other than these.
pub fn parse(text: &str) -> Result<usize, String> {
    let fault = || format!("{text:?} is not a size such as 512Ki, 64Mi or 1Gi");
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?.parse::<usize>().ok()?, *bytes)))
        .ok_or_else(fault)?;
    number.checked_mul(unit).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        assert_eq!(parse("64Mi"), Ok(64 << 20));
        assert_eq!(parse("1048576"), Ok(1 << 20));
        for wrong in ["", "64MB", "-1", "1.5Gi", "99999999999Gi"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
