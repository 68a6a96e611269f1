//! Files that a server writes, or reads, for a client: what the client opens, and what the server does with the client's calls.

use std::path::Path;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{Access, Dispatch, FillMode, OwnedValues, Transfer, VarRef, has_pointers};
use zonda_model::{MemType, NcError};
use zonda_served::replay::{define, with_values};
use zonda_served::{
    Call, Line, OwnedSlab, Phantom, ReadFile, ReadLine, Reply, ServedFile, Told, ValuesForm,
};
use zonda_storage::backend::Memory;
use zonda_storage::{OpenedStorage, Storage};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::format::{self, Maker};
use crate::open::{self, CreateOptions, OpenOptions, Opening};
use crate::open_file::OpenFile;

impl Dataset {
    /// Opens a dataset for reading, all elements of which the server at the other end of `line` reads: it has the file at `path` open.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open_read_by(line: Arc<dyn ReadLine>, path: &Path) -> Result<Dataset> {
        let options = &OpenOptions::default();
        let opening = Opening { path: Some(path), options, damaged: zonda_nc4::Damaged::Refuse };
        let opened = open::open_existing(path, options);
        let opened = opened.and_then(|opened| format::open(opened, &opening));
        let (own, mark) = opened.map_err(|error| error.at(path))?.0.into_parts();
        let file = ReadFile::new(own, line).asking_always();
        Ok(Dataset::new(path, OpenFile::new(Box::new(file), mark, None), None))
    }

    /// Creates a dataset that the server at the other end of `line` writes: it has created the file at `path` with the same options.
    ///
    /// # Errors
    /// `NC_EINVAL` for a format whose files are not bytes.
    pub fn create_served(
        line: Arc<dyn Line>,
        path: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        Dataset::served(path, options, |copy| ServedFile::new(copy, line))
    }

    /// The same for one of several ranks. For each of them the server has created the file together with the others
    /// ([`Dataset::create_parallel`]).
    ///
    /// # Errors
    /// As there.
    pub fn create_served_parallel(
        line: Arc<dyn Line>,
        path: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        let dataset = Dataset::served(path, options, |copy| ServedFile::of_ranks(copy, line))?;
        if !options.format.is_hdf5() {
            // As `create_parallel` does, which need not be told.
            dataset.named(dataset.queued_file.changing().and_then(|mut file| {
                let served = file.writer()?.as_any_mut().downcast_mut::<ServedFile>();
                served.map_or(Ok(()), |file| file.set_fill_of_copy(FillMode::NoFill))
            }))?;
        }
        Ok(dataset)
    }

    fn served(
        path: &Path,
        options: &CreateOptions,
        make_served: impl FnOnce(Box<dyn Dispatch>) -> ServedFile,
    ) -> Result<Dataset> {
        let Maker::OnBytes(make) = format::maker(options.format).map_err(|error| error.at(path))?
        else {
            let what = "files of this format are not one file's bytes";
            return Err(Error::because(NcError::Inval, what).at(path));
        };
        let storage: Arc<dyn Storage> = match options.format.is_hdf5() {
            // Definitions, nothing else: they are read again in commits.
            true => Arc::new(Memory::new()),
            false => Arc::new(Phantom::default()),
        };
        let made = make(OpenedStorage::of(storage), path, options);
        let (copy, mark) = made.map_err(|error| error.at(path))?.into_parts();
        let served = make_served(copy);
        Ok(Dataset::new(path, OpenFile::new(Box::new(served), mark, None), None))
    }

    /// Makes a call that a client made on its copy of the definitions.
    ///
    /// # Errors
    /// Those of the call, unless it failed there, too; `NC_EINTERNAL` if it failed there and not here, since the copy is none then.
    pub fn carry_out(&self, told: &Told, values: &[u8]) -> Result<Reply> {
        let done = self.make_call(&told.call, values);
        match (told.failed, done) {
            (false, done) => done,
            (true, Err(_)) => Ok(Reply::default()),
            (true, Ok(_)) => {
                let why = "the I/O server made a call that failed in the program, so that their definitions differ";
                self.named(Err(Error::because(NcError::Internal, why)))
            }
        }
    }

    /// As [`Dataset::carry_out`], of a call that found no room on the device: again, or, where the definitions are changed and only the commit of that failed, the commit.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn carry_out_again(&self, told: &Told, values: &[u8]) -> Result<Reply> {
        let is_made = match told.call {
            Call::Enddef { .. } | Call::EndDefinitions => !self.in_define_mode(),
            Call::Redef => self.in_define_mode(),
            Call::Put { .. }
            | Call::CheckPut { .. }
            | Call::TakePart { .. }
            | Call::Sync
            | Call::Drain
            | Call::Close
            | Call::Abort => false,
            _ => true,
        };
        if is_made { self.sync().map(|()| Reply::default()) } else { self.carry_out(told, values) }
    }

    fn make_call(&self, call: &Call, values: &[u8]) -> Result<Reply> {
        let done = match call {
            Call::CheckPut { var, slab, mem } => {
                let check = || {
                    let access = Access { var: *var, slab: slab.slab(), mem: *mem };
                    self.put_to(*var)?.check(&mut Transfer::new(access)).map(drop)
                };
                // The client has the error, and the other ranks wait for a put.
                let done =
                    if self.is_of_ranks() { self.put_with_ranks(*var, check) } else { check() };
                return Ok(done.map(|()| Reply::default()).unwrap_or_default());
            }
            Call::Put { var, slab, mem, form } => {
                let put = || self.put_of_client((*var, slab, *mem), (*form, values));
                let converted = match self.is_of_ranks() {
                    true => self.put_with_ranks(*var, put)?,
                    false => put()?,
                };
                return Ok(Reply { converted, ..Reply::default() });
            }
            Call::Get { var, slab, mem } => {
                let mut values = Vec::new();
                let converted = self.get_for_client(*var, slab, *mem, &mut values)?;
                return Ok(Reply { converted, values, shape: Vec::new() });
            }
            Call::Shape { var } => {
                return Ok(Reply { shape: self.shape_of(*var)?, ..Reply::default() });
            }
            Call::Redef => self.redef(),
            Call::Enddef { reserve } => self.enddef(*reserve),
            Call::Sync => self.sync(),
            Call::Drain => self.drain(),
            Call::Close => self.close(),
            Call::Abort => self.abort(),
            Call::SetCollective { var, is_collective } => self.set_collective(*var, *is_collective),
            Call::TakePart { var } => self.put_with_ranks(*var, || Ok(())),
            _ => self.change(|file| define(file, call, values)),
        };
        done.map(|()| Reply::default())
    }

    fn shape_of(&self, var: VarRef) -> Result<Vec<usize>> {
        self.named(self.queued_file.ask(|file| {
            let definitions = file.definitions();
            let mut shape = zonda_model::memory::filled(definitions.var(var)?.dims.len(), 0)?;
            definitions.var_shape(var, &mut shape)?;
            Ok(shape)
        }))
    }

    fn put_of_client(
        &self,
        (var, slab, mem): (VarRef, &OwnedSlab, Option<MemType>),
        (form, values): (ValuesForm, &[u8]),
    ) -> Result<Converted> {
        with_values(form, values, |values| {
            let mut put = Transfer::new(Access { var, slab: slab.slab(), mem });
            self.put_to(var)?.check(&mut put)?.write(values)
        })
    }

    /// Makes a get. `values` become its elements, with what they point to where they do.
    pub(crate) fn get_for_client(
        &self,
        var: VarRef,
        slab: &OwnedSlab,
        mem: Option<MemType>,
        values: &mut Vec<u8>,
    ) -> Result<Converted> {
        let has_pointers = mem.is_none()
            && self.named(self.queued_file.ask(|file| {
                let definitions = file.definitions();
                has_pointers(definitions, definitions.var(var)?.nc_type)
            }))?;
        let mut owned = OwnedValues::default();
        let to = (&mut *values, has_pointers.then_some(&mut owned as _));
        let converted = self.get_list(var, &slab.slab(), mem, to)?;
        if has_pointers {
            let owned = owned.with_bytes(std::mem::take(values));
            *values = zonda_model::memory::filled(owned.written_bytes(), 0).map_err(Error::from)?;
            owned.write_to(values).ok_or(NcError::Internal)?;
        }
        Ok(converted)
    }
}
