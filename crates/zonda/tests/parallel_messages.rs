//! What ranks are told that do not do the same, or ask for what they cannot have: in names that their programs have.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, DimId, Format, GroupId, Hyperslab, MemType, NcError, OpenOptions,
    Reserve, Result, StorageRequest, VarId, VarRef,
};

const RANKS: usize = 3;
const INT: i32 = 4;

fn created(team: &threads::Threads, path: &Path, options: CreateOptions) -> Result<Dataset> {
    Dataset::create_parallel(Arc::new(team.clone()), path, &options)
}

/// A netCDF-4 file with `temp(time, x)` and `mask(x)`, in define mode.
fn defined(team: &threads::Threads, path: &Path) -> Dataset {
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = created(team, path, options).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", 6).unwrap();
    file.def_var(b"temp", INT, &[time.0, x.0]).unwrap();
    file.def_var(b"mask", INT, &[x.0]).unwrap();
    file
}

fn put(file: &Dataset, var: VarId, start: &[usize], count: &[usize]) -> Result<()> {
    let bytes = vec![1; 4 * count.iter().product::<usize>()];
    let slab = Hyperslab { start, count, stride: None };
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

/// The error that each rank gets.
fn texts(run: impl Fn(&threads::Threads, &Path) -> Result<()> + Sync) -> Vec<(NcError, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    threads::all(RANKS, |team| {
        let error = run(team, &path).unwrap_err();
        (error.code(), error.to_string())
    })
}

fn all_say(texts: &[(NcError, String)], code: NcError, expected: &str) {
    for (found, text) in texts {
        assert!(*found == code && text.contains(expected), "no \"{expected}\" in {texts:?}");
    }
}

#[test]
fn a_definition_of_one_rank_is_named() {
    let told = texts(|team, path| {
        let file = defined(team, path);
        if team.rank() == 1 {
            file.def_var(b"extra", 5, &[DimId(1).0]).unwrap();
        }
        file.enddef(Reserve::Default)
    });
    let expected =
        "rank 0 no further definition, rank 1 nc_def_var(/extra, NC_FLOAT, dimensions x)";
    all_say(&told, NcError::Mpi, expected);
    let told = texts(|team, path| {
        let file = defined(team, path);
        let owner =
            if team.rank() == 2 { VarRef::from(VarId(0)) } else { VarRef::group(GroupId::ROOT) };
        let _fits = file.put_att(owner, b"history", 2, 1, Some(MemType::Text), b"a").unwrap();
        file.enddef(Reserve::Default)
    });
    let expected = "rank 0 nc_put_att(NC_GLOBAL, history, NC_CHAR), rank 2 nc_put_att(/temp, history, NC_CHAR)";
    all_say(&told, NcError::Mpi, expected);
}

#[test]
fn a_put_that_meets_another_call_is_named() {
    let told = texts(|team, path| {
        let file = defined(team, path);
        file.enddef(Reserve::Default)?;
        file.set_collective(VarId(0), true)?;
        if team.rank() == 1 {
            file.close()
        } else {
            put(&file, VarId(0), &[0, team.rank()], &[1, 1])
        }
    });
    let expected = "rank 0 nc_put_var(/temp), rank 1 nc_close; all ranks have to make the same ones in the same order, or a rank did not \
                    call nc_var_par_access";
    all_say(&told, NcError::Mpi, expected);
}

#[test]
fn only_the_arguments_that_differ_are_told() {
    let told = texts(|team, path| {
        let format = if team.rank() == 1 { Format::Cdf5 } else { Format::NetCdf4 };
        created(team, path, CreateOptions { format, ..CreateOptions::default() }).map(drop)
    });
    let expected =
        "nc_create_par with different arguments: format netCDF-4 on rank 0 and cdf5 on rank 1; all";
    all_say(&told, NcError::Mpi, expected);
}

#[test]
fn a_rank_with_another_folder_is_named_on_all() {
    let told = texts(|team, path| {
        let elsewhere = path.with_file_name("elsewhere").join("x.nc");
        let path = if team.rank() == 2 { &elsewhere } else { path };
        created(team, path, CreateOptions::default()).map(drop)
    });
    all_say(
        &told,
        NcError::System(2),
        "rank 2 does not find the file that rank 0 has open: do all ranks pass the same path",
    );
}

#[test]
fn what_is_refused_says_what_to_do() {
    let told = texts(|team, path| {
        let file = defined(team, path);
        file.enddef(Reserve::Default)?;
        put(&file, VarId(0), &[0, 0], &[1, 1])
    });
    all_say(
        &told,
        NcError::CantExtend,
        "/temp: one rank alone cannot make it longer; call nc_var_par_access",
    );
    let told =
        texts(|team, path| defined(team, path).set_collective(VarRef::group(GroupId::ROOT), true));
    all_say(&told, NcError::NotVar, "name each variable");
    // What no call can mend is told again by the calls that it keeps from their work.
    let told = texts(|team, path| {
        let file = defined(team, path);
        let y = file.def_dim(b"y", 5_000_000)?;
        let many = file.def_var(b"many", 1, &[y.0])?;
        file.def_var_chunking(many.into(), StorageRequest::Chunked, Some(&[1]))?;
        file.enddef(Reserve::Default).unwrap_err();
        put(&file, VarId(1), &[team.rank()], &[1])
    });
    all_say(&told, NcError::BadChunk, "has more than 4194304 chunks");
}

#[test]
fn a_file_of_one_process_is_none_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let file = Dataset::create(&folder.path().join("x.nc"), &CreateOptions::default()).unwrap();
    let error = file.set_collective(VarId(0), true).unwrap_err();
    assert_eq!(error.code(), NcError::NoPar);
    assert!(error.to_string().contains("use nc_open_par or nc_create_par"), "{error}");
}

#[test]
fn the_stack_is_one_that_a_spec_can_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    threads::all(RANKS, |team| {
        let io = Some(String::from("cache,count,file"));
        let file = created(team, &path, CreateOptions { io, ..CreateOptions::default() }).unwrap();
        assert_eq!(file.stack(), "count,file");
        file.close().unwrap();
        let opened = Dataset::open_parallel(Arc::new(team.clone()), &path, &OpenOptions::default());
        assert_eq!(opened.unwrap().stack(), "file");
    });
}

/// The end of a program without a close, as the C interface does it.
#[test]
fn who_ends_without_a_close_is_told_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    threads::all(RANKS, |team| {
        let file = defined(team, &path);
        let is_first = team.rank() == 0;
        let warns = |expected: bool| match file.drain() {
            Ok(()) => assert!(!expected),
            Err(error) => {
                assert!(expected && error.to_string().contains("without nc_close"), "{error}")
            }
        };
        warns(is_first);
        file.enddef(Reserve::Default).unwrap();
        warns(false);
        file.set_collective(VarId(0), true).unwrap();
        put(&file, VarId(0), &[0, team.rank()], &[1, 1]).unwrap();
        warns(is_first);
        file.sync().unwrap();
        warns(false);
        if team.rank() == 2 {
            put(&file, VarId(1), &[0], &[1]).unwrap();
        }
        warns(team.rank() == 2);
        file.close().unwrap();
    });
}
