//! Finds the differences between two datasets: in definitions and values.
//!
//! Datasets are the same where a program that reads them by name sees the same: groups, dimensions with their
//! lengths, user-defined types, variables with their types and dimensions, attributes, values. How a file stores them
//! (format, order, chunks, filters, fill values that no value shows) makes no difference. NaN is equal to NaN.
//!
//! Values are compared in boxes that fit into memory, chosen so that chunks of both files are decoded as rarely as
//! possible.
//!
//! See [`diff`](crate::diff::diff()).

mod definitions;
mod forms;
mod values;

use std::fmt;
use std::ops::ControlFlow;

use zonda_model::NcError;

use crate::copy::tree::DefinitionTree;
use crate::copy::{CopyOptions, Pattern, Progress};
use crate::dataset::Dataset;
use crate::error::{Error, Result};

use crate::tuning::DIFF_MEMORY_BYTES;
pub use values::{Tolerance, ValuesDiffer};

/// What is compared.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Variables that are compared; empty for all.
    pub vars: Vec<Pattern>,
    /// Variables that are not compared, whatever `vars` says.
    pub exclude: Vec<Pattern>,
    /// Names of attributes that are not compared, wherever they are; `*` and `?` as in [`Pattern`].
    pub ignore_attributes: Vec<Pattern>,
    /// Values of variables are compared.
    pub values: bool,
    /// Definitions are compared; if not, only values of variables that both have.
    pub definitions: bool,
    /// How different numbers may be.
    pub tolerance: Tolerance,
    /// Bytes of data in memory at a time.
    pub memory_bytes: u64,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions {
            vars: Vec::new(),
            exclude: Vec::new(),
            ignore_attributes: Vec::new(),
            values: true,
            definitions: true,
            tolerance: Tolerance::default(),
            memory_bytes: DIFF_MEMORY_BYTES,
        }
    }
}

/// One of the two datasets.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// What kind of thing is different.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A group.
    Group,
    /// A dimension.
    Dimension,
    /// A user-defined type.
    Type,
    /// A variable.
    Variable,
    /// An attribute.
    Attribute,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Group => "group",
            ObjectKind::Dimension => "dimension",
            ObjectKind::Type => "type",
            ObjectKind::Variable => "variable",
            ObjectKind::Attribute => "attribute",
        })
    }
}

/// Something that is different.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is.
    pub thing: ObjectKind,
    /// Its path; of an attribute that of its owner, `@` and its name.
    pub path: String,
    /// How it is different.
    pub how: DifferenceKind,
}

/// How something is different.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// Only one of the two has it.
    OnlyIn(Side),
    /// A part of its definition, or the value of an attribute, is different.
    Defined {
        /// The part: `length`, `type`, `value`.
        what: &'static str,
        /// In the first one.
        first: String,
        /// In the second one.
        second: String,
    },
    /// Values of a variable.
    Values(ValuesDiffer),
    /// Values cannot be compared, for this reason.
    NotComparable(String),
}

/// Compares two datasets. Calls `found` with each difference, and gives their number. `progress` is called with the
/// bytes that were compared, and may end the comparison.
///
/// # Errors
/// `NC_ENOTVAR` and `NC_ENOTATT` for a name in the options that neither has; what reading meets; `EINTR` where `progress` ended it.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// use zonda::diff::{DiffOptions, diff};
/// use zonda::{Dataset, OpenOptions};
///
/// let open = |path: &str| Dataset::open(path.as_ref(), &OpenOptions::default());
/// let (a, b) = (open("a.nc")?, open("b.nc")?);
/// let go_on = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Continue(());
/// let n = diff(&a, &b, &DiffOptions::default(), &mut |found| println!("{found:?}"), go_on)?;
/// println!("{n} differences");
/// # Ok::<(), zonda::Error>(())
/// ```
pub fn diff(
    first: &Dataset,
    second: &Dataset,
    options: &DiffOptions,
    found: &mut dyn FnMut(Difference),
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<u64> {
    let read = |file: &Dataset| {
        DefinitionTree::read(file, &CopyOptions::default(), None)
            .map_err(|error| error.at(file.path()))
    };
    let trees = [read(first)?, read(second)?];
    for pattern in options.vars.iter().chain(&options.exclude) {
        if !trees.iter().flat_map(DefinitionTree::vars).any(|var| pattern.matches(&var.path)) {
            let name = String::from_utf8_lossy(pattern.text());
            let text = format!("there is no variable {name} in either file");
            return Err(Error::with_text(NcError::NotVar, text));
        }
    }
    for pattern in &options.ignore_attributes {
        let groups = || trees.iter().flat_map(|tree| &tree.groups);
        let of_groups = groups().flat_map(|group| &group.atts);
        let of_vars = groups().flat_map(|group| &group.vars).flat_map(|var| &var.atts);
        if !of_groups.chain(of_vars).any(|att| pattern.matches_name(&att.name)) {
            let name = String::from_utf8_lossy(pattern.text());
            let text = format!("there is no attribute {name} in either file");
            return Err(Error::with_text(NcError::NotAtt, text));
        }
    }
    let mut n = 0;
    let mut on_difference = |difference| {
        n += 1;
        found(difference);
    };
    let work = Comparison { files: [first, second], trees: &trees, options };
    for file in [first, second] {
        // Data that are there and cannot be read are neither equal nor different.
        let gap = file
            .gaps()?
            .into_iter()
            .find(|gap| !gap.error.is_absence() && work.is_chosen(gap.path.as_bytes()));
        if let Some(zonda_nc4::Gap { path: object, error }) = gap {
            let error = Error::from(zonda_nc4::Nc4Error::Hdf { object, error });
            return Err(error.at(file.path()));
        }
    }
    if options.definitions {
        work.definitions(&mut on_difference)?;
    }
    work.variables(&mut on_difference, progress)?;
    Ok(n)
}

/// What is compared, and how.
struct Comparison<'a> {
    files: [&'a Dataset; 2],
    trees: &'a [DefinitionTree; 2],
    options: &'a DiffOptions,
}

impl Comparison<'_> {
    /// Whether the options ask to compare a variable.
    fn is_chosen(&self, path: &[u8]) -> bool {
        let DiffOptions { vars, exclude, .. } = self.options;
        (vars.is_empty() || Pattern::any(vars, path)) && !Pattern::any(exclude, path)
    }
}
