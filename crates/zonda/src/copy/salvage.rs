//! Copies of damaged files: what can be read is copied, what cannot is listed as lost.

use zonda_classic::SkippedPart;
use zonda_format::GroupId;
use zonda_model::{Answer, ExtType, NcError, default_fill, memory};
use zonda_nc4::UnwrittenElements;

use super::box_read::to_len;
use super::boxes::{BoxWalk, BoxedArray, choose};
use super::data::{DataCopy, bytes_of};
use super::define::TargetVar;
use super::tree::{VarDef, shown};
use super::vlen_buffer::VlenBuffer;
use crate::error::{Error, Result};
use crate::nc4::filter_is_available;
use crate::tuning::SALVAGE_FAILED_READS;

/// Most losses of one variable that are listed one by one.
const MOST_LISTED: usize = 100;

/// Whether a read failed on damage of the source. Errors of the copy itself stay errors.
fn is_lost(read: Result<()>) -> Result<bool> {
    match read {
        Err(error) if is_ours(&error) => Err(error),
        read => Ok(read.is_err()),
    }
}

/// How the elements of a variable are stored in the source, to read them in parts.
struct ChunkParts<'a> {
    /// Chunks have filters, so that a chunk can be read only as a whole.
    is_filtered: bool,
    /// Shape of a chunk; `None` for elements in one run.
    chunk: Option<&'a [u64]>,
}

/// First elements, and numbers of elements.
type BoxOf = (Vec<u64>, Vec<u64>);

impl ChunkParts<'_> {
    /// Whether all elements of a box are in one chunk, or in the one run of a contiguous variable.
    fn is_in_one_chunk(&self, start: &[u64], count: &[u64]) -> bool {
        let Some(chunk) = self.chunk else { return true };
        let axes = start.iter().zip(count).zip(chunk);
        axes.into_iter().all(|((&start, &count), &n)| {
            let n = n.max(1);
            start / n == start.saturating_add(count).saturating_sub(1) / n
        })
    }

    /// The two halves of a box, cut between chunks where it has several.
    fn halves(&self, start: &[u64], count: &[u64]) -> Option<[BoxOf; 2]> {
        let chunk =
            |d: usize| self.chunk.and_then(|chunk| chunk.get(d).copied()).unwrap_or(1).max(1);
        let last = |d: usize| start[d].saturating_add(count[d]).saturating_sub(1);
        let several = (0..count.len()).find(|&d| start[d] / chunk(d) != last(d) / chunk(d));
        let d = several.or_else(|| (0..count.len()).find(|&d| count[d] > 1))?;
        let middle = start[d] + count[d] / 2;
        let cut = match several {
            // The boundary of a chunk after the first element and not after the last.
            Some(d) => (middle / chunk(d) * chunk(d)).max((start[d] / chunk(d) + 1) * chunk(d)),
            None => middle,
        };
        let (mut first, mut second) = (count.to_vec(), count.to_vec());
        let mut behind = start.to_vec();
        (first[d], second[d], behind[d]) = (cut - start[d], start[d] + count[d] - cut, cut);
        Some([(start.to_vec(), first), (behind, second)])
    }
}

/// Something that a copy of a damaged file lacks.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Path of the variable or the group; of an attribute that of its owner, `@` and its name.
    pub path: String,
    /// First element and number of elements along each dimension, where it is a part of the values of
    /// a variable. These are fill values in the copy.
    pub part: Option<(Vec<u64>, Vec<u64>)>,
    /// Why it cannot be read.
    pub why: String,
    /// The kind of the error: damage, a missing filter, ...
    pub answer: Answer,
}

impl Loss {
    /// The loss of an object as a whole.
    pub(super) fn whole(path: &[u8], error: &Error) -> Loss {
        Loss { path: shown(path), part: None, why: why(error), answer: error.answer() }
    }
}

/// The cause without the path of the object, which [`Loss::path`] has.
fn why(error: &Error) -> String {
    let cause = error.cause();
    match cause.split_once(": ") {
        Some((path, why)) if path.starts_with('/') => why.to_owned(),
        _ => cause,
    }
}

/// Whether an error is about the target or ends the copy, and is not about damage of the source.
pub(super) fn is_ours(error: &Error) -> bool {
    // Damage and missing filters have codes of their own; errors of the operating system have its codes.
    const OF_DAMAGE: [NcError; 9] = [
        NcError::Trunc,
        NcError::HdfErr,
        NcError::Filter,
        NcError::NoFilter,
        NcError::NotBuilt,
        NcError::AttMeta,
        NcError::DimMeta,
        NcError::VarMeta,
        NcError::BadType,
    ];
    const EIO: i32 = 5;
    let of_source =
        [Answer::Refused, Answer::Damaged, Answer::Undecodable, Answer::Unrepresentable];
    if of_source.contains(&error.answer()) {
        return false;
    }
    !OF_DAMAGE.contains(&error.code()) && error.code() != NcError::System(EIO)
}

impl DataCopy<'_> {
    /// Whether all filters of a variable are available, so that its chunks can be decoded.
    pub(super) fn is_decodable(&self, made: &TargetVar<'_>) -> bool {
        let info = made.var.info.as_deref();
        info.is_none_or(|info| info.filters.iter().all(|filter| filter_is_available(filter.id)))
    }

    /// Whether a box is in the file as a whole. What a truncated classic file lacks reads as zeros, which nobody
    /// wrote.
    ///
    /// # Errors
    /// `NC_ETRUNC` where it is not.
    pub(super) fn check_end(
        &self,
        made: &TargetVar<'_>,
        start: &[u64],
        count: &[u64],
    ) -> Result<()> {
        let var = made.var;
        let places = self.source.meta(|meta| {
            let classic = meta.var(var.source.var).ok().and_then(|view| view.classic);
            classic.zip(meta.layout())
        });
        let Some((classic, layout)) = places.filter(|_| !self.source.is_hdf5()) else {
            return Ok(());
        };
        let is_cut = |passed: &SkippedPart| matches!(passed, SkippedPart::Header(_));
        if classic.is_record && self.source.passed.iter().any(is_cut) {
            let text = "the length of a record is not known: the list of variables is damaged";
            return Err(Error::with_text(NcError::Trunc, text));
        }
        let last = |d: usize| start[d].saturating_add(count[d]).saturating_sub(1);
        let (first_inner, begin) = match classic.is_record {
            true => (1, classic.begin.saturating_add(last(0).saturating_mul(layout.record_len))),
            false => (0, classic.begin),
        };
        let index = (first_inner..start.len())
            .fold(0u64, |index, d| index.saturating_mul(var.axes[d].len).saturating_add(last(d)));
        let end = index.saturating_add(1).saturating_mul(var.elem as u64).saturating_add(begin);
        let len = self.source.bytes()?.len()?;
        if end <= len {
            return Ok(());
        }
        let text = format!("data go to byte {end}, and the file ends at {len}");
        Err(Error::with_text(NcError::Trunc, text))
    }

    /// Copies a box in smaller ones, since it cannot be read as a whole: each element that can be read
    /// by itself, of chunks with filters each chunk. What cannot be read becomes fill values.
    ///
    /// # Errors
    /// What writing meets.
    pub(super) fn piecemeal(
        &mut self,
        made: &TargetVar<'_>,
        (start, count): (&[u64], &[u64]),
        error: &Error,
    ) -> Result<()> {
        let chunks = self.source.chunk_shape(made.var.source).ok().flatten();
        let info = made.var.info.as_deref();
        let parts = ChunkParts {
            is_filtered: info.is_some_and(|info| !info.filters.is_empty()),
            chunk: chunks.as_deref(),
        };
        self.tries = 0;
        self.part(made, &parts, (start, count), error)
    }

    /// Copies what can be read of a box that cannot be read as a whole.
    fn part(
        &mut self,
        made: &TargetVar<'_>,
        parts: &ChunkParts<'_>,
        (start, count): (&[u64], &[u64]),
        error: &Error,
    ) -> Result<()> {
        self.tries += 1;
        let is_linear = !made.var.has_pointers && parts.is_in_one_chunk(start, count);
        let is_one = count.iter().all(|&n| n == 1);
        let ends =
            is_one || self.tries > SALVAGE_FAILED_READS || (is_linear && parts.is_filtered) || {
                // Elements are side by side: where the first cannot be read, none can.
                let one = vec![1; count.len()];
                is_linear && is_lost(self.read(made, start, &one))?
            };
        let halves = if ends { None } else { parts.halves(start, count) };
        let Some(halves) = halves else {
            self.lose(made, Some((start.to_vec(), count.to_vec())), error);
            if self.needs_fill(made)? {
                self.fill_data(made, bytes_of(made, count))?;
                self.write(made, start, count)?;
            }
            return Ok(());
        };
        for (start, count) in halves {
            match self.read(made, &start, &count) {
                Ok(()) => self.write(made, &start, &count)?,
                Err(error) if is_ours(&error) => return Err(error),
                Err(error) => self.part(made, parts, (&start, &count), &error)?,
            }
        }
        Ok(())
    }

    /// Whether elements that are not written to the target read as something else than its fill value.
    fn needs_fill(&self, made: &TargetVar<'_>) -> Result<bool> {
        if !self.target.is_hdf5() || made.var.has_pointers {
            return Ok(true);
        }
        let (group, var) = (made.target.group, made.target.var);
        let never = self.target.hdf5(|file| Ok(file.never_written(group, var)?))?;
        Ok(never != UnwrittenElements::Value)
    }

    /// Gives a variable fill values, since nothing of it can be read.
    ///
    /// # Errors
    /// What writing meets.
    pub(super) fn fill_all(&mut self, made: &TargetVar<'_>, error: &Error) -> Result<()> {
        self.lose(made, None, error);
        let lens = made.var.lens();
        if lens.contains(&0) || !self.needs_fill(made)? {
            return Ok(());
        }
        let to = self.target.chunk_shape(made.target)?;
        let elem = made.var.elem as u64;
        let array =
            BoxedArray { lens: &lens, from: None, plain_run: None, to: to.as_deref(), elem };
        let shape = choose(&array, self.most(), self.most()).shape;
        for (start, count) in BoxWalk::new(&lens, &shape) {
            self.fill_data(made, bytes_of(made, &count))?;
            self.write(made, &start, &count)?;
            self.step(made, bytes_of(made, &count))?;
        }
        Ok(())
    }

    /// Puts fill values into the memory of a box; strings and sequences are empty.
    fn fill_data(&mut self, made: &TargetVar<'_>, bytes: u64) -> Result<()> {
        self.pieces.clear();
        self.data.clear();
        memory::lengthen(&mut self.data, to_len(bytes)?, 0)?;
        if made.var.has_pointers {
            return Ok(());
        }
        let value = self.fill_of(made)?;
        if value.len() == made.var.elem {
            self.data.chunks_exact_mut(value.len()).for_each(|elem| elem.copy_from_slice(&value));
        }
        Ok(())
    }

    /// The fill value of a variable in memory; the default of its type where the source cannot be asked.
    fn fill_of(&self, made: &TargetVar<'_>) -> Result<Vec<u8>> {
        let var: &VarDef = made.var;
        let mut value = memory::filled(var.elem, 0)?;
        if self.target.is_hdf5() {
            let of_target =
                self.target.fill_value(made.target, &mut VlenBuffer::default(), &mut value);
            if of_target.is_ok() {
                return Ok(value);
            }
        }
        let of_att = |_: &GroupId| {
            let att = var.atts.iter().find(|att| *att.name == *b"_FillValue")?;
            let (bytes, _) = super::atts::values(self.source, var.source, att).ok()?;
            (att.nc_type == var.nc_type).then_some(bytes)
        };
        let default = || {
            ExtType::from_nc_type(var.nc_type).map(|ext| default_fill(ext)[..ext.size()].to_vec())
        };
        Ok(of_att(&var.source.group).or_else(default).unwrap_or(value))
    }

    fn lose(&mut self, made: &TargetVar<'_>, part: Option<(Vec<u64>, Vec<u64>)>, error: &Error) {
        let path = shown(&made.var.path);
        let n_listed = self.lost.iter().filter(|lost| lost.path == path).count();
        self.n_lost += 1;
        let lens = part.as_ref().map_or_else(|| made.var.lens(), |(_, count)| count.clone());
        let n_elems = lens.iter().fold(1u64, |n, &len| n.saturating_mul(len));
        let elems = self.lost_elems.entry(path.clone()).or_default();
        *elems = elems.saturating_add(n_elems);
        if n_listed < MOST_LISTED {
            let answer = error.answer();
            self.lost.push(Loss { path, part, why: why(error), answer });
        }
    }
}
