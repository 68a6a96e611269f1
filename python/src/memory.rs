//! Memory of NumPy arrays as slices: the only module with `unsafe`.
//!
//! An array that was handed over is kept alive by its reference. As everywhere in NumPy, a program
//! that changes it from another thread meanwhile gets a mixture.
#![allow(unsafe_code)]

use numpy::npyffi::flags::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Bytes of an array.
pub(crate) struct ArrayBytes {
    at: usize,
    len: usize,
}

fn checked(array: &Bound<'_, PyUntypedArray>, writeable: bool) -> PyResult<ArrayBytes> {
    // SAFETY: the array is alive, and the fields of its head are read with the GIL, or as NumPy does it.
    let (at, flags) = unsafe {
        let head = &*array.as_array_ptr();
        (head.fields.data as usize, head.fields.flags)
    };
    let has = |flag| flags & flag == flag;
    if !has(NPY_ARRAY_C_CONTIGUOUS) || !has(NPY_ARRAY_ALIGNED) {
        return Err(PyValueError::new_err("the array is not C-contiguous and aligned"));
    }
    if writeable && !has(NPY_ARRAY_WRITEABLE) {
        return Err(PyValueError::new_err("the array is read-only"));
    }
    let dtype = array.dtype();
    if dtype.is_native_byteorder() == Some(false) {
        return Err(PyTypeError::new_err(format!(
            "the array is not in native byte order: {dtype}"
        )));
    }
    if dtype.has_object() {
        return Err(PyTypeError::new_err("an array of objects has no bytes of its own"));
    }
    let len = array.len().checked_mul(dtype.itemsize());
    Ok(ArrayBytes { at, len: len.ok_or_else(|| PyValueError::new_err("the array is too large"))? })
}

impl ArrayBytes {
    /// The bytes of an array, to be read.
    pub(crate) fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<ArrayBytes> {
        checked(array, false)
    }

    /// The bytes of an array, to be filled.
    pub(crate) fn of_writeable(array: &Bound<'_, PyUntypedArray>) -> PyResult<ArrayBytes> {
        checked(array, true)
    }

    /// The bytes, for as long as the caller holds the array.
    pub(crate) fn read(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the array is contiguous, so that `len` bytes begin at `at`; whoever made this holds
        // a reference to it over the call. Any byte is a `u8`.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.len) }
    }

    /// The bytes, to be written.
    pub(crate) fn write(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as in `read`, and the array is writeable.
        unsafe { std::slice::from_raw_parts_mut(self.at as *mut u8, self.len) }
    }
}

/// Held over a fork: the locks of a dataset, and the dataset, which must outlive them.
pub(crate) struct FrozenFile {
    pub(crate) locks: Option<zonda::FrozenFile<'static>>,
    pub(crate) dataset: std::sync::Arc<zonda::Dataset>,
}

impl FrozenFile {
    /// Takes all locks of a dataset that can be taken until `until`.
    pub(crate) fn new(
        dataset: std::sync::Arc<zonda::Dataset>,
        until: std::time::Instant,
    ) -> FrozenFile {
        let locks = dataset.freeze(until);
        // SAFETY: the locks lie in `dataset`, which does not move, and lives in the same `FrozenFile` until
        // they are given back: fields are dropped in order.
        let locks = unsafe {
            std::mem::transmute::<zonda::FrozenFile<'_>, zonda::FrozenFile<'static>>(locks)
        };
        FrozenFile { locks: Some(locks), dataset }
    }
}
