//! Attributes that netCDF keeps for itself: their names, what they say of a dataset, and which are not shown.

use std::sync::Arc;

use zonda_hdf5::message::{AttributeMessage, AttributeParts, Class, Datatype, Padding};
use zonda_hdf5::{Attribute, Attributes, File, FileAddr, Object};
use zonda_model::DimId;

use crate::bits;
use crate::element_form::{ElementForm, ElementShape};
use crate::fault::HdfResult;
use crate::values::until_nul;

/// Attribute of the root group of a file that keeps to the classic model.
pub(crate) const STRICT: &[u8] = b"_nc3_strict";
/// Attribute of the root group with the libraries that wrote the file. Programs find it by name only.
pub(crate) const PROPERTIES: &[u8] = b"_NCProperties";
/// Attribute of a group that says whether netCDF wrote the file. It is made when a program asks for it by name.
pub(crate) const IS_NETCDF4: &[u8] = b"_IsNetcdf4";
/// Attribute of a group with the version of the superblock. It is made when a program asks for it by name.
pub(crate) const SUPERBLOCK: &[u8] = b"_SuperblockVersion";

pub(crate) const CLASS: &[u8] = b"CLASS";
pub(crate) const NAME: &[u8] = b"NAME";
pub(crate) const DIMENSION_LIST: &[u8] = b"DIMENSION_LIST";
pub(crate) const REFERENCE_LIST: &[u8] = b"REFERENCE_LIST";
pub(crate) const DIM_ID: &[u8] = b"_Netcdf4Dimid";
pub(crate) const COORDINATES: &[u8] = b"_Netcdf4Coordinates";

/// Names that are not shown, in ascending order.
const RESERVED: [&[u8]; 17] = [
    CLASS,
    DIMENSION_LIST,
    NAME,
    REFERENCE_LIST,
    b"_ARRAY_DIMENSIONS",
    b"_Codecs",
    b"_Format",
    IS_NETCDF4,
    PROPERTIES,
    COORDINATES,
    DIM_ID,
    SUPERBLOCK,
    STRICT,
    b"_nczarr_array",
    b"_nczarr_attr",
    b"_nczarr_group",
    b"_nczarr_superblock",
];

/// Whether an attribute is not shown.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    RESERVED.binary_search(&name).is_ok()
}

/// Names that no program can give to an attribute, in ascending order: netCDF has reserved them since 4.9.0. (The
/// reference accepts them in groups other than the root.)
const KEPT: [&[u8]; 14] = [
    CLASS,
    DIMENSION_LIST,
    NAME,
    b"REFERENCE_LIST",
    b"_ARRAY_DIMENSIONS",
    b"_Codecs",
    b"_Format",
    IS_NETCDF4,
    PROPERTIES,
    b"_NCZARR_ATTR",
    COORDINATES,
    DIM_ID,
    SUPERBLOCK,
    STRICT,
];

/// Whether no program can give the name to an attribute.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    KEPT.binary_search(&name).is_ok()
}

/// Value of `CLASS` of a dimension scale, its NUL included.
pub(crate) const SCALE: &[u8] = b"DIMENSION_SCALE\0";
/// Beginning of `NAME` of a scale that is no variable.
pub(crate) const ONLY_DIMENSION: &[u8] = b"This is a netCDF dimension but not a netCDF variable.";

/// What the hidden attributes of a dataset say.
#[derive(Debug, Default)]
pub(crate) struct HiddenAtts {
    /// It is a dimension scale.
    pub(crate) is_scale: bool,
    /// It stands for a dimension and is no variable.
    pub(crate) is_only_dimension: bool,
    /// Id of the dimension.
    pub(crate) dim_id: Option<i32>,
    /// Ids of the variable's dimensions.
    pub(crate) coordinates: Option<Vec<DimId>>,
    /// It names scales for its dimensions.
    pub(crate) refers_to_scales: bool,
}

impl HiddenAtts {
    /// Reads the hidden attributes of a dataset. Those that are not as netCDF writes them are ignored.
    pub(crate) fn of(file: &File, object: &Object) -> HdfResult<HiddenAtts> {
        let mut hidden = HiddenAtts::default();
        if let Some(all) = object.attributes_in_header(file)? {
            for attribute in all {
                if !matches!(attribute.name, CLASS | NAME | DIM_ID | COORDINATES | DIMENSION_LIST) {
                    continue;
                }
                // A damaged one has no name that could be relied on.
                let Ok(parts) = attribute.parts() else { continue };
                match (parts.name, plain_integers(&parts)) {
                    (DIMENSION_LIST, _) => hidden.refers_to_scales = true,
                    (DIM_ID, Some(mut ids)) => hidden.dim_id = ids.next(),
                    (COORDINATES, Some(ids)) => hidden.coordinates = Some(ids.map(DimId).collect()),
                    (_, _) => hidden.take(&parts.resolve(file)?),
                }
            }
        } else {
            let attributes = object.attributes(file)?;
            hidden.refers_to_scales = attributes.find(DIMENSION_LIST).is_some();
            for index in 0..attributes.len() {
                if matches!(attributes.name(index), CLASS | NAME | DIM_ID | COORDINATES) {
                    hidden.take(&attributes.message(index, file)?);
                }
            }
        }
        hidden.is_only_dimension &= hidden.is_scale;
        Ok(hidden)
    }

    /// Takes in what one attribute says.
    fn take(&mut self, attribute: &AttributeMessage<'_>) {
        let AttributeMessage { datatype, data, .. } = attribute;
        match attribute.name {
            CLASS => self.is_scale = is_scale(datatype, data),
            NAME => {
                self.is_only_dimension = matches!(datatype.class, Class::String { .. })
                    && data.starts_with(ONLY_DIMENSION);
            }
            DIM_ID => {
                let ids = integers(datatype, data).unwrap_or_default();
                self.dim_id = ids.first().and_then(|&id| i32::try_from(id).ok());
            }
            COORDINATES => {
                let ids = integers(datatype, data);
                let id = |id: &i64| DimId(i32::try_from(*id).unwrap_or(-1));
                self.coordinates = ids.map(|ids| ids.iter().map(id).collect());
            }
            _ => {}
        }
    }
}

/// The type message of a C `int` as netCDF writes it: 4 bytes, signed, the lowest byte first.
const INT: &[u8] = &[0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];

/// The values of an attribute that is an `int` or a row of them as netCDF writes it, without decoding type and space;
/// `None` for all others.
fn plain_integers<'a>(parts: &AttributeParts<'a>) -> Option<impl Iterator<Item = i32> + use<'a>> {
    if parts.datatype_shared || parts.dataspace_shared || parts.datatype.rest() != INT {
        return None;
    }
    let n = match *parts.dataspace.rest() {
        // Version, rank, flags, and in version 2 the kind.
        [2, 0, 0, 0] | [1, 0, 0, 0, 0, 0, 0, 0] => 1,
        [2, 1, flags, 1, ref lengths @ ..] | [1, 1, flags, 0, 0, 0, 0, 0, ref lengths @ ..]
            if flags <= 1 && parts.dataspace.sizes().length == 8 =>
        {
            let (n, most) = lengths.split_first_chunk::<8>()?;
            let most = if flags == 1 { *most.first_chunk()? } else { *n };
            let n = u64::from_le_bytes(*n);
            if u64::from_le_bytes(most) < n {
                return None;
            }
            usize::try_from(n).ok()?
        }
        _ => return None,
    };
    let data = parts.data.rest().get(..n.checked_mul(4)?)?;
    Some(data.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)))
}

/// Whether `CLASS` marks a scale: as in libhdf5, only a text of this length and padding does.
fn is_scale(datatype: &Datatype, data: &[u8]) -> bool {
    matches!(datatype.class, Class::String { padding: Padding::NullTerminated, .. })
        && *data == *SCALE
}

/// Values of an attribute of integers.
pub(crate) fn integers(datatype: &Datatype, data: &[u8]) -> Option<Vec<i64>> {
    let form = ElementForm::of(datatype)?;
    let signed = match &form.shape {
        ElementShape::Number(ext, _) => !matches!(ext.nc_type(), 7..=9 | 11),
        ElementShape::Integer(bits) => bits.signed,
        _ => return None,
    };
    let native = crate::element_form::native_integer(form.size, signed);
    if form.order().is_none() || form.atomic() != Some(native.nc_type()) || form.file_size == 0 {
        return None;
    }
    let mut out = Vec::new();
    for element in data.chunks_exact(form.file_size) {
        let mut bytes = [0; 8];
        bits::convert(&form, element, bytes.get_mut(..form.size)?)?;
        let negative = signed && bytes.get(form.size.checked_sub(1)?)? & 0x80 != 0;
        if negative {
            bytes.get_mut(form.size..)?.fill(0xff);
        }
        out.push(i64::from_le_bytes(bytes));
    }
    Some(out)
}

/// The scale that was attached last to each axis; `None` where the first axis has none.
pub(crate) fn scales(
    file: &File,
    attributes: &Attributes,
) -> HdfResult<Option<Vec<Option<FileAddr>>>> {
    let Some(index) = attributes.find(DIMENSION_LIST) else {
        return Ok(None);
    };
    let attribute = attributes.decode(index, file)?;
    let Class::VarLenSequence { base } = &attribute.datatype.class else {
        return Ok(None);
    };
    let width = usize::from(file.sizes().offset);
    if !matches!(base.class, Class::Reference(_)) || usize::try_from(base.size) != Ok(width) {
        return Ok(None);
    }
    let mut out = Vec::new();
    let element = usize::try_from(attribute.datatype.size).unwrap_or(0).max(1);
    for element in attribute.data.chunks_exact(element) {
        let mut reader = zonda_hdf5::Reader::new("DIMENSION_LIST", element, 0, file.sizes());
        let n = usize::try_from(reader.u32()?).unwrap_or(0);
        let collection = reader.addr()?.filter(|addr| n > 0 && addr.0 != 0);
        let index = reader.u32()?;
        let mut last = None;
        if let Some(addr) = collection {
            let collection = file.global_heap_collection(addr)?;
            let references = collection.get(index).unwrap_or_default();
            let at = n.saturating_sub(1).saturating_mul(width);
            if let Some(reference) = references.get(at..) {
                last = file.reader("object reference", addr, reference).addr()?;
            }
        }
        out.push(last);
    }
    // As in the reference, only the first axis decides whether the variable has scales.
    Ok(out.first().copied().flatten().is_some().then_some(out))
}

/// The objects that an object refers to by `DIMENSION_LIST` and `REFERENCE_LIST`.
pub(crate) fn referred(file: &Arc<File>, object: FileAddr) -> HdfResult<Vec<FileAddr>> {
    let attributes = file.object(object)?.attributes(file)?;
    let mut out: Vec<_> = scales(file, &attributes)?.into_iter().flatten().flatten().collect();
    if let Some(index) = attributes.find(REFERENCE_LIST) {
        let list = attributes.decode(index, file)?;
        let element = usize::try_from(list.datatype.size).unwrap_or(0).max(1);
        for element in list.data.chunks_exact(element) {
            out.extend(file.reader("object reference", object, element).addr()?);
        }
    }
    Ok(out)
}

/// The text of an attribute up to its first NUL. Programs other than netCDF may write it with variable length; the
/// reference then shows the bytes of an address.
pub(crate) fn text(file: &File, attribute: &Attribute) -> HdfResult<Vec<u8>> {
    if !matches!(attribute.datatype.class, Class::VarLenString { .. }) {
        return Ok(until_nul(&attribute.data).to_vec());
    }
    let mut reader = zonda_hdf5::Reader::new("text", &attribute.data, 0, file.sizes());
    let len = usize::try_from(reader.u32()?).unwrap_or(usize::MAX);
    let Some(addr) = reader.addr()?.filter(|addr| len > 0 && addr.0 != 0) else {
        return Ok(Vec::new());
    };
    let index = reader.u32()?;
    let collection = file.global_heap_collection(addr)?;
    let bytes = collection.get(index).unwrap_or_default();
    Ok(until_nul(bytes.get(..len).unwrap_or(bytes)).to_vec())
}
