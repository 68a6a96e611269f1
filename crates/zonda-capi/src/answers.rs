//! Answers of inquiries that a thread had before, as long as they hold.
//!
//! Programs ask for lengths and variables in their inner loops. Such an inquiry costs a look-up of the number, a lock and a
//! walk to the definition, and the answer is nearly always that of last time. So a thread keeps the last ones that it has asked
//! for twice, with the count of changes of the file ([`zonda::Dataset::changes`]) from before it had them. What grows by puts,
//! an unlimited dimension, is not kept.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::LocalKey;

use zonda::{DimView, Meta, VarId};

use crate::c_memory::{c_count, put, put_list, put_text};
use crate::handles::{self, FileRef};

/// Answers of each kind that a thread keeps.
const N_KEPT: usize = 128;

/// None until the thread has asked something.
type KeptAnswers<T> = RefCell<Vec<Kept<T>>>;

thread_local! {
    static DIM_LENGTHS: KeptAnswers<usize> = const { RefCell::new(Vec::new()) };
    static VARS: KeptAnswers<Var> = const { RefCell::new(Vec::new()) };
}

/// An answer to a question, and since when it holds.
#[derive(Debug)]
struct Kept<T> {
    ncid: c_int,
    id: c_int,
    n_closed: usize,
    changes: Option<(Arc<AtomicU64>, u64)>,
    answer: Option<T>,
}

impl<T> Kept<T> {
    const NONE: Kept<T> = Kept { ncid: 0, id: 0, n_closed: 0, changes: None, answer: None };

    #[inline(always)]
    fn is_to(&self, ncid: c_int, id: c_int) -> bool {
        self.ncid == ncid && self.id == id
    }

    /// The answer, if it is one to this question and holds still.
    #[inline(always)]
    fn get(&self, ncid: c_int, id: c_int) -> Option<&T> {
        let (changes, then) = self.changes.as_ref()?;
        let holds = self.is_to(ncid, id)
            && self.n_closed == handles::n_closed()
            && changes.load(Ordering::Acquire) == *then;
        self.answer.as_ref().filter(|_| holds)
    }
}

/// What `nc_inq_var` answers.
#[derive(Debug)]
struct Var {
    name: Box<[u8]>,
    nc_type: c_int,
    dims: Box<[c_int]>,
    n_atts: c_int,
}

/// When an answer was had, to be taken before the definitions are looked at.
pub(crate) struct Moment<'f> {
    n_closed: usize,
    changes: Option<(&'f Arc<AtomicU64>, u64)>,
}

impl Moment<'_> {
    /// Now, with a file that was just found. `n_closed` is what [`handles::n_closed`] said before.
    #[inline(always)]
    pub(crate) fn of(n_closed: usize, file: &FileRef) -> Moment<'_> {
        let changes = file.dataset.changes();
        let changes = changes.map(|changes| (changes, changes.load(Ordering::Acquire)));
        Moment { n_closed, changes }
    }
}

#[inline(always)]
fn place_of(ncid: c_int, id: c_int) -> usize {
    ((ncid >> 16).wrapping_mul(5).wrapping_add(id).cast_unsigned() as usize) % N_KEPT
}

/// Calls `f` with an answer that the thread has; `None` where it has none, and where a trace is to see the call.
#[inline(always)]
fn with<T, R>(
    all: &'static LocalKey<KeptAnswers<T>>,
    (ncid, id): (c_int, c_int),
    f: impl FnOnce(&T) -> R,
) -> Option<R> {
    if zonda_trace::on() {
        return None;
    }
    // A thread that is being torn down has none left. A call in a signal handler may find them in use.
    let answered = all.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        kept.get(place_of(ncid, id))?.get(ncid, id).map(f)
    });
    answered.ok().flatten()
}

/// Keeps what `answer` makes, if changes of the file are counted, and the thread asks for the second time: most inquiries are
/// made once.
#[inline(always)]
fn keep<T>(
    all: &'static LocalKey<KeptAnswers<T>>,
    (ncid, id): (c_int, c_int),
    moment: &Moment<'_>,
    answer: impl FnOnce() -> Option<T>,
) {
    let Some((changes, then)) = moment.changes else { return };
    let _ = all.try_with(|kept| {
        let Ok(mut kept) = kept.try_borrow_mut() else { return };
        if kept.is_empty() {
            if kept.try_reserve_exact(N_KEPT).is_err() {
                return;
            }
            kept.resize_with(N_KEPT, || Kept::NONE);
        }
        let Some(kept) = kept.get_mut(place_of(ncid, id)) else { return };
        if kept.is_to(ncid, id) {
            kept.n_closed = moment.n_closed;
            kept.changes = Some((Arc::clone(changes), then));
            kept.answer = answer();
        } else {
            *kept = Kept { ncid, id, ..Kept::NONE };
        }
    });
}

/// The length of a dimension, if the thread has it.
#[inline(always)]
pub(crate) fn dim_len(ncid: c_int, dimid: c_int) -> Option<usize> {
    with(&DIM_LENGTHS, (ncid, dimid), |len| *len)
}

/// Keeps the length of a dimension.
#[inline(always)]
pub(crate) fn keep_dim_len(of: (c_int, c_int), moment: &Moment<'_>, dim: &DimView<'_>, len: usize) {
    if !dim.is_unlimited {
        keep(&DIM_LENGTHS, of, moment, || Some(len));
    }
}

/// Where `nc_inq_var` puts its answers; each may be null.
#[derive(Clone, Copy)]
pub(crate) struct VarPlaces {
    pub(crate) name: *mut c_char,
    pub(crate) nc_type: *mut c_int,
    pub(crate) n_dims: *mut c_int,
    pub(crate) dims: *mut c_int,
    pub(crate) n_atts: *mut c_int,
}

/// Answers what a variable is, if the thread has it; false if it has not.
///
/// # Safety
/// Each pointer is null or valid for its result.
#[inline(always)]
pub(crate) unsafe fn var(ncid: c_int, varid: c_int, to: VarPlaces) -> bool {
    let answered = with(&VARS, (ncid, varid), |var| {
        // SAFETY: the contract above.
        unsafe {
            put_text(to.name, &var.name);
            put(to.nc_type, var.nc_type);
            put(to.n_dims, c_count(var.dims.len()));
            put_list(to.dims, var.dims.iter().copied());
            put(to.n_atts, var.n_atts);
        }
    });
    answered.is_some()
}

/// Keeps what a variable is.
#[inline(always)]
pub(crate) fn keep_var(of: (c_int, c_int), moment: &Moment<'_>, meta: &Meta<'_>) {
    keep(&VARS, of, moment, || {
        let id = VarId(of.1);
        let var = meta.var(id).ok()?;
        Some(Var {
            name: var.name.into(),
            nc_type: var.nc_type,
            dims: var.dims.iter().map(|dim| dim.0).collect(),
            n_atts: c_count(meta.n_atts(id).ok()?),
        })
    });
}

/// In the child of a fork, where a file may be out of reach.
pub(crate) fn begin_child() {
    fn forget<T>(kept: &KeptAnswers<T>) {
        if let Ok(mut kept) = kept.try_borrow_mut() {
            kept.clear();
        }
    }
    let _ = DIM_LENGTHS.try_with(forget);
    let _ = VARS.try_with(forget);
}
