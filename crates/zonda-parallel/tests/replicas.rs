//! Replicas of a classic file on simulated teams: the same bytes for any number of ranks, the same errors on all of them, and
//! differences between ranks found.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonda_classic::{ClassicFile, Version};
use zonda_format::{
    Access, Dispatch, DispatchWrite, FillMode, GroupId, Reserve, Transfer, Values, VarRef,
};
use zonda_model::{DimId, Hyperslab, MemType, NcError, VarId};
use zonda_parallel::{ParallelError, Replica, ReplicaSidecars, common};
use zonda_storage::layer::{FaultLayer, FaultPlan, InjectedFault, Watched};
use zonda_storage::neighbour::Refusal;
use zonda_storage::{
    Create, FoundSidecar, Sidecar, Sidecars, Storage, StorageError, StorageOptions,
    open_with_sidecars,
};
use zonda_team::{Step, Team, threads};

const COLUMNS: usize = 12;
const RECORDS: usize = 3;

fn step(call: &'static str) -> Step<'static> {
    Step { call, file: "test.nc" }
}

/// A file that a rank has open with others.
struct Shared<'t> {
    team: &'t dyn Team,
    replica: Arc<Replica>,
    file: ClassicFile,
    /// Journals that were made on this rank.
    n_journals: Arc<AtomicUsize>,
}

/// The neighbours of the file, which counts the journals that are made.
#[derive(Debug)]
struct Counted(Arc<dyn Sidecars>, Arc<AtomicUsize>);

impl Sidecars for Counted {
    fn create(&self, which: Sidecar) -> Result<Arc<dyn Storage>, StorageError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.create(which)
    }

    fn find(&self, which: Sidecar) -> Result<Option<FoundSidecar>, StorageError> {
        self.0.find(which)
    }

    fn find_of(&self, which: Sidecar, user: u32) -> Result<Option<FoundSidecar>, StorageError> {
        self.0.find_of(which, user)
    }

    fn refuse(&self, which: Sidecar, why: Refusal) -> StorageError {
        self.0.refuse(which, why)
    }

    fn remove(&self, which: Sidecar) -> Result<(), StorageError> {
        self.0.remove(which)
    }

    fn settle(&self) -> Result<(), StorageError> {
        self.0.settle()
    }

    fn replaceable(&self) -> bool {
        self.0.replaceable()
    }

    fn replace(&self) -> Result<(), StorageError> {
        self.0.replace()
    }
}

impl<'t> Shared<'t> {
    /// Creates the file on rank 0, and opens it on the others.
    fn create(team: &'t dyn Team, path: &Path, fault: Option<FaultPlan>) -> Shared<'t> {
        let is_first = team.rank() == 0;
        let options = StorageOptions {
            write: true,
            create: if is_first { Create::Truncate } else { Create::MustExist },
            share: true,
            ..StorageOptions::default()
        };
        // The others find the file that rank 0 has made.
        let first = is_first.then(|| open_with_sidecars(path, &options).unwrap());
        team.meet(step("nc_create_par")).unwrap();
        let opened = first.unwrap_or_else(|| open_with_sidecars(path, &options).unwrap());
        let storage: Arc<dyn Storage> = match fault.filter(|_| is_first) {
            Some(plan) => Arc::new(FaultLayer::new(opened.storage, plan)),
            None => opened.storage,
        };
        let n_journals = Arc::new(AtomicUsize::new(0));
        let counted =
            |sidecars| Arc::new(Counted(sidecars, Arc::clone(&n_journals))) as Arc<dyn Sidecars>;
        let sidecars = opened.sidecars.filter(|_| is_first).map(counted);
        let replica = Arc::new(Replica::new(storage));
        let neighbours = ReplicaSidecars::new(&replica, sidecars);
        let below: Arc<dyn Storage> = Arc::<Replica>::clone(&replica);
        let file = ClassicFile::create(below, Some(Arc::new(neighbours)), Version::Cdf5, true);
        Shared { team, replica, file, n_journals }
    }

    fn common<T>(
        &mut self,
        call: &'static str,
        work: impl FnOnce(&mut dyn DispatchWrite) -> T,
    ) -> Result<T, ParallelError> {
        let Shared { team, replica, file, .. } = self;
        common(*team, step(call), replica, || work(file.writer().expect("it can be written")))
    }

    fn define(&mut self, name: &str) {
        let root = GroupId::ROOT;
        let file = self.file.writer().expect("it can be written");
        file.set_fill(FillMode::NoFill).unwrap();
        let time = file.def_dim(root, b"time", 0).unwrap();
        let x = file.def_dim(root, b"x", COLUMNS).unwrap();
        file.def_var(root, b"fixed", 5, &[x.0]).unwrap();
        file.def_var(root, name.as_bytes(), 6, &[time.0, x.0]).unwrap();
    }

    /// Puts this rank's columns of one record, and of the variable without records.
    fn put(&mut self, record: usize) {
        let (rank, size) = (self.team.rank(), self.team.size());
        let columns = rank * COLUMNS / size..(rank + 1) * COLUMNS / size;
        if columns.is_empty() {
            return;
        }
        let values: Vec<u8> =
            columns.clone().flat_map(|x| ((record * 100 + x) as f64).to_ne_bytes()).collect();
        let (start, count) = ([record, columns.start], [1, columns.len()]);
        self.put_to(1, &start, &count, &values);
        self.put_to(0, &start[1..], &count[1..], &values);
    }

    fn put_to(&mut self, var: i32, start: &[usize], count: &[usize], values: &[u8]) {
        let slab = Hyperslab { start, count, stride: None };
        let var = VarRef { group: GroupId::ROOT, var: VarId(var) };
        let mut put = Transfer::new(Access { var, slab, mem: Some(MemType::F64) });
        let converted = self.file.shared_put_now(&mut put, Values::plain(values)).unwrap();
        assert_eq!(converted.out_of_range, 0);
    }

    /// Makes the file on all ranks, as far as nothing stops it. Gives the code of the first error.
    fn make(&mut self) -> Result<Option<NcError>, ParallelError> {
        self.define("wide");
        let code = |done: zonda_format::Result<()>| done.err().map(|error| error.code());
        let ended = self.common("nc_enddef", |file| file.enddef(Reserve::Default))?;
        if let Some(code) = code(ended) {
            return Ok(Some(code));
        }
        for record in 0..RECORDS {
            self.put(record);
        }
        self.team.meet(step("nc_sync")).unwrap();
        Ok(code(self.common("nc_sync", |file| file.sync())?))
    }
}

fn all_in<T: Send>(n: usize, body: impl Fn(&dyn Team) -> T + Sync) -> Vec<T> {
    threads::all(n, |team| body(team))
}

#[test]
fn any_number_of_ranks_makes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    // Each has a part of each record, so that all count the same records.
    for n in [1, 2, 3, 4, 7, 12] {
        let path = folder.path().join(format!("{n}.nc"));
        let ends = all_in(n, |team| {
            let mut shared = Shared::create(team, &path, None);
            assert_eq!(shared.make(), Ok(None));
            let closed =
                shared.common("nc_close", |file| file.close().map_err(|(error, _)| error.code()));
            assert!(matches!(closed, Ok(Ok(_))), "{closed:?}");
            shared.file.n_records()
        });
        assert_eq!(ends, vec![RECORDS as u64; n]);
        let bytes = std::fs::read(&path).unwrap();
        if n == 1 {
            expected = bytes;
            assert!(expected.len() > RECORDS * COLUMNS * 8);
        } else {
            assert!(bytes == expected, "{n} ranks");
        }
    }
}

/// Definitions in two parts, with two commits and a sync. Gives the first error of each of the four calls.
fn defined_twice(shared: &mut Shared<'_>) -> Result<Vec<Option<NcError>>, ParallelError> {
    let code = |done: zonda_format::Result<()>| done.err().map(|error| error.code());
    let mut codes = Vec::new();
    shared.define("wide");
    codes.push(code(shared.common("nc_enddef", |file| file.enddef(Reserve::Default))?));
    if shared.file.in_define_mode() {
        codes.push(code(shared.common("nc_enddef", |file| file.enddef(Reserve::Default))?));
    }
    codes.push(code(shared.common("nc_redef", |file| file.redef())?));
    let file = shared.file.writer().expect("it can be written");
    for n in 0..40 {
        let name = format!("attribute number {n}");
        let dim = file.def_dim(GroupId::ROOT, name.as_bytes(), n + 1);
        codes.push(dim.err().map(|error| error.code()));
    }
    for _ in 0..2 {
        codes.push(code(shared.common("nc_enddef", |file| file.enddef(Reserve::Default))?));
    }
    codes.push(code(shared.common("nc_sync", |file| file.sync())?));
    Ok(codes)
}

#[test]
fn an_error_of_rank_0_is_that_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.nc");
    let (mut n_failed, mut nth) = (0, 0);
    let expected = {
        let ends = all_in(4, |team| defined_twice(&mut Shared::create(team, &path, None)));
        ends[0].clone().unwrap()
    };
    loop {
        nth += 1;
        let before = n_failed;
        for (kind, onwards) in [(InjectedFault::Enospc, false), (InjectedFault::Eio, true)] {
            let plan = FaultPlan { watched: Watched::Any, nth, onwards, kind };
            let ends = all_in(4, |team| {
                let mut shared = Shared::create(team, &path, Some(plan));
                let codes = defined_twice(&mut shared).unwrap();
                (codes, shared.file.in_define_mode(), format!("{:?}", shared.file.header().layout))
            });
            assert!(ends.iter().all(|end| *end == ends[0]), "operation {nth}: {ends:?}");
            n_failed += usize::from(ends[0].0 != expected);
        }
        if n_failed == before {
            break;
        }
    }
    assert!(nth > 8, "only {nth} operations could fail");
}

#[test]
fn a_rank_with_other_definitions_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("differs.nc");
    let ends = all_in(3, |team| {
        let mut shared = Shared::create(team, &path, None);
        // A longer name makes a longer header.
        shared.define(if team.rank() == 2 {
            "a name that is much longer than that of the others, by far"
        } else {
            "wide"
        });
        shared.common("nc_enddef", |file| file.enddef(Reserve::Default)).map(|done| done.is_ok())
    });
    let texts: Vec<String> = ends.into_iter().map(|end| end.unwrap_err().to_string()).collect();
    assert!(texts[0].contains("another rank") && texts[1].contains("another rank"), "{texts:?}");
    assert!(texts[2].contains("this rank asked for"), "{texts:?}");
}

/// Definitions whose changes need a journal: headers of several pages, and then data that has to move. Gives the first
/// error of each call.
fn changed_by_journals(
    shared: &mut Shared<'_>,
    puts_records: bool,
) -> Result<Vec<Option<NcError>>, ParallelError> {
    let code = |done: zonda_format::Result<()>| done.err().map(|error| error.code());
    let dims = |shared: &mut Shared<'_>, numbers: std::ops::Range<usize>| {
        let file = shared.file.writer().expect("it can be written");
        for n in numbers {
            let name = format!("a dimension with a long name, number {n}");
            let _ = file.def_dim(GroupId::ROOT, name.as_bytes(), n + 1);
        }
    };
    let mut codes = Vec::new();
    shared.define("wide");
    dims(shared, 0..200);
    codes.push(code(shared.common("nc_enddef", |file| file.enddef(Reserve::Default))?));
    if puts_records {
        shared.put(0);
        shared.team.meet(step("nc_put_vara")).unwrap();
    }
    // Names on several pages change, and later so many are added that the data have to move.
    for more in [0..0, 200..900] {
        codes.push(code(shared.common("nc_redef", |file| file.redef())?));
        let file = shared.file.writer().expect("it can be written");
        for dim in [2, 60, 130, 190] {
            let name = format!("another {} name {dim}", more.end);
            let _ = file.rename_dim(GroupId::ROOT, DimId(dim), name.as_bytes());
        }
        dims(shared, more);
        for _ in 0..2 {
            codes.push(code(shared.common("nc_enddef", |file| file.enddef(Reserve::Default))?));
        }
    }
    codes.push(code(shared.common("nc_sync", |file| file.sync())?));
    let closed =
        shared.common("nc_close", |file| file.close().map_err(|(error, _)| error.code()))?;
    codes.push(closed.err());
    Ok(codes)
}

#[test]
fn changes_that_need_journals_are_those_of_one_rank() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for n in [1, 2, 5] {
        let path = folder.path().join(format!("journals {n}.nc"));
        let ends = all_in(n, |team| {
            let mut shared = Shared::create(team, &path, None);
            let codes = changed_by_journals(&mut shared, true);
            (codes, shared.n_journals.load(Ordering::Relaxed))
        });
        // Only rank 0 makes journals, and it does.
        assert!(ends[0].1 >= 2, "{n} ranks made {} journals", ends[0].1);
        assert!(ends.iter().all(|end| end.0 == ends[0].0), "{n} ranks: {ends:?}");
        for left in std::fs::read_dir(folder.path()).unwrap() {
            let name = left.unwrap().file_name();
            assert!(name.to_string_lossy().ends_with(".nc"), "{} was left", name.display());
        }
        let bytes = std::fs::read(&path).unwrap();
        if n == 1 {
            expected = bytes;
        } else {
            assert!(bytes == expected, "{n} ranks");
        }
    }
}

/// Makes a file of 4 MiB of data on as many ranks, and has its header grow so that all of them move. Gives the bytes of rank 0's messages meanwhile.
fn moved(path: &Path, n: usize) -> u64 {
    const ELEMS: usize = 512 << 10;
    let sent = threads::all(n, |team| {
        let mut shared = Shared::create(team, path, None);
        let file = shared.file.writer().expect("it can be written");
        file.set_fill(FillMode::NoFill).unwrap();
        let x = file.def_dim(GroupId::ROOT, b"x", ELEMS).unwrap();
        file.def_var(GroupId::ROOT, b"v", 6, &[x.0]).unwrap();
        assert!(shared.common("nc_enddef", |file| file.enddef(Reserve::Default)).unwrap().is_ok());
        if team.rank() == n - 1 {
            let values: Vec<u8> = (0..ELEMS).flat_map(|x| (x as f64).to_ne_bytes()).collect();
            shared.put_to(0, &[0], &[ELEMS], &values);
        }
        team.meet(step("nc_put_vara")).unwrap();
        assert!(shared.common("nc_redef", |file| file.redef()).unwrap().is_ok());
        let file = shared.file.writer().expect("it can be written");
        for nth in 0..500 {
            let name = format!("a dimension with a long name, number {nth}");
            file.def_dim(GroupId::ROOT, name.as_bytes(), nth + 1).unwrap();
        }
        let before = team.traffic();
        assert!(shared.common("nc_enddef", |file| file.enddef(Reserve::Default)).unwrap().is_ok());
        let sent = team.traffic().since(&before).total().bytes;
        let closed = shared.common("nc_close", |file| file.close().map_err(|error| error.0.code()));
        assert!(matches!(closed, Ok(Ok(_))), "{closed:?}");
        sent
    });
    sent[0]
}

#[test]
fn data_that_move_are_in_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = |n: usize| folder.path().join(format!("{n}.nc"));
    assert_eq!(moved(&path(1), 1), 0);
    let expected = std::fs::read(path(1)).unwrap();
    for n in [2, 4] {
        let sent = moved(&path(n), n);
        // The header is in it, and a line for each operation, twice for 4 ranks.
        assert!(sent < 200_000, "{n} ranks: {sent} bytes");
        assert!(std::fs::read(path(n)).unwrap() == expected, "{n} ranks");
    }
}

#[test]
fn a_fault_in_any_operation_is_that_of_all_with_journals_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.nc");
    let expected = {
        let ends =
            all_in(3, |team| changed_by_journals(&mut Shared::create(team, &path, None), false));
        ends[0].clone().unwrap()
    };
    let mut n_failed = 0;
    // No puts: what rank 0 meets in one of its own is its own.
    for nth in (1..200).step_by(3) {
        let plan =
            FaultPlan { watched: Watched::Any, nth, onwards: false, kind: InjectedFault::Enospc };
        let ends = all_in(3, |team| {
            let mut shared = Shared::create(team, &path, Some(plan));
            (changed_by_journals(&mut shared, false), format!("{:?}", shared.file.header().layout))
        });
        assert!(ends.iter().all(|end| *end == ends[0]), "operation {nth}: {ends:?}");
        n_failed += usize::from(ends[0].0.as_ref() != Ok(&expected));
    }
    assert!(n_failed > 4, "{n_failed}");
}

#[test]
fn a_rank_that_panics_leaves_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    for who in 0..3 {
        let path = folder.path().join(format!("panic {who}.nc"));
        let ends = threads::run(3, &threads::Options::default(), |team| {
            let mut shared = Shared::create(team, &path, None);
            shared.define("wide");
            shared.common("nc_enddef", |file| {
                assert_ne!(team.rank(), who, "this rank is to panic");
                file.enddef(Reserve::Default).is_ok()
            })
        });
        for (rank, end) in ends.into_iter().enumerate() {
            match end.end {
                threads::End::Panicked(text) if rank == who => {
                    assert!(text.contains("is to panic"))
                }
                threads::End::Returned(Err(ParallelError::Elsewhere { .. })) if rank != who => {}
                other => panic!("rank {rank} where {who} panics: {other:?}"),
            }
        }
    }
}

#[test]
fn a_team_of_one_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alone.nc");
    let mut shared = Shared::create(&zonda_team::Alone, &path, None);
    assert_eq!(shared.make(), Ok(None));
    assert_eq!(shared.file.n_records(), RECORDS as u64);
}

#[test]
fn who_holds_a_replica_hears_of_the_other_writers() {
    let plain: Arc<dyn Storage> = Arc::new(zonda_storage::backend::Memory::new());
    assert!(!plain.has_other_writers());
    let shared: Arc<dyn Storage> = Arc::new(Replica::new(plain));
    // Through a reference that is counted, twice, and through layers, too.
    assert!(shared.has_other_writers());
    assert!(Arc::new(Arc::clone(&shared)).has_other_writers());
    let plan =
        FaultPlan { watched: Watched::Any, nth: 1, onwards: false, kind: InjectedFault::Eio };
    assert!(FaultLayer::new(shared, plan).has_other_writers());
}
