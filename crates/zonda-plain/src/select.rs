//! Checks of a transfer, in the order of the classic formats.

use zonda_format::{Access, Error, Result, Transfer};
use zonda_model::{ExtType, MemType, NcError, VarId, shown_name};
use zonda_slab::{Axis, Hyperslab, MAX_RECORD, Order, OutOfBounds, is_stride};

use crate::file::PlainFile;
use crate::model::Var;

/// Refuses text as numbers and numbers as text; else gives the type in memory.
pub(crate) fn check_mix(ty: ExtType, mem: Option<MemType>) -> Result<MemType> {
    let mem = mem.unwrap_or(ty.natural_mem());
    if (mem == MemType::Text) != (ty == ExtType::Char) {
        return Err(NcError::Char.into());
    }
    Ok(mem)
}

/// What the test of one dimension needs: the selection along it, its length, and whether it can grow.
type Test<'t> = &'t mut dyn FnMut(Axis, u64, bool) -> std::result::Result<(), OutOfBounds>;

impl PlainFile {
    fn selected<'s>(&self, access: &Access<'s>) -> Result<(&Var, MemType, Hyperslab<'s>)> {
        let var = self.model.var(access.var.var)?;
        let mem = check_mix(var.ty, access.mem)?;
        let what = "start, count or stride is shorter than the variable's rank";
        let slab = access.slab.ranked(var.dims.len());
        Ok((var, mem, slab.ok_or_else(|| Error::because(NcError::Inval, what))?))
    }

    /// First step of a transfer. Puts may go beyond the records there are.
    pub(crate) fn check(&self, transfer: &mut Transfer<Access<'_>>, puts: bool) -> Result<()> {
        transfer.forget();
        let access = transfer.of();
        if access.slab.stride.is_some() {
            let (var, _, slab) = self.selected(access)?;
            let mut strides = (0..).map(|at| slab.stride_of(at));
            self.each(var, &slab, &mut |axis, len, grows| {
                if !(puts && grows) {
                    axis.start_and_first_within(len)?;
                    axis.count_within(len)?;
                }
                if strides.next().is_none_or(is_stride) {
                    Ok(())
                } else {
                    Err(OutOfBounds::ByStride)
                }
            })?;
            if slab.is_empty() && !(puts && slab.is_unit()) {
                return Ok(());
            }
        }
        if puts {
            self.require_writable()?;
        }
        if self.in_define {
            return Err(NcError::InDefine.into());
        }
        if access.var.var == VarId::GLOBAL {
            return Err(NcError::Global.into());
        }
        let (var, mem, slab) = self.selected(access)?;
        if slab.is_unit() {
            self.check_vara(var, &slab, puts)?;
        } else {
            self.check_last(var, &slab, puts)?;
        }
        let n_elems = slab.n_elems().ok_or(NcError::NoMem)?;
        let records = if var.is_record() { slab.axis(0).end() } else { 0 };
        if var.bytes(records).is_none() {
            return Err(NcError::InvalidCoords.into());
        }
        let n_bytes = n_elems.checked_mul(mem.size()).filter(|&n| isize::try_from(n).is_ok());
        let n_bytes = n_bytes.ok_or(NcError::NoMem)?;
        transfer.note(n_bytes, n_elems, Some(mem), [0, 0]);
        Ok(())
    }

    /// Without strides: first all starts, then all edges, then the edge of the record dimension. Readers and writers
    /// get different codes for records that do not exist.
    fn check_vara(&self, var: &Var, slab: &Hyperslab<'_>, puts: bool) -> Result<()> {
        let reads = !puts && !self.writable;
        self.each(var, slab, &mut |axis, len, grows| match grows {
            true if reads => axis.start_within(MAX_RECORD.min(len)),
            true => axis.start_within(MAX_RECORD),
            false => axis.start_within(len),
        })?;
        self.each(var, slab, &mut |axis, len, grows| match grows {
            true if reads => axis.first_within(len),
            true => Ok(()),
            false => axis.first_within(len).and_then(|()| axis.count_within(len)),
        })?;
        self.each(var, slab, &mut |axis, len, grows| {
            if grows && !puts { axis.count_within(len) } else { Ok(()) }
        })
    }

    /// With strides: the last element along each dimension, then that of the record dimension.
    fn check_last(&self, var: &Var, slab: &Hyperslab<'_>, puts: bool) -> Result<()> {
        let reads = !puts && !self.writable;
        self.each(var, slab, &mut |axis, len, grows| {
            let all = MAX_RECORD.saturating_add(1);
            let len = if grows { if reads { len.min(all) } else { all } } else { len };
            axis.last_within(len).map_err(|_| OutOfBounds::AtStart)
        })?;
        self.each(var, slab, &mut |axis, len, grows| {
            if grows && !puts { axis.last_within(len) } else { Ok(()) }
        })
    }

    fn each(&self, var: &Var, slab: &Hyperslab<'_>, test: Test<'_>) -> Result<()> {
        let records = self.model.records;
        let of_axis = |at: usize, axis| match var.shape.get(at) {
            Some(0) => test(axis, records, true),
            len => test(axis, len.copied().unwrap_or(0), false),
        };
        slab.each_axis(Order::Up, of_axis).map_err(|misfit| {
            let (code, name) = (NcError::from(misfit.why), shown_name(&var.name));
            Error::with_text(code, format!("variable {name}, dimension {}: {code}", misfit.axis))
        })
    }
}
