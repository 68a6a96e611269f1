//! Errors of the engine as exceptions of `zonda.errors`, which decides which class a code has.

use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;
use zonda::{Error, NcError};

/// The exception for an error of the engine.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let path = error.path().map(std::path::Path::as_os_str);
    let path = path.map(std::ffi::OsStr::to_os_string);
    // What a server said is known better than the codes of netCDF can tell.
    let code = error
        .remote_failure()
        .map_or_else(|| error.code(), |kind| NcError::System(kind.raw_os_error()));
    made(py, code, &error.cause(), path, error.offset())
}

/// The exception for a code and a text that explains it.
pub(crate) fn of_code(py: Python<'_>, code: NcError, why: &str) -> PyErr {
    made(py, code, why, None, None)
}

fn made(
    py: Python<'_>,
    code: NcError,
    why: &str,
    path: Option<std::ffi::OsString>,
    offset: Option<u64>,
) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let factory = py.import("zonda.errors")?.getattr("make")?;
        let args = (code.code(), code.to_string(), why, path, offset);
        Ok(PyErr::from_value(factory.call1(args)?))
    };
    make().unwrap_or_else(|other| other)
}

/// `?` for results of the engine.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for zonda::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }
}

/// The text of `nc_strerror` for a code.
#[pyfunction]
pub(crate) fn strerror(code: i32) -> String {
    let known = NcError::ALL.iter().find(|error| error.code() == code);
    known.copied().unwrap_or(NcError::System(code)).to_string()
}
