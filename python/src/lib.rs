//! `zonda._zonda`: the engine as Python sees it, call by call and without policy. What users see is written in
//! Python on top of it (`python/zonda`).

mod att;
mod contents;
mod copy;
mod data;
mod decoding;
mod define;
mod describe;
mod errors;
mod file;
mod fork;
mod memory;
mod names;
mod object_storage;
mod objects;
mod parts;
mod ranges;
mod rules;
mod shares;
mod tuning;
mod types;

use pyo3::pymodule;

/// The module.
#[pymodule(gil_used = false)]
mod _zonda {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use super::errors::strerror;
    #[pymodule_export]
    use super::file::File;
    #[pymodule_export]
    use super::file::{detect, detect_bytes, is_url, netcdf_version, shown_name, version};
    #[pymodule_export]
    use super::fork::{after_fork_in_child, after_fork_in_parent, before_fork, drain_all};
    #[pymodule_export]
    use super::names::{check_name, filter_id, filter_name, has_filter};
    #[pymodule_export]
    use super::tuning::{get_alignment, get_chunk_cache, set_alignment, set_chunk_cache, threads};
    #[pymodule_export]
    use super::types::default_fill;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        // Behaves like the library of the netCDF4 package, whose interface `zonda.netcdf4` has: filters of strings
        // are accepted, for example.
        zonda::release::find_by(|| Some(zonda::release::Release::new(4, 10, 1)));
        let errors = py.import("zonda.errors")?;
        module.add("NetCDFError", errors.getattr("NetCDFError")?)?;
        let hooks = PyDict::new(py);
        hooks.set_item("before", module.getattr("before_fork")?)?;
        hooks.set_item("after_in_parent", module.getattr("after_fork_in_parent")?)?;
        hooks.set_item("after_in_child", module.getattr("after_fork_in_child")?)?;
        py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
        py.import("atexit")?.call_method1("register", (module.getattr("drain_all")?,))?;
        Ok(())
    }
}
