//! Write-behind: the same bytes as without it, inquiries while puts wait, and failures.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zonda::{
    CreateOptions, Dataset, DimId, Format, Hyperslab, MemType, NcError, OpenOptions, Reserve,
    StorageRequest, Values, VarId, VarRef, WriteBehind,
};
use zonda_testkit::{Rng, TempFolder};

const FLOAT: i32 = 5;
const SHORT: i32 = 3;
const STRING: i32 = 12;
/// Elements of a record of the float variable.
const WIDTH: usize = 40_000;

struct Made {
    file: Dataset,
    time: DimId,
    wind: VarRef,
    short: VarRef,
}

fn said(text: &str) -> Option<WriteBehind> {
    Some(text.parse().expect("a setting"))
}

/// A file with a deflated record variable of floats and one of shorts.
fn create(path: &Path, format: Format, how: &str, io: Option<&str>) -> Made {
    create_in_chunks(10_000, path, format, how, io)
}

/// The same, in chunks of 3 times so many.
fn create_in_chunks(n: usize, path: &Path, format: Format, how: &str, io: Option<&str>) -> Made {
    let io = io.map(str::to_owned);
    let options = CreateOptions { format, io, write_behind: said(how), ..CreateOptions::default() };
    let file = Dataset::create(path, &options).expect("create");
    let time = file.def_dim(b"time", 0).expect("time");
    let x = file.def_dim(b"x", WIDTH).expect("x");
    let wind: VarRef = file.def_var(b"wind", FLOAT, &[time.0, x.0]).expect("wind").into();
    let short: VarRef = file.def_var(b"short", SHORT, &[time.0]).expect("short").into();
    if format == Format::NetCdf4 {
        file.def_var_deflate(wind, true, Some(1)).expect("deflate");
        let sizes = Some(&[3, n][..]);
        file.def_var_chunking(wind, StorageRequest::Chunked, sizes).expect("chunks");
    }
    file.enddef(Reserve::Default).expect("enddef");
    Made { file, time, wind, short }
}

fn record(step: usize) -> Vec<u8> {
    (0..WIDTH).flat_map(|i| (((i * 7 + step) % 997) as f32).to_ne_bytes()).collect()
}

fn put_record(made: &Made, step: usize) -> zonda::Result<()> {
    let slab = Hyperslab { start: &[step, 0], count: &[1, WIDTH], stride: None };
    let values = record(step);
    made.file.put(made.wind, &slab, Some(MemType::F32), &values).map(drop)
}

fn put_short(made: &Made, step: usize, value: f64) -> zonda::Result<u64> {
    let slab = Hyperslab { start: &[step], count: &[1], stride: None };
    let value = value.to_ne_bytes();
    let done = made.file.put(made.short, &slab, Some(MemType::F64), &value[..]);
    done.map(|converted| converted.out_of_range)
}

fn len_of(made: &Made) -> u64 {
    made.file.meta(|meta| meta.dim(made.time).map(|dim| dim.len)).expect("length")
}

/// One format of each of the two implementations, classic and HDF5.
const FORMATS: [Format; 2] = [Format::Cdf1, Format::NetCdf4];

#[test]
fn the_bytes_are_the_same() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let mut made = Vec::new();
        for how in ["off", "on", "mem=16k,threads=1", "mem=400k,threads=3"] {
            let path = folder.path().join(format!("{format:?}-{how}.nc"));
            let it = create(&path, format, how, None);
            for step in 0..10 {
                put_record(&it, step).expect("put");
                let n = put_short(&it, step, 1e9 * (step % 2) as f64).expect("put");
                assert_eq!(n, step as u64 % 2, "values that do not fit are told by the put");
                assert_eq!(len_of(&it), step as u64 + 1);
                if step == 6 {
                    it.file.sync().expect("sync");
                    assert_eq!(it.file.write_behind_status().0, 0);
                }
            }
            it.file.close().expect("close");
            made.push(std::fs::read(&path).expect("read"));
        }
        assert!(made.windows(2).all(|pair| pair[0] == pair[1]), "{format:?}");
    }
}

#[test]
fn inquiries_do_not_wait_and_gets_see_what_was_put() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let path = folder.path().join(format!("slow-{format:?}.nc"));
        // So slow that the first record is not written yet.
        let it = create(&path, format, "on", Some("throttle:200k,file"));
        for step in 0..3 {
            put_record(&it, step).expect("put");
            put_short(&it, step, step as f64).expect("put");
        }
        let waiting = it.file.write_behind_status();
        assert!(waiting.0 > 0 && waiting.1.is_none(), "{waiting:?}");
        assert_eq!(len_of(&it), 3);
        assert!(it.file.write_behind_status().0 > 0, "the inquiry waited");
        let mut back = vec![0; WIDTH * 4];
        let slab = Hyperslab { start: &[2, 0], count: &[1, WIDTH], stride: None };
        it.file.get(it.wind, &slab, Some(MemType::F32), &mut back).map(drop).expect("get");
        assert!(back == record(2));
        // Invalid arguments are reported at once, with the format's own message.
        let slab = Hyperslab { start: &[0, 1], count: &[1, WIDTH], stride: None };
        let values = record(0);
        let error = it.file.put(it.wind, &slab, Some(MemType::F32), &values).unwrap_err();
        assert_eq!(error.code(), NcError::Edge);
        it.file.close().expect("close");
    }
}

/// Lengths that inquiries have shown never become shorter: not when another thread enters define mode, and not by a
/// put that goes the ordinary way meanwhile.
#[test]
fn records_that_were_accepted_stay_in_sight() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let path = folder.path().join(format!("sight-{format:?}.nc"));
        let it = create(&path, format, "on", Some("throttle:400k,file"));
        for step in 0..4 {
            put_record(&it, step).expect("put");
        }
        std::thread::scope(|scope| {
            let redef = scope.spawn(|| it.file.redef());
            while !redef.is_finished() {
                assert!(len_of(&it) >= 4, "{format:?}: {} records", len_of(&it));
                std::thread::sleep(Duration::from_millis(1));
            }
            redef.join().expect("no panic").expect("redef");
        });
        it.file.enddef(Reserve::Default).expect("enddef");
        assert_eq!(len_of(&it), 4);
        it.file.close().expect("close");
    }
}

/// A thread whose puts go the ordinary way sees what it put, while puts of other threads wait.
#[test]
fn a_put_that_did_not_wait_is_in_sight_at_once() {
    let folder = TempFolder::new("behind");
    let path = folder.path().join("beside.nc");
    let options = CreateOptions {
        format: Format::NetCdf4,
        write_behind: said("on"),
        ..CreateOptions::default()
    };
    let file = Dataset::create(&path, &options).expect("create");
    let dims: Vec<DimId> =
        [&b"t"[..], b"u"].into_iter().map(|name| file.def_dim(name, 0).expect("dim")).collect();
    let waits: VarRef = file.def_var(b"waits", FLOAT, &[dims[0].0]).expect("def_var").into();
    let other: VarRef = file.def_var(b"other", FLOAT, &[dims[1].0]).expect("def_var").into();
    file.enddef(Reserve::Default).expect("enddef");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    let value = 1f32.to_ne_bytes();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0.. {
                if is_over.load(order) {
                    break;
                }
                let slab = Hyperslab { start: &[step], count: &[1], stride: None };
                file.put(waits, &slab, Some(MemType::F32), &value).map(drop).expect("put");
                if step % 16 == 0 {
                    // After a change of definitions puts go the ordinary way first.
                    file.put_att(waits, b"at", 5, 1, Some(MemType::F32), &value)
                        .map(drop)
                        .expect("put_att");
                }
            }
        });
        for step in 0..600 {
            let slab = Hyperslab { start: &[step], count: &[1], stride: None };
            file.put(other, &slab, Some(MemType::F32), &value).map(drop).expect("put");
            let len = file.meta(|meta| meta.dim(dims[1]).map(|dim| dim.len)).expect("length");
            if len <= step as u64 {
                is_over.store(true, order);
                panic!("{len} records after a put of number {step}");
            }
        }
        is_over.store(true, order);
    });
    file.close().expect("close");
}

#[test]
fn what_the_device_refuses_stays_and_is_tried_again() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let mut n_refused = 0;
        for n in [2, 4, 7] {
            let path = folder.path().join(format!("fault-{format:?}-{n}.nc"));
            let it = create(&path, format, "on", None);
            it.file.close().expect("close");
            let options = OpenOptions {
                write: true,
                io: Some(format!("fault:write:{n}:enospc,file")),
                write_behind: said("on"),
                ..OpenOptions::default()
            };
            let file = Dataset::open(&path, &options).expect("open");
            let it = Made { file, ..it };
            let mut step = 0;
            while step < 60 {
                match put_record(&it, step) {
                    Ok(()) => step += 1,
                    Err(error) => {
                        assert_eq!(error.code(), NcError::System(28), "{error}");
                        assert!(error.to_string().contains("accepted before"), "{error}");
                        assert!(it.file.write_behind_status().1.is_some());
                        assert_eq!(len_of(&it), step as u64, "what was accepted still waits");
                        n_refused += 1;
                        // The queue stands still until a call tries again after there is room.
                        assert!(put_record(&it, step).is_err());
                        it.file.sync().expect("there is room now");
                    }
                }
            }
            // Close tries again a put that was refused and not reported yet.
            loop {
                let (bytes, error) = it.file.write_behind_status();
                n_refused += usize::from(error.is_some());
                if bytes == 0 || error.is_some() {
                    break;
                }
                it.file.sync().unwrap_or_else(|_| n_refused += 1);
            }
            while it.file.close().is_err() {
                n_refused += 1;
                assert!(it.file.is_open(), "nothing may be lost");
            }
            let file = Dataset::open(&path, &OpenOptions::default()).expect("open");
            let mut back = vec![0; WIDTH * 4];
            for step in 0..60 {
                let slab = Hyperslab { start: &[step, 0], count: &[1, WIDTH], stride: None };
                file.get(it.wind, &slab, None, &mut back).map(drop).expect("get");
                assert!(back == record(step), "{format:?}, fault {n}, record {step}");
            }
        }
        assert!(n_refused > 0, "{format:?}: no fault was met");
    }
}

/// Chunks have lengths of all kinds, so that there are gaps between their places. Pages with gaps must be written
/// before the file is closed, where the time of a slow device is not hidden.
#[test]
fn chunks_leave_while_a_slow_device_is_written() {
    let folder = TempFolder::new("behind");
    let path = folder.path().join("leaves.nc");
    let io = Some("cache,throttle:1G:300us,file");
    let it = create_in_chunks(1000, &path, Format::NetCdf4, "off", io);
    let mut random = Rng::new(5);
    let mut put_bytes = 0;
    for step in (0..300).step_by(3) {
        // Three records are one row of chunks; a quarter of the bytes cannot be deflated.
        for step in step..step + 3 {
            let values =
                random.bytes(WIDTH).into_iter().flat_map(|byte| f32::from(byte).to_ne_bytes());
            let values: Vec<u8> = values.collect();
            let slab = Hyperslab { start: &[step, 0], count: &[1, WIDTH], stride: None };
            let put = it.file.put(it.wind, &slab, Some(MemType::F32), &values);
            put.map(drop).expect("put");
        }
        put_bytes += 3 * WIDTH as u64;
        let stored = std::fs::metadata(&path).expect("there").len();
        assert!(
            stored + (3 << 20) > put_bytes,
            "{put_bytes} at least were put, {stored} are stored"
        );
    }
    it.file.close().expect("close");
}

/// A cache over a slow device gathers up to 1 MiB before it writes. While no puts come, it writes smaller pieces, so
/// that a program that computes in between has nothing left to write when it closes the file.
#[test]
fn what_is_gathered_leaves_while_nobody_puts() {
    /// Bytes of a put, less than a page: larger ones go past the pages.
    const PUT: usize = 100 << 10;
    /// Bytes of a page, where a record is as long as here.
    const PAGE: u64 = 256 << 10;
    const RECORD: usize = 80 * PUT;
    let folder = TempFolder::new("behind");
    let path = folder.path().join("rests.nc");
    let options = CreateOptions {
        format: Format::Cdf5,
        io: Some("cache,throttle:1G:300us,file".to_owned()),
        write_behind: said("on"),
        ..CreateOptions::default()
    };
    let file = Dataset::create(&path, &options).expect("create");
    let time = file.def_dim(b"time", 0).expect("time");
    let x = file.def_dim(b"x", RECORD / size_of::<f32>()).expect("x");
    let wind: VarRef = file.def_var(b"wind", FLOAT, &[time.0, x.0]).expect("wind").into();
    file.enddef(Reserve::Default).expect("enddef");
    let values = vec![7; PUT];
    let n = PUT / size_of::<f32>();
    for step in 0..40 {
        let slab = Hyperslab { start: &[0, step * n], count: &[1, n], stride: None };
        file.put(wind, &slab, Some(MemType::F32), &values).map(drop).expect("put");
        // The first page has the header and stays.
        if step < 10 {
            continue;
        }
        let put_bytes = ((step + 1) * PUT) as u64;
        let stored = || std::fs::metadata(&path).expect("there").len();
        let until = Instant::now() + Duration::from_secs(30);
        // The last page is not complete.
        while stored() + PAGE < put_bytes {
            let stored = stored();
            assert!(Instant::now() < until, "{put_bytes} were put, and only {stored} are stored");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    file.close().expect("close");
}

#[test]
fn a_device_that_refuses_for_good_keeps_the_file_open_and_abort_gives_up() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let path = folder.path().join(format!("full-{format:?}.nc"));
        create(&path, format, "on", None).file.close().expect("close");
        let options = OpenOptions {
            write: true,
            io: Some("fault:write:1+:eio,file".into()),
            write_behind: said("mem=300k"),
            ..OpenOptions::default()
        };
        let file = Dataset::open(&path, &options).expect("open");
        let (wind, short) = (VarId(0).into(), VarId(1).into());
        let it = Made { file, time: DimId(0), wind, short };
        // The budget holds one record: the puts cannot wait for ever.
        let failed = (0..20).find_map(|step| put_record(&it, step).err());
        assert_eq!(failed.expect("an error").code(), NcError::System(5));
        assert_eq!(it.file.close().unwrap_err().code(), NcError::System(5));
        assert!(it.file.is_open());
        let _ = it.file.abort();
        assert!(!it.file.is_open());
    }
}

#[test]
fn strings_are_copied() {
    struct Texts<'a>(&'a [&'a str]);
    impl zonda::VlenSource for Texts<'_> {
        fn text(&mut self, address: u64) -> Option<&[u8]> {
            let number = usize::try_from(address).ok()?.checked_sub(1)?;
            self.0.get(number).map(|text| text.as_bytes())
        }
        fn items(&mut self, _: u64, _: usize) -> &[u8] {
            &[]
        }
    }
    let folder = TempFolder::new("behind");
    let mut made = Vec::new();
    for how in ["off", "on"] {
        let path = folder.path().join(format!("strings-{how}.nc"));
        let format = Format::NetCdf4;
        let options = CreateOptions { format, write_behind: said(how), ..CreateOptions::default() };
        let file = Dataset::create(&path, &options).expect("create");
        let time = file.def_dim(b"time", 0).expect("time");
        let names: VarRef = file.def_var(b"names", STRING, &[time.0]).expect("names").into();
        file.enddef(Reserve::Default).expect("enddef");
        for step in 0..50 {
            let text = format!("step {step}");
            let slab = Hyperslab { start: &[step], count: &[1], stride: None };
            let given = [u64::from(step % 5 != 0).to_ne_bytes()].concat();
            let mut texts = Texts(&[&text]);
            let values = Values { bytes: &given, fetch: Some(&mut texts) };
            file.put_values(names, &slab, values).map(drop).expect("put");
        }
        file.close().expect("close");
        made.push(std::fs::read(&path).expect("read"));
    }
    assert!(made[0] == made[1]);
}

#[test]
fn threads_put_into_one_file() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let path = folder.path().join(format!("threads-{format:?}.nc"));
        let it = create(&path, format, "mem=2M,threads=2", None);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let it = &it;
                scope.spawn(move || {
                    for step in (thread..40).step_by(4) {
                        put_record(it, step).expect("put");
                        put_short(it, step, step as f64).expect("put");
                    }
                });
            }
        });
        it.file.set_write_behind(WriteBehind::Off).expect("off");
        assert_eq!(it.file.write_behind_status().0, 0);
        let mut back = vec![0; WIDTH * 4];
        for step in 0..40 {
            let slab = Hyperslab { start: &[step, 0], count: &[1, WIDTH], stride: None };
            it.file.get(it.wind, &slab, None, &mut back).map(drop).expect("get");
            assert!(back == record(step), "{format:?}, record {step}");
        }
        it.file.close().expect("close");
    }
}

/// Threads put values and get them back while another one switches write-behind on and off. (Once a put that had begun before it was switched off was
/// accepted afterwards, and the get looked into the file at once.)
#[test]
fn a_get_sees_the_put_before_it_while_write_behind_is_switched() {
    let folder = TempFolder::new("behind");
    for format in FORMATS {
        let path = folder.path().join(format!("switched-{format:?}.nc"));
        let it = create(&path, format, "off", None);
        for step in 0..3000 {
            put_short(&it, step, -1.0).expect("put");
        }
        let is_over = AtomicBool::new(false);
        let n_puts: usize = std::thread::scope(|scope| {
            let (it, is_over) = (&it, &is_over);
            let put_and_get = |thread: usize| {
                let mut n = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let (step, value) = ((n * 3 + thread) % 3000, (n % 30_000) as i16);
                    put_short(it, step, f64::from(value)).expect("put");
                    let mut back = [0; 2];
                    let slab = Hyperslab { start: &[step], count: &[1], stride: None };
                    it.file.get(it.short, &slab, None, &mut back).map(drop).expect("get");
                    assert_eq!(i16::from_ne_bytes(back), value, "{format:?}, put {n}");
                    n += 1;
                }
                n
            };
            let threads: Vec<_> =
                (0..3).map(|thread| scope.spawn(move || put_and_get(thread))).collect();
            for n in 0..400 {
                let how = if n % 2 == 0 { said("mem=1M,threads=2") } else { said("off") };
                it.file.set_write_behind(how.expect("a setting")).expect("switch");
                std::thread::yield_now();
            }
            is_over.store(true, Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
        });
        assert!(n_puts > 0);
        it.file.close().expect("close");
    }
}

#[test]
fn a_new_file_says_what_wrote_it_before_a_commit_does() {
    let folder = TempFolder::new("behind");
    for how in ["off", "on"] {
        let path = folder.path().join(format!("properties-{how}.nc"));
        let (format, write_behind) = (Format::NetCdf4, said(how));
        let options = CreateOptions { format, write_behind, ..CreateOptions::default() };
        let file = Dataset::create(&path, &options).expect("create");
        let x = file.def_dim(b"x", 4).expect("x");
        let var = file.def_var(b"v", FLOAT, &[x.0]).expect("v");
        let slab = Hyperslab { start: &[0], count: &[4], stride: None };
        // The first put ends define mode.
        for _ in 0..3 {
            file.put(var, &slab, Some(MemType::F32), &[0; 16]).map(drop).expect("put");
        }
        for name in [&b"_NCProperties"[..], b"_IsNetcdf4"] {
            let mut value = Vec::new();
            let got = file.get_att_list(VarId::GLOBAL, name, None, (&mut value, None));
            assert_eq!(got.expect("get_att").out_of_range, 0, "{how}");
            assert!(!value.is_empty(), "{how}");
        }
        file.close().expect("close");
    }
}
