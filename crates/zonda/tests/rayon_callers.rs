//! Callers that are threads of a pool of their own: a call waits for its own work only, and runs none of
//! theirs meanwhile, which might enter the file that it has locked.

use rayon::prelude::*;
use zonda::{
    Access, CreateOptions, Dataset, ExtType, Format, GroupId, Hyperslab, MemType, OpenOptions,
    Reserve, StorageRequest, Transfer, VarId, VarRef,
};
use zonda_testkit::TempFolder;

const RECORDS: usize = 16;
const LEN: usize = 1 << 18;
const CHUNK: usize = 1 << 14;
const VAR: VarRef = VarRef { group: GroupId::ROOT, var: VarId(0) };

fn value(record: usize, k: usize) -> f32 {
    (k as f32) * 0.37 + (k % 977) as f32 + record as f32
}

fn create(path: &std::path::Path) -> Dataset {
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create(path, &options).unwrap();
    let t = file.def_dim(b"t", 0).unwrap().0;
    let x = file.def_dim(b"x", LEN).unwrap().0;
    let var: VarRef = file.def_var(b"v", ExtType::Float.nc_type(), &[t, x]).unwrap().into();
    file.def_var_chunking(var, StorageRequest::Chunked, Some(&[1, CHUNK])).unwrap();
    file.def_var_deflate(var, true, Some(1)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    file
}

fn put(file: &Dataset, record: usize) {
    let values: Vec<u8> = (0..LEN).flat_map(|k| value(record, k).to_ne_bytes()).collect();
    let slab = Hyperslab { start: &[record, 0], count: &[1, LEN], stride: None };
    let put = file.put(VAR, &slab, Some(MemType::F32), &values);
    assert_eq!(put.unwrap().out_of_range, 0);
}

fn get(file: &Dataset, record: usize) {
    let mut bytes = vec![0; 4 * LEN];
    let slab = Hyperslab { start: &[record, 0], count: &[1, LEN], stride: None };
    let got = file.get(VAR, &slab, Some(MemType::F32), &mut bytes);
    assert_eq!(got.unwrap().out_of_range, 0);
    for (k, found) in bytes.chunks_exact(4).enumerate() {
        assert_eq!(found, value(record, k).to_ne_bytes(), "record {record} element {k}");
    }
}

#[test]
fn tasks_of_a_callers_pool_share_a_file() {
    let folder = TempFolder::new("rayon-callers");
    for n_threads in [2, 3] {
        let path = folder.file("a.nc");
        let callers = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let file = create(&path);
        callers.install(|| (0..RECORDS).into_par_iter().for_each(|record| put(&file, record)));
        file.close().unwrap();

        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        callers.install(|| (0..RECORDS).into_par_iter().for_each(|record| get(&file, record)));
    }
}

/// Tasks that make tasks, and wait for them; and a task that panics in a call, whose file the others still have.
#[test]
fn tasks_may_be_nested_and_may_panic() {
    let folder = TempFolder::new("rayon-nested");
    let path = folder.file("a.nc");
    let callers = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let file = create(&path);
    let panicked = callers.install(|| {
        let both = rayon::join(
            || {
                (0..4)
                    .into_par_iter()
                    .for_each(|k| (0..4).into_par_iter().for_each(|n| put(&file, 4 * k + n)))
            },
            || {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let slab = Hyperslab { start: &[0, 0], count: &[1, LEN], stride: None };
                    let mut begun = file.put_to(VAR).unwrap();
                    let mut put = Transfer::new(Access { var: VAR, slab, mem: Some(MemType::F32) });
                    let put = begun.check(&mut put).unwrap();
                    assert_eq!(put.n_bytes(), 4 * LEN);
                    std::panic::resume_unwind(Box::new("on purpose"));
                }))
            },
        );
        both.1.is_err()
    });
    assert!(panicked);
    // The elements of a put that panicked are as they were, or partly written; here the put had not begun.
    file.close().unwrap();
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    callers.install(|| (0..RECORDS).into_par_iter().for_each(|record| get(&file, record)));
}
