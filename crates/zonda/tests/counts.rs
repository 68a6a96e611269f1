//! Counts the calls of the storage that operations make.

mod common;

use std::sync::Arc;

use common::{FORMATS, create, get, open, put, stacked};
use zonda::storage::backend::Memory;
use zonda::storage::layer::CountHandle;
use zonda::storage::{Spec, Storage};
use zonda::{Dataset, ExtType, Format, Hyperslab, Reserve, VarId};

/// Bytes of a page of the default cache, and of a conversion block.
const PAGE: u64 = 256 << 10;

fn counted(layers: &str, base: &Arc<Memory>) -> (Arc<dyn Storage>, CountHandle) {
    let (storage, handles) = stacked(layers, Arc::clone(base) as Arc<dyn Storage>);
    (storage, handles.counts[0].clone())
}

/// `cache,count,memory` or whatever the default is now.
fn default_over_count() -> String {
    let spec = Spec::default_stack().to_string();
    let layers = spec.strip_suffix("file").expect("the default ends in a file");
    format!("{layers}count,memory")
}

/// A file with `n_records` records of `len` doubles, a fixed variable of as many and attributes.
fn sample(format: Format, n_records: usize, len: usize) -> Arc<Memory> {
    let base = Arc::new(Memory::new());
    let storage: Arc<dyn Storage> = Arc::clone(&base) as Arc<dyn Storage>;
    let file = create(&storage, format, false);
    let time = file.def_dim(b"time", 0).expect("def_dim");
    let x = file.def_dim(b"x", len).expect("def_dim");
    for i in 0..5 {
        let name = format!("record{i}");
        file.def_var(name.as_bytes(), ExtType::Double.nc_type(), &[time.0, x.0]).expect("def_var");
    }
    file.def_var(b"fixed", ExtType::Float.nc_type(), &[x.0]).expect("def_var");
    let _ = file.put_att(VarId::GLOBAL, b"title", 2, 4, None, b"wind").expect("put_att");
    file.enddef(Reserve::Default).expect("enddef");
    if n_records > 0 {
        put(&file, VarId(0), &[n_records - 1, 0], &[1, 1], &[1.0]).expect("put");
    }
    file.close().expect("close");
    base
}

#[test]
fn open_costs_the_same_whatever_the_data() {
    for format in FORMATS {
        for layers in ["count,memory", "cache:1:4,count,memory", &default_over_count()] {
            let cost = |n_records, len| {
                let base = sample(format, n_records, len);
                let (storage, count) = counted(layers, &base);
                count.reset();
                let file = open(&storage, false, false).expect("open");
                let opened = count.counts();
                assert_eq!(file.meta(|meta| meta.n_records()), n_records as u64);
                file.close().expect("close");
                let closed = count.counts();
                assert_eq!(opened.read, closed.read, "close of a reader reads nothing");
                assert_eq!(closed.write.calls + closed.set_len.calls, 0);
                (opened.read.calls, base.len().expect("len"))
            };
            let (small, small_len) = cost(0, 1);
            let (records, _) = cost(2000, 10);
            let (large, large_len) = cost(3, 200_000);
            assert!(large_len > 1000 * small_len);
            assert!(small <= 2 && records <= 2 && large <= 2, "{small} {records} {large}");
            assert_eq!(records, large, "{layers}");
        }
    }
}

#[test]
fn a_long_header_is_read_in_a_few_steps() {
    let base = Arc::new(Memory::new());
    let (storage, _) = counted("count,memory", &base);
    let file = create(&storage, Format::Cdf5, false);
    let x = file.def_dim(b"x", 1).expect("def_dim");
    for i in 0..3000 {
        let name = format!("variable_{i}");
        file.def_var(name.as_bytes(), ExtType::Int.nc_type(), &[x.0]).expect("def_var");
    }
    file.enddef(Reserve::Default).expect("enddef");
    let header_len = file.meta(|meta| meta.layout()).expect("classic").header_len;
    file.close().expect("close");
    let (storage, count) = counted("count,memory", &base);
    open(&storage, false, false).expect("open");
    // A look at the magic number, then steps that grow by a factor.
    assert!(header_len > 200_000, "{header_len}");
    let counts = count.counts();
    assert!(counts.read.calls <= 6 && counts.read.bytes <= 3 * header_len, "{counts:?}");
}

/// One fixed variable of `n` elements, ready for data, without fill.
fn one_var(layers: &str, ty: ExtType, n: usize) -> (Dataset, CountHandle, u64) {
    let base = Arc::new(Memory::new());
    let (storage, count) = counted(layers, &base);
    let file = create(&storage, Format::Cdf2, false);
    let x = file.def_dim(b"x", n).expect("def_dim");
    file.set_fill(zonda::FillMode::NoFill).expect("set_fill");
    file.def_var(b"v", ty.nc_type(), &[x.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    count.reset();
    (file, count, (n * ty.size()) as u64)
}

#[test]
fn a_whole_variable_is_written_block_by_block() {
    for n in [1usize, 1000, 32_768, 32_769, 1_000_000] {
        let ramp: Vec<f64> = (0..n).map(|i| i as f64).collect();
        // Each block is written once, as it was converted.
        let (file, count, bytes) = one_var("count,memory", ExtType::Double, n);
        put(&file, VarId(0), &[0], &[n], &ramp).expect("put");
        let counts = count.counts();
        assert_eq!(counts.write.calls, bytes.div_ceil(PAGE), "{n}");
        assert_eq!((counts.write.bytes, counts.read.calls), (bytes, 0), "{n}");
        count.reset();
        assert_eq!(get(&file, VarId(0), &[0], &[n]).expect("get"), ramp);
        assert_eq!(count.counts().read.calls, bytes.div_ceil(PAGE), "{n}");
        assert_eq!(count.counts().read.bytes, bytes, "{n}");
        file.close().expect("close");
        // The default cache adds at most a write for the part that fills no page, and reads none.
        let (file, count, bytes) = one_var(&default_over_count(), ExtType::Double, n);
        put(&file, VarId(0), &[0], &[n], &ramp).expect("put");
        file.sync().expect("sync");
        let counts = count.counts();
        assert!(counts.write.calls <= bytes.div_ceil(PAGE) + 1, "{n}: {counts:?}");
        assert_eq!((counts.write.bytes, counts.read.calls), (bytes, 0), "{n}");
        file.close().expect("close");
    }
}

#[test]
fn bytes_that_need_no_conversion_go_in_one_write() {
    let n = 3_000_000;
    let (file, count, bytes) = one_var("count,memory", ExtType::Byte, n);
    let data: Vec<u8> = (0..n).map(|i| i as u8).collect();
    let slab = Hyperslab { start: &[0], count: &[n], stride: None };
    let _ = file.put(VarId(0), &slab, None, &data).expect("put");
    assert_eq!((count.counts().write.calls, count.counts().write.bytes), (1, bytes));
    let mut back = vec![0; n];
    let _ = file.get(VarId(0), &slab, None, &mut back).expect("get");
    assert!(back == data);
    assert_eq!(count.counts().read.calls, 1);
    file.close().expect("close");
}

#[test]
fn single_elements_are_gathered_by_the_default_cache() {
    let n = 100_000;
    let (file, count, bytes) = one_var(&default_over_count(), ExtType::Double, n);
    for i in 0..n {
        put(&file, VarId(0), &[i], &[1], &[i as f64]).expect("put");
    }
    file.sync().expect("sync");
    let counts = count.counts();
    // A file begins with smaller writes.
    assert!(counts.write.calls <= bytes.div_ceil(PAGE) + 3, "{counts:?}");
    assert_eq!((counts.write.bytes, counts.read.calls), (bytes, 0));
    count.reset();
    for i in 0..n {
        assert_eq!(get(&file, VarId(0), &[i], &[1]).expect("get"), [i as f64]);
    }
    // Complete pages were written and made room; they are read again in large pieces.
    let counts = count.counts();
    assert!(counts.read.calls <= bytes.div_ceil(PAGE) + 1, "{counts:?}");
    file.close().expect("close");

    // Record by record, two variables in turn: filled and written over, still page by page.
    let base = Arc::new(Memory::new());
    let (storage, count) = counted(&default_over_count(), &base);
    let file = create(&storage, Format::Cdf2, false);
    let time = file.def_dim(b"time", 0).expect("def_dim");
    for name in [b"a", b"b"] {
        file.def_var(name, ExtType::Double.nc_type(), &[time.0]).expect("def_var");
    }
    file.enddef(Reserve::Default).expect("enddef");
    count.reset();
    for i in 0..20_000 {
        put(&file, VarId(0), &[i], &[1], &[i as f64]).expect("put");
        put(&file, VarId(1), &[i], &[1], &[-(i as f64)]).expect("put");
    }
    file.close().expect("close");
    let counts = count.counts();
    let bytes = base.len().expect("len");
    // One write more for the record count; a file begins with smaller ones.
    assert!(counts.write.calls <= bytes.div_ceil(PAGE / 4) + 2, "{counts:?}");
    assert!(counts.write.bytes <= bytes + 8, "{counts:?}");
}

#[test]
fn inquiries_cost_nothing() {
    for share in [false, true] {
        let base = sample(Format::Cdf5, 7, 10);
        let (storage, count) = counted("count,memory", &base);
        for write in [false, true] {
            let file = open(&storage, write, share).expect("open");
            count.reset();
            for _ in 0..10 {
                file.meta(|meta| {
                    assert_eq!(
                        (meta.n_dims(), meta.n_vars(), meta.n_atts(VarId::GLOBAL).ok()),
                        (2, 6, Some(1))
                    );
                    assert_eq!(meta.n_records(), 7);
                    for i in 0..6 {
                        let var = meta.var(VarId(i)).expect("var");
                        assert_eq!(meta.find_var(var.name).expect("find_var"), VarId(i));
                        let mut shape = [0; 2];
                        meta.var_shape(VarId(i), &mut shape).expect("var_shape");
                    }
                    let dim = meta.dim(meta.unlimited().expect("unlimited")).expect("dim");
                    assert_eq!(dim.len, 7);
                    assert_eq!(meta.find_dim(dim.name).expect("find_dim").0, 0);
                    meta.find_att(VarId::GLOBAL, b"title").expect("find_att");
                });
                let mut title = [0; 4];
                let _ = file.get_att(VarId::GLOBAL, b"title", None, &mut title).expect("get_att");
                assert_eq!(&title, b"wind");
                assert!(file.meta(|meta| meta.find_var(b"missing")).is_err());
            }
            let counts = count.counts();
            let calls = [counts.read, counts.write, counts.len, counts.set_len, counts.sync];
            assert_eq!(calls.map(|tally| tally.calls), [0; 5], "write {write} share {share}");
            file.close().expect("close");
        }
    }
}

#[test]
fn sync_without_changes_writes_nothing() {
    let base = sample(Format::Cdf1, 7, 10);
    let (storage, count) = counted("count,memory", &base);
    let file = open(&storage, true, false).expect("open");
    count.reset();
    for _ in 0..3 {
        file.sync().expect("sync");
    }
    file.close().expect("close");
    assert_eq!(count.counts().write.calls, 0);
    // A put to existing records writes its own bytes and no header.
    let file = open(&storage, true, false).expect("open");
    count.reset();
    put(&file, VarId(1), &[3, 0], &[1, 10], &[1.0; 10]).expect("put");
    file.close().expect("close");
    assert_eq!((count.counts().write.calls, count.counts().write.bytes), (1, 80));
}
