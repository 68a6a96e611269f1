//! Attributes from one file to another.

use zonda_format::Values;
use zonda_format::{NC_STRING, VarRef};
use zonda_model::ExtType;

use super::tree::AttDef;
use super::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::Result;

/// Values of an attribute in native bytes, and what they point to.
pub(crate) fn values(
    source: &Dataset,
    owner: VarRef,
    att: &AttDef,
) -> Result<(Vec<u8>, VlenBuffer)> {
    let (mut bytes, mut pieces) = (Vec::new(), VlenBuffer::default());
    // Without conversion nothing is out of range.
    let _ = source.get_att_list(owner, &att.name, None, (&mut bytes, Some(&mut pieces)))?;
    Ok((bytes, pieces))
}

/// The text of an attribute of characters or strings; several are separated by blanks.
pub(crate) fn text(source: &Dataset, owner: VarRef, att: &AttDef) -> Result<Vec<u8>> {
    let (bytes, pieces) = values(source, owner, att)?;
    if att.nc_type != NC_STRING {
        return Ok(bytes);
    }
    let numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_ne_bytes(*number));
    let texts: Vec<&[u8]> = numbers.filter_map(|number| pieces.get(number)).collect();
    Ok(texts.join(&b" "[..]))
}

/// Copies an attribute. `nc_type` is the type it has in the target: a single string may become
/// characters.
pub(crate) fn copy(
    source: &Dataset,
    from: VarRef,
    att: &AttDef,
    target: &Dataset,
    to: VarRef,
    nc_type: i32,
) -> Result<()> {
    let (mut bytes, mut pieces) = values(source, from, att)?;
    let mut n_values = usize::try_from(att.len).unwrap_or(usize::MAX);
    if att.nc_type == NC_STRING && nc_type == ExtType::Char.nc_type() {
        let number = bytes.first_chunk().map_or(0, |number| u64::from_ne_bytes(*number));
        bytes = pieces.get(number).unwrap_or_default().to_vec();
        n_values = bytes.len();
    }
    let values = Values { bytes: &bytes, fetch: Some(&mut pieces) };
    target.put_att_values(to, &att.name, (nc_type, n_values), values).map(drop)
}
