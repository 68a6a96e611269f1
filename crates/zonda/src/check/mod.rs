//! Checks whether a file is sound: its structures and, as far as possible, every byte of its data.
//!
//! Of an HDF5 file all structures are walked that can be reached (checksums are compared on the way), extents that
//! overlap or end beyond the file are noted, all attributes are read, and each chunk is read and decoded, which
//! compares the checksums of those that have any. Of a classic file the places of all variables are compared with
//! each other, the header and the length of the file, and all bytes are read but those of holes. Of other formats all
//! values and attributes are read. Of data without a checksum (contiguous data, chunks without filters, classic
//! files) only their presence can be checked, and not whether they are what was written.
//!
//! See [`check`](crate::check::check()).

mod classic;
mod data;
mod divided;
mod hdf5;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use zonda_format::Format;
use zonda_model::{Answer, NcError};
use zonda_nc4::Damaged;
use zonda_storage::Sidecar;

use crate::copy::Progress;
use crate::damaged::FaultKind;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::format::{Detected, detect};
use crate::open::OpenOptions;
use crate::ranks::Lead;
use crate::tuning::CHECK_FINDINGS;

pub use divided::follow_check;

/// How bad a finding is.
///
/// See [`check`](crate::check::check()).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing is lost; worth knowing.
    Remark,
    /// Sound, and cannot be represented in netCDF.
    Unrepresentable,
    /// Something could not be checked, because a filter or another file is missing, or because Zonda does not read
    /// this part of a format.
    Unchecked,
    /// Something is damaged.
    Damage,
}

impl Grade {
    /// The grade of an error that reading met.
    fn of(error: &Error) -> Grade {
        match error.answer() {
            Answer::Unrepresentable => Grade::Unrepresentable,
            Answer::Undecodable
            | Answer::Unknown
            | Answer::Refused
            | Answer::Missing
            | Answer::NoMemory => Grade::Unchecked,
            // Bytes that the device cannot read are lost.
            Answer::System if error.code() != NcError::System(EIO) => Grade::Unchecked,
            // The check asks only for what the file says that it has, so an error of the request means damage.
            Answer::System | Answer::Damaged | Answer::Request => Grade::Damage,
        }
    }
}

/// Something that was found.
///
/// See [`check`](crate::check::check()).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How bad it is.
    pub grade: Grade,
    /// Path of the object; `None` for the file as a whole and for objects that nothing names.
    pub object: Option<String>,
    /// First byte of what is wrong, counted from the begin of the file.
    pub at: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// The result of a check.
///
/// See [`check`](crate::check::check()).
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The format; `None` for a file that cannot be opened.
    pub format: Option<Format>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Variables.
    pub n_vars: usize,
    /// Chunks that were decoded.
    pub n_chunks: u64,
    /// Bytes of elements in memory that were read.
    pub data_bytes: u64,
    /// Bytes of the file that nothing refers to.
    pub unaccounted_bytes: u64,
    /// The first ten thousand findings, in the order of the bytes that they are about.
    pub findings: Vec<Finding>,
    /// How many findings there were.
    pub n_findings: u64,
}

impl Checked {
    /// The worst that was found; `None` for a file without findings.
    #[must_use]
    pub fn worst(&self) -> Option<Grade> {
        self.findings.iter().map(|finding| finding.grade).max()
    }
}

/// Checks the file at `path`. `progress` is called with the bytes that were read, and may end the check.
///
/// # Errors
/// What the operating system reports where the file cannot be read at all; `EINTR` where `progress` ended it. Damage
/// of the file is no error; it is among the findings.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// let checked = zonda::check::check("run.nc".as_ref(), &mut |_| ControlFlow::Continue(()))?;
/// for finding in &checked.findings {
///     println!("{finding:?}");
/// }
/// # Ok::<(), zonda::Error>(())
/// ```
pub fn check(
    path: &Path,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Checked> {
    check_with(None, path, progress)
}

/// Who is told how far a check has come, and who leads ranks that divide it.
type Watched<'a, 'p> =
    (&'a mut (dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'p), Option<&'a Lead>);

/// As [`check()`], divided among the ranks that `lead` leads: they call [`follow_check`]. The findings are those of one process. Data of classic
/// files, which have nothing to be decoded, rank 0 reads alone.
///
/// # Errors
/// As [`check()`]; `NC_EMPI` where the ranks do not come together, and errors of other ranks that cannot read the file.
pub fn check_with(
    lead: Option<&Lead>,
    path: &Path,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Checked> {
    let mut notes = Notes::default();
    if let Some(file) = without_bytes(path)? {
        let mut checked = Checked { format: Some(file.format()), ..Checked::default() };
        let watched = (progress, lead);
        data::read_all(&file, &BTreeSet::new(), &mut checked, &mut notes, watched)
            .map_err(|error| error.at(path))?;
        file.close()?;
        return Ok(finished(checked, notes));
    }
    let file_bytes = match crate::format::on_path(path) {
        Some(_) => bytes_in(path),
        None => look(path, &mut notes).map_err(|error| error.at(path))?,
    };
    let mut checked = Checked { file_bytes, ..Checked::default() };
    // What cannot be looked at is an error, and no finding.
    detect(path)?;
    match opened(path) {
        Ok(file) => {
            checked.format = Some(file.format());
            // Only for two formats it is known where things lie in the file. Of others the values are read.
            let has_layout = file.storage().is_some() && file.meta(|meta| meta.layout().is_some());
            let done = match () {
                () if file.is_hdf5() => {
                    hdf5::check(&file, &mut checked, &mut notes, (progress, lead))
                }
                () if has_layout => classic::check(&file, &mut checked, &mut notes, progress),
                () => {
                    let watched = (progress, lead);
                    data::read_all(&file, &BTreeSet::new(), &mut checked, &mut notes, watched)
                }
            };
            done.map_err(|error| error.at(path))?;
            file.close()?;
        }
        Err(error) => {
            notes.error(None, &error);
        }
    }
    Ok(finished(checked, notes))
}

/// Opens a dataset of a server that has no bytes of its own: one of OPeNDAP. `None` for a file, wherever it is.
fn without_bytes(path: &Path) -> Result<Option<Dataset>> {
    if !(crate::is_url(path) || crate::names_dap(path)) {
        return Ok(None);
    }
    match Dataset::open(path, &OpenOptions::default()) {
        Ok(file) => Ok(Some(file).filter(Dataset::is_dap)),
        Err(error) if crate::names_dap(path) => Err(error.at(path)),
        // What is wrong with a file is told below.
        Err(_) => Ok(None),
    }
}

/// Opens a file to be checked.
fn opened(path: &Path) -> Result<Dataset> {
    // Of a classic file everything hangs on the header, so what can be told of it is told by the whole.
    match detect(path)? {
        Detected::Hdf5 => Dataset::open_damaged(path, Damaged::Skip),
        Detected::Classic(_) | Detected::Hdf4 | Detected::Other(_) | Detected::Unknown => {
            Dataset::open(path, &OpenOptions::default())
        }
    }
}

/// Opens the file first, which shows errors of the operating system; gives its length in bytes, and notes sidecars.
fn look(path: &Path, notes: &mut Notes) -> Result<u64> {
    let opened = crate::open::for_a_look(path)?;
    let file_bytes = opened.storage.len()?;
    match opened.sidecars.as_ref().map_or(Ok(None), |sidecars| sidecars.find(Sidecar::Journal)) {
        Ok(None) => {}
        Ok(Some(_)) => {
            let journal = format!("{}{}", path.display(), Sidecar::Journal.suffix());
            let what =
                format!("a change was begun and not completed ({journal}): see zonda recover");
            notes.add(Grade::Damage, None, None, what);
        }
        // Opening the file shows whether it needs the journal.
        Err(error) => notes.add(Grade::Remark, None, None, error.to_string()),
    }
    Ok(file_bytes)
}

fn finished(mut checked: Checked, notes: Notes) -> Checked {
    checked.n_findings = notes.n;
    checked.findings = notes.found.into_iter().collect();
    zonda_runtime::sort::sort_by_key(&mut checked.findings, |finding| {
        (finding.at, finding.object.clone())
    });
    checked
}

/// The findings so far, each once.
#[derive(Debug, Default)]
struct Notes {
    found: BTreeSet<Finding>,
    n: u64,
}

impl Notes {
    fn add(&mut self, grade: Grade, object: Option<&str>, at: Option<u64>, what: String) {
        let finding = Finding { grade, object: object.map(str::to_owned), at, what };
        if self.found.contains(&finding) {
            return;
        }
        self.n += 1;
        if self.found.len() < CHECK_FINDINGS {
            self.found.insert(finding);
        }
    }

    /// Notes an error that reading met; gives its grade.
    fn error(&mut self, object: Option<&str>, error: &Error) -> Grade {
        let text = error.cause();
        // Errors of netCDF-4 files begin with the path of the object.
        // and those of classic ones with the name of the variable.
        let (named, what) = match text.split_once(": ") {
            Some((path, rest)) if path.starts_with('/') => (Some(path.to_owned()), rest),
            Some((first, _)) if first.starts_with("variable ") => {
                (first.strip_prefix("variable ").map(|name| format!("/{name}")), &*text)
            }
            _ => (None, &*text),
        };
        let grade = Grade::of(error);
        // Damage of the root group is damage of the file.
        let is_file = grade != Grade::Unrepresentable && named.as_deref() == Some("/");
        let object = object.or(named.as_deref()).filter(|path| *path != "/" || !is_file);
        self.add(grade, object, byte_of(what), what.to_owned());
        grade
    }
}

/// Notes what opening a file that may be damaged skipped. Gives the paths of damaged objects, which are not noted
/// again.
fn faults(file: &Dataset, notes: &mut Notes) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for fault in file.faults()? {
        match fault.what {
            FaultKind::Damaged(error) => {
                notes.error(Some(&fault.path), &error);
                paths.insert(fault.path);
            }
            FaultKind::Unrepresentable(what) => {
                let what = format!("{what} cannot be represented in netCDF");
                notes.add(Grade::Unrepresentable, Some(&fault.path), None, what);
            }
            FaultKind::Doubtful(what) => notes.add(Grade::Remark, Some(&fault.path), None, what),
        }
    }
    Ok(paths)
}

/// The byte that an error names: all decoders say it as `at byte N`.
fn byte_of(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once(" byte ")?;
    let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    behind[..digits].parse().ok()
}

/// `EIO` of Linux on every architecture.
const EIO: i32 = 5;

/// Bytes of the files in a folder.
fn bytes_in(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let lens = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file);
    lens.fold(0, |sum, found| sum.saturating_add(found.len()))
}
