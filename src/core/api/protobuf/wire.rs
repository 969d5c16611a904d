//! The protobuf wire format: numbered fields, each of a number or bytes.

/// An error: the bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a protobuf message is cut off or malformed")]
pub struct Malformed;

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number as encoded: negative numbers in two's complement.
    Number(u64),
    /// A text or a message.
    Bytes(&'a [u8]),
    /// Four or eight bytes; no field that is read has this type.
    Fixed,
}

impl<'a> Value<'a> {
    /// Returns the bytes; an error for a value of another type.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Malformed) }
    }

    /// Returns the text; an error for a value of another type and for invalid UTF-8.
    pub fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// Returns the number; an error for a value of another type.
    pub fn number(self) -> Result<i64, Malformed> {
        if let Self::Number(number) = self { Ok(number.cast_signed()) } else { Err(Malformed) }
    }
}

/// Iterator over the fields of a message with their numbers, in wire order.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the value of the last field of this number.
    pub fn last(self, wanted: u64) -> Result<Option<Value<'a>>, Malformed> {
        let mut found = None;
        for field in self {
            let (number, value) = field?;
            found = if number == wanted { Some(value) } else { found };
        }
        Ok(found)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Malformed)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), Malformed> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // The start of the next field is unknown.
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bytes_and_what_nobody_reads_are_told_apart() {
        // 1: -1, 2: "ab", 3: eight bytes, 4: four bytes
        let message = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x02ab\x19........\x25....";
        let fields: Vec<_> = Fields(message).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [(1, Value::Number(u64::MAX)), (2, Value::Bytes(b"ab")), (3, Value::Fixed), (4, Value::Fixed)]
        );
        assert_eq!(fields[0].1.number(), Ok(-1));
        assert_eq!(Fields(message).last(2).unwrap().unwrap().text(), Ok("ab"));
        assert_eq!(Fields(message).last(7), Ok(None));
    }

    #[test]
    fn a_message_that_is_cut_off_or_malformed_is_no_message() {
        for bytes in [
            &b"\x08"[..],
            b"\x08\xff",
            b"\x12\x05ab",
            b"\x19...",
            b"\x0b",
            b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        ] {
            assert!(Fields(bytes).any(|field| field == Err(Malformed)), "{bytes:?}");
        }
    }
}
