//! Values of variables.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use zonda::{Hyperslab, MemType};

use crate::decoding::Decoding;
use crate::describe::var_ref;
use crate::file::File;
use crate::memory::ArrayBytes;
use crate::objects::VlenStore;
use crate::parts;
use crate::shares;
use crate::types::{ElementForm, mem_type};

/// A selection as arguments.
struct Slab {
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Option<Vec<isize>>,
}

impl Slab {
    fn new(start: Vec<usize>, count: Vec<usize>, stride: Option<Vec<isize>>) -> PyResult<Slab> {
        let fits = stride.as_ref().is_none_or(|stride| stride.len() == start.len());
        if count.len() != start.len() || !fits {
            return Err(PyValueError::new_err("start, count and stride are of different lengths"));
        }
        Ok(Slab { start, count, stride })
    }

    fn hyperslab(&self) -> Hyperslab<'_> {
        Hyperslab { start: &self.start, count: &self.count, stride: self.stride.as_deref() }
    }
}

impl File {
    /// The memory type for an array, `None` where its elements are the variable's own.
    fn memory_of(
        &self,
        py: Python<'_>,
        of: zonda::VarRef,
        array: &Bound<'_, PyUntypedArray>,
        slab: &Slab,
    ) -> PyResult<Option<MemType>> {
        let (form, rank) = self.call(py, |dataset| {
            dataset.in_group(of.group, |meta| {
                let var = meta.var(of.var)?;
                Ok::<_, zonda::Error>((ElementForm::of(meta, var.nc_type)?, var.dims.len()))
            })?
        })?;
        if slab.start.len() != rank {
            let text = format!("{} indices for {rank} dimensions", slab.start.len());
            return Err(PyValueError::new_err(text));
        }
        let dtype = array.dtype();
        if slab.hyperslab().n_elems() != Some(array.len()) {
            let text =
                format!("the array has {} elements, {:?} are selected", array.len(), slab.count);
            return Err(PyValueError::new_err(text));
        }
        let wrong =
            |what: &str| Err(PyTypeError::new_err(format!("{what}: the array has {dtype}")));
        match form {
            ElementForm::Atomic(_) => match mem_type(dtype.kind(), dtype.itemsize()) {
                Some(mem) => Ok(Some(mem)),
                None => wrong("no memory type of netCDF"),
            },
            form if form.has_parts() => wrong("strings and sequences need an array of objects"),
            form if form.size() == dtype.itemsize() => Ok(None),
            form => wrong(&format!("elements have {} bytes", form.size())),
        }
    }
}

#[pymethods]
impl File {
    /// Reads into an array; gives how many values did not fit. With `decoding` (fill value, factor, offset, each a float or `None`) values of an
    /// array of floats are masked and scaled, too.
    #[pyo3(signature = (group, var, start, count, stride, out, decoding=None))]
    #[allow(clippy::too_many_arguments, reason = "as nc_get_vars has them")]
    fn get(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        start: Vec<usize>,
        count: Vec<usize>,
        stride: Option<Vec<isize>>,
        out: &Bound<'_, PyUntypedArray>,
        decoding: Option<(Option<f64>, Option<f64>, Option<f64>)>,
    ) -> PyResult<u64> {
        let (of, slab) = (var_ref(group, var), Slab::new(start, count, stride)?);
        let decoding = decoding.map(|(fill, scale, offset)| Decoding { fill, scale, offset });
        let dtype = out.dtype();
        let elem = dtype.itemsize();
        if decoding.is_some() && (dtype.kind() != b'f' || !matches!(elem, 4 | 8)) {
            let text = format!("values are decoded in an array of f4 or f8, not of {dtype}");
            return Err(PyTypeError::new_err(text));
        }
        let mut memory = ArrayBytes::of_writeable(out)?;
        let mem = self.memory_of(py, of, out, &slab)?;
        // An object of Python is read by one thread after the other in any case.
        let is_one = self.is_of_object();
        let got = self.call(py, |dataset| {
            let (slab, out) = (slab.hyperslab(), memory.write());
            if is_one {
                let got = dataset.get(of, &slab, mem, out)?;
                decoding.iter().for_each(|decoding| decoding.apply(elem, out));
                return Ok(got);
            }
            shares::get(dataset, of, &slab, mem, (elem, decoding), out)
        })?;
        Ok(got.out_of_range)
    }

    /// Writes from an array; gives how many values did not fit.
    #[pyo3(signature = (group, var, start, count, stride, values))]
    #[allow(clippy::too_many_arguments, reason = "as nc_put_vars has them")]
    fn put(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        start: Vec<usize>,
        count: Vec<usize>,
        stride: Option<Vec<isize>>,
        values: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<u64> {
        let (of, slab) = (var_ref(group, var), Slab::new(start, count, stride)?);
        let memory = ArrayBytes::of(values)?;
        let mem = self.memory_of(py, of, values, &slab)?;
        let bytes = memory.read();
        let parts = self.call(py, |dataset| {
            // Ranks put together: all make the same calls, whatever each of them puts.
            let threads = if dataset.is_of_ranks() { usize::MAX } else { zonda_runtime::threads() };
            let chunk = parts::chunk_shape(dataset, of);
            Ok(parts::cut(&slab.hyperslab(), bytes.len(), chunk.as_deref(), threads))
        })?;
        let mut out_of_range = 0;
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                py.check_signals()?;
            }
            let here = Hyperslab {
                start: &part.start,
                count: &part.count,
                stride: slab.stride.as_deref(),
            };
            let (from, to) = part.bytes;
            let short = || {
                PyValueError::new_err("bug in Zonda: a part of a put lies outside of its values")
            };
            let values = bytes.get(from..to).ok_or_else(short)?;
            out_of_range +=
                self.call(py, |dataset| dataset.put(of, &here, mem, values))?.out_of_range;
        }
        Ok(out_of_range)
    }

    /// Reads values of any type into an array of objects.
    #[pyo3(signature = (group, var, start, count, stride, out))]
    #[allow(clippy::too_many_arguments, reason = "as nc_get_vars has them")]
    fn get_objects(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        start: Vec<usize>,
        count: Vec<usize>,
        stride: Option<Vec<isize>>,
        out: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        let (of, slab) = (var_ref(group, var), Slab::new(start, count, stride)?);
        check_objects(out, &slab)?;
        let form = self.form_of_var(py, of)?;
        let mut store = VlenStore::default();
        let mut bytes = Vec::new();
        // As it is in the file: nothing is converted.
        let _converted = self.call(py, |dataset| {
            dataset.get_list(of, &slab.hyperslab(), None, (&mut bytes, Some(&mut store)))
        })?;
        let flat = out.call_method0("ravel")?;
        for (i, element) in bytes.chunks_exact(form.size().max(1)).enumerate() {
            flat.set_item(i, store.value(py, &form, element)?)?;
        }
        Ok(())
    }

    /// Writes values of any type from an array of objects.
    #[pyo3(signature = (group, var, start, count, stride, values))]
    #[allow(clippy::too_many_arguments, reason = "as nc_put_vars has them")]
    fn put_objects(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        start: Vec<usize>,
        count: Vec<usize>,
        stride: Option<Vec<isize>>,
        values: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        let (of, slab) = (var_ref(group, var), Slab::new(start, count, stride)?);
        check_objects(values, &slab)?;
        let form = self.form_of_var(py, of)?;
        let mut store = VlenStore::default();
        let (bytes, _) = store.items(&form, values.as_any())?;
        self.call(py, |dataset| {
            let values = zonda::Values { bytes: &bytes, fetch: Some(&mut store) };
            dataset.put_values(of, &slab.hyperslab(), values).map(drop)
        })
    }
}

fn check_objects(array: &Bound<'_, PyUntypedArray>, slab: &Slab) -> PyResult<()> {
    if array.dtype().kind() != b'O' || !array.is_c_contiguous() {
        return Err(PyTypeError::new_err("a C-contiguous array of objects is wanted"));
    }
    if slab.hyperslab().n_elems() != Some(array.len()) {
        let text = format!("the array has {} elements, {:?} are selected", array.len(), slab.count);
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}
