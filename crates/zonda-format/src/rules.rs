//! Rules for puts that are made in advance, so that a put can be accepted now and carried out later.

use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType};
use zonda_slab::is_stride;

use crate::transfer::{Access, Transfer};

/// What puts to one variable have to fit, made by its format. A put that does not fit goes the ordinary way, where
/// the format checks it. So the rules may refuse what the format accepts, but never accept what it refuses.
#[derive(Clone, Debug)]
pub struct PutRules {
    /// Number of the variable's type.
    pub nc_type: i32,
    /// Bytes of an element in memory, in the variable's own type.
    pub elem: usize,
    /// The length of each dimension that cannot grow; `None` for those that can.
    pub fixed: Box<[Option<u64>]>,
    /// Longest length of dimensions that can grow.
    pub most: u64,
    /// Empty selections fit, too, wherever they begin.
    pub takes_empty: bool,
    /// Rule for numbers of another memory type that do not fit; `None` where values must not be converted when the
    /// put is accepted.
    pub range_rule: Option<RangeRule>,
    /// Bytes whose sign changes are not counted as out of range.
    pub tolerates_bytes: bool,
}

/// A put that fits.
#[derive(Clone, Copy, Debug)]
pub struct FittingPut<'s> {
    /// The hyperslab, with no more than the variable's rank.
    pub slab: Hyperslab<'s>,
    /// Bytes of the values in the variable's own type.
    pub kept_bytes: usize,
    /// The type of the caller's memory; `None` for the variable's own.
    pub given: Option<MemType>,
    /// The type of the values that are kept.
    pub mem: Option<MemType>,
    /// Converts the caller's values to it; `None` where they are copied.
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

    /// Whether a put certainly fits; then it notes in the put how long memory has to be.
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

    /// How to keep a put that fits by [`PutRules::check`].
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

    /// The selection without entries beyond the rank; `None` where not all of it may be put.
    #[inline]
    fn slab<'s>(&self, slab: &Hyperslab<'s>) -> Option<Hyperslab<'s>> {
        let slab = slab.ranked(self.fixed.len())?;
        if !slab.strides_are(is_stride) || (!self.takes_empty && slab.is_empty()) {
            return None;
        }
        let fits = |(at, len): (usize, &Option<u64>)| {
            let (axis, len) = (slab.axis(at), len.unwrap_or(self.most));
            axis.start_and_first_within(len).is_ok() && axis.last_within(len).is_ok()
        };
        self.fixed.iter().enumerate().all(fits).then_some(slab)
    }

    /// Converts the caller's values to the variable's type in memory, so that storing them loses nothing; `None`
    /// where that differs from converting while storing.
    fn encoder(&self, ext: ExtType, mem: MemType) -> Option<Encoder> {
        let encoder = Encoder::new(ext, ByteOrder::NATIVE, mem, self.range_rule?).ok()?;
        (!encoder.keeps_unfit()).then_some(encoder)
    }

    /// The count of values that did not fit as the caller gets it, for values of type `mem`.
    #[inline]
    pub fn reported(&self, mem: Option<MemType>, converted: Converted) -> Converted {
        let is_byte = matches!(self.ext(), Some(ExtType::Byte | ExtType::UByte));
        let to_byte = matches!(mem, Some(MemType::I8 | MemType::U8));
        if self.tolerates_bytes && is_byte && to_byte { Converted::default() } else { converted }
    }

    /// Length that the dimensions that can grow need for a get. Also computed for an empty one, which is checked
    /// along each axis.
    #[must_use]
    pub fn reach(&self, slab: &Hyperslab<'_>) -> u64 {
        let growing = self.fixed.iter().enumerate().filter(|(_, len)| len.is_none());
        growing.map(|(axis, _)| slab.axis(axis).end()).max().unwrap_or(0)
    }
}
