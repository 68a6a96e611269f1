//! Names of a text as names of a program, and bytes of values as constants.

use std::collections::HashSet;

use zonda_cdl::{Elements, Primitive, Schema, TypeRef};

/// What a character that programs do not allow in names is called there.
const SPOKEN: [(u8, &str); 32] = [
    (b' ', "SPACE"),
    (b'!', "EXCLAMATION"),
    (b'"', "QUOTATION"),
    (b'#', "HASH"),
    (b'$', "DOLLAR"),
    (b'%', "PERCENT"),
    (b'&', "AMPERSAND"),
    (b'\'', "APOSTROPHE"),
    (b'(', "LEFTPAREN"),
    (b')', "RIGHTPAREN"),
    (b'*', "ASTERISK"),
    (b'+', "PLUS"),
    (b',', "COMMA"),
    (b'-', "MINUS"),
    (b'.', "PERIOD"),
    (b':', "COLON"),
    (b';', "SEMICOLON"),
    (b'<', "LESSTHAN"),
    (b'=', "EQUALS"),
    (b'>', "GREATERTHAN"),
    (b'?', "QUESTION"),
    (b'@', "ATSIGN"),
    (b'[', "LEFTBRACKET"),
    (b'\\', "BACKSLASH"),
    (b']', "RIGHTBRACKET"),
    (b'^', "CIRCUMFLEX"),
    (b'`', "BACKQUOTE"),
    (b'{', "LEFTCURLY"),
    (b'|', "VERTICALBAR"),
    (b'}', "RIGHTCURLY"),
    (b'~', "TILDE"),
    (b'/', "SLASH"),
];

/// A name with letters, digits and underscores only.
pub(super) fn plain(name: &[u8]) -> String {
    let mut out = String::new();
    for byte in name {
        match SPOKEN.iter().find(|(known, _)| known == byte) {
            _ if out.is_empty() && byte.is_ascii_digit() => {
                out += &format!("DIGIT_{}_", char::from(*byte));
            }
            _ if byte.is_ascii_alphanumeric() || *byte == b'_' => out.push(char::from(*byte)),
            Some((_, spoken)) => out += &format!("_{spoken}_"),
            None => out += &format!("_x{byte:02X}"),
        }
    }
    out
}

/// Names that are given once each.
#[derive(Debug, Default)]
pub(super) struct Unique {
    given: HashSet<String>,
    /// Capital and small letters are the same.
    folds: bool,
}

impl Unique {
    pub(super) fn folding() -> Unique {
        Unique { folds: true, ..Unique::default() }
    }

    /// The name, with a number behind it where it is given already.
    pub(super) fn give(&mut self, name: String) -> String {
        let key = |name: &str| if self.folds { name.to_ascii_lowercase() } else { name.to_owned() };
        let mut given = name.clone();
        let mut number = 1;
        while self.given.contains(&key(&given)) {
            number += 1;
            given = format!("{name}_{number}");
        }
        self.given.insert(key(&given));
        given
    }
}

/// The name of an object with those of the groups around it.
pub(super) fn with_groups(schema: &Schema, group: usize, name: &[u8]) -> Vec<u8> {
    let path = schema.group_path(group);
    let path = path.strip_prefix(b"/").unwrap_or(&path);
    if path.is_empty() { name.to_vec() } else { [path, name].join(&b'/') }
}

/// A number in native bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    UInt64(u64),
    Float(f32),
    Double(f64),
}

/// The number in the bytes of one value.
pub(super) fn value(ext: zonda::ExtType, bytes: &[u8]) -> Value {
    use zonda::ExtType;
    fn of<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match ext {
        ExtType::Byte => Value::Int(i8::from_ne_bytes(of(bytes)).into()),
        ExtType::Char | ExtType::UByte => Value::Int(u8::from_ne_bytes(of(bytes)).into()),
        ExtType::Short => Value::Int(i16::from_ne_bytes(of(bytes)).into()),
        ExtType::UShort => Value::Int(u16::from_ne_bytes(of(bytes)).into()),
        ExtType::Int => Value::Int(i32::from_ne_bytes(of(bytes)).into()),
        ExtType::UInt => Value::Int(u32::from_ne_bytes(of(bytes)).into()),
        ExtType::Int64 => Value::Int(i64::from_ne_bytes(of(bytes))),
        ExtType::UInt64 => Value::UInt64(u64::from_ne_bytes(of(bytes))),
        ExtType::Float => Value::Float(f32::from_ne_bytes(of(bytes))),
        ExtType::Double => Value::Double(f64::from_ne_bytes(of(bytes))),
    }
}

/// All numbers of a type without parts.
pub(super) fn values(ext: zonda::ExtType, values: &Elements) -> Vec<Value> {
    values.bytes.chunks_exact(ext.size()).map(|bytes| value(ext, bytes)).collect()
}

/// The atomic type, where there are no others.
pub(super) fn atomic(ty: TypeRef) -> zonda::ExtType {
    match ty {
        TypeRef::Primitive(Primitive::Atomic(ext)) => ext,
        // The classic model has no others; see `kind` of the tool.
        TypeRef::Primitive(Primitive::String) | TypeRef::User(_) => zonda::ExtType::Char,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(plain(b"a-b c"), "a_MINUS_b_SPACE_c");
        assert_eq!(plain(b"4LFTX"), "DIGIT_4_LFTX");
        assert_eq!(plain("é".as_bytes()), "_xC3_xA9");
        let mut unique = Unique::folding();
        assert_eq!(unique.give("T".to_owned()), "T");
        assert_eq!(unique.give("t".to_owned()), "t_2");
        assert_eq!(unique.give("t".to_owned()), "t_3");
        let mut unique = Unique::default();
        assert_eq!((unique.give("T".into()), unique.give("t".into())), ("T".into(), "t".into()));
    }

    #[test]
    fn numbers() {
        use zonda::ExtType;
        assert_eq!(value(ExtType::Byte, &[0xff]), Value::Int(-1));
        assert_eq!(value(ExtType::UByte, &[0xff]), Value::Int(255));
        assert_eq!(value(ExtType::UInt64, &u64::MAX.to_ne_bytes()), Value::UInt64(u64::MAX));
    }
}
