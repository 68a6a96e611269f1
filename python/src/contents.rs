//! All that opening a group needs to know of it, in one call: what is read is read without the GIL, and Python
//! objects that recur (dimensions, filters, names of attributes) are made once.

use std::collections::HashMap;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use zonda::{Dataset, Endianness, ExtType, GroupId, NC_STRING, StorageKind, VarId, VarRef};

use crate::att::{self, Att, Values};
use crate::describe::{Group, Var, group_list, group_of};
use crate::errors;
use crate::file::File;
use crate::names::decoded;
use crate::rules;
use crate::types::ElementForm;

/// How a variable is stored, as far as an xarray encoding says it.
struct Layout {
    storage: &'static str,
    chunks: Option<Vec<usize>>,
    filters: Vec<(u32, Vec<u32>)>,
    endian: &'static str,
}

impl Layout {
    /// The storage of every variable of a classic file.
    const CLASSIC: Layout =
        Layout { storage: "contiguous", chunks: None, filters: Vec::new(), endian: "big" };

    fn of(dataset: &Dataset, var: VarRef) -> zonda::Result<Layout> {
        if !dataset.is_hdf5() {
            return Ok(Layout::CLASSIC);
        }
        let info = dataset.var_info(var)?;
        let chunks = match &info.storage {
            StorageKind::Chunked(sizes) => Some(sizes.clone()),
            _ => None,
        };
        let filters = info.filters.iter().map(|filter| (filter.id, filter.params.clone()));
        Ok(Layout {
            storage: storage_name(&info.storage),
            chunks,
            filters: filters.collect(),
            endian: endian_name(info.endianness),
        })
    }
}

/// Name of a kind of storage in Python.
pub(crate) fn storage_name(kind: &StorageKind) -> &'static str {
    match kind {
        StorageKind::Contiguous => "contiguous",
        StorageKind::Compact => "compact",
        StorageKind::Chunked(_) => "chunked",
        StorageKind::External => "external",
        StorageKind::Virtual => "virtual",
    }
}

/// Name of a byte order in Python.
pub(crate) fn endian_name(order: Endianness) -> &'static str {
    match order {
        Endianness::Native => "native",
        Endianness::Little => "little",
        Endianness::Big => "big",
    }
}

/// A group as it was read: each part, or the error of reading it.
struct Contents {
    group: Group,
    /// Names of the dimensions that variables have; some are defined in groups around this one.
    dims: HashMap<i32, Vec<u8>>,
    layouts: Vec<zonda::Result<Layout>>,
    /// Attributes of the variables, and last those of the group.
    atts: Vec<zonda::Result<Vec<Att>>>,
}

/// An error about one object alone is kept in its place; other errors end the call.
fn own<T>(found: zonda::Result<T>) -> zonda::Result<zonda::Result<T>> {
    match found {
        Err(error) if !att::is_its_own(&error) => Err(error),
        found => Ok(found),
    }
}

fn read(dataset: &Dataset, id: GroupId) -> zonda::Result<Contents> {
    let (group, dims) = dataset.in_group(id, |meta| {
        let group = group_of(meta)?;
        let mut dims = HashMap::new();
        for dim in group.vars.iter().flat_map(|var| &var.dims) {
            if !dims.contains_key(dim) {
                dims.insert(*dim, meta.dim(zonda::DimId(*dim))?.name.to_vec());
            }
        }
        Ok::<_, zonda::Error>((group, dims))
    })??;
    let (mut layouts, mut atts) = (Vec::new(), Vec::new());
    for var in &group.vars {
        let of = VarRef { group: id, var: VarId(i32::try_from(var.id).unwrap_or(i32::MAX)) };
        layouts.push(own(Layout::of(dataset, of))?);
        atts.push(own(att::all(dataset, of))?);
    }
    atts.push(own(att::all(dataset, VarRef { group: id, var: VarId::GLOBAL }))?);
    Ok(Contents { group, dims, layouts, atts })
}

/// Single numbers that recur, by their type and bytes.
#[derive(Default)]
pub(crate) struct Scalars<'py>(HashMap<(i32, [u8; 8]), Bound<'py, PyAny>>);

impl<'py> Scalars<'py> {
    /// A scalar of type `ty`, made once for each value.
    pub(crate) fn one(
        &mut self,
        py: Python<'py>,
        nc_type: i32,
        ty: ExtType,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = *from;
        }
        let key = (nc_type, word);
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let made = numbers(py, ty, bytes).get_item(0)?;
        self.0.insert(key, made.clone());
        Ok(made)
    }
}

/// Python objects that are used more than once.
struct SharedObjects<'a, 'py> {
    py: Python<'py>,
    dims: &'a HashMap<i32, Vec<u8>>,
    names: HashMap<&'a [u8], Bound<'py, PyString>>,
    shapes: HashMap<&'a [i32], [Bound<'py, PyTuple>; 3]>,
    chunks: HashMap<&'a [usize], Bound<'py, PyTuple>>,
    filters: HashMap<&'a [(u32, Vec<u32>)], Bound<'py, PyTuple>>,
    scalars: Scalars<'py>,
    /// Of what cannot be read: variable, attribute (None: all of them), the exception.
    faults: Bound<'py, PyList>,
}

impl<'a, 'py> SharedObjects<'a, 'py> {
    fn name(&mut self, name: &'a [u8]) -> PyResult<Bound<'py, PyString>> {
        if let Some(known) = self.names.get(name) {
            return Ok(known.clone());
        }
        let made = decoded(self.py, name)?;
        self.names.insert(name, made.clone());
        Ok(made)
    }

    /// Numbers, lengths and names of dimensions.
    fn shape(&mut self, var: &'a Var) -> PyResult<[Bound<'py, PyTuple>; 3]> {
        if let Some(known) = self.shapes.get(var.dims.as_slice()) {
            return Ok(known.clone());
        }
        let mut names = Vec::with_capacity(var.dims.len());
        for dim in &var.dims {
            names.push(match self.dims.get(dim) {
                Some(name) => self.name(name)?,
                None => PyString::new(self.py, ""),
            });
        }
        let py = self.py;
        let made =
            [PyTuple::new(py, &var.dims)?, PyTuple::new(py, &var.shape)?, PyTuple::new(py, names)?];
        self.shapes.insert(&var.dims, made.clone());
        Ok(made)
    }

    fn chunk_shape(&mut self, sizes: &'a [usize]) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(known) = self.chunks.get(sizes) {
            return Ok(known.clone());
        }
        let made = PyTuple::new(self.py, sizes)?;
        self.chunks.insert(sizes, made.clone());
        Ok(made)
    }

    fn pipeline(&mut self, filters: &'a [(u32, Vec<u32>)]) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(known) = self.filters.get(filters) {
            return Ok(known.clone());
        }
        let mut listed = Vec::with_capacity(filters.len());
        for (id, params) in filters {
            let params = PyTuple::new(self.py, params)?;
            listed.push((*id, zonda::filter_name(*id), params).into_pyobject(self.py)?);
        }
        let made = PyTuple::new(self.py, listed)?;
        self.filters.insert(filters, made.clone());
        Ok(made)
    }

    fn variable(
        &mut self,
        var: &'a Var,
        layout: &'a zonda::Result<Layout>,
        atts: &'a zonda::Result<Vec<Att>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = self.py;
        let [ids, shape, dims] = self.shape(var)?;
        let rules = match (ExtType::from_nc_type(var.nc_type), atts) {
            (Some(ty), Ok(atts)) if ty != ExtType::Char => rules::of_xarray(ty, atts),
            _ => None,
        };
        let rules = rules.map(|rules| rules::given_to_xarray(py, &rules, &mut self.scalars));
        let rules = rules.transpose()?;
        let atts = self.attributes(var.id.into_pyobject(py)?.into_any(), atts)?;
        let name = decoded(py, &var.name)?;
        let (storage, chunks, filters, endian) = match layout {
            Ok(layout) => (
                PyString::intern(py, layout.storage).into_any(),
                layout.chunks.as_deref().map(|sizes| self.chunk_shape(sizes)).transpose()?,
                self.pipeline(&layout.filters)?,
                PyString::intern(py, layout.endian),
            ),
            Err(error) => {
                let error = errors::raise(py, error).into_value(py).into_bound(py);
                (error.into_any(), None, PyTuple::empty(py), PyString::intern(py, "native"))
            }
        };
        let (id, nc_type) = (var.id, var.nc_type);
        (id, name, nc_type, ids, shape, dims, storage, chunks, filters, endian, atts, rules)
            .into_pyobject(py)
    }

    /// Attributes by name. Those that cannot be read are noted in `faults`.
    fn attributes(
        &mut self,
        owner: Bound<'py, PyAny>,
        atts: &'a zonda::Result<Vec<Att>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, listed) = (self.py, PyDict::new(self.py));
        let atts = match atts {
            Ok(atts) => atts,
            Err(error) => {
                let error = errors::raise(py, error).into_value(py);
                self.faults.append((owner, py.None(), error))?;
                return Ok(listed);
            }
        };
        for att in atts {
            let name = self.name(&att.name)?;
            match &att.values {
                Ok(values) => listed.set_item(name, self.value(att, values)?)?,
                Err(error) => {
                    let error = errors::raise(py, error).into_value(py);
                    self.faults.append((&owner, name, error))?;
                }
            }
        }
        Ok(listed)
    }

    /// A value as netCDF4-python gives it: text without nulls, one number as a scalar, one string as such.
    fn value(&mut self, att: &'a Att, values: &'a Values) -> PyResult<Bound<'py, PyAny>> {
        let (py, bytes) = (self.py, values.bytes.as_slice());
        match &values.form {
            ElementForm::Atomic(ExtType::Char) => {
                // The reader decides what the fill value of a variable of characters means, which may be a null.
                Ok(text(py, bytes, att.name == b"_FillValue")?.into_any())
            }
            ElementForm::Atomic(ty) if bytes.len() == ty.size() => {
                self.scalars.one(py, att.nc_type, *ty, bytes)
            }
            ElementForm::Atomic(ty) => Ok(numbers(py, *ty, bytes)),
            form => {
                let many = att::raw(py, att.nc_type, values)?;
                if att.nc_type == NC_STRING {
                    let list = PyList::empty(py);
                    for one in many.try_iter()? {
                        list.append(without_nulls(one?.cast_into::<PyString>()?)?)?;
                    }
                    return if list.len() == 1 { list.get_item(0) } else { Ok(list.into_any()) };
                }
                let is_one = !matches!(form, ElementForm::Sequence(_)) && many.len()? == 1;
                if is_one { many.get_item(0) } else { Ok(many) }
            }
        }
    }
}

fn without_nulls(text: Bound<'_, PyString>) -> PyResult<Bound<'_, PyString>> {
    match text.to_str() {
        Ok(plain) if !plain.contains('\0') => Ok(text),
        _ => Ok(text.call_method1("replace", ("\0", ""))?.cast_into()?),
    }
}

/// Characters as text; what is no UTF-8 is replaced.
fn text<'py>(py: Python<'py>, bytes: &[u8], keep_nulls: bool) -> PyResult<Bound<'py, PyString>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text),
        Err(_) => {
            let text = PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "replace"))?;
            text.cast_into::<PyString>()?
        }
    };
    if keep_nulls || !bytes.contains(&0) { Ok(text) } else { without_nulls(text) }
}

/// An array of its own of numbers one after another.
pub(crate) fn numbers<'py>(py: Python<'py>, ty: ExtType, bytes: &[u8]) -> Bound<'py, PyAny> {
    macro_rules! array {
        ($number:ty) => {{
            let one = |bytes: &[u8]| {
                <$number>::from_ne_bytes(
                    <[u8; size_of::<$number>()]>::try_from(bytes).unwrap_or_default(),
                )
            };
            let all: Vec<$number> = bytes.chunks_exact(size_of::<$number>()).map(one).collect();
            PyArray1::from_slice(py, &all).into_any()
        }};
    }
    match ty {
        ExtType::Byte => array!(i8),
        ExtType::Char | ExtType::UByte => array!(u8),
        ExtType::Short => array!(i16),
        ExtType::UShort => array!(u16),
        ExtType::Int => array!(i32),
        ExtType::UInt => array!(u32),
        ExtType::Int64 => array!(i64),
        ExtType::UInt64 => array!(u64),
        ExtType::Float => array!(f32),
        ExtType::Double => array!(f64),
    }
}

#[pymethods]
impl File {
    /// What `group` tells, and of each variable how it is stored and its attributes; those of the group; and what of
    /// all that cannot be read.
    fn contents<'py>(&self, py: Python<'py>, group: u16) -> PyResult<Bound<'py, PyTuple>> {
        let found = self.call(py, |dataset| read(dataset, GroupId(group)))?;
        let mut shared = SharedObjects {
            py,
            dims: &found.dims,
            names: HashMap::new(),
            shapes: HashMap::new(),
            chunks: HashMap::new(),
            filters: HashMap::new(),
            scalars: Scalars::default(),
            faults: PyList::empty(py),
        };
        let vars = PyList::empty(py);
        let parts = found.group.vars.iter().zip(&found.layouts).zip(&found.atts);
        for ((var, layout), atts) in parts {
            vars.append(shared.variable(var, layout, atts)?)?;
        }
        let own = match found.atts.last() {
            Some(atts) => shared.attributes((-1_i32).into_pyobject(py)?.into_any(), atts)?,
            None => PyDict::new(py),
        };
        let head = group_list(py, &found.group, vars)?;
        head.append(own)?;
        head.append(shared.faults)?;
        Ok(head.to_tuple())
    }
}
