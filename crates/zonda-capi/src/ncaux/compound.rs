//! `ncaux_begin_compound` and its relatives: a compound type, field by field.
//!
//! A tag is a number in the shape of a pointer. Looking it up makes a tag used twice, as after an
//! end that already disposed of it, an error instead of a crash.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use zonda::NcError;

use super::alignment;
use crate::boundary::boundary;
use crate::c_memory::bytes;
use crate::type_definitions::{nc_def_compound, nc_insert_array_compound, nc_insert_compound};
use crate::types::NcType;
use crate::values::size_in_memory;

#[derive(Clone, Debug)]
struct FieldDraft {
    name: CString,
    nc_type: NcType,
    dims: Vec<c_int>,
}

#[derive(Clone, Debug)]
struct CompoundDraft {
    ncid: c_int,
    name: CString,
    fields: Vec<FieldDraft>,
}

#[derive(Debug, Default)]
struct OpenCompounds {
    open: BTreeMap<usize, CompoundDraft>,
    last: usize,
}

fn tags() -> MutexGuard<'static, OpenCompounds> {
    const NONE: OpenCompounds = OpenCompounds { open: BTreeMap::new(), last: 0 };
    static TAGS: Global<OpenCompounds> = Global::new(Rank::Settings, NONE, || NONE);
    TAGS.lock()
}

/// `int ncaux_begin_compound(int ncid, const char *name, int alignmode, void **tag);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `tagp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_begin_compound(
    ncid: c_int,
    name: *const c_char,
    _alignmode: c_int,
    tagp: *mut *mut c_void,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        if tagp.is_null() {
            return Err(NcError::Inval.into());
        }
        let name = CString::new(name).map_err(|_| NcError::Internal)?;
        let mut tags = tags();
        tags.last += 1;
        let tag = tags.last;
        tags.open.insert(tag, CompoundDraft { ncid, name, fields: Vec::new() });
        // SAFETY: not null, and valid by contract.
        unsafe { tagp.write(tag as *mut c_void) };
        Ok(())
    })
}

/// `int ncaux_abort_compound(void *tag);` A tag that is not open is nothing to abort.
///
/// # Safety
/// The tag is not used as a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_abort_compound(tag: *mut c_void) -> c_int {
    boundary(|| {
        tags().open.remove(&(tag as usize));
        Ok(())
    })
}

/// `int ncaux_add_field(void *tag, const char *name, nc_type field_type, int ndims, const int *dimsizes);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `dimsizes` has `ndims` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_add_field(
    tag: *mut c_void,
    name: *const c_char,
    field_type: NcType,
    ndims: c_int,
    dimsizes: *const c_int,
) -> c_int {
    boundary(|| {
        let n = usize::try_from(ndims).map_err(|_| NcError::Inval)?;
        if n > zonda::MAX_VAR_DIMS || (n > 0 && dimsizes.is_null()) {
            return Err(NcError::Inval.into());
        }
        // SAFETY: `ndims` entries by contract.
        let dims: Vec<c_int> = (0..n).map(|d| unsafe { dimsizes.add(d).read() }).collect();
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        if dims.iter().any(|&len| len <= 0) {
            return Err(NcError::Inval.into());
        }
        let name = CString::new(name).map_err(|_| NcError::Internal)?;
        let mut tags = tags();
        let compound = tags.open.get_mut(&(tag as usize)).ok_or(NcError::Inval)?;
        compound.fields.push(FieldDraft { name, nc_type: field_type, dims });
        Ok(())
    })
}

/// Byte offsets of the fields and the size of the whole, aligned as C would.
fn layout(compound: &CompoundDraft) -> Result<(Vec<usize>, usize), NcError> {
    let mut offsets = Vec::with_capacity(compound.fields.len());
    let (mut end, mut widest) = (0_usize, 1);
    for field in &compound.fields {
        let size = size_in_memory(compound.ncid, field.nc_type)?;
        let align = alignment(field.nc_type).unwrap_or(1);
        let at = end.checked_next_multiple_of(align).ok_or(NcError::Inval)?;
        let total = field
            .dims
            .iter()
            .try_fold(size, |total, &len| total.checked_mul(len.unsigned_abs() as usize));
        end = total.and_then(|total| at.checked_add(total)).ok_or(NcError::Inval)?;
        widest = widest.max(align);
        offsets.push(at);
    }
    Ok((offsets, end.checked_next_multiple_of(widest).ok_or(NcError::Inval)?))
}

/// `int ncaux_end_compound(void *tag, nc_type *xtypeid);`
///
/// Defines the type and ends the tag; after a failure the tag stays, for another attempt or for
/// [`ncaux_abort_compound`].
///
/// # Safety
/// `idp` is null, or valid for a write of one `nc_type`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_end_compound(tag: *mut c_void, idp: *mut NcType) -> c_int {
    let mut status = 0;
    let prepared = boundary(|| {
        let compound = tags().open.get(&(tag as usize)).cloned().ok_or(NcError::Inval)?;
        if idp.is_null() {
            return Err(NcError::Inval.into());
        }
        let (offsets, size) = layout(&compound)?;
        // SAFETY: strings of our own; `idp` is valid by contract.
        status = unsafe { nc_def_compound(compound.ncid, size, compound.name.as_ptr(), idp) };
        for (field, &offset) in compound.fields.iter().zip(&offsets) {
            if status != 0 {
                return Ok(());
            }
            let (name, ncid) = (field.name.as_ptr(), compound.ncid);
            // SAFETY: `idp` was written by nc_def_compound; names and sizes are ours.
            status = unsafe {
                if field.dims.is_empty() {
                    nc_insert_compound(ncid, *idp, name, offset, field.nc_type)
                } else {
                    let n = field.dims.len() as c_int;
                    let dims = field.dims.as_ptr();
                    nc_insert_array_compound(ncid, *idp, name, offset, field.nc_type, n, dims)
                }
            };
        }
        if status == 0 {
            tags().open.remove(&(tag as usize));
        }
        Ok(())
    });
    if prepared == 0 { status } else { prepared }
}

#[cfg(test)]
mod tests {
    use super::{CompoundDraft, FieldDraft, layout};

    #[test]
    fn fields_align_as_in_c() {
        let field =
            |nc_type, dims: &[i32]| FieldDraft { name: c"f".into(), nc_type, dims: dims.to_vec() };
        // struct { char c; double d; short s[3]; int i; signed char b; }
        let fields =
            vec![field(2, &[]), field(6, &[]), field(3, &[3]), field(4, &[]), field(1, &[])];
        let compound = CompoundDraft { ncid: 0, name: c"c".into(), fields };
        assert_eq!(layout(&compound), Ok((vec![0, 8, 16, 24, 28], 32)));
    }
}
