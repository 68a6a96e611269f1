use std::sync::Arc;

use super::super::{EncodedHeader, HeaderSpace, HeaderStyle, encode_header};
use super::*;
use crate::Sizes;
use crate::testing::file;

/// Where the header and its other block are.
const AT: u64 = 64;
const OTHER: u64 = 4096;

fn message(kind: u16, len: usize) -> NewMessage {
    NewMessage { kind, flags: 1, creation_order: None, body: vec![7; len].into() }
}

/// A file with a header of two blocks.
fn two_blocks(style: &HeaderStyle, messages: &[NewMessage], len: u64) -> (File, Vec<u8>) {
    let space = HeaderSpace { addr: FileAddr(AT), len };
    let mut fresh = |_| Ok(FileAddr(OTHER));
    let encoded = encode_header(style, messages, &space, Sizes::EIGHT, &mut fresh).unwrap();
    let EncodedHeader { first, continuation } = encoded;
    let mut bytes = [&[0; 64], first.as_slice()].concat();
    bytes.resize(4096, 0xaa);
    bytes.extend(continuation.unwrap().1);
    (file(&bytes), bytes)
}

fn written(bytes: &[u8], changed: &[(FileAddr, Vec<u8>)]) -> ObjectHeader {
    let mut bytes = bytes.to_vec();
    for (addr, block) in changed {
        let at = usize::try_from(addr.0).unwrap();
        bytes[at..at + block.len()].copy_from_slice(block);
    }
    ObjectHeader::read(&file(&bytes), FileAddr(AT)).unwrap()
}

fn shape(header: &ObjectHeader) -> Vec<(u16, u32)> {
    header.messages.iter().map(|message| (message.kind, message.len)).collect()
}

/// In the first block 3, 12 and a reference, in the other one 6, an empty 13 and 8.
fn styles() -> [(HeaderStyle, File, Vec<u8>); 2] {
    let messages = [message(3, 8), message(12, 16), message(6, 40), message(13, 0), message(8, 24)];
    [(1, 16 + 16 + 24 + 24), (2, 7 + 12 + 20 + 20 + 4)].map(|(version, len)| {
        let style = HeaderStyle { version, ..HeaderStyle::default() };
        let order = [0, 1, 2, 4, 3].map(|i| messages[i].clone());
        // An empty message that ends its block, and one that does not.
        let messages = if version == 1 { &order } else { &messages };
        let (file, bytes) = two_blocks(&style, messages, len);
        (style, file, bytes)
    })
}

#[test]
fn what_does_not_change_is_not_written() {
    for (_, file, _) in styles() {
        let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
        let same = header.rewrite(&file, &mut |message| Ok(Some(header.carry(message))));
        assert_eq!(same.unwrap(), []);
    }
}

#[test]
fn messages_change_in_their_blocks() {
    for (style, file, bytes) in styles() {
        let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
        let before = shape(&header);
        // A body of other bytes, in the other block.
        let mut change = |message: &Message| {
            let mut new = header.carry(message);
            if message.kind == 6 {
                Arc::make_mut(&mut new.body)[0] = 99;
            }
            Ok(Some(new))
        };
        let changed = header.rewrite(&file, &mut change).unwrap();
        assert_eq!(changed.iter().map(|(addr, _)| addr.0).collect::<Vec<_>>(), [OTHER]);
        let after = written(&bytes, &changed);
        assert_eq!(shape(&after), before);
        assert_eq!(after.body(after.find(6).unwrap())[0], 99);

        // One in each block is gone, or shorter: free space takes its place.
        let mut change = |message: &Message| match message.kind {
            12 => Ok(None),
            8 => Ok(Some(self::message(8, 8))),
            _ => Ok(Some(header.carry(message))),
        };
        let changed = header.rewrite(&file, &mut change).unwrap();
        assert_eq!(changed.len(), 2);
        let after = written(&bytes, &changed);
        let kinds = |kind| after.messages.iter().filter(|message| message.kind == kind).count();
        assert_eq!([3, 6, 8, 12, 13, 16].map(kinds), [1, 1, 1, 0, 1, 1]);
        assert_eq!((after.find(8).unwrap().len, after.style()), (8, style));
        if style.version == 1 {
            let count = changed[0].1[2];
            assert_eq!(usize::from(count), after.messages.len());
        }
    }
}

#[test]
fn what_is_longer_finds_no_room() {
    for (_, file, _) in styles() {
        let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
        for kind in [3, 8] {
            let mut change = |message: &Message| match message.kind {
                other if other == kind => Ok(Some(self::message(kind, 48))),
                _ => Ok(Some(header.carry(message))),
            };
            let error = header.rewrite(&file, &mut change).unwrap_err();
            assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
        }
    }
}

#[test]
fn links_are_counted_less() {
    let counted = |header: &ObjectHeader, file: &File| match header.find(kind::REFERENCE_COUNT) {
        Some(message) => decode_reference_count(header.reader(file.sizes(), message)).unwrap(),
        None => header.reference_count.unwrap(),
    };
    let mut body = Writer::new("count", Sizes::EIGHT);
    encode_reference_count(5, &mut body).unwrap();
    let kind = kind::REFERENCE_COUNT;
    let count = NewMessage { kind, flags: 0, creation_order: None, body: body.finish().into() };
    // The count of version 2 in the first block, and in the other one.
    let head = 7 + 20 + 4;
    let cases = [
        (1, vec![message(3, 8), message(12, 40)], 16 + 16 + 24, AT),
        (2, vec![count.clone(), message(12, 40)], head + 9, AT),
        (2, vec![message(12, 8), message(3, 40), count], head + 12, OTHER),
    ];
    for (version, messages, len, place) in cases {
        let style = HeaderStyle { version, reference_count: 5, ..HeaderStyle::default() };
        let (file, bytes) = two_blocks(&style, &messages, len);
        let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
        assert_eq!(counted(&header, &file), 5);
        for (fewer, left) in [(1, 4), (4, 1), (5, 1), (u32::MAX, 1)] {
            let changed = header.with_fewer_links(&file, fewer).unwrap();
            assert_eq!(changed.iter().map(|(addr, _)| addr.0).collect::<Vec<_>>(), [place]);
            let after = written(&bytes, &changed);
            assert_eq!((counted(&after, &file), shape(&after)), (left, shape(&header)));
        }
        assert_eq!(header.with_fewer_links(&file, 0).unwrap(), []);
    }
    // One that says nothing has one link, and keeps it.
    let style = HeaderStyle::default();
    let (file, _) = two_blocks(&style, &[message(3, 8), message(12, 40)], head + 12);
    let header = ObjectHeader::read(&file, FileAddr(AT)).unwrap();
    assert_eq!(header.with_fewer_links(&file, 1).unwrap(), []);
}
