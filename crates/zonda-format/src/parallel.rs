//! What a format does for a file that several ranks write: data have places that all ranks know, and each rank writes
//! there what it was given, and nothing else.
//!
//! Each rank has the whole object of the file, so all methods here but [`TeamWrite::put_in_place`] and
//! [`TeamWrite::check_put_in_place`] are called on all ranks, in the same order, on equal objects. How ranks come together is not the
//! format's business: see `docs/dev/parallel.md`.

use zonda_convert::Converted;
use zonda_model::NcError;

use crate::dispatch::{DispatchWrite, Reserve};
use crate::error::{Error, Result};
use crate::refs::VarRef;
use crate::shared_chunks::SharedChunks;
use crate::transfer::{Access, AttPut, Transfer, Values};

/// A run of bytes that is new in the file, and has to hold fill values before anybody reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfilledRun {
    /// The variable that it belongs to.
    pub var: VarRef,
    /// Where it begins in the storage, in bytes.
    pub at: u64,
    /// How many bytes it has.
    pub len: u64,
    /// The value of an element, as the file has it.
    pub element: Box<[u8]>,
}

/// What became of a variable that grew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Places that have to be filled.
    pub unfilled: Vec<UnfilledRun>,
    /// Those of them that have more than elements of the variable: they reach beyond its lengths, where nobody puts.
    pub padded: Vec<UnfilledRun>,
    /// The elements that are in these places, if they are one box: where it begins and ends along each dimension. Who puts all of
    /// them need not fill the places but for the padded ones.
    pub elements: Option<Vec<(u64, u64)>>,
}

/// An open file that several ranks write.
pub trait TeamWrite: DispatchWrite {
    /// Makes the file one of several: from now on it commits only when it is told to, and all that it may need of the file's definitions
    /// is in memory, so that what is asked of the storage later does not depend on what this rank asked before.
    ///
    /// # Errors
    /// What reading definitions meets.
    fn join_team(&mut self) -> Result<()>;

    /// Ends define mode, if the file is in it, and gives a place to all data that the definitions ask for. The next
    /// [`DispatchWrite::sync`] commits. Gives what of these places has to be filled first.
    ///
    /// # Errors
    /// As [`DispatchWrite::enddef`].
    fn give_places(&mut self, reserve: Reserve) -> Result<Vec<UnfilledRun>>;

    /// The lengths that a variable has along each of its dimensions that can grow; other dimensions have theirs.
    fn extent(&self, var: VarRef) -> Vec<u64>;

    /// Makes a variable as long as this along the dimensions that can grow, and gives places to what is new. Lengths that it has already
    /// stay.
    ///
    /// # Errors
    /// As a put that makes it as long.
    fn grow(&mut self, var: VarRef, extent: &[u64]) -> Result<Grown>;

    /// Whether [`TeamWrite::grow`] asks nothing of the storage, so that all ranks do it for themselves.
    fn grows_in_memory(&self) -> bool;

    /// Whether growth in memory may fail on one rank and not on the others, so that they have to tell each other.
    fn growth_may_fail(&self) -> bool {
        true
    }

    /// Makes the storage as long as all places need, after growth in memory: to be called on one rank.
    ///
    /// # Errors
    /// What the storage reports.
    fn reach_end(&self) -> Result<()> {
        Ok(())
    }

    /// Whether a rank may make a variable longer without the others: their lengths are told to each other at the next
    /// commit ([`TeamWrite::own_lengths`]).
    fn grows_alone(&self) -> bool;

    /// Lengths that this rank made by itself; as many on all ranks.
    fn own_lengths(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Takes the greatest lengths of all ranks.
    fn take_lengths(&mut self, _lengths: &[u64]) {}

    /// Gives an attribute that there is the value that it has on rank 0. Values of ranks may differ in their lengths, too, so this one
    /// may be longer than data mode allows a call to make it.
    ///
    /// # Errors
    /// As [`DispatchWrite::put_att`], but for that.
    fn take_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<()>;

    /// First step of a put, as [`DispatchWrite::check_put`]; may need more than the variable's lengths.
    ///
    /// # Errors
    /// As there; for variables that ranks cannot write together.
    fn check_put_in_place(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()>;

    /// Whether the elements of a variable lie in the definitions of the file, which one rank writes: then all ranks make all puts to it.
    fn is_in_definitions(&self, _var: VarRef) -> bool {
        false
    }

    /// How elements of a variable lie side by side in the file; `None` where that is not known.
    fn piece_shape(&self, _var: VarRef) -> Option<PieceShape> {
        None
    }

    /// What it does with chunks that have owners, where it has such chunks: puts into these go that way, and not by
    /// [`TeamWrite::put_in_place`].
    fn shared_chunks(&mut self) -> Option<&mut dyn SharedChunks> {
        None
    }

    /// Second step of a put into what has a place already: writes the bytes that were given, and no others.
    ///
    /// # Errors
    /// As [`DispatchWrite::put`].
    fn put_in_place(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>)
    -> Result<Converted>;
}

/// An open file that all ranks of a team have, and to which they put together: what they need to take part in a put of all.
pub trait PutTogether {
    /// How often this rank took part in puts of all ranks, or began one that it can still take part in.
    fn n_puts_together(&self) -> u64;

    /// Takes part with nothing in a put of all ranks: for a call that found an error before it came to its put, or had nothing to
    /// put. Does nothing where ranks put alone.
    ///
    /// # Errors
    /// Those of the other ranks: see [`DispatchWrite::put`].
    fn take_part(&mut self, var: VarRef) -> Result<()>;
}

/// What of a variable is in one piece of the file, row-major: a chunk, a record, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceShape {
    /// Its lengths in elements, slowest dimension first; as many as the variable has dimensions.
    pub dims: Vec<u64>,
    /// Bytes of an element in the file.
    pub elem_bytes: usize,
}

/// The error of formats that ranks cannot write together.
#[must_use]
pub fn not_by_several_ranks() -> Error {
    Error::because(NcError::NoPar, "files of this format are not written by several ranks")
}
