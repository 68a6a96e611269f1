use proptest::prelude::*;

use super::super::{EnumMember, Member};
use super::*;
use crate::testing::{encoded, hex};
use crate::{Reader, Sizes};

fn decode(bytes: &[u8]) -> Result<Datatype> {
    Datatype::decode(Reader::new("test", bytes, 0, Sizes::EIGHT), &ReadLimits::default())
}

fn encode(datatype: &Datatype) -> Result<Vec<u8>> {
    encoded(|writer| datatype.encode(writer))
}

/// Bodies written by netCDF-C 4.9.0 on HDF5 1.10.8.
const OF_NETCDF: [&str; 17] = [
    // double, float, short, int, uint64, int of the other byte order
    "11203f00 08000000 0000 4000 340b0034 ff030000",
    "11201f00 04000000 0000 2000 17080017 7f000000",
    "10080000 02000000 0000 1000",
    "10080000 04000000 0000 2000",
    "10000000 08000000 0000 4000",
    "10090000 04000000 0000 2000",
    // placeholder of a dimension, reference, string, char
    "11211f00 04000000 0000 2000 17080017 7f000000",
    "17000000 08000000",
    "19010100 10000000 10000000 01000000 0000 0800",
    "13000000 01000000",
    // DIMENSION_LIST, REFERENCE_LIST
    "19000000 10000000 17000000 08000000",
    "36020000 10000000 6461746173657400 00 17000000 08000000
     64696d656e73696f6e00 08 10080000 04000000 0000 2000",
    // compound of byte a; short arr(2, 3); double d, enum of one and seven, opaque(5)
    "36030000 18000000 6100 00 10080000 01000000 0000 0800
     61727200 04 3a000000 0c000000 02 02000000 03000000 10080000 02000000 0000 1000
     6400 10 11203f00 08000000 0000 4000 340b0034 ff030000",
    "38020000 01000000 10000000 01000000 0000 0800 6f6e6500 736576656e00 01 07",
    "15000000 05000000",
    // sequences of int, and of a compound
    "19000000 10000000 10080000 04000000 0000 2000",
    "39000000 10000000 36010000 01000000 6100 00 10080000 01000000 0000 0800",
];

/// Bodies written by HDF5 1.10.8, and 2.0 under h5py 3.16, within the bounds of version 1.8.
const OF_HDF5: [&str; 14] = [
    // bool of numpy, half precision, fixed text, dataset region
    "38020000 01000000 10080000 01000000 0000 0800 46414c534500 5452554500 00 01",
    "11200f00 02000000 0000 1000 0a05000a 0f000000",
    "13010000 03000000",
    "17010000 0c000000",
    // opaque with tags of 8 and 3 bytes, bit field, times
    "15080000 05000000 3132333435363738",
    "15080000 05000000 7461670000000000",
    "14010000 02000000 0000 1000",
    "12000000 04000000 2000",
    "12010000 08000000 4000",
    // VAX float; 12 bits of an integer from bit 3 on, filled up with ones
    "31611f00 04000000 0000 2000 17080017 81000000",
    "100a0000 04000000 0300 0c00",
    // array of sequences of sequences, sequence of arrays, a member far back in a large compound
    "3a000000 30000000 01 03000000 19000000 10000000 19000000 10000000 10080000 01000000 0000 0800",
    "39000000 10000000 3a000000 03000000 01 03000000 10080000 01000000 0000 0800",
    "36010000 70110100 6c61737400 000001 10080000 01000000 0000 0800",
];

#[test]
fn written_as_libraries_do() {
    for body in OF_NETCDF.iter().chain(&OF_HDF5) {
        let bytes = hex(body);
        assert_eq!(encode(&decode(&bytes).unwrap()).unwrap(), bytes, "{body}");
    }
}

#[test]
fn types_that_cannot_be() {
    let opaque =
        |len| encode(&Datatype { size: 1, class: Class::Opaque { tag: vec![1; len].into() } });
    assert!(opaque(248).is_ok() && opaque(249).is_err());
    let byte = || Box::new(CHARACTER);
    let enumeration = |n, value: &[u8]| {
        let member = EnumMember { name: b"a".as_slice().into(), value: value.into() };
        encode(&Datatype { size: 1, class: Class::Enum { base: byte(), members: vec![member; n] } })
    };
    assert!(enumeration(0xffff, b"1").is_ok() && enumeration(0x1_0000, b"1").is_err());
    assert!(enumeration(1, b"12").is_err() && enumeration(1, b"").is_err());
    let compound =
        |members| encode(&Datatype { size: 1, class: Class::Compound(Compound { members }) });
    let member = |name: &[u8]| Member { name: name.into(), offset: 0, datatype: CHARACTER };
    assert!(compound(vec![member(b"a")]).is_ok() && compound(vec![member(b"")]).is_ok());
    assert!(compound(vec![member(b"a\0b")]).is_err() && compound(Vec::new()).is_err());
    let nested = |n| {
        let sequence =
            |base, _| Datatype { size: 16, class: Class::VarLenSequence { base: Box::new(base) } };
        encode(&(0..n).fold(CHARACTER, sequence))
    };
    assert!(decode(&nested(255).unwrap()).is_ok() && nested(256).is_err());
    assert!(nested(10_000).is_err());
}

fn integer(bits: (bool, bool, [bool; 2], u32)) -> (u32, FixedPoint) {
    let (big, signed, padding, size) = bits;
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    let precision = u16::try_from(size * 8 - 1).unwrap();
    (size, FixedPoint { order, signed, padding, bit_offset: 1, precision })
}

fn text() -> impl Strategy<Value = (Padding, Charset)> {
    let paddings = [Padding::NullTerminated, Padding::NullPadded, Padding::SpacePadded];
    let charsets = [Charset::Ascii, Charset::Utf8];
    (proptest::sample::select(paddings.to_vec()), proptest::sample::select(charsets.to_vec()))
}

fn integers() -> impl Strategy<Value = Datatype> {
    let bits = (any::<bool>(), any::<bool>(), any::<[bool; 2]>(), 1u32..17);
    bits.prop_map(|bits| {
        let (size, bits) = integer(bits);
        Datatype { size, class: Class::FixedPoint(bits) }
    })
}

fn names() -> impl Strategy<Value = Box<[u8]>> {
    proptest::collection::vec(1u8..=255, 0..20).prop_map(Into::into)
}

fn floats() -> impl Strategy<Value = Datatype> {
    let orders = vec![ByteOrder::Little, ByteOrder::Big, ByteOrder::Vax];
    let normal = vec![Normalisation::None, Normalisation::Stored, Normalisation::Implied];
    let orders = (proptest::sample::select(orders), proptest::sample::select(normal));
    (orders, 0u8..64, any::<u32>()).prop_map(|((order, normalisation), sign, bias)| {
        let class = Class::FloatingPoint(FloatingPoint {
            order,
            bit_offset: 2,
            precision: 62,
            normalisation,
            sign,
            exponent_at: 50,
            exponent_bits: 12,
            mantissa_at: 3,
            mantissa_bits: 47,
            bias,
        });
        Datatype { size: 8, class }
    })
}

fn enumerations() -> impl Strategy<Value = Datatype> {
    let members = proptest::collection::vec((names(), any::<[u8; 17]>()), 0..5);
    (integers(), members).prop_map(|(base, members)| {
        let size = base.size as usize;
        let member =
            |(name, value): (_, [u8; 17])| EnumMember { name, value: value[..size].into() };
        let members = members.into_iter().map(member).collect();
        Datatype { size: base.size, class: Class::Enum { base: Box::new(base), members } }
    })
}

/// All types that are not made of others.
fn plain() -> impl Strategy<Value = Datatype> {
    let time = (any::<bool>(), 1u16..=32).prop_map(|(big, precision)| {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        Datatype { size: 4, class: Class::Time { order, precision } }
    });
    let fixed_text = (text(), 1u32..1000).prop_map(|((padding, charset), size)| Datatype {
        size,
        class: Class::String { padding, charset },
    });
    let any_text = text().prop_map(|(padding, charset)| Datatype {
        size: 16,
        class: Class::VarLenString { padding, charset },
    });
    let opaque = (names(), 1u32..1000)
        .prop_map(|(tag, size)| Datatype { size, class: Class::Opaque { tag } });
    let references = vec![
        (8, ReferenceKind::Object),
        (12, ReferenceKind::DatasetRegion),
        (16, ReferenceKind::Object2),
        (16, ReferenceKind::DatasetRegion2),
        (16, ReferenceKind::Attribute),
    ];
    let reference = proptest::sample::select(references)
        .prop_map(|(size, kind)| Datatype { size, class: Class::Reference(kind) });
    let bit_field = integers().prop_map(|datatype| match datatype.class {
        Class::FixedPoint(bits) => {
            let class = Class::Bitfield(FixedPoint { signed: false, ..bits });
            Datatype { class, ..datatype }
        }
        class => Datatype { class, ..datatype },
    });
    let complex = floats().prop_map(|base| {
        let size = base.size * 2;
        Datatype { size, class: Class::Complex { base: Box::new(base) } }
    });
    prop_oneof![
        integers(),
        floats(),
        time,
        fixed_text,
        any_text,
        opaque,
        reference,
        bit_field,
        complex,
        enumerations()
    ]
}

fn any_type() -> impl Strategy<Value = Datatype> {
    plain().prop_recursive(4, 30, 5, |inner| {
        let sequence = inner.clone().prop_map(|base| Datatype {
            size: 16,
            class: Class::VarLenSequence { base: Box::new(base) },
        });
        let dims = proptest::collection::vec(1u32..4, 1..4);
        let array = (inner.clone(), dims).prop_map(|(base, dims)| Datatype {
            size: base.size * dims.iter().product::<u32>(),
            class: Class::Array { base: Box::new(base), dims },
        });
        let member = (names(), inner, 0u32..300);
        let compound = proptest::collection::vec(member, 1..5).prop_map(|members| {
            let mut size = 0;
            let mut member = |(name, datatype, gap): (_, Datatype, u32)| {
                let offset = size + gap;
                size = offset + datatype.size;
                Member { name, offset, datatype }
            };
            let members = members.into_iter().map(&mut member).collect();
            Datatype { size, class: Class::Compound(Compound { members }) }
        });
        prop_oneof![sequence, array, compound]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(datatype in any_type()) {
        let bytes = encode(&datatype).unwrap();
        let read = decode(&bytes).unwrap();
        prop_assert_eq!(&read, &datatype);
        prop_assert_eq!(encode(&read).unwrap(), bytes);
    }
}
