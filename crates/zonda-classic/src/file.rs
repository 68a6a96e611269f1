//! A classic file that is open: its state, its modes and its commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zonda_format::{Ending, FillMode, Reserve};
use zonda_runtime::lock::Rank;
use zonda_storage::{Sidecars, Storage, StorageError, check_place};

use crate::codec::{DecodeLimits, NUMRECS_AT, decode_header, decode_read};
use crate::commit::Unfinished;
use crate::error::ClassicError;
use crate::fill;
use crate::header::{Header, Version};
use crate::layout;
use crate::lock::TracedMutex;
use crate::recover::{self, Pending};
use crate::spare;

/// An open classic file. It has no lock of its own: callers with `&` may read and put at the same time (one at a time adds
/// records); a caller with `&mut` has exclusive access.
#[derive(Debug)]
pub struct ClassicFile {
    pub(crate) base: Base,
    pub(crate) state: FileState,
}

impl Drop for ClassicFile {
    fn drop(&mut self) {
        spare::give_vars(std::mem::take(&mut self.state.header.vars));
    }
}

/// What a file stands on, and the number of its records, which puts by `&` change.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) storage: Arc<dyn Storage>,
    /// What stands beside the file, for commits of more than one write.
    pub(crate) sidecars: Option<Arc<dyn Sidecars>>,
    pub(crate) writable: bool,
    /// `NC_SHARE`: the record count is written and re-read at once, for readers in other processes.
    pub(crate) share: bool,
    /// Records there are, published after the growing put has filled them.
    pub(crate) n_records: AtomicU64,
    /// Whether the record count in the file is behind `n_records`.
    pub(crate) n_records_dirty: AtomicBool,
    /// Records that the count in the file includes.
    pub(crate) n_committed: AtomicU64,
    /// Held while records are added.
    pub(crate) growth: TracedMutex<()>,
    /// Records that there will be once all accepted puts are carried out; 0 where none are queued.
    pub(crate) n_accepted: Arc<AtomicU64>,
}

#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) header: Header,
    pub(crate) mode: FileMode,
    pub(crate) fill: FillMode,
    /// Whether `header` has changes that the file does not have yet.
    pub(crate) header_dirty: bool,
    /// Bytes of the header in the file, so that a shorter one leaves no old bytes behind it.
    pub(crate) stored_len: u64,
    /// The change that an error interrupted.
    pub(crate) unfinished: Option<Unfinished>,
}

#[derive(Debug)]
pub(crate) enum FileMode {
    Data,
    /// Define mode; `None` while the file is being created.
    Define {
        old: Option<Box<Redefined>>,
    },
    Closed,
}

/// What a redefinition began with.
#[derive(Debug)]
pub(crate) struct Redefined {
    /// The header in the file, its variables where their data is.
    header: Header,
    /// Whether the old definitions are no longer intact in the file.
    overwritten: bool,
}

impl FileState {
    pub(crate) fn require_data(&self) -> Result<&Header, ClassicError> {
        match self.mode {
            FileMode::Data => Ok(&self.header),
            FileMode::Define { .. } => Err(ClassicError::InDefineMode),
            FileMode::Closed => Err(ClassicError::Closed),
        }
    }

    pub(crate) fn require_define(&mut self) -> Result<&mut Header, ClassicError> {
        match self.mode {
            FileMode::Data => Err(ClassicError::NotInDefineMode),
            FileMode::Define { .. } => Ok(&mut self.header),
            FileMode::Closed => Err(ClassicError::Closed),
        }
    }

    pub(crate) fn in_define(&self) -> bool {
        matches!(self.mode, FileMode::Define { .. })
    }

    pub(crate) fn require_open(&self) -> Result<&Header, ClassicError> {
        if matches!(self.mode, FileMode::Closed) {
            Err(ClassicError::Closed)
        } else {
            Ok(&self.header)
        }
    }
}

impl ClassicFile {
    /// Starts a new file on an empty storage, in define mode.
    #[must_use]
    pub fn create(
        storage: Arc<dyn Storage>,
        sidecars: Option<Arc<dyn Sidecars>>,
        version: Version,
        share: bool,
    ) -> ClassicFile {
        let state = FileState {
            header: Header::new(version),
            mode: FileMode::Define { old: None },
            fill: FillMode::Fill,
            header_dirty: true,
            stored_len: 0,
            unfinished: None,
        };
        ClassicFile::with_state(storage, sidecars, true, share, state, 0)
    }

    /// Opens the file that a storage holds, in data mode. What a dead writer began is completed
    /// first, where the file is opened for writing; a reader sees it completed.
    ///
    /// # Errors
    /// As [`decode_header`]; [`ClassicError::HalfMoved`] for a reader; what the storage reports.
    pub fn open(
        storage: Arc<dyn Storage>,
        sidecars: Option<Arc<dyn Sidecars>>,
        writable: bool,
        share: bool,
    ) -> Result<ClassicFile, ClassicError> {
        let mut pending = Pending::Nothing;
        if let Some(sidecars) = &sidecars {
            // After a recovery there is nothing left to look for, unless the writer is alive.
            if !writable || recover::for_writing(&*storage, sidecars)? {
                pending = recover::pending(&*storage, &**sidecars)?;
            }
        }
        let limits = DecodeLimits::default();
        let (header, n_records) = match pending {
            Pending::Nothing => read_header(&*storage, limits)?,
            Pending::Header(bytes) => decode_header(&bytes)?,
        };
        let known = resolve_streaming(&*storage, &header, n_records)?;
        let state = FileState {
            stored_len: header.layout.header_len,
            header,
            mode: FileMode::Data,
            fill: FillMode::Fill,
            header_dirty: false,
            unfinished: None,
        };
        let file = ClassicFile::with_state(storage, sidecars, writable, share, state, known);
        // A count that was computed from the file's length is written before the length changes.
        file.base.n_records_dirty.store(known != n_records, Ordering::Relaxed);
        file.base.advise(&file.state.header);
        Ok(file)
    }

    /// A damaged file, opened for reading, with the definitions that could be read.
    pub(crate) fn of_left(
        storage: Arc<dyn Storage>,
        header: Header,
        n_records: u64,
    ) -> ClassicFile {
        let state = FileState {
            stored_len: header.layout.header_len,
            header,
            mode: FileMode::Data,
            fill: FillMode::Fill,
            header_dirty: false,
            unfinished: None,
        };
        ClassicFile::with_state(storage, None, false, false, state, n_records)
    }

    fn with_state(
        storage: Arc<dyn Storage>,
        sidecars: Option<Arc<dyn Sidecars>>,
        writable: bool,
        share: bool,
        state: FileState,
        n_records: u64,
    ) -> ClassicFile {
        let base = Base {
            storage,
            sidecars,
            writable,
            share,
            n_records: AtomicU64::new(n_records),
            n_records_dirty: AtomicBool::new(false),
            n_committed: AtomicU64::new(n_records),
            growth: TracedMutex::new(Rank::Growth, ()),
            n_accepted: Arc::default(),
        };
        ClassicFile { base, state }
    }

    /// The storage below.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.base.storage
    }

    /// Whether the file was opened for writing.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.base.writable
    }

    /// Whether definitions may be changed now.
    #[must_use]
    pub fn in_define_mode(&self) -> bool {
        self.state.in_define()
    }

    /// Whether names or attributes were changed in data mode that no commit has yet.
    #[must_use]
    pub fn has_uncommitted_header(&self) -> bool {
        self.state.header_dirty
    }

    /// The definitions.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.state.header
    }

    /// Records that there are.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        self.base.n_records.load(Ordering::Acquire)
    }

    /// Enters define mode.
    ///
    /// With `NC_SHARE` the definitions are read again first, since another process may have changed
    /// them.
    ///
    /// # Errors
    /// [`ClassicError::ReadOnly`], [`ClassicError::InDefineMode`], and what the storage reports.
    pub fn redef(&mut self) -> Result<(), ClassicError> {
        let ClassicFile { base, state } = self;
        base.require_writable()?;
        state.require_data()?;
        // What was put so far is committed under the definitions it was put with, so that an
        // abort of the redefinition loses nothing.
        base.commit(state)?;
        if base.share {
            base.reload(state)?;
        }
        let header = state.header.clone();
        let redefined = Redefined { header, overwritten: false };
        state.mode = FileMode::Define { old: Some(Box::new(redefined)) };
        Ok(())
    }

    /// Leaves define mode: gives variables their places, moves data where the header has outgrown
    /// its room, fills new variables and writes the header.
    ///
    /// # Errors
    /// [`ClassicError::NotInDefineMode`]; [`ClassicError::VarTooLarge`]; what the storage reports.
    /// The file is then still in define mode, and a repeated enddef goes on where this one stopped.
    pub fn enddef(&mut self, reserve: Reserve) -> Result<(), ClassicError> {
        let ClassicFile { base, state } = self;
        state.require_define()?;
        base.require_writable()?;
        base.end_define(state, reserve)
    }

    /// Sets whether new space is filled, for the file and every variable that it has.
    ///
    /// # Errors
    /// [`ClassicError::ReadOnly`].
    pub fn set_fill(&mut self, fill: FillMode) -> Result<FillMode, ClassicError> {
        let ClassicFile { base, state } = self;
        base.require_writable()?;
        state.require_open()?;
        for var in &mut state.header.vars {
            var.no_fill = fill == FillMode::NoFill;
        }
        Ok(std::mem::replace(&mut state.fill, fill))
    }

    /// For a writer: commits all puts and definitions. For a reader: sees what others committed.
    ///
    /// # Errors
    /// [`ClassicError::InDefineMode`], and what the storage reports.
    pub fn sync(&mut self) -> Result<(), ClassicError> {
        let ClassicFile { base, state } = self;
        state.require_data()?;
        if base.writable {
            base.require_writable()?;
            base.commit(state)
        } else {
            base.reload(state)
        }
    }

    /// Ends the file without its pending definitions. In data mode this is a close.
    ///
    /// Where an enddef failed after it had begun to move data or to write the header, there is no
    /// way back: its work is completed instead.
    ///
    /// # Errors
    /// [`ClassicError::Closed`], and what the storage reports. The file is closed all the same.
    pub fn abort(&mut self) -> Result<Ending, ClassicError> {
        let ClassicFile { base, state } = self;
        let mode = std::mem::replace(&mut state.mode, FileMode::Closed);
        match mode {
            FileMode::Closed => Err(ClassicError::Closed),
            FileMode::Define { old: None } => Ok(Ending::Remove),
            FileMode::Define { old: Some(old) }
                if (old.overwritten || state.unfinished.is_some())
                    && base.require_writable().is_ok() =>
            {
                state.mode = FileMode::Define { old: Some(old) };
                let result = base.end_define(state, Reserve::Default);
                state.mode = FileMode::Closed;
                result.map(|()| Ending::Keep)
            }
            // redef committed everything that was put before it.
            FileMode::Define { old: Some(_) } => Ok(Ending::Keep),
            FileMode::Data => {
                if base.require_writable().is_ok() {
                    base.commit(state)?;
                }
                Ok(Ending::Keep)
            }
        }
    }

    /// Ends the file: leaves define mode, commits, and gives the file its full length.
    ///
    /// Where the storage failed the file stays open, so that the caller may make room and close it again; unless it was being
    /// created, or a sync of it was lost, which nothing can mend. After any other error it is closed all the same; if its
    /// definitions were refused, as by [`ClassicFile::abort`].
    ///
    /// # Errors
    /// As [`ClassicFile::enddef`] and [`ClassicFile::sync`], and how the file ended, if it did.
    pub fn close(&mut self) -> Result<Ending, (ClassicError, Option<Ending>)> {
        let ClassicFile { base, state } = self;
        let Err(error) = base.finish(state) else {
            state.mode = FileMode::Closed;
            return Ok(Ending::Keep);
        };
        let ending = match (&error, &state.mode) {
            (_, FileMode::Define { old: None }) => Some(Ending::Remove),
            (ClassicError::Storage(error), _) if !base.has_lost_sync(error) => None,
            _ => Some(Ending::Keep),
        };
        if ending.is_some() {
            state.mode = FileMode::Closed;
        }
        Err((error, ending))
    }

    /// Whether it is not closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state.require_open().is_ok()
    }

    /// Commits what was put when a process ends without closing. Files in define mode keep their
    /// last committed state.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn drain(&mut self) -> Result<(), ClassicError> {
        let ClassicFile { base, state } = self;
        if matches!(state.mode, FileMode::Data) && base.require_writable().is_ok() {
            base.finish(state)?;
        }
        Ok(())
    }
}

impl Base {
    #[inline]
    pub(crate) fn require_writable(&self) -> Result<(), ClassicError> {
        if self.writable { Ok(()) } else { Err(ClassicError::ReadOnly) }
    }

    fn end_define(&self, state: &mut FileState, reserve: Reserve) -> Result<(), ClassicError> {
        // A change that an interrupted enddef began is completed first.
        let reached = self.complete(state)?;
        let FileMode::Define { old } = &mut state.mode else {
            return Err(ClassicError::NotInDefineMode);
        };
        let mut old = old.take();
        if let (Some(old), Some(header)) = (&mut old, reached) {
            **old = Redefined { header, overwritten: true };
        }
        let result = self.give_places(state, old.as_deref_mut(), reserve);
        state.mode = if result.is_ok() { FileMode::Data } else { FileMode::Define { old } };
        result
    }

    /// Tells the storage what the file is like.
    fn advise(&self, header: &Header) {
        self.storage.advise(header.advice(self.n_records.load(Ordering::Acquire)));
    }

    /// The work of enddef.
    fn give_places(
        &self,
        state: &mut FileState,
        old: Option<&mut Redefined>,
        reserve: Reserve,
    ) -> Result<(), ClassicError> {
        let storage = &*self.storage;
        let n_records = self.n_records.load(Ordering::Acquire);
        let before = old.as_ref().map(|old| &old.header);
        layout::assign(&mut state.header, before, reserve)?;
        self.advise(&state.header);
        match old {
            None => fill::new_fixed_vars(storage, &state.header, 0)?,
            Some(old) => {
                if self.relocate(state, &old.header, n_records)? {
                    return Ok(());
                }
                let first = old.header.vars.len();
                fill::new_fixed_vars(storage, &state.header, first)?;
                fill::new_record_vars(storage, &state.header, first, n_records)?;
                old.overwritten = true;
            }
        }
        state.header_dirty = true;
        self.commit(state)
    }

    /// Whether no sync of this file can succeed any more, `error` being what one met. The sync of a
    /// journal or of a copy can be lost too: the next one is another file.
    fn has_lost_sync(&self, error: &StorageError) -> bool {
        error.is_lost_sync() && self.storage.sync().is_err_and(|error| error.is_lost_sync())
    }

    fn finish(&self, state: &mut FileState) -> Result<(), ClassicError> {
        state.require_open()?;
        if self.require_writable().is_err() {
            return Ok(());
        }
        if state.in_define() {
            self.end_define(state, Reserve::Default)?;
        } else {
            self.commit(state)?;
        }
        let full = state.header.file_len(self.n_records.load(Ordering::Acquire));
        // A file system that holds no file of this length: nothing was put behind the end, and a reader finds zeros there.
        let can_be = check_place(0, full, || self.storage.most_len()).is_ok();
        if can_be && self.storage.len()? < full {
            self.storage.set_len(full)?;
            self.storage.sync()?;
        }
        Ok(())
    }

    /// Reads the record count again, for `NC_SHARE`.
    pub(crate) fn refresh_n_records(&self, header: &Header) -> Result<u64, ClassicError> {
        self.storage.invalidate()?;
        let mut bytes = [0u8; 8];
        let n = if header.version == Version::Cdf5 {
            self.storage.read_at(NUMRECS_AT, &mut bytes)?;
            u64::from_be_bytes(bytes)
        } else {
            let mut bytes = [0u8; 4];
            self.storage.read_at(NUMRECS_AT, &mut bytes)?;
            u64::from(u32::from_be_bytes(bytes))
        };
        let n = resolve_streaming(&*self.storage, header, n)?;
        self.n_records.store(n, Ordering::Release);
        Ok(n)
    }

    fn reload(&self, state: &mut FileState) -> Result<(), ClassicError> {
        self.storage.invalidate()?;
        let (mut header, n_records) = read_header(&*self.storage, DecodeLimits::default())?;
        // Records that the header counts are in the file by now, and perhaps were not when its length was asked for.
        self.storage.invalidate()?;
        let n_records = resolve_streaming(&*self.storage, &header, n_records)?;
        for (new, old) in header.vars.iter_mut().zip(&state.header.vars) {
            new.no_fill = old.no_fill;
        }
        state.stored_len = header.layout.header_len;
        state.header = header;
        self.n_records.store(n_records, Ordering::Release);
        Ok(())
    }
}

/// First read of a header: enough for most files in one go.
const FIRST_READ: u64 = 8 << 10;

/// The same where a read costs a message there and back: so much the first one has brought anyway.
const FIRST_REMOTE_READ: u64 = 256 << 10;

/// Reads the header of a file, and its record count as it stands there, in steps that grow until
/// it is complete or the file ends.
pub(crate) fn read_header(
    storage: &dyn Storage,
    limits: DecodeLimits,
) -> Result<(Header, u64), ClassicError> {
    let file_len = storage.len()?;
    let mut want = if storage.remote().is_some() { FIRST_REMOTE_READ } else { FIRST_READ };
    let mut bytes = spare::bytes();
    loop {
        let whole_file = want >= file_len;
        let len = usize::try_from(want.min(file_len)).unwrap_or(usize::MAX);
        zonda_model::memory::lengthen(&mut bytes, len, 0)?;
        let got = storage.read_at(0, bytes.get_mut(..len).unwrap_or_default())?;
        match decode_read(&mut bytes, got) {
            Ok(found) => return Ok(found),
            Err((
                ClassicError::Truncated { .. } | ClassicError::CountTooLarge { .. },
                expected,
            )) if !whole_file => {
                if want >= limits.header_bytes {
                    return Err(ClassicError::HeaderTooLong { limit: limits.header_bytes });
                }
                let (least, most) = (want.saturating_mul(4), want.saturating_mul(64));
                want = expected.clamp(least, most).min(limits.header_bytes);
            }
            Err((error, _)) => return Err(error),
        }
    }
}

/// A record count of all ones means that the writer did not know it: it follows from the length.
fn resolve_streaming(
    storage: &dyn Storage,
    header: &Header,
    n_records: u64,
) -> Result<u64, ClassicError> {
    let streaming = if header.version == Version::Cdf5 { u64::MAX } else { u64::from(u32::MAX) };
    if n_records != streaming {
        return Ok(n_records);
    }
    let bytes = storage.len()?.saturating_sub(header.layout.begin_rec);
    Ok(bytes.checked_div(header.layout.record_len).unwrap_or(0))
}
