//! A netCDF-4 file as a dataset.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use zonda_format::{Definitions, Ending, Fetch, Format, GroupId, Place, VarInfo, VarRef};
use zonda_runtime::callout::{self, Mark};
use zonda_runtime::lock::{Mutex, Polite, Rank, RwLockReadGuard, RwLockWriteGuard};

use zonda_chunk::ChunkAt;
use zonda_convert::Converted;
use zonda_model::{Answer, ExtType, Hyperslab, MemType, NcError};
use zonda_nc4::{CreateHow, Damaged, Model, Nc4File, ObjectUsage, OpenHow, Stored, Target, Usage};
use zonda_storage::{Beside, MayWrite, Storage, Writer, WriterLock};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::{CreateOptions, OpenOptions};

/// An HDF5 file as the dataset keeps it.
#[derive(Debug)]
pub(crate) struct Nc4 {
    /// Those who read share it; who changes something has it alone. A fork takes it, so that the
    /// child finds no lock inside taken.
    file: Polite<Nc4File>,
    /// What its plugins are at work for.
    mark: Mark,
    pub(crate) storage: Arc<dyn Storage>,
    open: AtomicBool,
    is_writable: bool,
    /// Set in a forked child: what was not yet written belongs to the parent.
    forked: AtomicBool,
    /// What keeps other programs from writing the file, until it is closed. Asked for by those who
    /// have the file alone.
    writer: Mutex<Option<Writer>>,
    /// Whether it is this writer's turn, among those of the process.
    has_turn: AtomicBool,
}

impl Nc4 {
    /// `path` is that of a file; names of other files in it count from its folder.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        beside: Option<Arc<dyn Beside>>,
        lock: Option<WriterLock>,
        path: Option<&Path>,
        options: &OpenOptions,
        damaged: Damaged,
    ) -> Result<Nc4> {
        let mark = Mark::next();
        let how = how(path, options.chunk_cache, options.alignment, mark);
        let spills_beside = how.path.clone().filter(|_| beside.is_some());
        let how = OpenHow { beside, spills_beside, damaged, ..how };
        // Errors get the path of the file from the dataset.
        let name = Path::new("/");
        // Before anything is read: what others of the process change later is not known.
        let writer = lock.map(WriterLock::writer);
        let mut file = match options.write {
            true => Nc4File::open_for_writing(Arc::clone(&storage), name, how)?,
            false => Nc4File::open_for_reading(Arc::clone(&storage), name, how)?,
        };
        // Without a lock somebody else may be at work behind what the file shows.
        if options.write && writer.as_ref().is_some_and(Writer::is_alone) {
            file.go_on_where_used()?;
        }
        Ok(Nc4::new(file, mark, storage, writer))
    }

    /// `path` is that of a file, if it is not one in memory.
    pub(crate) fn create(
        storage: Arc<dyn Storage>,
        path: Option<&Path>,
        lock: Option<WriterLock>,
        options: &CreateOptions,
    ) -> Result<Nc4> {
        let mark = Mark::next();
        let how = how(None, options.chunk_cache, options.alignment, mark);
        let spills_beside = path.and_then(|path| std::path::absolute(path).ok());
        let how = OpenHow { spills_beside, ..how };
        let create = CreateHow {
            classic: options.format == Format::NetCdf4Classic,
            attribute_order: !options.no_attribute_order,
            attach_scales: !options.no_scales_attached,
            properties: PROPERTIES.to_vec(),
        };
        let file = Nc4File::create(Arc::clone(&storage), Path::new("/"), how, create)?;
        Ok(Nc4::new(file, mark, storage, lock.map(WriterLock::writer)))
    }

    fn new(file: Nc4File, mark: Mark, storage: Arc<dyn Storage>, writer: Option<Writer>) -> Nc4 {
        Nc4 {
            is_writable: file.is_writable(),
            file: Polite::ranked(Rank::File, file),
            mark,
            storage,
            open: AtomicBool::new(true),
            forked: AtomicBool::new(false),
            has_turn: AtomicBool::new(writer.is_none()),
            writer: Mutex::ranked(Rank::Writer, writer),
        }
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Nc4File> {
        self.file
            .write_by(|file| zonda_trace::lock(|| file.try_write(), || file.write_for(self.mark)))
    }

    /// For a reader: sees what others committed.
    pub(crate) fn refresh(&self) -> Result<()> {
        let mut file = self.alone();
        if !self.is_open() {
            return Err(NcError::BadId.into());
        }
        file.refresh()?;
        Ok(())
    }

    /// Whether to try again what failed: what another program may have been writing was read again.
    #[cold]
    pub(crate) fn read_again(&self, error: &Error, tries: &mut u32) -> bool {
        let damaged = [NcError::HdfErr, NcError::Filter, NcError::AttMeta, NcError::DimMeta];
        if !damaged.contains(&error.code()) {
            return false;
        }
        self.alone().read_again(tries)
    }

    /// Begins to change the file, where another writer of the process is not about to; what that one
    /// changed before is read first.
    #[inline]
    pub(crate) fn begin(&self, file: &mut Nc4File) -> Result<()> {
        if self.has_turn.load(Ordering::Relaxed) { Ok(()) } else { self.ask(file) }
    }

    #[cold]
    fn ask(&self, file: &mut Nc4File) -> Result<()> {
        let mut writer = self.writer.lock();
        let Some(writer) = &mut *writer else { return Ok(()) };
        let why = "this program changes the file by another id, which has to be synced or closed";
        for _ in 0..2 {
            match writer.begin() {
                MayWrite::Now => {
                    self.has_turn.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                MayWrite::AfterReading => {
                    file.reread()?;
                    writer.has_read();
                }
                MayWrite::NotYet => break,
            }
        }
        Err(Error::answered(NcError::HdfErr, Answer::Request, why))
    }

    /// For a writer that has changed nothing: sees what another writer of the process changed.
    /// Whether anything was.
    pub(crate) fn catch_up(&self, file: &mut Nc4File) -> Result<bool> {
        let mut writer = self.writer.lock();
        if let Some(writer) = writer.as_mut().filter(|writer| writer.is_behind()) {
            file.reread()?;
            writer.has_read();
            return Ok(true);
        }
        Ok(false)
    }

    /// All changes are in the file.
    pub(crate) fn is_done(&self) {
        let mut writer = self.writer.lock();
        if let Some(writer) = &mut *writer {
            writer.is_done();
            self.has_turn.store(false, Ordering::Relaxed);
        }
    }

    /// Commits what there is before the file is closed or the process ends.
    ///
    /// What is used of the file is known to one who has it alone: another id of the process may have
    /// written behind that, and the file then keeps the end it has. Who wants no locks says that
    /// nobody else writes.
    pub(crate) fn drain(&self, file: &mut Nc4File) -> Result<()> {
        file.keep_end(!self.knows_end());
        Ok(file.drain()?)
    }

    fn knows_end(&self) -> bool {
        let writer = self.writer.lock();
        writer.as_ref().is_none_or(Writer::is_alone)
    }

    /// The locks of the file, for a process that carries on with it when this one is killed.
    pub(crate) fn lock_for_another_process(&self) -> Option<OwnedFd> {
        let writer = self.writer.lock();
        writer.as_ref()?.for_another_process().ok()
    }

    /// Others may write the file now.
    fn unlock(&self) {
        self.writer.lock().take();
        self.has_turn.store(true, Ordering::Relaxed);
    }

    /// Changes what is in the file, which other writers of the process may do by turns.
    pub(crate) fn change<T>(&self, f: impl FnOnce(&mut Nc4File) -> Result<T>) -> Result<T> {
        let mut file = self.write()?;
        self.begin(&mut file)?;
        f(&mut file)
    }

    /// The file, for those who change nothing, while it is open: what is put and not yet in the file is
    /// to be found no more when another thread has closed it. A thread must not ask again while it has
    /// it: one who waits to change it would come in between.
    #[inline]
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, Nc4File>> {
        let file = self.even_closed();
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// The same, and also when it was closed, for those who ask only about definitions: they stay.
    #[inline(never)]
    pub(crate) fn even_closed(&self) -> RwLockReadGuard<'_, Nc4File> {
        self.file.read_by(|file| zonda_trace::lock(|| file.try_read(), || file.read_for(self.mark)))
    }

    /// The file, for one who changes it.
    pub(crate) fn write(&self) -> Result<RwLockWriteGuard<'_, Nc4File>> {
        if self.forked.load(Ordering::Relaxed) {
            let why = "the file belongs to the process that forked this one";
            return Err(Error::explained(NcError::System(ECHILD), why));
        }
        let file = self.alone();
        // Another thread may have closed it since this one found it: what is put now would be nowhere.
        if self.is_open() { Ok(file) } else { Err(NcError::BadId.into()) }
    }

    /// In a child of a fork, when the file was closed there.
    pub(crate) fn leave(&self) {
        if let Some(mut file) = self.file.write_until(Instant::now()) {
            file.leave();
        }
    }

    /// Whether this thread is in a plugin that is at work for it.
    pub(crate) fn is_in_plugin(&self) -> bool {
        callout::is_for(self.mark)
    }

    /// To be called in a forked child.
    pub(crate) fn mark_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Takes the file, for a fork, and not beyond `until`. Those who come anew are held back meanwhile.
    pub(crate) fn freeze(&self, until: Instant) -> Option<RwLockWriteGuard<'_, Nc4File>> {
        self.file.write_until(until)
    }

    /// Whether it was opened for writing, and not closed.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable && self.is_open()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Ends it; of several threads one does. Refused, it stays open with all that the file lacks: room
    /// can be made, a type completed. Who can do neither gives it up by [`Nc4::abort`]. It has ended all
    /// the same where a sync was lost, which nothing can mend.
    ///
    /// `check` asks the system what it says of the file at the end, while the locks are held: their descriptor is
    /// closed with them.
    pub(crate) fn close(&self, check: impl FnOnce() -> Result<()>) -> Result<Ending> {
        self.end(check, |file| {
            let lost = match self.drain(file) {
                Ok(()) => None,
                Err(error) if error.is_of_lost_file(&*self.storage) => Some(error),
                refused => return refused.map(|()| Ending::Keep),
            };
            // Once more would be another sync, which may fail when all is done.
            file.end_writing();
            let closed = file.close();
            self.open.store(false, Ordering::Release);
            match lost {
                Some(error) => Err(error),
                None => Ok(closed.map(|()| Ending::Keep)?),
            }
        })
    }

    /// Ends it without what was not committed, also where that is refused.
    pub(crate) fn abort(&self, check: impl FnOnce() -> Result<()>) -> Result<Ending> {
        self.end(check, |file| {
            file.keep_end(!self.knows_end());
            let aborted = file.abort();
            self.open.store(false, Ordering::Release);
            Ok(if aborted? { Ending::Remove } else { Ending::Keep })
        })
    }

    /// The file for a get of data. As in the reference, which looks at what can be converted first,
    /// that ends define mode outside of the classic model.
    pub(crate) fn read_data(
        &self,
        var: VarRef,
        mem: Option<MemType>,
    ) -> Result<RwLockReadGuard<'_, Nc4File>> {
        let file = self.read()?;
        if !file.get_ends_define_mode() {
            return Ok(file);
        }
        let nc_type = Asked(&file).nc_type(var)?;
        if let Some(mem) = mem
            && (nc_type == ExtType::Char.nc_type()) != (mem == MemType::Text)
        {
            return Err(Asked(&file).mix(var));
        }
        drop(file);
        self.write()?.end_definitions()?;
        // Another thread may close the file just now.
        self.read()
    }

    fn end(
        &self,
        check: impl FnOnce() -> Result<()>,
        end: impl FnOnce(&mut Nc4File) -> Result<Ending>,
    ) -> Result<Ending> {
        if self.forked.load(Ordering::Relaxed) || !self.is_writable {
            let was_open = self.open.swap(false, Ordering::AcqRel);
            self.unlock();
            return if was_open { Ok(Ending::Keep) } else { Err(NcError::BadId.into()) };
        }
        let mut file = self.write()?;
        if !self.open.load(Ordering::Acquire) {
            return Err(NcError::BadId.into());
        }
        let ending = end(&mut file).and_then(|ending| match ending {
            Ending::Keep => check().map(|()| ending),
            Ending::Remove => Ok(ending),
        });
        if !self.open.load(Ordering::Acquire) {
            self.unlock();
        }
        ending
    }
}

/// How a file is opened or created.
fn how(
    path: Option<&Path>,
    chunk_cache: Option<(usize, usize, f32)>,
    alignment: Option<(u64, u64)>,
    mark: Mark,
) -> OpenHow {
    // The working directory may be another one when another file is asked for.
    let path = path.and_then(|path| std::path::absolute(path).ok());
    let name = path.clone().unwrap_or_default();
    let mut how = OpenHow {
        alignment,
        path,
        on_gaps: Some(Arc::new(move |gaps| crate::gaps::tell(&name, gaps))),
        find_filter: Some(Arc::new(move |spec| zonda_plugin::find(spec.id, &spec.params, mark))),
        ..OpenHow::default()
    };
    how.chunk_cache = chunk_cache.unwrap_or(how.chunk_cache);
    how
}

/// Value of `_NCProperties`: what wrote the file, and which release of the reference it is like.
const PROPERTIES: &[u8] =
    concat!("version=2,zonda=", env!("CARGO_PKG_VERSION"), ",netcdf=4.9.0").as_bytes();

/// `ECHILD` of Linux on every architecture.
const ECHILD: i32 = 10;

/// What a dataset asks of a file.
pub(crate) struct Asked<'f>(pub(crate) &'f Nc4File);

impl<'f> Asked<'f> {
    /// The model, and that there is such a group.
    pub(crate) fn group(&self, group: GroupId) -> Result<&'f Model> {
        let model = self.0.model()?;
        if usize::from(group.0) < model.groups.len() {
            Ok(model)
        } else {
            Err(NcError::BadGrpId.into())
        }
    }

    fn nc_type(&self, var: VarRef) -> Result<i32> {
        Ok(Definitions::var(self.0, var)?.nc_type)
    }

    /// The error of a get of text as numbers, or of numbers as text.
    #[cold]
    fn mix(&self, var: VarRef) -> Error {
        mixed("variable", Definitions::var(self.0, var).map_or(b"", |var| var.name))
    }

    pub(crate) fn get<'a, 's>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        let VarRef { group, var: id } = var;
        match mem {
            Some(mem) => {
                match check_conversion(self.nc_type(var)?, mem) {
                    Err(NcError::Char) => return Err(self.mix(var)),
                    checked => checked?,
                }
                self.0.get(group, id, slab, Target::Atomic(mem), out)
            }
            None => NoPlace::with(|place| {
                self.0.get::<Error>(group, id, slab, Target::Natural(place), out)
            }),
        }
    }

    pub(crate) fn get_att<'a>(
        &self,
        owner: VarRef,
        name: &[u8],
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8]>,
    ) -> Result<Converted> {
        let file = self.0;
        let Some(mem) = mem else {
            return NoPlace::with(|place| {
                file.get_att::<Error>(owner, name, Target::Natural(place), out)
            });
        };
        let (_, att) = file.find_att(owner, name)?;
        if att.len == 0 {
            out(0)?;
            return Ok(Converted { out_of_range: 0 });
        }
        match check_conversion(att.nc_type, mem) {
            Err(NcError::Char) => return Err(mixed("attribute", name)),
            checked => checked?,
        }
        file.get_att(owner, name, Target::Atomic(mem), out)
    }
}

fn mixed(what: &str, name: &[u8]) -> Error {
    let name = zonda_model::shown_name(name);
    let text = format!("{what} {name}: text and numbers do not convert into each other");
    Error::told(NcError::Char, text)
}

/// Which types can be read as which.
fn check_conversion(nc_type: i32, mem: MemType) -> std::result::Result<(), NcError> {
    match (ExtType::from_nc_type(nc_type), mem) {
        (Some(ExtType::Char), MemType::Text) => Ok(()),
        (Some(ExtType::Char), _) | (_, MemType::Text) => Err(NcError::Char),
        (Some(_), _) => Ok(()),
        (None, _) => Err(NcError::BadType),
    }
}

/// Whether chunks that went through a filter of that number can be read.
#[must_use]
pub fn filter_is_available(id: u32) -> bool {
    check_filter(id).is_ok()
}

/// Fails where chunks that went through a filter of that number cannot be read.
///
/// # Errors
/// `NC_ENOFILTER`; `EPERM` where plugins that may have it are not to be trusted.
pub fn check_filter(id: u32) -> Result<()> {
    if zonda_chunk::filter::is_builtin(id) {
        return Ok(());
    }
    match zonda_plugin::find(id, &[], Mark::NONE) {
        Some(Ok(_)) => Ok(()),
        None => Err(NcError::NoFilter.into()),
        Some(Err(error)) => {
            Err(Error::answered(error.nc_error(), error.answer(), error.to_string()))
        }
    }
}

/// What a filter is called that is built in; files give it another name, or none.
#[must_use]
pub fn filter_name(id: u32) -> Option<&'static str> {
    zonda_chunk::filter::name_of(id)
}

/// Number of the built-in filter that is called so.
#[must_use]
pub fn filter_id(name: &str) -> Option<u32> {
    zonda_chunk::filter::id_of(name)
}

/// For values that own no memory.
pub(crate) struct NoPlace {
    asked: bool,
}

impl NoPlace {
    pub(crate) fn with<T>(f: impl FnOnce(&mut NoPlace) -> Result<T>) -> Result<T> {
        let mut place = NoPlace { asked: false };
        let done = f(&mut place);
        if !place.asked {
            return done;
        }
        let why = "strings and sequences go by `get_placed` and `put_placed`";
        Err(Error::explained(NcError::BadType, why))
    }
}

impl Fetch for NoPlace {
    fn text(&mut self, _: u64) -> Option<&[u8]> {
        self.asked = true;
        None
    }

    fn items(&mut self, _: u64, _: usize) -> &[u8] {
        self.asked = true;
        &[]
    }
}

impl Place for NoPlace {
    fn place(&mut self, _: &[u8], _: bool) -> Option<u64> {
        self.asked = true;
        None
    }
}

/// What only netCDF-4 files have. A classic dataset answers `NC_ENOTNC4`.
impl Dataset {
    pub(crate) fn change_nc4<T>(
        &self,
        f: impl FnOnce(&mut Nc4File) -> zonda_nc4::Result<T>,
    ) -> Result<T> {
        let nc4 = self.here(self.nc4())?;
        self.change(nc4, f)
    }

    pub(crate) fn nc4(&self) -> Result<&Nc4> {
        self.as_nc4().ok_or(NcError::NotNc4.into())
    }

    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, var: VarRef) -> Result<Arc<VarInfo>> {
        let nc4 = self.here(self.nc4())?;
        self.here(self.look(nc4, |file| file.var_info(var.group, var.var)))
    }

    /// How much of the file a variable takes up, and in how many chunks.
    ///
    /// # Errors
    /// As [`Dataset::var_info`].
    pub fn stored(&self, var: VarRef) -> Result<Stored> {
        self.here(self.nc4().and_then(|nc4| {
            let file = nc4.read()?;
            Ok(file.stored(var.group, var.var)?)
        }))
    }

    /// Tells of the chunks of a variable: coordinates counted in chunks, and where they are stored. What
    /// was put and not yet committed is committed first.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOTBUILT` for a variable without chunks.
    pub fn for_each_chunk(
        &self,
        var: VarRef,
        mut found: impl FnMut(&[u64], ChunkAt),
    ) -> Result<()> {
        if self.is_writable() && !self.is_forked() {
            self.sync()?;
        }
        let nc4 = self.here(self.nc4())?;
        let told =
            nc4.read().and_then(|file| Ok(file.for_each_chunk(var.group, var.var, &mut found)?));
        self.here(told)
    }

    /// Walks all that can be reached in an HDF5 file, as it was committed: what is used and by what,
    /// what is not, what is damaged.
    ///
    /// # Errors
    /// `NC_ENOTNC4`.
    pub fn usage(&self) -> Result<Usage> {
        self.here(self.nc4().and_then(|nc4| Ok(nc4.read()?.usage())))
    }

    /// What a variable takes, by what [`Dataset::usage`] found. `None` for one that is not there or in
    /// another file.
    #[must_use]
    pub fn var_usage(&self, usage: &Usage, var: VarRef) -> Option<ObjectUsage> {
        self.as_nc4()?.read().ok()?.var_usage(usage, var.group, var.var)
    }

    /// Paths of groups and variables of an HDF5 file by the addresses of their headers, for what
    /// [`Dataset::usage`] finds.
    #[must_use]
    pub fn object_paths(&self) -> BTreeMap<u64, String> {
        self.as_nc4().map_or_else(BTreeMap::new, |nc4| nc4.even_closed().object_paths())
    }

    /// Version of the superblock of an HDF5 file, and the bytes of a user block before it.
    #[must_use]
    pub fn superblock(&self) -> Option<(u8, u64)> {
        Some(self.as_nc4()?.even_closed().superblock())
    }

    /// Fill value of a variable of any type, in the form it has in memory, into `out`, which has
    /// the size of an element.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOMEM` where `place` has no memory.
    pub fn fill_value(&self, var: VarRef, place: &mut dyn Place, out: &mut [u8]) -> Result<()> {
        let nc4 = self.here(self.nc4())?;
        let target = Target::Natural(place);
        self.here(self.look(nc4, |file| file.fill_value(var.group, var.var, target, out)))
    }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`.
    pub fn chunk_cache(&self, var: VarRef) -> Result<(usize, usize, f32)> {
        let nc4 = self.here(self.nc4())?;
        self.here(self.look(nc4, |file| file.chunk_cache(var.group, var.var)))
    }

    /// Sets the least that the chunk cache of a variable may hold.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    pub fn set_chunk_cache(
        &self,
        var: VarRef,
        (bytes, slots, preemption): (usize, usize, f32),
    ) -> Result<()> {
        let nc4 = self.here(self.nc4())?;
        let VarRef { group, var } = var;
        let set = |file: &Nc4File| file.set_chunk_cache(group, var, bytes, slots, preemption);
        self.here(nc4.read().and_then(|file| Ok(set(&file)?)))?;
        // Inquiries ask the view while puts wait.
        self.behind().map_or(Ok(()), |behind| behind.with_view(|view| self.here(set(view))))
    }
}
