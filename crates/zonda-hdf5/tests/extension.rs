//! Files that keep their free space, that manage it in pages or that have an image of the metadata
//! cache, made and gone on with by h5py of the Python that `ZONDA_PYTHON` names. In between all of
//! the data are put behind the end of the file, as an editor would do it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use zonda_hdf5::message::{DataLayout, FileSpaceStrategy, LinkTarget, kind};
use zonda_hdf5::object_header::NewMessage;
use zonda_hdf5::{File, FileAddr, NewBlocks, Space, Writer};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

/// Runs the script with these arguments and gives what it says.
fn run(python: &OsStr, arguments: &[&OsStr]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/extension.py");
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn write(file: &File, blocks: &[(FileAddr, Vec<u8>)]) {
    for (addr, bytes) in blocks {
        file.storage().write_at(file.position(*addr), bytes).unwrap();
    }
}

/// A file with the same data elsewhere: behind its end, where its old data were nothing is left.
fn moved(bytes: &[u8]) -> (Vec<u8>, bool) {
    let storage = Arc::new(Memory::from_slice(bytes));
    let file = File::open(Arc::clone(&storage) as Arc<dyn Storage>).unwrap();
    let mut space = Space::new(file.superblock().eof);
    let edit = file.edit_extension().unwrap();
    if let Some(edit) = &edit {
        write(&file, &edit.entries);
        write(&file, &edit.switches);
        file.extension_edited();
    }
    let mut fresh = NewBlocks::new(&mut space);
    let mut switches = Vec::new();
    let mut n_moved = 0;
    for link in file.object(file.root()).unwrap().links(&file).unwrap() {
        let LinkTarget::Hard(addr) = link.target else { panic!("{link:?}") };
        let object = file.object(addr).unwrap();
        let Ok(DataLayout::Contiguous { addr: Some(data), len: Some(len) }) = object.layout(&file)
        else {
            continue;
        };
        let old = file.read("data", data, len).unwrap();
        write(&file, &[(data, vec![0xee; old.len()])]);
        let new = DataLayout::Contiguous { addr: Some(fresh.put(old).unwrap()), len: Some(len) };
        let header = object.header();
        let changed = header.rewrite(&file, &mut |message| {
            let mut carried = header.carry(message);
            if message.kind == kind::DATA_LAYOUT {
                let mut body = Writer::new("test", file.sizes());
                new.encode(&mut body)?;
                carried = NewMessage { body: body.finish().into(), ..carried };
            }
            Ok(Some(carried))
        });
        switches.extend(changed.unwrap());
        n_moved += 1;
    }
    assert_eq!(n_moved, 20);
    fresh.write(&file).unwrap();
    let mut end = space.end();
    let info = file.file_space_info();
    if let Some(info) = info.filter(|info| info.strategy == FileSpaceStrategy::Pages) {
        end = end.next_multiple_of(info.page_size);
    }
    storage.set_len(end).unwrap();
    file.write_superblock(end).unwrap();
    write(&file, &switches);
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    (bytes, edit.is_some())
}

#[test]
fn nothing_is_cut_off_or_written_over() {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py");
        return;
    };
    let folder = std::env::temp_dir().join(format!("zonda-extension-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let made = run(&python, &[OsStr::new("make"), folder.as_os_str()]);
    let mut n_edited = 0;
    for path in made.lines().map(PathBuf::from) {
        eprintln!("{}", path.display());
        let before = std::fs::read(&path).unwrap();
        let (after, edited) = moved(&before);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(edited, name.contains("kept") || name.contains("image"), "{name}");
        n_edited += usize::from(edited);
        std::fs::write(&path, after).unwrap();
        run(&python, &[OsStr::new("check"), path.as_os_str()]);
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(n_edited, 9);
    std::fs::remove_dir(folder).unwrap();
}
