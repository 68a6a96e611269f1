//! An open file.

use std::fmt;
use std::path::Path;

use zonda_format::{DefineMode, Format, GroupId, Reserve};

use super::error::Result;
use super::group::Group;
use crate::{CreateOptions, Dataset, NcError, OpenOptions, Persist};

/// An open file, which is its root [`Group`], too: all that a group can do a file can.
///
/// It is closed when it is dropped; [`File::close`] says what that met.
///
/// Threads may share it, and read and write at the same time. While one of them defines something in a file of the classic
/// model (dimensions, variables, attributes), no other one may read or write: its calls, or the definition, give `NC_EINDEFINE` or
/// `NC_ENOTINDEFINE`.
///
/// ```
/// use zonda::typed::File;
/// # let folder = std::env::temp_dir().join(format!("zonda-file-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("one.nc");
/// let file = File::options().classic().create(&path)?;
/// file.put_attribute("title", "nothing yet")?;
/// file.close()?;
/// assert_eq!(File::open(&path)?.attribute::<String>("title")?, "nothing yet");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct File {
    dataset: Dataset,
}

impl File {
    /// Opens a file for reading, of whichever format.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<File> {
        File::options().open(path)
    }

    /// Makes a netCDF-4 file, in the place of one that is there.
    ///
    /// # Errors
    /// As [`Dataset::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<File> {
        File::options().create(path)
    }

    /// How to open or make a file in another way.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn options() -> FileOptions {
        FileOptions::default()
    }

    /// The dataset below, for all that has no typed call.
    ///
    /// See [`Dataset`].
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The root group.
    ///
    /// See [`Group`].
    #[must_use]
    pub fn root(&self) -> Group<'_> {
        Group::new(self, GroupId::ROOT)
    }

    /// Commits what was put and defined: another program that opens the file sees it, and a crash does not lose it.
    ///
    /// # Errors
    /// As [`Dataset::sync`].
    pub fn sync(&self) -> Result<()> {
        self.transfer()?;
        Ok(self.dataset.sync()?)
    }

    /// Commits and closes it.
    ///
    /// # Errors
    /// As [`Dataset::close`]; it is closed again when it is dropped then.
    pub fn close(self) -> Result<()> {
        Ok(self.dataset.close()?)
    }

    /// Enters define mode where the format needs it.
    pub(super) fn define(&self) -> crate::Result<()> {
        if self.needs_define_mode() && !self.dataset.in_define_mode() {
            // Another thread may have come first.
            unless(self.dataset.redef(), NcError::InDefine)?;
        }
        Ok(())
    }

    /// Leaves define mode where the format needs it.
    pub(super) fn transfer(&self) -> Result<()> {
        if self.needs_define_mode() && self.dataset.is_writable() && self.dataset.in_define_mode() {
            unless(self.dataset.enddef(Reserve::Default), NcError::NotInDefine)?;
        }
        Ok(())
    }

    fn needs_define_mode(&self) -> bool {
        self.dataset.capabilities().define_mode == DefineMode::Needed
            || self.dataset.format() == Format::NetCdf4Classic
    }
}

/// A dataset that was opened or made in another way, such as in a storage of the caller's. It is closed when the file is dropped.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use zonda::storage::backend::Memory;
/// use zonda::typed::File;
/// use zonda::{CreateOptions, Dataset};
///
/// let memory = Arc::new(Memory::default());
/// let file = File::from(Dataset::create_in(memory, Path::new("in memory"), &CreateOptions::default())?);
/// file.put_attribute("title", "in memory")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl From<Dataset> for File {
    fn from(dataset: Dataset) -> File {
        File { dataset }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.dataset.is_open() {
            // Nobody is left who could be told; `close` tells.
            let _ = self.dataset.close();
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.dataset.path()).finish()
    }
}

/// How to open or make a file.
///
/// ```
/// # use zonda::typed::File;
/// let how = File::options().layers("cache:64:32,file").format(zonda::Format::Cdf5);
/// ```
#[derive(Clone, Debug)]
pub struct FileOptions {
    open: OpenOptions,
    create: CreateOptions,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        let create = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
        FileOptions { open: OpenOptions::default(), create }
    }
}

impl FileOptions {
    /// Opens for writing, too.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn write(mut self) -> FileOptions {
        self.open.write = true;
        self
    }

    /// Makes a file of this format; netCDF-4 by default.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn format(mut self, format: Format) -> FileOptions {
        self.create.format = format;
        self
    }

    /// Makes a classic file with 64-bit offsets (CDF-2).
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn classic(self) -> FileOptions {
        self.format(Format::Cdf2)
    }

    /// Refuses to replace a file that is there.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn new_only(mut self) -> FileOptions {
        self.create.exclusive = true;
        self
    }

    /// The storage layers by their spec, such as `cache:29:141,file`.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn layers(mut self, spec: &str) -> FileOptions {
        self.open.io = Some(spec.to_owned());
        self.create.io = Some(spec.to_owned());
        self
    }

    /// Holds the file in memory: with [`Persist::Yes`] it is written to its path when it is closed, with [`Persist::No`] never.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn in_memory(mut self, persist: Persist) -> FileOptions {
        self.open.in_memory = Some(persist);
        self.create.in_memory = Some(persist);
        self
    }

    /// Puts return when their values are copied, and are carried out by a thread.
    ///
    /// See [`FileOptions`].
    #[must_use]
    pub fn write_behind(mut self, how: crate::WriteBehind) -> FileOptions {
        self.open.write_behind = Some(how);
        self.create.write_behind = Some(how);
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        Ok(File { dataset: Dataset::open(path.as_ref(), &self.open)? })
    }

    /// Makes a file.
    ///
    /// # Errors
    /// As [`Dataset::create`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<File> {
        Ok(File { dataset: Dataset::create(path.as_ref(), &self.create)? })
    }
}

/// A result that is fine, too, where it is that error.
fn unless(done: crate::Result<()>, fine: NcError) -> crate::Result<()> {
    done.or_else(|error| if error.code() == fine { Ok(()) } else { Err(error) })
}
