//! Virtual attributes: they say how a netCDF-4 file stores its variables.

use zonda::{Endianness, ExtType, FilterSpec, Format, StorageKind};

use super::lines::CdlLines;
use super::owner::AttributeOwner;
use super::{CdlOptions, names};
use crate::failure::Result;
use crate::placed;

/// Numbers of the filters that have attributes of their own.
const DEFLATE: u32 = 1;
const SHUFFLE: u32 = 2;
const FLETCHER32: u32 = 3;

/// Writes a virtual attribute; `value` is CDL.
fn write(
    lines: &mut CdlLines<'_>,
    owner: &AttributeOwner<'_>,
    name: &str,
    value: &str,
) -> Result<()> {
    let mut text = b"\t\t".to_vec();
    names::push_escaped(&mut text, owner.name)?;
    text.extend_from_slice(format!(":{name} = {value} ;\n").as_bytes());
    Ok(lines.indented(&text)?)
}

/// Writes those of a variable. Classic files have none, except for what `ncdump` writes for CDF-5.
pub(super) fn write_var(
    lines: &mut CdlLines<'_>,
    owner: &AttributeOwner<'_>,
    options: &CdlOptions,
) -> Result<()> {
    if !owner.file.is_hdf5() {
        // `ncdump` 4.9.0 writes this one for CDF-5, too, and then fails unless elements are bytes.
        if options.exact && owner.meta.format() == Format::Cdf5 {
            write(lines, owner, "_Storage", "\"contiguous\"")?;
        }
        return Ok(());
    }
    let Some(stored) = owner.meta.file().storage_of_vars() else { return Ok(()) };
    let info = stored.var_info(owner.var).map_err(|error| error.at(owner.file.path()))?;
    let var = owner.meta.var(owner.var.var)?;
    let mut say = |name: &str, value: &str| write(lines, owner, name, value);
    say("_Storage", &format!("\"{}\"", storage_name(&info.storage, options.exact)))?;
    if let StorageKind::Chunked(shape) = &info.storage {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        say("_ChunkSizes", &shape.join(", "))?;
    }
    if !options.filters {
        let filter = |id| info.filters.iter().find(|filter| filter.id == id);
        if filter(FLETCHER32).is_some() {
            say("_Fletcher32", "\"true\"")?;
        }
        if filter(SHUFFLE).is_some() {
            say("_Shuffle", "\"true\"")?;
        }
        if let Some(deflate) = filter(DEFLATE) {
            let level = deflate.params.first().map_or(0, |level| *level);
            say("_DeflateLevel", &level.to_string())?;
        }
    }
    let own = |id: u32| !options.filters && matches!(id, DEFLATE | SHUFFLE | FLETCHER32);
    let others: Vec<String> = info.filters.iter().filter(|f| !own(f.id)).map(numbers).collect();
    if !others.is_empty() {
        say("_Filter", &format!("\"{}\"", others.join("|")))?;
    }
    if let Ok((_, att)) = owner.meta.find_att(owner.var.var, b"_Codecs")
        && att.ty() == Some(ExtType::Char)
        && att.len > 0
    {
        let (bytes, _) = placed::attribute(owner.file, owner.meta, owner.var, &att)?;
        say("_Codecs", &quoted(&bytes))?;
    }
    let order = match info.endianness {
        Endianness::Little => Some("\"little\""),
        Endianness::Big => Some("\"big\""),
        Endianness::Native => None,
    };
    if let Some(order) = order.filter(|_| owner.meta.type_size(var.nc_type).is_ok_and(|n| n > 1)) {
        say("_Endianness", order)?;
    }
    if info.no_fill {
        say("_NoFill", "\"true\"")?;
    }
    Ok(())
}

fn storage_name(storage: &StorageKind, exact: bool) -> &'static str {
    match storage {
        StorageKind::Contiguous => "contiguous",
        StorageKind::Compact => "compact",
        StorageKind::Chunked(_) => "chunked",
        // `ncdump` 4.9.0 has these words for them.
        StorageKind::Virtual if exact => "unknown",
        StorageKind::External if exact => "contiguous",
        StorageKind::Virtual => "virtual",
        StorageKind::External => "unknown",
    }
}

/// JSON in quotes: quotes in it follow a backslash, control characters become `\%xx`.
fn quoted(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut out = String::from("\"");
    for letter in String::from_utf8_lossy(text).chars() {
        match letter {
            '"' => out.push_str("\\\""),
            _ if letter.is_ascii_control() => {
                out.push_str(&format!("\\%{:02x}", u32::from(letter)));
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// A filter's number and its parameters: `307,9`.
pub(crate) fn numbers(filter: &FilterSpec) -> String {
    let all = std::iter::once(&filter.id).chain(&filter.params);
    all.map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Whether `ncdump` 4.9.0 says that netCDF wrote the file. It looks at marks that netCDF leaves on
/// dimensions rather than at the attribute that says so, and finds none in the classic model.
fn is_marked(owner: &AttributeOwner<'_>) -> Result<bool> {
    let mut left = vec![owner.meta.group_id()];
    while let Some(group) = left.pop().filter(|_| owner.meta.format() == Format::NetCdf4) {
        let group = owner.meta.group(group)?;
        if group.n_dims() > 0 {
            return Ok(true);
        }
        left.extend_from_slice(group.groups());
    }
    Ok(false)
}

/// Writes those of the file.
pub(super) fn write_global(
    lines: &mut CdlLines<'_>,
    owner: &AttributeOwner<'_>,
    options: &CdlOptions,
) -> Result<()> {
    if owner.file.is_hdf5() {
        for name in ["_NCProperties", "_SuperblockVersion", "_IsNetcdf4"] {
            let Ok((_, att)) = owner.meta.find_att(owner.var.var, name.as_bytes()) else {
                continue;
            };
            let (bytes, _) = placed::attribute(owner.file, owner.meta, owner.var, &att)?;
            let value = match bytes.first_chunk() {
                Some(_) if options.exact && name == "_IsNetcdf4" && !is_marked(owner)? => {
                    "0".to_owned()
                }
                Some(number) if att.ty() == Some(ExtType::Int) => {
                    i32::from_ne_bytes(*number).to_string()
                }
                _ => format!("\"{}\"", String::from_utf8_lossy(&bytes)),
            };
            write(lines, owner, name, &value)?;
        }
    }
    let kind = format!("\"{}\"", owner.meta.format().kind());
    write(lines, owner, "_Format", &kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_quotes() {
        assert_eq!(quoted(b"[{\"id\":\t5}]\0x"), "\"[{\\\"id\\\":\\%095}]\"");
        assert_eq!(quoted(b""), "\"\"");
    }
}
