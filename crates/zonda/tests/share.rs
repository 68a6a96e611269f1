//! `NC_SHARE`: one handle sees what another writes.

mod common;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{FORMATS, create, get, open, put, shape, stacked};
use zonda::storage::backend::{File, Memory};
use zonda::storage::layer::{FaultPlan, InjectedFault, Watched};
use zonda::storage::{Advice, ReadRange, Storage, StorageError, StorageStamp, WriteRange};
use zonda::{Dataset, ExtType, Format, Hyperslab, MemType, NcError, Reserve, VarId};
use zonda_testkit::TempFolder;

/// A dataset with one record variable of two elements per record and one of one.
fn define(file: &Dataset) {
    let time = file.def_dim(b"time", 0).expect("def_dim");
    let x = file.def_dim(b"x", 2).expect("def_dim");
    file.def_var(b"pair", ExtType::Double.nc_type(), &[time.0, x.0]).expect("def_var");
    file.def_var(b"one", ExtType::Short.nc_type(), &[time.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
}

fn code<T: std::fmt::Debug>(result: zonda::Result<T>) -> NcError {
    result.expect_err("to be refused").code()
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(Memory::new())
}

#[test]
fn a_shared_reader_sees_each_record_without_sync() {
    let folder = TempFolder::new("share");
    for format in FORMATS {
        let path = folder.file(&format!("{format:?}.nc"));
        let on_disk = |create| -> Arc<dyn Storage> {
            let sync = zonda::storage::SyncLevel::None;
            Arc::new(File::open(&path, true, create, sync).expect("open"))
        };
        let shared = memory();
        let pairs = [
            (Arc::clone(&shared), shared),
            (on_disk(zonda::storage::Create::Truncate), on_disk(zonda::storage::Create::MustExist)),
        ];
        for (for_writer, for_reader) in pairs {
            let writer = create(&for_writer, format, true);
            define(&writer);
            let reader = open(&for_reader, false, true).expect("open");
            assert_eq!(code(get(&reader, VarId(0), &[0, 0], &[1, 2])), NcError::InvalidCoords);
            for n in 0..20 {
                put(&writer, VarId(0), &[n, 0], &[1, 2], &[n as f64, 0.5]).expect("put");
                let got = get(&reader, VarId(0), &[n, 0], &[1, 2]).expect("the record just put");
                assert_eq!(got, [n as f64, 0.5]);
                assert_eq!(shape(&reader, VarId(1)), [n + 1]);
                assert_eq!(get(&reader, VarId(1), &[n], &[1]).expect("get"), [-32767.0]);
                assert_eq!(
                    code(get(&reader, VarId(0), &[n + 1, 0], &[1, 2])),
                    NcError::InvalidCoords
                );
            }
            // Several at once, met by a request that begins among the known ones.
            put(&writer, VarId(1), &[20], &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]).expect("put");
            assert_eq!(
                get(&reader, VarId(1), &[18], &[7]).expect("get")[2..],
                [1.0, 2.0, 3.0, 4.0, 5.0]
            );
            // The same with strides, whose checks come in another order.
            put(&writer, VarId(1), &[25], &[5], &[6.0, 7.0, 8.0, 9.0, 10.0]).expect("put");
            let slab = Hyperslab { start: &[20], count: &[5], stride: Some(&[2]) };
            let mut bytes = [0; 40];
            let mem = Some(MemType::F64);
            let _ = reader.get(VarId(1), &slab, mem, &mut bytes).expect("strided");
            assert_eq!(bytes[32..], 9.0f64.to_ne_bytes());
            reader.close().expect("close");
            writer.close().expect("close");
        }
    }
}

#[test]
fn without_share_both_sides_sync() {
    for layers in ["memory", "cache:1:2,memory", "cache,memory"] {
        let base = memory();
        let own = |layers| stacked(layers, Arc::clone(&base)).0;
        let writer = create(&own(layers), Format::Cdf2, false);
        define(&writer);
        let reader = open(&own(layers), false, false).expect("open");
        put(&writer, VarId(0), &[0, 0], &[3, 2], &[1., 2., 3., 4., 5., 6.]).expect("put");
        assert_eq!(code(get(&reader, VarId(0), &[0, 0], &[1, 2])), NcError::InvalidCoords);
        reader.sync().expect("sync");
        assert_eq!(shape(&reader, VarId(0)), [0, 2], "{layers}: the writer has not synced");
        writer.sync().expect("sync");
        assert_eq!(code(get(&reader, VarId(0), &[2, 0], &[1, 2])), NcError::InvalidCoords);
        reader.sync().expect("sync");
        assert_eq!(shape(&reader, VarId(0)), [3, 2]);
        assert_eq!(get(&reader, VarId(0), &[2, 0], &[1, 2]).expect("get"), [5., 6.]);
        // Changed values, too, come with a sync of both.
        put(&writer, VarId(0), &[2, 0], &[1, 2], &[7., 8.]).expect("put");
        writer.sync().expect("sync");
        reader.sync().expect("sync");
        assert_eq!(get(&reader, VarId(0), &[2, 0], &[1, 2]).expect("get"), [7., 8.]);
        writer.close().expect("close");
    }
}

#[test]
fn a_reader_syncs_to_new_definitions() {
    for layers in ["memory", "cache:1:2,memory"] {
        let base = memory();
        let own = || stacked(layers, Arc::clone(&base)).0;
        let writer = create(&own(), Format::Cdf1, false);
        define(&writer);
        put(&writer, VarId(0), &[0, 0], &[1, 2], &[1., 2.]).expect("put");
        writer.sync().expect("sync");
        let reader = open(&own(), false, false).expect("open");
        writer.redef().expect("redef");
        assert_eq!(code(writer.sync()), NcError::InDefine);
        writer.def_dim(b"more", 3).expect("def_dim");
        writer.def_var(b"new", ExtType::Int.nc_type(), &[2]).expect("def_var");
        let long = vec![b'x'; 3000];
        let _ = writer.put_att(VarId::GLOBAL, b"long", 2, 3000, None, &long).expect("put_att");
        writer.enddef(Reserve::Default).expect("enddef");
        put(&writer, VarId(2), &[0], &[3], &[4., 5., 6.]).expect("put");
        writer.sync().expect("sync");
        assert!(reader.meta(|meta| meta.find_var(b"new")).is_err());
        reader.sync().expect("sync");
        assert_eq!(reader.meta(|meta| meta.find_var(b"new")).expect("find_var"), VarId(2));
        assert_eq!(get(&reader, VarId(2), &[0], &[3]).expect("get"), [4., 5., 6.]);
        assert_eq!(get(&reader, VarId(0), &[0, 0], &[1, 2]).expect("moved data"), [1., 2.]);
        writer.close().expect("close");
    }
}

#[test]
fn redef_with_share_reads_the_definitions_again() {
    let base = memory();
    let first = create(&base, Format::Cdf2, true);
    define(&first);
    put(&first, VarId(0), &[0, 0], &[1, 2], &[1., 2.]).expect("put");
    let second = open(&base, true, true).expect("open");
    // The first adds a variable, which the second has to find before it adds its own.
    first.redef().expect("redef");
    first.def_var(b"third", ExtType::Int.nc_type(), &[0]).expect("def_var");
    first.enddef(Reserve::Default).expect("enddef");
    put(&first, VarId(2), &[3], &[1], &[9.]).expect("put");
    assert!(second.meta(|meta| meta.find_var(b"third")).is_err());
    second.redef().expect("redef");
    assert_eq!(second.meta(|meta| meta.find_var(b"third")).expect("find_var"), VarId(2));
    assert_eq!(second.meta(|meta| meta.n_records()), 4);
    second.def_var(b"fourth", ExtType::Int.nc_type(), &[0]).expect("def_var");
    second.enddef(Reserve::Default).expect("enddef");
    second.close().expect("close");
    let reader = open(&base, false, false).expect("open");
    assert_eq!(get(&reader, VarId(0), &[0, 0], &[1, 2]).expect("get"), [1., 2.]);
    assert_eq!(get(&reader, VarId(2), &[3], &[1]).expect("get"), [9.]);
    assert_eq!(get(&reader, VarId(3), &[0], &[4]).expect("get"), [-2_147_483_647.; 4]);
}

/// A put that added records and then could not write their number does so when it is repeated,
/// small puts included.
#[test]
fn a_record_count_that_failed_is_written_by_the_next_put() {
    for count in [1, 300] {
        for kind in [InjectedFault::Eio, InjectedFault::Enospc] {
            for nth in 1..=3 {
                let base = memory();
                let plan = FaultPlan { watched: Watched::Write, nth, onwards: false, kind };
                let never = FaultPlan { nth: u64::MAX, ..plan };
                let (storage, handles) = stacked(&format!("{never},memory"), Arc::clone(&base));
                let writer = create(&storage, Format::Cdf5, true);
                define(&writer);
                let reader = open(&base, false, true).expect("open");
                let values = vec![4.0; count];
                handles.faults[0].arm(plan);
                let mut n_met = 0;
                while let Err(error) = put(&writer, VarId(1), &[0], &[count], &values) {
                    assert!(matches!(error.code(), NcError::System(_)), "{error}");
                    n_met += 1;
                    assert!(n_met < 2, "the fault has passed");
                }
                assert_eq!(n_met, 1, "fill, values, count: {nth}");
                let got = get(&reader, VarId(1), &[0], &[count]).expect("get");
                assert_eq!(got, values);
                writer.close().expect("close");
            }
        }
    }
}

/// Records from many threads of one shared writer: the count in the file never falls behind.
#[test]
fn threads_of_a_shared_writer_publish_all_records() {
    for round in 0..20 {
        let base = memory();
        // Every other round writes of the count are held up by turns, as by a busy device.
        let base: Arc<dyn Storage> = match round % 2 {
            0 => base,
            _ => Arc::new(HeldUp { inner: base, n: AtomicU64::new(0) }),
        };
        let writer = create(&base, Format::Cdf2, true);
        define(&writer);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (writer, base) = (&writer, &base);
                scope.spawn(move || {
                    for i in 0..25 {
                        let record = i * 4 + thread;
                        put(writer, VarId(1), &[record], &[1], &[record as f64]).expect("put");
                        let reader = open(base, false, true).expect("open");
                        let got = get(&reader, VarId(1), &[record], &[1]).expect("get");
                        assert_eq!(got, [record as f64]);
                    }
                });
            }
        });
        // As the file stands, before close.
        let reader = open(&base, false, false).expect("open");
        assert_eq!(shape(&reader, VarId(1)), [100]);
        writer.close().expect("close");
    }
}

/// Every third write of the record count takes longer than the next.
#[derive(Debug)]
struct HeldUp {
    inner: Arc<dyn Storage>,
    n: AtomicU64,
}

impl Storage for HeldUp {
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        if at == 4 && self.n.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            std::thread::sleep(Duration::from_micros(300));
        }
        self.inner.write_at(at, data)
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.inner.read_at(at, buf)
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.inner.read_ranges(ranges)
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.inner.write_ranges(ranges)
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.inner.fill_at(at, len, element)
    }
    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }
    fn rest(&self) {
        self.inner.rest();
    }
    fn len(&self) -> Result<u64, StorageError> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.inner.set_len(len)
    }
    fn barrier(&self) -> Result<(), StorageError> {
        self.inner.barrier()
    }
    fn sync(&self) -> Result<(), StorageError> {
        self.inner.sync()
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        self.inner.invalidate()
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        self.inner.stamp()
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.describe(f)
    }
}
