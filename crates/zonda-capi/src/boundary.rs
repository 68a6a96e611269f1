//! Where calls from C enter and leave: Rust errors and panics do not get past it.

use std::any::type_name;
use std::cell::{OnceCell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use zonda::NcError;

use crate::current_call::{self, CallGuard};
use crate::explain;
use crate::failure::{CallFailure, CallResult};

thread_local! {
    /// The last failure of this thread. Its text is made when somebody asks for it, because
    /// programs probe with failing calls (`nc_inq_varid`) in their hot paths.
    static LAST: RefCell<Option<LastFailure>> = const { RefCell::new(None) };
}

/// A failure, and the file that the call was about.
struct LastFailure {
    failure: CallFailure,
    path: Option<Arc<Path>>,
    /// What C was given of it, which stays where it is as long as this is the last failure.
    text: OnceCell<CString>,
}

/// Runs the body of a C function: errors become codes, a panic becomes `NC_EINTERNAL`.
///
/// A panic is a bug in Zonda. It must not unwind into C, and it must not take the program down:
/// a model three days into a run keeps its other files.
#[inline]
pub(crate) fn boundary<B: FnMut() -> CallResult>(mut body: B) -> c_int {
    let begin = zonda_trace::start();
    let code = boundary_untraced(|| body().map(|()| 0));
    if begin != 0 {
        crate::trace::calls::called(begin, code, type_name::<B>());
    }
    if code != 0 {
        explain::failed_in(code, type_name::<B>());
    }
    code
}

/// [`boundary`] for a body that may return the code of a program's own format, which is any number.
#[inline]
pub(crate) fn boundary_with_code<B: FnMut() -> Result<c_int, CallFailure>>(body: B) -> c_int {
    // The functions that open files come here. The first of them starts the trace, so that it is in it.
    zonda_trace::init(zonda::storage::neighbour::trusts_environment);
    let begin = zonda_trace::start();
    let code = boundary_untraced(body);
    if begin != 0 {
        crate::trace::calls::called(begin, code, type_name::<B>());
    }
    if code != 0 {
        explain::failed_in(code, type_name::<B>());
    }
    code
}

/// [`boundary_with_code`] for a function that records its call in the trace itself, and that calls [`explain::failed`].
///
/// The body is called once, where it lies: to be moved it would be read in wider pieces than it was written in, which the processor waits for.
#[inline]
pub(crate) fn boundary_untraced(mut body: impl FnMut() -> Result<c_int, CallFailure>) -> c_int {
    let _guard = CallGuard::enter();
    match catch_unwind(AssertUnwindSafe(&mut body)) {
        Ok(Ok(0)) => 0,
        Ok(Ok(code)) => foreign_code(code),
        Ok(Err(failure)) => {
            let code = failure.code().code();
            remember(failure);
            code
        }
        Err(panic) => {
            let failure =
                if panic.is::<zonda::Stuck>() { deadlock() } else { NcError::Internal.into() };
            let code = failure.code().code();
            remember(failure);
            code
        }
    }
}

/// The failure of a call that a filter plugin made, and that would wait without end for the call that
/// runs the plugin.
#[cold]
fn deadlock() -> CallFailure {
    let code = NcError::System(libc::EDEADLK);
    let text = format!(
        "{code}: a filter plugin called the library for a file that is busy with the call that runs the plugin"
    );
    zonda::Error::with_text(code, text).into()
}

/// Returns a code that a program's own format answered, and remembers it if it is a failure; all that is
/// known of it is its number.
pub(crate) fn foreign_code(code: c_int) -> c_int {
    if code != 0 {
        let failure = NcError::from_code(code).map(CallFailure::from);
        let last = failure.map(|failure| LastFailure::new(failure, None));
        let _ = LAST.try_with(|slot| slot.replace(last));
    }
    code
}

/// Remembers what a call that succeeds has to report, for [`last_error_text`].
pub(crate) fn remember_report(report: zonda::Error) {
    remember(report.into());
}

#[cold]
fn remember(mut failure: CallFailure) {
    if failure.code() == NcError::NoMem
        && let Some(bytes) = zonda::memory::take_refused()
    {
        let text = failure.explanation();
        failure.set_explanation(format!("{text}: there is no memory for {bytes} bytes"));
    }
    let path = crate::handles::path_at(current_call::slot());
    // A thread that is being torn down has no place for it left; its failure then goes unremembered.
    let _ = LAST.try_with(|slot| slot.replace(Some(LastFailure::new(failure, path))));
}

/// Text of the last failure of the calling thread, or of what a call has reported since. It is valid until
/// another call of the thread fails or reports, and empty if there is nothing.
pub(crate) fn last_error_text() -> *const c_char {
    // A thread that is being torn down remembers nothing.
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.c_text().as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// The same, of a call of this thread that has just failed with that code.
pub(crate) fn text_of_failure(code: c_int) -> String {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(LastFailure::text));
    // A program's own format answers any number.
    text.ok().flatten().unwrap_or_else(|| match NcError::from_code(code) {
        Some(known) => known.to_string(),
        None => format!("error {code}"),
    })
}

impl LastFailure {
    fn new(failure: CallFailure, path: Option<Arc<Path>>) -> LastFailure {
        LastFailure { failure, path, text: OnceCell::new() }
    }

    fn c_text(&self) -> &CStr {
        // Paths may hold anything but NUL; a NUL from elsewhere must not cut the message.
        self.text
            .get_or_init(|| CString::new(self.text().replace('\0', "\u{fffd}")).unwrap_or_default())
    }

    /// What went wrong, and with which file.
    fn text(&self) -> String {
        let text = self.failure.explanation();
        match &self.path {
            Some(path) => {
                let path = path.display().to_string();
                if text.contains(&path) { text } else { format!("{path}: {text}") }
            }
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> (*const c_char, String) {
        let text = last_error_text();
        // SAFETY: NUL-terminated, and valid until the next failure.
        (text, unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    #[test]
    fn the_text_of_a_failure_stays_until_the_next_one() {
        assert_eq!(last().1, "");
        let fails = |code: NcError| boundary(|| Err(code.into()));
        assert_eq!(fails(NcError::BadId), NcError::BadId.code());
        let first = last();
        assert_eq!(first.1, NcError::BadId.to_string());
        assert_eq!(last(), first);
        assert_eq!(boundary(|| Ok(())), 0);
        assert_eq!(last(), first);
        fails(NcError::NotVar);
        assert_eq!(last().1, NcError::NotVar.to_string());
    }

    #[test]
    fn a_number_that_a_program_answers_has_a_text() {
        assert_eq!(boundary_with_code(|| Ok(-7777)), -7777);
        assert_eq!((last().1.as_str(), text_of_failure(-7777).as_str()), ("", "error -7777"));
    }
}
