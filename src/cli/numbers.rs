//! Numbers and addresses of the command line.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Returns a function that reads a whole number of a range.
pub fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads an address with a port.
///
/// # Errors
///
/// When the text is neither.
pub fn parse_socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be ADDRESS:PORT, such as 0.0.0.0:9443 or [::]:9443".to_owned())
}

/// Reads an address.
///
/// # Errors
///
/// When the text is none.
pub fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an address of IPv4 or IPv6, such as 0.0.0.0 or ::".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_or_address_is_told_with_what_must_be() {
        let port = whole(1..=u16::MAX);
        assert_eq!(port("9443"), Ok(9443));
        for wrong in ["", "x", "0", "65536", "-1", "1.5"] {
            assert_eq!(port(wrong), Err("must be a whole number from 1 to 65535".to_owned()), "{wrong:?}");
        }
        assert!(parse_socket("[::]:9443").is_ok() && parse_socket("localhost:9443").is_err());
        assert!(parse_address("::").is_ok() && parse_address("localhost").is_err());
    }
}
