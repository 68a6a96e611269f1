//! What is in a file: groups, dimensions, variables, types, in few calls.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use zonda::{
    DimId, ExtType, FIRST_USER_TYPE, GroupId, Meta, NcError, StorageKind, UserClass, VarId, VarRef,
};

use crate::contents::{endian_name, storage_name};
use crate::file::File;
use crate::names::decoded;
use crate::types::{ElementForm, letters};

/// A variable by group and number.
pub(crate) fn var_ref(group: u16, var: i32) -> VarRef {
    VarRef { group: GroupId(group), var: VarId(var) }
}

pub(crate) struct Dim {
    id: i32,
    name: Vec<u8>,
    len: u64,
    is_unlimited: bool,
}

pub(crate) struct Var {
    pub(crate) id: usize,
    pub(crate) name: Vec<u8>,
    pub(crate) nc_type: i32,
    pub(crate) dims: Vec<i32>,
    pub(crate) shape: Vec<u64>,
}

/// What is defined in a group.
pub(crate) struct Group {
    name: Vec<u8>,
    path: Vec<u8>,
    parent: Option<u16>,
    groups: Vec<u16>,
    dims: Vec<Dim>,
    pub(crate) vars: Vec<Var>,
    types: Vec<i32>,
}

fn dim_of(meta: &Meta<'_>, id: DimId) -> zonda::Result<Dim> {
    let dim = meta.dim(id)?;
    Ok(Dim { id: id.0, name: dim.name.to_vec(), len: dim.len, is_unlimited: dim.is_unlimited })
}

/// The definitions of the group of `meta`.
pub(crate) fn group_of(meta: &Meta<'_>) -> zonda::Result<Group> {
    let vars = (0..meta.n_vars()).map(|id| {
        let var = meta.var(VarId(i32::try_from(id).unwrap_or(i32::MAX)))?;
        let mut shape = Vec::with_capacity(var.dims.len());
        for &dim in var.dims {
            shape.push(meta.dim(dim)?.len);
        }
        Ok(Var {
            id,
            name: var.name.to_vec(),
            nc_type: var.nc_type,
            dims: var.dims.iter().map(|dim| dim.0).collect(),
            shape,
        })
    });
    Ok(Group {
        name: meta.group_name().to_vec(),
        path: meta.group_path(),
        parent: meta.group_parent().map(|group| group.0),
        groups: meta.groups().iter().map(|group| group.0).collect(),
        vars: vars.collect::<zonda::Result<_>>()?,
        dims: meta.dim_ids().map(|id| dim_of(meta, id)).collect::<zonda::Result<_>>()?,
        types: meta.type_ids().to_vec(),
    })
}

/// Name, path, parent, groups, dimensions, variables (as given), types.
pub(crate) fn group_list<'py>(
    py: Python<'py>,
    found: &Group,
    vars: Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyList>> {
    let dims = PyList::empty(py);
    for dim in &found.dims {
        dims.append((dim.id, decoded(py, &dim.name)?, dim.len, dim.is_unlimited))?;
    }
    let list = PyList::empty(py);
    list.append(decoded(py, &found.name)?)?;
    list.append(decoded(py, &found.path)?)?;
    list.append(found.parent)?;
    list.append(&found.groups)?;
    list.append(dims)?;
    list.append(vars)?;
    list.append(&found.types)?;
    Ok(list)
}

#[pymethods]
impl File {
    /// Name, path, parent, groups, dimensions, variables, types of a group.
    fn group<'py>(&self, py: Python<'py>, group: u16) -> PyResult<Bound<'py, PyTuple>> {
        let found = self.call(py, |dataset| dataset.in_group(GroupId(group), group_of)?)?;
        let vars = PyList::empty(py);
        for var in &found.vars {
            let (ids, shape) = (PyTuple::new(py, &var.dims)?, PyTuple::new(py, &var.shape)?);
            vars.append((var.id, decoded(py, &var.name)?, var.nc_type, ids, shape))?;
        }
        Ok(group_list(py, &found, vars)?.to_tuple())
    }

    /// Name, length now, whether it is unlimited, and the group it is defined in.
    fn dim<'py>(&self, py: Python<'py>, group: u16, dim: i32) -> PyResult<Bound<'py, PyTuple>> {
        let (found, owner) = self.call(py, |dataset| {
            dataset.in_group(GroupId(group), |meta| {
                let found = dim_of(meta, DimId(dim))?;
                let mut at = GroupId(group);
                loop {
                    let around = meta.group(at)?;
                    if around.dim_ids().any(|id| id.0 == dim) {
                        return Ok((found, at.0));
                    }
                    match around.group_parent() {
                        Some(parent) => at = parent,
                        None => return Ok((found, GroupId::ROOT.0)),
                    }
                }
            })?
        })?;
        let name = decoded(py, &found.name)?;
        (name, found.len, found.is_unlimited, owner).into_pyobject(py)
    }

    /// What a type is.
    fn type_info<'py>(&self, py: Python<'py>, typeid: i32) -> PyResult<Bound<'py, PyDict>> {
        if typeid < FIRST_USER_TYPE {
            return atomic_info(py, typeid);
        }
        let info = PyDict::new(py);
        info.set_item("id", typeid)?;
        let (ty, form) = self.call(py, |dataset| {
            dataset.meta(|meta| {
                Ok((meta.user_type(typeid)?.clone(), ElementForm::of(meta, typeid).ok()))
            })
        })?;
        info.set_item("name", decoded(py, &ty.name)?)?;
        info.set_item("group", ty.group.0)?;
        info.set_item("size", ty.size)?;
        let (fields, members) = (PyList::empty(py), PyList::empty(py));
        let mut base = None;
        let class = match &ty.class {
            UserClass::Compound(found) => {
                for field in found {
                    let shape = PyTuple::new(py, &field.dims)?;
                    let name = decoded(py, &field.name)?;
                    fields.append((name, field.offset, field.nc_type, shape))?;
                }
                "compound"
            }
            UserClass::Enum { base: integer, members: found } => {
                base = Some(*integer);
                let letters = ExtType::from_nc_type(*integer).map_or("i4", letters);
                let frombuffer = py.import("numpy")?.getattr("frombuffer")?;
                for (name, value) in found {
                    let value =
                        frombuffer.call1((pyo3::types::PyBytes::new(py, value), letters))?;
                    let value = value.get_item(0)?.call_method0("item")?;
                    members.append((decoded(py, name)?, value))?;
                }
                "enum"
            }
            UserClass::Opaque => "opaque",
            UserClass::Vlen { base: item } => {
                base = Some(*item);
                "vlen"
            }
            UserClass::String => "string",
            UserClass::Unknown => "unknown",
        };
        info.set_item("class", class)?;
        info.set_item("base", base)?;
        info.set_item("fields", fields)?;
        info.set_item("members", members)?;
        info.set_item("dtype", form.map(|form| form.dtype(py)).transpose()?.flatten())?;
        Ok(info)
    }

    /// How a variable is stored: shape, chunks, filters, fill value and more.
    fn var_info<'py>(&self, py: Python<'py>, group: u16, var: i32) -> PyResult<Bound<'py, PyDict>> {
        let of = var_ref(group, var);
        let (shape, no_fill, has_fill, nc4) = self.call(py, |dataset| {
            let found = dataset.in_group(of.group, |meta| {
                let var = meta.var(of.var)?;
                let mut shape = Vec::with_capacity(var.dims.len());
                for &dim in var.dims {
                    shape.push(meta.dim(dim)?.len);
                }
                let no_fill = var.classic.is_some_and(|classic| classic.no_fill);
                Ok::<_, zonda::Error>((
                    shape,
                    no_fill,
                    meta.find_att(of.var, b"_FillValue").is_ok(),
                ))
            })??;
            let nc4 = match dataset.is_hdf5() {
                false => None,
                true => {
                    let info = dataset.var_info(of)?;
                    Some((info, dataset.var_quantize(of)?, dataset.chunk_cache(of)?))
                }
            };
            Ok((found.0, found.1, found.2, nc4))
        })?;
        let info = PyDict::new(py);
        info.set_item("shape", PyTuple::new(py, &shape)?)?;
        let (mut chunks, mut storage, mut endian, mut no_fill) =
            (None, "contiguous", "big", no_fill);
        let filters = PyList::empty(py);
        let (mut quantize, mut cache) = (None, None);
        if let Some((nc4, kept, sizes)) = &nc4 {
            if let StorageKind::Chunked(sizes) = &nc4.storage {
                chunks = Some(PyTuple::new(py, sizes)?);
            }
            storage = storage_name(&nc4.storage);
            endian = endian_name(nc4.endianness);
            for filter in &nc4.filters {
                let params = PyTuple::new(py, &filter.params)?;
                filters.append((filter.id, zonda::filter_name(filter.id), params))?;
            }
            no_fill = nc4.no_fill;
            quantize = kept.map(|kept| (kept.mode.number(), kept.kept));
            cache = Some(*sizes);
        }
        let fill = match has_fill {
            true => Some(self.att(py, group, var, crate::names::Name(b"_FillValue".to_vec()))?.1),
            false => None,
        };
        info.set_item("chunks", chunks)?;
        info.set_item("storage", storage)?;
        info.set_item("filters", filters)?;
        info.set_item("endian", endian)?;
        info.set_item("no_fill", no_fill)?;
        info.set_item("fill", fill)?;
        info.set_item("quantize", quantize)?;
        info.set_item("chunk_cache", cache)?;
        Ok(info)
    }

    /// Of every chunk that is stored: start in elements, address, bytes, filter mask.
    fn chunks<'py>(&self, py: Python<'py>, group: u16, var: i32) -> PyResult<Bound<'py, PyList>> {
        let of = var_ref(group, var);
        let mut found = self.call(py, |dataset| {
            let info = dataset.var_info(of)?;
            let StorageKind::Chunked(sizes) = &info.storage else { return Ok(Vec::new()) };
            let mut found = Vec::new();
            dataset.for_each_chunk(of, |key, place| {
                let start: Vec<u64> =
                    key.iter().zip(sizes).map(|(k, n)| k.saturating_mul(*n as u64)).collect();
                found.push((start, place));
            })?;
            Ok(found)
        })?;
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let list = PyList::empty(py);
        for (start, place) in found {
            list.append((PyTuple::new(py, start)?, place.at, place.len, place.mask))?;
        }
        Ok(list)
    }
}

/// What an atomic type is.
fn atomic_info(py: Python<'_>, typeid: i32) -> PyResult<Bound<'_, PyDict>> {
    let Some(form) = atomic(typeid) else {
        return Err(crate::errors::of_code(py, NcError::BadType, ""));
    };
    let info = PyDict::new(py);
    info.set_item("id", typeid)?;
    info.set_item("name", ATOMIC[(typeid - 1) as usize])?;
    info.set_item("group", 0)?;
    info.set_item("class", "atomic")?;
    info.set_item("size", form.size())?;
    info.set_item("base", py.None())?;
    info.set_item("fields", PyList::empty(py))?;
    info.set_item("members", PyList::empty(py))?;
    info.set_item("dtype", form.dtype(py)?)?;
    Ok(info)
}

/// Names of the types 1 to 12, as CDL has them.
const ATOMIC: [&str; 12] = [
    "byte", "char", "short", "int", "float", "double", "ubyte", "ushort", "uint", "int64",
    "uint64", "string",
];

fn atomic(typeid: i32) -> Option<ElementForm> {
    match ExtType::from_nc_type(typeid) {
        Some(ty) => Some(ElementForm::Atomic(ty)),
        None if typeid == zonda::NC_STRING => Some(ElementForm::Text),
        None => None,
    }
}
