//! The same of version 1.

use super::*;
use crate::testing::storage;
use crate::{File, ReadLimits};

const STYLE: HeaderStyle =
    HeaderStyle { version: 1, reference_count: 2, flags: 0, phase_change: None, times: None };

fn message(kind: u16, len: usize) -> NewMessage {
    NewMessage { kind, flags: 1, creation_order: None, body: vec![7; len].into() }
}

fn encode(messages: &[NewMessage], len: u64) -> Result<EncodedHeader> {
    let space = HeaderSpace { addr: FileAddr(AT), len };
    encode_header(&STYLE, messages, &space, Sizes::EIGHT, &mut |_| Ok(FileAddr(1 << 20)))
}

/// Kinds and lengths of bodies.
fn shape(header: &ObjectHeader) -> Vec<(u16, u32)> {
    header.messages.iter().map(|message| (message.kind, message.len)).collect()
}

fn count(first: &[u8]) -> u16 {
    u16::from_le_bytes([first[2], first[3]])
}

#[test]
fn written_as_libraries_do() {
    // HDF5 2.0 (h5py 3.16, libver "earliest"): a group, a committed type and a dataset, which has
    // room for more.
    let group = hex("01 00 0100 01000000 18000000 00000000
        1100 1000 00 000000 4803000000000000 6805000000000000");
    let committed = hex("01 00 0100 01000000 20000000 00000000
        0300 1800 05 000000 11201f0004000000 00002000 17080017 7f00000000000000");
    let dataset = hex("01 00 0500 01000000 00010000 00000000
        0100 1800 00 000000 0101010000000000 0300000000000000 0300000000000000
        0300 1000 01 000000 1008000002000000 0000100000000000
        0500 0800 01 000000 0202020100000000
        0800 1800 00 000000 0301000800000000 0006000000000000 0000000000000000
        0000 9000 00 000000");
    let dataset = [dataset, vec![0; 0x90]].concat();
    for bytes in [group, committed, dataset] {
        let header = read(&bytes, None);
        let kept: Vec<_> = header.messages.iter().filter(|message| message.kind != 0).collect();
        let kept: Vec<_> = kept.into_iter().map(|message| header.carry(message)).collect();
        let space = header.space();
        assert_eq!((space.addr, space.len), (FileAddr(AT), bytes.len() as u64));
        let encoded =
            encode_header(&header.style(), &kept, &space, Sizes::EIGHT, &mut no_space).unwrap();
        assert_eq!(encoded.first, bytes);
    }
}

#[test]
fn bodies_are_filled_up() {
    let messages = [message(12, 0), message(12, 1), message(12, 8), message(12, 13)];
    let len = first_chunk_len(&STYLE, &messages);
    assert_eq!(len, 16 + 4 * 8 + 8 + 8 + 16);
    assert_eq!(first_chunk_len(&STYLE, &messages[2..3]), 16 + 24, "room for a reference");
    let encoded = encode(&messages, len).unwrap();
    assert_eq!((encoded.first.len() as u64, count(&encoded.first)), (len, 4));
    let header = read(&encoded.first, None);
    assert_eq!(shape(&header), [(12, 0), (12, 8), (12, 8), (12, 16)]);
    assert_eq!(header.body(&header.messages[1]), [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((header.version, header.reference_count, header.flags), (1, Some(2), 0));
    assert_eq!(header.style(), STYLE);
    // What was read is filled up already and stays as long.
    let again: Vec<_> = header.messages.iter().map(|message| header.carry(message)).collect();
    assert_eq!(encode(&again, len).unwrap(), encoded);
}

#[test]
fn the_least_first_block_holds_a_reference() {
    // A root group that has but its symbol table: what is new makes all go elsewhere.
    let messages = [message(17, 16), message(12, 40), message(12, 0)];
    let encoded = encode(&messages, 16 + 24).unwrap();
    let (addr, block) = encoded.continuation.as_ref().unwrap();
    assert_eq!((addr.0, block.len(), count(&encoded.first)), (1 << 20, 24 + 48 + 8, 4));
    assert_eq!(&block[..8], [17, 0, 16, 0, 1, 0, 0, 0], "no signature");
    let header = read(&encoded.first, encoded.continuation.as_ref());
    assert_eq!(shape(&header), [(16, 16), (17, 16), (12, 40), (12, 0)]);
    let blocks: Vec<_> = header.continuations(Sizes::EIGHT).collect();
    assert_eq!(blocks, [(*addr, block.len() as u64)]);
    assert!(matches!(encode(&messages, 16 + 16), Err(HdfError::TooLarge { .. })));
    assert!(encode(&messages[2..], 16 + 8).is_ok());
}

#[test]
fn narrow_addresses_make_references_shorter() {
    for (sizes, len) in [(Sizes { offset: 4, length: 4 }, 8), (Sizes { offset: 2, length: 2 }, 8)] {
        let space = HeaderSpace { addr: FileAddr(AT), len: 16 + 8 + len };
        let messages = [message(17, 8), message(12, 40)];
        let mut fresh = |_| Ok(FileAddr(256));
        let encoded = encode_header(&STYLE, &messages, &space, sizes, &mut fresh).unwrap();
        let mut bytes = [&[0; 64], encoded.first.as_slice()].concat();
        bytes.resize(256, 0xaa);
        bytes.extend(encoded.continuation.unwrap().1);
        let file = File::bare(storage(&bytes), sizes, ReadLimits::default());
        let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
        assert_eq!(shape(&header), [(16, 8), (17, 8), (12, 40)]);
    }
}

#[test]
fn what_is_left_is_filled() {
    for left in (8..200u64).step_by(8).chain([0xfff8, 0x1_0000, 0x1_0008, 0x3_0000]) {
        let encoded = encode(&[message(3, 8)], 16 + 16 + left).unwrap();
        let header = read(&encoded.first, None);
        let nil: u64 = header.all(kind::NIL).map(|nil| u64::from(nil.len) + 8).sum();
        assert_eq!((nil, encoded.first.len() as u64), (left, 32 + left));
        assert_eq!(usize::from(count(&encoded.first)), header.messages.len());
    }
}

#[test]
fn what_version_1_cannot_hold() {
    assert!(matches!(encode(&[], 15), Err(HdfError::TooLarge { .. })));
    assert!(encode(&[], 16).is_ok() && encode(&[], 24).is_ok());
    for len in [17, 20, 39] {
        let error = encode(&[], len).unwrap_err();
        assert!(matches!(error, HdfError::BadValue { at: AT, .. }), "{error}");
    }
    // The length of a body is in two bytes and a multiple of 8.
    assert!(encode(&[message(12, 65_528)], 1 << 17).is_ok());
    let error = encode(&[message(12, 65_529)], 1 << 17).unwrap_err();
    assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    // So is the number of messages.
    let many = vec![message(12, 0); 65_535];
    assert!(encode(&many, first_chunk_len(&STYLE, &many)).is_ok());
    let error = encode(&many, first_chunk_len(&STYLE, &many) + 8).unwrap_err();
    assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    // The type of a message has two bytes here.
    assert!(encode(&[message(0x100, 8)], 64).is_ok());
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        lens in proptest::collection::vec(prop_oneof![0usize..60, 0usize..3000], 0..20),
        eights in prop_oneof![5u64..80, 5u64..9000, 8000u64..40_000],
        attributes in any::<bool>(),
    ) {
        let new = |(index, &len): (usize, &usize)| {
            let kind = if attributes { 12 } else { u16::try_from(index).unwrap() + 17 };
            NewMessage { body: vec![u8::try_from(index).unwrap(); len].into(), ..message(kind, 0) }
        };
        let messages: Vec<_> = lens.iter().enumerate().map(new).collect();
        let space = HeaderSpace { addr: FileAddr(AT), len: eights * 8 };
        let place = FileAddr(AT + space.len);
        let mut fresh = |_| Ok(place);
        let encoded = encode_header(&STYLE, &messages, &space, Sizes::EIGHT, &mut fresh).unwrap();
        prop_assert_eq!(encoded.first.len() as u64, space.len);
        let all_fit = first_chunk_len(&STYLE, &messages) <= space.len;
        prop_assert_eq!(encoded.continuation.is_none(), all_fit);
        let header = read(&encoded.first, encoded.continuation.as_ref());
        prop_assert_eq!(usize::from(count(&encoded.first)), header.messages.len());
        prop_assert_eq!((header.style(), header.space()), (STYLE, space));
        let known = |found: &&crate::Message| found.kind != kind::NIL && found.kind != 16;
        let mut found: Vec<_> =
            header.messages.iter().filter(known).map(|found| header.carry(found)).collect();
        if !attributes {
            found.sort_by_key(|found| found.kind);
        }
        // Attributes stay in their order.
        prop_assert_eq!(found.len(), messages.len());
        for (found, message) in found.iter().zip(&messages) {
            let (body, filling) = found.body.split_at(message.body.len());
            prop_assert_eq!((found.kind, found.flags, body), (message.kind, 1, &*message.body));
            prop_assert!(filling.len() < 8 && filling.iter().all(|&byte| byte == 0));
        }
    }
}
