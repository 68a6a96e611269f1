//! Conversion of strings, sequences, and compounds with such fields between memory in the layout of C and Python
//! objects.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use zonda::{VlenSink, VlenSource};

use crate::names::{decoded, encoded};
use crate::types::{ElementForm, Field, letters};

/// The strings and sequences of values. Elements have their numbers, counted from 1, in place of addresses.
#[derive(Debug, Default)]
pub(crate) struct VlenStore {
    parts: Vec<Vec<u8>>,
}

impl VlenSink for VlenStore {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        let mut part = Vec::new();
        part.try_reserve_exact(bytes.len()).ok()?;
        part.extend_from_slice(bytes);
        self.parts.push(part);
        Some(self.parts.len() as u64)
    }
}

impl VlenSource for VlenStore {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.part(address)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.part(address).and_then(|part| part.get(..len)).unwrap_or(&[])
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(from) = bytes.get(at..at + 8) {
        word.copy_from_slice(from);
    }
    u64::from_ne_bytes(word)
}

impl VlenStore {
    fn part(&self, address: u64) -> Option<&[u8]> {
        let index = usize::try_from(address.checked_sub(1)?).ok()?;
        self.parts.get(index).map(Vec::as_slice)
    }

    /// The bytes of the string that an element refers to.
    pub(crate) fn text_of(&self, element: &[u8]) -> &[u8] {
        self.part(word(element, 0)).unwrap_or(&[])
    }

    fn add(&mut self, part: Vec<u8>) -> u64 {
        self.parts.push(part);
        self.parts.len() as u64
    }

    /// The Python value of one element.
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        form: &ElementForm,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        match form {
            ElementForm::Text => {
                let text = self.part(word(bytes, 0)).unwrap_or(&[]);
                Ok(decoded(py, text)?.into_any())
            }
            ElementForm::Sequence(item) => {
                let items = self.part(word(bytes, 8)).unwrap_or(&[]);
                self.array(py, item, items)
            }
            ElementForm::Compound { fields, .. } if form.has_parts() => {
                let values = fields.iter().map(|field| self.field(py, field, bytes));
                let values = values.collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, values)?.into_any())
            }
            _ => self.array(py, form, bytes)?.get_item(0),
        }
    }

    fn field<'py>(
        &self,
        py: Python<'py>,
        field: &Field,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let n: usize = field.shape.iter().product();
        let end = field.offset + n * field.form.size();
        let bytes = bytes.get(field.offset..end).unwrap_or(&[]);
        if field.shape.is_empty() {
            return self.value(py, &field.form, bytes);
        }
        let array = self.array(py, &field.form, bytes)?;
        array.call_method1("reshape", (PyTuple::new(py, &field.shape)?,))
    }

    /// A new array of packed elements.
    pub(crate) fn array<'py>(
        &self,
        py: Python<'py>,
        form: &ElementForm,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        if let Some(dtype) = form.dtype(py)? {
            let bytes = PyBytes::new(py, bytes);
            let array = match bytes.as_bytes().is_empty() {
                true => return numpy.call_method1("empty", (0, dtype)),
                false => numpy.call_method1("frombuffer", (bytes, dtype))?,
            };
            return array.call_method0("copy");
        }
        let n = bytes.len() / form.size().max(1);
        let array = numpy.call_method1("empty", (n, "O"))?;
        for (i, element) in bytes.chunks_exact(form.size().max(1)).enumerate() {
            array.set_item(i, self.value(py, form, element)?)?;
        }
        Ok(array)
    }

    /// The bytes of one element, made of a Python value.
    pub(crate) fn element(
        &mut self,
        form: &ElementForm,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<u8>> {
        let mut out = vec![0; form.size()];
        self.lay(form, value, &mut out)?;
        Ok(out)
    }

    /// The same, into memory of its size.
    pub(crate) fn lay(
        &mut self,
        form: &ElementForm,
        value: &Bound<'_, PyAny>,
        out: &mut [u8],
    ) -> PyResult<()> {
        match form {
            ElementForm::Text => {
                let address = match value.cast::<PyString>() {
                    Ok(text) => self.add(encoded(text)?),
                    Err(_) if value.is_none() => 0,
                    Err(_) => match value.cast::<PyBytes>() {
                        Ok(bytes) => self.add(bytes.as_bytes().to_vec()),
                        Err(_) => {
                            let text = format!("a str is wanted, not {}", value.get_type());
                            return Err(PyTypeError::new_err(text));
                        }
                    },
                };
                out.copy_from_slice(&address.to_ne_bytes());
            }
            ElementForm::Sequence(item) => {
                if value.is_none() {
                    return Ok(());
                }
                let (items, n) = self.items(item, value)?;
                let address = if n == 0 { 0 } else { self.add(items) };
                out[..8].copy_from_slice(&(n as u64).to_ne_bytes());
                out[8..].copy_from_slice(&address.to_ne_bytes());
            }
            ElementForm::Compound { fields, .. } if form.has_parts() => {
                self.compound(fields, value, out)?
            }
            _ => {
                let bytes = plain(form, value)?;
                if bytes.len() != out.len() {
                    let text = format!("{} bytes are given for {}", bytes.len(), out.len());
                    return Err(PyValueError::new_err(text));
                }
                out.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn compound(
        &mut self,
        fields: &[Field],
        value: &Bound<'_, PyAny>,
        out: &mut [u8],
    ) -> PyResult<()> {
        for (i, field) in fields.iter().enumerate() {
            let given = match value.cast::<PyDict>() {
                Ok(_) => value.get_item(decoded(value.py(), &field.name)?)?,
                Err(_) => value.get_item(i)?,
            };
            let n: usize = field.shape.iter().product();
            let end = field.offset + n * field.form.size();
            let Some(out) = out.get_mut(field.offset..end) else { continue };
            if field.shape.is_empty() {
                self.lay(&field.form, &given, out)?;
                continue;
            }
            let (items, given_n) = self.items(&field.form, &given)?;
            if given_n != n {
                let text = format!("{given_n} values are given for {n} of a field");
                return Err(PyValueError::new_err(text));
            }
            out.copy_from_slice(&items);
        }
        Ok(())
    }

    /// Bytes of all values of an array or sequence, and how many there are.
    pub(crate) fn items(
        &mut self,
        item: &ElementForm,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<u8>, usize)> {
        let size = item.size().max(1);
        if !item.has_parts() {
            let bytes = plain(item, values)?;
            let n = bytes.len() / size;
            return Ok((bytes, n));
        }
        // Arrays of several dimensions are taken in the order of memory.
        let flat = match values.hasattr("ravel")? {
            true => values.call_method0("ravel")?,
            false => values.clone(),
        };
        let n = flat.len()?;
        let mut out = vec![0; n * size];
        for (i, out) in out.chunks_exact_mut(size).enumerate() {
            self.lay(item, &flat.get_item(i)?, out)?;
        }
        Ok((out, n))
    }
}

/// Bytes of values without strings or sequences, converted to the form by NumPy.
fn plain(form: &ElementForm, values: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = values.py();
    let numpy = py.import("numpy")?;
    let dtype = form.dtype(py)?.ok_or_else(|| {
        PyTypeError::new_err("values of this type cannot be put: NumPy has no dtype for it")
    })?;
    let given = match (form, values.cast::<PyBytes>()) {
        // Bytes are characters, not one number.
        (ElementForm::Atomic(_) | ElementForm::Opaque(_), Ok(bytes))
            if !bytes.as_bytes().is_empty() =>
        {
            let kind = match form {
                ElementForm::Atomic(ty) => letters(*ty).to_owned(),
                _ => format!("V{}", form.size()),
            };
            numpy.call_method1("frombuffer", (bytes, kind))?
        }
        _ => values.clone(),
    };
    let array = numpy.call_method1("ascontiguousarray", (given, dtype))?;
    let bytes = array.call_method0("tobytes")?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}
