//! The data section of CDL, read and written block by block.

use std::io::{self, Write};

use zonda::{Dataset, ExtType, GroupId, Hyperslab, Meta, NC_STRING, Place, VarId, VarRef};

use super::header::var_id;
use super::lines::Lines;
use super::types::{Kind, Type};
use super::values::{Format, Precision};
use super::{IndexOrder, Options, Selection, named, names};
use crate::failure::Result;
use crate::placed::{self, Pieces};

/// Bytes read at a time: what bounds memory whatever the size of a variable.
const BLOCK_BYTES: usize = 4 << 20;
/// Bytes that an element with strings or sequences is taken to need, for as long as they are not read.
const PLACED_BYTES: usize = 1 << 10;
/// A `C_format` of this length or more is not applied.
const C_FORMAT_END: u64 = 100;

/// Writes the data section of a group.
pub(super) fn write(
    lines: &mut Lines<'_>,
    file: &Dataset,
    group: GroupId,
    options: &Options,
) -> Result<()> {
    let (n_vars, wanted) = file.in_group(group, |meta| {
        let wanted = options.variables.iter().filter_map(|name| named(meta, name));
        (meta.n_vars(), wanted.collect::<Vec<VarId>>())
    })?;
    if n_vars > 0 {
        lines.indented(b"data:\n")?;
    }
    for id in (0..n_vars).map(var_id) {
        if !options.variables.is_empty() && !wanted.contains(&id) {
            continue;
        }
        let var = VarRef { group, var: id };
        let variable = file.in_group(group, |meta| Variable::new(file, meta, var, options))??;
        let Some(variable) = variable else { continue };
        variable.write(lines, file, options)?;
    }
    Ok(())
}

/// What is needed to write one variable.
struct Variable {
    var: VarRef,
    name: Vec<u8>,
    escaped: Vec<u8>,
    shape: Vec<usize>,
    /// Which dimensions can grow.
    unlimited: Vec<bool>,
    elem_bytes: usize,
    form: Form,
}

/// How its values are written.
enum Form {
    /// Of numbers and characters.
    Atomic(Format),
    /// Of all other types.
    Other {
        ty: Type,
        /// Fill value, as one element.
        fill: Option<(Vec<u8>, Pieces)>,
        precision: Precision,
    },
}

impl Form {
    fn new(file: &Dataset, meta: &Meta<'_>, var: VarRef, options: &Options) -> Result<Form> {
        let nc_type = meta.var(var.var)?.nc_type;
        let att = |name: &[u8]| meta.find_att(var.var, name).ok().map(|(_, att)| att);
        let fill = att(b"_FillValue").filter(|att| att.nc_type == nc_type && att.len == 1);
        let fill = fill.map(|att| placed::attribute(file, var, &att)).transpose()?;
        let precision = options.precision;
        let Some(ty) = ExtType::from_nc_type(nc_type) else {
            let mut empty = Pieces::default();
            // An empty string, the first and only one.
            let mut none = || empty.place(b"", true).map(|number| number.to_ne_bytes().to_vec());
            let default = if nc_type == NC_STRING { none() } else { None };
            let fill = fill.or_else(|| Some((default?, empty)));
            return Ok(Form::Other { ty: Type::of(meta, nc_type)?, fill, precision });
        };
        let c_format = att(b"C_format")
            .filter(|att| att.ty() == Some(ExtType::Char) && (1..C_FORMAT_END).contains(&att.len))
            .map(|att| placed::attribute(file, var, &att))
            .transpose()?;
        let c_format = c_format.as_ref().map(|(text, _)| &**text);
        let fill = fill.as_ref().map(|(bytes, _)| &**bytes);
        Ok(Form::Atomic(Format::new(ty, c_format, fill, precision)))
    }

    /// Whether rows of characters are written as strings.
    fn is_text(&self) -> bool {
        matches!(self, Form::Atomic(format) if format.is_text())
    }

    fn push(&self, out: &mut Vec<u8>, element: &[u8], pieces: &Pieces) {
        match self {
            Form::Atomic(format) => format.push(out, element),
            Form::Other { ty, fill: Some((fill, of_fill)), .. }
                if ty.same((fill, of_fill), (element, pieces)) =>
            {
                out.push(b'_');
            }
            Form::Other { ty, precision, .. } => ty.push(out, element, pieces, *precision),
        }
    }

    /// Bytes that an element takes up while it is written, about.
    fn cost(&self, elem_bytes: usize) -> usize {
        match self {
            Form::Other { ty, .. } if !matches!(ty.kind, Kind::Opaque | Kind::Enum(_)) => {
                elem_bytes.max(PLACED_BYTES)
            }
            _ => elem_bytes,
        }
    }
}

impl Variable {
    /// `None` if it has no data, or none that is asked for.
    fn new(
        file: &Dataset,
        meta: &Meta<'_>,
        id: VarRef,
        options: &Options,
    ) -> Result<Option<Variable>> {
        let var = meta.var(id.var)?;
        if options.selection == Selection::Coordinates && !is_coordinate(meta, id.var)? {
            return Ok(None);
        }
        let mut shape = vec![0; var.dims.len()];
        meta.var_shape(id.var, &mut shape)?;
        if shape.contains(&0) {
            return Ok(None);
        }
        let unlimited = var.dims.iter().map(|&dim| meta.dim(dim).is_ok_and(|d| d.is_unlimited));
        let form = Form::new(file, meta, id, options)?;
        let mut escaped = Vec::new();
        names::push_escaped(&mut escaped, var.name)?;
        Ok(Some(Variable {
            var: id,
            name: var.name.to_vec(),
            escaped,
            shape,
            unlimited: unlimited.collect(),
            elem_bytes: meta.type_size(var.nc_type)?.max(1),
            form,
        }))
    }

    fn write(&self, lines: &mut Lines<'_>, file: &Dataset, options: &Options) -> Result<()> {
        lines.raw(b"\n")?;
        lines.indented(b" ")?;
        lines.raw(&self.escaped)?;
        if self.shape.len() <= 1 {
            lines.raw(b" = ")?;
            // The escapes are not counted, as `ncdump` does it.
            lines.set_position(self.name.len() + 4);
        } else {
            lines.raw(b" =\n  ")?;
            lines.set_position(2);
        }
        let mut rows = Rows::new(self, options);
        let mut blocks = Blocks::new(&self.shape, self.form.cost(self.elem_bytes));
        let (mut buffer, mut pieces) = (Vec::new(), Pieces::default());
        while let Some((start, count, n_elems)) = blocks.next() {
            let slab = Hyperslab { start, count, stride: None };
            buffer.resize(n_elems * self.elem_bytes, 0);
            pieces.clear();
            // In its own type nothing is out of range.
            let _ = file.get_placed(self.var, |_| slab, &mut pieces, |_| Ok(&mut buffer))?;
            rows.put(lines, &buffer, &pieces)?;
        }
        Ok(())
    }
}

/// Whether a variable has one dimension and the name of a dimension.
fn is_coordinate(meta: &Meta<'_>, id: VarId) -> Result<bool> {
    let var = meta.var(id)?;
    Ok(var.dims.len() == 1 && meta.find_dim(var.name).is_ok())
}

/// Cuts a variable into hyperslabs that follow each other in memory order.
struct Blocks<'a> {
    shape: &'a [usize],
    /// The axis along which is cut; all before it go by single steps.
    axis: usize,
    /// Steps along `axis` in one block.
    most: usize,
    start: Vec<usize>,
    count: Vec<usize>,
    begun: bool,
}

impl<'a> Blocks<'a> {
    fn new(shape: &'a [usize], elem_bytes: usize) -> Blocks<'a> {
        let limit = (BLOCK_BYTES / elem_bytes).max(1);
        let mut axis = shape.len();
        // Elements of one step along `axis`.
        let mut step = 1usize;
        while axis > 0 && step.saturating_mul(shape[axis - 1]) <= limit {
            step *= shape[axis - 1];
            axis -= 1;
        }
        // All fits: one block, cut along the first axis into its full length.
        let (axis, most) = match axis.checked_sub(1) {
            Some(axis) => (axis, (limit / step).max(1)),
            None => (0, shape.first().copied().unwrap_or(1)),
        };
        let mut count = vec![1; shape.len()];
        for (count, &len) in count.iter_mut().zip(shape).skip(axis) {
            *count = len;
        }
        Blocks { shape, axis, most, start: vec![0; shape.len()], count, begun: false }
    }

    /// Start, count and number of elements of the next block.
    fn next(&mut self) -> Option<(&[usize], &[usize], usize)> {
        if self.begun && !self.advance() {
            return None;
        }
        self.begun = true;
        if let Some(count) = self.count.get_mut(self.axis) {
            *count = self.most.min(self.shape[self.axis] - self.start[self.axis]);
        }
        Some((&self.start, &self.count, self.count.iter().product()))
    }

    fn advance(&mut self) -> bool {
        if self.shape.is_empty() {
            return false;
        }
        let mut axis = self.axis;
        self.start[axis] += self.most;
        while self.start[axis] >= self.shape[axis] {
            if axis == 0 {
                return false;
            }
            self.start[axis] = 0;
            axis -= 1;
            self.start[axis] += 1;
        }
        true
    }
}

/// Writes elements, handed over in memory order and in pieces of any size, as rows along the last
/// dimension.
struct Rows<'a> {
    variable: &'a Variable,
    options: &'a Options,
    row_len: usize,
    /// Index of the current row in all dimensions but the last.
    corner: Vec<usize>,
    /// Elements of the current row that are written.
    at: usize,
    /// NULs of a string that are written only if something follows them in the row.
    nuls: usize,
    text: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(variable: &'a Variable, options: &'a Options) -> Rows<'a> {
        let (row_len, outer) = match variable.shape.split_last() {
            Some((&last, outer)) => (last, outer.len()),
            None => (1, 0),
        };
        let corner = vec![0; outer];
        Rows { variable, options, row_len, corner, at: 0, nuls: 0, text: Vec::new() }
    }

    fn put(&mut self, lines: &mut Lines<'_>, bytes: &[u8], pieces: &Pieces) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at == 0 {
                self.begin_row(lines)?;
            }
            let room = (self.row_len - self.at) * self.variable.elem_bytes;
            let (row, tail) = rest.split_at(room.min(rest.len()));
            if self.variable.form.is_text() {
                self.put_text(lines, row)?;
            } else {
                self.put_values(lines, row, pieces)?;
            }
            if self.at == self.row_len {
                self.end_row(lines)?;
            }
            rest = tail;
        }
        Ok(())
    }

    fn begin_row(&mut self, lines: &mut Lines<'_>) -> io::Result<()> {
        for _ in 0..self.n_braces(|at, _| at == 0) {
            lines.put(b"{")?;
        }
        if self.options.brief && !self.corner.is_empty() {
            self.text.clear();
            self.push_brief();
            lines.raw(&self.text)?;
            lines.raw(b")\n")?;
            lines.indented(b"    ")?;
            lines.set_position(4);
        }
        if self.variable.form.is_text() {
            lines.raw(b"\"")?;
        }
        Ok(())
    }

    /// The row's characters without the NULs at its end.
    fn put_text(&mut self, lines: &mut Lines<'_>, bytes: &[u8]) -> io::Result<()> {
        self.text.clear();
        for &byte in bytes {
            if byte == 0 {
                self.nuls += 1;
                continue;
            }
            while self.nuls > 0 {
                self.text.extend_from_slice(b"\\000");
                self.nuls -= 1;
                if self.text.len() > BLOCK_BYTES {
                    lines.raw(&self.text)?;
                    self.text.clear();
                }
            }
            match byte {
                b'\n' => self.text.extend_from_slice(b"\\n\",\n    \""),
                _ => match escape(byte) {
                    Some(escape) => self.text.extend_from_slice(escape),
                    None if byte == b' ' || byte.is_ascii_graphic() => self.text.push(byte),
                    None => {
                        let _ = write!(self.text, "\\{byte:03o}");
                    }
                },
            }
        }
        self.at += bytes.len();
        lines.raw(&self.text)
    }

    fn put_values(
        &mut self,
        lines: &mut Lines<'_>,
        bytes: &[u8],
        pieces: &Pieces,
    ) -> io::Result<()> {
        for element in bytes.chunks_exact(self.variable.elem_bytes) {
            self.at += 1;
            self.text.clear();
            self.variable.form.push(&mut self.text, element, pieces);
            let last = self.at == self.row_len;
            if last {
                self.text.extend(std::iter::repeat_n(b'}', self.n_ends()));
            } else {
                self.text.extend_from_slice(b", ");
            }
            if !self.options.full {
                lines.put(&self.text)?;
            } else if last {
                // The delimiter and the comment follow at the end of the row.
                lines.raw(&self.text)?;
            } else {
                self.push_full(self.at - 1);
                lines.raw(&self.text)?;
            }
        }
        Ok(())
    }

    fn end_row(&mut self, lines: &mut Lines<'_>) -> io::Result<()> {
        if self.variable.form.is_text() {
            self.nuls = 0;
            lines.raw(b"\"")?;
            self.text.clear();
            self.text.extend(std::iter::repeat_n(b'}', self.n_ends()));
            if self.options.full {
                lines.raw(&self.text)?;
            } else {
                lines.put(&self.text)?;
            }
        }
        let outer = &self.variable.shape[..self.corner.len()];
        let last = self.corner.iter().zip(outer).all(|(&at, &len)| at + 1 == len);
        if self.options.full {
            self.text.clear();
            self.text.push(if last { b';' } else { b',' });
            self.push_full(if self.variable.shape.is_empty() { 0 } else { self.row_len - 1 });
            lines.raw(&self.text)?;
        } else if last {
            lines.put(b" ;")?;
            lines.put(b"\n")?;
        } else {
            lines.put(b",\n")?;
            lines.put(b"  ")?;
        }
        self.at = 0;
        for (at, &len) in self.corner.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < len {
                break;
            }
            *at = 0;
        }
        Ok(())
    }

    /// How many dimensions but the first can grow and have, in the current row, all dimensions from
    /// them on at the place that `there` tells: what grows is in braces.
    fn n_braces(&self, there: impl Fn(usize, usize) -> bool) -> usize {
        let mut n = 0;
        for (axis, unlimited) in self.variable.unlimited.iter().enumerate().skip(1).rev() {
            let at = self.corner.get(axis).zip(self.variable.shape.get(axis));
            if at.is_some_and(|(&at, &len)| !there(at, len)) {
                break;
            }
            n += usize::from(*unlimited);
        }
        n
    }

    /// How many braces close behind the row.
    fn n_ends(&self) -> usize {
        self.n_braces(|at, len| at + 1 == len)
    }

    /// The comment after a value: its indices.
    fn push_full(&mut self, column: usize) {
        self.text.extend_from_slice(b"  // ");
        self.text.extend_from_slice(&self.variable.escaped);
        self.text.push(b'(');
        match self.options.order {
            IndexOrder::C => {
                for &at in &self.corner {
                    let _ = write!(self.text, "{at},");
                }
                let _ = write!(self.text, "{column}");
            }
            IndexOrder::Fortran => {
                let _ = write!(self.text, "{}", column + 1);
                for &at in self.corner.iter().rev() {
                    let _ = write!(self.text, ",{}", at + 1);
                }
            }
        }
        self.text.extend_from_slice(b")\n    ");
    }

    /// The comment before a row: its indices, the last one as a range.
    fn push_brief(&mut self) {
        self.text.extend_from_slice(b"// ");
        self.text.extend_from_slice(&self.variable.escaped);
        self.text.push(b'(');
        let last = self.row_len - 1;
        match self.options.order {
            IndexOrder::C => {
                for &at in &self.corner {
                    let _ = write!(self.text, "{at},");
                }
                let _ = match last {
                    0 => write!(self.text, "0"),
                    _ => write!(self.text, " 0-{last}"),
                };
            }
            IndexOrder::Fortran => {
                let _ = match last {
                    0 => write!(self.text, "1"),
                    _ => write!(self.text, "1-{} ", self.row_len),
                };
                for &at in self.corner.iter().rev() {
                    let _ = write!(self.text, ",{}", at + 1);
                }
            }
        }
    }
}

/// The escape of a character that has one in CDL strings, but for the newline.
pub(super) fn escape(byte: u8) -> Option<&'static [u8]> {
    Some(match byte {
        0x08 => b"\\b",
        0x0C => b"\\f",
        b'\r' => b"\\r",
        b'\t' => b"\\t",
        0x0B => b"\\v",
        b'\\' => b"\\\\",
        b'\'' => b"\\'",
        b'"' => b"\\\"",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks cover every element once, in order, and none is too large.
    fn check_blocks(shape: &[usize], elem_bytes: usize) -> usize {
        let mut blocks = Blocks::new(shape, elem_bytes);
        let (mut next, mut n) = (0, 0);
        while let Some((start, count, n_elems)) = blocks.next() {
            let at = start.iter().zip(shape).fold(0, |at, (&index, &len)| at * len + index);
            assert_eq!(at, next, "{shape:?}: block {n} at {start:?} x {count:?}");
            assert!(n_elems * elem_bytes <= BLOCK_BYTES);
            next += n_elems;
            n += 1;
        }
        assert_eq!(next, shape.iter().product::<usize>());
        n
    }

    #[test]
    fn blocks_cover_everything_in_order() {
        assert_eq!(check_blocks(&[], 8), 1);
        assert_eq!(check_blocks(&[1], 1), 1);
        assert_eq!(check_blocks(&[3, 4, 5], 8), 1);
        assert_eq!(check_blocks(&[BLOCK_BYTES], 1), 1);
        assert_eq!(check_blocks(&[BLOCK_BYTES + 1], 1), 2);
        assert_eq!(check_blocks(&[3, BLOCK_BYTES / 4 + 1], 4), 6);
        assert_eq!(check_blocks(&[7, 3, BLOCK_BYTES / 2], 1), 14);
        assert_eq!(check_blocks(&[2, 5, BLOCK_BYTES / 8, 1], 4), 6);
        check_blocks(&[13, 1001, 977], 8);
    }
}
