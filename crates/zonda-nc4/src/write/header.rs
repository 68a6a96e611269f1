//! Messages of object headers, made from the model.

use zonda_hdf5::message::{
    AllocTime, AttributeInfo, ChunkIndexKind, ChunkedLayout, DataLayout, Dataspace, Datatype,
    FillTime, FillValue, FilterDescription, GroupInfo, Link, LinkInfo, SpaceKind,
    SymbolTableMessage, encode_filter_pipeline, kind,
};
use zonda_hdf5::object_header::{HeaderStyle, NewMessage};
use zonda_hdf5::{Sizes, Writer};
use zonda_model::ExtType;

use super::datatypes;
use super::objects::AttMessage;
use super::type_size::MOST_MESSAGE_BYTES;
use crate::fault::HdfResult;
use crate::model::{Dim, Endianness, Model, Var};

/// Most attributes or links that a header has itself, and fewest that are outside of it.
pub(super) const PHASE_CHANGE: (u16, u16) = (64, 48);
/// Header flag: creation order of attributes is tracked.
pub(super) const TRACKED: u8 = 0x04;
/// Header flag: there is an index by it.
pub(super) const INDEXED: u8 = 0x08;
/// Flag of messages that never change.
const CONSTANT: u8 = 1;
/// Flag of messages that are never shared.
const NOT_SHARED: u8 = 4;

/// The style of new headers.
pub(super) fn style(attribute_order: bool) -> HeaderStyle {
    let flags = if attribute_order { TRACKED | INDEXED } else { 0 };
    HeaderStyle { flags, phase_change: Some(PHASE_CHANGE), ..HeaderStyle::default() }
}

/// A message.
fn message(
    kind: u16,
    flags: u8,
    sizes: Sizes,
    encode: impl FnOnce(&mut Writer) -> HdfResult<()>,
) -> HdfResult<NewMessage> {
    let mut writer = Writer::scratch(kind::name(kind), sizes);
    encode(&mut writer)?;
    Ok(NewMessage { kind, flags, creation_order: None, body: writer.finish_shared() })
}

pub(super) fn dataspace(space: &Dataspace, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::DATASPACE, 0, sizes, |writer| space.encode(writer))
}

pub(super) fn datatype(datatype: &Datatype, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::DATATYPE, CONSTANT, sizes, |writer| datatype.encode(writer))
}

pub(super) fn layout(layout: &DataLayout, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::DATA_LAYOUT, 0, sizes, |writer| layout.encode(writer))
}

fn fill(fill: &FillValue, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::FILL_VALUE, CONSTANT, sizes, |writer| fill.encode(writer))
}

fn filters(filters: &[FilterDescription], sizes: Sizes) -> HdfResult<NewMessage> {
    let flags = CONSTANT;
    message(kind::FILTER_PIPELINE, flags, sizes, |writer| encode_filter_pipeline(filters, writer))
}

pub(super) fn attribute_info(info: &AttributeInfo, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::ATTRIBUTE_INFO, NOT_SHARED, sizes, |writer| info.encode(writer))
}

pub(super) fn symbol_table(table: &SymbolTableMessage, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::SYMBOL_TABLE, CONSTANT, sizes, |writer| table.encode(writer))
}

pub(super) fn link_info(info: &LinkInfo, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::LINK_INFO, 0, sizes, |writer| info.encode(writer))
}

pub(super) fn link(link: &Link, sizes: Sizes) -> HdfResult<NewMessage> {
    message(kind::LINK, 0, sizes, |writer| link.encode(writer))
}

pub(super) fn attribute(att: &AttMessage, order: Option<u16>) -> NewMessage {
    let (kind, body) = (kind::ATTRIBUTE, att.body.clone());
    NewMessage { kind, flags: 0, creation_order: order, body }
}

/// The messages of a new group besides links and attributes.
pub(super) fn group(sizes: Sizes) -> HdfResult<Vec<NewMessage>> {
    let info = GroupInfo { phase_change: Some(PHASE_CHANGE), estimates: None };
    Ok(vec![message(kind::GROUP_INFO, CONSTANT, sizes, |writer| info.encode(writer))?])
}

/// The messages of a placeholder besides attributes.
pub(super) fn placeholder(dim: &Dim, sizes: Sizes) -> HdfResult<Vec<NewMessage>> {
    let (len, max) = if dim.is_unlimited { (0, u64::MAX) } else { (dim.len, dim.len) };
    let space = Dataspace { kind: SpaceKind::Simple, dims: vec![len], max_dims: vec![max] };
    let float = datatypes::atomic(ExtType::Float, Endianness::Big);
    let (alloc, place) = if dim.is_unlimited {
        (AllocTime::Incremental, chunked(vec![1], 4))
    } else {
        let len = dim.len.saturating_mul(4);
        (AllocTime::Late, DataLayout::Contiguous { addr: None, len: Some(len) })
    };
    let value = FillValue {
        alloc_time: Some(alloc),
        fill_time: Some(FillTime::IfSet),
        undefined: false,
        value: None,
    };
    Ok(vec![
        dataspace(&space, sizes)?,
        datatype(&float, sizes)?,
        fill(&value, sizes)?,
        layout(&place, sizes)?,
    ])
}

/// A chunked layout without chunks.
pub(super) fn chunked(chunk_dims: Vec<u64>, elem_size: u32) -> DataLayout {
    DataLayout::Chunked(ChunkedLayout {
        chunk_dims,
        elem_size,
        index: ChunkIndexKind::BtreeV1,
        addr: None,
        partial_edge_unfiltered: false,
        wide_filtered_sizes: false,
    })
}

/// The shape of a variable.
pub(super) fn shape(model: &Model, var: &Var) -> Dataspace {
    if var.dims.is_empty() {
        return datatypes::scalar_space();
    }
    let max = |(dim, &len): (_, &u64)| match model.dim(dim) {
        Some(dim) if dim.is_unlimited => u64::MAX,
        _ => len,
    };
    let max_dims = var.dims.iter().copied().zip(&*var.extent).map(max).collect();
    Dataspace { kind: SpaceKind::Simple, dims: var.extent.to_vec(), max_dims }
}

/// The message that says what elements are that nobody wrote; `None` where they may be anything.
pub(super) fn fill_value(
    place: &DataLayout,
    value: Option<Box<[u8]>>,
    sizes: Sizes,
) -> HdfResult<NewMessage> {
    let alloc = match place {
        DataLayout::Compact { .. } => AllocTime::Early,
        DataLayout::Contiguous { .. } => AllocTime::Late,
        DataLayout::Chunked(_) | DataLayout::Virtual { .. } => AllocTime::Incremental,
    };
    let time = if value.is_some() { FillTime::IfSet } else { FillTime::Never };
    // A message without a value means zeros, and a message has no room for a longer value.
    let value = value
        .filter(|value| value.len() <= MOST_MESSAGE_BYTES || value.iter().any(|&byte| byte != 0));
    let value =
        FillValue { alloc_time: Some(alloc), fill_time: Some(time), undefined: false, value };
    fill(&value, sizes)
}

/// The messages of a new variable besides attributes.
pub(super) fn variable(
    space: &Dataspace,
    elem: &Datatype,
    place: &DataLayout,
    pipeline: &[FilterDescription],
    value: Option<Box<[u8]>>,
    sizes: Sizes,
) -> HdfResult<Vec<NewMessage>> {
    let mut out = vec![
        dataspace(space, sizes)?,
        datatype(elem, sizes)?,
        fill_value(place, value, sizes)?,
        layout(place, sizes)?,
    ];
    if !pipeline.is_empty() {
        out.push(filters(pipeline, sizes)?);
    }
    Ok(out)
}
