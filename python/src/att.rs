//! Attributes.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use zonda::{ExtType, NC_STRING};

use crate::describe::var_ref;
use crate::file::File;
use crate::names::{Name, decoded};
use crate::objects::Store;
use crate::types::Form;

/// An attribute as the engine gives it.
struct Att {
    name: Vec<u8>,
    nc_type: i32,
    form: Form,
    bytes: Vec<u8>,
    store: Store,
}

fn read(
    dataset: &zonda::Dataset,
    of: zonda::VarRef,
    (name, nc_type, len): (Vec<u8>, i32, u64),
) -> zonda::Result<Att> {
    let form = dataset.meta(|meta| Form::of(meta, nc_type))?;
    let mut store = Store::default();
    let n = usize::try_from(len).ok().and_then(|n| n.checked_mul(form.size()));
    let too_large = || zonda::Error::from(zonda::NcError::NoMem);
    let n = n.ok_or_else(too_large)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(n).map_err(|_| too_large())?;
    bytes.resize(n, 0);
    let out = &mut bytes;
    // As it is in the file: nothing is converted.
    let _converted = dataset.get_att_placed(of, &name, &mut store, |len| {
        // Another thread may have changed it meanwhile.
        out.resize(len, 0);
        Ok(out)
    })?;
    Ok(Att { name, nc_type, form, bytes, store })
}

fn value<'py>(py: Python<'py>, att: &Att) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &att.form {
        Form::Atomic(ExtType::Char) => PyBytes::new(py, &att.bytes).into_any(),
        form if att.nc_type == NC_STRING || matches!(form, Form::Sequence(_)) => {
            let list = PyList::empty(py);
            for element in att.bytes.chunks_exact(form.size()) {
                list.append(att.store.value(py, form, element)?)?;
            }
            list.into_any()
        }
        form => att.store.array(py, form, &att.bytes)?,
    })
}

fn all_of(dataset: &zonda::Dataset, of: zonda::VarRef) -> zonda::Result<Vec<(Vec<u8>, i32, u64)>> {
    dataset.in_group(of.group, |meta| {
        let n = meta.n_atts(of.var)?;
        (0..n)
            .map(|i| {
                let att = meta.att(of.var, i)?;
                Ok((att.name.into_owned(), att.nc_type, att.len))
            })
            .collect()
    })?
}

#[pymethods]
impl File {
    fn att_names<'py>(
        &self,
        py: Python<'py>,
        group: u16,
        var: i32,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = self.call(py, |dataset| all_of(dataset, var_ref(group, var)))?;
        let list = PyList::empty(py);
        for (name, ..) in &found {
            list.append(decoded(py, name)?)?;
        }
        Ok(list)
    }

    /// Name, type, value of all attributes.
    fn atts<'py>(&self, py: Python<'py>, group: u16, var: i32) -> PyResult<Bound<'py, PyList>> {
        let of = var_ref(group, var);
        let found = self.call(py, |dataset| {
            let all = all_of(dataset, of)?;
            all.into_iter().map(|att| read(dataset, of, att)).collect::<zonda::Result<Vec<_>>>()
        })?;
        let list = PyList::empty(py);
        for att in &found {
            list.append((decoded(py, &att.name)?, att.nc_type, value(py, att)?))?;
        }
        Ok(list)
    }

    /// Type and value of one.
    pub(crate) fn att(
        &self,
        py: Python<'_>,
        group: u16,
        var: i32,
        name: Name,
    ) -> PyResult<(i32, Py<PyAny>)> {
        let of = var_ref(group, var);
        let found = self.call(py, |dataset| {
            let (nc_type, len) = dataset.in_group(of.group, |meta| {
                let (_, att) = meta.find_att(of.var, &name.0)?;
                Ok::<_, zonda::Error>((att.nc_type, att.len))
            })??;
            read(dataset, of, (name.0, nc_type, len))
        })?;
        Ok((found.nc_type, value(py, &found)?.unbind()))
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
        let mut store = Store::default();
        let (bytes, n) = match value.cast::<PyBytes>() {
            Ok(text) if matches!(form, Form::Atomic(ExtType::Char)) => {
                (text.as_bytes().to_vec(), text.as_bytes().len())
            }
            _ => store.items(&form, &value)?,
        };
        self.call(py, |dataset| {
            let of = var_ref(group, var);
            dataset.put_att_placed(of, &name.0, (typeid, n), &mut store, |_| Ok(&bytes)).map(drop)
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
