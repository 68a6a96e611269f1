//! What a put has to fit to be accepted. All else goes the ordinary way, where the format says what
//! is wrong.

use zonda_classic::{Header, Version};
use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType, VarId};
use zonda_nc4::PutRules;
use zonda_slab::is_stride;

/// What puts to one variable have to fit.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) nc_type: i32,
    /// Of numbers and text.
    ext: Option<ExtType>,
    /// Bytes of an element in memory, as it is in the variable's own type.
    elem: usize,
    of: Of,
}

#[derive(Debug)]
enum Of {
    Classic { fixed: Box<[Option<u64>]>, rule: RangeRule },
    Nc4(PutRules),
}

/// A put that fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit<'s> {
    /// The hyperslab, with no more than the variable's rank.
    pub(crate) slab: Hyperslab<'s>,
    /// Bytes of the caller's memory.
    pub(crate) given_bytes: usize,
    /// Bytes of the values in the queue.
    pub(super) kept_bytes: usize,
    /// The type of the caller's memory, if it is said.
    pub(super) given: Option<MemType>,
    /// The type that they have there.
    pub(super) mem: Option<MemType>,
    /// What makes it of the caller's; `None` for a copy.
    pub(super) encoder: Option<Encoder>,
}

/// Records are not accepted beyond; the format knows whether there may be more.
const MOST_RECORDS: u64 = 1 << 30;

impl Rules {
    pub(super) fn classic(header: &Header, id: VarId) -> Option<Rules> {
        let var = header.var(id).ok()?;
        let is_record = var.is_record();
        let fixed = var.shape.iter().enumerate();
        let fixed = fixed.map(|(axis, &len)| (axis > 0 || !is_record).then_some(len)).collect();
        let rule = match header.version {
            Version::Cdf5 => RangeRule::Strict,
            _ => RangeRule::ByteIsUnsigned,
        };
        let of = Of::Classic { fixed, rule };
        Some(Rules { nc_type: var.ty.nc_type(), ext: Some(var.ty), elem: var.ty.size(), of })
    }

    /// `elem` is the size of an element in memory; strings have 8.
    pub(super) fn nc4(rules: PutRules, elem: usize) -> Rules {
        let ext = ExtType::from_nc_type(rules.nc_type);
        Rules { nc_type: rules.nc_type, ext, elem, of: Of::Nc4(rules) }
    }

    pub(super) fn rank(&self) -> usize {
        self.fixed().len()
    }

    fn fixed(&self) -> &[Option<u64>] {
        match &self.of {
            Of::Classic { fixed, .. } => fixed,
            Of::Nc4(rules) => &rules.fixed,
        }
    }

    /// Whether a dimension can grow.
    pub(super) fn can_grow(&self) -> bool {
        self.fixed().contains(&None)
    }

    /// Whether elements are numbers or text.
    pub(super) fn is_atomic(&self) -> bool {
        self.ext.is_some()
    }

    /// Whether the put may be accepted as it is, and how.
    pub(super) fn fit<'s>(&self, slab: &Hyperslab<'s>, mem: Option<MemType>) -> Option<Fit<'s>> {
        let slab = match &self.of {
            Of::Classic { fixed, .. } => classic_slab(fixed, slab)?,
            Of::Nc4(rules) => rules.check(slab).ok()?,
        };
        let n_elems = slab.n_elems()?;
        let (given_elem, kept, encoder) = match (mem, self.ext) {
            (None, _) => (self.elem, None, None),
            (Some(mem), Some(ext)) => {
                if (mem == MemType::Text) != (ext == ExtType::Char) {
                    return None;
                }
                let natural = ext.natural_mem();
                let encoder = if mem == natural { None } else { Some(self.encoder(ext, mem)?) };
                (mem.size(), Some(natural), encoder)
            }
            (Some(_), None) => return None,
        };
        Some(Fit {
            slab,
            given_bytes: n_elems.checked_mul(given_elem)?,
            kept_bytes: n_elems.checked_mul(self.elem)?,
            given: mem,
            mem: kept,
            encoder,
        })
    }

    /// What converts the caller's values to those of the variable's type in memory, after which
    /// storing them is without loss; `None` where it is not the same as converting while storing.
    fn encoder(&self, ext: ExtType, mem: MemType) -> Option<Encoder> {
        let rule = match &self.of {
            Of::Classic { rule, .. } => *rule,
            Of::Nc4(rules) if rules.is_quantized => return None,
            Of::Nc4(_) => PutRules::RANGE_RULE,
        };
        let encoder = Encoder::new(ext, ByteOrder::NATIVE, mem, rule).ok()?;
        (!encoder.keeps_unfit()).then_some(encoder)
    }

    /// What the caller is told of values that did not fit.
    pub(super) fn told(&self, mem: Option<MemType>, converted: Converted) -> Converted {
        match (&self.of, mem) {
            (Of::Nc4(rules), Some(mem)) => rules.tolerated(mem, converted),
            _ => converted,
        }
    }

    /// What a netCDF-4 file says.
    pub(super) fn as_nc4(&self) -> Option<&PutRules> {
        match &self.of {
            Of::Nc4(rules) => Some(rules),
            Of::Classic { .. } => None,
        }
    }

    /// How long the dimensions that can grow have to be for a get; for an empty one, too, which is
    /// checked along each axis.
    pub(super) fn reach(&self, slab: &Hyperslab<'_>) -> u64 {
        let growing = self.fixed().iter().enumerate().filter(|(_, len)| len.is_none());
        growing.map(|(axis, _)| slab.axis(axis).end()).max().unwrap_or(0)
    }

    /// How many records there are after the put, of a classic record variable.
    pub(super) fn records(&self, slab: &Hyperslab<'_>) -> u64 {
        match &self.of {
            Of::Classic { fixed, .. } if fixed.first() == Some(&None) && !slab.is_empty() => {
                slab.axis(0).end()
            }
            _ => 0,
        }
    }
}

/// Takes what all checks of the classic formats pass, and not quite all that they pass.
fn classic_slab<'s>(fixed: &[Option<u64>], slab: &Hyperslab<'s>) -> Option<Hyperslab<'s>> {
    let slab = slab.ranked(fixed.len())?;
    // Empty ones are checked by rules of their own.
    if !slab.strides_are(is_stride) || slab.is_empty() {
        return None;
    }
    let fits = |(at, len): (usize, &Option<u64>)| {
        let (axis, len) = (slab.axis(at), len.unwrap_or(MOST_RECORDS));
        axis.last_within(len).is_ok() && axis.count_within(len).is_ok()
    };
    fixed.iter().enumerate().all(fits).then_some(slab)
}
