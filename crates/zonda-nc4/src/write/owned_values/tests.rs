use super::*;
use crate::element_form::StructMember;
use crate::write::testing::List;
use zonda_convert::ByteOrder;
use zonda_hdf5::message::{Charset, Padding};
use zonda_model::ExtType;

fn form(size: usize, shape: ElementShape) -> ElementForm {
    ElementForm { file_size: 16, size, align: 8, shape }
}

fn text() -> ElementForm {
    form(8, ElementShape::Text(Padding::NullTerminated, Charset::Utf8))
}

fn short() -> ElementForm {
    form(2, ElementShape::Number(ExtType::Short, ByteOrder::NATIVE))
}

fn sequence(base: ElementForm) -> ElementForm {
    form(16, ElementShape::Sequence(Box::new(base)))
}

fn part(name: &str, at: usize, form: ElementForm) -> StructMember {
    StructMember { name: name.as_bytes().into(), file_at: 0, at, form }
}

#[test]
fn copies_own_what_they_point_to_at_every_depth() {
    // A struct with a number, an array of two strings and a sequence of sequences of shorts.
    let strings = form(16, ElementShape::Array(Box::new(text()), vec![2]));
    let parts = vec![
        part("n", 0, short()),
        part("s", 8, strings),
        part("v", 24, sequence(sequence(short()))),
    ];
    let whole = form(40, ElementShape::Compound(parts));
    let mut list = List::default();
    let inner = [list.sequence(2, &[1, 0, 2, 0]), vec![0; 16], list.sequence(1, &[3, 0])].concat();
    let mut element = vec![7, 0, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee];
    element.extend(list.add(b"eins").to_ne_bytes());
    element.extend([0; 8]);
    element.extend(list.sequence(3, &inner));
    let held = take(&whole, &mut list.clone(), &element).unwrap();
    // What was pointed to may change now.
    list.0.iter_mut().for_each(|bytes| bytes.fill(0xff));
    let (mut out, mut place) = (vec![0; 40], List::default());
    give(&held, &whole, &mut place, &mut out).unwrap();
    assert_eq!(out[..8], element[..8], "padding is kept");
    assert_eq!(place.at(load(&out, 8)), Some(&b"eins"[..]));
    assert_eq!(load(&out, 16), 0, "a null pointer stays one");
    assert_eq!(load(&out, 24), 3);
    let items = place.at(load(&out, 32)).unwrap();
    assert_eq!((load(items, 0), place.at(load(items, 8))), (2, Some(&[1, 0, 2, 0][..])));
    assert_eq!((load(items, 16), load(items, 24)), (0, 0), "an empty sequence");
    assert_eq!((load(items, 32), place.at(load(items, 40))), (1, Some(&[3, 0][..])));
    // It is a source itself.
    let again = take(&whole, &mut { &held }, held.bytes()).unwrap();
    assert_eq!(again, held);
}

#[test]
fn items_at_no_address_are_none() {
    let mut element = 5u64.to_ne_bytes().to_vec();
    element.extend([0; 8]);
    let held = take(&sequence(short()), &mut List::default(), &element).unwrap();
    assert_eq!(held.bytes(), [0; 16]);
}

#[test]
fn a_caller_without_memory_is_told_so() {
    struct Full;
    impl VlenSink for Full {
        fn place(&mut self, _: &[u8], _: bool) -> Option<u64> {
            None
        }
    }
    let mut list = List::default();
    let element = list.add(b"x").to_ne_bytes();
    let held = take(&text(), &mut list, &element).unwrap();
    assert_eq!(give(&held, &text(), &mut Full, &mut [0; 8]), Err(NcError::NoMem));
}

#[test]
fn what_is_written_is_read_again() {
    let mut list = List::default();
    let (x, empty) = (list.add(b"some text"), list.add(b""));
    let elements: Vec<u8> = [x, 0, empty].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let held = take(&text(), &mut list, &elements).unwrap();
    let mut bytes = vec![0xff; held.written_bytes()];
    held.write_to(&mut bytes).unwrap();
    assert_eq!(held.write_to(&mut vec![0; held.written_bytes() - 1]), None);
    assert_eq!(OwnedValues::read_from(&bytes), Some(held));
    for cut in 0..bytes.len() {
        assert_eq!(OwnedValues::read_from(&bytes[..cut]), None);
    }
    bytes[..8].fill(0xff);
    assert_eq!(OwnedValues::read_from(&bytes), None);
    let nothing = OwnedValues::default();
    let mut bytes = vec![0; nothing.written_bytes()];
    nothing.write_to(&mut bytes).unwrap();
    assert_eq!(OwnedValues::read_from(&bytes), Some(nothing));
}
