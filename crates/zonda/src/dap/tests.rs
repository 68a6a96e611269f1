//! A dataset behind a server that counts what it is asked for, and can be told to fail.
//!
//! Elements are numbered: 1,000,000 times the variable and the place. A body has the elements of all parts, last part first, as bytes of `int`.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use zonda_dap::file::DapFile;
use zonda_dap::{
    Asked, DapError, Dim, Document, Group, Model, Part, Protocol, Request, Server, Sink, Var,
};
use zonda_format::{Destination, OwnedValues};
use zonda_model::{ExtType, MemType, NcError, VarId};
use zonda_runtime::callout::Mark;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};
use zonda_slab::{Hyperslab, Indices};
use zonda_storage::{RemoteFailure, StorageError};

use super::copy_of;
use crate::dataset::Dataset;
use crate::open_file::OpenFile;

/// A part of a request: variable, first elements, counts, strides.
#[derive(Clone, Debug, PartialEq)]
struct Told(usize, Vec<u64>, Vec<u64>, Vec<u64>);

#[derive(Debug)]
struct Fake {
    shapes: Vec<Vec<u64>>,
    heeds: bool,
    made: Mutex<HashMap<String, Vec<Told>>>,
    asked: Mutex<Vec<Vec<Told>>>,
    /// Bodies are cut to so many bytes, or have so many behind them.
    cut: AtomicUsize,
    more: AtomicUsize,
    /// Requests for several variables fail.
    no_lists: AtomicBool,
    /// The first response shows that requests have to have another form.
    other_form: AtomicBool,
    has_other_form: AtomicBool,
    running: AtomicUsize,
    most_running: AtomicUsize,
    pause: Duration,
}

#[derive(Debug)]
struct FakeProtocol(Arc<Fake>, Model);

#[derive(Debug)]
struct FakeServer(Arc<Fake>);

impl Fake {
    fn new(shapes: &[&[u64]]) -> Fake {
        Fake {
            shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
            heeds: true,
            made: Mutex::ranked(Rank::Servers, HashMap::new()),
            asked: Mutex::ranked(Rank::Servers, Vec::new()),
            cut: AtomicUsize::new(usize::MAX),
            more: AtomicUsize::new(0),
            no_lists: AtomicBool::new(false),
            other_form: AtomicBool::new(false),
            has_other_form: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            pause: Duration::ZERO,
        }
    }

    /// The variables of each request so far.
    fn asked(&self) -> Vec<Vec<usize>> {
        let asked = self.asked.lock();
        asked.iter().map(|parts| parts.iter().map(|part| part.0).collect()).collect()
    }

    fn open(self, settings: &[(&str, &str)]) -> (Arc<Fake>, Dataset) {
        let fake = Arc::new(self);
        let model = model(&fake.shapes);
        let settings =
            settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let asked = Asked { constraint: String::new(), settings };
        let copy = copy_of(&model).unwrap();
        let protocol = Box::new(FakeProtocol(Arc::clone(&fake), model));
        let server = Arc::new(FakeServer(Arc::clone(&fake)));
        let file = DapFile::new(protocol, server, &asked, copy).unwrap();
        let open = OpenFile::new(Box::new(file), Mark::NONE, None);
        (fake, Dataset::new(Path::new("fake"), open, None))
    }
}

/// Each variable has dimensions of its own; those of one dimension are called as it is.
fn model(shapes: &[Vec<u64>]) -> Model {
    let mut model =
        Model { groups: vec![Group { name: "/".into(), ..Group::default() }], ..Model::default() };
    for (var, shape) in shapes.iter().enumerate() {
        let mut dims = Vec::new();
        for (axis, &len) in shape.iter().enumerate() {
            let name = if shape.len() == 1 { format!("v{var}") } else { format!("d{var}_{axis}") };
            dims.push(model.dims.len());
            model.dims.push(Dim { group: 0, name, len, is_unlimited: false });
        }
        let nc_type = ExtType::Int.nc_type();
        model.vars.push(Var { group: 0, name: format!("v{var}"), nc_type, dims, atts: vec![] });
    }
    model
}

fn told(parts: &[Part<'_>]) -> Vec<Told> {
    let one = |part: &Part<'_>| {
        Told(part.var, part.start.to_vec(), part.count.to_vec(), part.stride.to_vec())
    };
    parts.iter().map(one).collect()
}

fn number(var: usize, place: u64) -> i32 {
    var as i32 * 1_000_000 + place as i32
}

/// The elements of a part.
fn elements(shape: &[u64], Told(var, start, count, stride): &Told) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut all = Indices::of(count);
    while let Some(at) = all.next() {
        let place = (0..shape.len()).fold(0, |place, axis| {
            assert!(start[axis] + at[axis] * stride[axis] < shape[axis]);
            place * shape[axis] + start[axis] + at[axis] * stride[axis]
        });
        bytes.extend(number(*var, place).to_ne_bytes());
    }
    bytes
}

impl Protocol for FakeProtocol {
    fn model(&self) -> &Model {
        &self.1
    }

    fn request(&self, parts: &[Part<'_>]) -> Result<Request, DapError> {
        let parts = told(parts);
        let each =
            parts.iter().map(|part| format!("v{}{:?}{:?}{:?}", part.0, part.1, part.2, part.3));
        let query: Vec<String> = each.collect();
        let mut query = query.join(",");
        if self.0.has_other_form.load(Relaxed) {
            query += "&other";
        }
        self.0.made.lock().insert(query.clone(), parts);
        Ok(Request { extension: ".dods", query })
    }

    fn read(
        &self,
        parts: &[Part<'_>],
        body: &mut dyn Read,
        sink: &mut dyn Sink,
    ) -> Result<(), DapError> {
        let wrong = |what: &str| DapError::malformed(Document::Dods, 0, what);
        if self.0.other_form.load(Relaxed) && !self.0.has_other_form.swap(true, Relaxed) {
            return Err(wrong("not understood"));
        }
        for (at, part) in parts.iter().enumerate().rev() {
            let mut left = part.count.iter().product::<u64>() as usize * 4;
            let mut block = [0; 4096];
            while left > 0 {
                let n = left.min(block.len());
                body.read_exact(&mut block[..n]).map_err(|_| wrong("cut"))?;
                sink.plain(at, &block[..n])?;
                left -= n;
            }
        }
        match body.read(&mut [0]) {
            Ok(0) => Ok(()),
            _ => Err(wrong("longer")),
        }
    }

    fn has_pointers(&self, _: usize) -> bool {
        false
    }
}

impl Server for FakeServer {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let fake = &self.0;
        let running = fake.running.fetch_add(1, Relaxed) + 1;
        fake.most_running.fetch_max(running, Relaxed);
        std::thread::sleep(fake.pause);
        fake.running.fetch_sub(1, Relaxed);
        let parts = fake.made.lock()[&request.query].clone();
        fake.asked.lock().push(parts.clone());
        if parts.len() > 1 && fake.no_lists.load(Relaxed) {
            let (url, what) = ("fake".into(), "no lists".into());
            let (kind, status) = (RemoteFailure::Broken, Some(500));
            return Err(StorageError::Remote { url, range: None, kind, status, what });
        }
        let mut body: Vec<u8> =
            parts.iter().rev().flat_map(|part| elements(&fake.shapes[part.0], part)).collect();
        body.truncate(fake.cut.load(Relaxed));
        body.extend(vec![7; fake.more.load(Relaxed)]);
        Ok(Box::new(Cursor::new(body)))
    }

    fn heeds_constraints(&self) -> bool {
        self.0.heeds
    }

    fn parallel(&self) -> usize {
        4
    }
}

fn get(
    dataset: &Dataset,
    var: usize,
    start: &[usize],
    count: &[usize],
    stride: &[isize],
) -> Result<Vec<i32>, NcError> {
    let n = count.iter().product::<usize>();
    let mut bytes = vec![1; n * 4];
    let stride = (!stride.is_empty()).then_some(stride);
    let slab = Hyperslab { start, count, stride };
    let got = dataset.get(VarId(var as i32), &slab, Some(MemType::I32), &mut bytes);
    let values = bytes.chunks(4).map(|one| i32::from_ne_bytes(one.try_into().unwrap())).collect();
    match got {
        Ok(converted) => {
            assert_eq!(converted.out_of_range, 0);
            Ok(values)
        }
        Err(error) => {
            // Nothing is left in the caller's memory that may be taken for a value, unless the arguments were refused.
            let fill = i32::from_ne_bytes(
                zonda_model::default_fill(ExtType::Int)[..4].try_into().unwrap(),
            );
            let code = error.code();
            let expected = if code == NcError::DataDds { fill } else { 0x0101_0101 };
            assert!(values.iter().all(|&value| value == expected), "{code:?} {values:?}");
            Err(code)
        }
    }
}

/// All of a variable of `n` elements.
fn all(dataset: &Dataset, var: usize, n: usize) -> Result<(), NcError> {
    let values = get(dataset, var, &[0], &[n], &[])?;
    assert!(values.iter().enumerate().all(|(at, &value)| value == number(var, at as u64)));
    Ok(())
}

#[test]
fn selections_go_into_requests_and_come_back_in_order() {
    let (fake, dataset) = Fake::new(&[&[100, 200], &[]]).open(&[("noprefetch", "")]);
    let values = get(&dataset, 0, &[3, 10], &[2, 3], &[50, 7]).unwrap();
    let expected: Vec<i32> =
        [3, 53].iter().flat_map(|row| [10, 17, 24].map(|at| row * 200 + at)).collect();
    assert_eq!(values, expected);
    let scalar = get(&dataset, 1, &[], &[], &[]).unwrap();
    assert_eq!(scalar, [number(1, 0)]);
    assert_eq!(get(&dataset, 0, &[0, 0], &[0, 5], &[]).unwrap(), [0i32; 0]);
    assert_eq!(get(&dataset, 0, &[0, 0], &[101, 1], &[]).unwrap_err(), NcError::Edge);
    let asked = fake.asked.lock();
    let first = Told(0, vec![3, 10], vec![2, 3], vec![50, 7]);
    assert_eq!(*asked, [vec![first], vec![Told(1, vec![], vec![], vec![])]]);
}

#[test]
fn small_variables_come_with_the_first_request_and_stay() {
    let (fake, dataset) = Fake::new(&[&[10_000], &[100], &[50, 2], &[20_000], &[4096]]).open(&[]);
    get(&dataset, 0, &[5], &[3], &[]).unwrap();
    // Coordinates first.
    assert_eq!(fake.asked(), [vec![0, 1, 4, 2]]);
    for var in [1, 4] {
        all(&dataset, var, if var == 1 { 100 } else { 4096 }).unwrap();
        assert_eq!(
            get(&dataset, var, &[7], &[2], &[9]).unwrap(),
            [7, 16].map(|at| number(var, at))
        );
    }
    assert_eq!(
        get(&dataset, 2, &[0, 1], &[2, 1], &[3, 1]).unwrap(),
        [1, 7].map(|at| number(2, at))
    );
    assert_eq!(fake.asked().len(), 1);
}

#[test]
fn variables_read_in_their_order_come_ahead_and_never_more_than_were_read() {
    let shapes: Vec<Vec<u64>> = vec![vec![10_000]; 20];
    let shapes: Vec<&[u64]> = shapes.iter().map(|shape| &shape[..]).collect();
    let (fake, dataset) = Fake::new(&shapes).open(&[]);
    (0..20).for_each(|var| all(&dataset, var, 10_000).unwrap());
    let asked = fake.asked();
    assert_eq!(asked[..3], [vec![0], vec![1, 2, 3], vec![4, 5, 6, 7, 8, 9]]);
    assert!(asked.len() <= 5, "{asked:?}");
    let mut each: Vec<usize> = asked.concat();
    each.sort_unstable();
    assert_eq!(each, (0..20).collect::<Vec<_>>());
    // What was read is here.
    (0..20).for_each(|var| all(&dataset, var, 10_000).unwrap());
    assert_eq!(fake.asked().len(), asked.len());
    // Not where nothing is to be kept, or prefetched.
    for setting in ["nocache", "noprefetch"] {
        let (fake, dataset) = Fake::new(&shapes).open(&[(setting, "")]);
        (0..5).for_each(|var| all(&dataset, var, 10_000).unwrap());
        assert_eq!(fake.asked(), [[0], [1], [2], [3], [4]]);
    }
}

#[test]
fn a_limit_is_kept() {
    let shapes: [&[u64]; 8] = [&[10_000]; 8];
    let fetched = |limit| {
        let (fake, dataset) = Fake::new(&shapes).open(&[("cachelimit", limit)]);
        for _ in 0..2 {
            (0..8).for_each(|var| all(&dataset, var, 10_000).unwrap());
        }
        fake.asked().concat().len()
    };
    // 40,000 bytes each: all of them fit, or four, or none.
    assert_eq!(fetched("1000000"), 8);
    assert!((12..=16).contains(&fetched("170000")), "{}", fetched("170000"));
    assert_eq!(fetched("1000"), 16);
}

#[test]
fn a_server_that_takes_no_lists_is_asked_for_one_by_one() {
    let fake = Fake::new(&[&[10_000], &[100], &[10_000]]);
    fake.no_lists.store(true, Relaxed);
    let (fake, dataset) = fake.open(&[]);
    all(&dataset, 0, 10_000).unwrap();
    all(&dataset, 1, 100).unwrap();
    all(&dataset, 2, 10_000).unwrap();
    assert_eq!(fake.asked(), [vec![0, 1], vec![0], vec![1], vec![2]]);
}

#[test]
fn long_selections_come_in_parts_at_the_same_time() {
    let mut fake = Fake::new(&[&[64, 1 << 18]]);
    fake.pause = Duration::from_millis(20);
    let (fake, dataset) = fake.open(&[]);
    let values = get(&dataset, 0, &[0, 0], &[64, 1 << 18], &[]).unwrap();
    assert!(values.iter().enumerate().all(|(at, &value)| value == at as i32));
    assert_eq!(fake.asked().len(), 4);
    assert!(fake.most_running.load(Relaxed) > 1);
    // One of them fails, and so all do.
    fake.cut.store((16 << 18) * 4 - 1, Relaxed);
    assert_eq!(get(&dataset, 0, &[0, 0], &[64, 1 << 18], &[]).unwrap_err(), NcError::DataDds);
}

#[test]
fn every_cut_and_every_byte_more_is_an_error_and_leaves_fill() {
    let (fake, dataset) = Fake::new(&[&[40, 5], &[3]]).open(&[("nocache", "")]);
    let whole = || get(&dataset, 0, &[1, 0], &[9, 5], &[]);
    let len = 9 * 5 * 4;
    for cut in 0..len {
        fake.cut.store(cut, Relaxed);
        assert_eq!(whole().unwrap_err(), NcError::DataDds, "cut at {cut}");
    }
    fake.cut.store(usize::MAX, Relaxed);
    for more in [1, 4, 100_000] {
        fake.more.store(more, Relaxed);
        assert_eq!(whole().unwrap_err(), NcError::DataDds);
    }
    fake.more.store(0, Relaxed);
    assert!(whole().is_ok());
    // The same of what is kept: it is not, then.
    let (fake, dataset) = Fake::new(&[&[40], &[3]]).open(&[]);
    fake.cut.store(3, Relaxed);
    assert_eq!(all(&dataset, 0, 40).unwrap_err(), NcError::DataDds);
    fake.cut.store(usize::MAX, Relaxed);
    all(&dataset, 0, 40).unwrap();
    all(&dataset, 1, 3).unwrap();
}

#[test]
fn saved_responses_are_asked_for_whole() {
    for is_kept in [true, false] {
        let mut fake = Fake::new(&[&[10_000], &[0], &[30, 2]]);
        fake.heeds = false;
        let (fake, dataset) = fake.open(if is_kept { &[] } else { &[("nocache", "")] });
        assert_eq!(
            get(&dataset, 2, &[1, 1], &[3, 1], &[2, 1]).unwrap(),
            [3, 7, 11].map(|at| number(2, at))
        );
        all(&dataset, 0, 10_000).unwrap();
        let one = vec![
            Told(0, vec![0], vec![10_000], vec![1]),
            Told(2, vec![0, 0], vec![30, 2], vec![1, 1]),
        ];
        let expected = if is_kept { vec![one] } else { vec![one.clone(), one] };
        assert_eq!(*fake.asked.lock(), expected);
    }
}

#[test]
fn threads_get_what_they_ask_for() {
    let shapes: Vec<Vec<u64>> = vec![vec![5_000]; 12];
    let shapes: Vec<&[u64]> = shapes.iter().map(|shape| &shape[..]).collect();
    let mut fake = Fake::new(&shapes);
    fake.pause = Duration::from_millis(1);
    let (_, dataset) = fake.open(&[("cachelimit", "100000")]);
    std::thread::scope(|scope| {
        for seed in 0..8usize {
            let dataset = &dataset;
            let work = move || {
                for round in 0..40 {
                    let var = (seed * 7 + round * 5) % 12;
                    if round % 3 == 0 {
                        let start = (seed * 131 + round * 17) % 4_000;
                        let values = get(dataset, var, &[start], &[300], &[3]).unwrap();
                        assert!(
                            values
                                .iter()
                                .enumerate()
                                .all(|(at, &value)| value == number(var, (start + 3 * at) as u64))
                        );
                    } else {
                        all(dataset, var, 5_000).unwrap();
                    }
                }
            };
            worker::spawn_scoped(scope, format!("get {seed}"), Purpose::Share, work).unwrap();
        }
    });
}

#[test]
fn nothing_can_be_changed() {
    let (_, dataset) = Fake::new(&[&[3]]).open(&[]);
    assert!(!dataset.is_writable() && dataset.is_remote() && dataset.storage().is_none());
    assert_eq!(dataset.capabilities().formatx, 5);
    assert_eq!(dataset.format(), zonda_format::Format::Cdf1);
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    assert_eq!(dataset.put(VarId(0), &slab, None, &[0; 12]).unwrap_err().code(), NcError::Perm);
    assert_eq!(dataset.redef().unwrap_err().code(), NcError::Perm);
    assert_eq!(dataset.def_dim(b"x", 1).unwrap_err().code(), NcError::Perm);
    let mut owned = OwnedValues::default();
    let room = Destination { bytes: &mut [0; 12], place: Some(&mut owned) };
    assert!(dataset.get_values(VarId(0), &slab, room).is_ok());
    dataset.close().unwrap();
    assert_eq!(all(&dataset, 0, 3).unwrap_err(), NcError::BadId);
}

#[test]
fn variables_too_long_for_a_classic_file_are_no_matter() {
    let (_, dataset) = Fake::new(&[&[1 << 31, 4], &[1 << 30, 8], &[5]]).open(&[]);
    assert_eq!(dataset.format(), zonda_format::Format::Cdf1);
    let values = get(&dataset, 1, &[200, 1], &[2, 2], &[]).unwrap();
    assert_eq!(values, [1601, 1602, 1609, 1610].map(|at| number(1, at)));
}

#[test]
fn another_request_for_the_same_elements_is_made_once() {
    let fake = Fake::new(&[&[100_000]]);
    fake.other_form.store(true, Relaxed);
    let (fake, dataset) = fake.open(&[]);
    assert_eq!(get(&dataset, 0, &[5], &[2], &[3]).unwrap(), [5, 8]);
    assert_eq!(fake.asked().len(), 2);
    assert_eq!(get(&dataset, 0, &[6], &[2], &[3]).unwrap(), [6, 9]);
    assert_eq!(fake.asked().len(), 3);
}
