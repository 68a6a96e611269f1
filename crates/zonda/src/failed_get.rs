//! What a get leaves in the caller's memory when it fails in the middle.
//!
//! A file on a disk that cannot be read is a rare event. A server that sends something else than it said is none, and a program that does not
//! look at codes must not go on with values that nobody vouches for. So of a remote file the memory of a get that failed is all fill values: the variable's own, where it names one.

use zonda_format::{Access, AttAccess, Destination, Dispatch, Meta, Transfer, VarRef};
use zonda_model::{ExtType, MemType, default_fill};

use crate::data::shorter;
use crate::error::Result;
use crate::open_file::OpenFile;

impl OpenFile {
    /// A get of `file` into memory of the caller: what it gives, and fill values in all of the memory where a get of a remote file failed.
    #[inline(always)]
    pub(crate) fn get<'a, T>(
        &self,
        file: &dyn Dispatch,
        transfer: &mut T,
        room: Destination<'_>,
        get: impl FnOnce(&mut T, Destination<'_>) -> Result<zonda_convert::Converted>,
    ) -> Result<zonda_convert::Converted>
    where
        T: std::borrow::Borrow<Transfer<Access<'a>>>,
    {
        let Destination { bytes, place } = room;
        let place = shorter(place);
        let got = get(transfer, Destination { bytes: &mut *bytes, place });
        if got.is_err() && self.is_remote() {
            overwrite(file, (*transfer).borrow(), bytes);
        }
        got
    }
}

/// Overwrites what a get that failed may have placed. Where its arguments were refused, it has placed nothing.
#[cold]
pub(crate) fn overwrite(file: &dyn Dispatch, get: &Transfer<Access<'_>>, bytes: &mut [u8]) {
    let Access { var: VarRef { group, var }, mem, .. } = *get.of();
    if get.n_bytes != bytes.len() {
        // Both steps were one call, which does not say how far it came.
        let mut again = Transfer::new(*get.of());
        if file.check_get(&mut again).is_err() || again.n_bytes != bytes.len() {
            return;
        }
    }
    let own = || Meta::of(file, group).and_then(|meta| Ok(meta.var(var)?.ty())).ok().flatten();
    let mem = mem.or_else(|| own().map(ExtType::natural_mem));
    let owner = VarRef { group, var };
    match mem.and_then(|mem| Some((mem.size(), fill_value(file, owner, mem)?))) {
        Some((size, value)) => repeat(value.get(..size).unwrap_or(&value), bytes),
        None => fill(mem, bytes),
    }
}

/// The fill value that a variable names, in the form of memory: what its readers take for missing. `None` where it names none, or none that has this
/// form, or its attributes cannot be read either.
fn fill_value(file: &dyn Dispatch, owner: VarRef, mem: MemType) -> Option<[u8; 8]> {
    let mut get = Transfer::new(AttAccess { owner, name: b"_FillValue", mem: Some(mem) });
    file.check_get_att(&mut get).ok()?;
    if get.n_bytes != mem.size() {
        return None;
    }
    let mut value = [0; 8];
    let got = file.get_att(&get, Destination::plain(value.get_mut(..mem.size())?)).ok()?;
    (got.out_of_range == 0).then_some(value)
}

/// As [`overwrite`], for values of an attribute.
#[cold]
pub(crate) fn overwrite_att(file: &dyn Dispatch, get: &Transfer<AttAccess<'_>>, bytes: &mut [u8]) {
    let AttAccess { owner: VarRef { group, var }, name, mem } = *get.of();
    if get.n_bytes != bytes.len() {
        return;
    }
    let own = || Meta::of(file, group).and_then(|meta| Ok(meta.find_att(var, name)?.1.ty()));
    fill(mem.or_else(|| own().ok().flatten().map(ExtType::natural_mem)), bytes);
}

/// Makes all elements default fill values: those of the type in memory; zeros of what is neither a number nor text, so that strings are null.
fn fill(mem: Option<MemType>, bytes: &mut [u8]) {
    let Some(mem) = mem else { return bytes.fill(0) };
    let element = default_fill(mem.natural_ext());
    repeat(element.get(..mem.size()).unwrap_or(&element), bytes);
}

/// Writes `element` over and over.
fn repeat(element: &[u8], bytes: &mut [u8]) {
    for to in bytes.chunks_mut(element.len().max(1)) {
        to.copy_from_slice(&element[..to.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_are_those_of_the_type_in_memory() {
        for mem in MemType::ALL {
            assert_eq!(mem.natural_ext().natural_mem(), mem);
            let mut bytes = vec![1; 3 * mem.size()];
            fill(Some(mem), &mut bytes);
            assert!(
                bytes
                    .chunks(mem.size())
                    .all(|one| one == &default_fill(mem.natural_ext())[..mem.size()])
            );
        }
        let mut bytes = [1; 16];
        fill(None, &mut bytes);
        assert_eq!(bytes, [0; 16]);
    }
}
