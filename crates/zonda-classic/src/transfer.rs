//! Moving data between a caller's memory and the file, in two steps: a check and the transfer.

use std::sync::atomic::Ordering;

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder};
use zonda_format::{Access, Transfer, VarRef};
use zonda_model::{Hyperslab, MemType, VarId};

use crate::attribute::{check_mix, range_rule};
use crate::error::{ClassicError, shown, wrong_length};
use crate::file::{Base, ClassicFile, FileState};
use crate::fill::{self, Covered};
use crate::header::{Header, Var, Version};
use crate::plan::{TransferPlan, n_elems, read_plan, too_large, write_plan};
use crate::select::{self, Direction};
use crate::small_run::{CONVERTED, NATURAL, SmallRun};

/// In `Transfer::found`, as [`CONVERTED`]: runs and the loops around them.
const PLANNED: u64 = 2;

/// Transfers in two steps: a check, which says how long the caller's memory has to be, and the transfer. The file does not change
/// between, but for the number of its records.
impl ClassicFile {
    #[inline(never)]
    pub(crate) fn put_plan_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted, ClassicError> {
        self.check_put_plan(put)?;
        self.put_plan(put, data)
    }

    #[inline(never)]
    pub(crate) fn get_plan_now(
        &self,
        get: &mut Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        self.check_get_plan(get)?;
        self.get_plan(get, out)
    }

    #[inline(never)]
    pub(crate) fn check_put_plan(
        &self,
        put: &mut Transfer<Access<'_>>,
    ) -> Result<(), ClassicError> {
        put.forget();
        let (file, state) = (&self.base, &self.state);
        let n_records = file.n_records.load(Ordering::Acquire);
        let Some((var, mem)) = file.check(state, put.of(), Direction::Put, n_records)? else {
            return Ok(());
        };
        let slab = &put.of().slab;
        let to = records_needed(var, slab);
        let n_elems = n_elems(var, slab)?;
        if to > file.n_records.load(Ordering::Acquire) {
            select::check_n_records(&state.header, var, slab, to)?;
        }
        planned(put, var, n_elems, mem)
    }

    #[inline(never)]
    pub(crate) fn put_found(
        &self,
        put: &Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted, ClassicError> {
        match self.plain(put, data.len()) {
            Some((run, mem)) => run.write(&*self.base.storage, mem, data),
            None => self.put_plan(put, data),
        }
    }

    /// The run that a check found, for memory of the right length.
    #[inline(always)]
    fn plain(&self, of: &Transfer<Access<'_>>, len: usize) -> Option<(SmallRun, MemType)> {
        let [CONVERTED, at] = of.found else { return None };
        let header = &self.state.header;
        let var = header.vars.get(usize::try_from(of.of().var.var.0).ok()?)?;
        let run = SmallRun::again(header, var, at, of.n_elems);
        (len == of.n_bytes).then_some((run, of.mem?))
    }

    #[inline(never)]
    fn put_plan(&self, put: &Transfer<Access<'_>>, data: &[u8]) -> Result<Converted, ClassicError> {
        let Some((var, mem, plan)) = self.plan_of(put, data.len())? else {
            return Ok(Converted::default());
        };
        let (file, header) = (&self.base, &self.state.header);
        let encoder = Encoder::new(var.ty, ByteOrder::Big, mem, range_rule(header.version))
            .map_err(|_| ClassicError::TextNumberMix(shown(&var.name)))?;
        let Access { var: VarRef { var: id, .. }, slab, .. } = put.of();
        let write = || write_plan(&*file.storage, &plan, &encoder, data);
        let to = records_needed(var, slab);
        let grows = to > file.n_records.load(Ordering::Acquire);
        let converted = match grows {
            true => file.grow(header, *id, slab, to, write)?,
            false => write()?,
        };
        if file.share {
            file.publish_n_records(header.version)?;
        }
        Ok(converted)
    }

    #[inline(never)]
    pub(crate) fn check_get_plan(
        &self,
        get: &mut Transfer<Access<'_>>,
    ) -> Result<(), ClassicError> {
        get.forget();
        let (file, Access { var, slab, .. }) = (&self.base, get.of());
        let n_records = file.records_for_get(self.state.require_open()?, var.var, slab)?;
        let direction = Direction::Get { writable: file.writable };
        let Some((var, mem)) = file.check(&self.state, get.of(), direction, n_records)? else {
            return Ok(());
        };
        match n_elems(var, slab)? {
            0 => Ok(()),
            n => planned(get, var, n, mem),
        }
    }

    #[inline(never)]
    pub(crate) fn get_found(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        match self.plain(get, out.len()) {
            Some((run, mem)) => run.read(&*self.base.storage, mem, out),
            None => self.get_plan(get, out),
        }
    }

    #[inline(never)]
    fn get_plan(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        let Some((var, mem, plan)) = self.plan_of(get, out.len())? else {
            return Ok(Converted::default());
        };
        let rule = range_rule(self.state.header.version);
        let decoder = Decoder::new(var.ty, ByteOrder::Big, mem, rule)
            .map_err(|_| ClassicError::TextNumberMix(shown(&var.name)))?;
        read_plan(&*self.base.storage, &plan, &decoder, out)
    }

    /// What a checked transfer moves, for memory of `len` bytes: its variable, the type in memory and the plan; `None` for
    /// nothing.
    fn plan_of(
        &self,
        of: &Transfer<Access<'_>>,
        len: usize,
    ) -> Result<Option<(&Var, MemType, TransferPlan)>, ClassicError> {
        if len != of.n_bytes {
            return Err(wrong_length());
        }
        if of.found[0] != PLANNED {
            return Ok(None);
        }
        let Access { var: VarRef { var: id, .. }, slab, .. } = of.of();
        let header = &self.state.header;
        let var = header.var(*id)?;
        let plan = TransferPlan::new(header, var, slab)?;
        if plan.n_elems != of.n_elems {
            return Err(wrong_length());
        }
        Ok(Some((var, of.mem.unwrap_or(var.ty.natural_mem()), plan)))
    }
}

impl Base {
    /// Everything that may refuse a transfer, in the order of the reference; `None` where there is nothing to move.
    fn check<'s>(
        &self,
        state: &'s FileState,
        of: &Access<'_>,
        direction: Direction,
        n_records: u64,
    ) -> Result<Option<(&'s Var, MemType)>, ClassicError> {
        let Access { var: VarRef { var: id, .. }, slab, mem } = *of;
        let header = state.require_open()?;
        if slab.stride.is_some() {
            let var = header.var(id)?;
            check_mix(var.ty, mem, || shown(&var.name))?;
            let slab = &select::check_rank(var, &slab)?;
            select::check_vars(var, slab, direction, n_records)?;
            if slab.is_empty() && !(direction == Direction::Put && slab.is_unit()) {
                return Ok(None);
            }
        }
        if direction == Direction::Put {
            self.require_writable()?;
        }
        state.require_data()?;
        let var = select::transfer_var(header, id)?;
        let mem = check_mix(var.ty, mem, || shown(&var.name))?;
        let slab = &select::check_rank(var, &slab)?;
        select::check_last_or_vara(var, slab, direction, n_records)?;
        Ok(Some((var, mem)))
    }

    /// Adds records up to `to` around the `write` of a put that needs them.
    ///
    /// They exist once they are filled and written: a put that fails adds none, and no reader
    /// meets a record whose values are still to come.
    fn grow(
        &self,
        header: &Header,
        id: VarId,
        slab: &Hyperslab<'_>,
        to: u64,
        write: impl FnOnce() -> Result<Converted, ClassicError>,
    ) -> Result<Converted, ClassicError> {
        let growing = self.growth.lock();
        let from = self.n_records.load(Ordering::Acquire);
        if to <= from {
            drop(growing);
            return write();
        }
        self.commit_records(header, from)?;
        let covered = covered(header, id, slab);
        fill::records(&*self.storage, header, 0, from, to, covered)?;
        let converted = write()?;
        self.n_records_dirty.store(true, Ordering::Release);
        self.n_records.store(to, Ordering::Release);
        Ok(converted)
    }

    /// For `NC_SHARE`: writes the record count where the file has an older one. After an error the flag stays set, so that the
    /// next put tries again.
    fn publish_n_records(&self, version: Version) -> Result<(), ClassicError> {
        if !self.n_records_dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        // This count must not overwrite a larger one of another thread.
        let _growing = self.growth.lock();
        self.write_n_records(version, self.n_records.load(Ordering::Acquire))
    }

    /// The number of records; a reader with `NC_SHARE` that wants more looks whether there are more.
    fn records_for_get(
        &self,
        header: &Header,
        id: VarId,
        slab: &Hyperslab<'_>,
    ) -> Result<u64, ClassicError> {
        let n_records = self.n_records.load(Ordering::Acquire);
        if !self.share || self.writable || !header.var(id).is_ok_and(Var::is_record) {
            return Ok(n_records);
        }
        if slab.start.is_empty() || slab.count.is_empty() {
            return Ok(n_records);
        }
        // Strides are checked later, records that do not exist before.
        let (along, has_stride) = (slab.axis(0), slab.stride_of(0) > 0);
        let last = if has_stride { along.last() } else { None }.unwrap_or(along.start);
        if last < n_records { Ok(n_records) } else { self.refresh_n_records(header) }
    }
}

/// How many records there must be for a put; 0 for a variable of fixed size.
fn records_needed(var: &Var, slab: &Hyperslab<'_>) -> u64 {
    if !var.is_record() {
        return 0;
    }
    // Even a put of no elements at record n makes records 0 to n-1 exist, as in the reference.
    slab.axis(0).end()
}

/// The records that a put writes completely.
fn covered(header: &Header, id: VarId, slab: &Hyperslab<'_>) -> Option<Covered> {
    let var = header.var(id).ok()?;
    let whole = slab.stride_of(0) == 1
        && var.shape.iter().zip(slab.count).skip(1).all(|(&len, &count)| count as u64 == len);
    let index = usize::try_from(id.0).ok().filter(|_| whole)?;
    Some(Covered { var: index, from: *slab.start.first()? as u64 })
}

/// For memory of the right length: the place of the elements that a check found in the file's own type, and the bytes of one.
#[inline(always)]
pub(crate) fn natural(of: &Transfer<Access<'_>>, len: usize) -> Option<(u64, usize)> {
    let [kind, at] = of.found;
    let size = usize::try_from(kind ^ NATURAL).ok()?;
    (kind & NATURAL != 0 && len == of.n_bytes).then_some((at, size))
}

fn planned(
    by: &mut Transfer<Access<'_>>,
    var: &Var,
    n_elems: usize,
    mem: MemType,
) -> Result<(), ClassicError> {
    let n_bytes = n_elems.checked_mul(mem.size()).filter(|&n| isize::try_from(n).is_ok());
    let n_bytes = n_bytes.ok_or_else(|| too_large(var))?;
    by.note(n_bytes, n_elems, Some(mem), [PLANNED, 0]);
    Ok(())
}
