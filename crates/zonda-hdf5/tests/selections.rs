//! Selections, mappings of virtual datasets and references from random bytes; pieces of mappings
//! against pairing up elements one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use zonda_hdf5::checksum::lookup3;
use zonda_hdf5::message::ReferenceKind;
use zonda_hdf5::selection::{HyperslabBlocks, HyperslabDim};
use zonda_hdf5::virtual_dataset::{MappingRequest, Slab};
use zonda_hdf5::{File, Reader, Reference, Selection, Sizes, VirtualMapping, VirtualSource};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

/// Bytes that look like a selection at the beginning, so that some get far.
fn selection_bytes() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    (0u32..5, 0u32..5, prop::collection::vec(small, 0..120)).prop_map(|(kind, version, rest)| {
        [&kind.to_le_bytes()[..], &version.to_le_bytes(), &rest].concat()
    })
}

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new("test", bytes, 0, Sizes::EIGHT)
}

/// Anything that has been decoded can be asked everything.
fn use_selection(selection: &Selection) {
    let rank = selection.rank().unwrap_or(2);
    let dims = vec![5; rank];
    let _ = (selection.n_elems(&dims), selection.unlimited_dim());
    (0..rank).for_each(|dim| assert!(selection.end(dim).is_none_or(|end| end > 0)));
    let mut runs = 0;
    let told = selection.for_each_run(&dims, &mut |at, len| {
        assert!(at.iter().zip(&dims).all(|(at, dim)| at < dim));
        assert!(len >= 1 && at.last().is_none_or(|last| last + len <= 5));
        runs += 1;
        runs < 1000
    });
    told.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn selections_from_any_bytes(bytes in selection_bytes()) {
        if let Ok(selection) = Selection::decode(&mut reader(&bytes)) {
            use_selection(&selection);
        }
    }

    #[test]
    fn mappings_from_any_bytes(
        version in 0u8..3,
        n in 0u64..4,
        flags in 0u8..8,
        name in "[a%b.]{0,4}",
        selections in prop::collection::vec(selection_bytes(), 1..6),
        number in any::<u64>(),
    ) {
        let mut bytes = vec![version];
        bytes.extend(n.to_le_bytes());
        for pair in selections.chunks(2) {
            if version == 1 {
                bytes.push(flags);
            }
            bytes.extend([name.as_bytes(), b"\0d%%b\0"].concat());
            pair.iter().for_each(|selection| bytes.extend(selection));
        }
        bytes.extend(lookup3(&bytes, 0).to_le_bytes());
        let Ok(mapping) = VirtualMapping::decode(reader(&bytes)) else { return Ok(()) };
        for source in &mapping.sources {
            use_selection(&source.source);
            use_selection(&source.target);
            let _ = source.block(number);
            let rank = source.target.rank().unwrap_or(2);
            let other = source.source.rank().unwrap_or(2);
            let (start, count, stride) = (vec![1; rank], vec![3; rank], vec![2; rank]);
            let request = MappingRequest { start: &start, count: &count, stride: &stride };
            let _ = source.blocks(&request);
            let _ = source.extent(&vec![5; other], number);
            if rank <= 4 {
                let dims = (vec![9; rank], vec![5; other]);
                let _ = source.pieces(&dims.0, &dims.1, &request, &mut |_| Ok(()));
            }
        }
        let mut asked = 0;
        mapping.extent(&[5, 5], &mut |_| {
            asked += 1;
            (asked < 100).then(|| vec![5, 5])
        });
    }

    #[test]
    fn references_from_any_bytes(
        element in prop::collection::vec(any::<u8>(), 0..20),
        kind in 0u8..6,
        heap in any::<bool>(),
    ) {
        let mut element = element;
        let file = heap_file();
        if let Some(first) = element.first_mut() {
            *first = kind;
        }
        if heap && element.len() >= 18 {
            element[6..14].copy_from_slice(&48u64.to_le_bytes());
        }
        for kind in [
            ReferenceKind::Object,
            ReferenceKind::DatasetRegion,
            ReferenceKind::Object2,
            ReferenceKind::DatasetRegion2,
            ReferenceKind::Attribute,
        ] {
            let _ = Reference::read(&file, kind, &element);
        }
    }
}

/// A superblock and nothing else that is sound.
fn heap_file() -> File {
    let mut bytes = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
    bytes.extend([0; 8]);
    bytes.extend([0xff; 8]);
    bytes.extend(4096u64.to_le_bytes());
    bytes.extend(48u64.to_le_bytes());
    bytes.extend(lookup3(&bytes, 0).to_le_bytes());
    bytes.extend(b"GCOL\x01\0\0\0");
    bytes.extend(4048u64.to_le_bytes());
    bytes.resize(4096, 0);
    let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
    File::open(storage).unwrap()
}

/// A dimension of a hyperslab with `len` elements.
fn dim_of(len: u64, start: u64, block: u64, gap: u64) -> HyperslabDim {
    let block = (1..=block).rev().find(|block| len.is_multiple_of(*block)).unwrap_or(1);
    HyperslabDim { start, stride: block + gap, count: len / block, block }
}

fn slab() -> impl Strategy<Value = Selection> {
    let dim = (1u64..7, 0u64..3, 1u64..4, 0u64..3);
    prop::collection::vec(dim, 1..4).prop_map(|dims| {
        let dim = |(len, start, block, gap)| dim_of(len, start, block, gap);
        Selection::Hyperslab(dims.into_iter().map(dim).collect())
    })
}

fn points() -> impl Strategy<Value = Selection> {
    prop::collection::vec((0u64..9, 0u64..9), 1..20).prop_map(|coords| Selection::Points {
        rank: 2,
        coords: coords.into_iter().flat_map(|(a, b)| [a, b]).collect(),
    })
}

/// Boxes of a checkerboard, some of them left out: they do not overlap.
fn blocks() -> impl Strategy<Value = Selection> {
    let part = (any::<bool>(), 0u64..2, 0u64..2, 0u64..2, 0u64..2);
    prop::collection::vec(part, 9..10).prop_map(|parts| {
        let mut corners = Vec::new();
        for (i, (is_there, a, b, c, d)) in (0u64..).zip(parts) {
            if is_there || i == 4 {
                let (row, column) = (i / 3 * 3, i % 3 * 3);
                corners.extend([row + a, column + b, row + a.max(1) + c, column + b.max(1) + d]);
            }
        }
        Selection::Blocks(HyperslabBlocks::new(2, corners).unwrap())
    })
}

fn any_selection() -> impl Strategy<Value = Selection> {
    prop_oneof![3 => slab(), 1 => points(), 1 => blocks()]
}

/// Target and source: often of the same form, so that pieces are boxes.
fn mapping() -> impl Strategy<Value = (Selection, Selection)> {
    let more = (0u64..3, 1u64..4, 0u64..3);
    let alike = (slab(), prop::collection::vec(more, 3..4), any::<bool>()).prop_map(
        |(target, more, is_longer)| {
            let Selection::Hyperslab(dims) = &target else { unreachable!() };
            let mut other: Vec<HyperslabDim> = dims
                .iter()
                .zip(more)
                .map(|(dim, (start, block, gap))| dim_of(dim.len(), start, block, gap))
                .collect();
            if is_longer {
                other.insert(1, HyperslabDim::run(2, 1));
            }
            let source = Selection::Hyperslab(other.into_iter().collect());
            (target, source)
        },
    );
    prop_oneof![3 => alike, 2 => (any_selection(), any_selection())]
}

fn elements(selection: &Selection) -> Vec<Vec<u64>> {
    let mut out = Vec::new();
    let dims = vec![1000; selection.rank().unwrap()];
    let told = selection.for_each_run(&dims, &mut |at, len| {
        for i in 0..len {
            let mut at = at.to_vec();
            *at.last_mut().unwrap() += i;
            out.push(at);
        }
        true
    });
    told.unwrap();
    out
}

fn of_slab(slab: &Slab) -> Vec<Vec<u64>> {
    let mut out = vec![Vec::new()];
    for dim in 0..slab.start.len() {
        out = out
            .into_iter()
            .flat_map(|at: Vec<u64>| {
                (0..slab.count[dim]).map(move |i| {
                    let mut at = at.clone();
                    at.push(slab.start[dim] + i * slab.step[dim]);
                    at
                })
            })
            .collect();
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn pieces_pair_up_elements_in_order(
        (target, source) in mapping(),
        request in prop::collection::vec((0u64..6, 1u64..9, 1u64..4), 4..5),
        short in 3u64..30,
    ) {
        let rank = target.rank().unwrap();
        let source_dims = vec![short; source.rank().unwrap()];
        let part = |i: usize| -> Vec<u64> {
            request.iter().take(rank).map(|&(a, b, c)| [a, b, c][i]).collect()
        };
        let (start, count, stride) = (part(0), part(1), part(2));
        let request = MappingRequest { start: &start, count: &count, stride: &stride };
        let mut want = BTreeMap::new();
        let place_of = |to: &[u64]| -> Option<Vec<u64>> {
            (0..rank)
                .map(|dim| {
                    let past = to[dim].checked_sub(start[dim])?;
                    let is_there = past % stride[dim] == 0 && past / stride[dim] < count[dim];
                    is_there.then_some(past / stride[dim])
                })
                .collect()
        };
        // Whatever the source has, which may be less.
        let is_touched = elements(&target).iter().any(|to| place_of(to).is_some());
        for (to, from) in elements(&target).into_iter().zip(elements(&source)) {
            let place = place_of(&to);
            // Points may name a place twice: the later one holds.
            if let Some(place) = place.filter(|_| from.iter().all(|&at| at < short)) {
                want.insert(place, from);
            }
        }
        let mut got = BTreeMap::new();
        let mapped = VirtualSource { file: None, dataset: b"d"[..].into(), source, target };
        mapped.pieces(&vec![1000; rank], &source_dims, &request, &mut |piece| {
            let (to, from) = (of_slab(&piece.target), of_slab(&piece.source));
            assert_eq!(to.len(), from.len());
            got.extend(to.into_iter().zip(from));
            Ok(())
        }).unwrap();
        prop_assert_eq!(got, want);
        prop_assert_eq!(mapped.touches(&vec![1000; rank], &request), is_touched);
    }
}
