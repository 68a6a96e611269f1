//! The header in CDL: dimensions, variables and attributes.

use std::io::Write;

use zonda::{Error, ExtType, Meta, NcError, VarId};

use super::{Options, names, values};
use crate::failure::Result;

/// Global attribute that netCDF-4 keeps for itself and that is not shown among the others.
const PROVENANCE: &[u8] = b"_NCProperties";

/// Writes everything between the opening brace and the data section.
pub(super) fn write(out: &mut dyn Write, meta: &Meta<'_>, options: &Options) -> Result<()> {
    let mut text = Vec::new();
    if meta.n_dims() > 0 {
        text.extend_from_slice(b"dimensions:\n");
    }
    for id in meta.dim_ids() {
        let dim = meta.dim(id)?;
        text.push(b'\t');
        names::push_escaped(&mut text, dim.name)?;
        let line = if dim.is_unlimited {
            format!(" = UNLIMITED ; // ({} currently)\n", dim.len)
        } else {
            format!(" = {} ;\n", dim.len)
        };
        text.extend_from_slice(line.as_bytes());
    }
    if meta.n_vars() > 0 {
        text.extend_from_slice(b"variables:\n");
    }
    for id in 0..meta.n_vars() {
        push_var(&mut text, meta, var_id(id), options)?;
        // A header may be large; memory for one variable's part is enough.
        out.write_all(&text)?;
        text.clear();
    }
    let n_atts = meta.n_atts(VarId::GLOBAL)?;
    if n_atts > 0 || options.special {
        text.extend_from_slice(b"\n// global attributes:\n");
    }
    for index in 0..n_atts {
        push_att(&mut text, meta, VarId::GLOBAL, b"", index, options)?;
        out.write_all(&text)?;
        text.clear();
    }
    if options.special {
        let line = format!("\t\t:_Format = \"{}\" ;\n", meta.format().kind());
        text.extend_from_slice(line.as_bytes());
    }
    Ok(out.write_all(&text)?)
}

/// Ids are `i32` in netCDF, and so files have no more.
pub(super) fn var_id(index: usize) -> VarId {
    VarId(i32::try_from(index).unwrap_or(i32::MAX))
}

fn push_var(text: &mut Vec<u8>, meta: &Meta<'_>, id: VarId, options: &Options) -> Result<()> {
    let var = meta.var(id)?;
    let ty = var.ty().ok_or(Error::from(NcError::BadType))?;
    text.push(b'\t');
    text.extend_from_slice(ty.name().as_bytes());
    text.push(b' ');
    names::push_escaped(text, var.name)?;
    for (axis, &dim) in var.dims.iter().enumerate() {
        text.extend_from_slice(if axis == 0 { b"(" } else { b", " });
        names::push_escaped(text, meta.dim(dim)?.name)?;
    }
    if !var.dims.is_empty() {
        text.push(b')');
    }
    text.extend_from_slice(b" ;\n");
    for index in 0..meta.n_atts(id)? {
        push_att(text, meta, id, var.name, index, options)?;
    }
    Ok(())
}

fn push_att(
    text: &mut Vec<u8>,
    meta: &Meta<'_>,
    owner: VarId,
    owner_name: &[u8],
    index: usize,
    options: &Options,
) -> Result<()> {
    let att = meta.att(owner, index)?;
    if owner == VarId::GLOBAL && *att.name == *PROVENANCE {
        return Ok(());
    }
    text.extend_from_slice(b"\t\t");
    names::push_escaped(text, owner_name)?;
    if names::is_keyword(owner_name) {
        text.push(b' ');
    }
    text.push(b':');
    names::push_escaped(text, &att.name)?;
    text.extend_from_slice(b" = ");
    let (ty, bytes) = att.ty().zip(att.bytes).ok_or(Error::from(NcError::BadType))?;
    if ty == ExtType::Char || att.len == 0 {
        push_string(text, bytes);
    } else {
        for (at, element) in bytes.chunks_exact(ty.size()).enumerate() {
            if at > 0 {
                text.extend_from_slice(b", ");
            }
            let value = values::Value::external(ty, element);
            values::push_att_value(text, ty, value, options.precision);
        }
    }
    text.extend_from_slice(b" ;\n");
    Ok(())
}

/// A text attribute. NULs at its end are left out; after a newline the string goes on in a new line.
fn push_string(text: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    text.push(b'"');
    for &byte in &bytes[..len] {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n\",\n\t\t\t\""),
            _ => match super::data::escape(byte) {
                Some(escape) => text.extend_from_slice(escape),
                None if byte.is_ascii_control() => {
                    text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
                }
                // Beyond ASCII it is taken for UTF-8.
                None => text.push(byte),
            },
        }
    }
    text.push(b'"');
}
