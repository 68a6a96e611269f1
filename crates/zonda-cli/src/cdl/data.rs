//! Reads data and writes the data section of CDL, block by block.

use std::sync::Arc;

use zonda::slab::{Block, Blocks};
use zonda::{
    Dataset, Destination, ExtType, GroupId, Meta, NC_STRING, VarId, VarRef, VlenSink, memory,
};

use super::header::var_id;
use super::lines::CdlLines;
use super::ordered;
use super::rows::DataRows;
use super::select::named;
use super::times::{TimeBounds, Times};
use super::types::{ElementType, TypeKind};
use super::values::{Precision, ValueFormat};
use super::{CdlOptions, DataSelection, names};
use crate::failure::{CommandFailure, Result};
use crate::placed::{self, VlenStore};
use crate::tuning::{DATA_BLOCK_BYTES, SPAN_ELEMS, VLEN_ELEM_BYTES};

/// A `C_format` of this length or more is not applied.
const C_FORMAT_END: u64 = 100;

/// Writes the data section of a group.
pub(super) fn write(
    lines: &mut CdlLines<'_>,
    file: &Dataset,
    group: GroupId,
    options: &CdlOptions,
    bounds: &TimeBounds,
) -> Result<()> {
    let (n_vars, requested) = file.in_group(group, |meta| {
        let requested = options.variables.iter().filter_map(|name| named(meta, name));
        (meta.n_vars(), requested.collect::<Vec<VarId>>())
    })?;
    if n_vars > 0 {
        lines.indented(b"data:\n")?;
    }
    for id in (0..n_vars).map(var_id) {
        if !options.variables.is_empty() && !requested.contains(&id) {
            continue;
        }
        let var = VarRef { group, var: id };
        let variable =
            file.in_group(group, |meta| DataVariable::new(file, meta, var, options, bounds))??;
        let Some(variable) = variable else { continue };
        variable.write(lines, file, options)?;
    }
    Ok(())
}

/// A variable whose data is written.
pub(super) struct DataVariable {
    var: VarRef,
    name: Vec<u8>,
    pub(super) escaped: Vec<u8>,
    pub(super) shape: Vec<usize>,
    /// For each dimension whether it can grow.
    pub(super) unlimited: Vec<bool>,
    pub(super) elem_bytes: usize,
    pub(super) form: WrittenForm,
}

/// How the values of a variable are written.
pub(super) enum WrittenForm {
    /// For numbers and characters.
    Atomic(ValueFormat),
    /// For all other types.
    Other {
        ty: ElementType,
        /// Fill value, as one element.
        fill: Option<(Vec<u8>, VlenStore)>,
        precision: Precision,
    },
}

impl WrittenForm {
    fn new(
        file: &Dataset,
        meta: &Meta<'_>,
        var: VarRef,
        options: &CdlOptions,
        bounds: &TimeBounds,
    ) -> Result<WrittenForm> {
        let nc_type = meta.var(var.var)?.nc_type;
        let att = |name: &[u8]| meta.find_att(var.var, name).ok().map(|(_, att)| att);
        let fill = att(b"_FillValue").filter(|att| att.nc_type == nc_type && att.len == 1);
        let fill = fill.map(|att| placed::attribute(file, meta, var, &att)).transpose()?;
        let precision = options.precision;
        let Some(ty) = ExtType::from_nc_type(nc_type) else {
            let mut empty = VlenStore::default();
            // The fill value is an empty string, which is the only one in the store.
            let mut none = || empty.place(b"", true).map(|number| number.to_ne_bytes().to_vec());
            let default = if nc_type == NC_STRING { none() } else { None };
            let fill = fill.or_else(|| Some((default?, empty)));
            return Ok(WrittenForm::Other {
                ty: ElementType::of(meta, nc_type, options.exact)?,
                fill,
                precision,
            });
        };
        let c_format = att(b"C_format")
            .filter(|att| att.ty() == Some(ExtType::Char) && (1..C_FORMAT_END).contains(&att.len))
            .map(|att| placed::attribute(file, meta, var, &att))
            .transpose()?;
        let c_format = c_format.as_ref().map(|(text, _)| &**text);
        let fill = fill.as_ref().map(|(bytes, _)| &**bytes);
        let times = match options.times {
            Some(style) => Times::of(file, meta, var, meta.var(var.var)?.name, bounds, style)?,
            None => None,
        };
        Ok(WrittenForm::Atomic(ValueFormat::new(ty, c_format, fill, times, precision)))
    }

    /// Whether rows of characters are written as strings.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, WrittenForm::Atomic(format) if format.is_text())
    }

    pub(super) fn push(&self, out: &mut Vec<u8>, element: &[u8], pieces: &VlenStore) {
        match self {
            WrittenForm::Atomic(format) => format.push(out, element),
            WrittenForm::Other { ty, fill: Some((fill, of_fill)), .. }
                if ty.same((fill, of_fill), (element, pieces)) =>
            {
                out.push(b'_');
            }
            WrittenForm::Other { ty, precision, .. } => ty.push(out, element, pieces, *precision),
        }
    }

    /// About how many bytes an element takes while it is written.
    fn cost(&self, elem_bytes: usize) -> usize {
        match self {
            WrittenForm::Other { ty, .. }
                if !matches!(ty.kind, TypeKind::Opaque | TypeKind::Enum(_)) =>
            {
                elem_bytes.max(VLEN_ELEM_BYTES)
            }
            _ => elem_bytes,
        }
    }
}

impl DataVariable {
    /// `None` if the variable has no data, or its data is not asked for.
    fn new(
        file: &Dataset,
        meta: &Meta<'_>,
        id: VarRef,
        options: &CdlOptions,
        bounds: &TimeBounds,
    ) -> Result<Option<DataVariable>> {
        let var = meta.var(id.var)?;
        if options.selection == DataSelection::Coordinates && !is_coordinate(meta, id.var)? {
            return Ok(None);
        }
        let mut shape = vec![0; var.dims.len()];
        meta.var_shape(id.var, &mut shape)?;
        if shape.contains(&0) {
            return Ok(None);
        }
        let unlimited = var.dims.iter().map(|&dim| meta.dim(dim).is_ok_and(|d| d.is_unlimited));
        let form = WrittenForm::new(file, meta, id, options, bounds)?;
        let mut escaped = Vec::new();
        names::push_escaped(&mut escaped, var.name)?;
        Ok(Some(DataVariable {
            var: id,
            name: var.name.to_vec(),
            escaped,
            shape,
            unlimited: unlimited.collect(),
            elem_bytes: meta.type_size(var.nc_type)?.max(1),
            form,
        }))
    }

    fn write(&self, lines: &mut CdlLines<'_>, file: &Dataset, options: &CdlOptions) -> Result<()> {
        lines.raw(b"\n")?;
        lines.indented(b" ")?;
        lines.raw(&self.escaped)?;
        if self.shape.len() <= 1 {
            lines.raw(b" = ")?;
            // `ncdump` does not count escapes, either.
            lines.set_position(self.name.len() + 4);
        } else {
            lines.raw(b" =\n  ")?;
            lines.set_position(2);
        }
        let mut rows = DataRows::new(self, options);
        if let WrittenForm::Atomic(format) = &self.form
            && !format.is_text()
            && !options.full
        {
            return self.write_numbers(format, &mut rows, lines, file);
        }
        let mut blocks = self.blocks(self.form.cost(self.elem_bytes));
        let (mut buffer, mut pieces) = (Vec::new(), VlenStore::default());
        while let Some(Block { slab, n_elems, .. }) = blocks.next() {
            memory::resize(&mut buffer, n_elems.saturating_mul(self.elem_bytes), 0)?;
            pieces.clear();
            // No value is out of range, because none is converted to another type.
            let room = Destination { bytes: &mut buffer, place: Some(&mut pieces) };
            let got = file.get_values(self.var, &slab, room);
            if got.is_err() {
                rows.announce(lines)?;
            }
            let _ = got?;
            rows.put(lines, &buffer, &pieces)?;
        }
        Ok(())
    }

    /// The blocks that are read, if an element takes `elem_bytes`.
    fn blocks(&self, elem_bytes: usize) -> Blocks<'_> {
        Blocks::of_shape(&self.shape, DATA_BLOCK_BYTES / elem_bytes)
    }

    /// Writes numbers, whose text is made on all cores.
    fn write_numbers(
        &self,
        format: &ValueFormat,
        rows: &mut DataRows<'_>,
        lines: &mut CdlLines<'_>,
        file: &Dataset,
    ) -> Result<()> {
        let row_len = rows.len();
        let mut blocks = self.blocks(self.elem_bytes);
        let (mut block, mut at) = (Arc::new(Vec::new()), 0);
        // Column in its row of the next element.
        let mut column = 0;
        let next = || -> Result<Option<_>> {
            if at == block.len() {
                let Some(Block { slab, n_elems, .. }) = blocks.next() else { return Ok(None) };
                let mut bytes = memory::filled(n_elems.saturating_mul(self.elem_bytes), 0)?;
                // In its own type nothing is out of range.
                let _ = file.get(self.var, &slab, None, &mut bytes)?;
                (block, at) = (Arc::new(bytes), 0);
            }
            let end = block.len().min(at + SPAN_ELEMS * self.elem_bytes);
            let span = (Arc::clone(&block), at..end, column);
            column = (column + (end - at) / self.elem_bytes) % row_len;
            at = end;
            Ok(Some(span))
        };
        let done = ordered::in_order(
            next,
            |(block, range, column)| format.texts(&block[range], self.elem_bytes, column, row_len),
            |texts| Ok(rows.put_texts(lines, &texts)?),
        );
        if let Err(CommandFailure::Library(_)) = &done {
            rows.announce(lines)?;
        }
        done
    }
}

/// Whether a variable has one dimension and the name of a dimension.
fn is_coordinate(meta: &Meta<'_>, id: VarId) -> Result<bool> {
    let var = meta.var(id)?;
    Ok(var.dims.len() == 1 && meta.find_dim(var.name).is_ok())
}
