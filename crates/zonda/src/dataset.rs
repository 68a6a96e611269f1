//! An open dataset of any format.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use zonda_format::{Capabilities, Dispatch, DispatchWrite, Ending, Format, GroupId, Meta, Reserve};
use zonda_model::NcError;
use zonda_nc4::Damaged;
use zonda_runtime::callout::Mark;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::backend::File;
use zonda_storage::{OpenedStorage, Stack, Storage};

use crate::dap;
use crate::error::{Error, Result};
use crate::format::{self, CreateBytes, Maker};
use crate::open::{self, CreateOptions, OpenOptions, Opening, Persist};
use crate::open_file::OpenFile;
use crate::place::{is_url, shown_name};
use crate::servers;
use crate::write_behind::{ChangeGuard, QueuedFile, WriteBehind};

/// An open dataset. All methods may be called from any thread.
///
/// A dataset that is dropped without [`Dataset::close`] loses what was not committed; the process's
/// last chance is [`Dataset::drain`].
///
/// Values are bytes in the layout of C; [`typed::File`](crate::typed::File) has them as values of Rust.
///
/// ```
/// use zonda::{CreateOptions, Dataset, ExtType, Hyperslab, OpenOptions, Reserve};
///
/// # let path = std::env::temp_dir().join(format!("zonda-dataset-{}.nc", std::process::id()));
/// let dataset = Dataset::create(&path, &CreateOptions::default())?; // a classic file
/// let x = dataset.def_dim(b"x", 2)?;
/// let v = dataset.def_var(b"v", ExtType::Short.nc_type(), &[x.0])?;
/// dataset.enddef(Reserve::Default)?;
/// let all = Hyperslab { start: &[0], count: &[2], stride: None };
/// dataset.put(v, &all, None, &[1i16, -1].map(i16::to_ne_bytes).concat())?;
/// dataset.close()?;
///
/// let dataset = Dataset::open(&path, &OpenOptions::default())?;
/// let v = dataset.meta(|meta| meta.find_var(b"v"))?;
/// let mut bytes = [0; 4];
/// dataset.get(v, &all, None, &mut bytes)?;
/// assert_eq!(bytes[..2], 1i16.to_ne_bytes());
/// # dataset.close()?;
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    /// The file below all layers; none for a dataset in memory.
    pub(crate) file: Option<Arc<File>>,
    /// Set for a dataset in memory that is to be written to `path` in the end.
    persists: bool,
    /// Locked while the dataset is written to `path`, since another thread may close it at the end of the process.
    /// True once that was done by a close: somebody may have opened and changed the file since, so it is not written
    /// again.
    persisting: Mutex<bool>,
    /// Set where the dataset has ended and could not be written to `path`: it can be closed again or given up.
    is_unpersisted: AtomicBool,
    /// Set where aborting the creation has a file to remove.
    pub(crate) on_disk: bool,
    /// Set in a forked child: what becomes of the file is the parent's business.
    forked: AtomicBool,
    /// Set in a forked child that lacks a lock of the file: a thread of the parent held it at the fork, and nobody
    /// releases it in the child.
    out_of_reach: AtomicBool,
    /// The file, and its queue of puts where write-behind is on.
    pub(crate) queued_file: QueuedFile,
    /// The queue of this rank, where several have the file open.
    pub(crate) rank_queue: Option<Arc<zonda_parallel::RankQueue>>,
    /// What was skipped in a damaged classic file.
    pub(crate) passed: Vec<zonda_classic::SkippedPart>,
}

/// Refuses to hold a dataset in memory, or to choose its layers, where its format stands on a path and not on the
/// bytes of one file.
fn check_path_alone(in_memory: Option<Persist>, io: Option<&str>) -> Result<()> {
    if in_memory.is_some() {
        let what = "datasets of this format are not held in memory";
        return Err(Error::because(NcError::Diskless, what));
    }
    match io {
        Some(_) => Err(Error::because(NcError::Inval, "files of this format take no layers")),
        None => Ok(()),
    }
}

/// Every lock of a dataset, held while a process forks.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Debug)]
pub struct FrozenFile<'a> {
    held: Option<crate::write_behind::FrozenQueuedFile<'a>>,
}

impl FrozenFile<'_> {
    /// Whether it has every lock. Where it has not, a forked child has to leave the dataset alone
    /// ([`Dataset::mark_out_of_reach`]).
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.held.is_some()
    }
}

impl Dataset {
    /// Creates a dataset, in define mode.
    ///
    /// # Errors
    /// `NC_EEXIST` where the file exists and `exclusive` is set; what the operating system reports;
    /// `EACCES` for an HDF5 file that somebody else has locked; `NC_EINVAL` for a bad layer spec. `NC_EPERM` for a
    /// format that can only be read and `NC_EINVAL` for one that is not known; what is at the path stays as it is.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Dataset> {
        // What is on a server of HTTP is refused here.
        let served = if is_url(path) { None } else { servers::create(path, options) };
        match served {
            Some(served) => served,
            None => Dataset::create_here(path, options),
        }
    }

    /// The same by this process, whatever servers there are.
    pub(crate) fn create_here(path: &Path, options: &CreateOptions) -> Result<Dataset> {
        let create = match format::maker(options.format).map_err(|error| error.at(path))? {
            Maker::OnBytes(create) => create,
            Maker::OnPath(create) => {
                check_path_alone(options.in_memory, options.io.as_deref())
                    .map_err(|error| error.at(path))?;
                return Dataset::on_path(path, create(path, options.exclusive));
            }
        };
        let (opened, on_disk) =
            open::create_storage(path, options).map_err(|error| error.at(path))?;
        let mut dataset = Dataset::create_on(create, opened, path, options)?;
        dataset.persists = options.in_memory == Some(Persist::Yes);
        dataset.on_disk = on_disk;
        if options.in_memory.is_none() && !options.share {
            dataset.set_write_behind(options.write_behind.unwrap_or_else(WriteBehind::from_env))?;
        }
        Ok(dataset)
    }

    /// Creates a dataset in a storage of the caller's; `name` is for messages.
    ///
    /// # Errors
    /// What the storage reports; `NC_EINVAL` for a format whose files are not bytes; else as [`Dataset::create`].
    pub fn create_in(
        storage: Arc<dyn Storage>,
        name: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        let create = match format::maker(options.format).map_err(|error| error.at(name))? {
            Maker::OnBytes(create) => create,
            Maker::OnPath(_) => {
                let what = "files of this format are not one file's bytes";
                return Err(Error::because(NcError::Inval, what).at(name));
            }
        };
        Dataset::create_on(create, OpenedStorage::of(storage), name, options)
    }

    fn create_on(
        create: CreateBytes,
        opened: OpenedStorage,
        name: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        let file = opened.file().cloned();
        let inner = create(opened, name, options).map_err(|error| error.at(name))?;
        Ok(Dataset::new(name, inner, file))
    }

    /// A dataset that is not one file's bytes.
    fn on_path(path: &Path, made: Result<Box<dyn Dispatch>>) -> Result<Dataset> {
        let file = made.map_err(|error| error.at(path))?;
        Ok(Dataset::new(path, OpenFile::new(file, Mark::NONE, None), None))
    }

    pub(crate) fn new(name: &Path, inner: OpenFile, file: Option<Arc<File>>) -> Dataset {
        Dataset {
            path: shown_name(name).into_owned(),
            file,
            persists: false,
            persisting: Mutex::ranked(Rank::Persist, false),
            is_unpersisted: AtomicBool::new(false),
            on_disk: false,
            forked: AtomicBool::new(false),
            out_of_reach: AtomicBool::new(false),
            queued_file: QueuedFile::new(inner),
            rank_queue: None,
            passed: Vec::new(),
        }
    }

    /// Opens a dataset.
    ///
    /// # Errors
    /// What the operating system reports; `NC_ENOTNC` for files of no known format and damaged ones;
    /// `NC_EHDFERR` for HDF5 files that are to be written and that another program writes;
    /// `NC_ENOTBUILT` for those whose space is managed in a way that is not kept up; `NC_EPERM` for those that are to be
    /// written and of a format that can only be read; `NC_EINVAL` for a bad layer spec.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset> {
        let of_dap = |file| Dataset::new(path, OpenFile::new(file, Mark::NONE, None), None);
        let bytes = || Dataset::open_bytes(path, options);
        if let Some(opened) = dap::open(path, &options.remote, of_dap, bytes) {
            return opened.map_err(|error| error.at(path));
        }
        if !is_url(path) {
            servers::settle(path)?;
        }
        let opened = Dataset::open_bytes(path, options);
        // A file costs no look at the path.
        if !opened.as_ref().is_err_and(format::is_folder) {
            return opened;
        }
        match format::open_path(path, options.write) {
            Some(made) => {
                check_path_alone(options.in_memory, options.io.as_deref())
                    .map_err(|error| error.at(path))?;
                Dataset::on_path(path, made)
            }
            None => opened,
        }
    }

    fn open_bytes(path: &Path, options: &OpenOptions) -> Result<Dataset> {
        let opened = open::open_existing(path, options).map_err(|error| error.at(path))?;
        let mut dataset = Dataset::open_on(opened, path, Some(path), options, Damaged::Refuse)?;
        dataset.persists = options.write && options.in_memory == Some(Persist::Yes);
        if options.in_memory.is_none() && !options.share && options.write {
            dataset.set_write_behind(options.write_behind.unwrap_or_else(WriteBehind::from_env))?;
        }
        Ok(dataset)
    }

    /// Opens the dataset that a storage of the caller's holds; `name` is for messages.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open_in(
        storage: Arc<dyn Storage>,
        name: &Path,
        options: &OpenOptions,
    ) -> Result<Dataset> {
        Dataset::open_on(OpenedStorage::of(storage), name, None, options, Damaged::Refuse)
    }

    /// A file that several ranks opened.
    pub(crate) fn of_ranks(
        path: &Path,
        inner: OpenFile,
        file: Option<Arc<File>>,
        queue: Arc<zonda_parallel::RankQueue>,
    ) -> Dataset {
        Dataset { rank_queue: Some(queue), ..Dataset::new(path, inner, file) }
    }

    pub(crate) fn open_on(
        opened: OpenedStorage,
        name: &Path,
        path: Option<&Path>,
        options: &OpenOptions,
        damaged: Damaged,
    ) -> Result<Dataset> {
        let file = opened.file().cloned();
        let opening = Opening { path, options, damaged };
        let reader = path.filter(|_| damaged == Damaged::Refuse);
        let reader = reader.and_then(|path| servers::reader(path, options, file.as_ref()));
        let (inner, passed) = format::open(opened, &opening).map_err(|error| error.at(name))?;
        let inner = match reader {
            Some(reader) => reader.of_open(inner),
            None => inner,
        };
        let mut dataset = Dataset::new(name, inner, file);
        dataset.passed = passed;
        Ok(dataset)
    }

    pub(crate) fn named<T, E: Into<Error>>(&self, result: std::result::Result<T, E>) -> Result<T> {
        result.map_err(|error| error.into().at(&self.path))
    }

    /// Has a function change what is in the file, which other writers of the process may do in turn.
    pub(crate) fn change<T>(
        &self,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        self.named(self.queued_file.changing().and_then(|mut file| f(file.writer()?)))
    }

    /// The same in a group; formats without groups have the root only.
    pub(crate) fn change_in<T>(
        &self,
        group: GroupId,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        self.check_group(group)?;
        self.change(f)
    }

    /// Changes the mode of the file, or completes changes of it.
    pub(crate) fn steer<T>(
        &self,
        f: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        self.named(self.queued_file.steering().and_then(|mut file| f(file.writer()?)))
    }

    /// Takes the file to change what is in it, which other writers of the process may do in turn. Puts that were
    /// accepted are carried out before.
    pub(crate) fn changing(&self) -> Result<ChangeGuard<'_>> {
        self.named(self.queued_file.changing())
    }

    /// Fails for any group but the root where the format has no groups.
    #[inline]
    pub(crate) fn check_group(&self, group: GroupId) -> Result<()> {
        if group == GroupId::ROOT || self.capabilities().groups {
            return Ok(());
        }
        Err(Error::from(NcError::BadGrpId).at(&self.path))
    }

    /// Calls `f` with the file, which `f` must not change. While puts wait, `f` sees the definitions as they are with
    /// all accepted puts; it does not wait for them.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline]
    pub(crate) fn ask<R>(&self, f: impl FnOnce(&dyn Dispatch) -> Result<R>) -> Result<R> {
        self.named(self.queued_file.ask(f))
    }

    /// What files of its format can have, and how they behave.
    #[must_use]
    pub fn capabilities(&self) -> &'static Capabilities {
        self.queued_file.file().capabilities
    }

    /// Whether it is read over a network. Of such a dataset the memory of a get that fails is all fill values.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.queued_file.file().is_remote()
    }

    /// Whether it is one of OPeNDAP: there is no file whose bytes could be asked for, and nobody knows how it is stored.
    #[must_use]
    pub fn is_dap(&self) -> bool {
        // Numbers of `nc_inq_format_extended`.
        matches!(self.capabilities().formatx, 5 | 6)
    }

    /// What changes when a file on a server does, as far as the server says.
    pub(crate) fn remote_state(&self) -> Option<Arc<str>> {
        self.storage()?.remote()?.state()
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.queued_file.see(|file| Meta::new(file, GroupId::ROOT).format())
    }

    /// Whether it was opened for writing.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.queued_file.file().is_writable()
    }

    /// Whether definitions may be changed now.
    #[must_use]
    pub fn in_define_mode(&self) -> bool {
        self.queued_file.see(|file| file.in_define_mode())
    }

    /// The layer stack in spec form, such as `cache,file`; empty for a dataset without bytes.
    #[must_use]
    pub fn stack(&self) -> String {
        self.storage().map_or_else(String::new, |storage| Stack(&**storage).to_string())
    }

    /// The storage below, where its format stands on one.
    #[must_use]
    pub fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.queued_file.file().storage()
    }

    /// The storage below; an error where the format does not stand on bytes.
    pub(crate) fn bytes(&self) -> Result<&Arc<dyn Storage>> {
        let none = "the bytes of a file of this format cannot be asked for";
        self.storage().ok_or_else(|| Error::because(NcError::NotBuilt, none).at(&self.path))
    }

    /// Runs `f` on the definitions of the root group as they are now; nothing is copied. `f` must
    /// not call the dataset, which another thread may wait to change.
    ///
    /// A netCDF-4 file reads its definitions when they are first asked for. If that fails, there is
    /// nothing to count, and every inquiry about one thing says why.
    pub fn meta<R>(&self, f: impl FnOnce(&Meta<'_>) -> R) -> R {
        self.queued_file.ask_even_closed(|file| f(&Meta::new(file, GroupId::ROOT)))
    }

    /// How many dimensions a variable has; `None` for one that does not exist. Of a file of several ranks nobody is asked for it.
    #[must_use]
    pub fn rank_of(&self, var: zonda_format::VarRef) -> Option<usize> {
        self.queued_file.see(|file| file.definitions().var(var).ok().map(|var| var.dims.len()))
    }

    /// [`Dataset::meta`] of any group, once the definitions are known to be readable.
    ///
    /// # Errors
    /// `NC_EBADGRPID`; what reading the definitions meets.
    #[inline]
    pub fn in_group<R>(&self, group: GroupId, f: impl FnOnce(&Meta<'_>) -> R) -> Result<R> {
        self.ask(|file| Ok(f(&Meta::of(file, group)?)))
    }

    /// A count that goes up with each call that may change what inquiries answer, before it does: what was answered holds as
    /// long as the count stays, but for lengths of unlimited dimensions. `None` where that is not known.
    #[must_use]
    pub fn changes(&self) -> Option<&Arc<AtomicU64>> {
        self.queued_file.changes()
    }

    /// Whether there is a group of that number.
    #[must_use]
    pub fn has_group(&self, group: GroupId) -> bool {
        self.queued_file.see(|file| file.definitions().group(group).is_ok())
    }

    /// Enters define mode.
    ///
    /// # Errors
    /// `NC_EPERM` for a dataset opened for reading, `NC_EINDEFINE`.
    pub fn redef(&self) -> Result<()> {
        self.named(self.queued_file.redef())
    }

    /// Leaves define mode and commits.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE`; `NC_EVARSIZE`, after which define mode goes on; what the storage reports.
    pub fn enddef(&self, reserve: Reserve) -> Result<()> {
        self.steer(|file| {
            file.enddef(reserve)?;
            self.queued_file.file().is_done();
            Ok(())
        })
    }

    /// For a writer: commits all puts and definitions. For a reader: sees what others committed.
    ///
    /// # Errors
    /// `NC_EINDEFINE`, and what the storage reports.
    pub fn sync(&self) -> Result<()> {
        self.named(self.queued_file.sync())
    }

    /// Ends the dataset without its pending definitions, and removes a file that was being created.
    ///
    /// # Errors
    /// `NC_EBADID` when it has ended already; what the operating system reports.
    pub fn abort(&self) -> Result<()> {
        if self.is_unpersisted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let end = || self.finish_after(self.queued_file.file().abort(|| self.check_close()));
        let done = self.queued_file.abort(end);
        self.leave_to_parent();
        done
    }

    /// Ends the dataset: leaves define mode, commits, writes a persistent dataset in memory to its
    /// path.
    ///
    /// Where the storage failed, it stays open ([`Dataset::is_open`]) and may be closed again, unless it was being
    /// created as a classic one, or a sync of it failed, now or before: it has ended then, and the error says so. It
    /// has ended, too, where the system reports only when the file is closed that it could not store it. A netCDF-4
    /// file stays open after every refusal; a classic one has ended after other errors.
    ///
    /// # Errors
    /// `NC_EBADID` when it has ended already; as [`Dataset::enddef`]; what the storage reports.
    pub fn close(&self) -> Result<()> {
        if self.is_unpersisted.swap(false, Ordering::AcqRel) {
            return self.persist_in_the_end();
        }
        let end = || self.finish_after(self.queued_file.file().close(|| self.check_close()));
        let done = self.queued_file.close(end);
        self.leave_to_parent();
        done
    }

    /// In a forked child: frees the memory of a file that has ended. Dropping it is not enough, since threads that
    /// exist only in the parent hold references to parts of it for ever.
    fn leave_to_parent(&self) {
        if !self.is_forked() || self.is_out_of_reach() || self.is_open() {
            return;
        }
        self.queued_file.leave_to_parent();
        if let Some(storage) = self.storage() {
            storage.rest();
        }
    }

    fn finish_after(
        &self,
        ended: std::result::Result<Ending, (Error, Option<Ending>)>,
    ) -> Result<()> {
        match ended {
            Ok(ending) => self.finish(ending),
            Err((error, ending)) => {
                if ending == Some(Ending::Remove) {
                    // The definitions were refused; the file never was one.
                    let _ = self.finish(Ending::Remove);
                }
                Err(error.at(&self.path))
            }
        }
    }

    /// Whether the dataset can still be used: it has not been closed or given up.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.queued_file.file().is_open() || self.is_unpersisted.load(Ordering::Acquire)
    }

    fn finish(&self, ending: Ending) -> Result<()> {
        match ending {
            _ if self.is_forked() => Ok(()),
            Ending::Keep if self.persists => self.persist_in_the_end(),
            Ending::Remove if self.on_disk => match &self.file {
                Some(file) => self.named(file.remove()),
                None => self.named(open::remove_made(&self.path)),
            },
            Ending::Keep | Ending::Remove => Ok(()),
        }
    }

    /// Writes a dataset in memory to its path at a close. Where that fails, it can be closed again.
    fn persist_in_the_end(&self) -> Result<()> {
        let done = self.persist(true);
        if done.is_err() {
            self.is_unpersisted.store(true, Ordering::Release);
        }
        done
    }

    fn persist(&self, closes: bool) -> Result<()> {
        let mut is_done = self.persisting.lock();
        if *is_done {
            return Ok(());
        }
        if let Some(storage) = self.storage() {
            self.named(open::persist(&**storage, &self.path))?;
        }
        *is_done = closes;
        Ok(())
    }

    /// Asks for the errors that the system reports only when a file is closed, such as those of a quota on a network
    /// file system. It reports them once, so this is done after everything was written and before a descriptor is
    /// closed.
    fn check_close(&self) -> Result<()> {
        if self.is_forked() {
            return Ok(());
        }
        self.file.as_ref().map_or(Ok(()), |file| self.named(file.check_close()))
    }

    /// Takes every lock of this dataset, for a fork.
    ///
    /// It waits for calls of other threads, and not beyond `until`: the thread may itself be in the middle of one.
    /// Locks that it could not take until then are not held ([`FrozenFile::is_whole`]).
    #[must_use]
    pub fn freeze(&self, until: Instant) -> FrozenFile<'_> {
        let is_within_reach = !self.is_out_of_reach();
        FrozenFile { held: is_within_reach.then(|| self.queued_file.freeze(until)).flatten() }
    }

    /// Whether no other call uses the dataset at this moment.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.freeze(Instant::now()).is_whole() && !self.queued_file.is_busy()
    }

    /// Whether [`Dataset::mark_out_of_reach`] was called.
    #[inline]
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        self.out_of_reach.load(Ordering::Relaxed)
    }

    /// To be called in a forked child that has not all of its locks ([`FrozenFile::is_whole`]): a thread that the
    /// child does not have held them. Any further call would wait for ever, and so would dropping it; do neither.
    pub fn mark_out_of_reach(&self) {
        self.mark_forked();
        self.out_of_reach.store(true, Ordering::Relaxed);
    }

    /// Whether [`Dataset::mark_forked`] was called.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.forked.load(Ordering::Relaxed)
    }

    /// To be called in a forked child: what is not yet written belongs to the parent from now on, so
    /// puts and definitions answer `ECHILD` and close writes nothing. Reading goes on.
    pub fn mark_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
        self.queued_file.mark_forked();
    }

    /// Commits what was put, for a process that ends without closing. In define mode the dataset
    /// keeps its last committed state.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn drain(&self) -> Result<()> {
        self.drain_reporting(&|_| ())
    }

    /// [`Dataset::drain`] that calls `waits` with true while it waits for a call of another thread.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn drain_reporting(&self, waits: &dyn Fn(bool)) -> Result<()> {
        if self.is_forked() {
            // All that was put belongs to the parent.
            return Ok(());
        }
        let failure_of_puts = self.named(self.queued_file.drain(waits))?;
        if self.persists && !self.is_forked() && !self.in_define_mode() {
            self.persist(false)?;
        }
        self.check_close()?;
        failure_of_puts
    }
}
