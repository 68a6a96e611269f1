//! Copies of datasets, into any format and with data stored in another way.
//!
//! A copy reads the definitions of the source (`tree`), checks that the target can hold them (`fit`),
//! decides how its variables are stored (`storage`), defines everything (`define`), and then copies
//! the data (`data`). Of each variable it takes the first way that is possible:
//!
//! 1. *Stored chunks.* Where chunks have the same shape, type, byte order and filters in both files,
//!    they are copied as they are stored (`raw`); filters need not be there. Chunks that the source
//!    lacks stay absent, if elements never written are the same in both.
//! 2. *Boxes.* Elements are read, held in memory and written in boxes of whole chunks of the target
//!    (`boxes`): each of its chunks is filtered and written once. Of the boxes that fit into memory
//!    those are taken that decode the chunks of the source least often: once, where boxes of common
//!    multiples fit.
//! 3. *A file in between.* Where memory takes only boxes that would decode each chunk more than three
//!    times, elements go through an unnamed file beside the target (`spill`): the source is read once
//!    and the target written once. It needs as much space as the variable has bytes, for the time.
//!
//! Variables with records in a classic file go record by record together, as they lie there.
//!
//! Ranks divide a copy ([`CopyOptions::lead`]): rank 0 puts the same boxes in the same order, and others make them (`divided`).
//!
//! The target is written under another name beside its own, and gets that when it is complete; a copy that fails or
//! is interrupted leaves nothing. What a killed copy leaves, the next copy in the folder removes.
//!
//! See [`copy`](crate::copy::copy()).

mod ahead;
pub(crate) mod atts;
pub(crate) mod box_read;
pub(crate) mod boxes;
mod data;
mod define;
mod divided;
mod fit;
mod follow;
mod named;
mod options;
mod pieces;

mod raw;
mod resume;
mod rules;
mod salvage;
mod spill;
mod storage;
mod target;
pub(crate) mod tree;
mod upload;
pub(crate) mod vlen_buffer;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use zonda_format::Format;
use zonda_model::{Answer, NcError};
use zonda_nc4::Damaged;

pub use follow::{follow_copy, follow_failed};
pub use options::{ChunkRule, CopyOptions, FilterRule, Pattern, QuantizeRule, Unfinished};
pub use resume::kept_part;
pub use rules::{CopyRules, RuledAxis, RuledFilters, RuledStorage, RuledVar};
pub use salvage::Loss;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::{CreateOptions, OpenOptions};
use data::DataCopy;
pub use target::Temporary;
use tree::DefinitionTree;

/// How far a copy has come.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Path of the variable that is being copied.
    pub var: &'a str,
    /// Bytes of elements in memory that were copied.
    pub done_bytes: u64,
    /// Bytes of all elements in memory that are to be copied.
    pub total_bytes: u64,
}

impl Progress<'_> {
    /// Calls `progress`.
    ///
    /// # Errors
    /// `EINTR` where the caller ends the work.
    pub(crate) fn report(
        &self,
        progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        // `EINTR` of Linux on every architecture.
        const EINTR: i32 = 4;
        match progress(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::with_text(NcError::System(EINTR), "interrupted")),
        }
    }
}

/// What a copy did.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, Default)]
pub struct Copied {
    /// The format of the target.
    pub format: Format,
    /// The variables, in their order.
    pub vars: Vec<CopiedVar>,
    /// What is not as in the source, a line each.
    pub notes: Vec<String>,
    /// What a salvaged copy lacks, the first hundred parts of each variable.
    pub lost: Vec<Loss>,
    /// How many things it lacks.
    pub n_lost: u64,
}

/// A variable that was copied.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq)]
pub struct CopiedVar {
    /// Its path in the source.
    pub path: String,
    /// Bytes of its elements in memory.
    pub bytes: u64,
    /// How its elements were copied.
    pub way: CopyMethod,
    /// How many times a chunk of the source was decoded, on average; 1 for [`CopyMethod::Spilled`], too.
    pub reads: f64,
    /// Number of its elements.
    pub n_elems: u64,
    /// Number of its elements that could not be read and are fill values, in a salvaged copy.
    pub n_lost: u64,
}

/// How the elements of a variable were copied.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// There were none, or none that had been written.
    Nothing,
    /// Chunks as they are stored.
    Stored,
    /// By an earlier copy, which did not come to its end.
    Before,
    /// Read and written in boxes.
    Values,
    /// By way of a temporary file.
    Spilled,
}

/// Copies the dataset at `source` to `target`.
///
/// `progress` is called after each box or some chunks that were copied, and may end the copy.
///
/// # Errors
/// `NC_EEXIST` for a target that exists, unless it is to be replaced; `NC_EINVAL` for one that is
/// the source; `NC_EPERM` for a format that can only be read; `NC_ESTRICTNC3` with names for what its format cannot hold, `NC_ENOTVAR`, `NC_EBADDIM`
/// and `NC_ENOGRP` for what options name and is not there: all before anything is written. `EINTR` where
/// `progress` ended it; what reading and writing meet. Nothing is left of the target then, and one
/// that was there stays as it was.
///
/// ```
/// use std::ops::ControlFlow;
/// use zonda::copy::{CopyOptions, copy};
/// # use zonda::{CreateOptions, Dataset, Format, OpenOptions};
///
/// # let folder = std::env::temp_dir().join(format!("zonda-copy-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let (source, target) = (folder.join("a.nc"), folder.join("b.nc"));
/// # Dataset::create(&source, &CreateOptions::default())?.close()?;
/// let options = CopyOptions { format: Some(Format::NetCdf4), ..CopyOptions::default() };
/// let copied = copy(&source, &target, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert!(copied.notes.is_empty());
/// assert_eq!(Dataset::open(&target, &OpenOptions::default())?.format(), Format::NetCdf4);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy(
    source: &Path,
    target: &Path,
    options: &CopyOptions,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Copied> {
    let file = match options.salvage {
        true => Dataset::open_damaged(source, Damaged::Search)?,
        false => Dataset::open(source, &OpenOptions::default())?,
    };
    let copied = copy_dataset(&file, target, options, progress)?;
    file.close()?;
    Ok(copied)
}

/// [`copy`] of a dataset that is open. One that is open for writing is synchronised before.
///
/// # Errors
/// As [`copy`]; `NC_EINDEFINE` for a source in define mode.
pub fn copy_dataset(
    source: &Dataset,
    target: &Path,
    options: &CopyOptions,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Copied> {
    run(source, target, options, None, progress)
}

/// [`copy_dataset`] where `rules` decide what is in the target and how it is stored. Of `options` only the format,
/// the memory, `fix_unlimited` and `replace` count.
///
/// # Errors
/// As [`copy_dataset`], but what the format of the target cannot hold has the code that the first
/// definition of it would have; what a rule refuses.
pub fn copy_by_rules(
    source: &Dataset,
    target: &Path,
    options: &CopyOptions,
    rules: &dyn CopyRules,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Copied> {
    run(source, target, options, Some(rules), progress)
}

fn run(
    source: &Dataset,
    target: &Path,
    options: &CopyOptions,
    rules: Option<&dyn CopyRules>,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Copied> {
    if source.is_writable() {
        if source.in_define_mode() {
            return Err(Error::from(NcError::InDefine).at(source.path()));
        }
        source.sync()?;
    }
    let format = options.format.unwrap_or_else(|| crate::format_of_copy(source.format()));
    // This check comes before a temporary file is made beside the target.
    crate::format::maker(format).map_err(|error| error.at(target))?;
    if resume::is_for(target, format, options, rules.is_some())? {
        return resume::run(source, target, options, progress);
    }
    let temporary = match crate::format::stands_on_path(format) {
        true => Temporary::folder_beside(target, source.path(), options.replace)?,
        false => Temporary::beside(target, source.path(), options.replace)?,
    };
    let by = define::DecidedBy { options, rules };
    let mut copied = Copied { format, ..Copied::default() };
    let tree = definitions(source, target, by, &mut copied)?;
    // Replaces the empty file that reserves the name.
    let create = CreateOptions { format, ..CreateOptions::default() };
    let made = Dataset::create(temporary.working_path(), &create);
    let file = made.map_err(|error| error.at_instead(target))?;
    // An error about the source names the source. The target has no name of its own so far: an error about it
    // names the path that it is going to have.
    let path = temporary.working_path();
    let made = define::all(source, &file, &tree, by, &mut copied);
    let done = made.and_then(|made| {
        fill(source, (&file, path), (&tree, &made), by, None, progress, &mut copied)
    });
    done.and_then(|()| file.close()).map_err(|error| of_one(error, source.path(), target))?;
    temporary.finish()?;
    Ok(copied)
}

/// An error about one of both, with the path that users know.
fn of_one(error: Error, source: &Path, target: &Path) -> Error {
    let of_source =
        [Answer::Damaged, Answer::Undecodable, Answer::Unrepresentable, Answer::Refused];
    match of_source.contains(&error.answer()) {
        true => error.at_instead(source),
        false => error.at_instead(target),
    }
}

/// Reads what is to be defined in the target, and checks that its format can hold it. What is left out, and why, goes to
/// `copied`.
fn definitions(
    source: &Dataset,
    target: &Path,
    by: define::DecidedBy<'_>,
    copied: &mut Copied,
) -> Result<DefinitionTree> {
    let define::DecidedBy { options, rules } = by;
    let format = copied.format;
    let at_source = |error: Error| error.at(source.path());
    let mut tree = DefinitionTree::read(source, options, rules).map_err(at_source)?;
    gaps(source, &mut tree, options, rules).map_err(at_source)?;
    let had_unlimited = tree.dims.iter().any(|dim| dim.is_unlimited);
    if options.fix_unlimited {
        tree.fix_unlimited();
    }
    if !format.is_hdf5() && rules.is_none() {
        refuse_storage(options, format).map_err(|error| error.at(target))?;
    }
    copied.notes = std::mem::take(&mut tree.doubts);
    if rules.is_some() || options.salvage {
        copied.notes.extend(tree.leave_out_vars());
    }
    if rules.is_none() {
        named::check(&tree, options).map_err(at_source)?;
        copied.notes.extend(named::without_effect(&tree, options, format.is_hdf5()));
        if options.fix_unlimited && !had_unlimited {
            copied.notes.push("no dimension gets a fixed length: none is unlimited".to_owned());
        }
    }
    copied.notes.extend(tree.leave_out_atts());
    copied.lost = std::mem::take(&mut tree.lost);
    copied.n_lost = copied.lost.len() as u64;
    let is_strict = rules.is_some();
    fit::check(&tree, format, is_strict).map_err(at_source)?;
    Ok(tree)
}

/// Copies all data into the target, which is written at `path`.
fn fill(
    source: &Dataset,
    (target, path): (&Dataset, &Path),
    (tree, made): (&DefinitionTree, &[define::TargetVar<'_>]),
    by: define::DecidedBy<'_>,
    complete: Option<&mut resume::CompleteVars>,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    copied: &mut Copied,
) -> Result<()> {
    let with_data = |var: &&tree::VarDef| by.rules.is_none_or(|rules| rules.has_data(&var.path));
    let all_bytes = tree.vars().filter(with_data).map(tree::VarDef::bytes);
    let mut transfer = DataCopy {
        source,
        target,
        options: by.options,
        path,
        progress,
        total: all_bytes.fold(0, u64::saturating_add),
        done: 0,
        data: Vec::new(),
        ahead: Vec::new(),
        pieces: vlen_buffer::VlenBuffer::default(),
        in_heap: 0,
        lost: Vec::new(),
        n_lost: 0,
        lost_elems: BTreeMap::new(),
        tries: 0,
        complete,
    };
    transfer.run(made, copied)?;
    copied.n_lost += transfer.n_lost;
    copied.lost.append(&mut transfer.lost);
    for var in &mut copied.vars {
        var.n_lost = transfer.lost_elems.get(&var.path).copied().unwrap_or(0);
    }
    Ok(())
}

/// Fails where the copy would lack data that the source has in other files and that are refused or cannot be read; a
/// salvaged copy notes them as lost. Data whose file does not exist are no loss.
fn gaps(
    source: &Dataset,
    tree: &mut DefinitionTree,
    options: &CopyOptions,
    rules: Option<&dyn CopyRules>,
) -> Result<()> {
    let is_asked_for = |path: &str| match rules {
        Some(rules) => rules.has_var(path.as_bytes()),
        None => {
            let group = options.group.as_deref().unwrap_or_default();
            let group = String::from_utf8_lossy(group);
            let group = group.trim_matches('/');
            let below = path.trim_start_matches('/').strip_prefix(group);
            let is_within = group.is_empty() || below.is_some_and(|below| below.starts_with('/'));
            // Variables that were chosen by name are looked up one by one, which reports missing ones.
            is_within && options.vars.is_empty()
        }
    };
    for gap in source.gaps()? {
        if gap.error.is_absence() || !is_asked_for(&gap.path) {
            continue;
        }
        let error =
            Error::from(zonda_nc4::Nc4Error::Hdf { object: gap.path.clone(), error: gap.error });
        if !options.salvage {
            return Err(error);
        }
        tree.lost.push(Loss::whole(gap.path.as_bytes(), &error));
    }
    Ok(())
}

/// Refuses options about storage that only netCDF-4 has.
fn refuse_storage(options: &CopyOptions, format: Format) -> Result<()> {
    let CopyOptions { chunks, contiguous, filters, quantize, .. } = options;
    let filtered = filters.iter().any(|rule| !rule.filters.is_empty());
    if chunks.is_empty() && contiguous.is_empty() && !filtered && quantize.is_empty() {
        return Ok(());
    }
    let kind = if let Format::Other(other) = format { other.name } else { "classic" };
    let text = format!("{kind} files have no chunks, filters or precision to be given up");
    Err(Error::with_text(NcError::NotNc4, text))
}
