use super::*;
use crate::dialect::Dialect;
use crate::parser::parse;
use crate::source::CdlText;

/// The values of an attribute `a` of the root, made by a text around them.
fn values(types: &str, ty: &str, list: &str) -> Result<(Elements, usize), CdlFault> {
    let text = format!("netcdf x {{ types: {types} variables: int v ; {ty} :a = {list} ; }}");
    let source = CdlText::from_bytes(text.into_bytes()).unwrap();
    let schema = parse(&source, Dialect::Enhanced, None, None)?;
    attribute(&schema, &schema.atts[0])
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
}

#[test]
fn numbers_are_converted_as_in_c() {
    for (number, ext, value) in [
        (NumberConstant::Int(300), ExtType::Byte, &44i8.to_ne_bytes()[..]),
        (NumberConstant::Double(300.7), ExtType::UByte, &[44]),
        (NumberConstant::Double(-1.9), ExtType::Short, &(-1i16).to_ne_bytes()),
        (NumberConstant::Double(1e10), ExtType::Int, &i32::MIN.to_ne_bytes()),
        (NumberConstant::Double(4e9), ExtType::UInt, &4_000_000_000u32.to_ne_bytes()),
        (NumberConstant::Double(f64::NAN), ExtType::Short, &[0, 0]),
        (
            NumberConstant::Double(1.8e19),
            ExtType::UInt64,
            &18_000_000_000_000_000_000u64.to_ne_bytes(),
        ),
        (NumberConstant::Int64(-1), ExtType::UInt64, &u64::MAX.to_ne_bytes()),
        (
            NumberConstant::UInt64(u64::MAX),
            ExtType::Double,
            &18_446_744_073_709_551_615.0f64.to_ne_bytes(),
        ),
        (NumberConstant::Float(0.1), ExtType::Double, &f64::from(0.1f32).to_ne_bytes()),
        (NumberConstant::Double(0.1), ExtType::Float, &0.1f32.to_ne_bytes()),
        (NumberConstant::Byte(-1), ExtType::Char, &[255]),
    ] {
        assert_eq!(&convert(number, ext)[..ext.size()], value, "{number:?} as {ext:?}");
    }
}

#[test]
fn text_as_numbers_and_numbers_as_text() {
    assert_eq!(from_text(b" -12x", ExtType::Int)[..4], (-12i32).to_ne_bytes());
    assert_eq!(from_text(b"1.5e3z", ExtType::Double), 1500f64.to_ne_bytes());
    assert_eq!(from_text(b"x", ExtType::Float)[..4], 0f32.to_ne_bytes());
    for (value, text) in [
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (123_456_789.0, "1.2345679e+08"),
        (12_345_678.0, "12345678"),
        (0.0, "0"),
        (-2.5, "-2.5"),
        (f64::INFINITY, "inf"),
        (1e100, "1e+100"),
    ] {
        assert_eq!(general(value, 8), text);
    }
}

#[test]
fn compounds_have_the_layout_of_c() {
    let types = "compound c { byte a ; int b(2) ; short s ; } ;";
    let (made, n) = values(types, "c", "{1, {2, 3}, 4}, {5}").unwrap();
    assert_eq!((n, made.bytes.len()), (2, 32));
    assert_eq!(made.bytes[0], 1);
    assert_eq!(ints(&made.bytes[4..12]), [2, 3]);
    assert_eq!(made.bytes[12..14], 4i16.to_ne_bytes());
    assert_eq!(made.bytes[14..16], [0, 0]);
    // What is missing is the fill value.
    assert_eq!(ints(&made.bytes[20..28]), [-2_147_483_647, -2_147_483_647]);
}

#[test]
fn strings_and_sequences_are_pieces() {
    let (made, n) = values("", "string", "\"a\", NIL, \"\"").unwrap();
    let numbers = made.bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    let texts: Vec<_> = numbers.map(|number| made.pieces.get(number)).collect();
    assert_eq!((n, texts), (3, vec![Some(&b"a"[..]), None, Some(b"")]));

    let types = "int(*) ints ; ints(*) lists ;";
    let (made, _) = values(types, "lists", "{ {1, 2}, {}, {3} }").unwrap();
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()
    };
    let outer = words(&made.bytes);
    assert_eq!(outer[0], 3);
    let inner = words(made.pieces.get(outer[1]).unwrap());
    assert_eq!(inner.iter().step_by(2).copied().collect::<Vec<_>>(), [2, 0, 1]);
    assert_eq!(ints(made.pieces.get(inner[1]).unwrap()), [1, 2]);
    assert_eq!(inner[3], 0);
    assert_eq!(ints(made.pieces.get(inner[5]).unwrap()), [3]);
}

#[test]
fn opaque_values_have_their_length() {
    let bytes = |list: &str| values("opaque(3) o ;", "o", list).unwrap().0.bytes;
    assert_eq!(bytes("0x0102030405"), [1, 2, 3]);
    assert_eq!(bytes("0xAbc"), [0xab, 0xc0, 0]);
}

#[test]
fn members_by_name_and_by_type() {
    let types = "byte enum e { A = 1, B.c = 2 } ; byte enum f { A = 7 } ;";
    assert_eq!(values(types, "e", "A, e.A, B.c, e.B.c").unwrap().0.bytes, [1, 1, 2, 2]);
    assert_eq!(values(types, "f", "A").unwrap().0.bytes, [7]);
    for wrong in ["C", "f.A", "1", "\"A\""] {
        assert!(values(types, "e", wrong).is_err(), "{wrong}");
    }
}

#[test]
fn text_of_attributes() {
    assert_eq!(values("", "char", "\"one\", 'x', \"two\"").unwrap().0.bytes, b"onextwo");
    assert_eq!(
        values("", "", "\"\"").unwrap(),
        (Elements { bytes: vec![0], ..Default::default() }, 1)
    );
    assert!(values("", "char", "1.5").is_err());
    assert!(values("", "int", "").is_err());
}

#[test]
fn what_is_no_value() {
    for (types, ty, list) in [
        ("", "int", "{1}"),
        ("", "int", "NIL"),
        ("compound c { int a ; } ;", "c", "1"),
        ("compound c { int a ; } ;", "c", "{1, 2}"),
        ("compound c { int a(2) ; } ;", "c", "{{1, 2, 3}}"),
        ("int(*) l ;", "l", "1"),
        ("opaque(3) o ;", "o", "\"abc\""),
    ] {
        assert!(values(types, ty, list).is_err(), "{ty} {list}");
    }
}
