//! Calls for one element after the other: the thread keeps a lease of the bytes that it is at.
//!
//! A thread that has put or got elements of a variable by some calls is given a lease of the part around them
//! ([`zonda::LeasedVar`]); a call within it then takes no lock that another thread wants, and looks nothing up. All that is
//! unusual, each error among it, goes the ordinary way. Where leases are not given or do not last, they are asked for more and
//! more seldom.

use std::cell::RefCell;
use std::ffi::c_int;

use zonda::{LeasedVar, MemType};

use crate::c_memory::{slice, slice_mut};
use crate::data_arguments::{CallerMemory, MemoryForm, SelectionArrays};
use crate::handles;

/// Variables that a thread has leases of at once: a power of two. One may take the place of another.
const N_PLACES: usize = 8;
/// Calls of a variable before the first lease is asked for.
const CALLS_BEFORE: u32 = 6;
/// The most calls before one is asked for again.
const MOST_CALLS_BEFORE: u32 = 1 << 16;
/// Calls that a lease has to be good for.
const LEAST_USES: u32 = 64;

thread_local! {
    static LEASES: RefCell<[Place; N_PLACES]> = const { RefCell::new([const { Place::EMPTY }; N_PLACES]) };
}

/// What a thread does with one variable.
#[derive(Debug)]
struct Place {
    ncid: c_int,
    varid: c_int,
    /// [`handles::n_closed`] when the lease was given: since then the number may have become another file's.
    n_closed: usize,
    /// Whether the thread has put elements of it.
    writes: bool,
    leased: Option<LeasedVar>,
    /// Calls that went through the lease.
    uses: u32,
    /// Ordinary calls until the next lease is asked for.
    wait: u32,
    /// How many they were last time.
    last_wait: u32,
}

impl Place {
    const EMPTY: Place = Place {
        // No file has this number.
        ncid: 0,
        varid: 0,
        n_closed: 0,
        writes: false,
        leased: None,
        uses: 0,
        wait: CALLS_BEFORE,
        last_wait: CALLS_BEFORE,
    };

    #[inline(always)]
    fn is_of(&self, ncid: c_int, varid: c_int) -> bool {
        self.ncid == ncid && self.varid == varid
    }
}

/// Where the lease of a variable is kept.
#[inline(always)]
fn place_of(ncid: c_int, varid: c_int) -> usize {
    ((ncid >> 16).wrapping_mul(5).wrapping_add(varid).cast_unsigned() as usize) % N_PLACES
}

/// The type in memory, `None` for the variable's own; no answer for strings.
#[inline(always)]
fn numbers(mem: MemoryForm) -> Option<Option<MemType>> {
    match mem {
        MemoryForm::Natural => Some(None),
        MemoryForm::Number(mem) => Some(Some(mem)),
        MemoryForm::Strings => None,
    }
}

/// Makes a call through a lease; false where the ordinary call is to be made.
///
/// # Safety
/// As [`crate::transfer::transfer`].
#[inline(always)]
pub(crate) unsafe fn transfer(
    ncid: c_int,
    varid: c_int,
    mem: MemoryForm,
    caller: CallerMemory,
    which: &SelectionArrays,
) -> bool {
    let (start, count) = match *which {
        SelectionArrays::One(index) => (index, std::ptr::null()),
        SelectionArrays::Block(start, count) if !count.is_null() => (start, count),
        _ => return false,
    };
    let is_null = match caller {
        CallerMemory::Put(from) => from.is_null(),
        CallerMemory::Get(to) => to.is_null(),
    };
    let Some(mem) = numbers(mem) else { return false };
    if is_null || start.is_null() || zonda_trace::on() {
        return false;
    }
    // A thread that is being torn down has none left. A call in a signal handler may find them in use.
    let moved = LEASES.try_with(|leases| {
        let Ok(mut leases) = leases.try_borrow_mut() else { return false };
        let place = &mut leases[place_of(ncid, varid)];
        if !place.is_of(ncid, varid) || place.n_closed != handles::n_closed() {
            return false;
        }
        let Some(leased) = &mut place.leased else { return false };
        let rank = leased.rank();
        // SAFETY: the contract above: one index for each dimension of the variable, which is the one that was leased, since
        // no file was closed and a variable that is there never becomes another.
        let start = unsafe { slice(start, rank) };
        // SAFETY: as above.
        let count = (!count.is_null()).then(|| unsafe { slice(count, rank) });
        let moved = match caller {
            CallerMemory::Put(from) => {
                // SAFETY: not null, and memory for the elements, which are so many bytes.
                leased.put(start, count, mem, |len| unsafe { slice(from, len) })
            }
            CallerMemory::Get(to) => {
                // SAFETY: as above.
                leased.get(start, count, mem, |len| unsafe { slice_mut(to, len) })
            }
        };
        place.uses = place.uses.saturating_add(u32::from(moved));
        moved
    });
    moved.unwrap_or(false)
}

/// Notes that a call for some elements of a variable went the ordinary way, with success.
///
/// # Safety
/// As [`crate::transfer::transfer`].
#[inline(always)]
pub(crate) unsafe fn note(
    ncid: c_int,
    varid: c_int,
    caller: CallerMemory,
    which: &SelectionArrays,
) {
    let (SelectionArrays::One(start) | SelectionArrays::Block(start, _)) = *which else { return };
    let puts = matches!(caller, CallerMemory::Put(_));
    let _ = LEASES.try_with(|leases| {
        let Ok(mut leases) = leases.try_borrow_mut() else { return };
        let place = &mut leases[place_of(ncid, varid)];
        if place.is_of(ncid, varid) && place.leased.is_none() && place.wait > 0 {
            place.wait -= 1;
            place.writes |= puts;
            return;
        }
        if !start.is_null() {
            // SAFETY: same contract.
            unsafe { ask(place, ncid, varid, puts, start) };
        }
    });
}

/// Asks for a lease, or decides when to.
///
/// # Safety
/// `start` has an index for each dimension of the variable.
#[cold]
unsafe fn ask(place: &mut Place, ncid: c_int, varid: c_int, puts: bool, start: *const usize) {
    if !place.is_of(ncid, varid) {
        // A variable that is in use does not give way at once.
        if place.leased.is_some() && place.uses > 0 {
            place.uses = 0;
        } else {
            *place = Place { ncid, varid, writes: puts, ..Place::EMPTY };
        }
        return;
    }
    place.writes |= puts;
    let n_closed = handles::n_closed();
    let ask = || {
        let file = handles::unnamed(ncid).ok()?;
        let var = file.var(varid);
        // SAFETY: same contract.
        let index = unsafe { slice(start, file.dataset.rank_of(var)?) };
        let written = place.writes.then(|| file.dataset.lease(var, index, true)).flatten();
        written.or_else(|| file.dataset.lease(var, index, false).filter(|_| !puts))
    };
    // One that was good for little shows a pattern that is all over the file, or somebody else who wants the same bytes.
    let was_good = place.leased.as_ref().map(|_| place.uses >= LEAST_USES);
    if was_good == Some(true) {
        place.last_wait = CALLS_BEFORE;
    }
    place.leased = if was_good == Some(false) { None } else { ask() };
    place.uses = 0;
    place.n_closed = n_closed;
    if place.leased.is_none() {
        place.last_wait = place.last_wait.saturating_mul(2).min(MOST_CALLS_BEFORE);
        place.wait = place.last_wait;
    }
}

/// Whether this thread is in a call through a lease.
pub(crate) fn are_in_use() -> bool {
    LEASES.try_with(|leases| leases.try_borrow_mut().is_err()).unwrap_or(false)
}

/// In the child of a fork: the leases of the thread are its parent's.
pub(crate) fn begin_child() {
    let _ = LEASES.try_with(|leases| {
        if let Ok(mut leases) = leases.try_borrow_mut() {
            leases.iter_mut().for_each(|place| *place = Place::EMPTY);
        }
    });
}
