//! Damaged files: opening them, and what is wrong with them.

use std::path::Path;

use zonda_format::FormatError as _;
use zonda_format::VarRef;
use zonda_model::Answer;
use zonda_nc4::{Damaged, Nc4Error, SkipReason};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::{self, OpenOptions};

/// Something about a damaged file that its definitions do not say.
///
/// See [`copy`](crate::copy::copy()), which tells of them.
#[derive(Debug)]
pub struct Fault {
    /// Path of the group or variable.
    pub path: String,
    /// What is wrong with it.
    pub what: FaultKind,
}

/// What is wrong with something.
///
/// See [`copy`](crate::copy::copy()), which tells of them.
#[derive(Debug)]
pub enum FaultKind {
    /// It is damaged, and the definitions lack it or a part of it.
    Damaged(Error),
    /// It is sound and not among the definitions: netCDF cannot represent this part of it.
    Unrepresentable(&'static str),
    /// It is among the definitions and may not be as it was written; the text says why.
    Doubtful(String),
}

impl Dataset {
    /// Opens a file, for reading, of which parts may be damaged: cut off, written over, zeroed. What can be read of
    /// definitions and data is there as in any dataset; [`Dataset::faults`] lists what cannot. With
    /// [`Damaged::Search`], objects of an HDF5 file whose groups are damaged are looked for in all of its bytes.
    ///
    /// # Errors
    /// `NC_ENOTNC` where nothing tells what the file was; a header of a classic file that ends before
    /// its dimensions; what the operating system reports.
    pub fn open_damaged(path: &Path, damaged: Damaged) -> Result<Dataset> {
        let options = OpenOptions::default();
        let opened = open::open_existing(path, &options).map_err(|error| error.at(path))?;
        Dataset::open_on(opened, path, Some(path), &options, damaged)
    }

    /// What is wrong with groups and variables, and with the file itself. The list is complete only for a file that
    /// was opened as a damaged one.
    ///
    /// # Errors
    /// As the first inquiry of definitions.
    pub fn faults(&self) -> Result<Vec<Fault>> {
        if !self.is_hdf5() {
            return Ok(self.passed.iter().map(of_classic).collect());
        }
        let passed = self.hdf5(|file| Ok(file.faults()?))?;
        Ok(passed
            .into_iter()
            .map(|passed| {
                let what = match passed.why {
                    SkipReason::Damaged(error) => {
                        let object = passed.path.clone();
                        FaultKind::Damaged(Nc4Error::Hdf { object, error }.into())
                    }
                    SkipReason::Unrepresentable(what) => FaultKind::Unrepresentable(what),
                    SkipReason::FoundByBytes => FaultKind::Doubtful(
                        "no group links to it any more; it may have had another name, been in another \
                         group, or been deleted"
                            .to_owned(),
                    ),
                };
                Fault { path: passed.path, what }
            })
            .collect())
    }

    /// What is wrong with attributes of a variable or group of an HDF5 file, which inquiries leave out. Those that netCDF
    /// cannot represent have the code `NC_EATTMETA`. Damaged ones are among them only where the file was opened as a damaged one.
    ///
    /// # Errors
    /// As [`Dataset::var_info`].
    pub fn att_faults(&self, owner: VarRef) -> Result<Vec<Error>> {
        if !self.is_hdf5() {
            return Ok(Vec::new());
        }
        let faults = self.hdf5(|file| Ok(file.att_faults(owner)?))?;
        Ok(faults.into_iter().map(Error::from).collect())
    }
}

fn of_classic(passed: &zonda_classic::SkippedPart) -> Fault {
    use zonda_classic::SkippedPart;
    let what = match passed {
        SkippedPart::Header(error) => FaultKind::Damaged(Error::answered(
            error.nc_error(),
            Answer::Damaged,
            format!("definitions from here on, and all records: {error}"),
        )),
        SkippedPart::MoreRecords { counted, found } => FaultKind::Doubtful(format!(
            "its header counts {counted} records, and the file has bytes of {found}: these are \
             read, though they may be incomplete"
        )),
        SkippedPart::FewerRecords { counted, found } => FaultKind::Damaged(Error::with_text(
            zonda_model::NcError::Trunc,
            format!(
                "its header counts {counted} records, more than a file of this length ever had, and \
                 it has bytes of {found}"
            ),
        )),
    };
    Fault { path: "/".to_owned(), what }
}
