use super::super::tests::{NONE, header, open, superblock};
use super::*;
use crate::checksum::lookup3;
use crate::testing::{StructureBytes, storage};

/// The body of a message of free space: pages of 4 KiB, kept or not.
fn file_space(kept: bool) -> Vec<u8> {
    let body = StructureBytes::default().bytes(&[1, 1, u8::from(kept)]).u64(1).u64(4096).u16(10);
    let managers = (0..12).map(|i| if i == 3 { NONE } else { 1000 + i });
    match kept {
        true => managers.fold(body.u64(2048), StructureBytes::u64).bytes,
        false => body.u64(NONE).bytes,
    }
}

/// An image of one entry, the 8 bytes "metadata", and the message about it.
fn image(at: u64, target: u64) -> (StructureBytes, Vec<u8>) {
    let image = StructureBytes::default().bytes(b"MDCI\0\0").u64(18 + 38 + 4).u32(1);
    let image = image.bytes(&[5, 0, 0, 0]).bytes(&[0; 10]).u64(target).u64(8);
    let image = image.bytes(b"metadata").checksum();
    let body = StructureBytes::default().bytes(&[0]).u64(at).u64(image.bytes.len() as u64).bytes;
    (image, body)
}

/// A file of two blocks of an extension at 48 and 600, an image at 1024, and zeros to 4096.
fn bytes(first: StructureBytes, other: StructureBytes, image: StructureBytes) -> Vec<u8> {
    let start = superblock(2, 0, 0, 48, 4096, 48).then(first);
    start.pad_to(600).then(other).pad_to(1024).then(image).pad_to(4096).bytes
}

/// The same bytes with what an edit writes.
fn written(bytes: &[u8], edit: &ExtensionEdit) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (addr, new) in edit.entries.iter().chain(&edit.switches) {
        let at = usize::try_from(addr.0).unwrap();
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn nothing_to_say() {
    let space = file_space(false);
    let extension = header(&[(0x17, 0x14, &space)]);
    let file =
        open(&bytes(extension, StructureBytes::default(), StructureBytes::default())).unwrap();
    assert_eq!(file.edit_extension().unwrap(), None);
    let file = open(&superblock(2, 0, 0, NONE, 48, 48).bytes).unwrap();
    assert_eq!(file.edit_extension().unwrap(), None);
}

#[test]
fn free_space_is_forgotten_and_metadata_go_to_their_places() {
    // What is known of free space in the first block, the image in the other one, and the other way
    // round; behind them what stays.
    let (image, about_image) = image(1024, 3000);
    let space = file_space(true);
    let k = (0x13, 0, [0, 9, 0, 8, 0, 7, 0].as_slice());
    let space = (0x17, 0x14, space.as_slice());
    let about_image = (0x18, 0x84, about_image.as_slice());
    for (in_first, in_other) in [(space, about_image), (about_image, space)] {
        let other = StructureBytes::default().bytes(b"OCHK");
        let block = header(&[in_other, k]).bytes;
        // Without the prefix and the checksum of a header.
        let other = other.bytes(&block[8..block.len() - 4]).checksum();
        let len = other.bytes.len() as u64;
        let reference = StructureBytes::default().u64(600).u64(len).bytes;
        let first = header(&[in_first, (0x10, 0, &reference), (0x66, 0x10, b"unknown")]);
        let before = bytes(first.clone(), other, image.clone());
        let file = open(&before).unwrap();
        assert!(file.has_cache_image() && file.file_space_info().unwrap().persistent);
        let edit = file.edit_extension().unwrap().unwrap();
        assert_eq!(edit.entries, [(FileAddr(3000), b"metadata".to_vec())]);
        assert_eq!(edit.freed, [(FileAddr(1024), image.bytes.len() as u64)]);
        let lens: Vec<_> = edit.switches.iter().map(|(at, bytes)| (at.0, bytes.len())).collect();
        assert_eq!(lens, [(48, first.bytes.len()), (600, usize::try_from(len).unwrap())]);

        let after = open(&written(&before, &edit)).unwrap();
        let info = after.file_space_info().unwrap();
        assert_eq!(info, &file.file_space_info().unwrap().without_managers());
        assert!(info.persistent && !after.has_cache_image());
        assert_eq!(after.superblock().chunk_k, 9);
        assert_eq!(after.read("test", FileAddr(3000), 8).unwrap(), b"metadata");
        let extension = ObjectHeader::read(&after, FileAddr(48)).unwrap();
        assert_eq!(extension.find(kind::FILE_SPACE_INFO).unwrap().flags, 0x14);
        let unknown = extension.find(0x66).unwrap();
        assert_eq!((extension.body(unknown), unknown.flags), (b"unknown".as_slice(), 0x30));
        assert_eq!(extension.find(kind::CACHE_IMAGE), None);
    }
}

#[test]
fn the_image_covers_nothing_when_it_was_written() {
    let (image, about_image) = image(1024, 3000);
    let extension = header(&[(0x18, 0x84, &about_image)]);
    let before = bytes(extension, StructureBytes::default(), image);
    let storage = storage(&before);
    let file = File::open(storage.clone()).unwrap();
    let edit = file.edit_extension().unwrap().unwrap();
    // Free space behind the length of all messages, which takes one byte now.
    let [(addr, block)] = edit.switches.as_slice() else { panic!("{edit:?}") };
    assert_eq!((addr.0, &block[5..11]), (48, [0, 22, 0, 18, 0, 0].as_slice()));
    let sum = lookup3(&block[..block.len() - 4], 0).to_le_bytes();
    assert_eq!(block[block.len() - 4..], sum);
    storage.write_at(0, &written(&before, &edit)).unwrap();
    file.extension_edited();
    assert!(!file.has_cache_image());
    assert_eq!(file.edit_extension().unwrap(), None);
    storage.write_at(3000, b"new data").unwrap();
    assert_eq!(file.read("test", FileAddr(3000), 8).unwrap(), b"new data");
}
