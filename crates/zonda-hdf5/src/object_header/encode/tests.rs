use proptest::prelude::*;

mod version_1;

use super::*;
use crate::checksum::lookup3;
use crate::object_header::ObjectHeader;
use crate::testing::{file, hex};

/// Where headers are in these tests.
const AT: u64 = 64;

/// A header at [`AT`], as it is read.
fn read(first: &[u8], continuation: Option<&(FileAddr, Vec<u8>)>) -> ObjectHeader {
    let mut bytes = [&[0; 64], first].concat();
    if let Some((addr, block)) = continuation {
        bytes.resize(usize::try_from(addr.0).unwrap(), 0xaa);
        bytes.extend(block);
    }
    ObjectHeader::read(&file(&bytes), FileAddr(AT)).unwrap()
}

fn no_space(_: u64) -> Result<FileAddr> {
    panic!("all fits into the first block")
}

fn message(kind: u16, len: usize) -> NewMessage {
    NewMessage { kind, flags: 1, creation_order: None, body: vec![7; len].into() }
}

#[test]
fn written_as_libraries_do() {
    // netCDF-C 4.9.0 on HDF5 1.10.8: a group, and a committed type, which has times.
    let group = hex("4f48445202 0c b4
        02 2200 00 0000 0003 0000000000000000 ffffffffffffffff ffffffffffffffff ffffffffffffffff
        0a 0200 01 0000 0000 00 7e00 00 0000");
    let mut group = [group, vec![0; 126]].concat();
    group.extend(hex("6328ac1c"));
    let committed = hex("4f48445202 20 371c026b 371c026b 371c026b 371c026b 16
        03 0800 05 1500000005000000 00 0600 00 000000000000 bb1c22f8");
    for bytes in [group, committed] {
        let header = read(&bytes, None);
        let kept: Vec<_> = header.messages.iter().filter(|message| message.kind != 0).collect();
        let kept: Vec<_> = kept.into_iter().map(|message| header.carry(message)).collect();
        let space = header.space();
        assert_eq!((space.addr, space.len), (FileAddr(AT), bytes.len() as u64));
        let encoded =
            encode_header(&header.style(), &kept, &space, Sizes::EIGHT, &mut no_space).unwrap();
        assert_eq!(encoded.first, bytes);
    }
    // HDF5 1.10.8: a root group with a gap of one byte.
    let root = hex("4f48445202 20 521e026b 521e026b 521e026b 521e026b 78
        10 1000 00 3406000000000000 3000000000000000 0a 0200 01 0000
        06 0c00 00 01000167c300000000000000 06 0e00 00 010003766178c401000000000000
        06 0f00 00 01000474696d65e002000000000000
        10 1000 00 9c08000000000000 3000000000000000 10 1000 00 e809000000000000 2d00000000000000
        00 6ff230aa");
    let body = |kind, flags, digits| NewMessage {
        kind,
        flags,
        creation_order: None,
        body: hex(digits).into(),
    };
    let messages = [
        body(16, 0, "3406000000000000 3000000000000000"),
        body(10, 1, "0000"),
        body(6, 0, "01000167c300000000000000"),
        body(6, 0, "010003766178c401000000000000"),
        body(6, 0, "01000474696d65e002000000000000"),
        body(16, 0, "9c08000000000000 3000000000000000"),
        body(16, 0, "e809000000000000 2d00000000000000"),
    ];
    let style = HeaderStyle { times: Some([0x6b02_1e52; 4]), ..HeaderStyle::default() };
    let space = HeaderSpace { addr: FileAddr(48), len: root.len() as u64 };
    assert_eq!(first_chunk_len(&style, &messages), root.len() as u64 - 1);
    let encoded = encode_header(&style, &messages, &space, Sizes::EIGHT, &mut no_space).unwrap();
    assert_eq!((encoded.first, encoded.continuation), (root, None));
}

#[test]
fn the_length_that_holds_all() {
    for (len, width) in [(0usize, 1), (250, 1), (251, 1), (252, 2), (65_531, 2), (65_535, 4)] {
        let messages = [message(3, len)];
        let style = HeaderStyle::default();
        let whole = first_chunk_len(&style, &messages);
        assert_eq!(whole, 4 + 1 + 1 + width + 4 + len as u64 + 4);
        let space = HeaderSpace { addr: FileAddr(AT), len: whole };
        let encode = |space| encode_header(&style, &messages, space, Sizes::EIGHT, &mut no_space);
        let encoded = encode(&space).unwrap();
        let header = read(&encoded.first, None);
        assert_eq!((header.messages.len(), header.first_len), (1, whole));
    }
}

#[test]
fn what_does_not_fit_goes_elsewhere() {
    let style = HeaderStyle { flags: 0x0c, ..HeaderStyle::default() };
    let numbered = |order| {
        let len = if order == 1 { 300 } else { 20 };
        NewMessage { creation_order: Some(order), ..message(12, len) }
    };
    let messages: Vec<_> = (0..4).map(numbered).collect();
    // Prefix, two messages, the one about the other block, checksum: nothing is left.
    let space = HeaderSpace { addr: FileAddr(AT), len: 7 + 2 * 26 + 22 + 4 };
    let mut asked = Vec::new();
    let mut fresh = |len| {
        asked.push(len);
        Ok(FileAddr(1000))
    };
    let encoded = encode_header(&style, &messages, &space, Sizes::EIGHT, &mut fresh).unwrap();
    let (addr, block) = encoded.continuation.as_ref().unwrap();
    assert_eq!((addr.0, block.len()), (1000, 4 + 306 + 26 + 4));
    assert_eq!(asked, [block.len() as u64]);
    let header = read(&encoded.first, encoded.continuation.as_ref());
    let orders: Vec<_> = header.all(kind::ATTRIBUTE).map(|found| found.creation_order).collect();
    assert_eq!(orders, [0, 2, 1, 3].map(Some), "a smaller one went before a larger one");
    let blocks: Vec<_> = header.continuations(Sizes::EIGHT).collect();
    assert_eq!(blocks, [(FileAddr(1000), block.len() as u64)]);
    assert_eq!(header.style().flags, 0x0c);
}

#[test]
fn other_blocks_can_stay() {
    let style = HeaderStyle { flags: 0x0c, ..HeaderStyle::default() };
    let messages = [message(1, 20), message(12, 200), message(12, 100)];
    let space = HeaderSpace { addr: FileAddr(AT), len: 100 };
    let mut fresh = |_| Ok(FileAddr(1000));
    let old = encode_header(&style, &messages, &space, Sizes::EIGHT, &mut fresh).unwrap();
    let header = read(&old.first, old.continuation.as_ref());
    let kinds = |messages: &[crate::Message]| -> Vec<_> {
        messages.iter().map(|message| message.kind).collect()
    };
    assert_eq!(kinds(header.first()), [1, 16, 0]);
    assert_eq!(kinds(&header.messages), [1, 16, 0, 12, 12]);
    let first = header.first().iter().filter(|message| message.kind != kind::NIL);
    let mut first: Vec<_> = first.map(|message| header.carry(message)).collect();
    Arc::make_mut(&mut first[0].body)[3] = 99;
    let new = encode_header(&header.style(), &first, &header.space(), Sizes::EIGHT, &mut no_space);
    let header = read(&new.unwrap().first, old.continuation.as_ref());
    assert_eq!(kinds(&header.messages), [1, 16, 0, 12, 12]);
    assert_eq!(header.body(&header.messages[0])[3], 99);
}

#[test]
fn spaces_that_hold_no_header() {
    let style = HeaderStyle { flags: 0x0c, ..HeaderStyle::default() };
    let encode = |len, messages: &[NewMessage]| {
        let space = HeaderSpace { addr: FileAddr(AT), len };
        encode_header(&style, messages, &space, Sizes::EIGHT, &mut |_| Ok(FileAddr(1000)))
    };
    assert!(encode(0, &[]).is_err() && encode(10, &[]).is_err() && encode(11, &[]).is_ok());
    let one = [message(12, 100)];
    assert!(encode(11 + 21, &one).is_err() && encode(11 + 22, &one).is_ok());
    // The lengths of a message and of its type are in two bytes and in one.
    assert!(encode(1 << 20, &[message(12, 0xffff)]).is_ok());
    assert!(encode(1 << 20, &[message(12, 0x1_0000)]).is_err());
    assert!(encode(200, &[message(0x100, 10)]).is_err());
    let full = encode_header(
        &style,
        &one,
        &HeaderSpace { addr: FileAddr(AT), len: 40 },
        Sizes::EIGHT,
        &mut |len| Err(HdfError::TooLarge { structure: "file", value: len }),
    );
    assert!(matches!(full, Err(HdfError::TooLarge { structure: "file", .. })));
}

#[test]
fn unknown_messages_are_carried_and_marked() {
    let messages = [0x00u8, 0x10, 0x14].map(|flags| NewMessage { flags, ..message(0x77, 5) });
    let style = HeaderStyle::default();
    let space = HeaderSpace { addr: FileAddr(AT), len: first_chunk_len(&style, &messages) };
    let encoded = encode_header(&style, &messages, &space, Sizes::EIGHT, &mut no_space).unwrap();
    let header = read(&encoded.first, None);
    let carried: Vec<_> = header.messages.iter().map(|message| header.carry(message)).collect();
    let flags: Vec<_> = carried.iter().map(|message| message.flags).collect();
    assert_eq!(flags, [0x00, 0x30, 0x34]);
    assert!(carried.iter().all(|message| *message.body == [7; 5]));
}

/// Bytes of NIL messages and of the gap of a block's messages.
fn unused(mut block: &[u8], head: usize) -> (usize, usize) {
    let mut nil = 0;
    while block.len() >= head {
        let len = usize::from(u16::from_le_bytes([block[1], block[2]]));
        nil += if block[0] == 0 { head + len } else { 0 };
        block = &block[head + len..];
    }
    assert!(block.iter().all(|&byte| byte == 0));
    (nil, block.len())
}

#[test]
fn every_byte_of_a_block_is_in_a_message_or_the_gap() {
    // Also where it takes more than one message to fill it.
    let lens = (0..30u64).chain(65_520..65_570).chain(131_050..131_110);
    for (flags, head) in [(0x0c, 6), (0, 4)] {
        let style = HeaderStyle { flags, ..HeaderStyle::default() };
        for len in lens.clone() {
            let writer = Writer::new("test", Sizes::EIGHT);
            let mut block = HeaderBlock { style: &style, writer, n_messages: 0 };
            block.fill(len).unwrap();
            assert_eq!(block.writer.len() as u64, len);
            let (nil, gap) = unused(block.writer.bytes(), head);
            assert_eq!((nil + gap) as u64, len);
            assert!(gap == 0 || nil == 0, "{len}: {nil} {gap}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        lens in proptest::collection::vec(prop_oneof![0usize..60, 0usize..3000], 0..20),
        len in prop_oneof![35u64..600, 35u64..70_000, 60_000u64..300_000],
        tracked in any::<bool>(),
        times in proptest::option::of(any::<[u32; 4]>()),
        phase_change in proptest::option::of(any::<(u16, u16)>()),
    ) {
        let flags = if tracked { 0x0c } else { 0 };
        let style = HeaderStyle { flags, phase_change, times, ..HeaderStyle::default() };
        let new = |(index, &len): (usize, &usize)| {
            let order = u16::try_from(index).unwrap();
            NewMessage { creation_order: tracked.then_some(order), ..message(order + 2, len) }
        };
        // None is about another block.
        let messages: Vec<_> = lens.iter().enumerate().map(new).filter(|new| new.kind != 16).collect();
        let space = HeaderSpace { addr: FileAddr(AT), len: len + 30 };
        let place = FileAddr((AT + space.len).next_multiple_of(8));
        let mut fresh = |_| Ok(place);
        let encoded = encode_header(&style, &messages, &space, Sizes::EIGHT, &mut fresh).unwrap();
        prop_assert_eq!(encoded.first.len() as u64, space.len);
        let all_fit = first_chunk_len(&style, &messages) <= space.len;
        prop_assert_eq!(encoded.continuation.is_none(), all_fit);
        let header = read(&encoded.first, encoded.continuation.as_ref());
        prop_assert_eq!((header.times, header.phase_change), (times, phase_change));
        prop_assert_eq!(header.space(), space);
        let known = |found: &&crate::Message| found.kind != kind::NIL && found.kind != 16;
        let mut found: Vec<_> =
            header.messages.iter().filter(known).map(|found| header.carry(found)).collect();
        found.sort_by_key(|found| found.kind);
        prop_assert_eq!(&found, &messages);
        // Libraries refuse blocks that have both kinds of unused bytes.
        let head = if tracked { 6 } else { 4 };
        let room = v2::room(&style, space.len).unwrap().0;
        let start = encoded.first.len() - 4 - usize::try_from(room).unwrap();
        let (nil, gap) = unused(&encoded.first[start..encoded.first.len() - 4], head);
        prop_assert!(gap < head && (gap == 0 || nil == 0), "{} {}", nil, gap);
        if let Some((_, block)) = &encoded.continuation {
            prop_assert_eq!(unused(&block[4..block.len() - 4], head), (0, 0));
            let (body, sum) = block.split_at(block.len() - 4);
            prop_assert_eq!(sum, lookup3(body, 0).to_le_bytes());
        }
    }
}
