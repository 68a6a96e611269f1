//! Where values go that are read: numbers of a type of memory, or values with strings and sequences.

pub(crate) use zonda_format::VlenSink;
use zonda_format::VlenSource;
use zonda_model::{MemType, NcError};

use crate::Nc4Error;

/// What values become in the caller's memory.
pub(crate) enum ValueTarget<'a> {
    /// Numbers or text of this type.
    Atomic(MemType),
    /// The variable's or attribute's own type in memory form: C layout with native byte order,
    /// strings and sequences placed by `VlenSink`. Atomic types are in their natural form.
    Natural(&'a mut dyn VlenSink),
}

impl<'a> ValueTarget<'a> {
    /// The target of a call. If it gives no place for strings and sequences, these go to `none`, which refuses them.
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

/// Sink and source of calls that take values without strings and sequences only: it notes if it is asked for
/// some.
#[derive(Debug, Default)]
pub(crate) struct NoVlens {
    pub(crate) is_asked: bool,
}

impl NoVlens {
    /// The error about values with strings or sequences.
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
