//! Copies of datasets: how data are copied, what is refused, and that nothing is left behind.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use zonda::copy::{
    ChunkRule, Copied, CopyMethod, CopyOptions, FilterRule, Pattern, Progress, QuantizeRule, copy,
    copy_dataset,
};
use zonda::{
    CreateOptions, Dataset, ExtType, FilterSpec, Format, GroupId, Hyperslab, MemType, NcError,
    OpenOptions, Quantize, QuantizeMode, Reserve, StorageKind, StorageRequest, VarId, VarRef,
};
use zonda_testkit::TempFolder;

fn create(path: &Path, format: Format) -> Dataset {
    let options = CreateOptions { format, ..CreateOptions::default() };
    Dataset::create(path, &options).expect("create")
}

fn open(path: &Path) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).expect("open")
}

fn copied(source: &Path, target: &Path, options: &CopyOptions) -> zonda::Result<Copied> {
    copy(source, target, options, &mut |_| ControlFlow::Continue(()))
}

fn code<T>(result: zonda::Result<T>) -> NcError {
    result.map(drop).expect_err("an error").code()
}

fn put(file: &Dataset, var: VarRef, count: &[usize], values: &[f32]) {
    let start = vec![0; count.len()];
    put_at(file, var, &start, count, values);
}

fn put_at(file: &Dataset, var: VarRef, start: &[usize], count: &[usize], values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let slab = Hyperslab { start, count, stride: None };
    file.put(var, &slab, Some(MemType::F32), &bytes).map(drop).expect("put");
}

fn get(file: &Dataset, var: VarRef) -> Vec<f32> {
    let shape = file
        .in_group(var.group, |meta| {
            let mut shape = vec![0; meta.var(var.var).unwrap().dims.len()];
            meta.var_shape(var.var, &mut shape).unwrap();
            shape
        })
        .unwrap();
    let start = vec![0; shape.len()];
    let slab = Hyperslab { start: &start, count: &shape, stride: None };
    let mut bytes = Vec::new();
    let got = file.get_list(var, &slab, Some(MemType::F32), (&mut bytes, None));
    got.map(drop).expect("get");
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_ne_bytes(*four)).collect()
}

fn var(file: &Dataset, name: &[u8]) -> VarRef {
    file.meta(|meta| meta.find_var(name)).expect("a variable").into()
}

/// Values that differ from their neighbours and compress well.
fn field(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 1009) as f32 + (i / 1009) as f32 * 0.25).collect()
}

const SHAPE: [usize; 3] = [40, 30, 50];

/// A file with a deflated variable T(time, y, x), time unlimited.
fn maps(folder: &TempFolder, chunk: &[usize; 3]) -> PathBuf {
    let path = folder.file("maps.nc");
    let file = create(&path, Format::NetCdf4);
    let dims = [("time", 0), ("y", SHAPE[1]), ("x", SHAPE[2])];
    let dims = dims.map(|(name, len)| file.def_dim(name.as_bytes(), len).unwrap().0);
    let t: VarRef = file.def_var(b"T", ExtType::Float.nc_type(), &dims).unwrap().into();
    file.def_var_chunking(t, StorageRequest::Chunked, Some(chunk)).unwrap();
    file.def_var_deflate(t, true, Some(1)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    put(&file, t, &SHAPE, &field(SHAPE.iter().product()));
    file.close().unwrap();
    path
}

fn rechunk(sizes: &[(&str, u64)]) -> Vec<ChunkRule> {
    let sizes = sizes.iter().map(|(name, n)| (name.as_bytes().to_vec(), *n)).collect();
    vec![ChunkRule { vars: None, sizes }]
}

#[test]
fn chunks_that_stay_as_they_are_are_not_decoded() {
    let folder = TempFolder::new("copy-stored");
    let source = maps(&folder, &[1, 30, 50]);
    let target = folder.file("target.nc");
    let done = copied(&source, &target, &CopyOptions::default()).unwrap();
    assert_eq!(done.vars.len(), 1);
    assert_eq!((&*done.vars[0].path, done.vars[0].way), ("/T", CopyMethod::Stored));
    let (a, b) = (open(&source), open(&target));
    let t = var(&b, b"T");
    assert_eq!(get(&b, t), get(&a, var(&a, b"T")));
    let (old, new) = (a.var_info(t).unwrap(), b.var_info(t).unwrap());
    assert_eq!((&old.storage, &old.filters), (&new.storage, &new.filters));
    assert_eq!(a.stored(t).unwrap(), b.stored(t).unwrap());
    assert!(b.meta(|meta| meta.dim(meta.dim_ids().next().unwrap()).unwrap().is_unlimited));
}

#[test]
fn every_way_gives_the_same_values() {
    let folder = TempFolder::new("copy-ways");
    let source = maps(&folder, &[1, 30, 50]);
    let want = get(&open(&source), var(&open(&source), b"T"));
    let chunks = rechunk(&[("time", 0), ("y", 4), ("x", 7)]);
    for (memory_bytes, way) in [(1 << 30, CopyMethod::Values), (80_000, CopyMethod::Spilled)] {
        let target = folder.file("target.nc");
        let options = CopyOptions {
            chunks: chunks.clone(),
            memory_bytes,
            replace: true,
            ..CopyOptions::default()
        };
        let done = copied(&source, &target, &options).unwrap();
        assert_eq!(done.vars[0].way, way);
        let file = open(&target);
        let t = var(&file, b"T");
        assert_eq!(get(&file, t), want);
        let info = file.var_info(t).unwrap();
        assert_eq!(info.storage, StorageKind::Chunked(vec![40, 4, 7]));
        assert_eq!(info.filters.len(), 2);
    }
    // The folder has only the two files: the temporary file is gone.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn parts_of_unfiltered_chunks_are_read_where_memory_is_small() {
    let folder = TempFolder::new("copy-plain");
    let shape = [20, 64, 512];
    let values = field(shape.iter().product());
    for (is_filtered, way) in [(false, CopyMethod::Values), (true, CopyMethod::Spilled)] {
        let (source, target) = (folder.file("source.nc"), folder.file("target.nc"));
        let file = create(&source, Format::NetCdf4);
        let dims = [("time", 0), ("y", shape[1]), ("x", shape[2])];
        let dims = dims.map(|(name, len)| file.def_dim(name.as_bytes(), len).unwrap().0);
        let t: VarRef = file.def_var(b"T", ExtType::Float.nc_type(), &dims).unwrap().into();
        let map = Some(&[1, shape[1], shape[2]][..]);
        file.def_var_chunking(t, StorageRequest::Chunked, map).unwrap();
        if is_filtered {
            file.def_var_deflate(t, true, Some(1)).unwrap();
        }
        file.enddef(Reserve::Default).unwrap();
        put(&file, t, &shape, &values);
        file.close().unwrap();
        let options = CopyOptions {
            chunks: rechunk(&[("time", 0), ("y", 8), ("x", 64)]),
            memory_bytes: 1 << 20,
            replace: true,
            ..CopyOptions::default()
        };
        let done = copied(&source, &target, &options).unwrap();
        assert_eq!((done.vars[0].way, done.vars[0].reads), (way, 1.0));
        assert!(get(&open(&target), t) == values);
    }
}

#[test]
fn shapes_that_tile_badly() {
    let folder = TempFolder::new("copy-tiles");
    let source = maps(&folder, &[7, 11, 13]);
    let want = get(&open(&source), var(&open(&source), b"T"));
    for sizes in [[5, 8, 50], [40, 1, 1], [1, 30, 50], [9, 29, 17]] {
        for memory_bytes in [20_000, 100_000, 1 << 20] {
            let target = folder.file("target.nc");
            let sizes = [("time", sizes[0]), ("y", sizes[1]), ("x", sizes[2])];
            let options = CopyOptions {
                chunks: rechunk(&sizes),
                memory_bytes,
                replace: true,
                ..CopyOptions::default()
            };
            copied(&source, &target, &options).unwrap();
            let file = open(&target);
            assert_eq!(get(&file, var(&file, b"T")), want, "{sizes:?} {memory_bytes}");
        }
    }
}

#[test]
fn chunks_pass_through_filters_that_are_not_there() {
    let folder = TempFolder::new("copy-filters");
    let source = maps(&folder, &[1, 30, 50]);
    // Replaces the number of deflate by another one, so that the chunks cannot be decoded.
    let mut bytes = std::fs::read(&source).unwrap();
    let deflate = [1u8, 0, 0, 0, 1, 0, 1, 0];
    let at = bytes.windows(8).position(|window| {
        window[..2] == deflate[..2] && window[2..4] == [1, 0] && window[4..6] == [1, 0]
    });
    let at = at.expect("the filter message");
    // In a message of version 2, filters with numbers below 256 have no name. No filter has number 200.
    bytes[at] = 200;
    let checksummed = folder.file("odd.nc");
    std::fs::write(&checksummed, checksummed_again(bytes, at, 1)).unwrap();
    let file = open(&checksummed);
    let t = var(&file, b"T");
    assert_eq!(file.var_info(t).unwrap().filters[1].id, 200);
    let target = folder.file("target.nc");
    let done = copied(&checksummed, &target, &CopyOptions::default()).unwrap();
    assert_eq!(done.vars[0].way, CopyMethod::Stored);
    let back = open(&target);
    assert_eq!(back.var_info(t).unwrap().filters, file.var_info(t).unwrap().filters);
    assert_eq!(back.stored(t).unwrap(), file.stored(t).unwrap());
    // A copy that needs the values is refused; the error names the filter.
    let options =
        CopyOptions { chunks: rechunk(&[("time", 2)]), replace: true, ..CopyOptions::default() };
    let error = copied(&checksummed, &target, &options).unwrap_err();
    assert_eq!(error.code(), NcError::NoFilter);
    assert!(error.to_string().contains("variable /T: filter 200"), "{error}");
    assert_eq!(back.stored(t).unwrap(), open(&target).stored(t).unwrap(), "the old one is there");
}

/// The file with a byte changed, and the checksum of the object header around it made right again.
fn checksummed_again(mut bytes: Vec<u8>, at: usize, was: u8) -> Vec<u8> {
    let signature = |from: usize| matches!(&bytes[from..from + 4], b"OHDR" | b"OCHK");
    let begin = (0..at).rev().find(|&from| signature(from)).expect("a header");
    // The header ends where the checksum was right before the change.
    let mut old = bytes.clone();
    old[at] = was;
    let end = (at..bytes.len() - 4).find(|&end| {
        let stored = u32::from_le_bytes(old[end..end + 4].try_into().unwrap());
        lookup3(&old[begin..end]) == stored
    });
    let end = end.expect("its checksum");
    let sum = lookup3(&bytes[begin..end]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&sum);
    bytes
}

/// Jenkins' lookup3, with which HDF5 protects metadata.
fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |chunk: &[u8]| {
        let mut four = [0; 4];
        four[..chunk.len().min(4)].copy_from_slice(&chunk[..chunk.len().min(4)]);
        u32::from_le_bytes(four)
    };
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(&rest[..4]));
        b = b.wrapping_add(word(&rest[4..8]));
        c = c.wrapping_add(word(&rest[8..12]));
        for (rotate, which) in [(4, 0), (6, 1), (8, 2), (16, 0), (19, 1), (4, 2)] {
            match which {
                0 => (a, c) = ((a.wrapping_sub(c)) ^ c.rotate_left(rotate), c.wrapping_add(b)),
                1 => (b, a) = ((b.wrapping_sub(a)) ^ a.rotate_left(rotate), a.wrapping_add(c)),
                _ => (c, b) = ((c.wrapping_sub(b)) ^ b.rotate_left(rotate), b.wrapping_add(a)),
            }
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest));
    b = b.wrapping_add(word(rest.get(4..).unwrap_or_default()));
    c = c.wrapping_add(word(rest.get(8..).unwrap_or_default()));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[test]
fn records_go_from_format_to_format() {
    let folder = TempFolder::new("copy-records");
    let first = folder.file("first.nc");
    let file = create(&first, Format::Cdf1);
    let (t, x) = (file.def_dim(b"t", 0).unwrap().0, file.def_dim(b"x", 7).unwrap().0);
    let float = ExtType::Float.nc_type();
    let a: VarRef = file.def_var(b"a", float, &[t, x]).unwrap().into();
    let b: VarRef = file.def_var(b"b", float, &[t]).unwrap().into();
    let c: VarRef = file.def_var(b"c", float, &[x]).unwrap().into();
    file.enddef(Reserve::Default).unwrap();
    put(&file, a, &[5000, 7], &field(35_000));
    put(&file, b, &[4999], &field(4999));
    put(&file, c, &[7], &field(7));
    file.close().unwrap();
    let want = |name: &[u8]| get(&open(&first), var(&open(&first), name));
    let mut from = first.clone();
    let formats =
        [Format::NetCdf4, Format::Cdf2, Format::NetCdf4Classic, Format::Cdf5, Format::Cdf1];
    for format in formats {
        let to = folder.file(&format!("{}.nc", format.nc_format()));
        let options =
            CopyOptions { format: Some(format), memory_bytes: 50_000, ..CopyOptions::default() };
        copied(&from, &to, &options).unwrap();
        let file = open(&to);
        assert_eq!(file.format(), format);
        for name in [&b"a"[..], b"b", b"c"] {
            assert_eq!(get(&file, var(&file, name)), want(name), "{format:?}");
        }
        assert_eq!(file.meta(|meta| meta.n_records()), 5000);
        from = to;
    }
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&from).unwrap());
}

#[test]
fn what_was_never_written_stays_so() {
    let folder = TempFolder::new("copy-sparse");
    let source = folder.file("sparse.nc");
    let file = create(&source, Format::NetCdf4);
    let dims = [b"y", b"x"].map(|name| file.def_dim(name, 1 << 20).unwrap().0);
    let float = ExtType::Float.nc_type();
    let v: VarRef = file.def_var(b"v", float, &dims).unwrap().into();
    file.def_var_chunking(v, StorageRequest::Chunked, Some(&[64, 64])).unwrap();
    file.def_var_fill(v, false, Some(&(-1.5f32).to_ne_bytes())).unwrap();
    file.enddef(Reserve::Default).unwrap();
    put_at(&file, v, &[1000, 1 << 19], &[1, 2], &[3.0, 4.0]);
    file.close().unwrap();
    let others = rechunk(&[("y", 100)]);
    for (chunks, way, most) in
        [(Vec::new(), CopyMethod::Stored, 1), (others, CopyMethod::Values, 1000)]
    {
        let target = folder.file("target.nc");
        let options = CopyOptions { chunks, replace: true, ..CopyOptions::default() };
        let done = copied(&source, &target, &options).unwrap();
        assert_eq!(done.vars[0].way, way);
        let file = open(&target);
        let (n, _) = file.stored(v).unwrap().chunks.unwrap();
        assert!((1..=most).contains(&n), "{n}");
        let slab = Hyperslab { start: &[1000, (1 << 19) - 1], count: &[1, 4], stride: None };
        let mut bytes = [0; 16];
        file.get(v, &slab, Some(MemType::F32), &mut bytes).map(drop).unwrap();
        let got: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|four| f32::from_ne_bytes(*four)).collect();
        assert_eq!(got, [-1.5, 3.0, 4.0, -1.5]);
    }
}

#[test]
fn what_classic_files_cannot_hold_is_named_before_anything_is_written() {
    let folder = TempFolder::new("copy-refused");
    let source = folder.file("source.nc");
    let file = create(&source, Format::NetCdf4);
    let (t, u) = (file.def_dim(b"t", 0).unwrap().0, file.def_dim(b"u", 0).unwrap().0);
    let g = file.def_group(GroupId::ROOT, b"ocean").unwrap();
    file.def_var_in(g, b"late", ExtType::Int.nc_type(), &[t, u]).unwrap();
    file.def_var(b"long", ExtType::Int64.nc_type(), &[t]).unwrap();
    file.close().unwrap();
    let target = folder.file("target.nc");
    let options = |format| CopyOptions { format: Some(format), ..CopyOptions::default() };
    let error = copied(&source, &target, &options(Format::Cdf1)).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.code(), NcError::StrictNc3);
    for part in ["source.nc", "group /ocean", "(t, u)", "/ocean/late", "/long of type int64"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // CDF-5 has the type, and one group alone fits with fixed dimensions.
    let text = copied(&source, &target, &options(Format::Cdf5)).unwrap_err().to_string();
    assert!(!text.contains("int64"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let group = Some(b"/ocean".to_vec());
    let alone = CopyOptions { group, fix_unlimited: true, ..options(Format::Cdf1) };
    let error = copied(&source, &target, &alone).unwrap_err();
    // Dimensions of length 0 cannot be fixed.
    assert!(error.to_string().contains("(t, u)"), "{error}");
    let file =
        Dataset::open(&source, &OpenOptions { write: true, ..OpenOptions::default() }).unwrap();
    let slab = Hyperslab { start: &[0, 0], count: &[2, 3], stride: None };
    let late = VarRef { group: g, var: VarId(0) };
    file.put(late, &slab, Some(MemType::I32), &[7; 24]).map(drop).unwrap();
    file.close().unwrap();
    copied(&source, &target, &alone).unwrap();
    let file = open(&target);
    assert_eq!(get(&file, var(&file, b"late")), [0x0707_0707 as f32; 6]);
    let filtered = FilterRule { vars: Vec::new(), filters: vec![deflate(1)] };
    let options = CopyOptions { filters: vec![filtered], ..alone };
    assert_eq!(code(copied(&source, &folder.file("other.nc"), &options)), NcError::NotNc4);
}

fn deflate(level: u32) -> FilterSpec {
    FilterSpec { id: 1, optional: true, name: String::new(), params: vec![level] }
}

#[test]
fn chosen_variables_come_with_their_coordinates() {
    let folder = TempFolder::new("copy-chosen");
    let source = folder.file("source.nc");
    let file = create(&source, Format::NetCdf4);
    let float = ExtType::Float.nc_type();
    let (x, y) = (file.def_dim(b"x", 3).unwrap().0, file.def_dim(b"y", 2).unwrap().0);
    let g = file.def_group(GroupId::ROOT, b"g").unwrap();
    let empty = file.def_group(GroupId::ROOT, b"empty").unwrap();
    for (name, dims) in
        [("x", vec![x]), ("lon", vec![x]), ("lon_bounds", vec![x]), ("other", vec![y])]
    {
        file.def_var(name.as_bytes(), float, &dims).unwrap();
    }
    file.def_var_in(empty, b"y", float, &[y]).unwrap();
    let t = VarRef { group: g, var: file.def_var_in(g, b"T", float, &[x]).unwrap() };
    let text = |owner: VarRef, name: &[u8], text: &[u8]| {
        let kind = ExtType::Char.nc_type();
        file.put_att(owner, name, kind, text.len(), Some(MemType::Text), text).map(drop).unwrap();
    };
    text(t, b"coordinates", b"lon nowhere");
    text(var(&file, b"lon"), b"bounds", b"lon_bounds");
    file.close().unwrap();
    let names = |vars: &[&str], exclude: &[&str]| {
        let patterns = |names: &[&str]| names.iter().map(|name| Pattern::new(*name)).collect();
        let (vars, exclude) = (patterns(vars), patterns(exclude));
        let options = CopyOptions { vars, exclude, replace: true, ..CopyOptions::default() };
        let done = copied(&source, &folder.file("target.nc"), &options)?;
        Ok::<Vec<String>, zonda::Error>(done.vars.into_iter().map(|var| var.path).collect())
    };
    assert_eq!(names(&["T"], &[]).unwrap(), ["/x", "/lon", "/lon_bounds", "/g/T"]);
    let file = open(&folder.file("target.nc"));
    assert_eq!(file.meta(|meta| (meta.n_dims(), meta.groups().len())), (1, 1));
    assert_eq!(names(&["/g/*"], &["lon"]).unwrap(), ["/x", "/g/T"]);
    assert_eq!(names(&[], &["x", "empty/*"]).unwrap(), ["/lon", "/lon_bounds", "/other", "/g/T"]);
    let file = open(&folder.file("target.nc"));
    assert_eq!(file.meta(|meta| (meta.n_dims(), meta.groups().len())), (2, 1));
    assert_eq!(names(&["nope"], &[]).unwrap_err().code(), NcError::NotVar);
    let options = CopyOptions { group: Some(b"/g/h".to_vec()), ..CopyOptions::default() };
    assert_eq!(code(copied(&source, &folder.file("other.nc"), &options)), NcError::NoGrp);
}

#[test]
fn precision_is_given_up_once() {
    let folder = TempFolder::new("copy-quantize");
    let source = maps(&folder, &[1, 30, 50]);
    let target = folder.file("rough.nc");
    let three = Quantize { mode: QuantizeMode::BitRound, kept: 3 };
    let rule = QuantizeRule { vars: Vec::new(), quantize: Some(three) };
    let options = CopyOptions { quantize: vec![rule], ..CopyOptions::default() };
    let done = copied(&source, &target, &options).unwrap();
    assert_eq!(done.vars[0].way, CopyMethod::Values);
    let file = open(&target);
    let t = var(&file, b"T");
    assert_eq!(file.var_quantize(t).unwrap(), Some(three));
    let (rough, fine) = (get(&file, t), get(&open(&source), t));
    assert!(rough.iter().zip(&fine).all(|(a, b)| (a - b).abs() <= b.abs() / 16.0));
    assert_ne!(rough, fine);
    // The attribute about quantization is copied like any other, and the values are not rounded again.
    let again = folder.file("again.nc");
    let options = CopyOptions { chunks: rechunk(&[("time", 3)]), ..CopyOptions::default() };
    copied(&target, &again, &options).unwrap();
    let file = open(&again);
    assert_eq!(file.var_quantize(t).unwrap(), Some(three));
    assert_eq!(get(&file, t), rough);
}

#[test]
fn an_interrupted_copy_leaves_nothing() {
    let folder = TempFolder::new("copy-interrupted");
    let source = maps(&folder, &[1, 30, 50]);
    let target = folder.file("target.nc");
    std::fs::write(&target, "what was there").unwrap();
    let options = CopyOptions {
        format: Some(Format::Cdf5),
        memory_bytes: 10_000,
        replace: true,
        ..CopyOptions::default()
    };
    let mut last = 0;
    let mut stop = |progress: &Progress<'_>| {
        assert_eq!((progress.var, progress.total_bytes), ("/T", 240_000));
        assert!(progress.done_bytes > last);
        last = progress.done_bytes;
        if last > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let error = copy(&source, &target, &options, &mut stop).unwrap_err();
    assert_eq!(error.code(), NcError::System(4));
    assert!((100_000..200_000).contains(&last));
    assert_eq!(std::fs::read(&target).unwrap(), b"what was there");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // At the end, all bytes are reported.
    let mut done = 0;
    let mut go = |progress: &Progress<'_>| {
        done = progress.done_bytes;
        ControlFlow::Continue(())
    };
    copy(&source, &target, &options, &mut go).unwrap();
    assert_eq!(done, 240_000);
}

#[test]
fn what_was_put_a_moment_ago_is_copied() {
    let folder = TempFolder::new("copy-open");
    for format in [Format::NetCdf4, Format::Cdf2] {
        let (source, target) = (folder.file("source.nc"), folder.file("target.nc"));
        let file = create(&source, format);
        let x = file.def_dim(b"x", 5).unwrap().0;
        let v: VarRef = file.def_var(b"v", ExtType::Float.nc_type(), &[x]).unwrap().into();
        let options = CopyOptions { replace: true, ..CopyOptions::default() };
        let mut go = |_: &Progress<'_>| ControlFlow::Continue(());
        let early = copy_dataset(&file, &target, &options, &mut go);
        assert_eq!(code(early), NcError::InDefine);
        file.enddef(Reserve::Default).unwrap();
        put(&file, v, &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        copy_dataset(&file, &target, &options, &mut go).unwrap();
        assert_eq!(get(&open(&target), v), [1.0, 2.0, 3.0, 4.0, 5.0]);
        put(&file, v, &[5], &[6.0; 5]);
        file.close().unwrap();
        assert_eq!(get(&open(&source), v), [6.0; 5]);
    }
}

#[test]
fn names_that_netcdf_does_not_allow_are_kept() {
    let folder = TempFolder::new("copy-names");
    let source = folder.file("source.nc");
    let file = create(&source, Format::NetCdf4);
    let group = file.def_group(GroupId::ROOT, b"Hrefs").unwrap();
    let x = file.def_dim_in(group, b"x", 2).unwrap().0;
    let v = VarRef {
        group,
        var: file.def_var_in(group, b"Va r", ExtType::Float.nc_type(), &[x]).unwrap(),
    };
    let kind = ExtType::Char.nc_type();
    file.put_att(v, b"km_h", kind, 1, Some(MemType::Text), b"t").map(drop).unwrap();
    file.enddef(Reserve::Default).unwrap();
    put(&file, v, &[2], &[1.0, 2.0]);
    file.close().unwrap();
    // Replaced in the file, with the checksums of the headers computed anew.
    let mut bytes = std::fs::read(&source).unwrap();
    for (old, new) in [(&b"Hrefs"[..], &b"#refs"[..]), (b"Va r", b".a r"), (b"km_h", b"km/h")] {
        let at = bytes.windows(old.len()).position(|window| window == old).expect("the name");
        let changed = old.iter().zip(new).position(|(a, b)| a != b).unwrap();
        bytes[at + changed] = new[changed];
        bytes = checksummed_again(bytes, at + changed, old[changed]);
    }
    std::fs::write(&source, bytes).unwrap();
    let target = folder.file("target.nc");
    copied(&source, &target, &CopyOptions::default()).unwrap();
    let file = open(&target);
    let group = file.meta(|meta| meta.find_group(b"#refs")).unwrap();
    let var = file.in_group(group, |meta| meta.find_var(b".a r")).unwrap().unwrap();
    let v = VarRef { group, var };
    assert_eq!(get(&file, v), [1.0, 2.0]);
    let name = file.in_group(group, |meta| meta.att(var, 0).unwrap().name.into_owned()).unwrap();
    assert_eq!(name, b"km/h");
    // No classic file may have them.
    let options = CopyOptions {
        format: Some(Format::Cdf5),
        group: Some(b"/#refs".to_vec()),
        ..CopyOptions::default()
    };
    let error = copied(&source, &folder.file("classic.nc"), &options).unwrap_err();
    assert_eq!(error.code(), NcError::BadName);
    assert!(error.to_string().contains("/#refs/.a r"), "{error}");
}
