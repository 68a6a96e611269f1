//! What makes data visible is written behind a barrier: of a machine that stops at any moment nobody finds a header, or a
//! record count, whose data are not there. (Under `NC_SHARE` the count is always up to date, which promises other things.)

use std::fmt;
use std::sync::{Arc, Mutex};

use zonda_classic::{ClassicFile, Reserve, Version};
use zonda_format::{Access, AttPut, Dispatch, DispatchWrite, GroupId, Transfer, Values};
use zonda_model::{Hyperslab, MemType, VarId};
use zonda_storage::backend::Memory;
use zonda_storage::{Advice, ReadRange, Storage, StorageError, StorageStamp, WriteRange};

/// What a storage was told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Write { at: u64, len: u64 },
    Barrier,
}

/// A memory that keeps what it was told.
#[derive(Default)]
struct Log {
    below: Memory,
    told: Mutex<Vec<Told>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    fn say(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Storage for Log {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.below.read_at(at, buf)
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.below.read_ranges(ranges)
    }
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.say(Told::Write { at, len: data.len() as u64 });
        self.below.write_at(at, data)
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().try_for_each(|range| self.write_at(range.at, range.data))
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.say(Told::Write { at, len });
        self.below.fill_at(at, len, element)
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn len(&self) -> Result<u64, StorageError> {
        self.below.len()
    }
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.below.set_len(len)
    }
    fn barrier(&self) -> Result<(), StorageError> {
        self.say(Told::Barrier);
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        self.barrier()
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        self.below.stamp()
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("log")
    }
}

/// Elements of a record: so long that some of them are a commit by themselves.
const WIDE: usize = 1 << 20;

/// Writes of data and of what makes them visible, which begins at byte 0 and ends at `header_len`. The number of the
/// latter that came after data.
fn check(told: &[Told], header_len: u64, what: &str) -> usize {
    let (mut n_pending, mut n_visible, mut had_data) = (0, 0, false);
    for (place, one) in told.iter().enumerate() {
        match one {
            Told::Barrier => n_pending = 0,
            Told::Write { at, .. } if *at >= header_len => {
                (n_pending, had_data) = (n_pending + 1, true)
            }
            Told::Write { at, len } => {
                assert_eq!(
                    n_pending, 0,
                    "{what}: call {place}, {len} bytes at {at}, shows what may not be there"
                );
                n_visible += usize::from(had_data);
            }
        }
    }
    n_visible
}

fn put(file: &ClassicFile, var: VarId, record: usize, n: usize, width: usize) {
    let bytes = vec![record as u8; n * width * 4];
    let (start, count) = ([record, 0], [n, width]);
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    let access = Access { var: var.into(), slab, mem: Some(MemType::I32) };
    file.shared_put_now(&mut Transfer::new(access), Values::plain(&bytes)).map(drop).expect("put");
}

#[test]
fn a_record_count_comes_behind_its_records() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let log = Arc::new(Log::default());
        let mut file = ClassicFile::create(log.clone(), None, version, false);
        file.def_dim(GroupId::ROOT, b"t", 0).expect("def_dim");
        file.def_dim(GroupId::ROOT, b"x", WIDE).expect("def_dim");
        file.def_dim(GroupId::ROOT, b"y", 10).expect("def_dim");
        let wide = file.def_var(GroupId::ROOT, b"wide", 4, &[0, 1]).expect("def_var");
        let small = file.def_var(GroupId::ROOT, b"small", 4, &[0, 2]).expect("def_var");
        let put_att = |file: &mut ClassicFile, text: &'static [u8]| {
            let owner = VarId::GLOBAL.into();
            let att = AttPut { owner, name: b"title", nc_type: 2, n_values: 5, mem: None };
            let put = file.put_att(&att, Values::plain(text));
            put.map(drop).expect("put_att");
        };
        put_att(&mut file, b"early");
        file.enddef(Reserve::Default).expect("enddef");
        let header_len = file.header().layout.begin_rec;
        let what = format!("{version:?}");
        // More than what is committed by itself, then few, with syncs between.
        (0..20).for_each(|record| put(&file, wide, record, 1, WIDE));
        let n_before = log.told.lock().unwrap().len();
        let n_by_itself = check(&log.told.lock().unwrap(), header_len, &what);
        assert!(n_by_itself > 0, "{what}: 80 MiB of records are committed before a sync");
        file.sync().expect("sync");
        for record in 20..23 {
            put(&file, small, record, 1, 10);
            file.sync().expect("sync");
        }
        assert!(log.told.lock().unwrap().len() > n_before);
        // A header that is written again, with data before it.
        put(&file, small, 23, 1, 10);
        put_att(&mut file, b"later");
        file.sync().expect("sync");
        put(&file, small, 24, 1, 10);
        file.close().expect("close");
        let n_visible = check(&log.told.lock().unwrap(), header_len, &what);
        assert!(n_visible >= n_by_itself + 6, "{what}: {n_visible} after {n_by_itself}");
    }
}
