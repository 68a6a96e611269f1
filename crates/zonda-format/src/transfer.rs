//! Transfers in two steps: a check says how many bytes the caller's memory has to have, and the transfer moves them.
//! The caller holds the file over both, so nothing changes between them, and both get the same [`Transfer`].

use zonda_model::MemType;
use zonda_slab::Hyperslab;

use crate::refs::VarRef;

/// What is to be moved: a hyperslab of a variable, and the type that elements have in memory, by default the
/// variable's own.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The variable.
    pub var: VarRef,
    /// Which elements. Lists may be longer than the rank.
    pub slab: Hyperslab<'a>,
    /// The type in memory.
    pub mem: Option<MemType>,
}

/// A transfer of elements of a variable, or of values of an attribute ([`AttAccess`]): what is to be moved, and what its
/// check found. Before a check it moves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<A> {
    of: A,
    /// Bytes that the caller's memory has to have.
    pub n_bytes: usize,
    /// Elements.
    pub n_elems: usize,
    /// The type in memory; `None` for what is neither a number nor text.
    pub mem: Option<MemType>,
    /// Numbers that the format hands from the first step to the second.
    pub found: [u64; 2],
}

impl<A> Transfer<A> {
    /// A transfer that is to be checked.
    #[inline(always)]
    #[must_use]
    pub fn new(of: A) -> Transfer<A> {
        Transfer { of, n_bytes: 0, n_elems: 0, mem: None, found: [0, 0] }
    }

    /// Forgets what an earlier check found: before a check that may find that nothing is to be moved.
    pub fn forget(&mut self) {
        self.note(0, 0, None, [0, 0]);
    }

    /// What is to be moved.
    #[inline(always)]
    #[must_use]
    pub fn of(&self) -> &A {
        &self.of
    }

    /// Keeps what the check found: bytes in memory, elements, their type in memory, and what the second step is to know.
    #[inline(always)]
    pub fn note(&mut self, n_bytes: usize, n_elems: usize, mem: Option<MemType>, found: [u64; 2]) {
        (self.n_bytes, self.n_elems, self.mem, self.found) = (n_bytes, n_elems, mem, found);
    }
}

/// What an attribute is to become.
#[derive(Clone, Copy, Debug)]
pub struct AttPut<'a> {
    /// A variable, or a group.
    pub owner: VarRef,
    /// Its name.
    pub name: &'a [u8],
    /// Its type.
    pub nc_type: i32,
    /// Its length.
    pub n_values: usize,
    /// The type in memory, by default its own.
    pub mem: Option<MemType>,
}

/// Which attribute is to be read, and as what.
#[derive(Clone, Copy, Debug)]
pub struct AttAccess<'a> {
    /// A variable, or a group.
    pub owner: VarRef,
    /// Its name.
    pub name: &'a [u8],
    /// The type in memory, by default its own.
    pub mem: Option<MemType>,
}

/// Values on their way into a file.
pub struct Values<'a> {
    /// Elements in the form of memory, row-major.
    pub bytes: &'a [u8],
    /// Where strings and sequences are. Without one, a put of such values is refused.
    pub fetch: Option<&'a mut dyn VlenSource>,
}

impl<'a> Values<'a> {
    /// Values that are all in the bytes.
    #[must_use]
    pub fn plain(bytes: &'a [u8]) -> Values<'a> {
        Values { bytes, fetch: None }
    }
}

impl std::fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Values({} bytes)", self.bytes.len())
    }
}

/// Memory for values on their way out of a file.
pub struct Destination<'a> {
    /// Elements in the form of memory, row-major.
    pub bytes: &'a mut [u8],
    /// Where strings and sequences go. Without one, a get of such values is refused.
    pub place: Option<&'a mut dyn VlenSink>,
}

impl<'a> Destination<'a> {
    /// For values that are all in the bytes.
    #[must_use]
    pub fn plain(bytes: &'a mut [u8]) -> Destination<'a> {
        Destination { bytes, place: None }
    }
}

impl std::fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Destination({} bytes)", self.bytes.len())
    }
}

/// Where values of variable length go. C wants addresses of memory from `malloc`; Rust wants
/// something safe. What `place` returns is stored, in native byte order, in the element: 8 bytes for
/// a string, length (8 bytes) and this for a sequence.
pub trait VlenSink {
    /// Takes the bytes of one string (without NUL) or of all items of one sequence (in memory form,
    /// themselves already placed); `None` where there is no memory.
    ///
    /// An empty sequence has address 0 and is not placed. A string that was never written is a null
    /// pointer, 0; an empty one is placed.
    fn place(&mut self, bytes: &[u8], text: bool) -> Option<u64>;
}

/// Where values of variable length come from. The caller's memory holds addresses, as [`VlenSink`] gave them or C
/// made them; only the caller knows what is at an address.
pub trait VlenSource {
    /// The string at an address, without its NUL; `None` for a null pointer.
    fn text(&mut self, address: u64) -> Option<&[u8]>;

    /// So many bytes of items of a sequence, in memory form, at an address that is not null.
    fn items(&mut self, address: u64, len: usize) -> &[u8];
}
