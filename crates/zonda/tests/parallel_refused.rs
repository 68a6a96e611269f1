//! Filters that refuse chunks of files of several ranks, where puts return before the filters have them: all ranks are told once, and nothing else
//! is lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, FillMode, FilterSpec, Format, Hyperslab, MemType, OpenOptions, Reserve,
    Result, StorageRequest, VarId, WriteBehind, WriteBehindOptions, set_plugin_path,
};

/// Elements of a rank, whose first byte is refused by the filter.
const REFUSED: i32 = -1;
const RANKS: usize = 3;
const EACH: usize = 4;

/// A folder with a filter that refuses chunks of 0xff; none without a C compiler. Made once: where each test made it, one could load what the other
/// had half written.
static PLUGINS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source.join("../zonda-plugin/tests/plugins/inplace.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused");
    std::fs::create_dir_all(&folder).unwrap();
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-shared", "-fPIC", "-o"]);
    match command.arg(folder.join("libinplace.so")).arg(source).status() {
        Ok(status) => {
            assert!(status.success());
            Some(folder)
        }
        Err(error) => {
            eprintln!("skipped: no C compiler ({error})");
            None
        }
    }
});

fn created(team: &threads::Threads, path: &Path) -> (Dataset, [VarId; 3]) {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let write_behind = Some(WriteBehind::On(WriteBehindOptions::default()));
    let options =
        CreateOptions { format: Format::NetCdf4, write_behind, ..CreateOptions::default() };
    let file = Dataset::create_parallel(team, path, &options).unwrap();
    file.set_fill(FillMode::Fill).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", RANKS * EACH).unwrap();
    let of = |name: &[u8], dims: &[i32], chunk: &[usize]| {
        let var = file.def_var(name, 4, dims).unwrap();
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(chunk)).unwrap();
        var
    };
    let whole = of(b"whole", &[x.0], &[EACH]);
    let shared = of(b"shared", &[x.0], &[RANKS * EACH]);
    let plain = of(b"plain", &[time.0, x.0], &[1, RANKS * EACH]);
    for var in [whole, shared] {
        let (name, params) = (String::new(), vec![1]);
        let filter = FilterSpec { id: 300, name, optional: false, params };
        file.def_var_filter(var.into(), filter).unwrap();
    }
    file.enddef(Reserve::Default).unwrap();
    [whole, shared, plain].iter().for_each(|var| file.set_collective(*var, true).unwrap());
    (file, [whole, shared, plain])
}

fn put(file: &Dataset, var: VarId, (start, count): (&[usize], &[usize]), value: i32) -> Result<()> {
    let n = count.iter().product();
    let bytes: Vec<u8> = std::iter::repeat_n(value.to_ne_bytes(), n).flatten().collect();
    let slab = Hyperslab { start, count, stride: None };
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

fn get(file: &Dataset, name: &[u8], (start, count): (&[usize], &[usize])) -> Vec<i32> {
    let var = file.meta(|meta| meta.find_var(name)).unwrap();
    let mut out = vec![0; count.iter().product::<usize>() * 4];
    let slab = Hyperslab { start, count, stride: None };
    let done = file.get(var, &slab, Some(MemType::I32), &mut out).unwrap();
    assert_eq!(done.out_of_range, 0);
    out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
}

/// Makes calls until one is told of what was refused, which comes at most once. What each said.
fn told(file: &Dataset, again: impl Fn() -> Result<()>) -> Vec<String> {
    let mut said = Vec::new();
    let mut note = |done: Result<()>| {
        let is_done = done.is_ok();
        said.extend(done.err().map(|error| error.to_string()));
        is_done
    };
    if !note(again()) {
        // It was not made.
        assert!(note(again()));
    }
    if !note(file.sync()) {
        assert!(note(file.sync()));
    }
    said
}

#[test]
fn a_refused_chunk_is_told_once_and_loses_nothing_else() {
    let Some(folder) = &*PLUGINS else { return };
    set_plugin_path(vec![folder.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let said = threads::all(RANKS, |team| {
        let me = team.rank();
        let (file, [whole, shared, plain]) = created(team, &path);
        let own = [me * EACH];
        let record =
            |at: usize, value: i32| put(&file, plain, (&[at, me * EACH], &[1, EACH]), value);
        // A chunk of rank 1 alone.
        let bad = if me == 1 { REFUSED } else { 5 };
        put(&file, whole, (&own, &[EACH]), bad).unwrap();
        let mut said = told(&file, || record(0, 6));
        assert_eq!(said.len(), 1, "{said:?}");
        // It can be put again; the others' are there.
        let row = get(&file, b"whole", (&[0], &[RANKS * EACH]));
        assert_eq!((&row[..EACH], &row[2 * EACH..]), (&[5; EACH][..], &[5; EACH][..]));
        put(&file, whole, (&own, &[EACH]), 7).unwrap();
        // A chunk of all, in two puts: it waits on with what all have put.
        put(&file, shared, (&[me * EACH], &[2]), if me == 0 { REFUSED } else { 8 }).unwrap();
        put(&file, shared, (&[me * EACH + 2], &[2]), 9).unwrap();
        let again = record(1, 10);
        said.extend(again.err().map(|error| error.to_string()));
        let sync = file.sync();
        said.extend(sync.err().map(|error| error.to_string()));
        assert!(said.len() > 1, "{said:?}");
        // It cannot be stored until it is another one.
        let fixed = put(&file, shared, (&[me * EACH], &[2]), 8);
        if fixed.is_err() {
            put(&file, shared, (&[me * EACH], &[2]), 8).unwrap();
        }
        record(1, 10).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        said
    });
    // All ranks are told the same at the same calls.
    assert!(said.iter().all(|one| one.len() == said[0].len()), "{said:?}");
    for one in &said {
        assert!(
            one[0].contains("on MPI rank 1: put 1 of all ranks, to /whole, failed: "),
            "{one:?}"
        );
        assert_eq!(one[0], said[0][0]);
    }
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(get(&file, b"whole", (&[0], &[RANKS * EACH])), [7; RANKS * EACH]);
    let shared = get(&file, b"shared", (&[0], &[RANKS * EACH]));
    let expected = |at: usize| if at % EACH < 2 { 8 } else { 9 };
    assert!(shared.iter().enumerate().all(|(at, value)| *value == expected(at)), "{shared:?}");
    // What was put next to what was refused is not taken for it.
    let plain = get(&file, b"plain", (&[0, 0], &[2, RANKS * EACH]));
    assert!(plain[..RANKS * EACH].iter().all(|value| *value == 6), "{plain:?}");
    assert!(plain[RANKS * EACH..].iter().all(|value| *value == 10), "{plain:?}");
}

#[test]
fn a_close_that_finds_a_refused_chunk_tells_it_and_closes() {
    let Some(folder) = &*PLUGINS else { return };
    set_plugin_path(vec![folder.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let said = threads::all(RANKS, |team| {
        let (file, [whole, ..]) = created(team, &path);
        let bad = if team.rank() == 2 { REFUSED } else { 5 };
        put(&file, whole, (&[team.rank() * EACH], &[EACH]), bad).unwrap();
        let error = file.close().unwrap_err().to_string();
        assert!(!file.is_open(), "{error}");
        error
    });
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    assert!(said[0].contains("on MPI rank 2: put 1 of all ranks, to /whole"), "{said:?}");
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    let row = get(&file, b"whole", (&[0], &[2 * EACH]));
    assert_eq!(row, [5; 2 * EACH]);
}
