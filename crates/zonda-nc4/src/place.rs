//! Values that own memory: strings and variable-length sequences, on their way to the caller.

use zonda_model::MemType;

/// Where values of variable length go. C wants addresses of memory from `malloc`; Rust wants
/// something safe. What `place` returns is stored, in native byte order, in the element: 8 bytes for
/// a string, length (8 bytes) and this for a sequence.
pub trait Place {
    /// Takes the bytes of one string (without NUL) or of all items of one sequence (in memory form,
    /// themselves already placed); `None` where there is no memory.
    ///
    /// An empty sequence has address 0 and is not placed. A string that was never written is a null
    /// pointer, 0; an empty one is placed.
    fn place(&mut self, bytes: &[u8], text: bool) -> Option<u64>;
}

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
