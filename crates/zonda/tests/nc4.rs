//! netCDF-4 files behind the same dataset as classic ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda::storage::backend::Memory;
use zonda::{
    Dataset, Destination, DimId, Format, GroupId, Hyperslab, MemType, NcError, OpenOptions,
    Reserve, StorageKind, VarId, VarRef, VlenSink,
};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../zonda-nc4/tests/data/model.nc")
}

fn open() -> Dataset {
    Dataset::open(&path(), &OpenOptions::default()).expect("open")
}

/// The group `g` and the one in it.
fn groups(file: &Dataset) -> (GroupId, GroupId) {
    let g = file.meta(|meta| meta.find_group(b"g")).expect("g");
    let inner = file.in_group(g, |meta| meta.find_group(b"inner")).expect("g").expect("inner");
    (g, inner)
}

fn ints(file: &Dataset, var: VarRef, start: &[usize], count: &[usize]) -> zonda::Result<Vec<i32>> {
    let slab = Hyperslab { start, count, stride: None };
    let mut bytes = Vec::new();
    let _ = file.get_list(var, &slab, Some(MemType::I32), (&mut bytes, None))?;
    Ok(bytes.chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().expect("4"))).collect())
}

/// Texts and sequences one after the other; their addresses are their numbers, from 1.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl VlenSink for Kept {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

#[test]
fn groups_dimensions_and_types_are_found_as_netcdf_does() {
    let file = open();
    assert!(file.is_hdf5() && !file.is_writable() && !file.in_define_mode());
    assert_eq!(file.format(), Format::NetCdf4);
    let (g, inner) = groups(&file);
    assert!(file.has_group(inner) && !file.has_group(GroupId(77)));
    let (own, outer) = file
        .in_group(inner, |meta| {
            assert_eq!(meta.group_path(), b"/g/inner");
            assert_eq!((meta.group_parent(), meta.group_name()), (Some(g), &b"inner"[..]));
            assert_eq!(meta.find_dim(b"none").map_err(|e| e.code()), Err(NcError::BadDim));
            assert_eq!(meta.find_dim(b"g/x").map_err(|e| e.code()), Err(NcError::Inval));
            (meta.find_dim(b"x").expect("x of g"), meta.find_dim(b"time").expect("time of root"))
        })
        .expect("inner");
    file.meta(|meta| {
        assert_ne!(meta.find_dim(b"x").expect("x"), own, "that of the group hides that around it");
        assert_eq!(meta.find_dim(b"time").expect("time"), outer);
        assert_eq!(meta.unlimited(), Some(outer));
        assert_eq!(meta.n_records(), 6);
        assert_eq!(meta.dim(DimId(99)).map(drop).map_err(|e| e.code()), Err(NcError::BadDim));
        let pair = meta.find_type(b"pair").expect("found below the group, too");
        assert_eq!(meta.type_size(pair).expect("pair"), 24);
        assert_eq!(meta.find_type(b"none").map_err(|e| e.code()), Err(NcError::BadType));
        let a = meta.find_var(b"a").expect("a");
        assert!(meta.is_record(a).expect("a"));
        let mut shape = [0; 2];
        meta.var_shape(a, &mut shape).expect("a");
        assert_eq!(shape, [6, 4], "also where the variable has fewer records");
        assert_eq!(meta.find_var(b"p").map_err(|e| e.code()), Err(NcError::NotVar));
        assert!(meta.layout().is_none());
    });
    let missing = file.in_group(GroupId(77), |_| ()).map_err(|error| error.code());
    assert_eq!(missing, Err(NcError::BadGrpId));
}

#[test]
fn data_and_attributes_of_any_group_and_type() {
    let file = open();
    let (g, inner) = groups(&file);
    let a = file.meta(|meta| meta.find_var(b"a")).expect("a");
    assert_eq!(ints(&file, a.into(), &[1, 0], &[2, 4]).expect("a"), [4, 5, 6, 7, -9, -9, -9, -9]);
    let up = VarRef { group: inner, var: VarId(0) };
    assert_eq!(ints(&file, up, &[1, 2], &[1, 3]).expect("up"), [8, 9, 10]);

    let info = file.var_info(a.into()).expect("a");
    assert_eq!(info.storage, StorageKind::Chunked(vec![2, 3]));
    assert_eq!(file.chunk_cache(a.into()).expect("a"), (16 << 20, 4133, 0.75));

    let slab = |start, count| Hyperslab { start, count, stride: None };
    let s: VarRef = file.meta(|meta| meta.find_var(b"s")).expect("s").into();
    let refused = ints(&file, s, &[0], &[1]).map_err(|error| error.code());
    assert_eq!(refused, Err(NcError::BadType));
    let mut natural = vec![0; 32];
    let without = file.get(s, &slab(&[0], &[4]), None, &mut natural);
    assert_eq!(without.map(drop).map_err(|e| e.code()), Err(NcError::BadType), "no place for them");
    let (mut kept, mut natural) = (Kept::default(), vec![0; 32]);
    let _ = file
        .get_values(
            s,
            &slab(&[0], &[4]),
            Destination { bytes: &mut natural, place: Some(&mut kept) },
        )
        .expect("s");
    let first = u64::from_ne_bytes(natural[..8].try_into().expect("8"));
    assert_eq!(kept.0[first as usize - 1], b"eins");

    let r = file.in_group(g, |meta| meta.find_var(b"r")).expect("g").expect("r");
    let (mut kept, mut natural) = (Kept::default(), vec![0; 32]);
    let r = VarRef { group: g, var: r };
    let _ = file
        .get_values(
            r,
            &slab(&[0], &[2]),
            Destination { bytes: &mut natural, place: Some(&mut kept) },
        )
        .expect("r");
    assert_eq!(natural[..8], 3u64.to_ne_bytes());
    assert_eq!(kept.0[0], [1, 2, 3].map(i32::to_ne_bytes).concat());

    let root = VarRef::group(GroupId::ROOT);
    let mut kept = Kept::default();
    let mut natural = Vec::new();
    let _ =
        file.get_att_list(root, b"words", None, (&mut natural, Some(&mut kept))).expect("words");
    assert_eq!((natural.len(), kept.0.concat()), (24, "onedrei\u{e9}".as_bytes().to_vec()));
    file.meta(|meta| {
        let found = meta.find_att(VarId::GLOBAL, b"_NCProperties");
        let (number, att) = found.expect("found by name");
        assert!(number == -1 && att.len > 0);
    });
}

#[test]
fn what_would_change_it_is_refused() {
    let file = open();
    let a = file.meta(|meta| meta.find_var(b"a")).expect("a");
    let slab = Hyperslab { start: &[0, 0], count: &[1, 1], stride: None };
    let codes = [
        file.redef().map_err(|e| e.code()),
        file.def_dim(b"new", 1).map(drop).map_err(|e| e.code()),
        file.def_var(b"new", 4, &[]).map(drop).map_err(|e| e.code()),
        file.rename_var(a, b"new").map_err(|e| e.code()),
        file.del_att(VarId::GLOBAL, b"title").map_err(|e| e.code()),
        file.put(a, &slab, None, &[0; 4]).map(drop).map_err(|e| e.code()),
    ];
    // HDF5 is what refuses a put in the reference.
    assert_eq!(codes[..5], [Err(NcError::Perm); 5]);
    assert_eq!(codes[5], Err(NcError::HdfErr));
    assert_eq!(file.enddef(Reserve::Default).map_err(|e| e.code()), Err(NcError::NotInDefine));
    file.sync().expect("sync");
    drop(file.freeze(std::time::Instant::now() + std::time::Duration::from_secs(60)));
    file.drain().expect("nothing to be written");
    file.close().expect("close");
    assert_eq!(file.close().map_err(|e| e.code()), Err(NcError::BadId));

    let write = OpenOptions { write: true, ..OpenOptions::default() };
    let unordered = path().with_file_name("plain.h5");
    let before = std::fs::read(&unordered).expect("read");
    // The reference refuses it: its groups keep no order.
    let opened = Dataset::open(&unordered, &write).expect("no order is no hindrance");
    opened.close().expect("close");
    assert_eq!(std::fs::read(&unordered).expect("read"), before, "nothing was changed");
    let bytes = std::fs::read(path()).expect("read");
    let cut = Arc::new(Memory::from_slice(&bytes[..40]));
    let refused = Dataset::open_in(cut, Path::new("cut"), &write).map(drop);
    let reading = OpenOptions::default();
    let cut = Arc::new(Memory::from_slice(&bytes[..40]));
    let unread = Dataset::open_in(cut, Path::new("cut"), &reading).map(drop);
    assert_eq!(refused.map_err(|e| e.code()), unread.map_err(|e| e.code()), "damage comes first");
}

#[test]
fn an_image_in_memory_reads_alike() {
    let bytes = std::fs::read(path()).expect("read");
    let storage = Arc::new(Memory::from_slice(&bytes));
    let file = Dataset::open_in(storage, Path::new("memory"), &OpenOptions::default());
    let file = file.expect("open");
    let a = file.meta(|meta| meta.find_var(b"a")).expect("a");
    assert_eq!(ints(&file, a.into(), &[0, 1], &[1, 2]).expect("a"), [1, 2]);
    let cut = Arc::new(Memory::from_slice(&bytes[..40]));
    assert!(Dataset::open_in(cut, Path::new("cut"), &OpenOptions::default()).is_err());
}

#[test]
fn threads_share_a_file_from_its_first_inquiry_on() {
    let file = open();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (_, inner) = groups(&file);
                let up = VarRef { group: inner, var: VarId(0) };
                let a = file.meta(|meta| meta.find_var(b"a")).expect("a");
                for _ in 0..50 {
                    assert_eq!(ints(&file, up, &[0, 0], &[2, 2]).expect("up"), [0, 1, 6, 7]);
                    assert_eq!(ints(&file, a.into(), &[0, 2], &[1, 2]).expect("a"), [2, 3]);
                    let n = file.meta(|meta| meta.n_atts(VarId::GLOBAL)).expect("attributes");
                    assert_eq!(n, 5);
                }
            });
        }
    });
}

#[test]
fn a_fork_finds_a_moment_between_reads_without_pause() {
    let file = open();
    let a = file.meta(|meta| meta.find_var(b"a")).expect("a");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let n = ints(&file, a.into(), &[0, 0], &[2, 4]).expect("a").len();
                    assert_eq!(n, 8);
                }
            });
        }
        let start = std::time::Instant::now();
        for _ in 0..20 {
            drop(file.freeze(std::time::Instant::now() + std::time::Duration::from_secs(60)));
        }
        let taken = start.elapsed();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(taken.as_secs() < 2, "{taken:?}: at least one of them gave up waiting");
    });
}
