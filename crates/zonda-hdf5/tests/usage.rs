//! The walk of all extents over files of the reference library, whole and damaged.

mod common;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use common::{Inflate, open};
use zonda_hdf5::FileAddr;
use zonda_hdf5::usage::{ExtentKind, FileUsage};

fn files() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut bytes = std::fs::read(&path).unwrap();
        if name.ends_with(".h5.gz") {
            let mut inflated = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut inflated).unwrap();
            bytes = inflated;
        } else if !name.ends_with(".h5") {
            continue;
        }
        files.insert(name, bytes);
    }
    files
}

fn walk(bytes: &[u8]) -> Option<FileUsage> {
    let file = open(bytes).ok()?.with_unfilter(Arc::new(Inflate));
    Some(FileUsage::of(&Arc::new(file)))
}

#[test]
fn sound_files_have_no_overlaps_and_all_bytes_are_accounted_for() {
    for (name, bytes) in files() {
        let usage = walk(&bytes).unwrap();
        assert!(usage.faults.is_empty(), "{name}: {:?}", usage.faults);
        assert!(usage.overlaps.is_empty(), "{name}: {:?}", usage.overlaps);
        let used = usage.bytes(|_| true);
        assert_eq!(used + usage.unaccounted_bytes(), bytes.len() as u64, "{name}");
        assert!(usage.bytes(|kind| kind == ExtentKind::ObjectHeader) > 0, "{name}");
        // What objects take is what extents of objects are.
        let of_objects = usage.extents.iter().filter(|extent| extent.owner.is_some());
        let sum: u64 = of_objects.map(|extent| extent.len).sum();
        let said = usage.objects.values().map(|of| of.metadata_bytes + of.data_bytes);
        assert_eq!(sum, said.sum::<u64>(), "{name}");
    }
}

#[test]
fn the_chunks_are_those_of_the_indexes() {
    for (name, bytes) in files().into_iter().filter(|(name, _)| name.starts_with("chunks-")) {
        let file = Arc::new(open(&bytes).unwrap());
        let usage = FileUsage::of(&file);
        let mut n_chunks = 0;
        for addr in usage.objects.keys() {
            let object = file.object(*addr).unwrap();
            let Ok(zonda_hdf5::message::DataLayout::Chunked(layout)) = object.layout(&file) else {
                continue;
            };
            let space = object.dataspace(&file).unwrap();
            let filtered = !object.filters(&file).unwrap().is_empty();
            let index = zonda_hdf5::ChunkIndex::new(
                Arc::clone(&file),
                &layout,
                &space.dims,
                &space.max_dims,
                filtered,
            );
            let n = index.unwrap().n_chunks().unwrap();
            assert_eq!(usage.objects[addr].n_chunks, n, "{name} {addr:?}");
            n_chunks += n;
        }
        assert!(n_chunks > 10, "{name}: {n_chunks}");
    }
}

#[test]
fn damage_is_told_of_and_ends_nothing() {
    let mut n_faults = 0;
    for (name, whole) in files() {
        // Every so many bytes.
        let step = whole.len().div_ceil(400).max(1);
        for at in (0..whole.len()).step_by(step) {
            for value in [0xff, whole[at] ^ 1] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let Some(usage) = walk(&bytes) else { continue };
                n_faults += usize::from(!usage.faults.is_empty());
                assert!(usage.extents.len() <= bytes.len(), "{name} at {at}");
                let used = usage.extents.iter().map(|extent| extent.at).max();
                assert!(used.is_some() && usage.unaccounted_bytes() <= usage.file_bytes);
            }
        }
    }
    assert!(n_faults > 100, "{n_faults}");
}

#[test]
fn a_root_that_is_nowhere_is_a_fault() {
    let mut bytes = files().remove("links.h5").unwrap();
    let len = bytes.len();
    bytes.truncate(len / 2);
    // The superblock says that there is more.
    assert!(walk(&bytes).is_none());
    let usage = FileUsage::default();
    assert!(usage.objects.get(&FileAddr(0)).is_none() && usage.gaps().next().is_none());
}
