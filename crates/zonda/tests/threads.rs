//! Many threads on one dataset.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{create, get, open, put, shape, stacked};
use zonda::storage::backend::{File, Memory};
use zonda::storage::{Create, Storage, SyncLevel};
use zonda::{Dataset, ExtType, Format, Hyperslab, MemType, NcError, Reserve, VarId};
use zonda_testkit::{Rng, TempFolder};

const THREADS: usize = 6;
/// The fill value of doubles and floats.
const FILL: f64 = 9.969_209_968_386_869e36;

/// A file at `path`, or memory without one.
fn base(path: Option<&Path>) -> Arc<dyn Storage> {
    match path {
        None => Arc::new(Memory::new()),
        Some(path) => {
            let file = File::open(path, true, Create::Truncate, SyncLevel::None);
            Arc::new(file.unwrap_or_else(|why| panic!("{why}")))
        }
    }
}

/// Runs `test` with a new dataset on each kind of stack, and then `check` on it and on what the
/// base holds after close.
fn on_all_stacks(name: &str, test: impl Fn(&Dataset), check: impl Fn(&Dataset)) {
    let folder = TempFolder::new(name);
    let path = folder.file("data.nc");
    for layers in ["memory", "cache:1:3,memory", "cache,memory"] {
        for path in [None, Some(&*path)] {
            let base = base(path);
            let (storage, _) = stacked(layers, Arc::clone(&base));
            let file = create(&storage, Format::Cdf2, false);
            test(&file);
            check(&file);
            file.close().unwrap_or_else(|why| panic!("{why}"));
            check(&open(&base, false, false).unwrap_or_else(|why| panic!("{why}")));
        }
    }
}

fn value(var: usize, record: usize, column: usize) -> f64 {
    (1 + var * 10_000 + record * 37 + column) as f64
}

#[test]
fn disjoint_parts_of_the_same_and_of_other_variables() {
    const ROWS: usize = 48;
    const COLUMNS: usize = 500;
    let types = [ExtType::Double, ExtType::Float, ExtType::Int];
    let test = |file: &Dataset| {
        let rows = file.def_dim(b"rows", ROWS).expect("def_dim");
        let columns = file.def_dim(b"columns", COLUMNS).expect("def_dim");
        for (i, ty) in types.iter().enumerate() {
            let name = format!("v{i}");
            let dims = [rows.0, columns.0];
            file.def_var(name.as_bytes(), ty.nc_type(), &dims).expect("def_var");
        }
        file.enddef(Reserve::Default).expect("enddef");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    // Rows of the first variable in one piece, every sixth column of the second by
                    // strides, single elements of the third.
                    for row in (thread..ROWS).step_by(THREADS) {
                        let whole: Vec<f64> = (0..COLUMNS).map(|c| value(0, row, c)).collect();
                        put(file, VarId(0), &[row, 0], &[1, COLUMNS], &whole).expect("put");
                        let got = get(file, VarId(0), &[row, 0], &[1, COLUMNS]).expect("get");
                        assert!(got == whole, "its own row");
                        let n = (COLUMNS - thread).div_ceil(THREADS);
                        for at in 0..THREADS {
                            let row = row / THREADS * THREADS + at;
                            let bytes: Vec<u8> = (0..n)
                                .flat_map(|i| value(1, row, thread + i * THREADS).to_ne_bytes())
                                .collect();
                            let stride = [1, THREADS as isize];
                            let (start, count) = ([row, thread], [1, n]);
                            let slab =
                                Hyperslab { start: &start, count: &count, stride: Some(&stride) };
                            let mem = Some(MemType::F64);
                            let converted = file.put(VarId(1), &slab, mem, &bytes).expect("put");
                            assert_eq!(converted.out_of_range, 0);
                        }
                        for column in 0..COLUMNS / 5 {
                            let one = [value(2, row, column)];
                            put(file, VarId(2), &[row, column], &[1, 1], &one).expect("put");
                        }
                    }
                });
            }
        });
    };
    on_all_stacks("disjoint", test, |file| {
        for var in 0..3 {
            let got = get(file, VarId(var as i32), &[0, 0], &[ROWS, COLUMNS]).expect("get");
            for (i, got) in got.iter().enumerate() {
                let (row, column) = (i / COLUMNS, i % COLUMNS);
                let written = var < 2 || column < COLUMNS / 5;
                let expected = if written { value(var, row, column) } else { -2_147_483_647.0 };
                assert_eq!(*got, expected, "variable {var} at {row}, {column}");
            }
        }
    });
}

/// Columns of the record variables below.
const WIDTH: usize = 20;
const RECORDS: usize = 120;

/// Whether the growing threads write this element.
fn is_written(var: usize, record: usize, column: usize) -> bool {
    match var {
        0 => !record.is_multiple_of(7),
        1 => column % 2 == 1,
        _ => false,
    }
}

fn expected(var: usize, record: usize, column: usize) -> f64 {
    if is_written(var, record, column) { value(var, record, column) } else { FILL }
}

fn define_records(file: &Dataset) {
    let time = file.def_dim(b"time", 0).expect("def_dim");
    let x = file.def_dim(b"x", WIDTH).expect("def_dim");
    for name in [b"whole", b"parts", b"never"] {
        file.def_var(name, ExtType::Double.nc_type(), &[time.0, x.0]).expect("def_var");
    }
    file.enddef(Reserve::Default).expect("enddef");
}

/// Puts what the thread writes of one record, each call through `insist`.
fn put_record(file: &Dataset, record: usize, insist: impl Fn(&dyn Fn() -> zonda::Result<()>)) {
    if !record.is_multiple_of(7) {
        let whole: Vec<f64> = (0..WIDTH).map(|c| value(0, record, c)).collect();
        insist(&|| put(file, VarId(0), &[record, 0], &[1, WIDTH], &whole));
    }
    for column in (1..WIDTH).step_by(2) {
        let one = [value(1, record, column)];
        insist(&|| put(file, VarId(1), &[record, column], &[1, 1], &one));
    }
}

/// What a reader beside the growing threads may see: values or fill, and for whole records, which
/// appear with their values, nothing between.
fn look(file: &Dataset, rng: &mut Rng) -> zonda::Result<()> {
    let n_records = file.meta(|meta| meta.n_records()) as usize;
    if n_records == 0 {
        return Ok(());
    }
    let (var, record) = (rng.below(3) as usize, rng.below(n_records as u64) as usize);
    assert_eq!(file.meta(|meta| meta.find_var(b"parts")).expect("find_var"), VarId(1));
    assert!(shape(file, VarId(2))[0] >= n_records, "records do not vanish");
    let got = get(file, VarId(var as i32), &[record, 0], &[1, WIDTH])?;
    for (column, got) in got.into_iter().enumerate() {
        let filled = got == FILL;
        let written = is_written(var, record, column) && got == value(var, record, column);
        assert!(filled || written, "variable {var} at {record}, {column}: {got}");
    }
    Ok(())
}

fn check_records(file: &Dataset) {
    assert_eq!(shape(file, VarId(0)), [RECORDS, WIDTH]);
    for var in 0..3 {
        let got = get(file, VarId(var as i32), &[0, 0], &[RECORDS, WIDTH]).expect("get");
        for (i, got) in got.into_iter().enumerate() {
            let (record, column) = (i / WIDTH, i % WIDTH);
            assert_eq!(got, expected(var, record, column), "variable {var}: {record}, {column}");
        }
    }
}

#[test]
fn records_from_several_threads_at_once() {
    let test = |file: &Dataset| {
        define_records(file);
        let running = AtomicUsize::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let running = &running;
                scope.spawn(move || {
                    // Some threads run ahead, some come back to records that others made.
                    let mut mine: Vec<usize> = (thread..RECORDS).step_by(THREADS).collect();
                    if thread % 3 == 2 {
                        mine.reverse();
                    }
                    for record in mine {
                        put_record(file, record, |call| call().expect("put"));
                    }
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            for reader in 0..2 {
                let running = &running;
                scope.spawn(move || {
                    let mut rng = Rng::new(reader);
                    while running.load(Ordering::Acquire) > 0 {
                        look(file, &mut rng).expect("get");
                    }
                });
            }
        });
    };
    on_all_stacks("records", test, check_records);
}

#[test]
fn definitions_change_while_others_put() {
    const REDEFS: usize = 12;
    let test = |file: &Dataset| {
        define_records(file);
        let stop = AtomicBool::new(false);
        let refused = AtomicUsize::new(0);
        let insist = |call: &dyn Fn() -> zonda::Result<()>| {
            while let Err(error) = call() {
                assert_eq!(error.code(), NcError::InDefine, "{error}");
                refused.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let mut writers = Vec::new();
            for thread in 0..THREADS {
                writers.push(scope.spawn(move || {
                    for record in (thread..RECORDS).step_by(THREADS) {
                        put_record(file, record, insist);
                    }
                }));
            }
            let stop = &stop;
            scope.spawn(move || {
                let mut rng = Rng::new(3);
                while !stop.load(Ordering::Acquire) {
                    insist(&|| look(file, &mut rng.clone()));
                    rng.bits();
                }
            });
            scope.spawn(move || {
                for i in 0..REDEFS {
                    file.redef().expect("redef");
                    assert_eq!(file.redef().expect_err("twice").code(), NcError::InDefine);
                    // Headers that grow by more than their room move all data.
                    let name = format!("att{i}");
                    let text = vec![b'a'; 100 * i];
                    let n = text.len();
                    let put = file.put_att(VarId(2), name.as_bytes(), 2, n, None, &text);
                    assert_eq!(put.expect("put_att").out_of_range, 0);
                    std::thread::yield_now();
                    let dims = if i % 4 == 3 { &[0, 1][..] } else { &[1][..] };
                    let name = format!("new{i}");
                    let ty = ExtType::Float.nc_type();
                    file.def_var(name.as_bytes(), ty, dims).expect("def_var");
                    file.enddef(Reserve::Default).expect("enddef");
                    let var = file.meta(|meta| meta.find_var(name.as_bytes())).expect("find_var");
                    if dims.len() == 1 {
                        put_new(file, var, i);
                    }
                }
            });
            for writer in writers {
                writer.join().expect("a writer");
            }
            stop.store(true, Ordering::Release);
        });
    };
    on_all_stacks("redef", test, |file| {
        check_records(file);
        for i in 0..REDEFS {
            let name = format!("new{i}");
            let var = file.meta(|meta| meta.find_var(name.as_bytes())).expect("find_var");
            if i % 4 == 3 {
                let got = get(file, var, &[0, 0], &[RECORDS, WIDTH]).expect("get");
                assert!(got.iter().all(|v| *v == FILL), "{name}");
            } else {
                let expected: Vec<f64> = (0..WIDTH).map(|c| value(9, i, c)).collect();
                assert_eq!(get(file, var, &[0], &[WIDTH]).expect("get"), expected, "{name}");
            }
            let name = format!("att{i}");
            let len = file.meta(|meta| meta.find_att(VarId(2), name.as_bytes()).map(|a| a.1.len));
            assert_eq!(len.expect("find_att"), 100 * i as u64);
        }
    });
}

fn put_new(file: &Dataset, var: VarId, i: usize) {
    let values: Vec<f64> = (0..WIDTH).map(|c| value(9, i, c)).collect();
    put(file, var, &[0], &[WIDTH], &values).expect("put");
}

#[test]
fn syncs_and_closes_beside_puts() {
    let test = |file: &Dataset| {
        define_records(file);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for record in (thread..RECORDS).step_by(THREADS) {
                        put_record(file, record, |call| call().expect("put"));
                        if record % 5 == thread % 5 {
                            file.sync().expect("sync");
                        }
                    }
                });
            }
        });
    };
    on_all_stacks("syncs", test, check_records);
    // One of many closes closes the dataset; puts are carried out before it or refused.
    let storage = base(None);
    let file = create(&storage, Format::Cdf5, false);
    define_records(&file);
    let n_done = AtomicUsize::new(0);
    let n_closed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (file, n_done, n_closed) = (&file, &n_done, &n_closed);
            scope.spawn(move || {
                for record in (thread..).step_by(THREADS) {
                    let whole = [1.0; WIDTH];
                    match put(file, VarId(0), &[record, 0], &[1, WIDTH], &whole) {
                        Ok(()) => n_done.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error.code(), NcError::BadId, "{error}");
                            break;
                        }
                    };
                    if record > 300 {
                        match file.close() {
                            Ok(()) => n_closed.fetch_add(1, Ordering::Relaxed),
                            Err(error) => {
                                assert_eq!(error.code(), NcError::BadId, "{error}");
                                break;
                            }
                        };
                    }
                }
            });
        }
    });
    assert_eq!(n_closed.into_inner(), 1);
    let reader = open(&storage, false, false).expect("open");
    let n_records = shape(&reader, VarId(0))[0];
    let got = get(&reader, VarId(0), &[0, 0], &[n_records, WIDTH]).expect("get");
    let n_written = got.iter().filter(|v| **v == 1.0).count();
    assert_eq!(n_written, WIDTH * n_done.into_inner());
    assert!(got.iter().all(|v| *v == 1.0 || *v == FILL));
}
