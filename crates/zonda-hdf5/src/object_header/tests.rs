use super::*;
use crate::testing::{StructureBytes, file};

/// Where headers are in these tests.
const AT: usize = 64;

fn message_v1(kind: u16, flags: u8, body: &[u8]) -> StructureBytes {
    assert_eq!(body.len() % 8, 0);
    let message = StructureBytes::default().u16(kind).u16(u16::try_from(body.len()).unwrap());
    message.bytes(&[flags, 0, 0, 0]).bytes(body)
}

fn header_v1(messages: &[StructureBytes]) -> StructureBytes {
    let body: Vec<u8> = messages.iter().flat_map(|message| message.bytes.clone()).collect();
    let count = u16::try_from(messages.len()).unwrap();
    let header = StructureBytes::default().bytes(&[1, 0]).u16(count).u32(3);
    header.u32(u32::try_from(body.len()).unwrap()).u32(0).bytes(&body)
}

fn message_v2(kind: u8, flags: u8, order: Option<u16>, body: &[u8]) -> StructureBytes {
    let message = StructureBytes::default().bytes(&[kind]).u16(u16::try_from(body.len()).unwrap());
    let message = message.bytes(&[flags]);
    match order {
        Some(order) => message.u16(order),
        None => message,
    }
    .bytes(body)
}

fn header_v2(flags: u8, fields: &[u8], messages: &[StructureBytes], gap: usize) -> StructureBytes {
    let mut body: Vec<u8> = messages.iter().flat_map(|message| message.bytes.clone()).collect();
    body.resize(body.len() + gap, 0);
    let header = StructureBytes::default().bytes(b"OHDR\x02").bytes(&[flags]).bytes(fields);
    let header = match flags & 3 {
        0 => header.bytes(&[u8::try_from(body.len()).unwrap()]),
        1 => header.u16(u16::try_from(body.len()).unwrap()),
        _ => header.u32(u32::try_from(body.len()).unwrap()),
    };
    header.bytes(&body).checksum()
}

fn continuation(addr: u64, len: u64) -> Vec<u8> {
    StructureBytes::default().u64(addr).u64(len).bytes
}

fn block_v2(messages: &[StructureBytes], gap: usize) -> StructureBytes {
    let block = messages
        .iter()
        .cloned()
        .fold(StructureBytes::default().bytes(b"OCHK"), StructureBytes::then);
    block.bytes(&vec![0; gap]).checksum()
}

fn read(bytes: StructureBytes) -> Result<ObjectHeader> {
    ObjectHeader::read(&file(&bytes.bytes), FileAddr(AT as u64))
}

#[test]
fn version_1_with_a_continuation() {
    let header = header_v1(&[
        message_v1(0x03, 0, b"datatype"),
        message_v1(0x10, 0, &continuation(256, 24)),
        message_v1(0x77, 0, b"whatever"),
    ]);
    let block = StructureBytes::default().then(message_v1(0x01, 1, b"dataspacedataspa"));
    let bytes = StructureBytes::new(AT).then(header).pad_to(256).then(block);
    let header = read(bytes).unwrap();
    assert_eq!((header.version, header.reference_count, header.messages.len()), (1, Some(3), 4));
    let kinds: Vec<u16> = header.messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [0x03, 0x10, 0x77, 0x01]);
    let space = header.find(kind::DATASPACE).unwrap();
    assert_eq!(header.body(space), b"dataspacedataspa");
    assert_eq!((space.at, space.flags, space.creation_order), (264, 1, None));
    let datatype = header.find(kind::DATATYPE).unwrap();
    assert_eq!((header.body(datatype), datatype.at), (b"datatype".as_slice(), AT as u64 + 24));
    assert_eq!(header.reader(Sizes::EIGHT, datatype).rest(), b"datatype");
}

#[test]
fn version_2_with_all_optional_fields() {
    let fields = StructureBytes::default().u32(1).u32(2).u32(3).u32(4).u16(8).u16(6).bytes;
    let messages = [
        message_v2(0x0c, 0, Some(7), b"one"),
        message_v2(0x10, 0, Some(0), &continuation(256, 4 + 6 + 3 + 5 + 4)),
    ];
    let header = header_v2(0x3d, &fields, &messages, 3);
    let block = block_v2(&[message_v2(0x0c, 4, Some(8), b"two")], 5);
    let bytes = StructureBytes::new(AT).then(header).pad_to(256).then(block);
    let header = read(bytes).unwrap();
    assert_eq!((header.times, header.phase_change), (Some([1, 2, 3, 4]), Some((8, 6))));
    assert!(header.attribute_order_tracked() && header.attribute_order_indexed());
    let attributes: Vec<_> = header
        .all(kind::ATTRIBUTE)
        .map(|message| (message.creation_order, header.body(message)))
        .collect();
    assert_eq!(attributes, [(Some(7), b"one".as_slice()), (Some(8), b"two".as_slice())]);
    assert_eq!(header.messages.len(), 3, "gaps are no messages");
}

#[test]
fn long_headers_take_a_second_read() {
    let body = vec![7; 3000];
    let header = header_v2(1, &[], &[message_v2(0x0c, 0, None, &body)], 0);
    let header = read(StructureBytes::new(AT).then(header)).unwrap();
    assert_eq!(header.body(&header.messages[0]), body);
}

#[test]
fn checksums_are_verified() {
    let good = StructureBytes::new(AT)
        .then(header_v2(0, &[], &[message_v2(0x10, 0, None, &continuation(256, 15))], 0))
        .pad_to(256)
        .then(block_v2(&[message_v2(0x0c, 0, None, b"one")], 0));
    assert!(read(good.clone()).is_ok());
    for (at, structure) in [(AT + 12, NAME), (256 + 9, CONTINUATION_NAME)] {
        let mut bad = good.clone();
        bad.bytes[at] ^= 1;
        let error = read(bad).unwrap_err();
        assert!(matches!(error, HdfError::BadChecksum { structure: s, .. } if s == structure));
    }
}

#[test]
fn continuations_that_lead_back() {
    let to_itself = header_v1(&[message_v1(0x10, 0, &continuation(AT as u64, 40))]);
    let error = read(StructureBytes::new(AT).then(to_itself)).unwrap_err();
    assert!(matches!(error, HdfError::Cycle { at: 64, .. }));
    let to_block = header_v1(&[message_v1(0x10, 0, &continuation(256, 24))]);
    let block = message_v1(0x10, 0, &continuation(256, 24));
    let error = read(StructureBytes::new(AT).then(to_block).pad_to(256).then(block)).unwrap_err();
    assert!(matches!(error, HdfError::Cycle { at: 256, .. }));
}

#[test]
fn blocks_over_each_other_are_bounded() {
    // Each block begins 24 bytes later than the one before and ends with the file: together they
    // would have the square of its bytes.
    let mut bytes =
        StructureBytes::new(AT).then(header_v1(&[message_v1(0x10, 0, &continuation(256, 24))]));
    bytes = bytes.pad_to(256);
    let end = 256 + 24 * 4000u64;
    for index in 1..4000 {
        let at = 256 + 24 * index;
        bytes = bytes.then(message_v1(0x10, 0, &continuation(at, end - at)));
    }
    bytes.bytes[64 + 16 + 8 + 8..][..8].copy_from_slice(&(end - 256).to_le_bytes());
    let bytes = bytes.pad_to(usize::try_from(end).unwrap());
    let error = read(bytes).unwrap_err();
    assert!(matches!(error, HdfError::Limit { what: "bytes of all blocks", .. }), "{error}");
}

#[test]
fn hostile_blocks_and_messages() {
    let v1 =
        |body: &[u8]| read(StructureBytes::new(AT).then(header_v1(&[message_v1(0x10, 0, body)])));
    assert!(matches!(v1(&continuation(1 << 40, 24)), Err(HdfError::OutOfFile { .. })));
    assert!(matches!(v1(&continuation(AT as u64 + 8, u64::MAX)), Err(HdfError::OutOfFile { .. })));
    assert!(matches!(v1(&continuation(u64::MAX, 24)), Err(HdfError::Missing { .. })));
    assert!(matches!(v1(b"12345678"), Err(HdfError::Truncated { .. })));
    let short = |len| {
        let header = header_v2(0, &[], &[message_v2(0x10, 0, None, &continuation(256, len))], 0);
        read(StructureBytes::new(AT).then(header).pad_to(256).bytes(b"OCHK\0\0\0\0"))
    };
    assert!(short(0).is_err() && short(4).is_err() && short(7).is_err());
    let mut long = header_v1(&[message_v1(0x03, 0, b"datatype")]);
    long.bytes[18] = 9;
    assert!(matches!(read(StructureBytes::new(AT).then(long)), Err(HdfError::Truncated { .. })));
    let mut cut = StructureBytes::new(AT).then(header_v1(&[message_v1(0x03, 0, b"datatype")]));
    cut.bytes.truncate(AT + 30);
    assert!(matches!(read(cut), Err(HdfError::OutOfFile { .. })));
    let huge = StructureBytes::default().bytes(b"OHDR\x02\x03").u64(u64::MAX - 20);
    assert!(matches!(read(StructureBytes::new(AT).then(huge)), Err(HdfError::OutOfFile { .. })));
}

#[test]
fn unknown_messages_pass_unless_they_object() {
    let with = |flags| {
        let message = message_v2(0x77, flags, None, b"new");
        read(StructureBytes::new(AT).then(header_v2(0, &[], &[message], 0)))
    };
    assert!(with(0).is_ok());
    let header = with(0x08).unwrap();
    assert!(header.messages[0].fails_writers_if_unknown());
    assert!(matches!(with(0x80), Err(HdfError::Unsupported { .. })));
    let known = message_v2(0x18, 0x84, None, b"image");
    assert!(read(StructureBytes::new(AT).then(header_v2(0, &[], &[known], 0))).is_ok());
}

#[test]
fn messages_are_compact() {
    assert!(size_of::<Message>() <= 24);
}

#[test]
fn attributes_without_a_creation_order_stay_in_order_over_two_blocks() {
    let message = |kind, len, byte| {
        let creation_order = Some(u16::from(byte));
        NewMessage { kind, flags: 0, creation_order, body: vec![byte; len].into() }
    };
    // Lengths of which the second fits no first block of 128 bytes, and the others do.
    let messages = [
        message(kind::ATTRIBUTE, 20, 1),
        message(kind::ATTRIBUTE, 200, 2),
        message(kind::ATTRIBUTE, 20, 3),
        message(kind::FILL_VALUE, 20, 4),
    ];
    let space = HeaderSpace { addr: FileAddr(AT as u64), len: 128 };
    let sizes = Sizes { offset: 8, length: 8 };
    let order = |flags| {
        let style = HeaderStyle { flags, ..HeaderStyle::default() };
        let place = &mut |_| Ok(FileAddr(256));
        let header = encode_header(&style, &messages, &space, sizes, place).unwrap();
        let (at, rest) = header.continuation.unwrap();
        assert_eq!(at, FileAddr(256));
        let whole = StructureBytes::new(AT).bytes(&header.first).pad_to(256).bytes(&rest);
        let read = read(whole).unwrap();
        let known =
            read.messages.iter().filter(|m| [kind::ATTRIBUTE, kind::FILL_VALUE].contains(&m.kind));
        known.map(|message| read.body(message)[0]).collect::<Vec<_>>()
    };
    assert_eq!(order(0), [1, 4, 2, 3], "another message may still go ahead");
    assert_eq!(order(ATTRIBUTE_ORDER_TRACKED), [1, 3, 4, 2]);
}
