//! What attributes say about stored values ([`zonda_cf::values`]), in the form in which NumPy applies it.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use zonda::ExtType;
use zonda_cf::values::{AttributeValue, CfNumber, Factor, NetCdf4, Profile, Promotion, ValueRules};

use crate::att::{self, Att, Values};
use crate::contents::{Scalars, numbers};
use crate::describe::var_ref;
use crate::errors;
use crate::file::File;
use crate::types::{ElementForm, letters};

/// The value of an attribute, for the rules.
fn attribute(values: &Values) -> AttributeValue {
    let (bytes, form) = (values.bytes.as_slice(), &values.form);
    match form {
        ElementForm::Atomic(ExtType::Char) => AttributeValue::Text(bytes.to_vec()),
        ElementForm::Atomic(ty) | ElementForm::Enum(ty) => {
            AttributeValue::Numbers(*ty, CfNumber::all(*ty, bytes).collect())
        }
        ElementForm::Text if bytes.len() == form.size() => {
            AttributeValue::Text(values.store.text_of(bytes).to_vec())
        }
        _ => AttributeValue::Other,
    }
}

fn found<'a>(atts: &'a [Att], name: &str) -> Option<&'a zonda::Result<Values>> {
    atts.iter().find(|att| att.name == name.as_bytes()).map(|att| &att.values)
}

/// Attributes without which xarray changes no value.
const OF_XARRAY: [&str; 4] = ["missing_value", "_FillValue", "scale_factor", "add_offset"];

/// xarray's rules for a variable; `None` if no attribute is about its values. Damaged attributes are ignored.
pub(crate) fn of_xarray(ty: ExtType, atts: &[Att]) -> Option<ValueRules> {
    if !OF_XARRAY.iter().any(|name| matches!(found(atts, name), Some(Ok(_)))) {
        return None;
    }
    let attribute = |name: &'static str| {
        Ok::<_, std::convert::Infallible>(match found(atts, name) {
            Some(Ok(values)) => attribute(values),
            _ => AttributeValue::Absent,
        })
    };
    let Ok(rules) = ValueRules::of(Profile::Xarray, ty, attribute);
    Some(rules)
}

/// The rules as a Python tuple: type of the result, fill value, factor, offset. Numbers that recur are made once. The
/// tuple is empty where xarray decodes by itself.
pub(crate) fn given_to_xarray<'py>(
    py: Python<'py>,
    rules: &ValueRules,
    known: &mut Scalars<'py>,
) -> PyResult<Bound<'py, PyTuple>> {
    if !rules.left.is_empty() {
        return Ok(PyTuple::empty(py));
    }
    let mut one = |factor: Option<Factor>| -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Factor { ty, number }) = factor else { return Ok(None) };
        let mut bytes = Vec::with_capacity(ty.size());
        number.append_to(ty, &mut bytes);
        known.one(py, ty.nc_type(), ty, &bytes).map(Some)
    };
    let fill = rules.fill.as_ref().and_then(|fill| {
        let number = *fill.numbers.first()?;
        Some(Factor { ty: fill.ty, number })
    });
    let (fill, factor, offset) =
        (one(fill)?, one(rules.scaling.factor)?, one(rules.scaling.offset)?);
    let result = PyString::intern(py, letters(rules.scaling.result));
    (result, fill, factor, offset).into_pyobject(py)
}

/// Numbers as an array of a type, characters as `S1`.
fn array<'py>(py: Python<'py>, ty: ExtType, all: &[CfNumber]) -> PyResult<Bound<'py, PyAny>> {
    let mut bytes = Vec::with_capacity(all.len() * ty.size());
    for number in all {
        number.append_to(ty, &mut bytes);
    }
    let made = numbers(py, ty, &bytes);
    if ty == ExtType::Char { made.call_method1("view", ("S1",)) } else { Ok(made) }
}

#[pymethods]
impl File {
    /// netCDF4-python's rules for a variable, of values of type `typeid`: the type that bits are taken for; arrays of
    /// missing values, fill values (with whether they are the default, and whether they count), of least and of greatest
    /// valid values; factor, offset, the type of the product and of the result; attributes that are not used, and those of
    /// them over which NumPy may raise an error.
    #[pyo3(signature = (group, var, typeid, *, scales, is_filled, by_value))]
    #[allow(clippy::too_many_arguments)]
    fn netcdf4_rules<'py>(
        &self,
        py: Python<'py>,
        group: u16,
        var: i32,
        typeid: i32,
        scales: bool,
        is_filled: bool,
        by_value: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let Some(ty) = ExtType::from_nc_type(typeid) else {
            return Err(errors::of_code(py, zonda::NcError::BadType, ""));
        };
        let promotion = if by_value { Promotion::ByValue } else { Promotion::ByType };
        let profile = Profile::NetCdf4Python(NetCdf4 { scales, is_filled, promotion });
        let rules = self.call(py, |dataset| {
            let mut atts = att::all(dataset, var_ref(group, var))?;
            ValueRules::of(profile, ty, |name| {
                match atts.iter().position(|att| att.name == name.as_bytes()) {
                    None => Ok(AttributeValue::Absent),
                    Some(at) => Ok(attribute(&atts.swap_remove(at).values?)),
                }
            })
        })?;
        let fill = rules.fill.as_ref();
        let fill = match fill {
            None => None,
            Some(fill) => Some((array(py, fill.ty, &fill.numbers)?, fill.is_default, fill.counts)),
        };
        let (taken, scaling) = (rules.taken_as, &rules.scaling);
        let one = |factor: Option<Factor>| {
            factor.map(|one| array(py, one.ty, &[one.number])?.get_item(0)).transpose()
        };
        let unused: Vec<&str> = rules.unused.iter().map(|unused| unused.attribute).collect();
        let parts = [
            letters(taken).into_pyobject(py)?.into_any(),
            array(py, taken, &rules.missing)?,
            fill.into_pyobject(py)?.into_any(),
            array(py, taken, &rules.stored_range.least)?,
            array(py, taken, &rules.stored_range.most)?,
            one(scaling.factor)?.into_pyobject(py)?.into_any(),
            one(scaling.offset)?.into_pyobject(py)?.into_any(),
            letters(scaling.product).into_pyobject(py)?.into_any(),
            letters(scaling.result).into_pyobject(py)?.into_any(),
            PyTuple::new(py, unused)?.into_any(),
            PyTuple::new(py, &rules.left)?.into_any(),
        ];
        PyTuple::new(py, parts)
    }
}
