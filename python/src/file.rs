//! Opening, creating and ending files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};
use zonda::mpi::{self, Asked, Communicator};
use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::team::Team;
use zonda::{
    CreateOptions, Dataset, Detected, Format, NcError, OpenOptions, Persist, RemoteSettings,
    Reserve, WriteBehind,
};

use crate::describe::var_ref;
use crate::errors::{self, OrRaise};
use crate::object_storage::{Buffer, ObjectReader, ReadOnly, Source};
use crate::tuning::Settings;
use crate::{fork, names};

/// An open file.
#[pyclass(frozen, module = "zonda._zonda", weakref)]
pub(crate) struct File {
    dataset: Arc<Dataset>,
    /// The Python object that is read from. It keeps the exception that it raised where a read failed.
    object: Option<Arc<ReadOnly<ObjectReader>>>,
}

/// A path as an argument: text, bytes, or an object with `__fspath__`.
pub(crate) struct PathArg(pub(crate) PathBuf);

impl<'a, 'py> FromPyObject<'a, 'py> for PathArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<PathArg> {
        use std::os::unix::ffi::OsStringExt;
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(PathArg(std::ffi::OsString::from_vec(bytes.as_bytes().to_vec()).into()));
        }
        Ok(PathArg(object.extract()?))
    }
}

impl PathArg {
    /// The path, and the format that a URL names, where it is none of netCDF's own.
    fn found(self) -> (PathBuf, Option<Format>) {
        match zonda::of_url(&self.0) {
            Some((path, format)) => (path, Some(format)),
            None => (self.0, None),
        }
    }
}

/// The value of the keyword `write_behind`.
fn write_behind(text: Option<&str>) -> PyResult<Option<WriteBehind>> {
    text.map(str::parse).transpose().map_err(|why: zonda::WriteBehindError| {
        PyValueError::new_err(format!("write_behind: {why}"))
    })
}

/// The ranks of a communicator, and what the program asks of their file by an Info: both are the words that C would have.
fn team_of(
    call: &str,
    path: &Path,
    (comm, info): (usize, usize),
) -> zonda::Result<(Arc<dyn Team>, Asked)> {
    let team = mpi::team(Communicator::C(comm), call, &path.display().to_string())?;
    let asked = mpi::asked(&*team, info);
    Ok((team, asked))
}

fn memory(in_memory: bool, persist: bool) -> Option<Persist> {
    in_memory.then_some(if persist { Persist::Yes } else { Persist::No })
}

pub(crate) fn format_of(name: &str) -> PyResult<Format> {
    Ok(match name {
        "CDF-1" => Format::Cdf1,
        "CDF-2" => Format::Cdf2,
        "CDF-5" => Format::Cdf5,
        "NETCDF4" => Format::NetCdf4,
        "NETCDF4_CLASSIC" => Format::NetCdf4Classic,
        other => zonda::format_named(other)
            .ok_or_else(|| PyValueError::new_err(format!("there is no format {other:?}")))?,
    })
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::Cdf1 => "CDF-1",
        Format::Cdf2 => "CDF-2",
        Format::Cdf5 => "CDF-5",
        Format::NetCdf4 => "NETCDF4",
        Format::NetCdf4Classic => "NETCDF4_CLASSIC",
        Format::Other(other) => other.name,
    }
}

fn detected(found: Detected) -> Option<&'static str> {
    match found {
        Detected::Classic(format) | Detected::Other(format) => Some(name_of(format)),
        Detected::Hdf5 => Some("HDF5"),
        // No engine of Python reads HDF4 through this library.
        Detected::Hdf4 | Detected::Unknown => None,
    }
}

impl File {
    /// Makes a `File` by a call that runs without the GIL.
    fn made(
        py: Python<'_>,
        object: Option<Arc<ReadOnly<ObjectReader>>>,
        make: impl FnOnce() -> zonda::Result<Dataset> + Send,
    ) -> PyResult<File> {
        let made = py.detach(|| {
            unpanicked(|| {
                let dataset = Arc::new(make()?);
                fork::note(&dataset);
                Ok(dataset)
            })
        });
        let dataset = or_raise(py, object.as_deref(), made)?;
        Ok(File { dataset, object })
    }

    /// Whether its bytes come from an object of Python.
    pub(crate) fn is_of_object(&self) -> bool {
        self.object.is_some()
    }

    /// Calls the engine without the GIL.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Dataset) -> zonda::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            if self.dataset.is_out_of_reach() {
                Err(out_of_reach())
            } else if self.dataset.is_open() {
                unpanicked(|| f(&self.dataset))
            } else {
                Err(zonda::Error::because(NcError::BadId, "the dataset is closed"))
            }
        });
        or_raise(py, self.object.as_deref(), done)
    }
}

/// Why a put with other ranks failed.
enum PutFailure {
    /// The function of Python raised this.
    Raised(PyErr),
    /// Taking part in the put of others failed.
    Engine(zonda::Error),
}

impl From<zonda::Error> for PutFailure {
    fn from(error: zonda::Error) -> PutFailure {
        PutFailure::Engine(error)
    }
}

/// The error in a forked child for a file that another thread was using at the fork.
fn out_of_reach() -> zonda::Error {
    let why = "another thread was at work with the file when this process was forked";
    zonda::Error::because(NcError::System(ECHILD), why)
}

/// `ECHILD` of Linux.
const ECHILD: i32 = 10;

/// The result of `f`; an ordinary error where it panics, as in the C library. Python's own exception for a panic is
/// one that programs do not catch.
fn unpanicked<T>(f: impl FnOnce() -> zonda::Result<T>) -> zonda::Result<T> {
    let panicked = |_| zonda::Error::because(NcError::Internal, "Zonda panicked, which is a bug");
    catch_unwind(AssertUnwindSafe(f)).map_err(panicked).flatten()
}

/// The value; or the exception of the object that is read from; or the error of the engine.
fn or_raise<T>(
    py: Python<'_>,
    object: Option<&ReadOnly<ObjectReader>>,
    done: zonda::Result<T>,
) -> PyResult<T> {
    done.map_err(|error| {
        // An exception of one thread must not reach calls of others that succeed.
        let raised = object.and_then(|object| object.0.take_raised());
        raised.unwrap_or_else(|| errors::raise(py, &error))
    })
}

#[pymethods]
impl File {
    /// Opens a file.
    #[staticmethod]
    #[pyo3(signature = (path, *, write=false, share=false, io=None, in_memory=false, persist=false, write_behind=None, remote=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn open(
        py: Python<'_>,
        path: PathArg,
        write: bool,
        share: bool,
        io: Option<String>,
        in_memory: bool,
        persist: bool,
        write_behind: Option<&str>,
        remote: Option<Vec<(String, String)>>,
    ) -> PyResult<File> {
        let remote = RemoteSettings(remote.unwrap_or_default());
        let write_behind = self::write_behind(write_behind)?;
        let in_memory = memory(in_memory, persist);
        let settings = Settings::now();
        let (chunk_cache, alignment) = (settings.chunk_cache(), settings.alignment());
        let options = OpenOptions {
            write,
            share,
            io,
            in_memory,
            chunk_cache,
            alignment,
            write_behind,
            remote,
            ..OpenOptions::default()
        };
        let (path, _) = path.found();
        File::made(py, None, || Dataset::open(&path, &options))
    }

    /// Opens a file that is in memory: `bytes` are kept, other buffers are copied once.
    #[staticmethod]
    #[pyo3(signature = (data, *, write=false))]
    fn open_bytes(py: Python<'_>, data: &Bound<'_, PyAny>, write: bool) -> PyResult<File> {
        let bytes = match data.extract::<PyBackedBytes>() {
            Ok(bytes) => bytes,
            Err(_) => {
                let bytes = PyBytes::type_object(py).call1((data,));
                bytes
                    .map_err(|_| PyTypeError::new_err("open_bytes wants bytes or a buffer"))?
                    .extract()?
            }
        };
        let options = OpenOptions { write, ..Default::default() };
        File::made(py, None, || {
            let storage: Arc<dyn Storage> = match write {
                true => Arc::new(Memory::from_slice(&bytes)),
                false => Arc::new(ReadOnly(Buffer(bytes))),
            };
            Dataset::open_in(storage, "<bytes>".as_ref(), &options)
        })
    }

    /// Opens a file that is read through a Python object.
    #[staticmethod]
    fn open_object(py: Python<'_>, file: Bound<'_, PyAny>) -> PyResult<File> {
        let object = Arc::new(ReadOnly(ObjectReader::new(file)?));
        let storage: Arc<dyn Storage> = Arc::<ReadOnly<ObjectReader>>::clone(&object);
        let name = object.0.name().to_owned();
        File::made(py, Some(object), || {
            Dataset::open_in(storage, name.as_ref(), &OpenOptions::default())
        })
    }

    /// Creates a file.
    #[staticmethod]
    #[pyo3(signature = (path, format, *, exclusive=false, share=false, io=None, in_memory=false, persist=false, write_behind=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn create(
        py: Python<'_>,
        path: PathArg,
        format: &str,
        exclusive: bool,
        share: bool,
        io: Option<String>,
        in_memory: bool,
        persist: bool,
        write_behind: Option<&str>,
    ) -> PyResult<File> {
        let settings = Settings::now();
        let (path, asked) = path.found();
        let options = CreateOptions {
            chunk_cache: settings.chunk_cache(),
            alignment: settings.alignment(),
            format: asked.map_or_else(|| format_of(format), Ok)?,
            exclusive,
            share,
            io,
            in_memory: memory(in_memory, persist),
            write_behind: self::write_behind(write_behind)?,
            ..Default::default()
        };
        File::made(py, None, || Dataset::create(&path, &options))
    }

    /// Opens a file on all ranks of a communicator, which is the word that C would have.
    #[staticmethod]
    #[pyo3(signature = (path, comm, info, *, write=false, io=None))]
    fn open_parallel(
        py: Python<'_>,
        path: PathArg,
        comm: usize,
        info: usize,
        write: bool,
        io: Option<String>,
    ) -> PyResult<File> {
        let settings = Settings::now();
        let (chunk_cache, alignment) = (settings.chunk_cache(), settings.alignment());
        let (path, _) = path.found();
        File::made(py, None, || {
            let (team, asked) = team_of("nc_open_par", &path, (comm, info))?;
            let Asked { equal_attributes, independent_filters, hints } = asked;
            let options = OpenOptions {
                write,
                io,
                chunk_cache,
                alignment,
                equal_attributes,
                independent_filters,
                hints,
                ..OpenOptions::default()
            };
            Dataset::open_parallel(team, &path, &options)
        })
    }

    /// Creates a file on all ranks of a communicator.
    #[staticmethod]
    #[pyo3(signature = (path, format, comm, info, *, exclusive=false, io=None))]
    fn create_parallel(
        py: Python<'_>,
        path: PathArg,
        format: &str,
        comm: usize,
        info: usize,
        exclusive: bool,
        io: Option<String>,
    ) -> PyResult<File> {
        let settings = Settings::now();
        let (chunk_cache, alignment) = (settings.chunk_cache(), settings.alignment());
        let (path, asked) = path.found();
        let format = asked.map_or_else(|| format_of(format), Ok)?;
        File::made(py, None, || {
            let (team, asked) = team_of("nc_create_par", &path, (comm, info))?;
            let Asked { equal_attributes, independent_filters, hints } = asked;
            let options = CreateOptions {
                format,
                exclusive,
                io,
                chunk_cache,
                alignment,
                equal_attributes,
                independent_filters,
                hints,
                ..CreateOptions::default()
            };
            Dataset::create_parallel(team, &path, &options)
        })
    }

    /// Whether several ranks opened it together.
    #[getter]
    fn is_parallel(&self) -> bool {
        self.dataset.is_of_ranks()
    }

    /// Has puts to a variable made by all ranks together, or by each rank alone.
    fn set_collective(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        is_collective: bool,
    ) -> PyResult<()> {
        self.call(py, |dataset| dataset.set_collective(var_ref(group, var), is_collective))
    }

    /// Calls a function that puts to a variable once at most. Where puts are collective, this rank takes part also if the function puts
    /// nothing, or raises before.
    fn put_with_ranks(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        put: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let put = put.clone().unbind();
        let dataset = &self.dataset;
        let done = py.detach(|| {
            dataset.put_with_ranks(var_ref(group, var), || {
                Python::attach(|py| put.call0(py)).map(drop).map_err(PutFailure::Raised)
            })
        });
        done.map_err(|failure| match failure {
            PutFailure::Raised(raised) => raised,
            PutFailure::Engine(error) => errors::raise(py, &error),
        })
    }

    /// Closes the file. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let done = py.detach(|| {
            if self.dataset.is_out_of_reach() {
                Err(out_of_reach())
            } else if self.dataset.is_open() {
                self.dataset.close()
            } else {
                Ok(())
            }
        });
        or_raise(py, self.object.as_deref(), done)
    }

    /// Closes the file without definitions made since `redef`, or removes a file that was being created.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Dataset::abort)
    }

    /// Closes a file that was created in memory, and gives its bytes.
    fn take_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let storage = self.dataset.storage().map(Arc::clone);
        self.close(py)?;
        let none = || errors::of_code(py, NcError::NotBuilt, "the format has no bytes of its own");
        let storage = storage.ok_or_else(none)?;
        let len = storage.len().map_err(zonda::Error::from).or_raise(py)?;
        let len = usize::try_from(len).map_err(|_| errors::of_code(py, NcError::NoMem, ""))?;
        PyBytes::new_with(py, len, |out| {
            // Without the GIL: where the file is read through a Python object, other threads need it.
            let read = py.detach(|| {
                let mut at = 0;
                while at < out.len() {
                    match storage.read_at(at as u64, &mut out[at..])? {
                        0 => break,
                        n => at += n,
                    }
                }
                Ok(())
            });
            or_raise(py, self.object.as_deref(), read)
        })
    }

    /// Commits what was put; sees what others committed.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Dataset::sync)
    }

    fn redef(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Dataset::redef)
    }

    fn enddef(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |dataset| dataset.enddef(Reserve::Default))
    }

    /// Sets whether elements that are not put are filled; gives the old setting.
    fn set_fill(&self, py: Python<'_>, on: bool) -> PyResult<bool> {
        let mode = if on { zonda::FillMode::Fill } else { zonda::FillMode::NoFill };
        let before = self.call(py, move |dataset| dataset.set_fill(mode))?;
        Ok(before == zonda::FillMode::Fill)
    }

    fn set_write_behind(&self, py: Python<'_>, how: &str) -> PyResult<()> {
        let how = self::write_behind(Some(how))?.unwrap_or_default();
        self.call(py, move |dataset| dataset.set_write_behind(how))
    }

    /// Bytes of accepted puts that wait, and the failure of one, if any.
    fn write_behind_status(&self, py: Python<'_>) -> (usize, Option<String>) {
        let (waiting, error) = py.detach(|| self.dataset.write_behind_status());
        (waiting, error.map(|error| error.to_string()))
    }

    #[getter]
    fn is_open(&self, py: Python<'_>) -> bool {
        py.detach(|| self.dataset.is_open())
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        names::decoded(py, self.dataset.path().as_os_str().as_encoded_bytes())
    }

    // These ask the file, whose lock may be held by a reader that waits for the GIL (it reads through an
    // object of Python): so they wait for it without.

    #[getter]
    fn format(&self, py: Python<'_>) -> &'static str {
        py.detach(|| name_of(self.dataset.format()))
    }

    #[getter]
    fn format_extended(&self) -> &'static str {
        match self.dataset.capabilities().formatx {
            5 => "DAP2",
            6 => "DAP4",
            _ if self.dataset.is_hdf5() => "HDF5",
            _ => "NETCDF3",
        }
    }

    #[getter]
    fn is_writable(&self, py: Python<'_>) -> bool {
        py.detach(|| self.dataset.is_writable())
    }

    #[getter]
    fn in_define_mode(&self, py: Python<'_>) -> bool {
        py.detach(|| self.dataset.in_define_mode())
    }

    #[getter]
    fn stack(&self, py: Python<'_>) -> String {
        py.detach(|| self.dataset.stack())
    }
}

/// Closes a file that was not closed; an error goes to `sys.unraisablehook`.
impl Drop for File {
    fn drop(&mut self) {
        let close = |py: Python<'_>| {
            // It looks itself whether the file is open, without the GIL.
            if let Err(error) = self.close(py) {
                error.write_unraisable(py, None);
            }
        };
        Python::try_attach(close);
    }
}

/// The format of a file by its first bytes.
#[pyfunction]
pub(crate) fn detect(py: Python<'_>, path: PathArg) -> PyResult<Option<&'static str>> {
    let (path, _) = path.found();
    let found = py.detach(|| zonda::detect(&path)).or_raise(py)?;
    Ok(detected(found))
}

/// The same for bytes in memory.
#[pyfunction]
pub(crate) fn detect_bytes(py: Python<'_>, start: PyBackedBytes) -> PyResult<Option<&'static str>> {
    let found = zonda::detect_in(&ReadOnly(Buffer(start))).or_raise(py)?;
    Ok(detected(found))
}

/// Version of this package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The release of netCDF-C that the library behaves like.
#[pyfunction]
pub(crate) fn netcdf_version() -> &'static str {
    "4.9.0"
}

/// Whether it is the URL of a file on a server, and not a path.
#[pyfunction]
pub(crate) fn is_url(path: PathArg) -> bool {
    zonda::is_url(&path.0)
}

/// A path, or a URL without what may be secret.
#[pyfunction]
pub(crate) fn shown_name(path: PathArg) -> std::ffi::OsString {
    // Not as a path, of which Python would take a slash away.
    zonda::shown_name(&path.0).into_owned().into_os_string()
}
