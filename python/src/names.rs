//! Names: text in Python, bytes in files.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors;

/// Text as bytes: UTF-8; characters that stand for bytes which are no UTF-8 (`surrogateescape`) become these bytes.
pub(crate) fn encoded(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    match text.to_str() {
        Ok(text) => Ok(text.as_bytes().to_vec()),
        Err(_) => {
            let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
            Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
        }
    }
}

/// Bytes as text, the other way round.
pub(crate) fn decoded<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => {
            let text = PyBytes::new(py, bytes);
            let text = text.call_method1("decode", ("utf-8", "surrogateescape"))?;
            Ok(text.cast_into::<PyString>()?)
        }
    }
}

/// A name as an argument.
pub(crate) struct Name(pub(crate) Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Name> {
        match object.cast::<PyString>() {
            Ok(text) => Ok(Name(encoded(&text)?)),
            Err(_) => Err(PyTypeError::new_err("a name is a str")),
        }
    }
}

/// A filter by number or by name.
#[derive(FromPyObject)]
pub(crate) enum Filter {
    Number(u32),
    Named(String),
}

impl Filter {
    /// Its number; `None` for a name that is not known.
    pub(crate) fn id(&self) -> Option<u32> {
        match self {
            Filter::Number(id) => Some(*id),
            Filter::Named(name) => zonda::filter_id(name),
        }
    }
}

/// Number of the filter with that name, such as `"zstd"`.
#[pyfunction]
pub(crate) fn filter_id(name: String) -> Option<u32> {
    Filter::Named(name).id()
}

/// Name of a filter.
#[pyfunction]
pub(crate) fn filter_name(id: u32) -> Option<String> {
    zonda::filter_name(id).map(str::to_owned)
}

/// Whether a filter is available.
#[pyfunction]
pub(crate) fn has_filter(filter: Filter) -> bool {
    filter.id().is_some_and(zonda::filter_is_available)
}

/// Raises for a name that netCDF does not allow.
#[pyfunction]
pub(crate) fn check_name(py: Python<'_>, name: Name) -> PyResult<()> {
    zonda::check_name(&name.0).map_err(|code| errors::of_code(py, code, ""))
}
