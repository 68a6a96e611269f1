//! Calls of the C functions, in the process's trace.
//!
//! None of it is called unless a trace is recorded, but for the names of functions.

use std::cell::Cell;
use std::ffi::c_int;

use zonda::VarRef;
use zonda_trace::{Args, EventKind, NO_ITEM};

use crate::data_arguments::{CallerMemory, MemoryForm, SelectionArrays, ZEROS};
use crate::explain;
use crate::handles;
use crate::trace::files;
use crate::tuning::TRACED_VARS;

thread_local! {
    /// Variables that the thread called about last, each at a place that follows from its numbers.
    static VARS: [Cell<Option<TracedVar>>; TRACED_VARS] =
        const { [const { Cell::new(None) }; TRACED_VARS] };
}

/// What the trace records of a call about a variable, and what is needed to count the bytes of one.
#[derive(Clone, Copy)]
struct TracedVar {
    ncid: c_int,
    varid: c_int,
    /// [`files::n_opened`] when this was found out.
    n_opened: u32,
    /// Numbers in the trace: of the file, of the variable and of its group.
    file: u32,
    item: u32,
    group: u64,
    rank: usize,
    /// Bytes of an element as it is in memory of the variable's own type.
    natural_bytes: usize,
}

/// The name of the function that a closure in its body belongs to, by the type of that.
pub(crate) fn name_in(closure: &'static str) -> &'static str {
    let body = closure.split("::{{closure}}").next().unwrap_or(closure);
    // Of a generic one the arguments follow in angle brackets.
    let body = body.split('<').next().unwrap_or(body);
    body.rsplit("::").next().unwrap_or(body)
}

/// Records a call that has ended and moved no data of a variable; `body` is the type of the closure that is its body.
#[cold]
pub(crate) fn called(begin: u64, code: c_int, body: &'static str) {
    let name = name_in(body);
    zonda_trace::span_since(begin, EventKind::Call, || Args { code, name, ..Args::default() });
    zonda_trace::set_current_file(0);
}

/// A call that moved data of a variable: its arguments.
pub(crate) struct DataCall {
    pub(crate) ncid: c_int,
    pub(crate) varid: c_int,
    pub(crate) mem: MemoryForm,
    pub(crate) caller: CallerMemory,
    pub(crate) which: SelectionArrays,
}

impl DataCall {
    /// Tells the trace of the call, which has ended, if it began at a time (0: nobody traces), and who wants to know of failures.
    #[cold]
    pub(crate) fn tell(self, begin: u64, code: c_int) {
        if begin != 0 {
            self.ended(begin, code);
        }
        if code != 0 {
            explain::failed(code, &|| self.name());
        }
    }

    /// Records the call, which has ended.
    fn ended(&self, begin: u64, code: c_int) {
        // What follows is no part of it.
        let end = zonda_trace::start();
        let (file, item, offset, bytes) = self.trace_numbers().unwrap_or((0, NO_ITEM, 0, 0));
        let args = || Args { file, item, offset, bytes, code, name: self.name() };
        zonda_trace::span_between(begin, end, EventKind::Call, args);
        zonda_trace::set_current_file(0);
    }

    /// File, variable and its group as the trace numbers them, and the bytes that the call moved in the
    /// caller's memory. `None` for a file or variable that is not there.
    fn trace_numbers(&self) -> Option<(u32, u32, u64, u64)> {
        let n_opened = files::n_opened();
        let place = (self.ncid.cast_unsigned() >> 16 ^ self.varid.cast_unsigned()) as usize;
        let remembered = VARS.try_with(|vars| vars[place % TRACED_VARS].get()).ok()?;
        let is_this = |var: &TracedVar| {
            (var.ncid, var.varid, var.n_opened) == (self.ncid, self.varid, n_opened)
        };
        let var = match remembered.filter(is_this) {
            Some(var) => var,
            None => {
                let found = self.look_up(n_opened)?;
                let _ = VARS.try_with(|vars| vars[place % TRACED_VARS].set(Some(found)));
                found
            }
        };
        let n_elems = match self.which {
            which if which.is_all() => self.n_elems_of_all()?,
            // SAFETY: the function that this is of had the arrays, and has not returned yet; they
            // have a value for each of the variable's dimensions, whose lengths do not count here.
            which => unsafe { which.n_elems(ZEROS.get(..var.rank)?) },
        };
        let elem_bytes = self.mem.elem_bytes(var.natural_bytes);
        let bytes = n_elems.saturating_mul(elem_bytes) as u64;
        Some((var.file, var.item, var.group, bytes))
    }

    /// Elements that the variable has now.
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
    fn look_up(&self, n_opened: u32) -> Option<TracedVar> {
        let open = handles::file(self.ncid).ok()?;
        let file = files::number(handles::slot_of(self.ncid));
        let VarRef { group, var } = open.var(self.varid);
        let item = u32::try_from(var.0).ok()?;
        let found = open.meta(|meta| {
            let view = meta.var(var).ok()?;
            zonda_trace::variable(file, u32::from(group.0), item, || {
                let mut name = meta.group_path();
                // That of the root group is a slash alone, which says nothing.
                if name.len() > 1 {
                    name.push(b'/');
                } else {
                    name.clear();
                }
                name.extend_from_slice(view.name);
                String::from_utf8_lossy(&name).into_owned()
            });
            Some(TracedVar {
                ncid: self.ncid,
                varid: self.varid,
                n_opened,
                file,
                item,
                group: u64::from(group.0),
                rank: view.dims.len(),
                natural_bytes: meta.type_size(view.nc_type).unwrap_or(0),
            })
        });
        found.ok()?
    }

    pub(crate) fn name(&self) -> &'static str {
        let is_put = matches!(self.caller, CallerMemory::Put(_));
        match (is_put, self.which) {
            (true, SelectionArrays::All) => "nc_put_var",
            (true, SelectionArrays::One(_)) => "nc_put_var1",
            (true, SelectionArrays::Block(..)) => "nc_put_vara",
            (true, SelectionArrays::Strided(..)) => "nc_put_vars",
            (true, SelectionArrays::Mapped(..)) => "nc_put_varm",
            (false, SelectionArrays::All) => "nc_get_var",
            (false, SelectionArrays::One(_)) => "nc_get_var1",
            (false, SelectionArrays::Block(..)) => "nc_get_vara",
            (false, SelectionArrays::Strided(..)) => "nc_get_vars",
            (false, SelectionArrays::Mapped(..)) => "nc_get_varm",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body<B>(_: B) -> &'static str {
        name_in(std::any::type_name::<B>())
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
