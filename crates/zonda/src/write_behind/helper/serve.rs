//! The work of the helper process: it waits, and carries out the puts that a killed program left.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::Duration;

use zonda_format::OwnedValues;
use zonda_format::Values;
use zonda_format::{GroupId, VarRef};
use zonda_model::{Hyperslab, NcError};
use zonda_shared::{Channel, Happened, OrphanedBlock, OrphanedMemory, Process};
use zonda_storage::Sidecar;

use super::READY;
use super::message::HelperMessage;
use super::place;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::{self, OpenOptions};
use crate::patience::DevicePatience;
use crate::recovery::{self, Recovery};
use crate::tuning::HELPER_SPARE_DESCRIPTORS;
use crate::write_behind::WriteBehind;
use crate::write_behind::record::{self, Record, RecordedValues};

/// A file of the program that is watched.
#[derive(Debug, Default)]
struct ProgramFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    memory: Option<Rc<fs::File>>,
    /// The open file: shows its present name, and holds its locks against other writers.
    open: Option<fs::File>,
    /// Names that each variable had, with the paths of its groups, in the order of time.
    names: HashMap<(u16, i32), Vec<PastName>>,
}

/// The memories of a program, which most of its files share. Each is open once.
#[derive(Debug, Default)]
struct Memories(Vec<Weak<fs::File>>);

impl Memories {
    fn keep(&mut self, fd: OwnedFd) -> Option<Rc<fs::File>> {
        let new = fs::File::from(fd);
        let identity = place::identity(&new)?;
        self.0.retain(|known| known.strong_count() > 0);
        let mut known = self.0.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| place::identity(known) == Some(identity)) {
            return Some(known);
        }
        let new = Rc::new(new);
        self.0.push(Rc::downgrade(&new));
        Some(new)
    }
}

/// A name that a variable had.
#[derive(Debug, PartialEq, Eq)]
struct PastName {
    group: Vec<u8>,
    name: Vec<u8>,
}

/// The result of carrying out the puts that were left for a file.
#[derive(Debug, Default)]
struct CarriedOut {
    n_puts: usize,
    n_lost: usize,
    why: Option<String>,
    /// Where the file is now, if not where the program opened it.
    moved_to: Option<PathBuf>,
}

impl CarriedOut {
    fn lose(&mut self, n_puts: usize, why: impl ToString) {
        self.n_lost += n_puts;
        self.why.get_or_insert_with(|| why.to_string());
    }
}

/// Serves the program at the other end of `channel` until it ends, and carries out the puts it had
/// accepted and not committed, if it was killed. True where nothing was lost.
///
/// See [`WriteBehind`](crate::WriteBehind).
///
/// # Errors
/// `InvalidInput` where the channel is none; what the system says.
pub fn serve(channel: BorrowedFd<'_>) -> io::Result<bool> {
    let channel = Channel::of(channel)?;
    channel.send(READY, None)?;
    let mut process = None;
    let mut files: BTreeMap<u64, ProgramFile> = BTreeMap::new();
    let mut memories = Memories::default();
    let most = zonda_shared::raise_open_files().saturating_sub(HELPER_SPARE_DESCRIPTORS);
    while let Happened::Message(bytes, fd) = channel.wait(process.as_ref(), true)? {
        match HelperMessage::decode(&bytes) {
            Some(HelperMessage::Hello { pid }) => process = Process::find(pid),
            Some(HelperMessage::File { file, identity, path }) => {
                let file = files.entry(file).or_default();
                (file.path, file.identity) = (path, identity);
                file.memory = fd.and_then(|fd| memories.keep(fd)).or(file.memory.take());
            }
            Some(HelperMessage::Open { file }) => {
                let file = files.entry(file).or_default();
                // Where more files are open than this process may have, the file is found by its path only.
                let fits = |fd: &OwnedFd| u64::try_from(fd.as_raw_fd()).is_ok_and(|fd| fd < most);
                file.open = fd.filter(fits).map(fs::File::from);
            }
            Some(HelperMessage::Var { file, var, group, name }) => {
                let file = files.entry(file).or_default();
                let names = file.names.entry((var.group.0, var.var.0)).or_default();
                let name = PastName { group, name };
                if names.last() != Some(&name) {
                    names.push(name);
                }
            }
            Some(HelperMessage::End { file }) => drop(files.remove(&file)),
            None => {}
        }
    }
    let mut is_whole = true;
    for (id, file) in files {
        let done = carry_out(id, &file);
        is_whole &= done.n_lost == 0;
        report(&file, &done);
        // Opening a file to carry out its puts completes a change that was begun.
        if done.n_puts == 0 {
            complete_change(&file);
        }
    }
    Ok(is_whole)
}

/// Reports what was done, if anything.
fn report(file: &ProgramFile, done: &CarriedOut) {
    let mut out = io::stderr().lock();
    let path = file.path.display();
    // Nobody may be there to read it.
    if done.n_puts > 0 {
        let n = done.n_puts;
        let _ = write!(out, "zonda iod: {path}: {n} puts that the program left are in the file");
        if let Some(now) = &done.moved_to {
            let _ = write!(out, ", which is {} now", now.display());
        }
        let _ = writeln!(out);
    }
    if done.n_lost > 0 {
        let why = done.why.as_deref().unwrap_or("unknown");
        let _ = writeln!(out, "zonda iod: {path}: {} puts are lost: {why}", done.n_lost);
    }
}

/// Completes a change that the program had begun and for which there is a journal. Otherwise the file could not be
/// read until somebody opens it for writing.
fn complete_change(file: &ProgramFile) {
    let Some(path) = place::of(&file.path, file.identity, file.open.as_ref()) else { return };
    let has_journal = || -> Result<bool> {
        let sidecars = open::for_a_look(&path)?.sidecars;
        Ok(sidecars.is_some_and(|sidecars| !matches!(sidecars.find(Sidecar::Journal), Ok(None))))
    };
    // A file that cannot be opened needs no report.
    if !has_journal().unwrap_or(false) {
        return;
    }
    let mut patience = DevicePatience::default();
    let on_wait = |error: &Error, left: Duration| report_wait(error, left);
    let line = match patience.with(on_wait, || recovery::recover(&path)) {
        Ok(Recovery::Nothing | Recovery::InUse) => return,
        Ok(Recovery::NotItsJournal) => "the journal beside it belongs to another file".to_owned(),
        Ok(_) => "the change that the program had begun is complete".to_owned(),
        Err(error) => format!("the change that the program had begun is not complete: {error}"),
    };
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr().lock(), "zonda iod: {}: {line}", path.display());
}

/// Carries out what was left for a file, and commits.
fn carry_out(id: u64, file: &ProgramFile) -> CarriedOut {
    let mut done = CarriedOut::default();
    let Some(memory) = &file.memory else { return done };
    let left = match memory.try_clone().and_then(|memory| OrphanedMemory::of(memory.into())) {
        Ok(left) => left,
        Err(error) => {
            done.lose(1, error);
            return done;
        }
    };
    let mut blocks = left.blocks();
    blocks.retain(|block| block.owner == id);
    if blocks.is_empty() {
        return done;
    }
    if let Err(error) = repeat(file, &left, &blocks, &mut done) {
        let all = blocks.iter().map(|block| left.read(block).map_or(1, |(_, puts)| puts.len()));
        done.n_puts = 0;
        done.n_lost = 0;
        done.lose(all.sum(), error);
    }
    done
}

fn repeat(
    file: &ProgramFile,
    left: &OrphanedMemory,
    blocks: &[OrphanedBlock],
    done: &mut CarriedOut,
) -> Result<()> {
    let Some(path) = place::of(&file.path, file.identity, file.open.as_ref()) else {
        let why = "the file is gone, or another one is in its place";
        return Err(Error::because(NcError::System(ENOENT), why));
    };
    if path != file.path {
        done.moved_to = Some(path.clone());
    }
    let options =
        OpenOptions { write: true, write_behind: Some(WriteBehind::Off), ..OpenOptions::default() };
    // Opening may complete a commit, and that may meet a full device, too.
    let mut patience = DevicePatience::default();
    let report = |error: &Error, left: Duration| report_wait(error, left);
    let dataset = patience.with(report, || Dataset::open(&path, &options))?;
    let mut found: HashMap<(u16, i32), Option<VarRef>> = HashMap::new();
    for block in blocks {
        let (bytes, records) = match left.read(block) {
            Ok(read) => read,
            Err(error) => {
                done.lose(1, error);
                continue;
            }
        };
        for words in records {
            let Some(record) = record::read(&words) else {
                done.lose(1, "their record in shared memory is damaged");
                continue;
            };
            let key = (record.var.group.0, record.var.var.0);
            let var = *found.entry(key).or_insert_with(|| {
                let names = file.names.get(&key)?;
                names.iter().rev().find_map(|name| find_var(&dataset, &name.group, &name.name))
            });
            let put = match var {
                Some(var) => patience.with(report, || put(&dataset, var, &record, &bytes)),
                None => Err(NcError::NotVar.into()),
            };
            match put {
                Ok(()) => done.n_puts += 1,
                Err(error) => done.lose(1, error),
            }
        }
    }
    patience.with(report, || dataset.close())
}

fn report_wait(error: &Error, left: Duration) {
    let (mut out, seconds) = (io::stderr().lock(), left.as_secs());
    // The error has the path; nobody may be there to read it.
    let _ = writeln!(out, "zonda iod: {error}; it is tried again for {seconds} s");
}

fn put(dataset: &Dataset, var: VarRef, record: &Record, bytes: &[u8]) -> Result<()> {
    let Record { at, len, start, count, stride, .. } = record;
    let slab = Hyperslab { start, count, stride: stride.as_deref() };
    let damaged = || {
        Error::because(
            NcError::Internal,
            "the values in shared memory do not fit the put that they belong to",
        )
    };
    let values = bytes.get(*at..).and_then(|bytes| bytes.get(..*len)).ok_or_else(damaged)?;
    let RecordedValues::Typed(mem) = record.form else {
        let owned = OwnedValues::read_from(values).ok_or_else(damaged)?;
        let mut fetch: &OwnedValues = &owned;
        let values = Values { bytes: owned.bytes(), fetch: Some(&mut fetch) };
        return dataset.put_values(var, &slab, values).map(drop);
    };
    dataset.put(var, &slab, mem, values).map(drop)
}

fn find_var(dataset: &Dataset, path: &[u8], name: &[u8]) -> Option<VarRef> {
    let mut group = GroupId::ROOT;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        group = dataset.in_group(group, |meta| meta.find_group(part)).ok()?.ok()?;
    }
    let var = dataset.in_group(group, |meta| meta.find_var(name)).ok()?.ok()?;
    Some(VarRef { group, var })
}

/// `ENOENT` of Linux.
const ENOENT: i32 = 2;
