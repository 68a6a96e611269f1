//! Attributes and whole variables from one file to another.

use std::ffi::{c_char, c_int};

use zonda::slab::{Block, Blocks};
use zonda::{
    Dataset, ExtType, Format, GroupId, Hyperslab, NcError, Reserve, Values, VarId, VarRef,
};

use crate::boundary::{boundary, foreign_code};
use crate::c_memory::{CVlenSource, MallocSink, bytes};
use crate::failure::{CallFailure, CallResult};
use crate::handles::{self, FileRef};
use crate::types::{FIRST_USER_TYPE, NcType, TypeShape};
use crate::user_format::{composed, table_of};

/// Data travels in blocks of at most this many bytes, or of one element if that is larger.
const BLOCK_BYTES: usize = 4 << 20;

/// `int nc_copy_att(int ncid_in, int varid_in, const char *name, int ncid_out, int varid_out);`
///
/// Type and values stay as they are. An attribute copied onto itself is left alone, and its
/// existence not checked, as in the reference.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_copy_att(
    ncid_in: c_int,
    varid_in: c_int,
    name: *const c_char,
    ncid_out: c_int,
    varid_out: c_int,
) -> c_int {
    if [ncid_in, ncid_out].map(table_of).iter().any(Option::is_some) {
        // SAFETY: same contract.
        let copied =
            unsafe { composed::copy_att((ncid_in, varid_in), name, (ncid_out, varid_out)) };
        return foreign_code(copied);
    }
    boundary(|| {
        let to = handles::file(ncid_out)?;
        if ncid_in == ncid_out && varid_in == varid_out {
            return Ok(());
        }
        let from = handles::file(ncid_in)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::BadName)?;
        copy_att(&from.dataset, from.var(varid_in), name, &to.dataset, to.var(varid_out))
    })
}

/// A group of a file, without its handle: what copying goes on in.
type Within<'f> = (&'f Dataset, GroupId);

/// The type of the other file that stands for one of this: an atomic type for itself, a user-defined
/// one for the first that is called and made alike, of those in the group, in the groups around it,
/// and then in the whole file.
///
/// # Errors
/// `NC_EBADTYPE` where there is none.
fn type_in(from: Within<'_>, nc_type: NcType, to: Within<'_>) -> Result<NcType, CallFailure> {
    if nc_type < FIRST_USER_TYPE {
        return Ok(nc_type);
    }
    let (name, shape) = from.0.in_group(from.1, |meta| {
        Ok::<_, CallFailure>((meta.user_type(nc_type)?.name.clone(), TypeShape::of(meta, nc_type)?))
    })??;
    let found = to.0.in_group(to.1, |meta| {
        let fits = |&number: &NcType| {
            meta.user_type(number).is_ok_and(|ty| ty.name == name)
                && TypeShape::of(meta, number).is_ok_and(|other| other.is_like(&shape))
        };
        let mut around = Some(meta.group_id());
        while let Some(group) = around.and_then(|group| meta.group(group).ok()) {
            if let Some(&found) = group.type_ids().iter().find(|number| fits(number)) {
                return Some(found);
            }
            around = group.group_parent();
        }
        (FIRST_USER_TYPE..).take(meta.types().count()).find(fits)
    })?;
    Ok(found.ok_or(NcError::BadType)?)
}

fn copy_att(
    from: &Dataset,
    owner_in: VarRef,
    name: &[u8],
    to: &Dataset,
    owner_out: VarRef,
) -> CallResult {
    if to.format() == Format::NetCdf4Classic {
        // The reference looks for it there first.
        match to.in_group(owner_out.group, |meta| meta.find_att(owner_out.var, name).map(drop))? {
            Err(error) if error.code() != NcError::NotAtt => return Err(error.into()),
            _ => {}
        }
    }
    let (nc_type, len) = from.in_group(owner_in.group, |meta| {
        meta.find_att(owner_in.var, name).map(|(_, att)| (att.nc_type, att.len))
    })??;
    if ExtType::from_nc_type(nc_type).is_none() && !to.capabilities().user_types {
        // No classic file holds strings or values of user-defined types.
        return Err(NcError::BadType.into());
    }
    let len = usize::try_from(len).map_err(|_| NcError::NoMem)?;
    let out_type = type_in((from, owner_in.group), nc_type, (to, owner_out.group))?;
    let mut values = Vec::new();
    let mut place = MallocSink::default();
    // Without conversion nothing is out of range.
    let _ = from.get_att_list(owner_in, name, None, (&mut values, Some(&mut place)))?;
    // SAFETY: the values are those just placed, which are there until `place` goes.
    let mut memory = unsafe { CVlenSource::new() };
    let what = (out_type, len);
    let values = Values { bytes: &values, fetch: Some(&mut memory) };
    let _ = to.put_att_values(owner_out, name, what, values)?;
    Ok(())
}

/// `int nc_copy_var(int ncid_in, int varid_in, int ncid_out);`
///
/// Defines a variable of the same name, type and dimension names in the other file, copies its
/// attributes, and then its data. The other file is left in data mode; if its definitions are
/// refused, in define mode.
#[unsafe(no_mangle)]
pub extern "C" fn nc_copy_var(ncid_in: c_int, varid_in: c_int, ncid_out: c_int) -> c_int {
    if [ncid_in, ncid_out].map(table_of).iter().any(Option::is_some) {
        return foreign_code(composed::copy_var((ncid_in, varid_in), ncid_out));
    }
    boundary(|| {
        let from = handles::file(ncid_in)?;
        let source = Source::of(&from, VarId(varid_in))?;
        let mut dims = Vec::with_capacity(source.dim_names.len());
        for name in &source.dim_names {
            let to = handles::file(ncid_out)?;
            dims.push(to.meta(|meta| meta.find_dim(name))??.0);
        }
        let out = handles::file(ncid_out)?;
        let (from_group, to_group) = (from.group, out.group);
        let (from, to) = (&from.dataset, &out.dataset);
        let holds = match to.format().model() {
            Format::NetCdf4 | Format::NetCdf4Classic => true,
            Format::Cdf5 => ExtType::from_nc_type(source.nc_type).is_some(),
            _ => source.nc_type <= ExtType::Double.nc_type(),
        };
        if !holds && from.format() == Format::NetCdf4 {
            return Err(NcError::NotNc4.into());
        }
        let nc_type = type_in((from, from_group), source.nc_type, (to, to_group))?;

        match to.redef() {
            Err(error) if error.code() != NcError::InDefine => return Err(error.into()),
            _ => {}
        }
        let id = to.def_var_in(to_group, &source.name, nc_type, &dims)?;
        let id = VarRef { group: to_group, var: id };
        for name in &source.att_names {
            copy_att(from, source.id, name, to, id)?;
        }
        // What goes wrong here shows in the first put, whose code the caller gets.
        let _ = to.enddef(Reserve::Default);
        let _ = to.sync();
        source.copy_data(from, to, id)
    })
}

/// A variable to copy, as it was when the copy began.
struct Source {
    id: VarRef,
    name: Vec<u8>,
    nc_type: c_int,
    element_bytes: usize,
    dim_names: Vec<Vec<u8>>,
    att_names: Vec<Vec<u8>>,
    /// Current lengths; a scalar has one of length 1.
    shape: Vec<usize>,
}

impl Source {
    fn of(file: &FileRef, id: VarId) -> Result<Source, CallFailure> {
        if id == VarId::GLOBAL {
            return Err(NcError::NotVar.into());
        }
        file.meta(|meta| {
            let var = meta.var(id)?;
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(id, &mut shape)?;
            let mut dim_names = Vec::with_capacity(var.dims.len());
            for &dim in var.dims {
                dim_names.push(meta.dim(dim)?.name.to_vec());
            }
            let n_atts = meta.n_atts(id)?;
            let mut att_names = Vec::with_capacity(n_atts);
            for index in 0..n_atts {
                att_names.push(meta.att(id, index)?.name.into_owned());
            }
            Ok(Source {
                id: VarRef { group: file.group, var: id },
                name: var.name.to_vec(),
                nc_type: var.nc_type,
                element_bytes: meta.type_size(var.nc_type)?,
                dim_names,
                att_names,
                shape,
            })
        })?
    }

    /// Copies block after block. Where a block of several rows is refused, its rows go one by
    /// one, so that what precedes the row at fault arrives, as with the reference.
    fn copy_data(&self, from: &Dataset, to: &Dataset, id: VarRef) -> CallResult {
        let mut buffer = Vec::new();
        let rank = self.shape.len();
        if rank == 0 {
            return self.copy_block(from, to, id, &[], &[], &mut buffer);
        }
        // Rows without elements may be more than anybody can go through.
        if self.shape.contains(&0) {
            return Ok(());
        }
        let row_bytes =
            self.shape[1..].iter().fold(self.element_bytes, |size, &len| size.saturating_mul(len));
        if row_bytes > BLOCK_BYTES {
            return self.copy_large_rows(from, to, id, &mut buffer);
        }
        let rows_at_once = (BLOCK_BYTES / row_bytes.max(1)).max(1);
        let mut start = vec![0; rank];
        let mut count = self.shape.clone();
        while start[0] < self.shape[0] {
            count[0] = rows_at_once.min(self.shape[0] - start[0]);
            if self.copy_block(from, to, id, &start, &count, &mut buffer).is_err() {
                let end = start[0] + count[0];
                count[0] = 1;
                while start[0] < end {
                    self.copy_block(from, to, id, &start, &count, &mut buffer)?;
                    start[0] += 1;
                }
            } else {
                start[0] += count[0];
            }
        }
        Ok(())
    }

    /// Rows (indices of the first dimension) that are larger than a block: each in pieces.
    fn copy_large_rows(
        &self,
        from: &Dataset,
        to: &Dataset,
        id: VarRef,
        buffer: &mut Vec<u8>,
    ) -> CallResult {
        let rank = self.shape.len();
        // The target takes a row as a whole or not at all.
        let mut target = vec![0; rank];
        to.in_group(id.group, |meta| meta.var_shape(id.var, &mut target))??;
        if !to.capabilities().dialect.is_netcdf4()
            && !to.in_define_mode()
            && (1..rank).any(|d| target[d] < self.shape[d])
        {
            return Err(NcError::Edge.into());
        }
        let mut blocks = Blocks::of_shape(&self.shape, BLOCK_BYTES / self.element_bytes.max(1));
        while let Some(Block { slab, .. }) = blocks.next() {
            self.copy_block(from, to, id, slab.start, slab.count, buffer)?;
        }
        Ok(())
    }

    fn copy_block(
        &self,
        from: &Dataset,
        to: &Dataset,
        id: VarRef,
        start: &[usize],
        count: &[usize],
        buffer: &mut Vec<u8>,
    ) -> CallResult {
        let slab = Hyperslab { start, count, stride: None };
        let mut place = MallocSink::default();
        // Without conversion nothing is out of range.
        let _ = from.get_list(self.id, &slab, None, (buffer, Some(&mut place)))?;
        // SAFETY: the values are those just placed, which are there until `place` goes.
        let mut memory = unsafe { CVlenSource::new() };
        let values = Values { bytes: buffer, fetch: Some(&mut memory) };
        let _ = to.put_values(id, &slab, values)?;
        Ok(())
    }
}
