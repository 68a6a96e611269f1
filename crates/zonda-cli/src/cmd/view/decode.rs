//! What the attributes of a variable say about its values.

use zonda::{Dataset, ExtType, VarRef};
use zonda_cf::values::{AttributeValue, CfNumber, Decoder};

use crate::failure::Result;
use crate::placed;

/// How the numbers of a variable become values.
pub(super) fn decoder(file: &Dataset, id: VarRef, ty: ExtType) -> Result<Decoder> {
    Decoder::of(ty, |name| attribute(file, id, name))
}

fn attribute(file: &Dataset, id: VarRef, name: &str) -> Result<AttributeValue> {
    let found = file.in_group(id.group, |meta| {
        let Ok((_, att)) = meta.find_att(id.var, name.as_bytes()) else { return Ok(None) };
        let text = placed::text(file, meta, id, &att);
        let (bytes, _) = placed::attribute(file, meta, id, &att)?;
        Ok::<_, zonda::Error>(Some((att.ty(), text, bytes)))
    })??;
    Ok(match found {
        None => AttributeValue::Absent,
        Some((_, Some(text), _)) => {
            AttributeValue::Text(text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())
        }
        Some((Some(ty), None, bytes)) => {
            AttributeValue::Numbers(ty, CfNumber::all(ty, &bytes).collect())
        }
        Some((None, None, _)) => AttributeValue::Other,
    })
}

/// The text of an attribute up to the first NUL; `None` if there is no attribute, it is no text, or
/// it is empty.
pub(super) fn text(file: &Dataset, id: VarRef, name: &str) -> Option<String> {
    let Ok(AttributeValue::Text(text)) = attribute(file, id, name) else { return None };
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = text.trim().replace(['\n', '\t', '\r'], " ");
    if text.is_empty() { None } else { Some(text) }
}
