//! Real and damaged files of others: everything that describes an object is decoded, in each object
//! that can be found. `ZONDA_CORPUS` names a folder with `MANIFEST.tsv`; without it nothing runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_hdf5::message::{AttributeMessage, Decoded, Link, LinkTarget, decode};
use zonda_hdf5::{File, FileAddr, Object, ObjectKind, Result};
use zonda_storage::backend::Memory;

/// A file of the corpus that is HDF5 by its bytes.
struct Entry {
    path: PathBuf,
    /// `malformed` where it was damaged on purpose.
    category: String,
    /// What reference readers make of it.
    verdict: String,
}

fn entries() -> Option<Vec<Entry>> {
    let Some(corpus) = std::env::var_os("ZONDA_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: ZONDA_CORPUS is not set");
        return None;
    };
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let lines = manifest.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let entries = lines.filter(|fields| fields[2] == "hdf5").map(|fields| Entry {
        path: corpus.join(fields[0]),
        category: fields[1].to_owned(),
        verdict: fields[3].to_owned(),
    });
    Some(entries.collect())
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn open(bytes: &[u8]) -> Result<File> {
    File::open(Arc::new(Memory::from_slice(bytes)))
}

/// Decodes all that `object` says of itself, gives the objects that its messages name.
fn decode_all(file: &File, object: &Object) -> Result<Vec<FileAddr>> {
    let mut named = Vec::new();
    for message in &object.header().messages {
        let body = object.body(file, message)?;
        named.extend(body.committed);
        match decode(message.kind, body.reader(file), file.limits())? {
            Decoded::Link(Link { target: LinkTarget::Hard(addr), .. }) => named.push(addr),
            Decoded::Attribute(parts) => {
                let attribute = parts.resolve(file)?;
                named.extend(attribute.committed);
                let again = AttributeMessage::decode(file, body.reader(file))?;
                assert_eq!(again.data, attribute.data);
            }
            _ => {}
        }
    }
    object.fill_value(file)?;
    object.filters(file)?;
    object.external_files(file)?;
    object.modification_time(file)?;
    object.comment(file)?;
    object.reference_count(file)?;
    named.extend(object.committed_type(file)?);
    match object.kind() {
        ObjectKind::Dataset => {
            object.datatype(file)?;
            object.dataspace(file)?;
            object.layout(file)?;
        }
        ObjectKind::Datatype => {
            object.datatype(file)?;
        }
        ObjectKind::Group | ObjectKind::Unknown => {}
    }
    Ok(named)
}

/// Where `letters` are in `bytes`.
fn occurrences<'a>(bytes: &'a [u8], letters: &'a [u8; 4]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(4).enumerate();
    windows.filter(move |(_, four)| *four == letters).map(|(at, _)| at)
}

/// What looks like an object header, or is named by what looks like a symbol table node. Some of
/// it is left over from objects that were deleted.
fn guesses(file: &File, bytes: &[u8]) -> BTreeSet<FileAddr> {
    let base = file.superblock().base;
    let mut found = BTreeSet::new();
    for at in occurrences(bytes, b"OHDR") {
        found.extend((at as u64).checked_sub(base).map(FileAddr));
    }
    for at in occurrences(bytes, b"SNOD") {
        let Some(addr) = (at as u64).checked_sub(base).map(FileAddr) else { continue };
        let mut reader = file.reader("symbol table node", addr, &bytes[at..]);
        let mut entries = || -> Result<()> {
            reader.skip(6)?;
            for _ in 0..reader.u16()? {
                reader.length()?;
                found.extend(reader.addr()?);
                reader.skip(24)?;
            }
            Ok(())
        };
        // What is cut short has said enough.
        let _ = entries();
    }
    found
}

#[test]
fn objects_of_the_corpus_decode() {
    let Some(entries) = entries() else { return };
    let mut failures = BTreeMap::new();
    let (mut n_files, mut n_objects, mut n_left_over) = (0, 0, 0);
    for entry in entries {
        let bytes = bytes_of(&entry.path);
        let whole = entry.category != "malformed" && entry.verdict == "valid";
        let file = match open(&bytes) {
            Ok(file) => file,
            Err(error) if whole => {
                failures.insert(entry.path, error.to_string());
                continue;
            }
            Err(_) => continue,
        };
        n_files += 1;
        let mut certain = BTreeSet::from([file.root()]);
        let mut next = vec![file.root()];
        while let Some(addr) = next.pop() {
            n_objects += 1;
            match file.object(addr).and_then(|object| decode_all(&file, &object)) {
                Ok(named) => next.extend(named.into_iter().filter(|addr| certain.insert(*addr))),
                Err(error) if whole => {
                    failures.insert(entry.path.clone(), format!("object {addr:?}: {error}"));
                }
                Err(_) => {}
            }
        }
        for addr in guesses(&file, &bytes).difference(&certain) {
            n_left_over += 1;
            // Any answer will do.
            let _ = file.object(*addr).and_then(|object| decode_all(&file, &object));
        }
    }
    eprintln!("{n_files} files, {n_objects} objects named, {n_left_over} guessed");
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(n_files > 0 && n_objects >= n_files);
}
