//! Plugins compiled here, and those of the hdf5plugin package.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use zonda_chunk::FilterError;
use zonda_chunk::filter::Filter;
use zonda_runtime::callout::Mark;

/// The search path belongs to the process, so one test runs at a time.
static PATH: Mutex<()> = Mutex::new(());

fn compile(source: &Path, output: &Path) -> bool {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    // As scripts/link.sh links the shim: it brings libm to plugins that forgot it.
    match command.arg(output).arg(source).args(["-Wl,--no-as-needed", "-lm", "-ldl"]).status() {
        Ok(status) => {
            assert!(status.success(), "{} does not compile", source.display());
            true
        }
        Err(error) => {
            eprintln!("skipped: no C compiler ({error})");
            false
        }
    }
}

/// A folder with the plugins of `tests/plugins`, and the shim where it is looked for.
fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let beside = std::env::current_exe().unwrap().with_file_name("libzonda-h5shim.so");
    if !compile(&here.join("shim/h5shim.c"), &beside) {
        return None;
    }
    for name in ["inplace", "hdf5", "broken", "connector", "reader"] {
        let source = here.join(format!("tests/plugins/{name}.c"));
        compile(&source, &folder.join(format!("lib{name}.so")));
    }
    std::fs::write(folder.join("libtext.so"), "not a library").unwrap();
    std::fs::copy(folder.join("libinplace.so"), folder.join("inplace-305")).unwrap();
    Some(folder)
}

/// A filter that may be used.
fn found(id: u32, params: &[u32]) -> Option<Arc<dyn Filter>> {
    zonda_plugin::find(id, params, Mark::NONE).map(|found| found.unwrap())
}

#[test]
fn a_plugin_that_others_can_change_is_refused_by_name() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(trusted) = folder() else { return };
    let folder = trusted.with_file_name("open to all");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("libinplace.so");
    std::fs::copy(trusted.join("libinplace.so"), &file).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        // Filters that were found already are looked for once more.
        zonda_plugin::set_path(vec![folder.clone()]);
    };
    // Other tests may have found filter 300 elsewhere before; nobody has 310.
    mode(0o777);
    let Some(Err(error)) = zonda_plugin::find(310, &[], Mark::NONE) else { panic!("not refused") };
    assert!(matches!(error, FilterError::Refused { id: 310, .. }), "{error}");
    assert!(error.to_string().contains("open to all"), "{error}");
    assert_eq!(error.nc_error().code(), 1);
    mode(0o755);
    assert!(zonda_plugin::find(310, &[], Mark::NONE).is_none());
    assert!(found(300, &[1]).is_some());
}

#[test]
fn plugins_become_filters() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(folder) = folder() else { return };
    zonda_plugin::set_path(vec![PathBuf::from("/nonexistent"), folder.clone()]);
    assert_eq!(zonda_plugin::path()[1], folder);

    let inplace = found(300, &[0x0f]).expect("found");
    assert_eq!(inplace.name(), "inplace");
    let mut stored = Vec::new();
    assert_eq!(inplace.encode(&[1, 2, 0xf0], &mut stored), Ok(true));
    assert_eq!(stored, [0x0e, 0x0d, 0xff]);
    let mut raw = Vec::new();
    assert_eq!(inplace.decode(&stored, 3, &mut raw), Ok(()));
    assert_eq!(raw, [1, 2, 0xf0]);
    // A plugin that fails, one whose result is too long, and other parameters.
    assert_eq!(inplace.decode(&[0xff], 9, &mut Vec::new()), Err(FilterError::Plugin { id: 300 }));
    let longer = inplace.decode(&stored, 2, &mut Vec::new());
    assert!(matches!(longer, Err(FilterError::WrongLength { got: 3, expected: 2, .. })));
    // Bytes after those of a chunk are ignored, as by HDF5; a result that is too short is an error.
    let mut chunk = [0; 2];
    assert_eq!(inplace.decode_into(&stored, &mut chunk), Ok(()));
    assert_eq!(chunk, [1, 2]);
    let shorter = inplace.decode_into(&stored, &mut [0; 4]);
    assert!(matches!(shorter, Err(FilterError::WrongLength { got: 3, expected: 4, .. })));
    let empty = found(300, &[]).expect("found");
    assert_eq!(empty.decode(&stored, 3, &mut Vec::new()), Err(FilterError::Plugin { id: 300 }));

    let reader = found(304, &[]).expect("found");
    assert_eq!(reader.decode(&[7], 1, &mut Vec::new()), Ok(()));
    let encoded = reader.encode(&[7], &mut Vec::new());
    assert!(matches!(encoded, Err(FilterError::Unsupported { filter: "reader", .. })));

    // A missing file, a missing function, no filter, a missing library.
    for id in [302, 303, 305, 65535] {
        assert!(zonda_plugin::find(id, &[], Mark::NONE).is_none(), "{id}");
    }
    assert_eq!(found(301, &[3]).map(|filter| filter.name()), Some("hdf5"));
}

#[test]
fn plugins_without_hdf5_get_their_functions_from_the_shim() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(folder) = folder() else { return };
    zonda_plugin::set_path(vec![folder]);
    let filter = found(301, &[3]).expect("found, with the shim");
    let mut stored = Vec::new();
    assert_eq!(filter.encode(b"ab", &mut stored), Ok(true));
    assert_eq!(stored, b"aaabbb");
    let mut raw = Vec::new();
    assert_eq!(filter.decode(&stored, 2, &mut raw), Ok(()));
    assert_eq!(raw, b"ab");
    // This plugin reports why it fails.
    let failed = filter.decode(b"aaab", 9, &mut Vec::new());
    assert_eq!(failed, Err(FilterError::Plugin { id: 301 }));
}

#[test]
fn a_filter_that_was_missing_is_looked_for_on_another_path() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(folder) = folder() else { return };
    let later = folder.with_file_name("later");
    std::fs::create_dir_all(&later).unwrap();
    let source = folder.join("libfilter306.c");
    let text = "#include \"common.h\"\n\
        static size_t f(unsigned a, size_t b, const unsigned *c, size_t n, size_t *d, void **e)\n\
        { (void)a, (void)b, (void)c, (void)d, (void)e; return n; }\n\
        PLUGIN(306, \"later\", 1, f)\n";
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins/common.h");
    std::fs::copy(header, folder.join("common.h")).unwrap();
    std::fs::write(&source, text).unwrap();
    zonda_plugin::set_path(vec![folder.clone()]);
    assert!(zonda_plugin::find(306, &[], Mark::NONE).is_none());
    compile(&source, &later.join("libfilter306.so"));
    zonda_plugin::set_path(vec![folder, later]);
    assert!(zonda_plugin::find(306, &[], Mark::NONE).is_some());
}

#[test]
fn threads_share_a_plugin() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(folder) = folder() else { return };
    zonda_plugin::set_path(vec![folder]);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                let filter = found(300, &[0x55]).expect("found");
                for _ in 0..200 {
                    let mut stored = Vec::new();
                    filter.encode(&[thread; 100], &mut stored).unwrap();
                    assert_eq!(stored, [thread ^ 0x55; 100]);
                }
            });
        }
    });
}

/// Chunks that hdf5plugin wrote, undone by the same package's plugins without an HDF5.
#[test]
fn the_plugins_of_hdf5plugin_work() {
    let _alone = PATH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON is not set");
        return;
    };
    let script = "
import h5py, hdf5plugin as p, numpy as np
print(p.PLUGIN_PATH)
a = (np.arange(32 * 64, dtype='i4').reshape(32, 64) // 7).astype('i4')
for kw in (p.Blosc(cname='zstd'), p.Blosc2(), p.Bitshuffle(), p.Zfp(reversible=True), p.LZ4(), p.Zstd(),
           p.BZip2(), p.FciDecomp(), p.SZ(absolute=0.1), p.SZ3(absolute=0.1), p.Sperr(rate=16)):
    b = a.astype('u2') if isinstance(kw, p.FciDecomp) else a
    b = a.astype('f4') if isinstance(kw, (p.SZ, p.SZ3, p.Sperr)) else b
    with h5py.File('x.h5', 'w', driver='core', backing_store=False) as f:
        try:
            d = f.create_dataset('d', data=b, chunks=b.shape, **kw)
        except Exception:
            continue
        f.flush()
        mask, stored = d.id.read_direct_chunk((0, 0))
        if mask: continue
        number, _, params, _ = d.id.get_create_plist().get_filter(0)
        # What another reader makes of the bytes, since some lose some.
        e = f.create_dataset('e', shape=b.shape, dtype=b.dtype, chunks=b.shape, **kw)
        e.id.write_direct_chunk((0, 0), stored)
        print(number, ','.join(map(str, params)), stored.hex(), e[:].tobytes().hex(), sep='\\t')
";
    let output = Command::new(python).args(["-c", script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let Some((folder, cases)) = text.split_once('\n') else {
        eprintln!("skipped: no hdf5plugin ({})", String::from_utf8_lossy(&output.stderr));
        return;
    };
    zonda_plugin::set_path(vec![PathBuf::from(folder)]);
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let mut tested = Vec::new();
    for case in cases.lines() {
        let fields: Vec<&str> = case.split('\t').collect();
        let id: u32 = fields[0].parse().unwrap();
        let params: Vec<u32> =
            fields[1].split(',').filter(|p| !p.is_empty()).map(|p| p.parse().unwrap()).collect();
        let (stored, raw) = (bytes(fields[2]), bytes(fields[3]));
        let Some(filter) = found(id, &params) else { panic!("{id} is not found") };
        let mut out = Vec::new();
        assert_eq!(filter.decode(&stored, raw.len(), &mut out), Ok(()), "{id}");
        assert_eq!(out, raw, "{id}");
        // And the other way, as far as the filter keeps everything.
        let mut again = Vec::new();
        assert_eq!(filter.encode(&raw, &mut again), Ok(true), "{id}");
        tested.push(id);
    }
    eprintln!("filters {tested:?}");
    assert!(tested.len() >= 6, "{tested:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
