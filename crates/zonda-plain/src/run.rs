//! Transfers of a variable whose values are in one run.

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder};
use zonda_format::{Error, Result};
use zonda_model::{Answer, NcError, memory};
use zonda_slab::{Hyperslab, Rows};
use zonda_storage::{Storage, StorageError, WriteRange, fill_by_writes};

use crate::model::{Var, in_order};

/// Bytes that are converted at a time.
const BLOCK: usize = 256 << 10;
/// Fill values of so many bytes are written at once: they need not wait for what is put over them.
const LARGE: u64 = 256 << 10;

/// Where the values of a variable are: in row-major order, one record behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The bytes.
    pub storage: &'a dyn Storage,
    /// The first byte of the first element.
    pub begin: u64,
    /// The byte order of elements.
    pub order: ByteOrder,
}

fn beyond() -> Error {
    NcError::InvalidCoords.into()
}

impl Run<'_> {
    /// Fills records `from` to `to` of a variable, or all of it if it has no records.
    ///
    /// # Errors
    /// `NC_EVARSIZE` for more than can lie in a file; what the storage reports.
    pub fn extend(&self, var: &Var, from: u64, to: u64) -> Result<()> {
        let place = |records| var.bytes(records)?.checked_add(self.begin);
        let at = if var.is_record() { place(from) } else { Some(self.begin) };
        let (Some(at), Some(end)) = (at, place(to)) else { return Err(NcError::VarSize.into()) };
        let len = end.saturating_sub(at);
        if var.no_fill {
            if self.storage.len()? < end {
                self.storage.set_len(end)?;
            }
            return Ok(());
        }
        let element = in_order(var.fill_value()?, ByteOrder::Big, self.order);
        let fill = |storage: &dyn Storage| match len >= LARGE {
            true => fill_by_writes(storage, at, len, &element),
            false => storage.fill_at(at, len, &element),
        };
        Ok(fill(self.storage)?)
    }

    /// Calls `each` with the first byte of each row of a hyperslab, the number of its elements and their distance.
    fn rows(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        elem: usize,
        mut each: impl FnMut(u64, usize, u64) -> Result<()>,
    ) -> Result<()> {
        let rows = Rows::of(extent, slab, elem).ok_or_else(beyond)?;
        let n = usize::try_from(rows.n).map_err(|_| beyond())?;
        let row = |at: u64| each(at.checked_add(self.begin).ok_or_else(beyond)?, n, rows.step);
        rows.for_each(extent, slab, elem, row).ok_or_else(beyond)?
    }

    /// Reads a hyperslab into `out`, which has its length. The hyperslab is within a variable with these lengths.
    ///
    /// # Errors
    /// `NC_ETRUNC` where the run ends before; what the storage reports. Values that do not fit are counted.
    pub fn get(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        decoder: &Decoder,
        mut out: &mut [u8],
    ) -> Result<Converted> {
        let (elem, mut all, mut block) = (decoder.ext_size(), Converted::default(), Vec::new());
        self.rows(extent, slab, elem, |mut at, mut left, step| {
            let is_straight = step == elem as u64 && decoder.is_copy();
            let distance = usize::try_from(step).unwrap_or(usize::MAX);
            while left > 0 {
                // As many elements as a block has room for, at least one.
                let within = BLOCK.checked_div(distance).unwrap_or(0).max(1);
                let n = if is_straight { left } else { left.min(within) };
                let room = n.saturating_mul(decoder.mem_size());
                let (to, rest) =
                    std::mem::take(&mut out).split_at_mut_checked(room).ok_or(LENGTH)?;
                out = rest;
                if is_straight {
                    self.read(at, to)?;
                } else {
                    let before = n.saturating_sub(1).saturating_mul(distance);
                    memory::resize(&mut block, before.saturating_add(elem), 0)?;
                    self.read(at, &mut block)?;
                    all = all.and(decoder.decode_strided(&block, distance, to));
                }
                at = at.saturating_add(step.saturating_mul(n as u64));
                left = left.saturating_sub(n);
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let got = self.storage.read_at(at, to)?;
        if got == to.len() {
            return Ok(());
        }
        let end = at.saturating_add(got as u64);
        let text = format!("values at byte {end}: the file ends before they do");
        Err(Error::answered(NcError::Trunc, Answer::Damaged, text).about_byte(end))
    }

    /// Writes a hyperslab from `data`, which has its length. The hyperslab is within a variable with these lengths.
    ///
    /// # Errors
    /// What the storage reports. Values that do not fit are counted.
    pub fn put(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        encoder: &Encoder,
        mut data: &[u8],
    ) -> Result<Converted> {
        let (elem, mut all, mut block) = (encoder.ext_size(), Converted::default(), Vec::new());
        self.rows(extent, slab, elem, |mut at, mut left, step| {
            while left > 0 {
                let n = left.min(BLOCK.checked_div(elem).unwrap_or(1));
                let given = n.saturating_mul(encoder.mem_size());
                let (from, rest) = data.split_at_checked(given).ok_or(LENGTH)?;
                data = rest;
                memory::resize(&mut block, n.saturating_mul(elem), 0)?;
                all = all.and(encoder.encode(from, &mut block));
                self.write(at, step, elem, &block)?;
                at = at.saturating_add(step.saturating_mul(n as u64));
                left = left.saturating_sub(n);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Writes elements at a distance from each other, and nothing between them.
    fn write(&self, at: u64, step: u64, elem: usize, block: &[u8]) -> Result<()> {
        if step == elem as u64 {
            return Ok(self.storage.write_at(at, block)?);
        }
        let mut places = (0u64..).map(|n| at.saturating_add(step.saturating_mul(n)));
        let mut ranges = memory::room(block.len().checked_div(elem).unwrap_or(0))?;
        let one = |data| Some(WriteRange { at: places.next()?, data });
        ranges.extend(block.chunks_exact(elem).filter_map(one));
        Ok::<_, StorageError>(self.storage.write_ranges(&ranges)?).map_err(Error::from)
    }
}

/// The error for memory of another length than the selection, which the check gives.
const LENGTH: NcError = NcError::Inval;
