//! Writes NcML, the header of a dataset as XML, byte by byte as `ncdump -x` 4.9.0 does. No XML
//! writer is used, because the reference's output is not what one writes: names are not escaped
//! (nor need they be UTF-8), and empty elements end with ` />`.
//!
//! The reference converts numbers of attributes to `double` and cuts lengths of dimensions to 32
//! bits; so does this.

use std::io::Write;

use zonda::{Dataset, ExtType, GroupId, Meta, NC_STRING, NcError, VarId, VarRef};

use crate::cdl::header::var_id;
use crate::cdl::value::CdlValue;
use crate::cdl::values::{Precision, push_with_point};
use crate::failure::Result;
use crate::markup;
use crate::placed;

/// What to write.
#[derive(Clone, Debug)]
pub(crate) struct NcmlOptions {
    /// The path of the file.
    pub(crate) location: Vec<u8>,
    /// Whether data was asked for. Data is never written, but elements that would contain it get an
    /// end tag.
    pub(crate) has_data: bool,
    /// Data of coordinate variables only.
    pub(crate) coordinates_only: bool,
    /// Data of these variables only; empty for all.
    pub(crate) variables: Vec<Vec<u8>>,
    /// Digits of floating-point values.
    pub(crate) precision: Precision,
}

/// Writes a dataset of the classic model.
///
/// # Errors
/// `NC_ENOTVAR` for a name with a path; errors of reading. What was made before an error is
/// written.
pub(crate) fn write(out: &mut dyn Write, file: &Dataset, options: &NcmlOptions) -> Result<()> {
    let mut text = Vec::new();
    let done = file.in_group(GroupId::ROOT, |meta| {
        let found = options.variables.iter().map(|name| meta.find_var(name));
        let requested = found.collect::<zonda::Result<Vec<VarId>>>()?;
        Ncml { out: &mut text, file, meta, options, requested }.write()
    });
    out.write_all(&text)?;
    done?
}

/// Writes one dataset.
struct Ncml<'a> {
    out: &'a mut Vec<u8>,
    file: &'a Dataset,
    meta: &'a Meta<'a>,
    options: &'a NcmlOptions,
    /// The variables that the options name.
    requested: Vec<VarId>,
}

impl Ncml<'_> {
    fn put(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }

    fn write(mut self) -> Result<()> {
        let location = self.options.location.clone();
        self.put(&[
            b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<netcdf xmlns=\"",
            b"https://www.unidata.ucar.edu/namespaces/netcdf/ncml-2.2\" location=\"",
            &location,
            b"\">\n",
        ]);
        let unlimited = self.meta.unlimited();
        for id in self.meta.dim_ids() {
            let dim = self.meta.dim(id)?;
            // C cuts the length to an `int`.
            let len = (dim.len as i32).to_string();
            self.put(&[b"  <dimension name=\"", dim.name, b"\" length=\"", len.as_bytes(), b"\""]);
            if unlimited == Some(id) {
                self.put(&[b" isUnlimited=\"true\""]);
            }
            self.put(&[b" />\n"]);
        }
        self.write_atts(VarId::GLOBAL)?;
        for id in (0..self.meta.n_vars()).map(var_id) {
            self.write_var(id)?;
        }
        self.put(&[b"</netcdf>\n"]);
        Ok(())
    }

    fn write_var(&mut self, id: VarId) -> Result<()> {
        let var = self.meta.var(id)?;
        self.put(&[b"  <variable name=\"", var.name, b"\""]);
        for (axis, &dim) in var.dims.iter().enumerate() {
            let before: &[u8] = if axis == 0 { b" shape=\"" } else { b" " };
            self.put(&[before, self.meta.dim(dim)?.name]);
        }
        if !var.dims.is_empty() {
            self.put(&[b"\""]);
        }
        let name = var.ty().map_or("string", ExtType::name);
        self.put(&[b" type=\"", name.as_bytes(), b"\""]);
        if self.meta.n_atts(id)? == 0 && !self.would_have_data(id)? {
            self.put(&[b" />\n"]);
            return Ok(());
        }
        self.put(&[b">\n"]);
        self.write_atts(id)?;
        self.put(&[b"  </variable>\n"]);
        Ok(())
    }

    /// Whether data of a variable is asked for and there is some.
    fn would_have_data(&self, id: VarId) -> Result<bool> {
        let var = self.meta.var(id)?;
        let is_named = self.options.variables.is_empty() || self.requested.contains(&id);
        let is_coordinate = || var.dims.len() == 1 && self.meta.find_dim(var.name).is_ok();
        let has_records = || {
            let grows = |&dim| self.meta.dim(dim).is_ok_and(|dim| dim.is_unlimited);
            !var.dims.iter().any(grows) || self.meta.n_records() > 0
        };
        Ok(self.options.has_data
            && is_named
            && (!self.options.coordinates_only || is_coordinate())
            && has_records())
    }

    fn write_atts(&mut self, owner: VarId) -> Result<()> {
        let indent: &[u8] = if owner == VarId::GLOBAL { b"" } else { b"  " };
        for index in 0..self.meta.n_atts(owner)? {
            let att = self.meta.att(owner, index)?;
            // `ncdump` asks for strings as if they were text, and the library answers `NC_ECHAR`.
            let other = if att.nc_type == NC_STRING { NcError::Char } else { NcError::BadType };
            let ty = att.ty().ok_or(zonda::Error::from(other))?;
            let at = VarRef { group: self.meta.group_id(), var: owner };
            let (bytes, _) = placed::attribute(self.file, self.meta, at, &att)?;
            self.put(&[indent, b"  <attribute name=\"", &att.name, b"\""]);
            if ty == ExtType::Char {
                self.put(&[b" value="]);
                push_text(self.out, &att.name, &bytes);
            } else {
                self.put(&[b" type=\"", ty.name().as_bytes(), b"\" value=\""]);
                for (index, element) in bytes.chunks_exact(ty.size()).enumerate() {
                    if index > 0 {
                        self.put(&[b" "]);
                    }
                    push_number(self.out, CdlValue::native(ty, element), self.options.precision);
                }
                self.put(&[b"\""]);
            }
            self.put(&[b" />\n"]);
        }
        Ok(())
    }
}

/// Appends a text in quotes, without the NULs at its end. XML cannot contain NULs, so one in the
/// middle causes a warning on standard error.
fn push_text(out: &mut Vec<u8>, name: &[u8], text: &[u8]) {
    let len = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let text = &text[..len];
    out.push(b'"');
    markup::push_escaped(out, text);
    out.push(b'"');
    if text.contains(&0) {
        let name = String::from_utf8_lossy(name);
        eprintln!("Attribute: '{name}'; value contains nul characters; producing illegal xml");
    }
}

/// Appends a number as it is after conversion to `double`, without a letter for its type.
fn push_number(out: &mut Vec<u8>, value: CdlValue, precision: Precision) {
    let text = match value {
        CdlValue::Float(value) if !value.is_finite() => not_finite(value.into()),
        CdlValue::Double(value) if !value.is_finite() => not_finite(value),
        CdlValue::Float(value) => {
            return push_with_point(out, value.into(), precision.float.number);
        }
        CdlValue::Double(value) => {
            return push_with_point(out, value, precision.double.number);
        }
        CdlValue::Char(byte) => byte.to_string(),
        CdlValue::Int(value) => match i32::try_from(value) {
            Ok(value) => value.to_string(),
            // A number that does not fit becomes the lowest, as on x86.
            Err(_) if value as f64 >= TWO_63 => i64::MIN.to_string(),
            Err(_) => (value as f64 as i64).to_string(),
        },
        CdlValue::UInt(value) => match u32::try_from(value) {
            Ok(value) => value.to_string(),
            // An unsigned number that does not fit becomes 0.
            Err(_) if value as f64 >= 2.0 * TWO_63 => "0".to_owned(),
            Err(_) => (value as f64 as u64).to_string(),
        },
    };
    out.extend_from_slice(text.as_bytes());
}

/// 2 to the power of 63.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// Infinities and NaN as C writes them.
fn not_finite(value: f64) -> String {
    let name = if value.is_nan() { "nan" } else { "inf" };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: CdlValue) -> String {
        let mut out = Vec::new();
        push_number(&mut out, value, Precision::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_by_way_of_double() {
        for (value, text) in [
            (CdlValue::Int(-5), "-5"),
            (CdlValue::Int((1 << 53) + 1), "9007199254740992"),
            (CdlValue::Int(i64::MAX), "-9223372036854775808"),
            (CdlValue::UInt(u64::MAX), "0"),
            (CdlValue::UInt(u64::from(u32::MAX)), "4294967295"),
            (CdlValue::Float(1.5), "1.5"),
            (CdlValue::Double(1.0), "1."),
            (CdlValue::Double(1e20), "1.e+20"),
            (CdlValue::Double(f64::NEG_INFINITY), "-inf"),
            (CdlValue::Float(f32::NAN), "nan"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_is_escaped() {
        let mut out = Vec::new();
        push_text(&mut out, b"x", b"a<\"&\n\x01b\xC3\xA9\0\0");
        assert_eq!(out, b"\"a&lt;&quot;&amp;&#xA;&#1;b\xC3\xA9\"");
    }
}
