use zonda_format::{GroupId, VarRef};
use zonda_model::{Hyperslab, VarId};
use zonda_runtime::worker::{self, Purpose};
use zonda_served::OwnedSlab;

use super::*;
use crate::open::CreateOptions;

const VAR: VarRef = VarRef { group: GroupId::ROOT, var: VarId(0) };
const COLUMNS: usize = 20_000;

/// A file with rows of bytes, each of which has the number of its row.
fn file(folder: &Path, n_rows: usize) -> std::path::PathBuf {
    let path = folder.join("rows.nc");
    let dataset = Dataset::create(&path, &CreateOptions::default()).unwrap();
    let dims = [(b"row", n_rows), (b"col", COLUMNS)]
        .map(|(name, len)| dataset.def_dim_in(GroupId::ROOT, name, len).unwrap().0);
    dataset.def_var_in(GroupId::ROOT, b"v", 1, &dims).unwrap();
    dataset.enddef(zonda_format::Reserve::Default).unwrap();
    for row in 0..n_rows {
        let slab = Hyperslab { start: &[row, 0], count: &[1, COLUMNS], stride: None };
        let put = dataset.put(VAR, &slab, None, &vec![row as u8; COLUMNS]).unwrap();
        assert_eq!(put.out_of_range, 0);
    }
    dataset.close().unwrap();
    path
}

fn rows(first: usize, n: usize) -> Call {
    let slab = Hyperslab { start: &[first, 0], count: &[n, COLUMNS], stride: None };
    Call::Get { var: VAR, slab: OwnedSlab::of(&slab), mem: None }
}

fn asked(path: &Path) -> ReadOpening {
    let dataset = Dataset::open(path, &OpenOptions::default()).unwrap();
    let identity = FileIdentity::of(dataset.file.as_ref().unwrap()).unwrap();
    ReadOpening::new(path, identity, true)
}

fn values(ready: &Ready) -> Vec<u8> {
    match &ready.values {
        Held::Few(values) => values.clone(),
        Held::Many(sheet, n) => {
            use std::os::unix::fs::FileExt as _;
            let file = std::fs::File::from(sheet.shown().unwrap().try_clone_to_owned().unwrap());
            let mut values = vec![0; usize::try_from(*n).unwrap()];
            file.read_exact_at(&mut values, 0).unwrap();
            values
        }
    }
}

fn opened(path: &Path) -> (Readings, ReadOpening) {
    // Younger files are not shared.
    std::thread::sleep(std::time::Duration::from_millis(50));
    (Readings::new(), asked(path))
}

#[test]
fn what_several_ask_for_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let (readings, asked) = opened(&file(folder.path(), 9));
    let users: Vec<User> = (0..4).map(|_| readings.open(&asked).unwrap()).collect();
    let shared = users[0].file();
    assert!(users.iter().all(|user| Arc::ptr_eq(user.file(), shared)));
    let all: Vec<Arc<Ready>> = std::thread::scope(|scope| {
        let get = || shared.get(&rows(3, 2), &mut Vec::new()).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| worker::spawn_scoped(scope, String::new(), Purpose::Ahead, get).unwrap())
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|ready| Arc::ptr_eq(ready, &all[0])), "read more than once");
    assert_eq!(values(&all[0]), [vec![3; COLUMNS], vec![4; COLUMNS]].concat());
    // All have it.
    assert!(shared.results.lock().is_empty());
    // Of a single client nothing is kept.
    drop(users.into_iter().skip(1).collect::<Vec<_>>());
}

#[test]
fn what_is_read_ahead_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (readings, asked) = opened(&file(folder.path(), 9));
    let user = readings.open(&asked).unwrap();
    let file = user.file();
    let n_bytes = COLUMNS as u64;
    readings.ahead.expect(file, rows(5, 1), n_bytes);
    assert!(file.expect(&rows(5, 1), n_bytes).is_none(), "it was expected before");
    let made = Arc::clone(&file.results.lock()[0].slot).wait().unwrap();
    let got = file.get(&rows(5, 1), &mut Vec::new()).unwrap();
    assert!(Arc::ptr_eq(&made, &got));
    assert_eq!(values(&got), vec![5; COLUMNS]);
    assert!(file.results.lock().is_empty());
    // Nobody wants it; what does not exist; more than there may be.
    file.expect(&rows(6, 1), n_bytes).unwrap();
    file.give_up(&rows(6, 1));
    let slot = file.expect(&rows(9, 1), n_bytes).unwrap();
    assert!(file.make(&rows(9, 1), &slot, &mut Vec::new()) && slot.wait().is_none());
    assert!(file.expect(&rows(7, 1), most_bytes() + 1).is_none());
    assert!(file.results.lock().is_empty());
    // A result that was begun by nobody yet is made by who asks.
    file.expect(&rows(8, 1), n_bytes).unwrap();
    assert_eq!(values(&file.get(&rows(8, 1), &mut Vec::new()).unwrap()), vec![8; COLUMNS]);
}

#[test]
fn few_results_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let n_rows = SERVER_MOST_RESULTS + 20;
    let (readings, asked) = opened(&file(folder.path(), n_rows));
    let users = [readings.open(&asked).unwrap(), readings.open(&asked).unwrap()];
    let file = users[0].file();
    for row in 0..n_rows {
        file.get(&rows(row, 1), &mut Vec::new()).unwrap();
    }
    assert_eq!(file.results.lock().len(), SERVER_MOST_RESULTS);
    assert!(file.results.lock().iter().all(|entry| entry.call != rows(0, 1)), "the oldest is kept");
    // What comes next takes the place of what somebody had.
    let n_bytes = COLUMNS as u64;
    assert!(file.expect(&rows(0, 1), n_bytes).is_some());
    assert_eq!(file.results.lock().len(), SERVER_MOST_RESULTS);
}

#[test]
fn another_state_of_the_file_is_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), 3);
    let (readings, before) = opened(&path);
    let old = readings.open(&before).unwrap();
    file(folder.path(), 4);
    let (_, after) = opened(&path);
    let new = readings.open(&after).unwrap();
    assert!(!Arc::ptr_eq(old.file(), new.file()));
    assert!(new.file().get(&rows(3, 1), &mut Vec::new()).is_ok());
    // Who has the old one open still, and comes now, reads it by itself.
    drop(old);
    assert!(readings.open(&before).is_err());
    // A wrong get is an error, and not kept.
    assert!(new.file().get(&rows(4, 1), &mut Vec::new()).is_err());
    assert!(new.file().results.lock().is_empty());
}
