//! Defining groups, dimensions, types, variables.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zonda::{DimId, Endianness, FilterSpec, GroupId, NcError, StorageRequest};

use crate::describe::var_ref;
use crate::errors;
use crate::file::File;
use crate::names::{Filter, Name};
use crate::objects::VlenStore;
use crate::types::ElementForm;

#[pymethods]
impl File {
    fn def_group(&self, py: Python<'_>, parent: u16, name: Name) -> PyResult<u16> {
        Ok(self.call(py, |dataset| dataset.def_group(GroupId(parent), &name.0))?.0)
    }

    fn rename_group(&self, py: Python<'_>, group: u16, name: Name) -> PyResult<()> {
        self.call(py, |dataset| dataset.rename_group(GroupId(group), &name.0))
    }

    /// A length of `None` is unlimited.
    #[pyo3(signature = (group, name, length))]
    fn def_dim(
        &self,
        py: Python<'_>,
        group: u16,
        name: Name,
        length: Option<usize>,
    ) -> PyResult<i32> {
        let length = length.unwrap_or(0);
        Ok(self.call(py, |dataset| dataset.def_dim_in(GroupId(group), &name.0, length))?.0)
    }

    fn rename_dim(&self, py: Python<'_>, group: u16, dim: i32, name: Name) -> PyResult<()> {
        self.call(py, |dataset| dataset.rename_dim_in(GroupId(group), DimId(dim), &name.0))
    }

    fn def_compound(
        &self,
        py: Python<'_>,
        group: u16,
        name: Name,
        size: usize,
        fields: Vec<(Name, usize, i32, Vec<i32>)>,
    ) -> PyResult<i32> {
        let group = GroupId(group);
        self.call(py, |dataset| {
            let id = dataset.def_compound(group, size, &name.0)?;
            for (field, offset, nc_type, dims) in &fields {
                dataset.insert_field((group, id), &field.0, *offset, *nc_type, dims)?;
            }
            Ok(id)
        })
    }

    fn def_vlen(&self, py: Python<'_>, group: u16, name: Name, base: i32) -> PyResult<i32> {
        self.call(py, |dataset| dataset.def_vlen(GroupId(group), &name.0, base))
    }

    fn def_opaque(&self, py: Python<'_>, group: u16, name: Name, size: usize) -> PyResult<i32> {
        self.call(py, |dataset| dataset.def_opaque(GroupId(group), size, &name.0))
    }

    fn def_enum(
        &self,
        py: Python<'_>,
        group: u16,
        name: Name,
        base: i32,
        members: Vec<(Name, i128)>,
    ) -> PyResult<i32> {
        let group = GroupId(group);
        let size = zonda::ExtType::from_nc_type(base).map_or(0, zonda::ExtType::size);
        let mut values = Vec::new();
        for (member, value) in members {
            // Native bytes of an integer of that size.
            let low = value.to_le_bytes();
            let fits = match size {
                1 => i128::from(i8::MIN)..=i128::from(u8::MAX),
                2 => i128::from(i16::MIN)..=i128::from(u16::MAX),
                4 => i128::from(i32::MIN)..=i128::from(u32::MAX),
                _ => i128::from(i64::MIN)..=i128::from(u64::MAX),
            };
            if !fits.contains(&value) {
                let text = format!("{value} does not fit the type of the enumeration");
                return Err(PyValueError::new_err(text));
            }
            let mut bytes = low[..size.min(8)].to_vec();
            if cfg!(target_endian = "big") {
                bytes.reverse();
            }
            values.push((member.0, bytes));
        }
        self.call(py, |dataset| {
            let id = dataset.def_enum(group, base, &name.0)?;
            for (member, value) in &values {
                dataset.insert_member((group, id), member, value)?;
            }
            Ok(id)
        })
    }

    fn def_var(
        &self,
        py: Python<'_>,
        group: u16,
        name: Name,
        typeid: i32,
        dims: Vec<i32>,
    ) -> PyResult<i32> {
        Ok(self.call(py, |dataset| dataset.def_var_in(GroupId(group), &name.0, typeid, &dims))?.0)
    }

    fn rename_var(&self, py: Python<'_>, group: u16, var: i32, name: Name) -> PyResult<()> {
        self.call(py, |dataset| dataset.rename_var(var_ref(group, var), &name.0))
    }

    /// The fill value, in whatever form an element of the variable has; `None`: nothing is filled.
    #[pyo3(signature = (group, var, value))]
    fn def_var_fill(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        value: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let of = var_ref(group, var);
        let Some(value) = value else {
            return self.call(py, |dataset| dataset.def_var_fill(of, true, None));
        };
        let form = self.form_of_var(py, of)?;
        let mut store = VlenStore::default();
        let bytes = store.element(&form, &value)?;
        self.call(py, |dataset| {
            let value = zonda::Values { bytes: &bytes, fetch: Some(&mut store) };
            dataset.def_var_fill_values(of, false, Some(value))
        })
    }

    /// The shape of chunks; `None`: contiguous.
    #[pyo3(signature = (group, var, chunks))]
    fn def_var_chunking(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        chunks: Option<Vec<usize>>,
    ) -> PyResult<()> {
        let storage = match chunks {
            Some(_) => StorageRequest::Chunked,
            None => StorageRequest::Contiguous,
        };
        self.call(py, |dataset| {
            dataset.def_var_chunking(var_ref(group, var), storage, chunks.as_deref())
        })
    }

    #[pyo3(signature = (group, var, level, shuffle))]
    fn def_var_deflate(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        level: Option<i32>,
        shuffle: bool,
    ) -> PyResult<()> {
        self.call(py, |dataset| dataset.def_var_deflate(var_ref(group, var), shuffle, level))
    }

    fn def_var_fletcher32(&self, py: Python<'_>, group: u16, var: i32, on: bool) -> PyResult<()> {
        self.call(py, |dataset| dataset.def_var_fletcher32(var_ref(group, var), on))
    }

    fn def_var_filter(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        filter: Filter,
        params: Vec<u32>,
    ) -> PyResult<()> {
        let Some(id) = filter.id() else {
            return Err(errors::of_code(py, NcError::NoFilter, "there is no filter of that name"));
        };
        // As in `nc_def_var_filter`: a filter that cannot be applied is an error.
        let spec = FilterSpec { id, optional: false, name: String::new(), params };
        self.call(py, |dataset| dataset.def_var_filter(var_ref(group, var), spec))
    }

    fn def_var_endian(&self, py: Python<'_>, group: u16, var: i32, endian: &str) -> PyResult<()> {
        let endianness = match endian {
            "native" => Endianness::Native,
            "little" => Endianness::Little,
            "big" => Endianness::Big,
            other => {
                return Err(PyValueError::new_err(format!("there is no byte order {other:?}")));
            }
        };
        self.call(py, |dataset| dataset.def_var_endian(var_ref(group, var), endianness))
    }

    fn def_var_quantize(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        mode: Bound<'_, PyAny>,
        digits: i32,
    ) -> PyResult<()> {
        let mode: i32 = match mode.extract::<String>() {
            Err(_) => mode.extract()?,
            Ok(name) => match &name[..] {
                "BitGroom" => 1,
                "GranularBitRound" => 2,
                "BitRound" => 3,
                other => {
                    return Err(PyValueError::new_err(format!("there is no mode {other:?}")));
                }
            },
        };
        self.call(py, |dataset| dataset.def_var_quantize(var_ref(group, var), mode, digits))
    }

    fn set_var_chunk_cache(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        bytes: usize,
        slots: usize,
        preemption: f32,
    ) -> PyResult<()> {
        let sizes = (bytes, slots, preemption);
        self.call(py, |dataset| dataset.set_chunk_cache(var_ref(group, var), sizes))
    }
}

impl File {
    /// The form of an element of a variable.
    pub(crate) fn form_of_var(&self, py: Python<'_>, of: zonda::VarRef) -> PyResult<ElementForm> {
        self.call(py, |dataset| {
            dataset.in_group(of.group, |meta| ElementForm::of(meta, meta.var(of.var)?.nc_type))?
        })
    }

    /// The form of an element of a type.
    pub(crate) fn form_of_type(&self, py: Python<'_>, typeid: i32) -> PyResult<ElementForm> {
        self.call(py, |dataset| dataset.meta(|meta| ElementForm::of(meta, typeid)))
    }
}
