use super::*;
use crate::Sizes;

fn decode(bytes: &[u8]) -> Result<Datatype> {
    Datatype::decode(Reader::new("test", bytes, 0, Sizes::EIGHT), &ReadLimits::default())
}

/// Class and version, class bits, size.
fn head(class: u8, version: u8, bits: u32, size: u32) -> Vec<u8> {
    let mut bytes = vec![version << 4 | class];
    bytes.extend(&bits.to_le_bytes()[..3]);
    bytes.extend(size.to_le_bytes());
    bytes
}

fn integer(size: u32) -> Vec<u8> {
    let precision = u16::try_from(size * 8).unwrap();
    [head(0, 1, 8, size), vec![0, 0], precision.to_le_bytes().to_vec()].concat()
}

const F32: &[u8] = b"\x11\x20\x1f\x00\x04\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0";

#[test]
fn numbers() {
    let int = decode(&integer(4)).unwrap();
    let Class::FixedPoint(fixed) = int.class else { panic!("{int:?}") };
    assert_eq!((int.size, fixed.precision, fixed.signed), (4, 32, true));
    assert_eq!(fixed.order, ByteOrder::Little);
    let float = decode(F32).unwrap();
    let Class::FloatingPoint(float) = float.class else { panic!("{float:?}") };
    assert_eq!((float.sign, float.exponent_at, float.exponent_bits), (31, 23, 8));
    assert_eq!((float.mantissa_at, float.mantissa_bits, float.bias), (0, 23, 127));
    assert_eq!(float.normalisation, Normalisation::Implied);
    let mut vax = F32.to_vec();
    (vax[0], vax[1]) = (0x31, 0x61);
    let vax = decode(&vax).unwrap();
    assert!(matches!(vax.class, Class::FloatingPoint(FloatingPoint { order: ByteOrder::Vax, .. })));
    let bits = decode(&[head(4, 1, 1, 2), vec![3, 0, 5, 0]].concat()).unwrap();
    let Class::Bitfield(bits) = bits.class else { panic!("{bits:?}") };
    assert_eq!((bits.order, bits.bit_offset, bits.precision), (ByteOrder::Big, 3, 5));
    let time = decode(&[head(2, 1, 0, 4), vec![32, 0]].concat()).unwrap();
    assert_eq!(time.class, Class::Time { order: ByteOrder::Little, precision: 32 });
}

#[test]
fn numbers_that_do_not_fit() {
    let mut wide = integer(4);
    wide[10] = 33;
    assert!(decode(&wide).is_err(), "precision");
    wide[10] = 0;
    assert!(decode(&wide).is_err(), "no bits");
    let mut shifted = integer(4);
    shifted[8] = 1;
    assert!(decode(&shifted).is_err(), "offset");
    for (at, value) in [(2, 32), (12, 25), (13, 0), (15, 33), (1, 0x30)] {
        let mut float = F32.to_vec();
        float[at] = value;
        assert!(decode(&float).is_err(), "byte {at}");
    }
    let mut order = F32.to_vec();
    (order[0], order[1]) = (0x31, 0x60);
    assert!(decode(&order).is_err(), "byte order");
    for version in [0, 6] {
        let mut bytes = integer(4);
        bytes[0] = version << 4;
        assert!(matches!(decode(&bytes), Err(HdfError::BadVersion { .. })));
    }
    assert!(decode(&[head(0, 1, 0, 0), vec![0; 4]].concat()).is_err(), "size 0");
    assert!(decode(&head(12, 1, 0, 4)).is_err(), "class");
    assert!(matches!(decode(&integer(4)[..10]), Err(HdfError::Truncated { .. })));
}

#[test]
fn text_opaque_references_and_variable_length() {
    let text = decode(&head(3, 1, 0x12, 7)).unwrap();
    let expected = Class::String { padding: Padding::SpacePadded, charset: Charset::Utf8 };
    assert_eq!((text.size, text.class), (7, expected));
    assert!(decode(&head(3, 1, 0x03, 7)).is_err(), "padding");
    assert!(decode(&head(3, 1, 0x20, 7)).is_err(), "character set");
    let opaque = decode(&[head(5, 1, 8, 3), b"abc\0\0\0\0\0".to_vec()].concat()).unwrap();
    assert_eq!(opaque.class, Class::Opaque { tag: b"abc".as_slice().into() });
    let object = decode(&head(7, 1, 0, 8)).unwrap();
    assert_eq!(object.class, Class::Reference(ReferenceKind::Object));
    assert_eq!(
        decode(&head(7, 1, 1, 12)).unwrap().class,
        Class::Reference(ReferenceKind::DatasetRegion)
    );
    let revised = decode(&head(7, 4, 0x12, 18)).unwrap();
    assert_eq!(revised.class, Class::Reference(ReferenceKind::Object2));
    assert_eq!(decode(&head(7, 1, 0x12, 18)).unwrap().class, revised.class);
    assert!(decode(&head(7, 4, 5, 18)).is_err(), "kind of reference");
    assert!(decode(&head(7, 1, 0, 4)).is_err(), "size of a reference");
    let string = decode(&[head(9, 1, 0x101, 16), head(3, 1, 0, 1)].concat()).unwrap();
    let expected = Class::VarLenString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
    assert_eq!(string.class, expected);
    let list = decode(&[head(9, 1, 0, 16), integer(2)].concat()).unwrap();
    assert!(matches!(list.class, Class::VarLenSequence { base } if base.size == 2));
    assert!(decode(&[head(9, 1, 2, 16), integer(2)].concat()).is_err(), "kind");
    assert!(decode(&[head(9, 1, 0, 12), integer(2)].concat()).is_err(), "size");
    assert!(decode(&head(9, 1, 0, 16)).is_err(), "no base");
}

#[test]
fn compounds_of_all_versions() {
    let mut v1 = [head(6, 1, 2, 20), b"a\0\0\0\0\0\0\0".to_vec(), vec![0; 4]].concat();
    v1.extend([vec![0; 28], integer(4)].concat());
    v1.extend([b"longname\0\0\0\0\0\0\0\0".as_slice(), &[4, 0, 0, 0, 2, 0, 0, 0]].concat());
    v1.extend([vec![0; 8], vec![2, 0, 0, 0, 2, 0, 0, 0], vec![0; 8], integer(4)].concat());
    let v1 = decode(&v1).unwrap();
    let Class::Compound(compound) = &v1.class else { panic!("{v1:?}") };
    let [a, b] = compound.members.as_slice() else { panic!("{v1:?}") };
    assert_eq!((&*a.name, a.offset, a.datatype.size), (b"a".as_slice(), 0, 4));
    assert_eq!((&*b.name, b.offset, b.datatype.size), (b"longname".as_slice(), 4, 16));
    assert!(matches!(&b.datatype.class, Class::Array { dims, .. } if *dims == [2, 2]));

    let v2 = [head(6, 2, 1, 8), b"x\0\0\0\0\0\0\0\x04\0\0\0".to_vec(), integer(4)].concat();
    let v2 = decode(&v2).unwrap();
    assert!(matches!(&v2.class, Class::Compound(c) if c.members[0].offset == 4));

    // The width of offsets follows from the size of the compound.
    for (size, offset) in [(255, vec![4]), (256, vec![4, 0]), (65536, vec![4, 0, 0])] {
        let v3 = [head(6, 3, 1, size), b"x\0".to_vec(), offset, integer(4)].concat();
        let v3 = decode(&v3).unwrap();
        assert!(matches!(&v3.class, Class::Compound(c) if c.members[0].offset == 4));
    }
    assert!(decode(&head(6, 3, 0, 8)).is_err(), "no members");
    assert!(decode(&head(6, 3, 0xffff, 8)).is_err(), "more members than bytes");
    let out = [head(6, 3, 1, 8), b"x\0\x05".to_vec(), integer(4)].concat();
    assert!(decode(&out).is_err(), "member past the end");
}

#[test]
fn enumerations_arrays_and_complex_numbers() {
    let members = b"no\0yes\0\x00\x01";
    let bool = decode(&[head(8, 3, 2, 1), integer(1), members.to_vec()].concat()).unwrap();
    let Class::Enum { members, .. } = &bool.class else { panic!("{bool:?}") };
    assert_eq!((&*members[1].name, &*members[1].value), (b"yes".as_slice(), [1].as_slice()));
    let padded = b"no\0\0\0\0\0\0\x07";
    let old = decode(&[head(8, 1, 1, 1), integer(1), padded.to_vec()].concat()).unwrap();
    assert!(matches!(&old.class, Class::Enum { members, .. } if *members[0].value == [7]));
    assert!(decode(&[head(8, 3, 2, 1), integer(1), b"no\0\0\0".to_vec()].concat()).is_err());
    assert!(decode(&[head(8, 3, 1, 4), F32.to_vec(), b"a\0\0\0\0\0".to_vec()].concat()).is_err());
    assert!(decode(&[head(8, 3, 1, 2), integer(1), b"a\0\0\0".to_vec()].concat()).is_err());

    let v2 = [head(10, 2, 0, 24), vec![2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], vec![0; 8]].concat();
    let v2 = decode(&[v2, integer(4)].concat()).unwrap();
    assert!(matches!(&v2.class, Class::Array { dims, .. } if *dims == [2, 3]));
    let array = |size, dim: u8| [head(10, 3, 0, size), vec![1, dim, 0, 0, 0], integer(4)].concat();
    assert!(decode(&array(20, 5)).is_ok());
    assert!(decode(&array(16, 5)).is_err(), "size");
    assert!(decode(&array(16, 0)).is_err(), "empty");
    let mut huge = [head(10, 3, 0, 4), vec![2]].concat();
    huge.extend([0, 0, 0, 0x80, 2, 0, 0, 0x80]);
    assert!(decode(&[huge, integer(4)].concat()).is_err(), "product wraps to the right size");

    let complex = decode(&[head(11, 5, 1, 8), F32.to_vec()].concat()).unwrap();
    assert!(matches!(&complex.class, Class::Complex { base } if base.size == 4));
    assert!(decode(&[head(11, 5, 1, 12), F32.to_vec()].concat()).is_err(), "size");
    assert!(decode(&[head(11, 5, 1, 8), integer(4)].concat()).is_err(), "integers");
}

#[test]
fn nesting_and_members_are_limited() {
    let nested = |levels| [head(9, 1, 0, 16).repeat(levels), integer(4)].concat();
    assert!(decode(&nested(255)).is_ok());
    assert!(matches!(decode(&nested(256)), Err(HdfError::Limit { limit: 256, .. })));
    let mut bytes = head(6, 3, 3, 12);
    for name in [b"a\0\x00", b"b\0\x04", b"c\0\x08"] {
        bytes.extend([name.to_vec(), integer(4)].concat());
    }
    let limits = ReadLimits { type_members: 2, ..ReadLimits::default() };
    let reader = Reader::new("test", &bytes, 0, Sizes::EIGHT);
    assert!(matches!(Datatype::decode(reader, &limits), Err(HdfError::Limit { limit: 2, .. })));
    assert!(Datatype::decode(reader, &ReadLimits::default()).is_ok());
}
