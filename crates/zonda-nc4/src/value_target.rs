//! Values that own memory: strings and variable-length sequences, on their way to the caller.

pub(crate) use zonda_format::VlenSink;
use zonda_format::VlenSource;
use zonda_model::{MemType, NcError};

use crate::Nc4Error;

/// What the caller's memory holds.
pub(crate) enum ValueTarget<'a> {
    /// Numbers or text of this type.
    Atomic(MemType),
    /// The variable's or attribute's own type in memory form: C layout with native byte order,
    /// strings and sequences placed by `VlenSink`. Atomic types are in their natural form.
    Natural(&'a mut dyn VlenSink),
}

impl<'a> ValueTarget<'a> {
    /// The one that a call asks for; values that own memory go to `none` where it says no place.
    #[inline]
    pub(crate) fn of<'p>(
        mem: Option<MemType>,
        place: Option<&'a mut (dyn VlenSink + 'p)>,
        none: &'a mut NoVlens,
    ) -> ValueTarget<'a> {
        match (mem, place) {
            (Some(mem), _) => ValueTarget::Atomic(mem),
            (None, Some(place)) => ValueTarget::Natural(place),
            (None, None) => ValueTarget::Natural(none),
        }
    }
}

impl std::fmt::Debug for ValueTarget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueTarget::Atomic(mem) => f.debug_tuple("Atomic").field(mem).finish(),
            ValueTarget::Natural(_) => f.write_str("Natural"),
        }
    }
}

/// For values that own no memory: it sees whether they do.
#[derive(Debug, Default)]
pub(crate) struct NoVlens {
    pub(crate) is_asked: bool,
}

impl NoVlens {
    /// Why values were refused that own some.
    #[cold]
    pub(crate) fn refused(&self, object: String) -> Nc4Error {
        let why = "it has strings or sequences, and this call takes values of fixed size only";
        Nc4Error::Explained { object, why: why.to_owned(), code: NcError::BadType }
    }
}

impl VlenSink for NoVlens {
    fn place(&mut self, _: &[u8], _: bool) -> Option<u64> {
        self.is_asked = true;
        None
    }
}

impl VlenSource for NoVlens {
    fn text(&mut self, _: u64) -> Option<&[u8]> {
        self.is_asked = true;
        None
    }

    fn items(&mut self, _: u64, _: usize) -> &[u8] {
        self.is_asked = true;
        &[]
    }
}
