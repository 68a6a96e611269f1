//! Puts and gets of variables: by the queue, or by the file itself.

use zonda_convert::Converted;
use zonda_format::{Access, Checked, DefineMode, GroupId, Meta, Room, SharedPuts, Values, VarRef};
use zonda_model::{Answer, Hyperslab, MemType, NcError};

use super::accept::Queued;
use super::door::Door;
use super::{Behind, Went};
use crate::error::{Error, Result};
use crate::open_file::{Alone, OpenFile, Shared, writer};

impl Door {
    /// Begins a put.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before; `ECHILD` in a forked child.
    #[inline(always)]
    pub(crate) fn put_to(&self, var: VarRef) -> Result<Put<'_>> {
        let by = match self.queue() {
            None => By::File(self.file.put_to(var.group)?),
            Some(queue) => By::Queue(queue.put_to(var)?),
        };
        Ok(Put { door: self, var, by })
    }

    /// Begins a get.
    ///
    /// # Errors
    /// `NC_EBADID` where another thread has closed the file.
    #[inline(always)]
    pub(crate) fn get_from(&self, var: VarRef) -> Result<Get<'_>> {
        let from = match self.queue() {
            // What is to be waited for follows from what is read.
            Some(queue) if queue.is_busy() => From::Later(queue),
            _ => From::File(Some(self.file.read()?)),
        };
        Ok(Get { door: self, var, from })
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
            let mut put = self.put_to(var)?;
            let access = Access { var, slab: slab(put.rank()), mem };
            let checked = put.check(&access)?;
            return put.write(&access, &checked, Values::plain(bytes));
        }
        let mut file = self.file.put_to(var.group)?;
        let access = Access { var, slab: slab(file.rank(var)), mem };
        file.put_now(&access, Values::plain(bytes))
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
        if self.queue().is_some() {
            let get = self.get_from(var)?;
            let access = Access { var, slab: slab(get.rank()), mem };
            return get.in_steps(&access, bytes);
        }
        let file = self.file.read()?;
        let access = Access { var, slab: slab(file.rank(var)), mem };
        let is_simple = self.file.capabilities.define_mode == DefineMode::Needed;
        if is_simple || file.is_get_ready(&access)? {
            match file.get_now(&access, Room::plain(&mut *bytes)) {
                Ok(converted) => return Ok(converted),
                Err(error) => {
                    drop(file);
                    if !self.file.read_again(&error, &mut 0) {
                        return Err(error);
                    }
                }
            }
        } else {
            drop(file);
        }
        self.get_from(var)?.in_steps(&access, bytes)
    }

    /// Rank of a variable, 0 where there is none.
    fn rank(&self, VarRef { group, var }: VarRef) -> usize {
        let rank = self.ask(|file| Ok(Meta::of(file, group)?.var(var)?.dims.len()));
        rank.unwrap_or(0)
    }
}

/// A put that was begun.
pub(crate) struct Put<'a> {
    door: &'a Door,
    pub(crate) var: VarRef,
    by: By<'a>,
}

/// Who has the values when it is done.
enum By<'a> {
    File(InFile<'a>),
    /// The file, after puts that were accepted.
    AfterQueue(&'a Behind, InFile<'a>),
    Queue(Queued<'a>),
}

impl<'a> Put<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        match &self.by {
            By::File(file) | By::AfterQueue(_, file) => file.rank(self.var),
            By::Queue(queued) => queued.rank().unwrap_or_else(|| self.door.rank(self.var)),
        }
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`DispatchWrite::check_put`](zonda_format::DispatchWrite::check_put); what went wrong with puts that were accepted before.
    #[inline(always)]
    pub(crate) fn check(&mut self, put: &Access<'a>) -> Result<Checked> {
        match &mut self.by {
            By::File(file) => file.check(put),
            _ => self.check_behind(put),
        }
    }

    #[inline(never)]
    fn check_behind(&mut self, put: &Access<'a>) -> Result<Checked> {
        let file_here = &self.door.file;
        let queued = match &mut self.by {
            By::File(file) | By::AfterQueue(_, file) => return file.check(put),
            By::Queue(queued) => queued,
        };
        if let Some(checked) = queued.check(put) {
            return Ok(checked);
        }
        let behind = queued.behind();
        queued.let_go();
        behind.finish(false)?;
        let begin = || {
            let mut file = file_here.put_to(self.var.group)?;
            let checked = file.check(put)?;
            Ok::<_, Error>((file, checked))
        };
        match begin() {
            Ok((file, checked)) => {
                self.by = By::AfterQueue(behind, file);
                Ok(checked)
            }
            Err(error) => {
                // Modes may be other ones now.
                behind.begin_change();
                Err(error)
            }
        }
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`DispatchWrite::check_put`](zonda_format::DispatchWrite::check_put); what went wrong with puts that were accepted before.
    #[inline(always)]
    pub(crate) fn write(
        self,
        put: &Access<'a>,
        checked: &Checked,
        values: Values<'_>,
    ) -> Result<Converted> {
        if put.var != self.var {
            return Err(other_variable());
        }
        match self.by {
            By::File(mut file) => file.put(put, checked, values),
            by => write_behind(self.door, by, (put, checked), values),
        }
    }
}

#[inline(never)]
fn write_behind<'a>(
    door: &Door,
    by: By<'a>,
    (put, checked): (&Access<'a>, &Checked),
    mut values: Values<'_>,
) -> Result<Converted> {
    let Access { var, slab, mem } = *put;
    let (given, is_plain) = (values.bytes, values.fetch.is_none());
    let went = |slab| is_plain.then_some(Went { var, slab, mem, values: given });
    match by {
        By::File(mut file) => file.put(put, checked, values),
        By::AfterQueue(behind, mut file) => {
            let done = file.put(put, checked, values);
            drop(file);
            // Lengths may be other ones now; and puts of other threads may wait again.
            if !behind.begin_change() && done.is_ok() {
                behind.grew(var, &slab);
            }
            behind.went_by(done, went(slab))
        }
        By::Queue(mut queued) => {
            let behind = queued.behind();
            if given.len() == checked.n_bytes
                && let Some(converted) = queued.accept(put, checked, &mut values)?
            {
                return Ok(converted);
            }
            queued.let_go();
            behind.finish(false)?;
            let converted = door.file.put(put, values)?;
            behind.went_by(Ok(converted), went(queued.grew(put, checked)))
        }
    }
}

/// A get that was begun.
pub(crate) struct Get<'a> {
    door: &'a Door,
    pub(crate) var: VarRef,
    from: From<'a>,
}

/// Where values come from.
enum From<'a> {
    /// None while it is taken anew.
    File(Option<Shared<'a>>),
    /// The file, when puts were carried out that touch what is read.
    Later(&'a Behind),
}

impl<'a> Get<'a> {
    /// Rank of the variable; 0 where there is none, which the check says.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        match &self.from {
            From::File(file) => file.as_ref().map_or(0, |file| file.rank(self.var)),
            From::Later(_) => self.door.rank(self.var),
        }
    }

    /// First step: all that may refuse it, of the variable that it was begun for. Says how many bytes the caller's memory has to have.
    ///
    /// # Errors
    /// As [`Dispatch::check_get`](zonda_format::Dispatch::check_get).
    #[inline(always)]
    pub(crate) fn check(&mut self, get: &Access<'_>) -> Result<Checked> {
        if let From::File(Some(file)) = &self.from
            && self.door.file.capabilities.define_mode == DefineMode::Needed
        {
            return file.check_get(get);
        }
        self.check_more(get)
    }

    #[inline(never)]
    fn check_more(&mut self, get: &Access<'_>) -> Result<Checked> {
        if let From::Later(behind) = self.from {
            behind.before_get(self.var, &get.slab)?;
            self.from = From::File(Some(self.door.file.read()?));
        }
        match &mut self.from {
            From::File(held) => check_again(&self.door.file, held, get),
            From::Later(_) => Err(NOT_CHECKED.into()),
        }
    }

    #[cold]
    fn in_steps(mut self, get: &Access<'_>, bytes: &mut [u8]) -> Result<Converted> {
        let checked = self.check(get)?;
        self.read(get, &checked, Room::plain(bytes))
    }

    /// Second step: moves the values.
    ///
    /// # Errors
    /// As [`Dispatch::check_get`](zonda_format::Dispatch::check_get).
    #[inline]
    pub(crate) fn read(
        self,
        get: &Access<'_>,
        checked: &Checked,
        room: Room<'_>,
    ) -> Result<Converted> {
        if get.var != self.var {
            return Err(other_variable());
        }
        match self.from {
            From::File(held) => read_held(&self.door.file, held, (get, checked), room),
            From::Later(_) => Err(NOT_CHECKED.into()),
        }
    }
}

/// Takes the file where it is not held, and lets it go where another program may have been writing what was read.
fn check_again<'a>(
    file: &'a OpenFile,
    held: &mut Option<Shared<'a>>,
    get: &Access<'_>,
) -> Result<Checked> {
    let mut tries = 0;
    loop {
        let shared = match held {
            Some(shared) => shared,
            None => held.insert(file.read()?),
        };
        if !shared.is_get_ready(get)? {
            *held = None;
            writer(&mut file.write()?)?.end_definitions()?;
            // Another thread may close the file just now.
            continue;
        }
        match shared.check_get(get) {
            Ok(checked) => return Ok(checked),
            Err(error) => {
                *held = None;
                if !file.read_again(&error, &mut tries) {
                    return Err(error);
                }
            }
        }
    }
}

#[inline]
fn read_held<'a>(
    file: &'a OpenFile,
    held: Option<Shared<'a>>,
    (get, checked): (&Access<'_>, &Checked),
    room: Room<'_>,
) -> Result<Converted> {
    let Some(shared) = held else { return Err(NOT_CHECKED.into()) };
    if room.place.is_some() {
        // What was placed stays with the caller, so that it cannot be tried again.
        return shared.get(get, checked, room);
    }
    let got = shared.get(get, checked, Room::plain(&mut *room.bytes));
    drop(shared);
    match got {
        Err(error) => get_again(file, error, (get, checked), room.bytes),
        got => got,
    }
}

#[cold]
fn get_again(
    file: &OpenFile,
    mut error: Error,
    (get, checked): (&Access<'_>, &Checked),
    bytes: &mut [u8],
) -> Result<Converted> {
    let (mut held, mut tries) = (None, 0);
    while file.read_again(&error, &mut tries) {
        let again = check_again(file, &mut held, get)?;
        if again.n_bytes != checked.n_bytes {
            let why = "another program changed the type of the variable";
            return Err(Error::answered(NcError::HdfErr, Answer::Request, why));
        }
        let Some(shared) = held.take() else { return Err(NOT_CHECKED.into()) };
        match shared.get(get, &again, Room::plain(&mut *bytes)) {
            Ok(converted) => return Ok(converted),
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// What is handed over with the second step is not what was checked.
#[cold]
fn other_variable() -> Error {
    Error::explained(NcError::Inval, "the transfer was begun for another variable")
}

/// A get without its first step.
const NOT_CHECKED: NcError = NcError::Inval;

/// A put into the file itself, which was taken for it.
pub(crate) enum InFile<'a> {
    /// With others who put.
    Shared(Shared<'a>),
    Alone(Alone<'a>),
}

impl InFile<'_> {
    #[inline(always)]
    fn rank(&self, var: VarRef) -> usize {
        match self {
            InFile::Shared(file) => file.rank(var),
            InFile::Alone(file) => file.rank(var),
        }
    }

    #[inline(always)]
    fn check(&mut self, put: &Access<'_>) -> Result<Checked> {
        match self {
            InFile::Shared(file) => shared_puts(file)?.check_put(put),
            InFile::Alone(file) => writer(file)?.check_put(put),
        }
    }

    #[inline(always)]
    fn put_now(&mut self, put: &Access<'_>, values: Values<'_>) -> Result<Converted> {
        match self {
            InFile::Shared(file) => shared_puts(file)?.put_now(put, values),
            InFile::Alone(file) => writer(file)?.put_now(put, values),
        }
    }

    #[inline(always)]
    fn put(
        &mut self,
        put: &Access<'_>,
        checked: &Checked,
        values: Values<'_>,
    ) -> Result<Converted> {
        match self {
            InFile::Shared(file) => shared_puts(file)?.put(put, checked, values),
            InFile::Alone(file) => writer(file)?.put(put, checked, values),
        }
    }
}

#[inline]
fn shared_puts<'f>(file: &'f Shared<'_>) -> Result<&'f dyn SharedPuts> {
    file.shared_puts().ok_or_else(|| NcError::Internal.into())
}

impl OpenFile {
    /// Takes the file for a put.
    #[inline(always)]
    pub(crate) fn put_to(&self, group: GroupId) -> Result<InFile<'_>> {
        if !self.capabilities.shared_puts {
            return Ok(InFile::Alone(self.write_anew()?));
        }
        if group != GroupId::ROOT && !self.capabilities.groups {
            return Err(NcError::BadGrpId.into());
        }
        self.check_not_forked()?;
        Ok(InFile::Shared(self.read()?))
    }

    /// Puts into the file itself.
    pub(crate) fn put(&self, put: &Access<'_>, values: Values<'_>) -> Result<Converted> {
        self.put_to(put.var.group)?.put_now(put, values)
    }

    /// Stores what waits in memory only for more to come; what fails stays there.
    pub(crate) fn store_complete(&self) -> Result<()> {
        if self.capabilities.shared_puts {
            return Ok(());
        }
        self.change(|file| file.store_complete())
    }
}
