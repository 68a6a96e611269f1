//! Copies that may be completed when they broke off.
//!
//! Such a copy is written at `TARGET.zonda-part`. Variables are copied one after the other, and `TARGET.zonda-part-done` has a line for each that is
//! complete: written, in this order, after the variable was put, the file committed, and the file on the device. So what stands in the list is true
//! after a killed process and after a power cut, and nothing is concluded from what the file looks like. Variables with records in
//! a classic file go together and are complete together. A part of a variable is copied again.
//!
//! The first line of the list says of what copy it is: which source (by its name, and of a file on a server by its length and its validator), and a
//! checksum of the file as it is when all is defined and nothing put: definitions, attributes and the form of the copy are in it.
//! A list of another copy counts as none.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use zonda_classic::FillMode;
use zonda_format::Format;
use zonda_model::NcError;
use zonda_storage::backend::Memory;
use zonda_storage::temporary::{self, TemporaryFile};
use zonda_storage::{ReadRange, Storage};

use super::define::{self, DecidedBy, TargetVar};
use super::options::{CopyOptions, Unfinished};
use super::target::{PART, Temporary, at, with_suffix};
use super::tree::DefinitionTree;
use super::{Copied, Progress};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::{CreateOptions, OpenOptions};
use crate::place::{is_url, shown_name};
use crate::tuning::{COMPLETE_BLOCK_BYTES, COMPLETE_NOTED_EVERY, MOST_COMPLETE_LIST};

/// Behind the name of a target: the list of variables that are complete in its part.
const LIST: &str = ".zonda-part-done";
/// Bytes of a name that both can stand behind.
const MOST_NAME: usize = 255 - LIST.len();

/// Whether a copy is one that may be completed.
///
/// # Errors
/// `NC_EINVAL` where one is to be completed and cannot be.
pub(super) fn is_for(
    target: &Path,
    format: Format,
    options: &CopyOptions,
    has_rules: bool,
) -> Result<bool> {
    let why_not = match () {
        () if options.unfinished == Unfinished::Removed => return Ok(false),
        () if is_url(target) => "what goes to a server is complete or not there",
        () if crate::format::stands_on_path(format) => "the target is a folder",
        () if options.lead.is_some() => "several ranks divide it",
        () if has_rules || options.salvage => "it is not a plain copy",
        () if target.file_name().is_some_and(|name| name.len() > MOST_NAME) => {
            "the name of the target is too long"
        }
        () => return Ok(true),
    };
    if options.unfinished == Unfinished::Kept {
        return Ok(false);
    }
    let text = format!("the copy cannot be resumed: {why_not}");
    Err(Error::with_text(NcError::Inval, text).at(target))
}

/// Copies, and leaves what is complete where the copy breaks off.
pub(super) fn run(
    source: &Dataset,
    target: &Path,
    options: &CopyOptions,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Copied> {
    let format = options.format.unwrap_or_else(|| crate::format_of_copy(source.format()));
    let temporary = Temporary::known(target, source.path(), options.replace)?;
    let by = DecidedBy { options, rules: None };
    let mut copied = Copied { format, ..Copied::default() };
    let tree = super::definitions(source, target, by, &mut copied)?;
    let of_one = |error: Error| super::of_one(error, source.path(), target);
    let mut complete = CompleteVars::of(&temporary)?;
    let (key, defined) = key(source, &tree, by, &mut copied).map_err(of_one)?;
    let goes_on = options.unfinished == Unfinished::Completed && complete.read(&key)?;
    let path = temporary.working_path();
    let opened = if goes_on {
        Dataset::open(path, &OpenOptions { write: true, ..OpenOptions::default() })
    } else {
        complete.empty()?;
        // Its name is known to everybody: whatever stands there goes, and is not followed.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(path, &error)),
            _ => {}
        }
        let create = CreateOptions { format, exclusive: true, ..CreateOptions::default() };
        Dataset::create(path, &create)
    };
    let file = opened.map_err(|error| error.at_instead(&complete.part))?;
    let done = (|| {
        let made = if goes_on {
            if !format.is_hdf5() {
                let _before = file.set_fill(FillMode::NoFill)?;
            }
            check_part(&file, &defined)?;
            defined
        } else {
            let made = define::all(source, &file, &tree, by, &mut Copied::default())?;
            file.sync()?;
            complete.begin(&key)?;
            made
        };
        let to = (&file, path);
        super::fill(source, to, (&tree, &made), by, Some(&mut complete), progress, &mut copied)?;
        file.close()
    })();
    if let Err(error) = done {
        let noted = complete.note(&file);
        drop(file);
        // An error that keeps it from being noted is the same one, or comes after it.
        if noted.is_ok() && complete.done.is_empty() {
            fs::remove_file(path).map_err(|error| at(path, &error))?;
            complete.remove()?;
        }
        return Err(of_one(error));
    }
    temporary.finish()?;
    complete.remove()?;
    Ok(copied)
}

/// The file in which a copy to `target` that broke off has left variables, if one has: a copy with [`Unfinished::Completed`] goes on with it.
///
/// See [`copy`](crate::copy::copy()).
#[must_use]
pub fn kept_part(target: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let is_there = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let part = with_suffix(&path, PART);
    (is_there(&part) && is_there(&with_suffix(&path, LIST))).then_some(part)
}

/// Whether a part has the variables where they are expected.
fn check_part(part: &Dataset, expected: &[TargetVar<'_>]) -> Result<()> {
    for made in expected {
        let is_it = part.in_group(made.target.group, |meta| {
            let var = meta.var(made.target.var)?;
            Ok::<_, Error>(var.name == made.var.name.as_slice())
        })??;
        if !is_it {
            let why = "what an earlier copy has left was changed; remove it, and copy anew";
            return Err(Error::with_text(NcError::Inval, why));
        }
    }
    Ok(())
}

/// What tells a copy from others, and where the variables are in a file with its definitions.
fn key<'t>(
    source: &Dataset,
    tree: &'t DefinitionTree,
    by: DecidedBy<'_>,
    copied: &mut Copied,
) -> Result<(String, Vec<TargetVar<'t>>)> {
    let memory: Arc<dyn Storage> = Arc::new(Memory::new());
    let create = CreateOptions { format: copied.format, ..CreateOptions::default() };
    let defined = Dataset::create_in(Arc::clone(&memory), Path::new("definitions"), &create)?;
    let made = define::all(source, &defined, tree, by, copied)?;
    defined.close()?;
    let (mut sum, mut block) = (DefaultHasher::new(), vec![0; COMPLETE_BLOCK_BYTES]);
    let (mut at, len) = (0, memory.len()?);
    while at < len {
        let n = block.len().min(usize::try_from(len - at).unwrap_or(usize::MAX));
        memory.read_ranges(&mut [ReadRange::new(at, &mut block[..n])])?;
        sum.write(&block[..n]);
        at += n as u64;
    }
    let state = source.remote_state().unwrap_or_default();
    let name = shown_name(source.path());
    let name = escaped(name.as_os_str().as_encoded_bytes());
    let version = env!("CARGO_PKG_VERSION");
    let (sum, state) = (sum.finish(), escaped(state.as_bytes()));
    Ok((format!("zonda copy {version} {len} {sum:016x} {name} {state}"), made))
}

/// The variables of a target that are complete.
pub(super) struct CompleteVars {
    /// Their list.
    list: PathBuf,
    /// The file that they are in.
    part: PathBuf,
    /// Keeps others off, also when they forget the list.
    _held: TemporaryFile,
    /// Those in the list.
    done: BTreeSet<Vec<u8>>,
    /// Those that are put, and not in the list yet.
    put: Vec<Vec<u8>>,
    noted: Instant,
}

impl CompleteVars {
    fn of(temporary: &Temporary) -> Result<CompleteVars> {
        let part = temporary.working_path().to_owned();
        let list = temporary.beside_target(LIST);
        let held = temporary::hold(&list).map_err(|error| at(&list, &error))?;
        let held = held.ok_or_else(|| {
            let why = "another process copies to this target";
            Error::with_text(NcError::Access, why).at(&list)
        })?;
        if !is_own(&list) {
            let why =
                "the list of what is complete belongs to somebody else; copy to another place";
            return Err(Error::with_text(NcError::Access, why).at(&list));
        }
        let (done, put, noted) = (BTreeSet::new(), Vec::new(), Instant::now());
        Ok(CompleteVars { list, part, _held: held, done, put, noted })
    }

    /// Reads the list of a copy. `false` where there is none of it.
    fn read(&mut self, key: &str) -> Result<bool> {
        // What somebody else has put there is not believed.
        if !is_own(&self.part) {
            return Ok(false);
        }
        let len = fs::metadata(&self.list).map_err(|error| at(&self.list, &error))?.len();
        if len > MOST_COMPLETE_LIST {
            return Ok(false);
        }
        let text = fs::read_to_string(&self.list).map_err(|error| at(&self.list, &error))?;
        // A line that is not ended was not written to its end.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        if lines.next() != Some(key) {
            return Ok(false);
        }
        self.done = lines.filter_map(plain).collect();
        if whole.len() + 1 != text.len() {
            // What comes next begins a line.
            let list = File::options().write(true).open(&self.list);
            let cut = list.and_then(|list| list.set_len(whole.len() as u64 + 1));
            cut.map_err(|error| at(&self.list, &error))?;
        }
        Ok(true)
    }

    fn begin(&mut self, key: &str) -> Result<()> {
        self.append(&format!("{key}\n")).map_err(|error| at(&self.list, &error))
    }

    /// Whether a variable was complete before this copy.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.done.contains(path)
    }

    /// A variable is put.
    pub(super) fn add(&mut self, file: &Dataset, path: &[u8]) -> Result<()> {
        self.put.push(path.to_vec());
        if self.noted.elapsed() < COMPLETE_NOTED_EVERY { Ok(()) } else { self.note(file) }
    }

    /// Has what was put on the device, and notes it.
    fn note(&mut self, file: &Dataset) -> Result<()> {
        if self.put.is_empty() {
            return Ok(());
        }
        file.sync()?;
        let synced = File::open(&self.part).and_then(|part| part.sync_all());
        synced.map_err(|error| at(&self.part, &error))?;
        let lines: String = self.put.iter().map(|path| format!("{}\n", escaped(path))).collect();
        self.append(&lines).map_err(|error| at(&self.list, &error))?;
        self.done.extend(self.put.drain(..));
        self.noted = Instant::now();
        Ok(())
    }

    fn append(&self, text: &str) -> io::Result<()> {
        let mut list = File::options().append(true).open(&self.list)?;
        list.write_all(text.as_bytes())?;
        list.sync_all()
    }

    /// The list is there no more.
    fn remove(&self) -> Result<()> {
        fs::remove_file(&self.list).map_err(|error| at(&self.list, &error))
    }

    /// Nothing is in the list.
    fn empty(&mut self) -> Result<()> {
        self.done.clear();
        let emptied = File::options().write(true).open(&self.list);
        emptied.and_then(|list| list.set_len(0)).map_err(|error| at(&self.list, &error))
    }
}

/// Whether it is a regular file of ours.
fn is_own(path: &Path) -> bool {
    // What this process has the rights of.
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    let found = fs::symlink_metadata(path);
    found.is_ok_and(|found| found.is_file() && own.is_ok_and(|own| own == found.uid()))
}

/// A path on one line, of printable characters.
fn escaped(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The path that [`escaped`] made such a line of.
fn plain(line: &str) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let [first, behind @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            path.push(u8::from_str_radix(digits, 16).ok()?);
            rest = behind.get(2..)?;
        } else {
            path.push(*first);
            rest = behind;
        }
    }
    Some(path)
}
