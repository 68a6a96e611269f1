//! What hints do to files of several ranks: the same as the arguments of `nc__enddef`, which win.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hints, Hyperslab, MemType, OpenOptions, Reserve, VarId,
};
use zonda_testkit::TempFolder;

const N: usize = 3;
const ROWS: usize = 1000;

fn define(file: &Dataset) {
    let t = file.def_dim(b"t", 0).unwrap();
    let x = file.def_dim(b"x", ROWS).unwrap();
    file.def_var(b"fixed", 4, &[x.0]).unwrap();
    file.def_var(b"record", 4, &[t.0, x.0]).unwrap();
}

fn put(file: &Dataset) {
    let bytes = vec![1; ROWS * 4];
    let fixed = Hyperslab { start: &[0], count: &[ROWS], stride: None };
    let _ = file.put(VarId(0), &fixed, Some(MemType::I32), &bytes).unwrap();
    let record = Hyperslab { start: &[0, 0], count: &[1, ROWS], stride: None };
    let _ = file.put(VarId(1), &record, Some(MemType::I32), &bytes).unwrap();
}

fn serial(path: &Path, format: Format, reserve: Reserve) -> Vec<u8> {
    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create(path, &options).unwrap();
    define(&file);
    file.enddef(reserve).unwrap();
    put(&file);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

/// The file that ranks leave, of which rank 0 has these hints.
fn of_ranks(path: &Path, format: Format, hints: Hints, reserve: Reserve) -> Vec<u8> {
    threads::all(N, |team| {
        let rank = team.rank();
        // Rank 0 decides, also for ranks that say something else.
        let other = Hints { var_align: Some(64), header_align: Some(8), ..Hints::default() };
        let hints = if rank == 0 { hints } else { other };
        let options = CreateOptions { format, hints, ..CreateOptions::default() };
        let file = Dataset::create_parallel(Arc::new(team.clone()), path, &options).unwrap();
        define(&file);
        file.enddef(reserve).unwrap();
        for var in 0..2 {
            file.set_collective(VarId(var), true).unwrap();
        }
        put(&file);
        file.close().unwrap();
    });
    std::fs::read(path).unwrap()
}

#[test]
fn alignments_of_classic_files() {
    let folder = TempFolder::new("parallel-hints");
    let at = |name: &str| folder.path().join(name);
    let hints = Hints {
        header_align: Some(3 << 9),
        var_align: Some(1024),
        record_align: Some(4096),
        striping_unit: Some(1 << 20),
        cb_nodes: Some(2),
        ..Hints::default()
    };
    let meant = Reserve::Explicit { h_minfree: 0, v_align: 3072, v_minfree: 0, r_align: 4096 };
    for format in [Format::Cdf1, Format::Cdf2, Format::Cdf5] {
        let expected = serial(&at("serial.nc"), format, meant);
        assert_eq!(expected[..3], *b"CDF");
        let found = of_ranks(&at("ranks.nc"), format, hints, Reserve::Default);
        assert!(found == expected, "{format:?}: the hints do not act as nc__enddef does");
        let none = of_ranks(&at("none.nc"), format, Hints::default(), Reserve::Default);
        assert!(none == serial(&at("serial.nc"), format, Reserve::Default), "{format:?}: none");
        assert!(none != expected, "{format:?}: hints change nothing");
        // What the program says by nc__enddef wins.
        let asked = Reserve::Explicit { h_minfree: 100, v_align: 16, v_minfree: 0, r_align: 32 };
        let found = of_ranks(&at("asked.nc"), format, hints, asked);
        assert!(found == serial(&at("serial.nc"), format, asked), "{format:?}: nc__enddef");
    }
}

#[test]
fn hints_of_one_rank_change_no_file_that_is_read_and_no_netcdf4_file() {
    let folder = TempFolder::new("parallel-hints-netcdf4");
    let at = |name: &str| folder.path().join(name);
    let hints = Hints { var_align: Some(4096), record_align: Some(4096), ..Hints::default() };
    let plain = of_ranks(&at("plain.nc"), Format::NetCdf4, Hints::default(), Reserve::Default);
    let hinted = of_ranks(&at("hinted.nc"), Format::NetCdf4, hints, Reserve::Default);
    assert!(plain == hinted);
    threads::all(N, |team| {
        for write in [false, true] {
            let hints = if team.rank() == 1 { hints } else { Hints::default() };
            let options = OpenOptions { write, hints, ..OpenOptions::default() };
            let team: Arc<dyn Team> = Arc::new(team.clone());
            let file = Dataset::open_parallel(team, &at("plain.nc"), &options).unwrap();
            file.close().unwrap();
        }
    });
}
