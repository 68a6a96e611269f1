//! Names of sources with `%b`, the place for the number of a block, and `%%`, a percent sign.

/// Whether a name has a place for a number. `%%` is a percent sign.
pub(super) fn is_numbered(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' && bytes.next() == Some(&b'b') {
            return true;
        }
    }
    false
}

/// A name without a place for a number: `%%` is a percent sign in it, too.
pub(super) fn without_doubled(name: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(name.len());
    let mut remaining = name.iter().peekable();
    while let Some(byte) = remaining.next() {
        out.push(*byte);
        if *byte == b'%' {
            let _second = remaining.next_if_eq(&&b'%');
        }
    }
    out.into()
}

/// A name with `%b` replaced by a number and `%%` by a percent sign; anything else stays.
pub(super) fn with_number(name: &[u8], number: u64) -> Box<[u8]> {
    let mut out = Vec::with_capacity(name.len());
    let mut remaining = name;
    while let Some((&byte, after)) = remaining.split_first() {
        remaining = after;
        match (byte, after.first()) {
            (b'%', Some(b'b')) => {
                out.extend_from_slice(number.to_string().as_bytes());
                remaining = after.get(1..).unwrap_or_default();
            }
            (b'%', Some(b'%')) => {
                out.push(b'%');
                remaining = after.get(1..).unwrap_or_default();
            }
            _ => out.push(byte),
        }
    }
    out.into()
}
