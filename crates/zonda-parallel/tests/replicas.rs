//! Replicas of a classic file on simulated teams: the same bytes for any number of ranks, the same errors on all of them, and
//! differences between ranks found.

use std::path::Path;
use std::sync::Arc;

use zonda_classic::{ClassicFile, Version};
use zonda_format::{
    Access, Dispatch, DispatchWrite, FillMode, GroupId, Reserve, Transfer, Values, VarRef,
};
use zonda_model::{Hyperslab, MemType, NcError, VarId};
use zonda_parallel::{ParallelError, Replica, ReplicaSidecars, common};
use zonda_storage::layer::{FaultLayer, FaultPlan, InjectedFault, Watched};
use zonda_storage::{Create, Storage, StorageOptions, open_with_sidecars};
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
        let sidecars = opened.sidecars.filter(|_| is_first);
        let replica = Arc::new(Replica::new(storage));
        let neighbours = ReplicaSidecars::new(&replica, sidecars);
        let below: Arc<dyn Storage> = Arc::<Replica>::clone(&replica);
        let file = ClassicFile::create(below, Some(Arc::new(neighbours)), Version::Cdf5, true);
        Shared { team, replica, file }
    }

    fn common<T>(
        &mut self,
        call: &'static str,
        work: impl FnOnce(&mut dyn DispatchWrite) -> T,
    ) -> Result<T, ParallelError> {
        let Shared { team, replica, file } = self;
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

#[test]
fn a_team_of_one_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alone.nc");
    let mut shared = Shared::create(&zonda_team::Alone, &path, None);
    assert_eq!(shared.make(), Ok(None));
    assert_eq!(shared.file.n_records(), RECORDS as u64);
}
