//! Copies of one attribute or one variable between two open datasets, as `nc_copy_att` and `nc_copy_var`
//! make them. Copies of whole files are in [`crate::copy`].
//!
//! The order of the checks is that of the reference.

use zonda_format::{
    FIRST_USER_TYPE, Format, GroupId, Reserve, Values, VarRef, VlenSink, VlenSource,
};
use zonda_model::{ExtType, Hyperslab, NcError, VarId};
use zonda_slab::{Block, Blocks};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::tuning::OBJECT_COPY_BLOCK_BYTES;
use crate::type_shape::TypeShape;

/// A group of a dataset.
type DatasetGroup<'d> = (&'d Dataset, GroupId);

/// The type of the other file that corresponds to a type of this one: an atomic type to itself, a user-defined one to
/// the first type with the same name and shape, looked for in the group, in the groups around it, and then in the
/// whole file.
///
/// # Errors
/// `NC_EBADTYPE` where there is none.
fn matching_type(from: DatasetGroup<'_>, nc_type: i32, to: DatasetGroup<'_>) -> Result<i32> {
    if nc_type < FIRST_USER_TYPE {
        return Ok(nc_type);
    }
    let (name, shape) = from.0.in_group(from.1, |meta| {
        Ok::<_, crate::Error>((
            meta.user_type(nc_type)?.name.clone(),
            TypeShape::of(meta, nc_type)?,
        ))
    })??;
    let found = to.0.in_group(to.1, |meta| {
        let fits = |&number: &i32| {
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

/// Copies an attribute of a variable, or of a group, into another dataset, with type and values as they
/// are.
///
/// See [`copy`](crate::copy::copy()) for copies of whole files.
///
/// # Errors
/// `NC_ENOTATT`; `NC_EBADTYPE` for a type that the other dataset does not have; what reading it or
/// defining it gives.
pub fn copy_attribute(
    (from, owner_in): (&Dataset, VarRef),
    name: &[u8],
    (to, owner_out): (&Dataset, VarRef),
) -> Result<()> {
    if to.format() == Format::NetCdf4Classic {
        // The reference looks for it there first.
        match to.in_group(owner_out.group, |meta| meta.find_att(owner_out.var, name).map(drop))? {
            Err(error) if error.code() != NcError::NotAtt => return Err(error),
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
    let n_values = usize::try_from(len).map_err(|_| NcError::NoMem)?;
    let out_type = matching_type((from, owner_in.group), nc_type, (to, owner_out.group))?;
    let (mut bytes, mut vlens) = (Vec::new(), CopiedVlens::default());
    // Without conversion nothing is out of range.
    let _ = from.get_att_list(owner_in, name, None, (&mut bytes, Some(&mut vlens)))?;
    let values = Values { bytes: &bytes, fetch: Some(&mut vlens) };
    to.put_att_values(owner_out, name, (out_type, n_values), values).map(drop)
}

/// A variable to copy, as it was when the copy began.
///
/// See [`copy`](crate::copy::copy()) for copies of whole files.
#[derive(Debug)]
pub struct VarToCopy<'d> {
    source: &'d Dataset,
    id: VarRef,
    name: Vec<u8>,
    nc_type: i32,
    elem_bytes: usize,
    dim_names: Vec<Vec<u8>>,
    att_names: Vec<Vec<u8>>,
    /// Current lengths of its dimensions; a scalar has none.
    shape: Vec<usize>,
}

impl<'d> VarToCopy<'d> {
    /// Reads the definition of a variable.
    ///
    /// # Errors
    /// `NC_ENOTVAR` where there is no such variable.
    pub fn read(source: &'d Dataset, id: VarRef) -> Result<VarToCopy<'d>> {
        if id.var == VarId::GLOBAL {
            return Err(NcError::NotVar.into());
        }
        source.in_group(id.group, |meta| {
            let var = meta.var(id.var)?;
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(id.var, &mut shape)?;
            let mut dim_names = Vec::with_capacity(var.dims.len());
            for &dim in var.dims {
                dim_names.push(meta.dim(dim)?.name.to_vec());
            }
            let n_atts = meta.n_atts(id.var)?;
            let mut att_names = Vec::with_capacity(n_atts);
            for index in 0..n_atts {
                att_names.push(meta.att(id.var, index)?.name.into_owned());
            }
            Ok(VarToCopy {
                source,
                id,
                name: var.name.to_vec(),
                nc_type: var.nc_type,
                elem_bytes: meta.type_size(var.nc_type)?,
                dim_names,
                att_names,
                shape,
            })
        })?
    }

    /// Defines a variable of the same name, type and dimension names in a group of another dataset, and
    /// copies its attributes and then its data. The other dataset is left in data mode; if its definitions
    /// are refused, in define mode.
    ///
    /// # Errors
    /// `NC_EBADDIM` without one of the dimensions, `NC_ENOTNC4` and `NC_EBADTYPE` for a type that the other
    /// dataset cannot hold or does not have, and all that defining, reading and writing give.
    pub fn copy_to(&self, to: &Dataset, to_group: GroupId) -> Result<()> {
        let mut dims = Vec::with_capacity(self.dim_names.len());
        for name in &self.dim_names {
            dims.push(to.in_group(to_group, |meta| meta.find_dim(name))??.0);
        }
        let from = self.source;
        let holds = match to.format().model() {
            Format::NetCdf4 | Format::NetCdf4Classic => true,
            Format::Cdf5 => ExtType::from_nc_type(self.nc_type).is_some(),
            _ => self.nc_type <= ExtType::Double.nc_type(),
        };
        if !holds && from.format() == Format::NetCdf4 {
            return Err(NcError::NotNc4.into());
        }
        let nc_type = matching_type((from, self.id.group), self.nc_type, (to, to_group))?;

        match to.redef() {
            Err(error) if error.code() != NcError::InDefine => return Err(error),
            _ => {}
        }
        let id = to.def_var_in(to_group, &self.name, nc_type, &dims)?;
        let id = VarRef { group: to_group, var: id };
        for name in &self.att_names {
            copy_attribute((from, self.id), name, (to, id))?;
        }
        // What goes wrong here shows in the first put, whose code the caller gets.
        let _ = to.enddef(Reserve::Default);
        let _ = to.sync();
        self.copy_data(to, id)
    }

    /// Copies block after block. Where a block of several rows is refused, its rows go one by
    /// one, so that what precedes the row at fault arrives, as with the reference.
    fn copy_data(&self, to: &Dataset, id: VarRef) -> Result<()> {
        let mut buffer = Vec::new();
        let rank = self.shape.len();
        if rank == 0 {
            return self.copy_block(to, id, &[], &[], &mut buffer);
        }
        // There may be more rows without elements than could be gone through in any time.
        if self.shape.contains(&0) {
            return Ok(());
        }
        let row_bytes =
            self.shape[1..].iter().fold(self.elem_bytes, |size, &len| size.saturating_mul(len));
        if row_bytes > OBJECT_COPY_BLOCK_BYTES {
            return self.copy_large_rows(to, id, &mut buffer);
        }
        let rows_at_once = (OBJECT_COPY_BLOCK_BYTES / row_bytes.max(1)).max(1);
        let mut start = vec![0; rank];
        let mut count = self.shape.clone();
        while start[0] < self.shape[0] {
            count[0] = rows_at_once.min(self.shape[0] - start[0]);
            if self.copy_block(to, id, &start, &count, &mut buffer).is_err() {
                let end = start[0] + count[0];
                count[0] = 1;
                while start[0] < end {
                    self.copy_block(to, id, &start, &count, &mut buffer)?;
                    start[0] += 1;
                }
            } else {
                start[0] += count[0];
            }
        }
        Ok(())
    }

    /// Copies rows (indices of the first dimension) that are larger than a block, each in pieces.
    fn copy_large_rows(&self, to: &Dataset, id: VarRef, buffer: &mut Vec<u8>) -> Result<()> {
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
        let mut blocks =
            Blocks::of_shape(&self.shape, OBJECT_COPY_BLOCK_BYTES / self.elem_bytes.max(1));
        while let Some(Block { slab, .. }) = blocks.next() {
            self.copy_block(to, id, slab.start, slab.count, buffer)?;
        }
        Ok(())
    }

    fn copy_block(
        &self,
        to: &Dataset,
        id: VarRef,
        start: &[usize],
        count: &[usize],
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let slab = Hyperslab { start, count, stride: None };
        let mut vlens = CopiedVlens::default();
        // Without conversion nothing is out of range.
        let _ = self.source.get_list(self.id, &slab, None, (buffer, Some(&mut vlens)))?;
        let values = Values { bytes: buffer, fetch: Some(&mut vlens) };
        to.put_values(id, &slab, values).map(drop)
    }
}

/// Strings and sequences between two files. Elements hold their numbers, from 1 on.
#[derive(Debug, Default)]
struct CopiedVlens {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl CopiedVlens {
    fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }
}

impl VlenSink for CopiedVlens {
    fn place(&mut self, bytes: &[u8], text: bool) -> Option<u64> {
        // A string ends at its first NUL, as it does for a program that copies it through C memory.
        let len = if text { bytes.iter().position(|&byte| byte == 0) } else { None };
        let bytes = &bytes[..len.unwrap_or(bytes.len())];
        self.bytes.try_reserve(bytes.len()).ok()?;
        self.ends.try_reserve(1).ok()?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        Some(self.ends.len() as u64)
    }
}

impl VlenSource for CopiedVlens {
    fn text(&mut self, number: u64) -> Option<&[u8]> {
        self.get(number)
    }

    fn items(&mut self, number: u64, len: usize) -> &[u8] {
        self.get(number).and_then(|bytes| bytes.get(..len)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use zonda_format::NC_STRING;

    use super::*;
    use crate::CreateOptions;

    fn create() -> Dataset {
        let storage = Arc::new(zonda_storage::backend::Memory::new());
        let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
        Dataset::create_in(storage, Path::new("test"), &options).unwrap()
    }

    #[test]
    fn strings_arrive_with_their_variable() {
        let (from, to) = (create(), create());
        let dim = from.def_dim(b"x", 3).unwrap();
        to.def_dim(b"x", 3).unwrap();
        let var = from.def_var(b"names", NC_STRING, &[dim.0]).unwrap();
        let mut vlens = CopiedVlens::default();
        let numbers = [vlens.place(b"one", true), vlens.place(b"", true), Some(0)];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.unwrap().to_ne_bytes()).collect();
        let values = || Values { bytes: &bytes, fetch: None };
        let att = Values { fetch: Some(&mut vlens), ..values() };
        let _ = from.put_att_values(var, b"labels", (NC_STRING, 3), att).unwrap();
        let slab = Hyperslab { start: &[0], count: &[3], stride: None };
        let put = Values { fetch: Some(&mut vlens), ..values() };
        let _ = from.put_values(var, &slab, put).unwrap();

        let owner = VarRef { group: GroupId::ROOT, var };
        VarToCopy::read(&from, owner).unwrap().copy_to(&to, GroupId::ROOT).unwrap();
        let copy = to.meta(|meta| meta.find_var(b"names")).unwrap();
        let texts = |bytes: &[u8], vlens: &CopiedVlens| -> Vec<Option<Vec<u8>>> {
            let numbers = bytes.as_chunks::<8>().0.iter().map(|n| u64::from_ne_bytes(*n));
            numbers.map(|number| vlens.get(number).map(<[u8]>::to_vec)).collect()
        };
        let (mut list, mut found) = (Vec::new(), CopiedVlens::default());
        let _ = to.get_list(copy, &slab, None, (&mut list, Some(&mut found))).unwrap();
        assert_eq!(texts(&list, &found), [Some(b"one".to_vec()), Some(Vec::new()), None]);
        let mut found = CopiedVlens::default();
        let _ = to.get_att_list(copy, b"labels", None, (&mut list, Some(&mut found))).unwrap();
        assert_eq!(texts(&list, &found)[0], Some(b"one".to_vec()));
    }
}
