//! Values that own memory: strings and variable-length sequences, on their way to the caller.

pub(crate) use zonda_format::Place;
use zonda_model::MemType;

/// What the caller's memory holds.
pub enum Target<'a> {
    /// Numbers or text of this type.
    Atomic(MemType),
    /// The variable's or attribute's own type in memory form: C layout with native byte order,
    /// strings and sequences placed by `Place`. Atomic types are in their natural form.
    Natural(&'a mut dyn Place),
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Atomic(mem) => f.debug_tuple("Atomic").field(mem).finish(),
            Target::Natural(_) => f.write_str("Natural"),
        }
    }
}
