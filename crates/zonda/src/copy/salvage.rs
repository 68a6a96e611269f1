//! Copies of damaged files: what reads is copied, what does not is told of.

use zonda_model::{ExtType, NcError, default_fill};
use zonda_nc4::GroupId;

use super::boxes::{Array, Walk, choose};
use super::data::{Transfer, bytes_of, chunks_of, to_len};
use super::define::Made;
use super::pieces::Pieces;
use super::tree::{VarDef, shown};
use crate::error::{Error, Result};
use crate::nc4::filter_is_available;

/// Losses of one variable that are told of one by one.
const MOST_TOLD: usize = 100;

/// Something that a copy of a damaged file lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Path of the variable or the group; of an attribute that of its owner, `@` and its name.
    pub path: String,
    /// First element and number of elements along each dimension, where it is a part of the values of
    /// a variable. These are fill values in the copy.
    pub part: Option<(Vec<u64>, Vec<u64>)>,
    /// Why it cannot be read.
    pub why: String,
}

impl Lost {
    /// What is lost as a whole.
    pub(super) fn whole(path: &[u8], error: &Error) -> Lost {
        Lost { path: shown(path), part: None, why: why(error) }
    }
}

/// The cause without the path of the object, which is said anyway.
fn why(error: &Error) -> String {
    let cause = error.cause();
    match cause.split_once(": ") {
        Some((path, why)) if path.starts_with('/') => why.to_owned(),
        _ => cause,
    }
}

/// Whether an error is about the target, or the end of the copy, and not about what is read.
pub(super) fn is_ours(error: &Error) -> bool {
    // Damage and missing filters have codes of their own; what the operating system reports has its.
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
    if error.is_refused() {
        return false;
    }
    !OF_DAMAGE.contains(&error.code()) && error.code() != NcError::System(EIO)
}

impl Transfer<'_> {
    /// Whether the filters of a variable are all there, so that its chunks can be looked into.
    pub(super) fn is_decodable(&self, made: &Made<'_>) -> bool {
        let info = made.var.info.as_deref();
        info.is_none_or(|info| info.filters.iter().all(|filter| filter_is_available(filter.id)))
    }

    /// Whether a box is in the file as a whole: what a classic file lacks at its end reads as zeros,
    /// which nobody wrote.
    ///
    /// # Errors
    /// `NC_ETRUNC` where it is not.
    pub(super) fn check_end(&self, made: &Made<'_>, start: &[u64], count: &[u64]) -> Result<()> {
        let var = made.var;
        let places = self.source.meta(|meta| {
            let classic = meta.var(var.source.var).ok().and_then(|view| view.classic);
            classic.zip(meta.layout())
        });
        let Some((classic, layout)) = places.filter(|_| !self.source.is_hdf5()) else {
            return Ok(());
        };
        let last = |d: usize| start[d].saturating_add(count[d]).saturating_sub(1);
        let (first_inner, begin) = match classic.is_record {
            true => (1, classic.begin.saturating_add(last(0).saturating_mul(layout.record_len))),
            false => (0, classic.begin),
        };
        let index = (first_inner..start.len())
            .fold(0u64, |index, d| index.saturating_mul(var.axes[d].len).saturating_add(last(d)));
        let end = index.saturating_add(1).saturating_mul(var.elem as u64).saturating_add(begin);
        let len = self.source.storage().len()?;
        if end <= len {
            return Ok(());
        }
        let text = format!("data go to byte {end}, and the file ends at {len}");
        Err(Error::told(NcError::Trunc, text))
    }

    /// Copies a box in smaller ones, since it cannot be read as a whole: chunks of the source, or what
    /// has one index of the first dimension. What cannot be read becomes fill values.
    ///
    /// # Errors
    /// What writing meets.
    pub(super) fn piecemeal(
        &mut self,
        made: &Made<'_>,
        (start, count): (&[u64], &[u64]),
        error: &Error,
    ) -> Result<()> {
        let chunks = chunks_of(self.source, made, true).ok().flatten();
        let shape: Vec<u64> = match chunks {
            Some(chunks) => chunks,
            None => (0..count.len()).map(|d| if d == 0 { 1 } else { count[d] }).collect(),
        };
        let mut n_lost = 0;
        for (inner, part) in Walk::new(count, &shape) {
            let at: Vec<u64> = start.iter().zip(&inner).map(|(a, b)| a + b).collect();
            match self.read(made, &at, &part) {
                Ok(()) => {}
                Err(error) if is_ours(&error) => return Err(error),
                Err(error) => {
                    n_lost += 1;
                    self.lose(made, Some((at.clone(), part.clone())), &error);
                    self.fill_data(made, bytes_of(made, &part))?;
                }
            }
            self.write(made, &at, &part)?;
        }
        if n_lost == 0 && count.is_empty() {
            // A scalar is its only part.
            self.lose(made, None, error);
        }
        Ok(())
    }

    /// Gives a variable fill values, since nothing of it can be read.
    ///
    /// # Errors
    /// What writing meets.
    pub(super) fn fill_all(&mut self, made: &Made<'_>, error: &Error) -> Result<()> {
        self.lose(made, None, error);
        let lens = made.var.lens();
        if lens.contains(&0) {
            return Ok(());
        }
        let to = chunks_of(self.target, made, false)?;
        let elem = made.var.elem as u64;
        let array = Array { lens: &lens, from: None, is_plain: false, to: to.as_deref(), elem };
        let shape = choose(&array, self.most(), self.most()).shape;
        for (start, count) in Walk::new(&lens, &shape) {
            self.fill_data(made, bytes_of(made, &count))?;
            self.write(made, &start, &count)?;
            self.step(made, bytes_of(made, &count))?;
        }
        Ok(())
    }

    /// Puts fill values into the memory of a box; strings and sequences are empty.
    fn fill_data(&mut self, made: &Made<'_>, bytes: u64) -> Result<()> {
        self.pieces.clear();
        self.data.clear();
        self.data.resize(to_len(bytes)?, 0);
        if made.var.has_pointers {
            return Ok(());
        }
        let value = self.fill_of(made);
        if value.len() == made.var.elem {
            self.data.chunks_exact_mut(value.len()).for_each(|elem| elem.copy_from_slice(&value));
        }
        Ok(())
    }

    /// The fill value of a variable in memory; that of its type where the source does not tell.
    fn fill_of(&self, made: &Made<'_>) -> Vec<u8> {
        let var: &VarDef = made.var;
        let mut value = vec![0; var.elem];
        if self.target.is_hdf5() {
            let of_target = self.target.fill_value(made.target, &mut Pieces::default(), &mut value);
            if of_target.is_ok() {
                return value;
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
        of_att(&var.source.group).or_else(default).unwrap_or(value)
    }

    fn lose(&mut self, made: &Made<'_>, part: Option<(Vec<u64>, Vec<u64>)>, error: &Error) {
        let path = shown(&made.var.path);
        let told = self.lost.iter().filter(|lost| lost.path == path).count();
        self.n_lost += 1;
        if told < MOST_TOLD {
            self.lost.push(Lost { path, part, why: why(error) });
        }
    }
}
