//! Files that the ranks of simulated teams write together: the same bytes for any number of ranks, and what each rank is told.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, DimId, Endianness, FillMode, Format, GroupId, Hyperslab, MemType,
    NcError, OpenOptions, Reserve, StorageRequest, VarId, VarRef,
};

const FORMATS: [Format; 5] =
    [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];
const ROWS: usize = 12;
const COLUMNS: usize = 10;
const RECORDS: usize = 3;

fn created(team: &threads::Threads, path: &Path, format: Format) -> zonda::Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    Dataset::create_parallel(team, path, &CreateOptions { format, ..CreateOptions::default() })
}

fn opened(team: &threads::Threads, path: &Path, write: bool) -> zonda::Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    Dataset::open_parallel(team, path, &OpenOptions { write, ..OpenOptions::default() })
}

fn slab<'a>(start: &'a [usize], count: &'a [usize]) -> Hyperslab<'a> {
    Hyperslab { start, count, stride: None }
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn put(
    file: &Dataset,
    var: VarId,
    start: &[usize],
    count: &[usize],
    values: &[i32],
) -> zonda::Result<()> {
    let done = file.put(var, &slab(start, count), Some(MemType::I32), &bytes(values))?;
    assert_eq!(done.out_of_range, 0);
    Ok(())
}

fn get(file: &Dataset, var: VarId, start: &[usize], count: &[usize]) -> zonda::Result<Vec<i32>> {
    let mut out = vec![0; count.iter().product::<usize>() * 4];
    let done = file.get(var, &slab(start, count), Some(MemType::I32), &mut out)?;
    assert_eq!(done.out_of_range, 0);
    Ok(out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect())
}

/// The part of `n` things that is a rank's: as many as possible are equally large, and the last may be empty.
fn part(n: usize, team: &dyn Team) -> std::ops::Range<usize> {
    let each = n.div_ceil(team.size());
    let begin = (each * team.rank()).min(n);
    begin..(begin + each).min(n)
}

fn value(record: usize, row: usize, column: usize) -> i32 {
    (record * 10_000 + row * 100 + column) as i32
}

struct Vars {
    fixed: VarId,
    growing: VarId,
    sparse: VarId,
    scalar: VarId,
}

fn define(file: &Dataset, is_filled: bool) -> Vars {
    let fill = if is_filled { FillMode::Fill } else { FillMode::NoFill };
    file.set_fill(fill).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let y = file.def_dim(b"y", ROWS).unwrap();
    let x = file.def_dim(b"x", COLUMNS).unwrap();
    let var = |name: &[u8], dims: &[DimId]| {
        let dims: Vec<i32> = dims.iter().map(|dim| dim.0).collect();
        file.def_var(name, 4, &dims).unwrap()
    };
    let vars = Vars {
        fixed: var(b"fixed", &[y, x]),
        growing: var(b"growing", &[time, y, x]),
        sparse: var(b"sparse", &[y, x]),
        scalar: var(b"scalar", &[]),
    };
    if file.is_hdf5() {
        let chunks = [2, 5, 4];
        file.def_var_chunking(vars.growing.into(), StorageRequest::Chunked, Some(&chunks)).unwrap();
        file.def_var_chunking(vars.sparse.into(), StorageRequest::Chunked, Some(&[5, 3])).unwrap();
        file.def_var_endian(vars.sparse.into(), Endianness::Big).unwrap();
    }
    vars
}

/// What a rank does to make the file.
fn live(team: &threads::Threads, path: &Path, format: Format, is_filled: bool) {
    let file = created(team, path, format).unwrap();
    let vars = define(&file, is_filled);
    let history = format!("written by {} ranks of which this is {}", 1, team.rank());
    put_text(&file, VarRef::group(GroupId::ROOT), b"history", history.as_bytes());
    file.enddef(Reserve::Default).unwrap();
    // Alone: rows of a variable of fixed shape.
    for row in part(ROWS, team) {
        let values: Vec<i32> = (0..COLUMNS).map(|column| value(0, row, column)).collect();
        put(&file, vars.fixed, &[row, 0], &[1, COLUMNS], &values).unwrap();
    }
    // Together: records, each rank its columns; the last ranks may have none.
    file.set_collective(vars.growing, true).unwrap();
    let columns = part(COLUMNS, team);
    for record in 0..RECORDS {
        let values: Vec<i32> = (0..ROWS)
            .flat_map(|row| columns.clone().map(move |column| value(record, row, column)))
            .collect();
        let (start, count) =
            ([record, 0, columns.start.min(COLUMNS - 1)], [1, ROWS, columns.len()]);
        put(&file, vars.growing, &start, &count, &values).unwrap();
        // All know of the record when the put returns.
        let len = file.meta(|meta| meta.n_records());
        assert_eq!(len, record as u64 + 1, "rank {}", team.rank());
    }
    // Every third element, the others stay as they are.
    file.set_collective(vars.growing, false).unwrap();
    if team.rank() == 0 {
        let strided = Hyperslab { start: &[0, 0], count: &[ROWS, 3], stride: Some(&[1, 3]) };
        let values: Vec<i32> = (0..ROWS * 3).map(|n| n as i32).collect();
        let done = file.put(vars.sparse, &strided, Some(MemType::I32), &bytes(&values)).unwrap();
        assert_eq!(done.out_of_range, 0);
        put(&file, vars.scalar, &[], &[], &[42]).unwrap();
    }
    file.sync().unwrap();
    // What other ranks put is seen after a sync.
    let whole = get(&file, vars.growing, &[0, 0, 0], &[RECORDS, ROWS, COLUMNS]).unwrap();
    assert_eq!(whole, expected_growing(), "rank {}", team.rank());
    file.close().unwrap();
}

fn put_text(file: &Dataset, owner: VarRef, name: &[u8], text: &[u8]) {
    let done = file.put_att(owner, name, 2, text.len(), Some(MemType::Text), text).unwrap();
    assert_eq!(done.out_of_range, 0);
}

fn expected_growing() -> Vec<i32> {
    let each = |record| {
        (0..ROWS).flat_map(move |row| (0..COLUMNS).map(move |column| value(record, row, column)))
    };
    (0..RECORDS).flat_map(each).collect()
}

#[test]
fn any_number_of_ranks_makes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for is_filled in [false, true] {
            let mut first = None;
            for n in [1, 2, 3, 5, 16] {
                let path = folder.path().join(format!("{n}.nc"));
                threads::all(n, |team| live(team, &path, format, is_filled));
                let made = std::fs::read(&path).unwrap();
                let what = format!("{format:?}, filled {is_filled}, {n} ranks");
                assert!(made == *first.get_or_insert_with(|| made.clone()), "{what}");
            }
            let file =
                Dataset::open(&folder.path().join("16.nc"), &OpenOptions::default()).unwrap();
            let var = |name: &[u8]| file.meta(|meta| meta.find_var(name)).unwrap();
            let rows: Vec<i32> =
                (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |x| value(0, row, x))).collect();
            assert_eq!(get(&file, var(b"fixed"), &[0, 0], &[ROWS, COLUMNS]).unwrap(), rows);
            let growing = get(&file, var(b"growing"), &[0, 0, 0], &[RECORDS, ROWS, COLUMNS]);
            assert_eq!(growing.unwrap(), expected_growing());
            let sparse = get(&file, var(b"sparse"), &[0, 0], &[ROWS, COLUMNS]).unwrap();
            for (n, value) in sparse.iter().enumerate() {
                let (row, column) = (n / COLUMNS, n % COLUMNS);
                let is_put = column % 3 == 0 && column < 9;
                if is_put {
                    assert_eq!(*value, (row * 3 + column / 3) as i32);
                } else if is_filled {
                    assert_eq!(*value, -2147483647, "{format:?} at {n}");
                }
            }
            assert_eq!(get(&file, var(b"scalar"), &[], &[]).unwrap(), [42]);
        }
    }
}

#[test]
fn a_rank_with_a_wrong_argument_has_its_error_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join("x.nc");
        threads::all(4, |team| {
            let file = created(team, &path, format).unwrap();
            let vars = define(&file, false);
            file.enddef(Reserve::Default).unwrap();
            file.set_collective(vars.fixed, true).unwrap();
            file.set_collective(vars.growing, true).unwrap();
            let row = if team.rank() == 2 { ROWS + 5 } else { team.rank() };
            let done = put(&file, vars.fixed, &[row, 0], &[1, 1], &[7]);
            let code = done.map_or_else(|error| error.code().code(), |()| 0);
            let expected = if team.rank() == 2 { NcError::InvalidCoords.code() } else { 0 };
            assert_eq!(code, expected, "{format:?} rank {}", team.rank());
            // And the next call meets all of them.
            put(&file, vars.growing, &[1, team.rank(), 0], &[1, 1, 1], &[9]).unwrap();
            assert_eq!(file.meta(|meta| meta.n_records()), 2);
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
        assert_eq!(get(&file, growing, &[1, 0, 0], &[1, 4, 1]).unwrap(), [9; 4]);
    }
}

#[test]
fn growing_alone_is_refused_where_the_format_cannot() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join("x.nc");
        threads::all(3, |team| {
            let file = created(team, &path, format).unwrap();
            let vars = define(&file, false);
            file.enddef(Reserve::Default).unwrap();
            let done = put(&file, vars.growing, &[team.rank(), 0, 0], &[1, 1, 1], &[7]);
            let code = done.map_or_else(|error| error.code().code(), |()| 0);
            let is_hdf5 = format.is_hdf5();
            assert_eq!(code, if is_hdf5 { NcError::CantExtend.code() } else { 0 });
            file.sync().unwrap();
            let len = file.meta(|meta| meta.n_records());
            assert_eq!(len, if is_hdf5 { 0 } else { 3 }, "{format:?}");
            file.close().unwrap();
        });
    }
}

#[test]
fn definitions_that_differ_are_one_error_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join("x.nc");
        threads::all(4, |team| {
            let file = created(team, &path, format).unwrap();
            file.def_dim(b"equal", 4).unwrap();
            let len = if team.rank() == 3 { 6 } else { 5 };
            file.def_dim(b"other", len).unwrap();
            let error = file.enddef(Reserve::Default).unwrap_err();
            assert_eq!(error.code(), NcError::Mpi);
            let text = error.to_string();
            assert!(text.contains("other, 5") && text.contains("other, 6"), "{text}");
            assert!(!text.contains("equal"), "{text}");
            assert!(file.close().is_err());
            assert!(!file.is_open());
        });
    }
}

#[test]
fn calls_in_another_order_are_an_error_that_names_both() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Cdf5, Format::NetCdf4] {
        let path = folder.path().join("x.nc");
        threads::all(3, |team| {
            let file = created(team, &path, format).unwrap();
            let vars = define(&file, false);
            file.enddef(Reserve::Default).unwrap();
            file.set_collective(vars.fixed, true).unwrap();
            let done = match team.rank() {
                1 => file.sync(),
                _ => put(&file, vars.fixed, &[0, 0], &[1, 1], &[7]),
            };
            let text = done.unwrap_err().to_string();
            assert!(text.contains("nc_sync") && text.contains("nc_put_var"), "{text}");
            // They can go on.
            file.close().unwrap();
        });
    }
}

/// A program that has closed a file may put another one in its place, as PnetCDF's test `scalar` does.
#[test]
fn no_rank_has_closed_a_file_while_another_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Cdf2, Format::NetCdf4] {
        for aborts in [false, true] {
            let path = folder.path().join("x.nc");
            let n_reading = std::sync::atomic::AtomicUsize::new(3);
            threads::all(3, |team| {
                let file = created(team, &path, format).unwrap();
                define(&file, true);
                file.close().unwrap();
                let file = opened(team, &path, false).unwrap();
                if team.rank() == 2 {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                n_reading.fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
                if aborts {
                    file.abort().unwrap()
                } else {
                    file.close().unwrap()
                };
                assert_eq!(n_reading.load(std::sync::atomic::Ordering::Acquire), 0);
                assert!(!file.is_open() && file.close().unwrap_err().code() == NcError::BadId);
            });
        }
    }
}

#[test]
fn ranks_open_what_is_there_and_change_it() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join("x.nc");
        let team_of_one: Arc<dyn Team> = Arc::new(zonda::team::Alone);
        let options = CreateOptions { format, ..CreateOptions::default() };
        let file = Dataset::create_parallel(team_of_one, &path, &options).unwrap();
        let vars = define(&file, true);
        file.enddef(Reserve::Default).unwrap();
        let row: Vec<i32> = (0..COLUMNS as i32).collect();
        file.set_collective(vars.growing, true).unwrap();
        put(&file, vars.growing, &[0, 0, 0], &[1, 1, COLUMNS], &row).unwrap();
        file.close().unwrap();
        threads::all(5, |team| {
            let file = opened(team, &path, true).unwrap();
            let var = |name: &[u8]| file.meta(|meta| meta.find_var(name)).unwrap();
            let growing = var(b"growing");
            assert_eq!(get(&file, growing, &[0, 0, 0], &[1, 1, COLUMNS]).unwrap(), row);
            file.set_collective(growing, true).unwrap();
            put(&file, growing, &[2, team.rank(), 0], &[1, 1, COLUMNS], &row).unwrap();
            file.redef().unwrap();
            put_text(&file, VarRef::from(growing), b"units", b"m");
            file.def_dim(b"more", 3).unwrap();
            file.enddef(Reserve::Default).unwrap();
            put(&file, growing, &[3, team.rank(), 0], &[1, 1, COLUMNS], &row).unwrap();
            file.close().unwrap();
        });
        threads::all(3, |team| {
            let file = opened(team, &path, false).unwrap();
            let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
            for record in [2, 3] {
                for rank in 0..5 {
                    let got = get(&file, growing, &[record, rank, 0], &[1, 1, COLUMNS]).unwrap();
                    assert_eq!(got, row, "{format:?}");
                }
            }
            let error = put(&file, growing, &[0, 0, 0], &[1, 1, 1], &[1]).unwrap_err();
            let read_only = if format.is_hdf5() { NcError::HdfErr } else { NcError::Perm };
            assert_eq!(error.code(), read_only);
            file.close().unwrap();
        });
    }
}

#[test]
fn elements_in_a_header_are_of_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    for is_collective in [false, true] {
        threads::all(3, |team| {
            let file = created(team, &path, Format::NetCdf4).unwrap();
            let x = file.def_dim(b"x", 4).unwrap();
            let var = file.def_var(b"v", 4, &[x.0]).unwrap();
            file.def_var_chunking(var.into(), StorageRequest::Compact, None).unwrap();
            file.enddef(Reserve::Default).unwrap();
            file.set_collective(var, is_collective).unwrap();
            put(&file, var, &[team.rank()], &[1], &[team.rank() as i32]).unwrap();
            if !is_collective {
                file.sync().unwrap();
            }
            assert_eq!(get(&file, var, &[0], &[4]).unwrap(), [0, 1, 2, -2147483647]);
            put(&file, var, &[3], &[1], &[10 + team.rank() as i32]).unwrap();
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(get(&file, VarId(0), &[0], &[4]).unwrap(), [0, 1, 2, 12], "{is_collective}");
    }
}

/// A put into a header that waits for all ranks is made after variables were defined in data mode: these have places all the same.
#[test]
fn what_is_defined_between_a_put_into_a_header_and_a_sync_has_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for size in [1, 2, 3] {
        let path = folder.path().join(format!("{size}.nc"));
        threads::all(size, |team| {
            let file = created(team, &path, Format::NetCdf4).unwrap();
            file.set_fill(FillMode::NoFill).unwrap();
            let compact = file.def_var(b"compact", 4, &[]).unwrap();
            file.def_var_chunking(compact.into(), StorageRequest::Compact, None).unwrap();
            file.enddef(Reserve::Default).unwrap();
            if team.rank() == 0 {
                put(&file, compact, &[], &[], &[5]).unwrap();
            }
            let late = file.def_var(b"late", 4, &[]).unwrap();
            file.sync().unwrap();
            if team.rank() + 1 == size {
                put(&file, late, &[], &[], &[6]).unwrap();
            }
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(get(&file, VarId(0), &[], &[]).unwrap(), [5]);
        assert_eq!(get(&file, VarId(1), &[], &[]).unwrap(), [6]);
        files.push(std::fs::read(&path).unwrap());
    }
    assert!(files.iter().all(|bytes| *bytes == files[0]));
}

#[test]
fn a_missing_file_is_the_same_error_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.nc");
    let codes = threads::all(3, |team| opened(team, &path, false).unwrap_err().code());
    assert_eq!(codes, [NcError::System(2); 3]);
    std::fs::write(&path, b"no netCDF file").unwrap();
    let codes = threads::all(3, |team| opened(team, &path, false).unwrap_err().code());
    assert_eq!(codes, [NcError::NotNc; 3]);
    let options = CreateOptions { exclusive: true, ..CreateOptions::default() };
    let codes = threads::all(3, |team| {
        let team: Arc<dyn Team> = Arc::new(team.clone());
        Dataset::create_parallel(team, &path, &options).unwrap_err().code()
    });
    assert_eq!(codes, [NcError::Exist; 3]);
}

#[test]
fn attributes_that_differ_are_those_of_rank_0_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Cdf2, Format::NetCdf4] {
        for equal_attributes in [false, true] {
            let path = folder.path().join("x.nc");
            threads::all(3, |team| {
                let ranks: Arc<dyn Team> = Arc::new(team.clone());
                let options =
                    CreateOptions { format, equal_attributes, ..CreateOptions::default() };
                let file = Dataset::create_parallel(ranks, &path, &options).unwrap();
                let root = VarRef::group(GroupId::ROOT);
                put_text(&file, root, b"same", b"yes");
                let of_rank = "x".repeat(2 + team.rank());
                put_text(&file, root, b"history", of_rank.as_bytes());
                let done = file.enddef(Reserve::Default);
                if equal_attributes {
                    let error = done.unwrap_err();
                    assert_eq!(error.code(), NcError::Mpi);
                    assert!(error.to_string().contains("attribute history"), "{error}");
                    // All have that of rank 0 by now.
                    file.enddef(Reserve::Default).unwrap();
                }
                let len = file.meta(|meta| meta.find_att(VarId::GLOBAL, b"history").unwrap().1.len);
                assert_eq!(len, 2, "rank {}", team.rank());
                file.close().unwrap();
            });
            let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
            let len = file.meta(|meta| meta.find_att(VarId::GLOBAL, b"history").unwrap().1.len);
            assert_eq!(len, 2);
        }
    }
}

#[test]
fn ranks_that_treat_attributes_differently_do_not_create_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let texts = threads::all(3, |team| {
        let ranks: Arc<dyn Team> = Arc::new(team.clone());
        let equal_attributes = team.rank() == 1;
        let options = CreateOptions { equal_attributes, ..CreateOptions::default() };
        let error = Dataset::create_parallel(ranks, &path, &options).unwrap_err();
        assert_eq!(error.code(), NcError::Mpi);
        error.to_string()
    });
    assert!(
        texts
            .iter()
            .all(|text| text
                .contains("zonda_attributes=equal not given on rank 0 and given on rank 1")),
        "{texts:?}"
    );
    assert!(!path.exists());
}

#[test]
fn a_file_in_the_memory_of_one_process_is_refused_on_all_ranks() {
    for bad in [0, 1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        drop(Dataset::create(&path, &CreateOptions::default()).unwrap());
        // As where ZONDA_IO is set on one node.
        let codes = threads::all(3, |team| {
            let io = (team.rank() == bad).then(|| String::from("passthrough,memory"));
            let options = CreateOptions { io: io.clone(), ..CreateOptions::default() };
            let of_team = || -> Arc<dyn Team> { Arc::new(team.clone()) };
            let created = Dataset::create_parallel(of_team(), &path, &options).err().unwrap();
            let options = OpenOptions { io, ..OpenOptions::default() };
            let opened = Dataset::open_parallel(of_team(), &path, &options).err().unwrap();
            if team.rank() == bad {
                assert!(opened.to_string().contains("memory, which is of one process"), "{opened}");
            }
            [created.code(), opened.code()]
        });
        assert_eq!(codes, [[NcError::Inval; 2]; 3], "{bad}");
    }
}
