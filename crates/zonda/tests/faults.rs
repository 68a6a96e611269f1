//! Makes every operation of a session fail once, in every way.
//!
//! Whatever fails, the caller gets the errno and the place, and the dataset can be closed. Where the fault is
//! passing, repeating the call that failed gives the same bytes as a run without faults.

mod common;

use std::sync::Arc;

use common::{View, create, get, open, put, shape, stacked, view};
use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::storage::layer::{FaultHandle, FaultPlan, InjectedFault, Watched};
use zonda::{Dataset, Error, ExtType, Format, NcError, Reserve, Result, VarId};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The layers around a fault that never strikes until it is armed.
const STACKS: [&str; 5] = [
    "fault:any:18446744073709551615,memory",
    "cache:1:2,fault:any:18446744073709551615,memory",
    "cache:4:8,fault:any:18446744073709551615,memory",
    "cache,fault:any:18446744073709551615,memory",
    "fault:any:18446744073709551615,cache:1:2,memory",
];

/// Never strikes.
const NEVER: FaultPlan =
    FaultPlan { watched: Watched::Any, nth: u64::MAX, onwards: false, kind: InjectedFault::Eio };

type Step = (&'static str, fn(&Dataset) -> Result<()>);

fn int(file: &Dataset, owner: VarId, name: &[u8], values: &[i32]) -> Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    let _ = file.put_att(owner, name, ExtType::Int.nc_type(), values.len(), None, &bytes)?;
    Ok(())
}

fn ramp(n: usize, from: usize) -> Vec<f64> {
    (0..n).map(|i| ((from + i) % 30_000) as f64).collect()
}

const FIXED: VarId = VarId(0);
const GRID: VarId = VarId(1);
const RECORDS: VarId = VarId(2);
const SMALL: VarId = VarId(3);
const LATER: VarId = VarId(4);
const LATER_RECORDS: VarId = VarId(5);

/// The steps between create and close. Repeating a step that failed is harmless, as far as definitions are concerned,
/// since only storages fail here.
const STEPS: [Step; 17] = [
    ("define", |file| {
        let time = file.def_dim(b"time", 0)?;
        let x = file.def_dim(b"x", 1500)?;
        let y = file.def_dim(b"y", 3)?;
        file.def_var(b"fixed", ExtType::Double.nc_type(), &[x.0])?;
        file.def_var(b"grid", ExtType::Short.nc_type(), &[y.0, x.0])?;
        file.def_var(b"records", ExtType::Float.nc_type(), &[time.0, x.0])?;
        file.def_var(b"small", ExtType::Byte.nc_type(), &[time.0, y.0])?;
        int(file, GRID, b"scale", &[1, 2, 3])?;
        int(file, VarId::GLOBAL, b"history", &[7; 20])
    }),
    ("enddef", |file| file.enddef(Reserve::Default)),
    ("put fixed", |file| put(file, FIXED, &[100], &[1300], &ramp(1300, 5))),
    ("put grid", |file| put(file, GRID, &[0, 3], &[3, 700], &ramp(2100, 9))),
    ("put records", |file| put(file, RECORDS, &[1, 0], &[2, 1500], &ramp(3000, 77))),
    ("put part of a record", |file| put(file, RECORDS, &[3, 10], &[1, 20], &ramp(20, 500))),
    ("put small", |file| put(file, SMALL, &[2, 1], &[3, 2], &ramp(6, 1))),
    ("sync", Dataset::sync),
    ("shorten an attribute", |file| int(file, VarId::GLOBAL, b"history", &[8; 5])),
    ("rename in data mode", |file| {
        // A rename that is repeated may find the new name in place.
        if file.meta(|meta| meta.find_var(b"grid").is_ok()) {
            file.rename_var(GRID, b"net")?;
        }
        file.sync()
    }),
    ("redef", Dataset::redef),
    ("define more", |file| {
        let z = file.def_dim(b"z", 40)?;
        let (time, x) = (0, 1);
        file.def_var(b"later", ExtType::Int.nc_type(), &[z.0, x])?;
        file.def_var(b"later_records", ExtType::Short.nc_type(), &[time, z.0])?;
        // Attributes longer than the free space after the header.
        int(file, VarId::GLOBAL, b"long", &[3; 400])
    }),
    ("enddef again", |file| file.enddef(Reserve::Default)),
    ("put later", |file| put(file, LATER, &[5, 0], &[1, 1500], &ramp(1500, 4))),
    ("put later records", |file| put(file, LATER_RECORDS, &[5, 0], &[1, 40], &ramp(40, 60))),
    ("look at the records", |file| {
        let got = get(file, RECORDS, &[1, 0], &[2, 1500])?;
        assert_eq!(got, ramp(3000, 77));
        Ok(())
    }),
    ("sync again", Dataset::sync),
];

/// Steps that only change definitions: no storage is asked, so none can fail.
fn is_definition(step: usize) -> bool {
    STEPS[step].0.starts_with("define")
}

fn setup(layers: &str, format: Format) -> (Arc<Memory>, FaultHandle, Dataset) {
    let base = Arc::new(Memory::new());
    let (storage, handles) = stacked(layers, Arc::clone(&base) as Arc<dyn Storage>);
    let file = create(&storage, format, false);
    (base, handles.faults[0].clone(), file)
}

/// The bytes of a session without faults, and how many operations of a kind it does.
fn undisturbed(layers: &str, format: Format, watched: Watched) -> (Vec<u8>, u64) {
    let (base, fault, file) = setup(layers, format);
    fault.arm(FaultPlan { watched, ..NEVER });
    for (name, step) in STEPS {
        step(&file).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    file.close().expect("close");
    (base.to_vec().expect("to_vec"), fault.seen())
}

/// The contents of a dataset whose session ends after `n_steps`; `None` where there is no file then.
fn ended_after(n_steps: usize, format: Format, abort: bool) -> Option<View> {
    let (base, _, file) = setup(STACKS[0], format);
    for (name, step) in &STEPS[..n_steps] {
        step(&file).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    if abort { file.abort() } else { file.close() }.expect("end");
    let base: Arc<dyn Storage> = base;
    open(&base, false, false).ok().map(|file| view(&file).expect("view"))
}

fn check_error(error: &Error, kind: InjectedFault, note: &str) {
    let errno = if kind == InjectedFault::Enospc { ENOSPC } else { EIO };
    assert_eq!(error.code(), NcError::System(errno), "{note}: {error}");
    let message = error.to_string();
    assert!(message.contains("at byte "), "{note}: {message}");
    assert!(message.starts_with("test.nc: "), "{note}: {message}");
}

fn kinds(watched: Watched) -> &'static [InjectedFault] {
    match watched {
        Watched::Write => &[InjectedFault::Eio, InjectedFault::Enospc, InjectedFault::Short],
        _ => &[InjectedFault::Eio, InjectedFault::Enospc],
    }
}

/// Calls `f` with every plan of one fault and a note that names it.
fn every_fault(watched: Watched, total: u64, mut f: impl FnMut(FaultPlan, &str)) {
    for &kind in kinds(watched) {
        for nth in 1..=total {
            f(
                FaultPlan { watched, nth, onwards: false, kind },
                &format!("{watched:?} {nth} {kind:?}"),
            );
        }
    }
}

/// Runs a step, which may meet the fault once and has to succeed when it is repeated. True if it met the fault.
fn insist(call: impl Fn() -> Result<()>, kind: InjectedFault, note: &str) -> bool {
    match call() {
        Ok(()) => false,
        Err(error) => {
            check_error(&error, kind, note);
            call().unwrap_or_else(|why| panic!("{note}: repeated: {why}"));
            true
        }
    }
}

fn repeats(watched: Watched) {
    for layers in STACKS {
        let (expected, total) = undisturbed(layers, Format::Cdf1, watched);
        assert!(total > 0 || layers != STACKS[0], "{layers} {watched:?}");
        every_fault(watched, total, |plan, fault_note| {
            let note = format!("{layers}: {fault_note}");
            let (base, fault, file) = setup(layers, Format::Cdf1);
            fault.arm(plan);
            let mut n_met = 0;
            for (i, (name, step)) in STEPS.iter().enumerate() {
                let note = format!("{note}: {name}");
                if is_definition(i) {
                    step(&file).unwrap_or_else(|why| panic!("{note}: {why}"));
                } else {
                    n_met += u64::from(insist(|| step(&file), plan.kind, &note));
                }
            }
            // Remaining faults are met here, since close itself cannot be repeated.
            n_met += u64::from(insist(|| file.drain(), plan.kind, &format!("{note}: drain")));
            if let Err(error) = file.close() {
                check_error(&error, plan.kind, &note);
                n_met += 1;
                assert_eq!(file.close().expect_err("closed twice").code(), NcError::BadId);
            }
            assert!(n_met <= 1, "{note}: met {n_met} times");
            assert!(fault.injected() == 1 || fault.injected() == 0, "{note}");
            // A cache ignores failures of work that only makes it faster.
            let hidden = fault.injected() == 1 && n_met == 0;
            assert!(!hidden || layers.starts_with("cache"), "{note}: not told");
            assert!(base.to_vec().expect("to_vec") == expected, "{note}: other bytes");
        });
    }
}

#[test]
fn writes_repeated_give_the_same_bytes() {
    repeats(Watched::Write);
}

#[test]
fn reads_repeated_give_the_same_bytes() {
    repeats(Watched::Read);
}

/// Whether a call promises that all earlier puts are in the file.
fn promises(step: &str) -> bool {
    ["enddef", "enddef again", "sync", "sync again", "redef", "rename in data mode"].contains(&step)
}

/// A sync or a barrier fails once, whichever it is, at any step, of either format: no later sync, enddef or
/// close is a success, the close ends the file all the same, and so does an abort.
#[test]
fn a_sync_that_failed_is_never_followed_by_one_that_succeeds() {
    let mut n_tried = 0;
    for format in [Format::Cdf1, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic] {
        for layers in STACKS {
            let (_, total) = undisturbed(layers, format, Watched::Sync);
            assert!(total > 4, "{layers}");
            every_fault(Watched::Sync, total, |plan, note| {
                for abort in [false, true] {
                    let note = format!("{format:?} {layers}: {note}, abort {abort}");
                    let (base, fault, file) = setup(layers, format);
                    fault.arm(plan);
                    let mut met = 0;
                    for (name, step) in STEPS {
                        let was_lost = fault.injected() > 0;
                        match step(&file) {
                            Ok(()) => assert!(
                                !was_lost || !promises(name) || name == "redef" && met > 0,
                                "{note}: {name} succeeds after a lost sync"
                            ),
                            // What could not be done leads to refusals, too.
                            Err(error) if error.code() != NcError::System(EIO) => {
                                let is_refusal = !matches!(error.code(), NcError::System(_));
                                assert!(
                                    was_lost && is_refusal || error.is_lost_sync(),
                                    "{note}: {name}: {error}"
                                );
                                met += 1;
                            }
                            Err(error) => {
                                assert!(error.is_lost_sync(), "{note}: {name}: {error}");
                                met += 1;
                            }
                        }
                        if fault.injected() > 0 {
                            fault.disarm();
                        }
                    }
                    let in_define = file.in_define_mode();
                    let ended = if abort { file.abort() } else { file.close() };
                    match ended {
                        Ok(()) => assert!(
                            fault.injected() == 0 || abort && in_define && met > 0,
                            "{note}: a close that promises what is lost"
                        ),
                        Err(error) => assert!(error.is_lost_sync(), "{note}: {error}"),
                    }
                    assert!(!file.is_open(), "{note}: nobody can close it any more");
                    drop(base);
                    n_tried += 1;
                }
            });
        }
    }
    assert!(n_tried > 500, "{n_tried}");
}

#[test]
fn lengths_repeated_give_the_same_bytes() {
    // Data without fill that stop short of the end of a record: only here close sets the length.
    for layers in STACKS {
        for nth in 1..=2 {
            let (base, fault, file) = setup(layers, Format::Cdf2);
            fault.arm(FaultPlan { watched: Watched::SetLen, nth, onwards: false, ..NEVER });
            file.set_fill(zonda::FillMode::NoFill).expect("set_fill");
            STEPS[0].1(&file).expect("define");
            file.enddef(Reserve::Default).expect("enddef");
            put(&file, RECORDS, &[2, 0], &[1, 7], &ramp(7, 3)).expect("put");
            let note = format!("{layers}: setlen {nth}");
            let met = insist(|| file.drain(), InjectedFault::Eio, &note);
            assert_eq!(met, nth == 1, "{note}");
            file.close().unwrap_or_else(|why| panic!("{note}: {why}"));
            let full = file.meta(|meta| {
                let layout = meta.layout().expect("classic");
                layout.begin_rec + 3 * layout.record_len
            });
            assert_eq!(base.len(), Ok(full), "{note}");
        }
    }
}

/// Each element has the value from before the step that failed, or from after it.
fn check_between(got: &View, before: &View, after: &View, note: &str) {
    assert!(got.dims == before.dims || got.dims == after.dims, "{note}: {:?}", got.dims);
    assert!(got.atts == before.atts || got.atts == after.atts, "{note}: attributes");
    let names = |view: &View| view.vars.keys().cloned().collect::<Vec<_>>();
    assert!(names(got) == names(before) || names(got) == names(after), "{note}: variables");
    for (name, (shape, values)) in &got.vars {
        let find = |view: &View| view.vars.get(name).cloned();
        let (old, new) = (find(before), find(after));
        let same = |other: &Option<(Vec<usize>, _)>| other.as_ref().is_some_and(|o| o.0 == *shape);
        assert!(same(&old) || same(&new), "{note}: {name} has shape {shape:?}");
        for (i, value) in values.iter().enumerate() {
            // Records come last, so that positions are alike however many there are.
            let is = |view: &Option<(_, Vec<f64>)>| {
                view.as_ref().is_some_and(|v: &(Vec<usize>, _)| v.1.get(i) == Some(value))
            };
            assert!(is(&old) || is(&new), "{note}: {name}[{i}] is {value}");
        }
    }
}

/// The session ends at the first error, by close or abort, once the trouble has passed.
#[test]
fn a_session_that_gives_up_leaves_what_it_had() {
    let views: Vec<[Option<View>; 2]> = (0..=STEPS.len())
        .map(|n| [false, true].map(|abort| ended_after(n, Format::Cdf5, abort)))
        .collect();
    for layers in [STACKS[0], STACKS[1], STACKS[4]] {
        for watched in [Watched::Write, Watched::Read] {
            let (_, total) = undisturbed(layers, Format::Cdf5, watched);
            for abort in [false, true] {
                every_fault(watched, total, |plan, note| {
                    let how = if abort { "abort" } else { "close" };
                    let (base, fault, file) = setup(layers, Format::Cdf5);
                    fault.arm(plan);
                    let failed = STEPS.iter().position(|(_, step)| step(&file).is_err());
                    let n = failed.unwrap_or(STEPS.len());
                    let name = STEPS.get(n).map_or("the end", |step| step.0);
                    let note = format!("{layers}: {note}: {name}: {how}");
                    let ended = if abort { file.abort() } else { file.close() };
                    if let Err(error) = ended {
                        check_error(&error, plan.kind, &note);
                        assert!(failed.is_none(), "{note}: one fault met twice: {error}");
                        return;
                    }
                    let base: Arc<dyn Storage> = base;
                    let got = open(&base, false, false);
                    let before = &views[n][usize::from(abort)];
                    // An enddef that was begun may be completed by abort.
                    let after = &views[(n + 1).min(STEPS.len())][usize::from(abort)];
                    match (got, before, after) {
                        (Ok(got), Some(before), Some(after)) => {
                            check_between(&view(&got).expect(&note), before, after, &note);
                        }
                        // The creation was given up: a file would have been removed.
                        (_, None, _) => assert!(abort, "{note}"),
                        (Ok(_), _, None) => panic!("{note}: a file where none was to be"),
                        (Err(why), Some(_), _) => panic!("{note}: the file is lost: {why}"),
                    }
                });
            }
        }
    }
}

/// Lasting faults: every call that needs the device fails or is absorbed by the cache, nothing panics, and close
/// reports the fault.
#[test]
fn trouble_that_stays_is_reported_at_the_latest_by_close() {
    for layers in STACKS {
        for watched in [Watched::Write, Watched::Sync, Watched::Any] {
            let (_, total) = undisturbed(layers, Format::Cdf2, watched);
            for nth in 1..=total {
                for abort in [false, true] {
                    let note = format!("{layers}: {watched:?} {nth}+ abort {abort}");
                    let kind = InjectedFault::Enospc;
                    let (_, fault, file) = setup(layers, Format::Cdf2);
                    fault.arm(FaultPlan { watched, nth, onwards: true, kind });
                    let mut n_met = 0;
                    for (_, step) in STEPS {
                        if let Err(error) = step(&file) {
                            // What could not be done leads to refusals, too.
                            if let NcError::System(_) = error.code() {
                                check_error(&error, kind, &note);
                                n_met += 1;
                            }
                        }
                    }
                    match if abort { file.abort() } else { file.close() } {
                        Ok(()) => assert!(n_met > 0, "{note}: nobody was told"),
                        Err(error) => check_error(&error, kind, &note),
                    }
                    if !abort && file.is_open() {
                        // There is room again, and no accepted value is lost.
                        fault.disarm();
                        if let Err(error) = file.close() {
                            // A write failed before a sync did.
                            assert!(watched == Watched::Any && error.is_lost_sync(), "{note}");
                        }
                    }
                    assert_eq!(file.sync().expect_err("it has ended").code(), NcError::BadId);
                }
            }
        }
    }
}

/// A move of more than one block by less than a block, interrupted at each write and continued
/// after further definitions.
#[test]
fn an_interrupted_move_goes_on_where_it_stopped() {
    const N: usize = 160_000;
    let session = |width: usize, plan: FaultPlan| {
        let (base, fault, file) = setup(STACKS[0], Format::Cdf2);
        let x = file.def_dim(b"x", N).expect("def_dim");
        let time = file.def_dim(b"time", 0).expect("def_dim");
        let y = file.def_dim(b"y", width).expect("def_dim");
        file.def_var(b"first", ExtType::Double.nc_type(), &[x.0]).expect("def_var");
        file.def_var(b"one", ExtType::Short.nc_type(), &[time.0]).expect("def_var");
        file.enddef(Reserve::Default).expect("enddef");
        put(&file, VarId(0), &[0], &[N], &ramp(N, 0)).expect("put");
        put(&file, VarId(1), &[0], &[100], &ramp(100, 0)).expect("put");
        file.redef().expect("redef");
        int(&file, VarId::GLOBAL, b"long", &[1; 300]).expect("put_att");
        // A second record variable changes the length of records.
        file.def_var(b"two", ExtType::Double.nc_type(), &[time.0, y.0]).expect("def_var");
        fault.arm(plan);
        let mut failed = false;
        if let Err(error) = file.enddef(Reserve::Default) {
            check_error(&error, plan.kind, "enddef");
            failed = true;
            let in_define = put(&file, VarId(0), &[0], &[1], &[1.0]);
            assert_eq!(in_define.expect_err("still defining").code(), NcError::InDefine);
            int(&file, VarId::GLOBAL, b"longer", &[2; 500]).expect("put_att");
            file.def_var(b"three", ExtType::Int.nc_type(), &[x.0]).expect("def_var");
            file.enddef(Reserve::Default).expect("repeated");
        }
        let check = |file: &Dataset| {
            assert_eq!(get(file, VarId(0), &[0], &[N]).expect("get"), ramp(N, 0), "{plan}");
            assert_eq!(shape(file, VarId(1)), [100]);
            assert_eq!(get(file, VarId(1), &[0], &[100]).expect("get"), ramp(100, 0), "{plan}");
            let filled = get(file, VarId(2), &[0, 0], &[100, width]).expect("get");
            assert!(filled.iter().all(|v| *v > 9.9e36), "{plan}: {filled:?}");
            if failed {
                let filled = get(file, VarId(3), &[0], &[N]).expect("get");
                assert!(filled.iter().all(|v| *v == -2_147_483_647.0), "{plan}");
            }
        };
        check(&file);
        file.close().expect("close");
        let base: Arc<dyn Storage> = base;
        check(&open(&base, false, false).expect("open"));
        fault.seen()
    };
    let watched = Watched::Write;
    // Records that lie close together move together, others one by one.
    for (width, least) in [(1, 4), (600, 100)] {
        let total = session(width, FaultPlan { watched, ..NEVER });
        assert!((least..2 * least + 50).contains(&total), "{width}: {total}");
        // The moves of 100 records are alike, those of the blocks before them follow; then the fills.
        let some =
            (1..=total).filter(|n| *n < 4 || n % 40 == 0 || (98..108).contains(n) || n + 4 > total);
        for nth in some {
            for kind in [InjectedFault::Eio, InjectedFault::Short] {
                session(width, FaultPlan { watched, nth, onwards: false, kind });
            }
        }
    }
}

/// A header of several pages whose writing stopped halfway is completed by any later operation.
#[test]
fn a_header_written_by_half_is_completed() {
    for (layers, abort) in [(STACKS[0], false), (STACKS[0], true), (STACKS[2], true)] {
        let (base, fault, file) = setup(layers, Format::Cdf5);
        let x = file.def_dim(b"x", 4).expect("def_dim");
        for i in 0..300 {
            let name = format!("variable_{i}");
            file.def_var(name.as_bytes(), ExtType::Int.nc_type(), &[x.0]).expect("def_var");
        }
        let room = Reserve::Explicit { h_minfree: 10_000, v_align: 4, v_minfree: 0, r_align: 4 };
        file.enddef(room).expect("enddef");
        put(&file, VarId(299), &[0], &[4], &ramp(4, 1)).expect("put");
        file.redef().expect("redef");
        // Global attributes come first, so that all variables of the header shift.
        int(&file, VarId::GLOBAL, b"new", &[5; 30]).expect("put_att");
        let kind = InjectedFault::Short;
        fault.arm(FaultPlan { watched: Watched::Write, nth: 1, onwards: false, kind });
        check_error(&file.enddef(Reserve::Default).expect_err("torn"), kind, layers);
        if abort { file.abort() } else { file.close() }.expect("end");
        let base: Arc<dyn Storage> = base;
        let file = open(&base, false, false).expect("open");
        let found = file.meta(|meta| meta.find_att(VarId::GLOBAL, b"new").map(|att| att.1.len));
        assert_eq!(found.expect("find_att"), 30);
        let last = file.meta(|meta| meta.find_var(b"variable_299")).expect("find_var");
        assert_eq!(get(&file, last, &[0], &[4]).expect("get"), ramp(4, 1));
    }
}
