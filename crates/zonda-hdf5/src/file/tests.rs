use std::time::Duration;

use super::*;
use crate::ObjectHeader;
use crate::message::SymbolTableMessage;
use crate::testing::{StructureBytes, hex, storage};

/// A version 2 or 3 superblock for a file of `eof` bytes.
pub(super) fn superblock(
    version: u8,
    flags: u8,
    base: u64,
    extension: u64,
    eof: u64,
    root: u64,
) -> StructureBytes {
    let start = StructureBytes::default().bytes(&SIGNATURE).bytes(&[version, 8, 8, flags]);
    start.u64(base).u64(extension).u64(eof).u64(root).checksum()
}

pub(super) const NONE: u64 = u64::MAX;

/// An object header with messages of (type, flags, body).
pub(super) fn header(messages: &[(u8, u8, &[u8])]) -> StructureBytes {
    let mut body = StructureBytes::default();
    for (kind, flags, bytes) in messages {
        let len = u16::try_from(bytes.len()).unwrap();
        body = body.bytes(&[*kind]).u16(len).bytes(&[*flags]).bytes(bytes);
    }
    let len = u16::try_from(body.bytes.len()).unwrap();
    StructureBytes::default().bytes(b"OHDR\x02\x01").u16(len).then(body).checksum()
}

pub(super) fn open(bytes: &[u8]) -> Result<File> {
    File::open(storage(bytes))
}

#[test]
fn versions_2_and_3() {
    let file = open(&superblock(2, 1, 0, NONE, 48, 48).bytes).unwrap();
    assert_eq!((file.root(), file.superblock().version), (FileAddr(48), 2));
    assert_eq!((file.superblock().flags, file.superblock().marked_open_for_writing()), (1, false));
    assert_eq!(file.superblock().chunk_k, 32);
    let file = open(&superblock(3, 5, 0, NONE, 48, 48).bytes).unwrap();
    assert!(file.superblock().marked_open_for_writing() && file.superblock().marked_swmr());
    let mut flipped = superblock(2, 0, 0, NONE, 48, 48);
    flipped.bytes[30] ^= 1;
    assert!(matches!(open(&flipped.bytes), Err(HdfError::BadChecksum { at: 0, .. })));
}

fn old_superblock(version: u8, driver_info: u64, eof: u64) -> StructureBytes {
    let start = StructureBytes::default().bytes(&SIGNATURE).bytes(&[version, 0, 0, 0, 0, 8, 8, 0]);
    let start = start.u16(5).u16(17).u32(0);
    let start = if version == 1 { start.u16(33).u16(0) } else { start };
    let start = start.u64(0).u64(NONE).u64(eof).u64(driver_info);
    start.u64(0).u64(96).u32(1).u32(0).u64(136).u64(680)
}

#[test]
fn versions_0_and_1() {
    let file = open(&old_superblock(0, NONE, 96).bytes).unwrap();
    let superblock = file.superblock();
    assert_eq!((superblock.root, superblock.eof), (FileAddr(96), 96));
    assert_eq!((superblock.group_leaf_k, superblock.group_internal_k), (5, 17));
    assert_eq!(superblock.chunk_k, 32);
    assert_eq!(open(&old_superblock(1, NONE, 100).bytes).unwrap().superblock().chunk_k, 33);
    // The copy of the root group's symbol table, which is there already.
    let table = SymbolTableMessage { btree: FileAddr(136), heap: FileAddr(680) };
    for version in [0, 1] {
        let bytes = old_superblock(version, NONE, 100).bytes;
        let superblock = open(&[bytes.as_slice(), &[0; 8]].concat()).unwrap().superblock().clone();
        let (at, cache) = superblock.encode_root_cache(&table).unwrap().unwrap();
        let at = usize::try_from(at).unwrap();
        assert_eq!((at + 24, &*cache), (bytes.len(), &bytes[at..]));
    }
    assert_eq!(Superblock::new(0).encode_root_cache(&table).unwrap(), None);
    let mut odd = old_superblock(0, NONE, 96);
    odd.bytes[13] = 3;
    assert!(matches!(open(&odd.bytes), Err(HdfError::BadValue { .. })));
    odd.bytes[13] = 16;
    assert!(matches!(open(&odd.bytes), Err(HdfError::Unsupported { .. })));
    let four = StructureBytes::default().bytes(&SIGNATURE).bytes(&[0, 0, 0, 0, 0, 4, 4, 0]);
    let four = four.u16(4).u16(16).u32(0).u32(0).u32(u32::MAX).u32(64).u32(u32::MAX);
    let four = four.u32(0).u32(96).u64(0).u64(0).u64(0).pad_to(80);
    let file = open(&four.bytes).unwrap();
    assert_eq!((file.root(), file.sizes()), (FileAddr(96), Sizes { offset: 4, length: 4 }));
}

#[test]
fn split_files_are_refused() {
    for id in [b"NCSAfami", b"NCSAmult"] {
        let bytes = old_superblock(0, 96, 120).bytes(&[0; 4]).u32(8).bytes(id).u64(0);
        assert!(matches!(open(&bytes.bytes), Err(HdfError::Unsupported { at: 96.., .. })));
        let message = StructureBytes::default().bytes(&[0]).bytes(id).u16(0).bytes;
        let bytes = superblock(2, 0, 0, 48, 48, 48).then(header(&[(0x14, 0, &message)]));
        assert!(matches!(open(&bytes.bytes), Err(HdfError::Unsupported { .. })));
    }
    let bytes = old_superblock(0, 96, 120).bytes(&[0; 4]).u32(8).bytes(b"whatever").u64(0);
    assert!(open(&bytes.bytes).is_ok());
}

#[test]
fn user_blocks_and_truncation() {
    let root = header(&[]);
    for base in [512usize, 1024, 2048, 8192] {
        let eof = (base + 48 + root.bytes.len()) as u64;
        let start = superblock(2, 0, base as u64, NONE, eof, 48);
        let bytes = StructureBytes::new(base).then(start).then(root.clone()).bytes;
        let file = open(&bytes).unwrap();
        assert_eq!(file.superblock().base, base as u64);
        assert_eq!(ObjectHeader::read(&file, file.root()).unwrap().messages.len(), 0);
        let error = open(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(
            matches!(error, HdfError::FileTruncated { eof: e, len } if e == eof && len == e - 1)
        );
        assert!(open(&[&bytes[..], &[0; 100]].concat()).is_ok(), "more is allowed");
        // The user block was cut off, or another one was put before.
        let file = open(&bytes[base..]).unwrap();
        assert_eq!((file.superblock().base, file.superblock().eof), (0, eof - base as u64));
        let moved = [&vec![0; 512 * 512 - base][..], &bytes].concat();
        let file = open(&moved).unwrap();
        assert_eq!(file.superblock().eof, moved.len() as u64);
        assert_eq!(ObjectHeader::read(&file, file.root()).unwrap().messages.len(), 0);
    }
}

#[test]
fn not_hdf5() {
    assert!(matches!(open(b""), Err(HdfError::NotHdf5)));
    assert!(matches!(open(&SIGNATURE[..7]), Err(HdfError::NotHdf5)));
    assert!(matches!(open(&SIGNATURE), Err(HdfError::Truncated { .. })));
    assert!(matches!(open(&[0; 100_000]), Err(HdfError::NotHdf5)));
    let inside = StructureBytes::new(600).then(superblock(2, 0, 0, NONE, 48, 48)).bytes;
    assert!(matches!(open(&inside), Err(HdfError::NotHdf5)), "not where it may be");
    let version = StructureBytes::default().bytes(&SIGNATURE).bytes(&[4]).pad_to(100).bytes;
    assert!(matches!(open(&version), Err(HdfError::BadVersion { version: 4, .. })));
}

#[test]
fn the_extension() {
    let space =
        StructureBytes::default().bytes(&[1, 1, 0]).u64(1).u64(4096).u16(10).u64(NONE).bytes;
    let table = StructureBytes::default().bytes(&[0]).u64(1000).bytes(&[2]).bytes;
    let extension = header(&[
        (0x13, 0, &[0, 9, 0, 8, 0, 7, 0]),
        (0x0f, 0, &table),
        (0x17, 0, &space),
        (0x66, 0, b"unknown"),
    ]);
    let eof = 48 + extension.bytes.len() as u64;
    let file = open(&superblock(2, 0, 0, 48, eof, 48).then(extension).bytes).unwrap();
    let superblock = file.superblock();
    assert_eq!(
        (superblock.chunk_k, superblock.group_internal_k, superblock.group_leaf_k),
        (9, 8, 7)
    );
    assert_eq!(file.shared_message_table().unwrap().addr, FileAddr(1000));
    assert_eq!(file.file_space_info().unwrap().page_size, 4096);
    assert!(!file.has_cache_image());
}

#[test]
fn a_cache_image_covers_all_reads() {
    let root = header(&[(0x16, 0, &[0, 9, 0, 0, 0])]);
    let (image_at, root_at) = (4096u64, 3000u64);
    let len = 18 + 14 + 8 + 8 + root.bytes.len() as u64 + 4;
    let image = StructureBytes::default().bytes(b"MDCI\0\0").u64(len).u32(1);
    let image = image.bytes(&[5, 0, 0, 0]).bytes(&[0; 10]).u64(root_at);
    let image = image.u64(root.bytes.len() as u64).then(root).checksum();
    let len = image.bytes.len() as u64;
    let message = StructureBytes::default().bytes(&[0]).u64(image_at).u64(len).bytes;
    let eof = image_at + len;
    let start = superblock(2, 0, 0, 48, eof, root_at).then(header(&[(0x18, 0x84, &message)]));
    let bytes = start.pad_to(4096).then(image).bytes;
    let file = open(&bytes).unwrap();
    assert!(file.has_cache_image());
    let object = file.object(file.root()).unwrap();
    assert_eq!(object.reference_count(&file).unwrap(), 9);
    let mut first = [0; 4];
    file.read_into("test", FileAddr(root_at), &mut first).unwrap();
    assert_eq!(&first, b"OHDR");
}

#[test]
fn marks_of_writers_that_died_go_with_the_first_write() {
    for (version, flags, left) in [(3, 1, 0), (3, 5, 0), (3, 4, 0), (3, 2, 2), (2, 1, 0)] {
        let storage = storage(&superblock(version, flags, 0, NONE, 48, 48).bytes);
        let file = File::open(storage.clone()).unwrap();
        file.write_superblock(48).unwrap();
        let file = File::open(storage).unwrap();
        assert_eq!((file.superblock().flags, file.superblock().version), (left, version));
        assert!(!file.superblock().marked_open_for_writing() && !file.superblock().marked_swmr());
    }
}

#[test]
fn ranges_are_checked_before_memory_is_taken() {
    let file = open(&superblock(2, 0, 0, NONE, 48, 48).bytes).unwrap();
    assert!(matches!(file.read("x", FileAddr(0), u64::MAX), Err(HdfError::OutOfFile { .. })));
    assert!(matches!(file.read("x", FileAddr(u64::MAX), 1), Err(HdfError::OutOfFile { .. })));
    assert!(file.read("x", FileAddr(48), 1).is_err() && file.read("x", FileAddr(48), 0).is_ok());
    assert_eq!(file.read_up_to("x", FileAddr(40), 100).unwrap().len(), 8);
    assert!(file.read_up_to("x", FileAddr(48), 100).is_err());
}

#[test]
fn superblocks_written_as_libraries_do() {
    // netCDF-C 4.9.0 on HDF5 1.10.8; h5py 3.16 on HDF5 2.0 for a file of the latest version.
    let netcdf = "89484446 0d0a1a0a 02 08 08 00 0000000000000000 ffffffffffffffff
        ee33000000000000 3000000000000000 ce2db5db";
    let latest = "89484446 0d0a1a0a 03 08 08 00 0002000000000000 ffffffffffffffff
        b302000000000000 3000000000000000 7360cb88";
    for (bytes, base, eof) in [(hex(netcdf), 0, 13_294), (hex(latest), 512, 691)] {
        let superblock = Superblock::decode(&bytes, base).unwrap();
        assert_eq!((superblock.eof, superblock.encode().unwrap()), (eof, bytes.clone()));
        assert_eq!(superblock.encode_end(eof).unwrap(), (base, bytes));
    }
    let four = StructureBytes::default().bytes(&SIGNATURE).bytes(&[2, 4, 4, 0]);
    let four = four.u32(0).u32(u32::MAX).u32(48).u32(32).checksum().bytes;
    let superblock = Superblock::decode(&four, 0).unwrap();
    assert_eq!(superblock.encode().unwrap(), four);
    let error = superblock.encode_end(1 << 32).unwrap_err();
    assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    let old = Superblock::decode(&old_superblock(0, NONE, 96).bytes, 0).unwrap();
    assert!(matches!(old.encode(), Err(HdfError::Unsupported { .. })));
}

#[test]
fn of_old_superblocks_only_the_end_is_written() {
    for version in [0, 1] {
        // Where it was written, behind a user block that came later, without one that was there.
        for (base, stored) in [(0, 0), (512, 512), (1024, 0), (0, 2048)] {
            let mut old = old_superblock(version, NONE, stored + 200).bytes;
            let at = if version == 0 { 24 } else { 28 };
            old[at..at + 8].copy_from_slice(&stored.to_le_bytes());
            let superblock = Superblock::decode(&old, base).unwrap();
            assert_eq!(superblock.eof, base + 200);
            let (at, bytes) = superblock.encode_end(base + 4321).unwrap();
            let start = usize::try_from(at - base).unwrap();
            old[start..start + bytes.len()].copy_from_slice(&bytes);
            let again = Superblock::decode(&old, base).unwrap();
            assert_eq!(again, Superblock { eof: base + 4321, ..superblock });
        }
    }
}

#[test]
fn a_file_in_the_making() {
    for base in [0, 512, 4096] {
        let storage = storage(&[]);
        let file = File::create(Arc::clone(&storage), base).unwrap();
        assert_eq!((file.root(), file.len()), (FileAddr(48), base + 48));
        assert_eq!(storage.len().unwrap(), 0, "nothing is written");
        assert!(matches!(file.object(file.root()), Err(HdfError::OutOfFile { .. })));
        let root = header(&[]).bytes;
        let end = 48 + root.len() as u64;
        storage.write_at(base + 48, &root).unwrap();
        file.grown_to(end);
        file.grown_to(50);
        assert_eq!(file.len(), base + end);
        assert!(file.object(file.root()).is_ok());
        file.write_superblock(end).unwrap();
        let opened = File::open(storage).unwrap();
        assert_eq!((opened.superblock().version, opened.superblock().base), (2, base));
        assert_eq!((opened.superblock().eof, opened.root()), (base + end, FileAddr(48)));
        assert!(opened.object(opened.root()).is_ok());
    }
    for base in [1, 48, 256, 513, 1536] {
        let error = File::create(storage(&[]), base).unwrap_err();
        assert!(matches!(error, HdfError::BadValue { .. }), "{error}");
    }
}

#[test]
fn what_was_read_at_first_is_forgotten() {
    let mut bytes = superblock(2, 0, 0, NONE, 60, 48).bytes(b"old.........").bytes;
    bytes.resize(5000, 0);
    let file = open(&bytes).unwrap();
    let start = || file.read("test", FileAddr(48), 3).unwrap();
    assert_eq!(start(), b"old");
    file.storage().write_at(48, b"new").unwrap();
    file.forget();
    assert_eq!(start(), b"new");
    let collection = |text: &[u8; 8]| {
        let start = StructureBytes::default().bytes(b"GCOL\x01\0\0\0").u64(4096);
        start.u16(1).u16(0).u32(0).u64(8).bytes(text).pad_to(4096).bytes
    };
    file.storage().write_at(904, &collection(b"old text")).unwrap();
    let object = || file.global_heap_collection(FileAddr(904)).unwrap().get(1).unwrap().to_vec();
    assert_eq!(object(), b"old text");
    file.storage().write_at(904, &collection(b"new text")).unwrap();
    assert_eq!(object(), b"old text");
    file.forget();
    assert_eq!(object(), b"new text");
    // Writing the superblock is a change of what was read, too.
    let file = open(&bytes).unwrap();
    assert_eq!(file.superblock().eof, 60);
    file.write_superblock(5000).unwrap();
    let written = file.read("superblock", FileAddr(0), 48).unwrap();
    assert_eq!(Superblock::decode(&written, 0).unwrap().eof, 5000);
}

/// How long ago bytes were read counts only where the stamps of the file may not tell of changes.
#[test]
fn what_was_read_of_an_old_file_stays() {
    let path = std::env::temp_dir().join(format!("zonda-window-{}", std::process::id()));
    std::fs::write(&path, superblock(2, 0, 0, NONE, 48, 48).bytes).unwrap();
    let set_age = |seconds: u64| {
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).unwrap();
    };
    let storage = zonda_storage::backend::File::open_read(&path).unwrap();
    set_age(60);
    let (old, mut new) = (
        SuperblockWindow::read(&storage, 0).unwrap(),
        SuperblockWindow::read(&storage, 0).unwrap(),
    );
    new.is_settled = false;
    std::thread::sleep(2 * SUPERBLOCK_READ_LASTS);
    assert!(old.is_settled && !old.is_old(&storage) && new.is_old(&storage));
    std::fs::write(&path, b"changed").unwrap();
    assert!(old.is_old(&storage));
    assert!(!SuperblockWindow::read(&storage, 0).unwrap().is_settled);
    std::fs::remove_file(&path).unwrap();
}
