//! CDL, the text form of a netCDF dataset.
//!
//! Spec: the netCDF User's Guide, "CDL Syntax", and byte by byte the output of `ncdump` 4.9.0, which
//! programs and people compare. One file for each part: [`names`] and their escapes, [`values`] and
//! their text, [`cformat`] for the `C_format` attribute, [`lines`] for wrapping, [`header`], [`data`].

pub(crate) mod cformat;
pub(crate) mod data;
pub(crate) mod header;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod values;

use std::io::Write;

use zonda::{Dataset, VarId};

use crate::failure::{Failure, Result};
use values::Precision;

/// Which variables' data is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// None: the header only.
    Header,
    /// Coordinate variables.
    Coordinates,
    /// All, or those in the list where there is one.
    Data,
}

/// The order of indices in comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    /// From 0, last dimension fastest.
    C,
    /// From 1, first dimension fastest.
    Fortran,
}

/// What is written, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Name of the dataset in CDL.
    pub(crate) name: Vec<u8>,
    /// Which data.
    pub(crate) selection: Selection,
    /// Data of these variables only; empty for all.
    pub(crate) variables: Vec<Vec<u8>>,
    /// A comment before each row.
    pub(crate) brief: bool,
    /// A comment after each value.
    pub(crate) full: bool,
    /// Order of indices in both kinds of comment.
    pub(crate) order: IndexOrder,
    /// Longest line in the data section, in bytes.
    pub(crate) line_len: usize,
    /// Digits of floating-point values.
    pub(crate) precision: Precision,
    /// Also the virtual attributes (`_Format`).
    pub(crate) special: bool,
}

/// Writes a dataset as CDL. The header is handed over before the first data is read.
pub(crate) fn write(out: &mut dyn Write, file: &Dataset, options: &Options) -> Result<()> {
    let wanted = wanted(file, &options.variables)?;
    let mut head = b"netcdf ".to_vec();
    names::push_escaped(&mut head, &options.name)?;
    head.extend_from_slice(b" {\n");
    out.write_all(&head)?;
    file.meta(|meta| header::write(out, meta, options))?;
    out.flush()?;
    if options.selection != Selection::Header {
        data::write(out, file, options, &wanted)?;
    }
    out.write_all(b"}\n")?;
    Ok(())
}

/// The ids of the variables named; empty for all. A leading `/` stands for the root group.
fn wanted(file: &Dataset, variables: &[Vec<u8>]) -> Result<Vec<VarId>> {
    variables
        .iter()
        .map(|name| {
            let plain = name.strip_prefix(b"/").unwrap_or(name);
            file.meta(|meta| meta.find_var(plain)).map_err(|_| {
                let name = String::from_utf8_lossy(name);
                Failure::at(file.path(), format!("{name}: no such variable"))
            })
        })
        .collect()
}
