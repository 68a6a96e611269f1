//! Variables: definitions, inquiries, names, fill values. Their data is in `transfer.rs`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use zonda::{
    Dataset, ExtType, Format, MAX_NAME_BYTES, MAX_VAR_DIMS, NcError, Values, VarId, VarView,
    check_name, default_fill, memory,
};

use crate::answers::{self, Moment, VarPlaces};
use crate::boundary::boundary;
use crate::c_memory::{CVlenSource, MallocSink, bytes, c_count, put, put_list, put_text, slice};
use crate::failure::{CallFailure, CallResult};
use crate::file::nc_inq_natts;
use crate::handles::{self, FileRef};
use crate::types::NcType;
use crate::user_format::members::{self, VarProperty};
use crate::user_format::{member, to_user_format};

/// Calls `f` with a variable.
fn with_var(ncid: c_int, varid: c_int, f: impl FnOnce(&VarView<'_>)) -> CallResult {
    let file = handles::file(ncid)?;
    file.meta(|meta| meta.var(VarId(varid)).map(|var| f(&var)))??;
    Ok(())
}

/// The type of that number, if files of that format have it.
pub(crate) fn type_of_format(format: Format, nc_type: NcType) -> Option<ExtType> {
    ExtType::from_nc_type(nc_type)
        .filter(|&ty| format.model() == Format::Cdf5 || ty <= ExtType::Double)
}

/// The failure of a definition whose dimension list cannot be read: that of the first check before the list
/// that fails, else `NC_EINVAL`.
fn failure_without_dims(dataset: &Dataset, name: &[u8], xtype: NcType) -> CallFailure {
    let refused = || {
        if dataset.capabilities().dialect.is_netcdf4() {
            if dataset.format() == Format::NetCdf4Classic && !dataset.in_define_mode() {
                return Err(NcError::NotInDefine);
            }
            check_name(name)?;
            return Err(if xtype == 0 { NcError::BadType } else { NcError::Inval });
        }
        if !dataset.in_define_mode() {
            return Err(NcError::NotInDefine);
        }
        check_name(name)?;
        type_of_format(dataset.format(), xtype).ok_or(NcError::BadType)?;
        Err(NcError::Inval)
    };
    match refused() {
        Ok(()) => NcError::Inval.into(),
        Err(code) => code.into(),
    }
}

/// `int nc_def_var(int ncid, const char *name, nc_type xtype, int ndims, const int *dimids,
/// int *varidp);`
///
/// # Safety
/// `name` is null or a NUL-terminated string; `dimids` is null or holds `ndims` ids; `varidp` is
/// null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var(
    ncid: c_int,
    name: *const c_char,
    xtype: NcType,
    ndims: c_int,
    dimids: *const c_int,
    varidp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, def_var(ncid, name, xtype, ndims, dimids, varidp));
    /// One more than allowed: the engine refuses it without looking at the ids.
    static TOO_MANY: [c_int; MAX_VAR_DIMS + 1] = [0; MAX_VAR_DIMS + 1];
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let dims = match usize::try_from(ndims) {
            Ok(n) if n > MAX_VAR_DIMS => &TOO_MANY[..],
            Ok(n) if n == 0 || !dimids.is_null() => {
                // SAFETY: the contract above.
                unsafe { slice(dimids, n) }
            }
            // A file open for reading refuses every definition.
            _ if !file.dataset.is_writable() => &[][..],
            _ => return Err(failure_without_dims(&file.dataset, name, xtype)),
        };
        let var = file.dataset.def_var_in(file.group, name, xtype, dims);
        let var = var.map_err(|error| file.failure(error))?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(varidp, var.0) };
        Ok(())
    })
}

/// `int nc_rename_var(int ncid, int varid, const char *name);`
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rename_var(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    to_user_format!(ncid, rename_var(ncid, varid, name));
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        let renamed = file.dataset.rename_var(file.var(varid), name);
        renamed.map_err(|error| file.failure(error))
    })
}

/// `int nc_def_var_fill(int ncid, int varid, int no_fill, const void *fill_value);`
///
/// # Safety
/// `fill_value` is null, or holds one element of the variable's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var_fill(
    ncid: c_int,
    varid: c_int,
    no_fill: c_int,
    fill_value: *const c_void,
) -> c_int {
    to_user_format!(ncid, |table| match VarId(varid) {
        VarId::GLOBAL => NcError::Global.code(),
        _ => member!(table, def_var_fill(ncid, varid, no_fill, fill_value)),
    });
    boundary(|| {
        let var = VarId(varid);
        if var == VarId::GLOBAL {
            handles::any_group(ncid)?;
            return Err(NcError::Global.into());
        }
        let file = handles::file(ncid)?;
        // That a variable does not exist is found when it is defined, below.
        let size = file
            .meta(|meta| meta.var(var).and_then(|var| meta.type_size(var.nc_type)).unwrap_or(0))?;
        let has_value = !fill_value.is_null() && no_fill == 0 && size != 0;
        // SAFETY: the contract gives one element.
        let value = has_value.then(|| unsafe { slice(fill_value.cast::<u8>(), size) });
        // SAFETY: the same.
        let mut memory = unsafe { CVlenSource::new() };
        let value = value.map(|bytes| Values { bytes, fetch: Some(&mut memory) });
        let defined = file.dataset.def_var_fill_values(file.var(varid), no_fill != 0, value);
        defined.map_err(|error| file.failure(error))
    })
}

/// `int nc_inq_varid(int ncid, const char *name, int *varidp);`
///
/// Without a place for the answer a netCDF-4 file is not searched, as in the reference.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `varidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_varid(
    ncid: c_int,
    name: *const c_char,
    varidp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, inq_varid(ncid, name, varidp));
    boundary(|| {
        if varidp.is_null() && handles::any_group(ncid)?.dataset.capabilities().dialect.is_netcdf4()
        {
            return Ok(());
        }
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::Inval)?;
        if file.dataset.capabilities().dialect.is_netcdf4() && name.len() > MAX_NAME_BYTES {
            return Err(NcError::MaxName.into());
        }
        let var = file.meta(|meta| meta.find_var(name))??;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(varidp, var.0) };
        Ok(())
    })
}

/// `int nc_inq_var(int ncid, int varid, char *name, nc_type *xtypep, int *ndimsp, int *dimidsp,
/// int *nattsp);`
///
/// # Safety
/// Each pointer is null or valid for its result: `name` for `NC_MAX_NAME + 1` bytes, `dimidsp` for
/// an id per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var(
    ncid: c_int,
    varid: c_int,
    name: *mut c_char,
    xtypep: *mut NcType,
    ndimsp: *mut c_int,
    dimidsp: *mut c_int,
    nattsp: *mut c_int,
) -> c_int {
    let to = VarPlaces { name, nc_type: xtypep, n_dims: ndimsp, dims: dimidsp, n_atts: nattsp };
    // SAFETY: same contract.
    if unsafe { answers::var(ncid, varid, to) } {
        return 0;
    }
    to_user_format!(ncid, |table| {
        let lists = (ndimsp, dimidsp, nattsp);
        // SAFETY: same contract.
        unsafe { members::inq_var(table, (ncid, varid), name, xtypep, lists) }
    });
    boundary(|| {
        let n_closed = handles::n_closed();
        let file = handles::file(ncid)?;
        let moment = Moment::of(n_closed, &file);
        let id = VarId(varid);
        file.meta(|meta| {
            // SAFETY: the contract above covers each of these.
            unsafe {
                if id == VarId::GLOBAL
                    && file.dataset.capabilities().dialect.is_netcdf4()
                    && !nattsp.is_null()
                {
                    // The reference then answers with the attributes of the group, and nothing else.
                    nattsp.write(c_count(meta.n_atts(id)?));
                    return Ok(());
                }
                let var = meta.var(id)?;
                put_text(name, var.name);
                put(xtypep, var.nc_type);
                put(ndimsp, c_count(var.dims.len()));
                put_list(dimidsp, var.dims.iter().map(|dim| dim.0));
                if !nattsp.is_null() {
                    nattsp.write(c_count(meta.n_atts(id)?));
                }
            }
            answers::keep_var((ncid, varid), &moment, meta);
            Ok(())
        })?
    })
}

/// `int nc_inq_varname(int ncid, int varid, char *name);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_varname(ncid: c_int, varid: c_int, name: *mut c_char) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        nc_inq_var(ncid, varid, name, null_mut(), null_mut(), null_mut(), null_mut())
    });
    // SAFETY: the contract above is that of `put_text`.
    boundary(|| with_var(ncid, varid, |var| unsafe { put_text(name, var.name) }))
}

/// `int nc_inq_vartype(int ncid, int varid, nc_type *xtypep);`
///
/// # Safety
/// `xtypep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_vartype(ncid: c_int, varid: c_int, xtypep: *mut NcType) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        nc_inq_var(ncid, varid, null_mut(), xtypep, null_mut(), null_mut(), null_mut())
    });
    // SAFETY: the contract above is `put`'s contract.
    boundary(|| with_var(ncid, varid, |var| unsafe { put(xtypep, var.nc_type) }))
}

/// `int nc_inq_varndims(int ncid, int varid, int *ndimsp);`
///
/// # Safety
/// `ndimsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_varndims(ncid: c_int, varid: c_int, ndimsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        nc_inq_var(ncid, varid, null_mut(), null_mut(), ndimsp, null_mut(), null_mut())
    });
    // SAFETY: the contract above is `put`'s contract.
    boundary(|| with_var(ncid, varid, |var| unsafe { put(ndimsp, c_count(var.dims.len())) }))
}

/// `int nc_inq_vardimid(int ncid, int varid, int *dimidsp);`
///
/// # Safety
/// `dimidsp` is null, or valid for an id per dimension of the variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_vardimid(ncid: c_int, varid: c_int, dimidsp: *mut c_int) -> c_int {
    // SAFETY: the contract above covers the only pointer that is not null.
    unsafe { nc_inq_var(ncid, varid, null_mut(), null_mut(), null_mut(), dimidsp, null_mut()) }
}

/// `int nc_inq_varnatts(int ncid, int varid, int *nattsp);`
///
/// For `NC_GLOBAL` the number of global attributes.
///
/// # Safety
/// `nattsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_varnatts(ncid: c_int, varid: c_int, nattsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        let none = null_mut();
        match VarId(varid) {
            VarId::GLOBAL => nc_inq_natts(ncid, nattsp),
            _ => nc_inq_var(ncid, varid, none, null_mut(), null_mut(), null_mut(), nattsp),
        }
    });
    boundary(|| {
        if nattsp.is_null() && VarId(varid) == VarId::GLOBAL {
            handles::any_group(ncid)?;
            return Ok(());
        }
        let n = handles::file(ncid)?.meta(|meta| meta.n_atts(VarId(varid)))??;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(nattsp, c_count(n)) };
        Ok(())
    })
}

/// `int nc_inq_var_fill(int ncid, int varid, int *no_fill, void *fill_value);`
///
/// The value is that of `_FillValue` where the variable has one, else the default of its type.
///
/// # Safety
/// `no_fill` is null, or valid for a write; `fill_value` is null, or has room for one element of
/// the variable's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_fill(
    ncid: c_int,
    varid: c_int,
    no_fill: *mut c_int,
    fill_value: *mut c_void,
) -> c_int {
    let property = VarProperty::Fill(no_fill, fill_value);
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe { members::var_property(table, (ncid, varid), property) });
    boundary(|| {
        let file = handles::file(ncid)?;
        if file.dataset.capabilities().storage {
            // SAFETY: same contract.
            return unsafe { fill_of_nc4(&file, varid, no_fill, fill_value) };
        }
        let id = VarId(varid);
        let (ty, unfilled) = file.meta(|meta| {
            meta.var(id).map(|var| (var.ty(), var.classic.is_some_and(|var| var.no_fill)))
        })??;
        let ty = ty.ok_or(NcError::BadType)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(no_fill, c_int::from(unfilled)) };
        if !fill_value.is_null() {
            let mut value = default_fill(ty).to_vec();
            match file.dataset.get_att_list(id, b"_FillValue", None, (&mut value, None)) {
                Err(error) if error.code() != NcError::NotAtt => return Err(error.into()),
                _ => {}
            }
            // An attribute of another type or length never overruns the one element.
            let n_bytes = ty.size().min(value.len());
            // SAFETY: room for an element of the variable's type is the contract.
            unsafe { fill_value.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), n_bytes) };
        }
        Ok(())
    })
}

/// [`nc_inq_var_fill`] of a netCDF-4 file, where the fill value may be of any type. A variable that is
/// not filled has none, and nothing is written.
///
/// # Safety
/// As [`nc_inq_var_fill`].
unsafe fn fill_of_nc4(
    file: &FileRef,
    varid: c_int,
    no_fill: *mut c_int,
    fill_value: *mut c_void,
) -> CallResult {
    let var = file.var(varid);
    let size = file.meta(|meta| meta.type_size(meta.var(var.var)?.nc_type))??;
    let info = file.dataset.var_info(var)?;
    // SAFETY: the contract above is `put`'s contract.
    unsafe { put(no_fill, c_int::from(info.no_fill)) };
    if fill_value.is_null() || info.no_fill {
        return Ok(());
    }
    let mut value = memory::filled(size, 0).map_err(NcError::from)?;
    let mut place = MallocSink::default();
    file.dataset.fill_value(var, &mut place, &mut value)?;
    place.keep();
    // SAFETY: room for an element of the variable's type is the contract.
    unsafe { fill_value.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), size) };
    Ok(())
}
