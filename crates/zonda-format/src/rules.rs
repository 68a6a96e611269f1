//! What a put certainly fits, said before: so that it can be accepted now and carried out later.

use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};
use zonda_slab::is_stride;

use crate::transfer::{Access, Transfer};

/// What puts to one variable have to fit, as its format says it. What does not fit is put the ordinary way, where the
/// format says what is wrong: so they may be narrower than what it takes, and never wider.
#[derive(Clone, Debug)]
pub struct PutRules {
    /// Number of the variable's type.
    pub nc_type: i32,
    /// Bytes of an element in memory, in the variable's own type.
    pub elem: usize,
    /// The length of each dimension that cannot grow.
    pub fixed: Box<[Option<u64>]>,
    /// How long others may become.
    pub most: u64,
    /// Selections of nothing fit, too: where they are, nothing else is asked of them.
    pub takes_empty: bool,
    /// How numbers of another type of memory that do not fit are converted; `None` where they may not be converted before.
    pub range_rule: Option<RangeRule>,
    /// Bytes that change their sign are not told of.
    pub tolerates_bytes: bool,
}

/// A put that fits.
#[derive(Clone, Copy, Debug)]
pub struct FittingPut<'s> {
    /// The hyperslab, with no more than the variable's rank.
    pub slab: Hyperslab<'s>,
    /// Bytes of the values in the variable's own type.
    pub kept_bytes: usize,
    /// The type of the caller's memory, if it is said.
    pub given: Option<MemType>,
    /// The type that they have when they are kept.
    pub mem: Option<MemType>,
    /// What makes it of the caller's; `None` for a copy.
    pub encoder: Option<Encoder>,
}

impl PutRules {
    /// The type, where elements are numbers or text.
    #[inline]
    fn ext(&self) -> Option<ExtType> {
        ExtType::from_nc_type(self.nc_type)
    }

    /// Rank of the variable.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.fixed.len()
    }

    /// Whether a dimension can grow.
    #[inline]
    #[must_use]
    pub fn can_grow(&self) -> bool {
        self.fixed.contains(&None)
    }

    /// Whether elements are numbers or text.
    #[inline]
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.ext().is_some()
    }

    /// Whether a put certainly fits; then it says how long memory has to be for it.
    #[inline]
    #[must_use]
    pub fn check(&self, put: &mut Transfer<Access<'_>>) -> bool {
        self.find(put).is_some()
    }

    fn find(&self, put: &mut Transfer<Access<'_>>) -> Option<()> {
        let n_elems = self.slab(&put.of().slab)?.n_elems()?;
        let (given_elem, mem) = match (put.of().mem, self.ext()) {
            (None, _) => (self.elem, None),
            (Some(mem), Some(ext)) if (mem == MemType::Text) == (ext == ExtType::Char) => {
                let natural = ext.natural_mem();
                if mem != natural {
                    self.encoder(ext, mem)?;
                }
                (mem.size(), Some(natural))
            }
            (Some(_), _) => return None,
        };
        let kept = n_elems.checked_mul(self.elem).filter(|&kept| isize::try_from(kept).is_ok())?;
        let n_bytes = n_elems.checked_mul(given_elem).filter(|&n| isize::try_from(n).is_ok())?;
        put.note(n_bytes, n_elems, mem, [kept as u64, 0]);
        Some(())
    }

    /// How a put is kept that fits, as [`PutRules::check`] has said.
    #[inline]
    #[must_use]
    pub fn fit<'s>(&self, put: &Transfer<Access<'s>>) -> Option<FittingPut<'s>> {
        let access = put.of();
        let encoder = match (access.mem, self.ext()) {
            (Some(mem), Some(ext)) if mem != ext.natural_mem() => Some(self.encoder(ext, mem)?),
            _ => None,
        };
        Some(FittingPut {
            slab: access.slab.ranked(self.fixed.len())?,
            kept_bytes: usize::try_from(put.found[0]).ok()?,
            given: access.mem,
            mem: put.mem,
            encoder,
        })
    }

    /// The selection with no more than the rank, where all of it may be put.
    #[inline]
    fn slab<'s>(&self, slab: &Hyperslab<'s>) -> Option<Hyperslab<'s>> {
        let slab = slab.ranked(self.fixed.len())?;
        if !slab.strides_are(is_stride) || (!self.takes_empty && slab.is_empty()) {
            return None;
        }
        let fits = |(at, len): (usize, &Option<u64>)| {
            let (axis, len) = (slab.axis(at), len.unwrap_or(self.most));
            axis.begin_within(len).is_ok() && axis.last_within(len).is_ok()
        };
        self.fixed.iter().enumerate().all(fits).then_some(slab)
    }

    /// What converts the caller's values to those of the variable's type in memory, after which
    /// storing them is without loss; `None` where it is not the same as converting while storing.
    fn encoder(&self, ext: ExtType, mem: MemType) -> Option<Encoder> {
        let encoder = Encoder::new(ext, ByteOrder::NATIVE, mem, self.range_rule?).ok()?;
        (!encoder.keeps_unfit()).then_some(encoder)
    }

    /// What the caller is told of values of type `mem` that did not fit.
    #[inline]
    pub fn reported(&self, mem: Option<MemType>, converted: Converted) -> Converted {
        let is_byte = matches!(self.ext(), Some(ExtType::Byte | ExtType::UByte));
        let to_byte = matches!(mem, Some(MemType::I8 | MemType::U8));
        if self.tolerates_bytes && is_byte && to_byte { Converted::default() } else { converted }
    }

    /// How long the dimensions that can grow have to be for a get; for an empty one, too, which is
    /// checked along each axis.
    #[must_use]
    pub fn reach(&self, slab: &Hyperslab<'_>) -> u64 {
        let growing = self.fixed.iter().enumerate().filter(|(_, len)| len.is_none());
        growing.map(|(axis, _)| slab.axis(axis).end()).max().unwrap_or(0)
    }
}
