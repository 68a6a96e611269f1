//! What all formats show, as a classic file shows it. What changes a file is in `define`.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_convert::{ByteOrder, Converted, Decoder};
use zonda_format::{
    Access, AttAccess, AttView, Capabilities, ClassicVar, Definitions, Destination, DimView, Dims,
    Dispatch, DispatchWrite, Format, GroupId, GroupView, Layout, PlainAxis, PlainPlace, PutRules,
    Result, Transfer, Values, VarRef, VarView,
};
use zonda_model::{DimId, ExtType, NcError, VarId};
use zonda_storage::Storage;

use crate::attribute::{check_mix, range_rule};
use crate::atts::Atts;
use crate::error::{ClassicError, shown, wrong_length};
use crate::file::{ClassicFile, FileMode};
use crate::small_run::{SmallRun, read_natural, write_natural};
use crate::transfer::natural;
use crate::tuning::{STACK_RUN_BYTES, TINY_RUN_BYTES};

/// Puts that reach beyond this record are checked by the file itself.
const CERTAIN_RECORDS: u64 = 1 << 30;

impl ClassicFile {
    /// The number of records that inquiries show: records of accepted puts count.
    fn n_shown(&self) -> u64 {
        self.n_records().max(self.base.n_accepted.load(Ordering::Acquire))
    }
}

/// A classic file has the root group only. Calls about other groups were refused before they come here, so the group is not looked
/// at again.
/// Where the type of an attribute is in the number that a check hands on, above its index.
const TYPE_SHIFT: u32 = 48;

/// The type and the values of an attribute that a check has found.
#[inline]
fn values_of(atts: &Atts, known: u64, place: u64, n_elems: usize) -> Option<(ExtType, &[u8])> {
    let Some(at) = place.checked_sub(1) else {
        let index = known & (u64::MAX >> (64 - TYPE_SHIFT));
        let found = atts.get(usize::try_from(index).ok()?)?;
        return Some((found.ty, found.bytes));
    };
    let ty = ExtType::from_nc_type(i32::try_from(known >> TYPE_SHIFT).ok()?)?;
    let bytes = atts.values_at(usize::try_from(at).ok()?, n_elems.checked_mul(ty.size())?)?;
    Some((ty, bytes))
}

impl Definitions for ClassicFile {
    fn format(&self) -> Format {
        self.state.header.version.format()
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        self.check_group(group)?;
        Ok(GroupView {
            name: b"/",
            parent: None,
            children: &[],
            types: &[],
            n_vars: self.state.header.vars.len(),
            dims: Dims::First(self.state.header.dims.len()),
        })
    }

    fn check_group(&self, group: GroupId) -> Result<()> {
        if group == GroupId::ROOT { Ok(()) } else { Err(NcError::BadGrpId.into()) }
    }

    fn n_vars(&self, _group: GroupId) -> usize {
        self.state.header.vars.len()
    }

    fn dims(&self, _group: GroupId) -> Dims<'_> {
        Dims::First(self.state.header.dims.len())
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        let dim = self.state.header.dim(id)?;
        let is_unlimited = dim.len == 0;
        let len = if is_unlimited { self.n_shown() } else { dim.len };
        Ok(DimView { name: &dim.name, len, is_unlimited })
    }

    fn find_dim(&self, _group: GroupId, name: &[u8]) -> Result<DimId> {
        Ok(self.state.header.find_dim(name)?)
    }

    fn most_unlimited(&self) -> usize {
        1
    }

    fn first_unlimited(&self, _group: GroupId) -> Option<DimId> {
        self.state.header.record_dim()
    }

    fn n_records(&self) -> Option<u64> {
        Some(self.n_shown())
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        let var = self.state.header.var(var.var)?;
        let classic = ClassicVar {
            no_fill: var.no_fill,
            begin: var.begin,
            slab_bytes: var.slab_bytes(),
            is_record: var.is_record(),
        };
        let nc_type = var.ty.nc_type();
        Ok(VarView { name: &var.name, nc_type, dims: &var.dims, classic: Some(classic) })
    }

    fn find_var(&self, _group: GroupId, name: &[u8]) -> Result<VarId> {
        Ok(self.state.header.find_var(name)?)
    }

    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        let var = self.state.header.var(var.var)?;
        for (axis, (out, &len)) in out.iter_mut().zip(&var.shape).enumerate() {
            let len = if axis == 0 && var.is_record() { self.n_shown() } else { len };
            *out = usize::try_from(len).unwrap_or(usize::MAX);
        }
        Ok(var.shape.len())
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.state.header.atts(owner.var)?.len())
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        Ok(self.state.header.atts(owner.var)?.get(index).ok_or(NcError::NotAtt)?.into())
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        let (index, att) = self.state.header.att(owner.var, name)?;
        Ok((i32::try_from(index).unwrap_or(i32::MAX), att.into()))
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.state.header.layout)
    }
}

impl Dispatch for ClassicFile {
    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities::CLASSIC
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        Some(&self.base.storage)
    }

    fn definitions(&self) -> &dyn Definitions {
        self
    }

    fn is_writable(&self) -> bool {
        ClassicFile::is_writable(self)
    }

    fn in_define_mode(&self) -> bool {
        ClassicFile::in_define_mode(self)
    }

    /// 0 where there is no such variable, which a check says.
    #[inline]
    fn rank(&self, var: VarRef) -> usize {
        let index = usize::try_from(var.var.0).ok();
        let var = index.and_then(|index| self.state.header.vars.get(index));
        var.map_or(0, |var| var.shape.len())
    }

    /// Without `stride` the checks are those of `nc_get_vara`, with it those of `nc_get_vars`.
    // Inlined, as the other short ways: an error of many words makes each result a copy.
    #[inline(always)]
    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        let Access { var, slab, mem } = get.of();
        match SmallRun::find(&self.base, &self.state, var.var, slab, *mem) {
            Some((run, mem)) => run.note_in(mem, STACK_RUN_BYTES, get),
            None => self.check_get_plan(get)?,
        }
        Ok(())
    }

    /// What lies behind the end of a short file reads as zeros, as in the reference.
    #[inline(always)]
    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        match natural(get, room.bytes.len()) {
            Some((at, size)) => Ok(read_natural(&*self.base.storage, at, room.bytes, size)?),
            None => Ok(self.get_found(get, room.bytes)?),
        }
    }

    #[inline]
    fn get_now(&self, get: &mut Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        let Access { var, slab, mem } = get.of();
        match SmallRun::find(&self.base, &self.state, var.var, slab, *mem) {
            Some((run, mem)) if run.n_bytes(mem) == room.bytes.len() => {
                Ok(run.read(&*self.base.storage, mem, room.bytes)?)
            }
            _ => Ok(self.get_plan_now(get, room.bytes)?),
        }
    }

    /// In the order of the reference: no such variable, no such attribute, text mixed with numbers.
    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        get.forget();
        let header = self.state.require_open()?;
        let att = get.of();
        let (index, found) = header.att(att.owner.var, att.name)?;
        if found.len == 0 {
            return Ok(());
        }
        let mem = check_mix(found.ty, att.mem, || shown(att.name))?;
        let n_elems = found.bytes.len().checked_div(found.ty.size()).ok_or_else(wrong_length)?;
        let n_bytes = n_elems.checked_mul(mem.size()).ok_or_else(wrong_length)?;
        // The second step need not look for it again.
        let place = header.atts(att.owner.var)?.place_of(found.bytes);
        let place = place.map_or(0, |place| (place as u64).saturating_add(1));
        let kind = u64::from(found.ty.nc_type().cast_unsigned()) << TYPE_SHIFT;
        get.note(n_bytes, n_elems, Some(mem), [index as u64 | kind, place]);
        Ok(())
    }

    /// Values that do not fit are counted, not refused.
    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        if room.bytes.len() != get.n_bytes {
            return Err(wrong_length().into());
        }
        let att = get.of();
        let Some(mem) = get.mem else { return Ok(Converted { out_of_range: 0 }) };
        let header = self.state.require_open()?;
        let [known, place] = get.found;
        let atts = header.atts(att.owner.var)?;
        let (ty, bytes) = values_of(atts, known, place, get.n_elems).ok_or_else(wrong_length)?;
        match Decoder::new(ty, ByteOrder::Big, mem, range_rule(header.version)) {
            Ok(decoder) => Ok(decoder.decode(bytes, room.bytes)),
            Err(_) => Err(ClassicError::TextNumberMix(shown(att.name)).into()),
        }
    }

    fn refresh(&mut self) -> Result<()> {
        Ok(ClassicFile::sync(self)?)
    }

    /// Without `stride` the checks are those of `nc_put_vara`, with it those of `nc_put_vars`.
    #[inline(always)]
    fn check_shared_put(&self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        let (file, of) = (&self.base, put.of());
        if let Some((run, mem)) = SmallRun::find(file, &self.state, of.var.var, &of.slab, of.mem)
            && !file.share
            && file.require_writable().is_ok()
        {
            run.note_in(mem, TINY_RUN_BYTES, put);
            return Ok(());
        }
        Ok(self.check_put_plan(put)?)
    }

    /// Puts beyond the last record add records, filled where the fill mode says so. Values that do not fit the variable's type
    /// are written as the reference does, and counted.
    #[inline(always)]
    fn shared_put(&self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        match natural(put, values.bytes.len()) {
            Some((at, size)) => Ok(write_natural(&*self.base.storage, at, values.bytes, size)?),
            None => Ok(self.put_found(put, values.bytes)?),
        }
    }

    #[inline]
    fn shared_put_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        let (file, data, Access { var, slab, mem }) = (&self.base, values.bytes, put.of());
        match SmallRun::find(file, &self.state, var.var, slab, *mem) {
            Some((run, mem)) if !file.share && file.writable && run.n_bytes(mem) == data.len() => {
                Ok(run.write(&*file.storage, mem, data)?)
            }
            _ => Ok(self.put_plan_now(put, data)?),
        }
    }

    fn put_rules(&self, var: VarRef) -> Option<PutRules> {
        let var = self.state.header.var(var.var).ok()?;
        let of_axis = |(axis, &len)| (axis > 0 || !var.is_record()).then_some(len);
        Some(PutRules {
            nc_type: var.ty.nc_type(),
            elem: var.ty.size(),
            fixed: var.shape.iter().enumerate().map(of_axis).collect(),
            most: CERTAIN_RECORDS,
            // They are checked by rules of their own.
            takes_empty: false,
            range_rule: Some(range_rule(self.state.header.version)),
            tolerates_bytes: false,
        })
    }

    /// Not under `NC_SHARE`, where other processes are to see each put, nor while definitions change.
    fn plain_place(&self, var: VarRef) -> Option<PlainPlace> {
        let (file, header) = (&self.base, &self.state.header);
        if file.share || !matches!(self.state.mode, FileMode::Data) {
            return None;
        }
        let var = header.var(var.var).ok()?;
        let mut step = var.ty.size() as u64;
        let mut axes: Vec<PlainAxis> = Vec::with_capacity(var.shape.len());
        for (axis, &len) in var.shape.iter().enumerate().rev() {
            if axis == 0 && var.is_record() {
                let len = file.n_records.load(Ordering::Acquire);
                axes.push(PlainAxis { len, step: header.layout.record_len });
            } else {
                axes.push(PlainAxis { len, step });
                step = step.checked_mul(len)?;
            }
        }
        axes.reverse();
        // The last element has a place, so all have.
        let last = axes
            .iter()
            .try_fold(var.begin, |at, axis| axis.step.checked_mul(axis.len)?.checked_add(at));
        last?;
        Some(PlainPlace {
            at: var.begin,
            ty: var.ty,
            order: ByteOrder::Big,
            rule: range_rule(header.version),
            axes: axes.into(),
            is_writable: file.writable,
        })
    }

    fn n_accepted(&self) -> Option<&Arc<AtomicU64>> {
        Some(&self.base.n_accepted)
    }

    /// `None` where the header has changes that are not committed yet.
    fn committed_name(&self, var: VarRef) -> Option<Box<[u8]>> {
        let var = self.state.header.var(var.var).ok().filter(|_| !self.has_uncommitted_header())?;
        Some(var.name.to_vec().into())
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
