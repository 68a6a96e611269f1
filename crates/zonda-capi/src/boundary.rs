//! The line that Rust errors and panics never cross.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use zonda::NcError;

/// Why a call failed: the code that C sees and, where there is one, the story behind it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: NcError,
    detail: Option<zonda::Error>,
}

impl Failure {
    /// The code that C sees.
    pub(crate) fn code(&self) -> NcError {
        self.code
    }

    /// The same story under another code, where C expects one.
    pub(crate) fn seen_as(self, code: NcError) -> Failure {
        Failure { code, ..self }
    }
}

impl From<NcError> for Failure {
    fn from(code: NcError) -> Self {
        Failure { code, detail: None }
    }
}

impl From<zonda::Error> for Failure {
    fn from(error: zonda::Error) -> Self {
        Failure { code: error.code(), detail: Some(error) }
    }
}

/// What every C function body returns.
pub(crate) type CallResult = Result<(), Failure>;

/// The answer for a conversion that delivered everything but met values that did not fit.
#[inline]
pub(crate) fn ranged(converted: zonda::Converted) -> CallResult {
    match converted.out_of_range {
        0 => Ok(()),
        n => Err(did_not_fit(n)),
    }
}

#[cold]
fn did_not_fit(n: u64) -> Failure {
    let values = if n == 1 { "value does" } else { "values do" };
    let text = format!("{}: {n} {values} not fit, all others are there", NcError::Range);
    zonda::Error::told(NcError::Range, text).into()
}

thread_local! {
    /// The last failure of this thread. Its text is made when somebody asks for it, because
    /// programs probe with failing calls (`nc_inq_varid`) in their hot paths.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    /// Calls of this library that the thread is in the middle of, one within the other; and below the
    /// `CALL` the slot of the file that the innermost has found, 0 if none. One number, since each call
    /// of some nanoseconds passes here.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LAST_TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// A failure, and the file that the call was about.
struct Last {
    failure: Failure,
    path: Option<Arc<Path>>,
}

/// One more call in `CALLS`.
const CALL: u64 = 1 << 32;

/// Notes which file the call of this thread is about, so that its failure can name it.
#[inline]
pub(crate) fn works_on(slot: usize) {
    CALLS.set(CALLS.get() & !(CALL - 1) | slot as u64);
}

/// Whether the thread is in the middle of a call: in a signal handler, if it is not the library that asks.
/// It may then hold any lock.
pub(crate) fn is_inside() -> bool {
    CALLS.get() >= CALL
}

/// Kept by a thread during a call: what the one around it has noted.
struct Inside(u64);

impl Inside {
    #[inline]
    fn enter() -> Inside {
        let around = CALLS.get();
        CALLS.set((around & !(CALL - 1)) + CALL);
        Inside(around)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        CALLS.set(self.0);
    }
}

/// Runs the body of a C function: errors become codes, a panic becomes `NC_EINTERNAL`.
///
/// A panic is a bug in Zonda. It must not unwind into C, and it must not take the program down:
/// a model three days into a run keeps its other files.
#[inline]
pub(crate) fn boundary<B: FnOnce() -> CallResult>(body: B) -> c_int {
    let begin = zonda_trace::start();
    let code = unrecorded(|| body().map(|()| 0));
    if begin != 0 {
        crate::trace::called::<B>(begin, code);
    }
    code
}

/// [`boundary`] for a body that may hand on the answer of a table of a program's own format, which is
/// any number.
#[inline]
pub(crate) fn answering<B: FnOnce() -> Result<c_int, Failure>>(body: B) -> c_int {
    // The functions that open files are among these: the first of them is to be in the trace.
    zonda_trace::init(zonda::storage::neighbour::trusts_environment);
    let begin = zonda_trace::start();
    let code = unrecorded(body);
    if begin != 0 {
        crate::trace::called::<B>(begin, code);
    }
    code
}

/// [`answering`] for a function that tells the trace itself.
#[inline]
pub(crate) fn unrecorded(body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    let _inside = Inside::enter();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(0)) => 0,
        Ok(Ok(code)) => from_elsewhere(code),
        Ok(Err(failure)) => {
            let code = failure.code.code();
            remember(failure);
            code
        }
        Err(panic) => {
            let failure =
                if panic.is::<zonda::Stuck>() { stuck() } else { NcError::Internal.into() };
            let code = failure.code.code();
            remember(failure);
            code
        }
    }
}

/// Of a call that a filter plugin has made, and that would have had to wait.
#[cold]
fn stuck() -> Failure {
    let code = NcError::System(libc::EDEADLK);
    let text = format!(
        "{code}: a filter plugin that is at work in a call has called the library, for a file that a call has"
    );
    zonda::Error::told(code, text).into()
}

/// Hands on an answer that no code of ours made: if it is a failure, its story is all that its number
/// says.
pub(crate) fn from_elsewhere(code: c_int) -> c_int {
    if code != 0 {
        let failure = NcError::from_code(code).map(Failure::from);
        let last = failure.map(|failure| Last { failure, path: None });
        let _ = LAST.try_with(|kept| kept.replace(last));
    }
    code
}

/// Keeps what a call that succeeds has to say.
pub(crate) fn tell(news: zonda::Error) {
    remember(news.into());
}

#[cold]
fn remember(mut failure: Failure) {
    if failure.code == NcError::NoMem
        && let Some(bytes) = zonda::memory::take_refused()
    {
        let told = failure.detail.as_ref().map_or(failure.code.to_string(), ToString::to_string);
        let told = format!("{told}: there is no memory for {bytes} bytes");
        failure.detail = Some(zonda::Error::told(NcError::NoMem, told));
    }
    // A thread that is being torn down has no place for it left; its failure then goes unremembered.
    let path = crate::handles::path_at((CALLS.get() & (CALL - 1)) as usize);
    let _ = LAST.try_with(|last| last.replace(Some(Last { failure, path })));
}

/// Text of the last failure of the calling thread, or of what a call had to say since; valid until its
/// next call of this function, empty when nothing failed yet.
pub(crate) fn last_error_text() -> *const std::ffi::c_char {
    let text = LAST.with(|last| last.borrow().as_ref().map_or_else(String::new, Last::text));
    LAST_TEXT.with(|slot| {
        // Paths may hold anything but NUL; a NUL from elsewhere must not cut the message.
        *slot.borrow_mut() = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        slot.borrow().as_ptr()
    })
}

impl Last {
    /// What went wrong, and with which file.
    fn text(&self) -> String {
        let Failure { code, detail } = &self.failure;
        let text = detail.as_ref().map_or_else(|| code.to_string(), ToString::to_string);
        match &self.path {
            Some(path) => {
                let path = path.display().to_string();
                if text.contains(&path) { text } else { format!("{path}: {text}") }
            }
            None => text,
        }
    }
}

/// Writes a result where the caller asked for it.
///
/// # Safety
/// `to` is null or valid for a write of one `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and the caller's contract covers the rest.
        unsafe { to.write(value) };
    }
}

/// A count as C holds it.
pub(crate) fn c_count(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
