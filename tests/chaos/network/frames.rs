//! Frames of HTTP/2 as no library would send them (RFC 9113, RFC 7541).

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The preface with settings, as identifier and value.
pub fn opening(settings: &[(u16, u32)]) -> Vec<u8> {
    let settings = settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    [PREFACE, &frame(SETTINGS, 0, 0, &settings.collect::<Vec<_>>())].concat()
}

/// A header block that asks for a review.
pub fn post() -> Vec<u8> {
    // Indexed: POST, https. Literal with an indexed name: path, authority, content type.
    let mut block = vec![0x83, 0x87];
    for (name, value) in
        [(&[0x04][..], "/mutate?timeout=3s"), (&[0x01], "rolegate"), (&[0x0f, 0x10], "application/json")]
    {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).unwrap());
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// A header block that puts 4,000 bytes into the dynamic table, and names them 10,000 times.
pub fn bomb() -> Vec<u8> {
    let mut block = post();
    // Literal with incremental indexing and a new name; lengths in 7 bits, then in steps of 128.
    block.extend_from_slice(&[0x40, 1, b'x', 0x7f]);
    let rest = 4000_usize - 127;
    block.extend_from_slice(&[u8::try_from(rest % 128).unwrap() | 0x80, u8::try_from(rest / 128).unwrap()]);
    block.extend(std::iter::repeat_n(b'y', 4000));
    // The first of the dynamic table.
    block.extend(std::iter::repeat_n(0x80 | 0x3e, 10_000));
    block
}
