//! Names of a CDL text as names of a program, and numbers in native bytes.

use std::collections::HashSet;

use zonda_cdl::{Elements, Primitive, Schema, TypeRef};
use zonda_model::ExtType;

/// Words that stand for characters which programming languages do not allow in names.
const CHARACTER_NAMES: [(u8, &str); 32] = [
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
pub(crate) fn plain(name: &[u8]) -> String {
    let mut out = String::new();
    for byte in name {
        match CHARACTER_NAMES.iter().find(|(known, _)| known == byte) {
            _ if out.is_empty() && byte.is_ascii_digit() => {
                out += &format!("DIGIT_{}_", char::from(*byte));
            }
            _ if byte.is_ascii_alphanumeric() || *byte == b'_' => out.push(char::from(*byte)),
            Some((_, name_of_it)) => out += &format!("_{name_of_it}_"),
            None => out += &format!("_x{byte:02X}"),
        }
    }
    out
}

/// Gives each name once.
#[derive(Debug, Default)]
pub(crate) struct UniqueNames {
    given: HashSet<String>,
    /// Whether names that differ in case only are the same name, as in Fortran.
    folds: bool,
}

impl UniqueNames {
    pub(crate) fn folding() -> UniqueNames {
        UniqueNames { folds: true, ..UniqueNames::default() }
    }

    /// The name, with a number appended where it was given before.
    pub(crate) fn give(&mut self, name: String) -> String {
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
pub(crate) fn with_groups(schema: &Schema, group: usize, name: &[u8]) -> Vec<u8> {
    let path = schema.group_path(group);
    let path = path.strip_prefix(b"/").unwrap_or(&path);
    if path.is_empty() { name.to_vec() } else { [path, name].join(&b'/') }
}

/// A number in native bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NativeNumber {
    Int(i64),
    UInt64(u64),
    Float(f32),
    Double(f64),
}

/// The number in the bytes of one element.
pub(crate) fn number_in(ext: ExtType, bytes: &[u8]) -> NativeNumber {
    fn of<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match ext {
        ExtType::Byte => NativeNumber::Int(i8::from_ne_bytes(of(bytes)).into()),
        ExtType::Char | ExtType::UByte => NativeNumber::Int(u8::from_ne_bytes(of(bytes)).into()),
        ExtType::Short => NativeNumber::Int(i16::from_ne_bytes(of(bytes)).into()),
        ExtType::UShort => NativeNumber::Int(u16::from_ne_bytes(of(bytes)).into()),
        ExtType::Int => NativeNumber::Int(i32::from_ne_bytes(of(bytes)).into()),
        ExtType::UInt => NativeNumber::Int(u32::from_ne_bytes(of(bytes)).into()),
        ExtType::Int64 => NativeNumber::Int(i64::from_ne_bytes(of(bytes))),
        ExtType::UInt64 => NativeNumber::UInt64(u64::from_ne_bytes(of(bytes))),
        ExtType::Float => NativeNumber::Float(f32::from_ne_bytes(of(bytes))),
        ExtType::Double => NativeNumber::Double(f64::from_ne_bytes(of(bytes))),
    }
}

/// The numbers in the bytes of elements of an atomic type.
pub(crate) fn numbers_in(ext: ExtType, values: &Elements) -> Vec<NativeNumber> {
    values.bytes.chunks_exact(ext.size()).map(|bytes| number_in(ext, bytes)).collect()
}

/// The atomic type of an object of the classic model, which has no other types.
pub(crate) fn atomic(ty: TypeRef) -> ExtType {
    match ty {
        TypeRef::Primitive(Primitive::Atomic(ext)) => ext,
        // Callers ask for Fortran and Java only where there are none of these.
        TypeRef::Primitive(Primitive::String) | TypeRef::User(_) => ExtType::Char,
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
        let mut unique = UniqueNames::folding();
        assert_eq!(unique.give("T".to_owned()), "T");
        assert_eq!(unique.give("t".to_owned()), "t_2");
        assert_eq!(unique.give("t".to_owned()), "t_3");
        let mut unique = UniqueNames::default();
        assert_eq!((unique.give("T".into()), unique.give("t".into())), ("T".into(), "t".into()));
    }

    #[test]
    fn numbers() {
        assert_eq!(number_in(ExtType::Byte, &[0xff]), NativeNumber::Int(-1));
        assert_eq!(number_in(ExtType::UByte, &[0xff]), NativeNumber::Int(255));
        assert_eq!(
            number_in(ExtType::UInt64, &u64::MAX.to_ne_bytes()),
            NativeNumber::UInt64(u64::MAX)
        );
    }
}
