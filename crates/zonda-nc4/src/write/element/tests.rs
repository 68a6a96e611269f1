use zonda_hdf5::message::{Charset, FixedPoint, Padding};
use zonda_hdf5::{Sizes, Space};
use zonda_model::ExtType;

use super::*;
use crate::element_form::StructMember;
use crate::write::testing::List;

fn form(file_size: usize, size: usize, shape: ElementShape) -> ElementForm {
    ElementForm { file_size, size, align: 8, shape }
}

fn number(ext: ExtType, order: ByteOrder) -> ElementForm {
    form(ext.size(), ext.size(), ElementShape::Number(ext, order))
}

fn encoded(form: &ElementForm, list: &mut List, src: &[u8], n: usize) -> (Vec<u8>, u64) {
    let (mut heap, mut space) = (HeapWriter::new(Sizes::EIGHT), Space::new(4096));
    let mut dst = vec![0xaa; n * form.file_size];
    encode(form, &mut heap, &mut space, list, src, &mut dst).unwrap();
    (dst, heap.pending())
}

#[test]
fn numbers_get_the_byte_order_of_the_file() {
    let mut list = List::default();
    let src = 0x0102_0304i32.to_ne_bytes();
    let big = number(ExtType::Int, ByteOrder::Big);
    assert_eq!(encoded(&big, &mut list, &src, 1), (vec![1, 2, 3, 4], 0));
    let little = number(ExtType::Int, ByteOrder::Little);
    assert_eq!(encoded(&little, &mut list, &src, 1).0, [4, 3, 2, 1]);
    let array = form(8, 8, ElementShape::Array(Box::new(big), vec![2]));
    assert_eq!(encoded(&array, &mut list, &[src, src].concat(), 1).0, [1, 2, 3, 4, 1, 2, 3, 4]);
    let members = ElementShape::Enum(Box::new(little), Vec::new());
    assert_eq!(encoded(&form(4, 4, members), &mut list, &src, 1).0, [4, 3, 2, 1]);
}

#[test]
fn strings_and_sequences_refer_to_the_heap() {
    let mut list = List::default();
    let text = form(16, 8, ElementShape::Text(Padding::NullTerminated, Charset::Utf8));
    let addresses = [list.add(b"abc"), 0, list.add(b"")].map(u64::to_ne_bytes).concat();
    let (dst, pending) = encoded(&text, &mut list, &addresses, 3);
    assert!(pending > 0);
    let place = &dst[4..12];
    assert_eq!(dst[..4], [3, 0, 0, 0]);
    assert_ne!(place, [0; 8]);
    assert_eq!(dst[12..16], [1, 0, 0, 0]);
    assert_eq!(dst[16..32], [0; 16], "a null pointer");
    assert_eq!((&dst[32..36], &dst[36..44], &dst[44..48]), (&[0; 4][..], place, &[2, 0, 0, 0][..]));
    let short = number(ExtType::Short, ByteOrder::Big);
    let sequence = form(16, 16, ElementShape::Sequence(Box::new(short)));
    let src = [list.sequence(2, &[1, 0, 2, 0]), vec![0; 16]].concat();
    let (dst, _) = encoded(&sequence, &mut list, &src, 2);
    assert_eq!(
        (&dst[..4], &dst[12..]),
        (&[2, 0, 0, 0][..], &[[1, 0, 0, 0].as_slice(), &[0; 16]].concat()[..])
    );
}

#[test]
fn padding_of_compounds_is_kept_where_it_has_a_place() {
    let mut list = List::default();
    let part = |name: &str, at, file_at, form| StructMember {
        name: name.as_bytes().into(),
        file_at,
        at,
        form,
    };
    let byte = || number(ExtType::Byte, ByteOrder::Little);
    let int = || number(ExtType::Int, ByteOrder::Little);
    let plain =
        form(8, 8, ElementShape::Compound(vec![part("b", 0, 0, byte()), part("i", 4, 4, int())]));
    let src = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(encoded(&plain, &mut list, &src, 1).0, src);
    let packed =
        form(5, 8, ElementShape::Compound(vec![part("b", 0, 0, byte()), part("i", 4, 1, int())]));
    assert_eq!(encoded(&packed, &mut list, &src, 1).0, [1, 5, 6, 7, 8]);
}

#[test]
fn numbers_of_odd_bits_are_not_made() {
    let bits = FixedPoint {
        order: zonda_hdf5::message::ByteOrder::Little,
        signed: true,
        padding: [false; 2],
        bit_offset: 1,
        precision: 15,
    };
    let (mut heap, mut space) = (HeapWriter::new(Sizes::EIGHT), Space::new(4096));
    let odd = form(2, 2, ElementShape::Integer(bits));
    let mut list = List::default();
    assert!(encode(&odd, &mut heap, &mut space, &mut list, &[0; 2], &mut [0; 2]).is_err());
}
