use std::path::Path;
use std::sync::Arc;
use zonda_format::{
    Definitions as _, Dispatch as _, DispatchWrite as _, Reserve, StoreVars as _,
    TypeDefinitions as _,
};

use zonda_model::{DimId, MemType, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::Count;

use super::*;
use crate::Nc4OpenOptions;
use crate::write::testing::{GLOBAL, ROOT, created, get_data, of, put_data, put_ints};

const INT: i32 = 4;

fn reader(memory: &Arc<Memory>) -> Nc4File {
    let storage: Arc<dyn Storage> = memory.clone();
    Nc4File::open(storage, Path::new("test.nc"), Nc4OpenOptions::default()).unwrap()
}

/// A file with an unlimited dimension and a variable of it, and its writer.
fn written() -> (Nc4File, Arc<Memory>, VarId) {
    let (mut file, memory) = created(false);
    let t = file.def_dim(ROOT, b"t", 0).unwrap();
    let var = file.def_var(ROOT, b"a", INT, &[t.0]).unwrap();
    file.enddef(Reserve::Default).unwrap();
    (file, memory, var)
}

fn put(file: &mut Nc4File, var: VarId, at: usize, values: &[i32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    put_data(file, var, (&[at], &[values.len()]), MemType::I32, &bytes);
}

fn get(file: &Nc4File, var: VarId, n: usize) -> Vec<i32> {
    let bytes = get_data(file, var, (&[0], &[n]), MemType::I32);
    bytes.chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
}

fn len(file: &Nc4File) -> u64 {
    file.model().unwrap().dim(DimId(0)).unwrap().len
}

#[test]
fn a_reader_follows_a_writer() {
    let (mut writer, memory, var) = written();
    let mut reader = reader(&memory);
    assert_eq!(len(&reader), 0);
    for n in 1..50 {
        put(&mut writer, var, n - 1, &[n as i32]);
        writer.sync().unwrap();
        assert_eq!(len(&reader), n as u64 - 1, "not before it asks");
        assert!(reader.refresh_if_changed().unwrap());
        assert_eq!(len(&reader), n as u64);
        assert_eq!(get(&reader, var, n), (1..=n as i32).collect::<Vec<_>>());
    }
    // Values that are written over where they are.
    put(&mut writer, var, 0, &[-7]);
    put_ints(&mut writer, GLOBAL, "att", INT, &[1, 2]).unwrap();
    put_ints(&mut writer, of(var), "att", INT, &[3]).unwrap();
    writer.sync().unwrap();
    reader.set_chunk_cache(var.into(), (12345, 11, 0.5)).unwrap();
    reader.refresh().unwrap();
    assert_eq!(get(&reader, var, 2), [-7, 2]);
    assert_eq!((reader.n_atts(GLOBAL).unwrap(), reader.n_atts(of(var)).unwrap()), (1, 1));
    assert_eq!(reader.chunk_cache(var.into()).unwrap(), (12345, 11, 0.5));
}

#[test]
fn nothing_is_read_where_nothing_changed() {
    let (_writer, memory, _) = written();
    let storage = Count::new(memory.clone());
    let counts = storage.handle();
    let storage: Arc<dyn Storage> = Arc::new(storage);
    let mut reader =
        Nc4File::open(storage, Path::new("test.nc"), Nc4OpenOptions::default()).unwrap();
    reader.model().unwrap();
    // As after the time that a clock may need.
    reader.read.is_settled = true;
    let before = counts.counts().read.calls;
    assert!(!reader.refresh_if_changed().unwrap());
    assert_eq!(counts.counts().read.calls, before);
    memory.write_at(memory.len().unwrap(), b"x").unwrap();
    assert!(reader.refresh_if_changed().unwrap());
    assert!(counts.counts().read.calls > before);
    assert!(!reader.read.is_settled, "the clock may stand still");
    assert!(reader.refresh_if_changed().unwrap());
}

#[test]
fn numbers_stay_what_they_are() {
    let (mut writer, memory, _) = written();
    writer.redef().unwrap();
    let one = writer.def_group(ROOT, b"one").unwrap();
    let two = writer.def_group(ROOT, b"two").unwrap();
    let x = writer.def_dim(two, b"x", 3).unwrap();
    let b = writer.def_var(two, b"b", INT, &[x.0]).unwrap();
    writer.sync().unwrap();
    let mut reader = reader(&memory);
    let path = |file: &Nc4File, id| file.model().unwrap().group_path(id);
    assert_eq!((path(&reader, one), path(&reader, two)), ("/one".into(), "/two".into()));
    // A walk meets these before "two".
    writer.redef().unwrap();
    let inner = writer.def_group(one, b"inner").unwrap();
    let y = writer.def_dim(inner, b"y", 4).unwrap();
    writer.def_var(inner, b"c", INT, &[y.0]).unwrap();
    writer.def_var(ROOT, b"late", INT, &[]).unwrap();
    writer.rename_var(VarRef { group: two, var: b }, b"renamed").unwrap();
    writer.sync().unwrap();
    reader.refresh().unwrap();
    assert_eq!((path(&reader, one), path(&reader, two)), ("/one".into(), "/two".into()));
    let model = reader.model().unwrap();
    assert_eq!(model.groups.len(), 4);
    let third = GroupId(3);
    assert_eq!(path(&reader, third), "/one/inner");
    assert_eq!(model.group(third).unwrap().parent, Some(one));
    assert_eq!(model.group(one).unwrap().children, [third]);
    assert_eq!(&*model.var(two, b).unwrap().name, b"renamed");
    assert_eq!(&*model.var(two, b).unwrap().dims, [x]);
    assert_eq!(&*model.dim(x).unwrap().name, b"x");
    let c = model.var(third, VarId(0)).unwrap();
    assert_eq!(&*model.dim(c.dims[0]).unwrap().name, b"y");
    assert_eq!(model.dim(c.dims[0]).unwrap().group, third);
    assert_eq!(model.find_child(one, b"inner"), Some(third));
    assert_eq!(model.groups[0].find_var(b"late"), Some(VarId(1)));
}

#[test]
fn a_writer_takes_over_what_another_wrote() {
    let (mut writer, memory, var) = written();
    let storage: Arc<dyn Storage> = memory.clone();
    let name = Path::new("test.nc");
    let mut other = Nc4File::open_for_writing(storage, name, Nc4OpenOptions::default()).unwrap();
    put(&mut writer, var, 0, &[1, 2]);
    writer.sync().unwrap();
    assert_eq!(len(&other), 0);
    other.reread().unwrap();
    put(&mut other, var, 2, &[3]);
    other.close().unwrap();
    writer.reread().unwrap();
    put(&mut writer, var, 3, &[4]);
    writer.close().unwrap();
    assert_eq!(get(&reader(&memory), var, 4), [1, 2, 3, 4]);
}

#[test]
fn damage_is_an_error_and_what_was_known_stays() {
    let (mut writer, memory, var) = written();
    put(&mut writer, var, 0, &[1, 2]);
    writer.close().unwrap();
    let mut reader = reader(&memory);
    assert_eq!(len(&reader), 2);
    let mut byte = [0];
    memory.read_at(60, &mut byte).unwrap();
    memory.write_at(60, &[!byte[0]]).unwrap();
    assert!(reader.refresh().is_err());
    assert_eq!(len(&reader), 2);
    memory.write_at(60, &byte).unwrap();
    assert!(reader.refresh_if_changed().unwrap());
    assert_eq!(get(&reader, var, 2), [1, 2]);
}

#[test]
fn patience_is_for_files_that_change_and_has_an_end() {
    let memory = Memory::from_slice(b"some bytes");
    let read = ReadState::now(&memory);
    // A memory has no clock, so nothing says that it was changed a moment ago.
    assert!(!TornReadRetry::with(&memory, &read).is_left());
    let mut patience = TornReadRetry::with(&memory, &read);
    for _ in 0..REREADS_CHANGING {
        memory.write_at(0, b"x").unwrap();
        assert!(patience.is_left());
    }
    memory.write_at(0, b"x").unwrap();
    assert!(!patience.is_left());
    // It changed once and does so no more.
    let mut patience = TornReadRetry::with(&memory, &read);
    assert!(patience.is_left() && !patience.is_left());
}

#[test]
fn a_file_that_was_just_written_is_read_again_a_few_times() {
    let path = std::env::temp_dir().join(format!("zonda-patience-{}", std::process::id()));
    std::fs::write(&path, b"\x89HDF\r\n\x1a\nnothing").unwrap();
    let file = zonda_storage::backend::File::open_read(&path).unwrap();
    let mut patience = TornReadRetry::with(&file, &ReadState::now(&file));
    let n = std::iter::from_fn(|| patience.is_left().then_some(())).take(100).count();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(n, REREADS_UNCHANGED as usize);
}
