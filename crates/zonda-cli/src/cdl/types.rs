//! Writes types: their declarations, their names where they are used, and values of user-defined
//! types.

use std::io::Write;

use zonda::{ExtType, Field, Meta, NC_STRING, UserClass};

use super::lines::CdlLines;
use super::names;
use super::value::CdlValue;
use super::values::{Precision, is_fill, push_plain};
use crate::failure::Result;
use crate::placed::VlenStore;

/// The type of an element.
#[derive(Clone, Debug)]
pub(crate) struct ElementType {
    /// Bytes in memory.
    pub(crate) size: usize,
    pub(crate) kind: TypeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    Atomic(ExtType),
    /// With `exact` vertical tabs become newlines, as in `ncdump` 4.9.0.
    String {
        exact: bool,
    },
    Opaque,
    Enum(Symbols),
    Vlen(Box<ElementType>),
    Compound(Vec<TypeField>),
    /// Bytes of a type that netCDF does not know.
    Unknown,
}

/// Names of the values of an enumeration.
#[derive(Clone, Debug)]
pub(crate) struct Symbols {
    base: Option<ExtType>,
    /// Values in native bytes with their names, in the order of the bytes. Of two names for one
    /// value, the one defined first comes first.
    sorted: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A field of a compound.
#[derive(Clone, Debug)]
pub(crate) struct TypeField {
    offset: usize,
    dims: Vec<usize>,
    ty: ElementType,
}

/// Types that are nested more deeply than this are shown as bytes.
const DEEPEST: usize = 64;

impl ElementType {
    /// The type with that number; `exact` as in [`TypeKind::String`].
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub(crate) fn of(meta: &Meta<'_>, nc_type: i32, exact: bool) -> zonda::Result<ElementType> {
        ElementType::nested(meta, nc_type, exact, 0)
    }

    fn nested(
        meta: &Meta<'_>,
        nc_type: i32,
        exact: bool,
        depth: usize,
    ) -> zonda::Result<ElementType> {
        if let Some(ty) = ExtType::from_nc_type(nc_type) {
            return Ok(ElementType { size: ty.size(), kind: TypeKind::Atomic(ty) });
        }
        let size = meta.type_size(nc_type)?;
        if nc_type == NC_STRING {
            return Ok(ElementType { size, kind: TypeKind::String { exact } });
        }
        if depth == DEEPEST {
            return Ok(ElementType { size, kind: TypeKind::Unknown });
        }
        let inner = |nc_type| ElementType::nested(meta, nc_type, exact, depth + 1);
        let kind = match &meta.user_type(nc_type)?.class {
            UserClass::Opaque => TypeKind::Opaque,
            UserClass::Enum { base, members } => {
                let mut sorted: Vec<_> =
                    members.iter().map(|(name, value)| (value.to_vec(), name.to_vec())).collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                TypeKind::Enum(Symbols { base: ExtType::from_nc_type(*base), sorted })
            }
            UserClass::Vlen { base: 0 } | UserClass::Unknown | UserClass::String => {
                TypeKind::Unknown
            }
            UserClass::Vlen { base } => TypeKind::Vlen(Box::new(inner(*base)?)),
            UserClass::Compound(fields) => {
                let part = |field: &Field| {
                    let dims = field.dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0));
                    let (dims, ty) = (dims.collect(), inner(field.nc_type)?);
                    Ok(TypeField { offset: field.offset, dims, ty })
                };
                TypeKind::Compound(fields.iter().map(part).collect::<zonda::Result<_>>()?)
            }
        };
        Ok(ElementType { size, kind })
    }

    /// Appends a value as it stands in the data section and within other values.
    pub(crate) fn push(
        &self,
        out: &mut Vec<u8>,
        element: &[u8],
        pieces: &VlenStore,
        precision: Precision,
    ) {
        match &self.kind {
            TypeKind::Atomic(ty) => push_plain(out, CdlValue::native(*ty, element), precision),
            TypeKind::String { exact } => push_string(out, piece(element, 0, pieces), *exact),
            TypeKind::Opaque | TypeKind::Unknown => push_hex(out, element),
            TypeKind::Enum(symbols) => symbols.push(out, element),
            TypeKind::Vlen(base) => {
                out.push(b'{');
                base.push_all(
                    out,
                    piece(element, 8, pieces).unwrap_or_default(),
                    pieces,
                    precision,
                );
                out.push(b'}');
            }
            TypeKind::Compound(parts) => {
                out.push(b'{');
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.extend_from_slice(b", ");
                    }
                    part.push(out, element, pieces, precision);
                }
                out.push(b'}');
            }
        }
    }

    fn push_all(&self, out: &mut Vec<u8>, items: &[u8], pieces: &VlenStore, precision: Precision) {
        for (at, item) in items.chunks_exact(self.size.max(1)).enumerate() {
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            self.push(out, item, pieces, precision);
        }
    }

    /// Whether two values are the same, as far as fill values are concerned.
    pub(crate) fn same(&self, fill: (&[u8], &VlenStore), value: (&[u8], &VlenStore)) -> bool {
        match &self.kind {
            TypeKind::Atomic(ty) => {
                is_fill(CdlValue::native(*ty, fill.0), CdlValue::native(*ty, value.0))
            }
            TypeKind::String { .. } => piece(fill.0, 0, fill.1) == piece(value.0, 0, value.1),
            TypeKind::Opaque | TypeKind::Unknown | TypeKind::Enum(_) => fill.0 == value.0,
            TypeKind::Vlen(base) => {
                let items = |(element, pieces)| piece(element, 8, pieces).unwrap_or_default();
                base.all_same((items(fill), fill.1), (items(value), value.1))
            }
            TypeKind::Compound(parts) => parts.iter().all(|part| {
                let (of_fill, of_value) = (part.bytes(fill.0), part.bytes(value.0));
                part.ty.all_same((of_fill, fill.1), (of_value, value.1))
            }),
        }
    }

    fn all_same(&self, fill: (&[u8], &VlenStore), value: (&[u8], &VlenStore)) -> bool {
        let of = |bytes| <[u8]>::chunks_exact(bytes, self.size.max(1));
        fill.0.len() == value.0.len()
            && of(fill.0).zip(of(value.0)).all(|(a, b)| self.same((a, fill.1), (b, value.1)))
    }
}

/// The piece whose number is at `at` of an element.
fn piece<'p>(element: &[u8], at: usize, pieces: &'p VlenStore) -> Option<&'p [u8]> {
    let number = element.get(at..)?.first_chunk()?;
    pieces.get(u64::from_ne_bytes(*number))
}

impl TypeField {
    /// The bytes of the field within those of the compound.
    fn bytes<'e>(&self, element: &'e [u8]) -> &'e [u8] {
        let n_items = self.dims.iter().product::<usize>();
        element.get(self.offset..self.offset + n_items * self.ty.size).unwrap_or_default()
    }

    fn push(&self, out: &mut Vec<u8>, element: &[u8], pieces: &VlenStore, precision: Precision) {
        let bytes = self.bytes(element);
        let is_text = matches!(self.ty.kind, TypeKind::Atomic(ExtType::Char));
        let Some(&row) = self.dims.last() else {
            if is_text {
                push_chars(out, bytes);
            } else {
                self.ty.push(out, bytes, pieces, precision);
            }
            return;
        };
        out.push(b'{');
        if is_text {
            // The last dimension makes strings.
            for (at, row) in bytes.chunks_exact(row.max(1)).enumerate() {
                if at > 0 {
                    out.extend_from_slice(b", ");
                }
                push_chars(out, row);
            }
        } else {
            self.ty.push_all(out, bytes, pieces, precision);
        }
        out.push(b'}');
    }
}

impl Symbols {
    /// The name of a value in native bytes, if it has one.
    pub(crate) fn name(&self, value: &[u8]) -> Option<&[u8]> {
        let at = self.sorted.partition_point(|(known, _)| **known < *value);
        self.sorted.get(at).filter(|(known, _)| *known == value).map(|(_, name)| &**name)
    }

    /// Appends the name of a value, or the number if it has no name.
    pub(crate) fn push(&self, out: &mut Vec<u8>, value: &[u8]) {
        match (self.name(value), self.base) {
            (Some(name), _) => out.extend_from_slice(name),
            (None, Some(base)) => {
                push_plain(out, CdlValue::native(base, value), Precision::default());
            }
            (None, None) => push_hex(out, value),
        }
    }
}

/// Appends bytes as `0X` and hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"0X");
    for byte in bytes {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{byte:02X}");
    }
}

/// Appends a string of the data section; `NIL` if there is none.
fn push_string(out: &mut Vec<u8>, text: Option<&[u8]>, exact: bool) {
    let Some(text) = text else { return out.extend_from_slice(b"NIL") };
    out.push(b'"');
    for &byte in text {
        match byte {
            b'\x0b' if exact => out.extend_from_slice(b"\\n"),
            _ => push_char(out, byte),
        }
    }
    out.push(b'"');
}

/// Appends a character of a string with its escape. Bytes beyond ASCII are part of UTF-8 and stay.
pub(super) fn push_char(out: &mut Vec<u8>, byte: u8) {
    match super::rows::escape(byte) {
        _ if byte == b'\n' => out.extend_from_slice(b"\\n"),
        Some(escape) => out.extend_from_slice(escape),
        None if byte.is_ascii_control() => {
            let _ = write!(out, "\\{byte:03o}");
        }
        None => out.push(byte),
    }
}

/// Appends characters in a compound as a string, without the NULs at their end. Characters that
/// have an escape elsewhere stand here as they are after a backslash.
fn push_chars(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    out.push(b'"');
    for &byte in &bytes[..len] {
        if byte == b'\n' || super::rows::escape(byte).is_some() {
            out.extend_from_slice(&[b'\\', byte]);
        } else if byte == b' ' || byte.is_ascii_graphic() {
            out.push(byte);
        } else {
            let _ = write!(out, "\\{byte:03o}");
        }
    }
    out.push(b'"');
}

/// Appends the name of a type as it is used in the group `meta`: with the path of its group if
/// neither this group nor one around it has a type of that name.
pub(crate) fn push_name(out: &mut Vec<u8>, meta: &Meta<'_>, nc_type: i32) -> Result<()> {
    if let Some(ty) = ExtType::from_nc_type(nc_type) {
        out.extend_from_slice(ty.name().as_bytes());
        return Ok(());
    }
    if nc_type == NC_STRING {
        out.extend_from_slice(b"string");
        return Ok(());
    }
    let ty = meta.user_type(nc_type)?;
    let has = |group: &Meta<'_>| {
        let mut types = group.type_ids().iter().filter_map(|id| group.user_type(*id).ok());
        types.any(|other| other.name == ty.name)
    };
    if !outward(meta).any(|group| has(&group)) {
        names::push_escaped(out, &meta.group(ty.group)?.group_path())?;
        out.push(b'/');
    }
    names::push_escaped(out, &ty.name)
}

/// Writes the declarations of the types of a group.
pub(super) fn write(lines: &mut CdlLines<'_>, meta: &Meta<'_>) -> Result<()> {
    if meta.type_ids().is_empty() {
        return Ok(());
    }
    lines.indented(b"types:\n")?;
    lines.deeper();
    for &id in meta.type_ids() {
        declare(lines, meta, id)?;
    }
    lines.shallower();
    Ok(())
}

fn declare(lines: &mut CdlLines<'_>, meta: &Meta<'_>, id: i32) -> Result<()> {
    let ty = meta.user_type(id)?;
    let mut text = Vec::new();
    match &ty.class {
        UserClass::Vlen { base } if *base != 0 => {
            push_name(&mut text, meta, *base)?;
            text.extend_from_slice(b"(*) ");
            names::push_escaped(&mut text, &ty.name)?;
            text.extend_from_slice(b" ;\n");
        }
        UserClass::Opaque => {
            let _ = write!(text, "opaque({}) ", ty.size);
            names::push_escaped(&mut text, &ty.name)?;
            text.extend_from_slice(b" ;\n");
        }
        UserClass::Enum { base, members } => {
            return declare_enum(lines, meta, &ty.name, *base, members);
        }
        UserClass::Compound(fields) => {
            text.extend_from_slice(b"compound ");
            names::push_escaped(&mut text, &ty.name)?;
            text.extend_from_slice(b" {\n");
            lines.indented(&text)?;
            for field in fields {
                text.clear();
                push_field(&mut text, meta, field)?;
                lines.indented(&text)?;
            }
            text.clear();
            text.extend_from_slice(b"}; // ");
            names::push_escaped(&mut text, &ty.name)?;
            text.push(b'\n');
        }
        UserClass::Vlen { .. } | UserClass::String | UserClass::Unknown => {
            text.extend_from_slice(b"// ");
            names::push_escaped(&mut text, &ty.name)?;
            let _ = writeln!(text, ": {} bytes, a type that CDL has no words for", ty.size);
        }
    }
    Ok(lines.indented(&text)?)
}

fn push_field(text: &mut Vec<u8>, meta: &Meta<'_>, field: &Field) -> Result<()> {
    text.extend_from_slice(b"  ");
    push_name(text, meta, field.nc_type)?;
    text.push(b' ');
    names::push_escaped(text, &field.name)?;
    for (at, dim) in field.dims.iter().enumerate() {
        let _ = write!(text, "{}{dim}", if at == 0 { "(" } else { ", " });
    }
    text.extend_from_slice(if field.dims.is_empty() { b" ;\n" } else { b") ;\n" });
    Ok(())
}

/// Name of a member of an enumeration, and its value in native bytes.
type NamedValue = (Box<[u8]>, Box<[u8]>);

/// Writes the declaration of an enumeration, which is wrapped as values are.
fn declare_enum(
    lines: &mut CdlLines<'_>,
    meta: &Meta<'_>,
    name: &[u8],
    base: i32,
    members: &[NamedValue],
) -> Result<()> {
    lines.indent()?;
    let mut text = Vec::new();
    push_name(&mut text, meta, base)?;
    text.extend_from_slice(b" enum ");
    names::push_escaped(&mut text, name)?;
    text.extend_from_slice(b" {");
    lines.put(&text)?;
    for (at, (name, value)) in members.iter().enumerate() {
        text.clear();
        names::push_escaped(&mut text, name)?;
        let value = ExtType::from_nc_type(base).map(|ty| CdlValue::native(ty, value));
        let _ = match value {
            Some(CdlValue::Int(value)) => write!(text, " = {value}"),
            // Numbers of all types are written as signed ones of 64 bits.
            Some(CdlValue::UInt(value)) => write!(text, " = {}", value.cast_signed()),
            _ => Ok(()),
        };
        text.extend_from_slice(if at + 1 < members.len() { b", " } else { b"} ;\n" });
        lines.put(&text)?;
    }
    if members.is_empty() {
        lines.put(b"} ;\n")?;
    }
    Ok(())
}

/// The group `meta`, the group around it, and so on to the root.
pub(crate) fn outward<'a>(meta: &Meta<'a>) -> impl Iterator<Item = Meta<'a>> {
    let own = meta.group(meta.group_id()).ok();
    std::iter::successors(own, |group| group.group(group.group_parent()?).ok())
}

#[cfg(test)]
mod tests {
    use zonda::VlenSink;

    use super::*;

    fn int() -> ElementType {
        ElementType { size: 4, kind: TypeKind::Atomic(ExtType::Int) }
    }

    fn text(ty: &ElementType, element: &[u8], pieces: &VlenStore) -> String {
        let mut out = Vec::new();
        ty.push(&mut out, element, pieces, Precision::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_without_a_name_are_numbers() {
        let named = |value: i32, name: &str| (value.to_ne_bytes().to_vec(), name.into());
        let mut sorted = vec![named(300, "high"), named(1, "low"), named(1, "again")];
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let symbols = Symbols { base: Some(ExtType::Int), sorted };
        let ty = ElementType { size: 4, kind: TypeKind::Enum(symbols) };
        for (value, expected) in [(300, "high"), (1, "low"), (-7, "-7")] {
            assert_eq!(text(&ty, &i32::to_ne_bytes(value), &VlenStore::default()), expected);
        }
    }

    #[test]
    fn nested_values() {
        let mut pieces = VlenStore::default();
        let items: Vec<u8> = [5i32, 6].iter().flat_map(|item| item.to_ne_bytes()).collect();
        let list = pieces.place(&items, false).unwrap();
        let label = pieces.place(b"a\"b\n\x07", true).unwrap();
        let vlen = ElementType { size: 16, kind: TypeKind::Vlen(Box::new(int())) };
        let string = ElementType { size: 8, kind: TypeKind::String { exact: false } };
        let chars = ElementType { size: 1, kind: TypeKind::Atomic(ExtType::Char) };
        let part = |offset, dims: &[usize], ty| TypeField { offset, dims: dims.to_vec(), ty };
        let parts = vec![
            part(0, &[], vlen),
            part(16, &[2], string),
            part(32, &[2, 3], chars.clone()),
            part(38, &[], chars),
            part(40, &[2], int()),
        ];
        let ty = ElementType { size: 48, kind: TypeKind::Compound(parts) };
        let mut element = [2u64, list, label, 0].map(u64::to_ne_bytes).concat();
        element.extend_from_slice(b"ab\0c'dx\0");
        element.extend([7i32, -8].map(i32::to_ne_bytes).concat());
        let expected = r#"{{5, 6}, {"a\"b\n\007", NIL}, {"ab", "c\'d"}, "x", {7, -8}}"#;
        assert_eq!(text(&ty, &element, &pieces), expected);

        // The same value with its pieces elsewhere, and another one.
        let mut others = VlenStore::default();
        let label = others.place(b"a\"b\n\x07", true).unwrap();
        let list = others.place(&items, false).unwrap();
        let mut other = element.clone();
        other[8..24].copy_from_slice(&[list, label].map(u64::to_ne_bytes).concat());
        assert!(ty.same((&element, &pieces), (&other, &others)));
        other[44] ^= 1;
        assert!(!ty.same((&element, &pieces), (&other, &others)));
        other[44] ^= 1;
        other[16..24].copy_from_slice(&list.to_ne_bytes());
        assert!(!ty.same((&element, &pieces), (&other, &others)));
    }
}
