//! Types of netCDF and dtypes of NumPy.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use zonda::{ExtType, MemType, Meta, NC_STRING, NcError, UserClass};

use crate::errors;
use crate::names::decoded;

/// The form of an element in memory, as far as it matters for making Python values of it.
#[derive(Clone, Debug)]
pub(crate) enum ElementForm {
    /// A number, or one character.
    Atomic(ExtType),
    /// `NC_STRING`: an address.
    Text,
    /// Bytes without meaning.
    Opaque(usize),
    /// Integers with names.
    Enum(ExtType),
    /// Fields at offsets.
    Compound { size: usize, fields: Vec<Field> },
    /// A length and an address.
    Sequence(Box<ElementForm>),
}

/// A field of a compound.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Vec<u8>,
    pub(crate) offset: usize,
    pub(crate) form: ElementForm,
    pub(crate) shape: Vec<usize>,
}

/// Types within types; a file could say that one contains itself.
const MOST_DEPTH: usize = 64;

impl ElementForm {
    /// The form of a type.
    pub(crate) fn of(meta: &Meta<'_>, nc_type: i32) -> zonda::Result<ElementForm> {
        ElementForm::within(meta, nc_type, 0)
    }

    fn within(meta: &Meta<'_>, nc_type: i32, depth: usize) -> zonda::Result<ElementForm> {
        let odd = || zonda::Error::because(NcError::BadType, "a type without a form in memory");
        if depth > MOST_DEPTH {
            return Err(odd());
        }
        if let Some(ty) = ExtType::from_nc_type(nc_type) {
            return Ok(ElementForm::Atomic(ty));
        }
        if nc_type == NC_STRING {
            return Ok(ElementForm::Text);
        }
        let ty = meta.user_type(nc_type)?;
        Ok(match &ty.class {
            UserClass::Compound(fields) => {
                let field = |field: &zonda::Field| {
                    let shape = field.dims.iter().map(|&n| usize::try_from(n).unwrap_or(0));
                    Ok(Field {
                        name: field.name.to_vec(),
                        offset: field.offset,
                        form: ElementForm::within(meta, field.nc_type, depth + 1)?,
                        shape: shape.collect(),
                    })
                };
                let fields = fields.iter().map(field).collect::<zonda::Result<_>>()?;
                ElementForm::Compound { size: ty.size, fields }
            }
            UserClass::Enum { base, .. } => {
                ElementForm::Enum(ExtType::from_nc_type(*base).ok_or_else(odd)?)
            }
            UserClass::Opaque => ElementForm::Opaque(ty.size),
            UserClass::Vlen { base } => {
                ElementForm::Sequence(Box::new(ElementForm::within(meta, *base, depth + 1)?))
            }
            UserClass::String => ElementForm::Text,
            UserClass::Unknown => return Err(odd()),
        })
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        match self {
            ElementForm::Atomic(ty) | ElementForm::Enum(ty) => ty.size(),
            ElementForm::Text => 8,
            ElementForm::Opaque(size) | ElementForm::Compound { size, .. } => *size,
            ElementForm::Sequence(_) => 16,
        }
    }

    /// Whether an element refers to a string or sequence.
    pub(crate) fn has_parts(&self) -> bool {
        match self {
            ElementForm::Atomic(_) | ElementForm::Enum(_) | ElementForm::Opaque(_) => false,
            ElementForm::Text | ElementForm::Sequence(_) => true,
            ElementForm::Compound { fields, .. } => {
                fields.iter().any(|field| field.form.has_parts())
            }
        }
    }

    /// The dtype of elements without strings or sequences; `None` for others.
    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.has_parts() {
            return Ok(None);
        }
        let dtype = py.import("numpy")?.getattr("dtype")?;
        Ok(Some(dtype.call1((self.description(py)?,))?))
    }

    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            ElementForm::Atomic(ty) | ElementForm::Enum(ty) => {
                PyString::new(py, letters(*ty)).into_any()
            }
            ElementForm::Opaque(size) => PyString::new(py, &format!("V{size}")).into_any(),
            ElementForm::Text | ElementForm::Sequence(_) => PyString::new(py, "O").into_any(),
            ElementForm::Compound { size, fields } => {
                let (mut names, mut formats, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
                for field in fields {
                    names.push(decoded(py, &field.name)?);
                    let one = field.form.description(py)?;
                    formats.push(match field.shape.is_empty() {
                        true => one,
                        false => {
                            let shape = pyo3::types::PyTuple::new(py, &field.shape)?;
                            (one, shape).into_pyobject(py)?.into_any()
                        }
                    });
                    offsets.push(field.offset);
                }
                let described = PyDict::new(py);
                described.set_item("names", names)?;
                described.set_item("formats", formats)?;
                described.set_item("offsets", offsets)?;
                described.set_item("itemsize", size)?;
                // A dtype within another has to be a dtype object already.
                py.import("numpy")?.getattr("dtype")?.call1((described,))?
            }
        })
    }
}

/// Name of an atomic type in NumPy.
pub(crate) fn letters(ty: ExtType) -> &'static str {
    match ty {
        ExtType::Byte => "i1",
        ExtType::Char => "S1",
        ExtType::Short => "i2",
        ExtType::Int => "i4",
        ExtType::Float => "f4",
        ExtType::Double => "f8",
        ExtType::UByte => "u1",
        ExtType::UShort => "u2",
        ExtType::UInt => "u4",
        ExtType::Int64 => "i8",
        ExtType::UInt64 => "u8",
    }
}

/// The memory type of a dtype, by its kind and size.
pub(crate) fn mem_type(kind: u8, size: usize) -> Option<MemType> {
    Some(match (kind, size) {
        (b'i', 1) => MemType::I8,
        (b'i', 2) => MemType::I16,
        (b'i', 4) => MemType::I32,
        (b'i', 8) => MemType::I64,
        (b'u', 1) => MemType::U8,
        (b'u', 2) => MemType::U16,
        (b'u', 4) => MemType::U32,
        (b'u', 8) => MemType::U64,
        (b'f', 4) => MemType::F32,
        (b'f', 8) => MemType::F64,
        (b'S', 1) => MemType::Text,
        _ => return None,
    })
}

/// The default fill value of an atomic type: a NumPy scalar, bytes of `NC_CHAR`, text of `NC_STRING`.
#[pyfunction]
pub(crate) fn default_fill(py: Python<'_>, typeid: i32) -> PyResult<Bound<'_, PyAny>> {
    if typeid == NC_STRING {
        return Ok(PyString::new(py, "").into_any());
    }
    let Some(ty) = ExtType::from_nc_type(typeid) else {
        return Err(errors::of_code(py, NcError::BadType, ""));
    };
    let bytes = zonda::default_fill(ty);
    let bytes = PyBytes::new(py, &bytes[..ty.size()]);
    if ty == ExtType::Char {
        return Ok(bytes.into_any());
    }
    py.import("numpy")?.call_method1("frombuffer", (bytes, letters(ty)))?.get_item(0)
}
