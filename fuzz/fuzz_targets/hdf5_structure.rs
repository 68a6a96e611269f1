//! Any bytes as one structure of a file whose superblock is sound: the first byte picks which, the
//! rest of the file is the input. Checksums are not verified under the fuzzer.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_hdf5::btree_v1::{self, NodeType};
use zonda_hdf5::btree_v2::BtreeV2;
use zonda_hdf5::fractal_heap::FractalHeap;
use zonda_hdf5::local_heap::LocalHeap;
use zonda_hdf5::message::{ChunkIndexKind, ChunkedLayout};
use zonda_hdf5::selection::Selection;
use zonda_hdf5::sohm::SharedMessages;
use zonda_hdf5::virtual_dataset::VirtualMapping;
use zonda_hdf5::{ChunkIndex, Collection, File, FileAddr, Sizes, Superblock};
use zonda_storage::backend::Memory;

/// Where the structure is: behind the superblock.
const AT: FileAddr = FileAddr(48);

/// A file of version 2 whose root object, which nothing reads here, would be the structure.
fn file(body: &[u8]) -> Option<File> {
    let mut bytes = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
    bytes.extend_from_slice(&0u64.to_le_bytes());
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    bytes.extend_from_slice(&(AT.0 + body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&AT.0.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(body);
    File::open(Arc::new(Memory::from_slice(&bytes))).ok()
}

fn index(file: File, kind: ChunkIndexKind, filtered: bool, wide: bool, rank: usize) {
    let layout = ChunkedLayout {
        chunk_dims: vec![3; rank],
        elem_size: 4,
        index: kind,
        addr: Some(AT),
        partial_edge_unfiltered: false,
        wide_filtered_sizes: wide,
    };
    let dims = vec![100; rank];
    let mut max_dims = dims.clone();
    max_dims[0] = u64::MAX;
    if matches!(kind, ChunkIndexKind::FixedArray { .. }) {
        max_dims[0] = 100;
    }
    let Ok(index) = ChunkIndex::new(Arc::new(file), &layout, &dims, &max_dims, filtered) else {
        return;
    };
    let (first, last) = (vec![1; rank], vec![30; rank]);
    let mut n = 0u64;
    let _ = index.locate(&first, &last, &mut |coords, _| {
        assert!(coords.iter().all(|c| (1..=30).contains(c)));
        n += 1;
    });
    assert!(n <= 30u64.pow(rank as u32));
    let _ = index.for_each(&mut |_, _| {});
}

fuzz_target!(|bytes: &[u8]| {
    let [which, how, body @ ..] = bytes else { return };
    let Some(file) = file(body) else { return };
    let (filtered, wide, rank) = (how & 1 != 0, how & 2 != 0, usize::from(how >> 2 & 1) + 1);
    match which % 20 {
        0 => {
            let _ = Superblock::decode(body, 0);
        }
        1 => {
            let _ = file.object(AT);
        }
        2 => {
            let Ok(heap) = LocalHeap::read(&file, AT) else { return };
            for offset in 0..64 {
                let _ = heap.name(offset);
            }
        }
        3 => {
            let Ok(collection) = Collection::decode(body.into(), 0, Sizes::EIGHT) else { return };
            for index in collection.indexes() {
                assert!(collection.get(index).is_some());
            }
        }
        4 => {
            let Ok(heap) = FractalHeap::open(&file, AT) else { return };
            let mut id = vec![0; heap.id_len()];
            for kind in [0u8, 0x10, 0x20] {
                for offset in [0u8, 1, 22, 200, 255] {
                    for len in [0u8, 1, 30, 255] {
                        id.fill(0);
                        for (place, value) in id.iter_mut().zip([kind, offset, 0]) {
                            *place = value;
                        }
                        if let Some(last) = id.last_mut() {
                            *last = len;
                        }
                        let _ = heap.get(&file, &id);
                    }
                }
            }
        }
        5 => {
            let kind = how % 12;
            let Ok(tree) = BtreeV2::open(&file, AT, kind) else { return };
            let _ = tree.walk(&file, &mut |_| Ok(true));
        }
        6 => {
            let _ = btree_v1::read_root(&file, AT, NodeType::Group, 8);
            let _ = btree_v1::walk(&file, AT, NodeType::Group, 8, &mut |_, _| Ok(true));
        }
        7 => index(file, ChunkIndexKind::BtreeV1, filtered, wide, rank),
        8 => index(
            file,
            ChunkIndexKind::FixedArray { page_bits: how >> 3 & 15 },
            filtered,
            wide,
            rank,
        ),
        9 => {
            let kind = ChunkIndexKind::ExtensibleArray {
                max_bits: 32,
                index_elems: 4,
                min_pointers: 4,
                min_elems: 16,
                page_bits: 10,
            };
            index(file, kind, filtered, wide, rank);
        }
        10 => {
            let kind = ChunkIndexKind::BtreeV2 { node_size: 512, split: 100, merge: 40 };
            index(file, kind, filtered, wide, rank);
        }
        11 => index(file, ChunkIndexKind::Implicit, false, wide, rank),
        12 => {
            let _ = Selection::decode(&mut file.reader("selection", AT, body));
        }
        13 => {
            let _ = VirtualMapping::decode(file.reader("virtual dataset", AT, body));
        }
        14 => {
            let Ok(messages) = SharedMessages::read(&file, AT, how % 8 + 1) else { return };
            for index in messages.indexes() {
                let _ = index.records(&file);
            }
        }
        _ => look(&file),
    }
});

/// The structure as a group: links and attributes of all kinds of storage.
fn look(file: &File) {
    let Ok(object) = file.object(AT) else { return };
    if let Ok(links) = object.links(file) {
        for link in &links {
            let _ = object.link(file, &link.name);
        }
    }
    if let Ok(attributes) = object.attributes(file) {
        for i in 0..attributes.len() {
            let _ = attributes.decode(i, file);
            let _ = object.attribute(file, attributes.name(i));
        }
    }
    let _ = object.datatype(file);
    let _ = object.dataspace(file);
    let _ = object.layout(file);
    let _ = object.fill_value(file);
    let _ = object.filters(file);
    let _ = object.external_files(file);
}
