//! Puts and gets of variables, by way of the queue or of the file itself.

use zonda_convert::Converted;
use zonda_format::{Access, DefineMode, Destination, GroupId, Meta, Transfer, Values, VarRef};
use zonda_model::{Answer, Hyperslab, MemType, NcError};

use super::accept::AcceptablePut;
use super::queued_file::QueuedFile;
use super::{OrdinaryPut, WriteQueue};
use crate::error::{Error, Result};
use crate::failed_get;
use crate::open_file::{ExclusiveGuard, OpenFile, SharedGuard, writer};

impl QueuedFile {
    /// Begins a put.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; `ECHILD` in a forked child.
    #[inline(always)]
    pub(crate) fn put_to(&self, var: VarRef) -> Result<QueuedPut<'_>> {
        let by = match self.queue() {
            None => PutTarget::File(self.file.put_to(var.group)?),
            Some(queue) => PutTarget::Queue(queue.put_to(var)?),
        };
        Ok(QueuedPut { queued_file: self, var, by })
    }

    /// Begins a get.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline(always)]
    pub(crate) fn get_from(&self, var: VarRef) -> Result<QueuedGet<'_>> {
        let from = match self.queue() {
            // Which puts to wait for follows from the selection, which the check gets.
            Some(queue) if queue.is_busy() => GetSource::Later(queue),
            _ => GetSource::File(Some(self.file.read()?)),
        };
        Ok(QueuedGet { queued_file: self, var, from })
    }

    /// Both steps of a put of values that are as long as the selection says; that may need the rank.
    ///
    /// # Errors
    /// As for both.
    #[inline(always)]
    pub(crate) fn put_now<'s>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        bytes: &[u8],
    ) -> Result<Converted> {
        if self.queue().is_some() {
            let mut begun = self.put_to(var)?;
            let mut put = Transfer::new(Access { var, slab: slab(begun.rank()), mem });
            begun.check(&mut put)?;
            return begun.write(&put, Values::plain(bytes));
        }
        let mut file = self.file.put_to(var.group)?;
        let mut put = Transfer::new(Access { var, slab: slab(file.rank(var)), mem });
        file.put_now(&mut put, Values::plain(bytes))
    }

    /// Both steps of a get into memory that is as long as the selection says.
    ///
    /// # Errors
    /// As for both.
    #[inline(always)]
    pub(crate) fn get_now<'s>(
        &self,
        var: VarRef,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        mem: Option<MemType>,
        bytes: &mut [u8],
    ) -> Result<Converted> {
        if self.queue().is_none() && self.file.capabilities.define_mode == DefineMode::Needed {
            let file = self.file.read()?;
            let mut get = Transfer::new(Access { var, slab: slab(file.rank(var)), mem });
            let room = Destination::plain(bytes);
            return self.file.get(&**file, &mut get, room, |get, room| file.get_now(get, room));
        }
        let mut begun = self.get_from(var)?;
        let mut get = Transfer::new(Access { var, slab: slab(begun.rank()), mem });
        begun.read_now(&mut get, bytes)
    }

    /// Rank of a variable, 0 where there is none.
    fn rank(&self, VarRef { group, var }: VarRef) -> usize {
        let rank = self.ask(|file| Ok(Meta::of(file, group)?.var(var)?.dims.len()));
        rank.unwrap_or(0)
    }
}

/// A put that was begun. The second step moves what the first one has checked.
pub(crate) struct QueuedPut<'a> {
    queued_file: &'a QueuedFile,
    pub(crate) var: VarRef,
    by: PutTarget<'a>,
}

/// Where the values go.
enum PutTarget<'a> {
    File(PutFile<'a>),
    /// To the file, after accepted puts.
    AfterQueue(&'a WriteQueue, PutFile<'a>),
    Queue(AcceptablePut<'a>),
    /// Nowhere: the put is done, or failed.
    Over,
}

impl QueuedPut<'_> {
    /// Rank of the variable; 0 where there is no such variable, which the check reports.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        match &self.by {
            PutTarget::File(file) | PutTarget::AfterQueue(_, file) => file.rank(self.var),
            PutTarget::Queue(queued) => {
                queued.rank().unwrap_or_else(|| self.queued_file.rank(self.var))
            }
            PutTarget::Over => 0,
        }
    }

    /// First step: makes all checks that may refuse it.
    ///
    /// # Errors
    /// As [`DispatchWrite::check_put`](zonda_format::DispatchWrite::check_put); `NC_EINVAL` for another variable; what went
    /// wrong with puts that were accepted before.
    #[inline(always)]
    pub(crate) fn check(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        if put.of().var != self.var {
            return Err(other_variable());
        }
        match &mut self.by {
            PutTarget::File(file) => file.check(put),
            _ => self.check_behind(put),
        }
    }

    /// Both steps, of values that are as long as the selection says.
    ///
    /// # Errors
    /// As for both.
    #[inline(always)]
    pub(crate) fn write_now(
        &mut self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        if let PutTarget::File(file) = &mut self.by
            && put.of().var == self.var
        {
            return file.put_now(put, values);
        }
        self.check(put)?;
        self.write(put, values)
    }

    #[inline(never)]
    fn check_behind(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        let file_here = &self.queued_file.file;
        let queued = match &mut self.by {
            PutTarget::File(file) | PutTarget::AfterQueue(_, file) => return file.check(put),
            PutTarget::Queue(queued) => queued,
            PutTarget::Over => return Err(is_over()),
        };
        if queued.check(put) {
            return Ok(());
        }
        let queue = queued.queue();
        queued.let_go();
        queue.finish(false)?;
        put.forget();
        let checked = file_here.put_to(self.var.group).and_then(|mut file| {
            file.check(put)?;
            Ok(file)
        });
        match checked {
            Ok(file) => {
                self.by = PutTarget::AfterQueue(queue, file);
                Ok(())
            }
            Err(error) => {
                // The mode of the file may have changed.
                queue.begin_change();
                Err(error)
            }
        }
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`DispatchWrite::put`](zonda_format::DispatchWrite::put); what went wrong with puts that were accepted before.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        match &mut self.by {
            PutTarget::File(file) => file.put(put, values),
            _ => self.write_behind(put, values),
        }
    }

    #[inline(never)]
    fn write_behind(
        &mut self,
        put: &Transfer<Access<'_>>,
        mut values: Values<'_>,
    ) -> Result<Converted> {
        let Access { var, slab, mem } = *put.of();
        let (given, is_plain) = (values.bytes, values.fetch.is_none());
        let went = |slab| is_plain.then_some(OrdinaryPut { var, slab, mem, values: given });
        match std::mem::replace(&mut self.by, PutTarget::Over) {
            PutTarget::File(mut file) => file.put(put, values),
            PutTarget::AfterQueue(queue, mut file) => {
                let done = file.put(put, values);
                drop(file);
                // Lengths may have changed, and puts of other threads may wait again.
                if !queue.begin_change() && done.is_ok() {
                    queue.grew(var, &slab);
                }
                queue.after_ordinary_put(done, went(slab))
            }
            PutTarget::Queue(mut queued) => {
                let queue = queued.queue();
                if given.len() == put.n_bytes
                    && let Some(converted) = queued.accept(put, &mut values)?
                {
                    return Ok(converted);
                }
                queued.let_go();
                queue.finish(false)?;
                let converted = self.queued_file.file.put(&mut Transfer::new(*put.of()), values)?;
                queue.after_ordinary_put(Ok(converted), went(queued.grew(put)))
            }
            PutTarget::Over => Err(is_over()),
        }
    }
}

/// A get that was begun. The second step moves what the first one has checked.
pub(crate) struct QueuedGet<'a> {
    queued_file: &'a QueuedFile,
    pub(crate) var: VarRef,
    from: GetSource<'a>,
}

/// Where values come from.
enum GetSource<'a> {
    /// The guard is `None` while the file is taken anew, and when the get is done.
    File(Option<SharedGuard<'a>>),
    /// The file, after puts that touch the selection were carried out.
    Later(&'a WriteQueue),
}

impl QueuedGet<'_> {
    /// Rank of the variable; 0 where there is no such variable, which the check reports.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        match &self.from {
            GetSource::File(file) => file.as_ref().map_or(0, |file| file.rank(self.var)),
            GetSource::Later(_) => self.queued_file.rank(self.var),
        }
    }

    /// First step: makes all checks that may refuse it.
    ///
    /// # Errors
    /// As [`Dispatch::check_get`](zonda_format::Dispatch::check_get); `NC_EINVAL` for another variable.
    #[inline(always)]
    pub(crate) fn check(&mut self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        if get.of().var != self.var {
            return Err(other_variable());
        }
        if let GetSource::File(Some(file)) = &self.from
            && self.queued_file.file.capabilities.define_mode == DefineMode::Needed
        {
            return file.check_get(get);
        }
        self.check_more(get)
    }

    /// Both steps, into memory that is as long as the selection says.
    ///
    /// # Errors
    /// As for both.
    #[inline(always)]
    pub(crate) fn read_now(
        &mut self,
        get: &mut Transfer<Access<'_>>,
        bytes: &mut [u8],
    ) -> Result<Converted> {
        if let GetSource::File(Some(file)) = &self.from
            && get.of().var == self.var
        {
            let open = &self.queued_file.file;
            if open.capabilities.define_mode == DefineMode::Needed {
                let room = Destination::plain(bytes);
                return open.get(&***file, get, room, |get, room| file.get_now(get, room));
            }
            if let Some(converted) = file.get_one(get.of(), bytes) {
                return Ok(converted);
            }
        }
        self.check(get)?;
        self.read(get, Destination::plain(bytes))
    }

    #[inline(never)]
    fn check_more(&mut self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        if let GetSource::Later(queue) = self.from {
            queue.before_get(self.var, &get.of().slab)?;
            self.from = GetSource::File(Some(self.queued_file.file.read()?));
        }
        match &mut self.from {
            GetSource::File(shared_guard) => check_again(&self.queued_file.file, shared_guard, get),
            GetSource::Later(_) => Err(is_over()),
        }
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`Dispatch::get`](zonda_format::Dispatch::get).
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        get: &Transfer<Access<'_>>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        let GetSource::File(Some(file)) = &self.from else { return Err(is_over()) };
        let open = &self.queued_file.file;
        let once = |room: Destination<'_>| {
            open.get(&***file, &mut &*get, room, |get, room| file.get(get, room))
        };
        if room.place.is_some() {
            // Strings that were placed are with the caller already, so the get cannot be tried again.
            return once(room);
        }
        match once(Destination::plain(&mut *room.bytes)) {
            Err(error) => self.read_again(error, get, room.bytes),
            got => got,
        }
    }

    #[cold]
    fn read_again(
        &mut self,
        mut error: Error,
        get: &Transfer<Access<'_>>,
        bytes: &mut [u8],
    ) -> Result<Converted> {
        self.from = GetSource::File(None);
        let file = &*self.queued_file.file;
        let (mut shared_guard, mut tries) = (None, 0);
        while file.read_again(&error, &mut tries) {
            let mut again = Transfer::new(*get.of());
            check_again(file, &mut shared_guard, &mut again)?;
            if again.n_bytes != get.n_bytes {
                let why = "another program changed the type of the variable";
                return Err(Error::answered(NcError::HdfErr, Answer::Request, why));
            }
            let Some(shared) = shared_guard.take() else { return Err(is_over()) };
            match shared.get(&again, Destination::plain(&mut *bytes)) {
                Ok(converted) => return Ok(converted),
                Err(other) => error = other,
            }
        }
        if file.is_remote()
            && let Ok(shared) = file.read()
        {
            failed_get::overwrite(&**shared, get, bytes);
        }
        Err(error)
    }
}

/// Checks a get; takes the file where it is not held. Releases it and tries again where another program may have been
/// writing what was read.
fn check_again<'a>(
    file: &'a OpenFile,
    shared_guard: &mut Option<SharedGuard<'a>>,
    get: &mut Transfer<Access<'_>>,
) -> Result<()> {
    let mut tries = 0;
    loop {
        let shared = match shared_guard {
            Some(shared) => shared,
            None => shared_guard.insert(file.read()?),
        };
        if !shared.is_get_ready(get.of())? {
            *shared_guard = None;
            writer(&mut file.write()?)?.end_definitions()?;
            // Another thread may be closing the file.
            continue;
        }
        match shared.check_get(get) {
            Ok(()) => return Ok(()),
            Err(error) => {
                *shared_guard = None;
                if !file.read_again(&error, &mut tries) {
                    return Err(error);
                }
            }
        }
    }
}

/// The error of a second step that comes twice, or without the first.
#[cold]
fn is_over() -> Error {
    Error::because(NcError::Inval, "the transfer was not checked, or has ended")
}

/// The error of a check for another variable than the transfer was begun for.
#[cold]
fn other_variable() -> Error {
    Error::because(NcError::Inval, "the transfer was begun for another variable")
}

/// The file, taken for a put that goes the ordinary way.
pub(crate) enum PutFile<'a> {
    /// Shared with other threads that put.
    Shared(SharedGuard<'a>),
    Exclusive(ExclusiveGuard<'a>),
}

impl PutFile<'_> {
    #[inline(always)]
    fn rank(&self, var: VarRef) -> usize {
        match self {
            PutFile::Shared(file) => file.rank(var),
            PutFile::Exclusive(file) => file.rank(var),
        }
    }

    #[inline(always)]
    fn check(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        match self {
            PutFile::Shared(file) => file.check_shared_put(put),
            PutFile::Exclusive(file) => writer(file)?.check_put(put),
        }
    }

    #[inline(always)]
    fn put_now(&mut self, put: &mut Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        match self {
            PutFile::Shared(file) => file.shared_put_now(put, values),
            PutFile::Exclusive(file) => writer(file)?.put_now(put, values),
        }
    }

    #[inline(always)]
    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        match self {
            PutFile::Shared(file) => file.shared_put(put, values),
            PutFile::Exclusive(file) => writer(file)?.put(put, values),
        }
    }
}

impl OpenFile {
    /// Takes the file for a put.
    #[inline(always)]
    pub(crate) fn put_to(&self, group: GroupId) -> Result<PutFile<'_>> {
        if !self.capabilities.shared_puts {
            return Ok(PutFile::Exclusive(self.write_anew()?));
        }
        if group != GroupId::ROOT && !self.capabilities.groups {
            return Err(NcError::BadGrpId.into());
        }
        self.check_not_forked()?;
        Ok(PutFile::Shared(self.read()?))
    }

    /// Puts into the file itself.
    pub(crate) fn put(
        &self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.put_to(put.of().var.group)?.put_now(put, values)
    }

    /// Stores complete chunks that wait in memory for others; those that fail stay in memory.
    pub(crate) fn store_complete(&self) -> Result<()> {
        if self.capabilities.shared_puts {
            return Ok(());
        }
        self.change(|file| file.store_complete())
    }
}
