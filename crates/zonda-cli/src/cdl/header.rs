//! The header of a group in CDL: types, dimensions, variables and attributes.

use zonda::{AttView, Dataset, DimId, ExtType, Format, GroupId, Meta, NC_STRING, VarId, VarRef};

use super::lines::CdlLines;
use super::owner::AttributeOwner;
use super::times::{TimeBounds, Times};
use super::types::{ElementType, TypeKind, outward, push_hex};
use super::value::CdlValue;
use super::values::Precision;
use super::{CdlOptions, names, special, types, values};
use crate::failure::Result;
use crate::placed::{self, VlenStore};

/// Global attribute that netCDF-4 keeps for itself and that is not shown among the others.
const PROVENANCE: &[u8] = b"_NCProperties";

/// Writes everything between the opening brace and the data section.
pub(super) fn write(
    lines: &mut CdlLines<'_>,
    file: &Dataset,
    meta: &Meta<'_>,
    options: &CdlOptions,
    bounds: &mut TimeBounds,
) -> Result<()> {
    let group = meta.group_id();
    types::write(lines, meta)?;
    let mut text = Vec::new();
    if meta.n_dims() > 0 {
        lines.indented(b"dimensions:\n")?;
    }
    for id in meta.dim_ids() {
        let dim = meta.dim(id)?;
        text.clear();
        text.push(b'\t');
        names::push_escaped(&mut text, dim.name)?;
        let line = if dim.is_unlimited {
            format!(" = UNLIMITED ; // ({} currently)\n", dim.len)
        } else {
            format!(" = {} ;\n", dim.len)
        };
        text.extend_from_slice(line.as_bytes());
        lines.indented(&text)?;
    }
    if meta.n_vars() > 0 {
        lines.indented(b"variables:\n")?;
    }
    for id in (0..meta.n_vars()).map(var_id) {
        text.clear();
        let pushed = push_var(&mut text, meta, id);
        // A definition that is damaged is written as far as possible.
        lines.indented(&text)?;
        pushed?;
        let owner =
            AttributeOwner { file, meta, var: VarRef { group, var: id }, name: meta.var(id)?.name };
        owner.write(lines, options, bounds)?;
        if options.special {
            special::write_var(lines, &owner, options)?;
        }
    }
    let owner = AttributeOwner { file, meta, var: VarRef::group(group), name: b"" };
    let is_root = group == GroupId::ROOT;
    if meta.n_atts(VarId::GLOBAL)? > 0 || options.special {
        lines.raw(b"\n")?;
        let kind = if is_root { "global" } else { "group" };
        lines.indented(format!("// {kind} attributes:\n").as_bytes())?;
    }
    owner.write(lines, options, bounds)?;
    if options.special && is_root {
        special::write_global(lines, &owner, options)?;
    }
    Ok(())
}

/// The id of a variable. Ids are `i32` in netCDF, so no file has more variables.
pub(crate) fn var_id(index: usize) -> VarId {
    VarId(i32::try_from(index).unwrap_or(i32::MAX))
}

/// Appends the definition of a variable. If it is damaged, this appends what there is and returns
/// why.
fn push_var(text: &mut Vec<u8>, meta: &Meta<'_>, id: VarId) -> Result<()> {
    push_definition(text, meta, id)
        .map_err(|error| meta.var_fault(id).map_or(error, |why| why.into()))
}

fn push_definition(text: &mut Vec<u8>, meta: &Meta<'_>, id: VarId) -> Result<()> {
    let var = meta.var(id)?;
    text.push(b'\t');
    types::push_name(text, meta, var.nc_type)?;
    text.push(b' ');
    names::push_escaped(text, var.name)?;
    for (axis, &dim) in var.dims.iter().enumerate() {
        text.extend_from_slice(if axis == 0 { b"(" } else { b", " });
        push_dim(text, meta, dim)?;
    }
    if !var.dims.is_empty() {
        text.push(b')');
    }
    text.extend_from_slice(b" ;\n");
    Ok(())
}

/// Appends the name of a dimension, with the path of a group if the name alone would mean another
/// dimension.
fn push_dim(text: &mut Vec<u8>, meta: &Meta<'_>, id: DimId) -> Result<()> {
    let name = meta.dim(id)?.name;
    let meant = |group: &Meta<'_>| group.find_dim(name).ok();
    if meant(meta) != Some(id) {
        // The path is that of the innermost group around in which the name means this dimension, as
        // in ncdump; else that of its own group.
        let from = outward(meta).find(|group| meant(group) == Some(id));
        let path = match from {
            Some(group) => Some(group.group_path()),
            None => group_of(meta, id),
        };
        if let Some(path) = path {
            names::push_escaped(text, &path)?;
            if path != b"/" {
                text.push(b'/');
            }
        }
    }
    names::push_escaped(text, name)
}

/// The path of the group that a dimension is defined in.
fn group_of(meta: &Meta<'_>, id: DimId) -> Option<Vec<u8>> {
    let mut left = vec![GroupId::ROOT];
    while let Some(group) = left.pop().and_then(|group| meta.group(group).ok()) {
        if group.dim_ids().any(|own| own == id) {
            return Some(group.group_path());
        }
        left.extend_from_slice(group.groups());
    }
    None
}

impl AttributeOwner<'_> {
    fn write(
        &self,
        lines: &mut CdlLines<'_>,
        options: &CdlOptions,
        bounds: &mut TimeBounds,
    ) -> Result<()> {
        for index in 0..self.meta.n_atts(self.var.var)? {
            self.write_att(lines, index, options, bounds)?;
        }
        Ok(())
    }

    fn write_att(
        &self,
        lines: &mut CdlLines<'_>,
        index: usize,
        options: &CdlOptions,
        bounds: &mut TimeBounds,
    ) -> Result<()> {
        let att = self.meta.att(self.var.var, index)?;
        if self.var == VarRef::group(GroupId::ROOT) && *att.name == *PROVENANCE {
            return Ok(());
        }
        let ty = ElementType::of(self.meta, att.nc_type, options.exact)?;
        lines.indented(&self.att_name(&att)?)?;
        let (bytes, pieces) = placed::attribute(self.file, self.meta, self.var, &att)?;
        let n = usize::try_from(att.len).unwrap_or(usize::MAX);
        let mut text = self.att_values(lines, &ty, (&bytes, &pieces), n, options.precision)?;
        text.extend_from_slice(b" ;");
        lines.raw(&text)?;
        if let Some(style) = options.times {
            // An attribute without values is shown as a string.
            let is_text = n == 0 || att.ty() == Some(ExtType::Char);
            if let Some(ty) = att.ty().filter(|_| !is_text && self.var.var != VarId::GLOBAL) {
                // An attribute has no name that `bounds` of a variable could mean.
                let times = Times::of(self.file, self.meta, self.var, b"", bounds, style)?;
                if let Some(times) = times {
                    write_times(lines, &times, ty, &bytes)?;
                }
            }
            if is_text && *att.name == *b"bounds" {
                bounds.add(&bytes, self.var);
            }
        }
        Ok(lines.raw(b"\n")?)
    }

    /// The beginning of the line of an attribute: type where it has to be said, names, `=`.
    fn att_name(&self, att: &AttView<'_>) -> Result<Vec<u8>> {
        let mut text = b"\t\t".to_vec();
        if att.nc_type == NC_STRING || att.ty().is_none() {
            types::push_name(&mut text, self.meta, att.nc_type)?;
            text.push(b' ');
        }
        names::push_escaped(&mut text, self.name)?;
        if names::is_keyword(self.name) {
            text.push(b' ');
        }
        text.push(b':');
        names::push_escaped(&mut text, &att.name)?;
        text.extend_from_slice(b" = ");
        Ok(text)
    }

    /// Values of an attribute with commas between them. Values of nested types are written, because they
    /// are wrapped as in the data section; what is still to be written is returned.
    fn att_values(
        &self,
        lines: &mut CdlLines<'_>,
        ty: &ElementType,
        (bytes, pieces): (&[u8], &VlenStore),
        n: usize,
        precision: Precision,
    ) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        // Strings in lists are told apart by their quotes, so that no value may be cut into two.
        let cut = self.meta.format() != Format::NetCdf4;
        if n == 0 {
            return Ok(b"\"\"".to_vec());
        }
        if let TypeKind::Atomic(ExtType::Char) = ty.kind {
            push_string(&mut text, bytes, cut);
            return Ok(text);
        }
        for (at, element) in bytes.chunks_exact(ty.size.max(1)).enumerate() {
            match &ty.kind {
                TypeKind::Atomic(ty) => {
                    let value = CdlValue::native(*ty, element);
                    values::push_att_value(&mut text, *ty, value, precision);
                }
                TypeKind::String { .. } => {
                    let number = element.first_chunk().map(|n| u64::from_ne_bytes(*n));
                    match number.and_then(|number| pieces.get(number)) {
                        Some(string) => push_string(&mut text, string, cut),
                        None => text.extend_from_slice(b"NIL"),
                    }
                }
                TypeKind::Enum(symbols) => match symbols.name(element) {
                    Some(name) => names::push_escaped(&mut text, name)?,
                    None => symbols.push(&mut text, element),
                },
                TypeKind::Opaque | TypeKind::Unknown => push_hex(&mut text, element),
                TypeKind::Vlen(_) | TypeKind::Compound(_) => {
                    ty.push(&mut text, element, pieces, precision);
                }
            }
            if at + 1 < n {
                text.extend_from_slice(b", ");
            }
            if matches!(ty.kind, TypeKind::Vlen(_) | TypeKind::Compound(_)) {
                lines.put(&text)?;
                text.clear();
            }
        }
        Ok(text)
    }
}

/// Writes the values of an attribute as dates in a comment: one or two on the attribute's line,
/// more on lines of their own.
fn write_times(lines: &mut CdlLines<'_>, times: &Times, ty: ExtType, bytes: &[u8]) -> Result<()> {
    /// The column at which `ncdump` assumes that lines of such a list begin.
    const START: usize = 18;
    let n = bytes.len() / ty.size();
    let mut text = Vec::new();
    let mut at = 0;
    for (index, element) in bytes.chunks_exact(ty.size()).enumerate() {
        text.clear();
        times.push(&mut text, CdlValue::native(ty, element));
        if index + 1 < n {
            text.push(b',');
        }
        at += 1 + text.len();
        let breaks = n > 2 && (index == 0 || at > lines.line_len());
        if breaks {
            lines.raw(b"\n")?;
            lines.indented(b"\t\t  ")?;
            at = START + text.len();
        } else {
            lines.raw(b" ")?;
        }
        if index == 0 || breaks {
            lines.raw(b"// ")?;
            at += 3;
        }
        lines.raw(&text)?;
    }
    Ok(())
}

/// Appends the value of a text attribute without the NULs at its end. With `cut`, a new string on a
/// new line follows each newline.
fn push_string(text: &mut Vec<u8>, bytes: &[u8], cut: bool) {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    text.push(b'"');
    for &byte in &bytes[..len] {
        if byte == b'\n' && cut {
            text.extend_from_slice(b"\\n\",\n\t\t\t\"");
        } else {
            types::push_char(text, byte);
        }
    }
    text.push(b'"');
}
