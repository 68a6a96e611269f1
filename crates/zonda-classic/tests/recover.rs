//! A writer that dies at its n-th change, for every n: whoever opens the file next finds the old
//! definitions or the new ones, and all data either way.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use zonda_classic::{ClassicFile, JournalRecovery, Reserve, Version, recover};
use zonda_format::FormatError as _;
use zonda_format::{
    Access, AttPut, Destination, Dispatch, DispatchWrite, FillMode, GroupId, Transfer, Values,
};
use zonda_model::{ExtType, Hyperslab, MemType, VarId};
use zonda_storage::neighbour::Refusal;
use zonda_storage::{
    Advice, FoundSidecar, Op, ReadRange, Sidecar, Sidecars, Storage, StorageError, StorageStamp,
    WriteRange,
};

const RECORDS: usize = 5;

/// The file and its neighbours.
#[derive(Debug, Default)]
struct Files {
    bytes: BTreeMap<Option<Sidecar>, Vec<u8>>,
    /// Changes until the writer dies.
    left: Option<usize>,
    replaceable: bool,
}

impl Files {
    /// Counts a change; the dead make none. A write that the writer dies in stops at half.
    fn change(&mut self) -> Result<bool, StorageError> {
        let dead = || StorageError::Injected { op: Op::Write, nth: 0, at: 0, len: 0, errno: 5 };
        match &mut self.left {
            None => Ok(true),
            Some(0) => Err(dead()),
            Some(left) => {
                *left -= 1;
                Ok(*left > 0)
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Folder(Arc<Mutex<Files>>);

/// One of the files.
#[derive(Debug)]
struct InFolder(Folder, Option<Sidecar>);

impl Folder {
    fn with<R>(&self, which: Option<Sidecar>, f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        f(self.0.lock().unwrap().bytes.entry(which).or_default())
    }

    fn main(&self) -> Arc<dyn Storage> {
        Arc::new(InFolder(self.clone(), None))
    }

    fn sidecars(&self) -> Arc<dyn Sidecars> {
        Arc::new(self.clone())
    }
}

impl Storage for InFolder {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.0.with(self.1, |bytes| {
            let rest = bytes.get(at as usize..).unwrap_or_default();
            let n = rest.len().min(buf.len());
            buf[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        })
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }
    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        let whole = self.0.0.lock().unwrap().change()?;
        // A killed write stops at the end of a page.
        let page_end = (4096 - at as usize % 4096).min(data.len());
        let data = if whole { data } else { &data[..page_end / 4096 * page_end] };
        self.0.with(self.1, |bytes| {
            let end = at as usize + data.len();
            if bytes.len() < end && !data.is_empty() {
                bytes.resize(end, 0);
            }
            if !data.is_empty() {
                bytes[at as usize..end].copy_from_slice(data);
            }
        });
        Ok(())
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().try_for_each(|range| self.write_at(range.at, range.data))
    }
    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        let bytes: Vec<u8> = element.iter().copied().cycle().take(len as usize).collect();
        self.write_at(at, &bytes)
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.0.with(self.1, |bytes| bytes.len() as u64))
    }
    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.0.0.lock().unwrap().change()?;
        self.0.with(self.1, |bytes| bytes.resize(len as usize, 0));
        Ok(())
    }
    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.len()?, ..StorageStamp::default() })
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("folder")
    }
}

impl Sidecars for Folder {
    fn create(&self, which: Sidecar) -> Result<Arc<dyn Storage>, StorageError> {
        let mut files = self.0.lock().unwrap();
        files.change()?;
        files.bytes.insert(Some(which), Vec::new());
        Ok(Arc::new(InFolder(self.clone(), Some(which))))
    }
    fn find(&self, which: Sidecar) -> Result<Option<FoundSidecar>, StorageError> {
        let there = self.0.lock().unwrap().bytes.contains_key(&Some(which));
        let storage = Arc::new(InFolder(self.clone(), Some(which)));
        Ok(there.then_some(FoundSidecar { storage, in_use: false }))
    }
    fn find_of(&self, which: Sidecar, _: u32) -> Result<Option<FoundSidecar>, StorageError> {
        self.find(which)
    }
    fn refuse(&self, which: Sidecar, why: Refusal) -> StorageError {
        StorageError::Refused { path: Path::new(which.suffix()).into(), why, owner: None }
    }
    fn remove(&self, which: Sidecar) -> Result<(), StorageError> {
        let mut files = self.0.lock().unwrap();
        files.change()?;
        files.bytes.remove(&Some(which));
        Ok(())
    }
    fn settle(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn replaceable(&self) -> bool {
        self.0.lock().unwrap().replaceable
    }
    fn replace(&self) -> Result<(), StorageError> {
        let mut files = self.0.lock().unwrap();
        files.change()?;
        let copy = files.bytes.remove(&Some(Sidecar::Copy)).unwrap();
        files.bytes.insert(None, copy);
        Ok(())
    }
}

/// A redefinition, and what is left of the header's room before.
#[derive(Debug, Clone, Copy)]
enum Redefinition {
    /// An attribute of that many bytes.
    Attribute(usize),
    /// A record variable: records change their shape.
    RecordVar,
    /// A fixed-size variable before the records.
    FixedVar,
    /// The same, which takes more than all that there was.
    WideVar,
    /// One of each, which are not filled.
    UnfilledVars,
}

/// Elements of a variable, of each record of one with records.
const WIDTH: usize = 700;
/// So few that all data are less than what definitions need more: they land where none was.
const NARROW: usize = 30;

fn value(var: usize, index: usize) -> i32 {
    (var * 100_000 + index) as i32
}

/// `n_vars` variables of both kinds with all their records, without room in the header.
fn make(folder: &Folder, version: Version, n_vars: usize, width: usize) {
    let mut file = ClassicFile::create(folder.main(), Some(folder.sidecars()), version, false);
    let time = file.def_dim(GroupId::ROOT, b"time", 0).unwrap();
    let x = file.def_dim(GroupId::ROOT, b"x", width).unwrap();
    let int = ExtType::Int.nc_type();
    for var in 0..n_vars {
        let dims: &[i32] = if var % 2 == 0 { &[x.0] } else { &[time.0, x.0] };
        file.def_var(GroupId::ROOT, format!("variable_{var}").as_bytes(), int, dims).unwrap();
    }
    file.enddef(Reserve::Explicit { h_minfree: 0, v_align: 4, v_minfree: 0, r_align: 4 }).unwrap();
    for var in 0..n_vars {
        for record in 0..if var % 2 == 0 { 1 } else { RECORDS } {
            let values: Vec<u8> =
                (0..width).flat_map(|i| value(var, record * width + i).to_ne_bytes()).collect();
            let (start, count) = ([record, 0], [1, width]);
            let from = usize::from(var % 2 == 0);
            let slab = Hyperslab { start: &start[from..], count: &count[from..], stride: None };
            let access = Access { var: VarId(var as i32).into(), slab, mem: Some(MemType::I32) };
            let put = file.shared_put_now(&mut Transfer::new(access), Values::plain(&values));
            assert_eq!(put.unwrap().out_of_range, 0);
        }
    }
    file.close().unwrap();
}

fn redefine(folder: &Folder, what: Redefinition) -> zonda_format::Result<()> {
    let mut file = ClassicFile::open(folder.main(), Some(folder.sidecars()), true, false)?;
    file.redef()?;
    match what {
        Redefinition::Attribute(len) => {
            let text = vec![b'a'; len];
            let owner = VarId::GLOBAL.into();
            let att = AttPut { owner, name: b"more", nc_type: 2, n_values: len, mem: None };
            let put = file.put_att(&att, Values::plain(&text))?;
            assert_eq!(put.out_of_range, 0);
        }
        Redefinition::RecordVar => {
            file.def_var(GroupId::ROOT, b"more", ExtType::Double.nc_type(), &[0])?;
        }
        Redefinition::FixedVar => {
            file.def_var(GroupId::ROOT, b"more", ExtType::Double.nc_type(), &[1])?;
        }
        Redefinition::UnfilledVars => {
            let was = file.set_fill(FillMode::NoFill)?;
            assert_eq!(was, FillMode::Fill);
            let double = ExtType::Double.nc_type();
            file.def_var(GroupId::ROOT, b"more", double, &[1])?;
            file.def_var(GroupId::ROOT, b"most", double, &[0, 1])?;
        }
        Redefinition::WideVar => {
            let y = file.def_dim(GroupId::ROOT, b"y", 900)?;
            file.def_var(GroupId::ROOT, b"more", ExtType::Double.nc_type(), &[y.0])?;
        }
    }
    file.enddef(Reserve::Default)?;
    file.close().map_err(|(error, _)| error)?;
    Ok(())
}

/// Everything that was put is there; gives whether the redefinition is.
fn check(folder: &Folder, n_vars: usize, width: usize, shown: &str) -> bool {
    let file = ClassicFile::open(folder.main(), Some(folder.sidecars()), false, false)
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    for var in 0..n_vars {
        let records = if var % 2 == 0 { 1 } else { RECORDS };
        let mut bytes = vec![0; records * width * 4];
        let (start, count) = ([0, 0], [records, width]);
        let from = usize::from(var % 2 == 0);
        let slab = Hyperslab { start: &start[from..], count: &count[from..], stride: None };
        let access = Access { var: VarId(var as i32).into(), slab, mem: Some(MemType::I32) };
        let got = file.get_now(&mut Transfer::new(access), Destination::plain(&mut bytes));
        let got = got.unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(got.out_of_range, 0);
        for (index, found) in bytes.as_chunks::<4>().0.iter().enumerate() {
            assert_eq!(i32::from_ne_bytes(*found), value(var, index), "{shown}: {var} {index}");
        }
    }
    let header = file.header();
    header.find_att(VarId::GLOBAL, b"more").is_ok() || header.find_var(b"more").is_ok()
}

#[test]
fn a_writer_may_die_at_any_change() {
    let cases = [
        (6, Redefinition::Attribute(10), true),
        (6, Redefinition::Attribute(300), false),
        (6, Redefinition::Attribute(3000), false),
        (120, Redefinition::Attribute(10), true),
        (120, Redefinition::Attribute(3000), false),
        (6, Redefinition::RecordVar, false),
        (6, Redefinition::FixedVar, false),
        (6, Redefinition::UnfilledVars, false),
        (120, Redefinition::RecordVar, false),
    ];
    let cases = cases.map(|(n_vars, what, room)| (n_vars, WIDTH, what, room));
    let narrow = [
        (2, NARROW, Redefinition::Attribute(3000), false),
        (3, NARROW, Redefinition::Attribute(9000), false),
        (2, NARROW, Redefinition::RecordVar, false),
        (3, NARROW, Redefinition::WideVar, false),
        (3, NARROW, Redefinition::UnfilledVars, false),
        (40, NARROW, Redefinition::Attribute(80_000), false),
    ];
    let mut kinds = BTreeMap::new();
    for (turn, version) in [Version::Cdf1, Version::Cdf2, Version::Cdf5].into_iter().enumerate() {
        for (i, (n_vars, width, what, room)) in cases.into_iter().chain(narrow).enumerate() {
            // In a short run each case in one of the versions.
            if !zonda_testkit::by(i % 3 == turn, true) {
                continue;
            }
            let made = Folder(Arc::default());
            make(&made, version, n_vars, width);
            if room {
                // Once without dying: the next one finds the room that this one left.
                redefine(&made, Redefinition::Attribute(1)).unwrap();
            }
            let bytes = made.0.lock().unwrap().bytes.clone();
            let files = Files { bytes: bytes.clone(), left: None, replaceable: true };
            let whole = Folder(Arc::new(Mutex::new(files)));
            redefine(&whole, what).unwrap();
            for replaceable in [true, false] {
                let mut died_at = 0;
                loop {
                    let bytes = bytes.clone();
                    let files = Files { bytes, left: Some(died_at), replaceable };
                    let folder = Folder(Arc::new(Mutex::new(files)));
                    let done = redefine(&folder, what).is_ok();
                    folder.0.lock().unwrap().left = None;
                    let shown = format!(
                        "{version:?}, {n_vars} variables of {width}, {what:?}, {replaceable}, died at {died_at}"
                    );
                    let recovery = recover(&*folder.main(), &folder.sidecars()).unwrap();
                    *kinds.entry(format!("{recovery:?}")).or_insert(0) += 1;
                    let new = check(&folder, n_vars, width, &shown);
                    assert!(new || !done || room, "{shown}: the definitions are lost");
                    let left: Vec<_> = folder.0.lock().unwrap().bytes.keys().copied().collect();
                    assert_eq!(left, [None], "{shown}");
                    if new && !room {
                        // By a copy or in place, in one go or by the next one: the same bytes.
                        let same =
                            whole.with(None, |whole| folder.with(None, |found| found == whole));
                        assert!(same, "{shown}: other bytes than without dying");
                    }
                    assert_eq!(
                        recover(&*folder.main(), &folder.sidecars()).unwrap(),
                        JournalRecovery::Nothing
                    );
                    if done {
                        assert!(died_at > 0, "{shown}: nothing was written");
                        break;
                    }
                    died_at += 1;
                }
            }
        }
    }
    for kind in ["Nothing", "Untouched", "Header", "Move"] {
        assert!(kinds.contains_key(kind), "no death led to {kind}: {kinds:?}");
    }
}

/// A file that is put back as it was before the writer died, its journal left beside it.
#[test]
fn a_restored_file_is_not_taken_for_the_one_that_was_being_changed() {
    let mut kinds = BTreeMap::new();
    for (n_vars, width, what) in [
        (6, WIDTH, Redefinition::Attribute(3000)),
        (120, WIDTH, Redefinition::Attribute(3000)),
        (6, WIDTH, Redefinition::RecordVar),
        (6, WIDTH, Redefinition::FixedVar),
        (3, NARROW, Redefinition::Attribute(9000)),
        (3, NARROW, Redefinition::WideVar),
    ] {
        let made = Folder(Arc::default());
        make(&made, Version::Cdf2, n_vars, width);
        let bytes = made.0.lock().unwrap().bytes.clone();
        for died_at in 0.. {
            let files = Files { bytes: bytes.clone(), left: Some(died_at), replaceable: false };
            let folder = Folder(Arc::new(Mutex::new(files)));
            let done = redefine(&folder, what).is_ok();
            {
                let mut files = folder.0.lock().unwrap();
                files.left = None;
                files.bytes.insert(None, bytes[&None].clone());
            }
            let shown = format!("{n_vars} variables, {what:?}, died at {died_at}");
            check(&folder, n_vars, width, &shown);
            let recovery = recover(&*folder.main(), &folder.sidecars()).unwrap();
            *kinds.entry(format!("{recovery:?}")).or_insert(0) += 1;
            check(&folder, n_vars, width, &shown);
            if recovery == JournalRecovery::NotItsJournal {
                let open =
                    || ClassicFile::open(folder.main(), Some(folder.sidecars()), true, false);
                assert_eq!(open().unwrap_err().nc_error().code(), 1, "{shown}");
                folder.sidecars().remove(Sidecar::Journal).unwrap();
                open().unwrap_or_else(|error| panic!("{shown}: {error}"));
            }
            if done {
                break;
            }
        }
    }
    assert!(kinds.contains_key("NotItsJournal") && !kinds.contains_key("Move"), "{kinds:?}");
}
