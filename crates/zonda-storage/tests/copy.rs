//! Copies from file to file: by the kernel, and through memory where places differ by parts of pages.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use zonda_storage::backend::File;
use zonda_storage::{Create, Storage, SyncLevel};

const LEN: usize = 5 << 20;
/// A hole between data.
const HOLE: std::ops::Range<usize> = 1 << 20..4 << 20;

fn source(path: &Path) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..LEN).map(|i| (i * i / 7 % 251) as u8 | 1).collect();
    bytes[HOLE].fill(0);
    let file = File::open(path, true, Create::Exclusive, SyncLevel::None).unwrap();
    file.write_at(0, &bytes[..HOLE.start]).unwrap();
    file.write_at(HOLE.end as u64, &bytes[HOLE.end..]).unwrap();
    bytes
}

#[test]
fn a_copy_has_the_bytes_and_the_holes() {
    for folder in [Path::new("/dev/shm"), &std::env::temp_dir()] {
        if !folder.is_dir() {
            eprintln!("skipped: {} is not there", folder.display());
            continue;
        }
        let folder = tempfile::tempdir_in(folder).unwrap();
        let old = folder.path().join("old");
        let bytes = source(&old);
        let from = File::open_read(&old).unwrap();
        for (number, (at, from_at, len)) in [
            (0, 0, LEN),
            (4096, 0, LEN),
            (100, 0, LEN),
            (0, 100, LEN - 100),
            (5, 4099, LEN - 5000),
            (1, 0, 1),
            (7, HOLE.start + 3, 9),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(number.to_string());
            let to = File::open(&path, true, Create::Exclusive, SyncLevel::None).unwrap();
            let done = to.copy_from(at as u64, &from, from_at as u64, len as u64);
            let done = usize::try_from(done).unwrap();
            // Where the kernel copies nothing from file to file, the caller does all.
            assert!(done == len || done == 0 && at % 4096 == from_at % 4096, "{at} {done}");
            if done == 0 {
                continue;
            }
            let mut found = vec![9; at + len];
            let got = to.read_at(0, &mut found).unwrap();
            found[got..].fill(0);
            assert!(found[..at].iter().all(|byte| *byte == 0));
            assert!(found[at..] == bytes[from_at..][..len], "other bytes from {from_at} to {at}");
            let blocks = fs::metadata(&path).unwrap().blocks() * 512;
            let most = len.saturating_sub(HOLE.len()) + (1 << 20);
            assert!(blocks < most as u64, "{blocks} bytes for {len}: no hole");
        }
    }
}

#[test]
fn what_was_cut_off_is_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    source(&old);
    let from = File::open_read(&old).unwrap();
    let new = folder.path().join("new");
    let to = File::open(&new, true, Create::Exclusive, SyncLevel::None).unwrap();
    // More than there is: zeros behind the end are as good as a hole, and no byte is written for them.
    let done = to.copy_from(100, &from, 0, 2 * LEN as u64);
    assert!(done >= LEN as u64);
    assert!(fs::metadata(&new).unwrap().len() <= LEN as u64 + 100);
    // A file that may not be written.
    assert_eq!(from.copy_from(100, &to, 0, 1000), 0);
}

#[test]
fn who_has_a_file_open_and_holes_are_known() {
    for folder in [Path::new("/dev/shm"), &std::env::temp_dir()] {
        if !folder.is_dir() {
            eprintln!("skipped: {} is not there", folder.display());
            continue;
        }
        let folder = tempfile::tempdir_in(folder).unwrap();
        let path = folder.path().join("x");
        let file = File::open(&path, true, Create::Exclusive, SyncLevel::None).unwrap();
        file.write_at(0, &[1; 100_000]).unwrap();
        file.sync().unwrap();
        assert!(file.is_without_holes());
        assert!(file.is_opened_once() && file.is_opened_once());
        let reader = File::open_read(&path).unwrap();
        assert!(!file.is_opened_once());
        drop(reader);
        assert!(file.is_opened_once());
        file.write_at(LEN as u64, &[1]).unwrap();
        assert!(!file.is_without_holes());
    }
}
