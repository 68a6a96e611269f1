//! Attributes.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use zonda::{ExtType, NC_STRING};

use crate::describe::var_ref;
use crate::errors;
use crate::file::File;
use crate::names::{Name, decoded};
use crate::objects::VlenStore;
use crate::types::ElementForm;

/// An attribute: what it is called, and its values, or why they cannot be read.
pub(crate) struct Att {
    pub(crate) name: Vec<u8>,
    pub(crate) nc_type: i32,
    pub(crate) values: zonda::Result<Values>,
}

/// Values in memory, as the engine gives them.
pub(crate) struct Values {
    pub(crate) form: ElementForm,
    pub(crate) bytes: Vec<u8>,
    pub(crate) store: VlenStore,
}

fn read(
    dataset: &zonda::Dataset,
    of: zonda::VarRef,
    name: &[u8],
    nc_type: i32,
) -> zonda::Result<Values> {
    let form = dataset.meta(|meta| ElementForm::of(meta, nc_type))?;
    let (mut store, mut bytes) = (VlenStore::default(), Vec::new());
    // Nothing is converted.
    let _converted = dataset.get_att_list(of, name, None, (&mut bytes, Some(&mut store)))?;
    Ok(Values { form, bytes, store })
}

/// Whether an error is about the attribute alone, so that others can be read. Errors of the device, or of a file that
/// was closed, are not.
pub(crate) fn is_its_own(error: &zonda::Error) -> bool {
    !matches!(error.code(), zonda::NcError::System(_) | zonda::NcError::BadId)
}

/// All attributes of a variable or group. A damaged one does not keep others from being read.
pub(crate) fn all(dataset: &zonda::Dataset, of: zonda::VarRef) -> zonda::Result<Vec<Att>> {
    let names = names(dataset, of)?.into_iter();
    names
        .map(|(name, nc_type)| match read(dataset, of, &name, nc_type) {
            Err(error) if !is_its_own(&error) => Err(error),
            values => Ok(Att { name, nc_type, values }),
        })
        .collect()
}

fn names(dataset: &zonda::Dataset, of: zonda::VarRef) -> zonda::Result<Vec<(Vec<u8>, i32)>> {
    dataset.in_group(of.group, |meta| {
        let n = meta.n_atts(of.var)?;
        (0..n)
            .map(|i| {
                let att = meta.att(of.var, i)?;
                Ok((att.name.into_owned(), att.nc_type))
            })
            .collect()
    })?
}

/// A value as it is: text as bytes, numbers as an array.
pub(crate) fn raw<'py>(
    py: Python<'py>,
    nc_type: i32,
    values: &Values,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &values.form {
        ElementForm::Atomic(ExtType::Char) => PyBytes::new(py, &values.bytes).into_any(),
        form if nc_type == NC_STRING || matches!(form, ElementForm::Sequence(_)) => {
            let list = PyList::empty(py);
            for element in values.bytes.chunks_exact(form.size()) {
                list.append(values.store.value(py, form, element)?)?;
            }
            list.into_any()
        }
        form => values.store.array(py, form, &values.bytes)?,
    })
}

#[pymethods]
impl File {
    fn att_names<'py>(
        &self,
        py: Python<'py>,
        group: u16,
        var: i32,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = self.call(py, |dataset| names(dataset, var_ref(group, var)))?;
        let list = PyList::empty(py);
        for (name, _) in &found {
            list.append(decoded(py, name)?)?;
        }
        Ok(list)
    }

    /// Name, type, value of all attributes; of one that is damaged the exception in place of the value.
    fn atts<'py>(&self, py: Python<'py>, group: u16, var: i32) -> PyResult<Bound<'py, PyList>> {
        let found = self.call(py, |dataset| all(dataset, var_ref(group, var)))?;
        let list = PyList::empty(py);
        for att in &found {
            let value = match &att.values {
                Ok(values) => raw(py, att.nc_type, values)?,
                Err(error) => errors::raise(py, error).into_value(py).into_bound(py).into_any(),
            };
            list.append((decoded(py, &att.name)?, att.nc_type, value))?;
        }
        Ok(list)
    }

    /// Type and value of one attribute.
    pub(crate) fn att(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        name: Name,
    ) -> PyResult<(i32, Py<PyAny>)> {
        let of = var_ref(group, var);
        let (nc_type, values) = self.call(py, |dataset| {
            let nc_type = dataset.in_group(of.group, |meta| {
                let (_, att) = meta.find_att(of.var, &name.0)?;
                Ok::<_, zonda::Error>(att.nc_type)
            })??;
            Ok((nc_type, read(dataset, of, &name.0, nc_type)?))
        })?;
        Ok((nc_type, raw(py, nc_type, &values)?.unbind()))
    }

    fn put_att(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        name: Name,
        typeid: i32,
        value: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let form = self.form_of_type(py, typeid)?;
        let mut store = VlenStore::default();
        let (bytes, n) = match value.cast::<PyBytes>() {
            Ok(text) if matches!(form, ElementForm::Atomic(ExtType::Char)) => {
                (text.as_bytes().to_vec(), text.as_bytes().len())
            }
            _ => store.items(&form, &value)?,
        };
        self.call(py, |dataset| {
            let of = var_ref(group, var);
            let values = zonda::Values { bytes: &bytes, fetch: Some(&mut store) };
            dataset.put_att_values(of, &name.0, (typeid, n), values).map(drop)
        })
    }

    fn del_att(&self, py: Python<'_>, group: u16, var: i32, name: Name) -> PyResult<()> {
        self.call(py, |dataset| dataset.del_att(var_ref(group, var), &name.0))
    }

    fn rename_att(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        name: Name,
        new_name: Name,
    ) -> PyResult<()> {
        self.call(py, |dataset| dataset.rename_att(var_ref(group, var), &name.0, &new_name.0))
    }
}
