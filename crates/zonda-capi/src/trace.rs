//! Calls of the C functions, in the process's trace.
//!
//! Nothing here is reached unless a trace is recorded.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use zonda::VarRef;
use zonda_trace::{Args, Kind, NO_ITEM};

use crate::handles;
use crate::transfer::{Caller, Mem, Which, ZEROS};

/// What the trace calls the file of each slot; 0 for none.
static FILES: [AtomicU32; handles::N_SLOTS] = [const { AtomicU32::new(0) }; handles::N_SLOTS];

/// Counts openings: what is known of a variable is known of one of them.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Variables that a thread remembers; a power of two.
const PLACES: usize = 16;

thread_local! {
    static KNOWN: [Cell<Option<Known>>; PLACES] = const { [const { Cell::new(None) }; PLACES] };
}

/// What events of a variable's calls carry, and what their bytes are counted by.
#[derive(Clone, Copy)]
struct Known {
    ncid: c_int,
    varid: c_int,
    generation: u32,
    file: u32,
    item: u32,
    group: u64,
    rank: usize,
    /// Bytes of an element as it is in memory of the variable's own type.
    natural: usize,
}

/// Says which file is in a slot from now on.
pub(crate) fn opened(slot: usize, file: &handles::OpenFile) {
    if zonda_trace::on() {
        let number = zonda_trace::file(file.dataset.path());
        FILES[slot].store(number, Ordering::Relaxed);
        GENERATION.fetch_add(1, Ordering::Relaxed);
        zonda_trace::set_current_file(number);
    }
}

/// The file of a slot is what the calling thread works on.
#[cold]
pub(crate) fn works_on(slot: usize) {
    zonda_trace::set_current_file(FILES[slot].load(Ordering::Relaxed));
}

/// The name of the function that a closure in its body belongs to.
fn name_of(closure: &'static str) -> &'static str {
    let body = closure.split("::{{closure}}").next().unwrap_or(closure);
    // Of a generic one the arguments follow in angle brackets.
    let body = body.split('<').next().unwrap_or(body);
    body.rsplit("::").next().unwrap_or(body)
}

/// A call ended that moved no variable's data. `B` is the closure that is its body.
#[cold]
pub(crate) fn called<B>(begin: u64, code: c_int) {
    let name = name_of(std::any::type_name::<B>());
    zonda_trace::span_since(begin, Kind::Call, || Args { code, name, ..Args::default() });
    zonda_trace::set_current_file(0);
}

/// A call that moved data of a variable, as its function got it.
pub(crate) struct Moved {
    pub(crate) ncid: c_int,
    pub(crate) varid: c_int,
    pub(crate) mem: Mem,
    pub(crate) caller: Caller,
    pub(crate) which: Which,
}

impl Moved {
    /// The call ended.
    #[cold]
    pub(crate) fn ended(&self, begin: u64, code: c_int) {
        // What follows is no part of it.
        let end = zonda_trace::start();
        let (file, item, offset, bytes) = self.what().unwrap_or((0, NO_ITEM, 0, 0));
        let args = || Args { file, item, offset, bytes, code, name: self.name() };
        zonda_trace::span_between(begin, end, Kind::Call, args);
        zonda_trace::set_current_file(0);
    }

    /// File, variable and its group as the trace has them; and the bytes that were asked for, in the
    /// caller's memory. None of a file or variable that is not there.
    fn what(&self) -> Option<(u32, u32, u64, u64)> {
        let generation = GENERATION.load(Ordering::Relaxed);
        let place = (self.ncid.cast_unsigned() >> 16 ^ self.varid.cast_unsigned()) as usize;
        let known = KNOWN.try_with(|known| known[place % PLACES].get()).ok()?;
        let is_this = |known: &Known| {
            (known.ncid, known.varid, known.generation) == (self.ncid, self.varid, generation)
        };
        let known = match known.filter(is_this) {
            Some(known) => known,
            None => {
                let found = self.look_up(generation)?;
                let _ = KNOWN.try_with(|known| known[place % PLACES].set(Some(found)));
                found
            }
        };
        let n_elems = match self.which {
            which if which.is_all() => self.n_elems_of_all()?,
            // SAFETY: the function that this is of had the arrays, and has not returned yet; they
            // have a value for each of the variable's dimensions, whose lengths do not count here.
            which => unsafe { which.n_elems(ZEROS.get(..known.rank)?) },
        };
        let elem_bytes = match self.mem {
            Mem::Number(mem) => mem.size(),
            Mem::Natural => known.natural,
            Mem::Strings => size_of::<*const u8>(),
        };
        let bytes = n_elems.saturating_mul(elem_bytes) as u64;
        Some((known.file, known.item, known.group, bytes))
    }

    /// What there is of the variable now.
    fn n_elems_of_all(&self) -> Option<usize> {
        let open = handles::file(self.ncid).ok()?;
        let var = open.var(self.varid).var;
        let n_elems = open.meta(|meta| {
            let mut shape = vec![0; meta.var(var).ok()?.dims.len()];
            meta.var_shape(var, &mut shape).ok()?;
            Some(shape.iter().fold(1usize, |n, len| n.saturating_mul(*len)))
        });
        n_elems.ok()?
    }

    #[cold]
    fn look_up(&self, generation: u32) -> Option<Known> {
        let open = handles::file(self.ncid).ok()?;
        let file = FILES[handles::slot_of(self.ncid)].load(Ordering::Relaxed);
        let VarRef { group, var } = open.var(self.varid);
        let item = u32::try_from(var.0).ok()?;
        let known = open.meta(|meta| {
            let known = meta.var(var).ok()?;
            zonda_trace::variable(file, u32::from(group.0), item, || {
                let mut name = meta.group_path();
                // Of the root group it is a slash alone, which says nothing.
                if name.len() > 1 {
                    name.push(b'/');
                } else {
                    name.clear();
                }
                name.extend_from_slice(known.name);
                String::from_utf8_lossy(&name).into_owned()
            });
            Some(Known {
                ncid: self.ncid,
                varid: self.varid,
                generation,
                file,
                item,
                group: u64::from(group.0),
                rank: known.dims.len(),
                natural: meta.type_size(known.nc_type).unwrap_or(0),
            })
        });
        known.ok()?
    }

    fn name(&self) -> &'static str {
        let is_put = matches!(self.caller, Caller::Put(_));
        match (is_put, self.which) {
            (true, Which::All) => "nc_put_var",
            (true, Which::One(_)) => "nc_put_var1",
            (true, Which::Block(..)) => "nc_put_vara",
            (true, Which::Strided(..)) => "nc_put_vars",
            (true, Which::Mapped(..)) => "nc_put_varm",
            (false, Which::All) => "nc_get_var",
            (false, Which::One(_)) => "nc_get_var1",
            (false, Which::Block(..)) => "nc_get_vara",
            (false, Which::Strided(..)) => "nc_get_vars",
            (false, Which::Mapped(..)) => "nc_get_varm",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body<B>(_: B) -> &'static str {
        name_of(std::any::type_name::<B>())
    }

    #[test]
    fn closures_are_named_for_their_function() {
        assert_eq!(body(|| ()), "closures_are_named_for_their_function");
        fn generic<T>(value: T) -> &'static str {
            body(move || drop(value))
        }
        assert_eq!(generic(1u8), "generic");
    }
}
