//! What the caller's memory holds on its way into the file: the mirror of [`crate::Target`].

use zonda_format::Fetch;
use zonda_model::MemType;

/// What the caller's memory holds.
pub enum Source<'a> {
    /// Numbers or text of this type.
    Atomic(MemType),
    /// The variable's or attribute's own type in memory form: C layout with native byte order,
    /// strings as addresses, sequences as length and address. Atomic types are in their natural
    /// form.
    Natural(&'a mut dyn Fetch),
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Atomic(mem) => f.debug_tuple("Atomic").field(mem).finish(),
            Source::Natural(_) => f.write_str("Natural"),
        }
    }
}
