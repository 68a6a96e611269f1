//! Settings for files that are opened or created later.

use zonda_runtime::lock::{Global, MutexGuard, Rank};

use pyo3::prelude::*;
use zonda::NcError;

use crate::errors;

/// Settings of the process.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    chunk_cache: (usize, usize, f32),
    threshold: u64,
    alignment: u64,
}

/// The settings of netCDF-C 4.9.0.
const DEFAULTS: Settings =
    Settings { chunk_cache: (16_777_216, 4133, 0.75), threshold: 0, alignment: 0 };

static SETTINGS: Global<Settings> = Global::new(Rank::Settings, DEFAULTS, || DEFAULTS);

fn settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock()
}

impl Settings {
    /// The present settings.
    pub(crate) fn now() -> Settings {
        *settings()
    }

    pub(crate) fn chunk_cache(&self) -> Option<(usize, usize, f32)> {
        Some(self.chunk_cache)
    }

    pub(crate) fn alignment(&self) -> Option<(u64, u64)> {
        (self.alignment > 1).then_some((self.threshold, self.alignment))
    }
}

/// Bytes, slots and preemption of the chunk caches of variables.
#[pyfunction]
pub(crate) fn get_chunk_cache() -> (usize, usize, f32) {
    settings().chunk_cache
}

/// Sets them.
#[pyfunction]
pub(crate) fn set_chunk_cache(
    py: Python<'_>,
    bytes: usize,
    slots: usize,
    preemption: f32,
) -> PyResult<()> {
    if !(0.0..=1.0).contains(&preemption) {
        return Err(errors::of_code(py, NcError::Inval, "the preemption is between 0 and 1"));
    }
    settings().chunk_cache = (bytes, slots, preemption);
    Ok(())
}

/// How many threads compute at the same time in this process, the caller's among them.
#[pyfunction]
pub(crate) fn threads() -> usize {
    zonda_runtime::threads()
}

/// Threshold and alignment of files that are created: objects of at least that many bytes begin at multiples of the
/// alignment.
#[pyfunction]
pub(crate) fn get_alignment() -> (u64, u64) {
    let settings = settings();
    (settings.threshold, settings.alignment)
}

/// Sets them.
#[pyfunction]
pub(crate) fn set_alignment(threshold: u64, alignment: u64) {
    let mut settings = settings();
    (settings.threshold, settings.alignment) = (threshold, alignment);
}
