//! Chunks of which several ranks have parts, and that only one of them can store: those that go through filters.
//!
//! A filter takes a chunk as a whole, and nobody knows how long it becomes. So each chunk has one *owner* among the ranks, who gets the parts
//! of the others, holds them until the chunk is stored, and writes it. Who owns a chunk, and when it is stored, is not the
//! format's business: here is what a rank does with chunks that it was told to hold.
//!
//! Each rank has the whole object of the file. [`SharedChunks::begin_put`], [`SharedChunks::take_places`], [`SharedChunks::give_places_back`] and [`SharedChunks::enter`]
//! are called on all ranks, in the same order, with equal arguments, and do the same everywhere. The other methods are about what one
//! rank has.

use std::borrow::Cow;
use std::fmt;

use zonda_convert::Converted;
use zonda_slab::Hyperslab;

use crate::error::{Error, Result};
use crate::refs::VarRef;
use crate::transfer::{Access, Transfer, Values};

/// The grid of a variable's chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedGrid {
    /// Elements of a chunk along each dimension.
    pub chunk_dims: Vec<u64>,
    /// The length that each dimension can have: a chunk is complete when all elements up to there were put.
    pub limits: Vec<u64>,
    /// Bytes of an element in the file.
    pub elem_size: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes that a chunk takes while it waits.
    pub waiting_bytes: u64,
    /// Bytes of incomplete chunks that one process puts to before it sees whether too many wait.
    pub round_bytes: u64,
    /// One process commits by itself when a put begins a record and so many bytes were put since the last commit.
    pub commit_bytes: u64,
}

/// A chunk: its variable, and its coordinates in the grid of chunks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedChunk {
    /// The variable.
    pub var: VarRef,
    /// How many chunks come before it along each dimension.
    pub key: Vec<u64>,
}

/// Elements of a put, in the file's form.
#[derive(Clone, Copy, Debug)]
pub struct SlabBytes<'a> {
    /// Which elements of the variable.
    pub slab: Hyperslab<'a>,
    /// The elements: all of the hyperslab, row-major, or those of some of its chunks, chunk after chunk.
    pub bytes: &'a [u8],
}

/// A chunk that gets elements.
#[derive(Clone, Copy, Debug)]
pub struct HeldChunk<'a> {
    /// Its coordinates.
    pub key: &'a [u64],
    /// Ranks put all of its elements at this moment: what the file has of it need not be read.
    pub is_covered: bool,
}

/// A chunk as the file is to have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteredBytes {
    /// Which filters were skipped, as the format says it.
    pub mask: u32,
    /// What the filters made of it.
    pub bytes: Vec<u8>,
}

/// Where a chunk is, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// Where it begins, as the format counts.
    pub at: u64,
    /// How many bytes it has there.
    pub len: u64,
    /// As in [`FilteredBytes`].
    pub mask: u32,
}

/// A chunk to which ranks put alone: this rank and others.
#[derive(Clone, Copy, Debug)]
pub struct MergedChunk<'a> {
    /// The chunk, which this rank holds.
    pub chunk: &'a SharedChunk,
    /// What others put, in the order in which it goes over what is there: [`SharedChunks::kept_part`] made it. Where it is not `true`, elements
    /// that this rank put, or others before in the list, stay.
    pub parts: &'a [(&'a [u8], bool)],
}

/// A chunk that was taken out and that its filters refused.
#[derive(Debug)]
pub struct UnfilteredChunk {
    /// Why.
    pub error: Error,
    /// The chunk as it was, for [`SharedChunks::hold_again`].
    pub bytes: Vec<u8>,
}

/// Chunks that were taken out of a file, to go through their filters on whichever thread.
pub trait DetachedChunks: Send {
    /// Bytes of all of them.
    fn n_bytes(&self) -> u64;

    /// Sends them through their filters, on all threads. What comes of it has memory for what is written behind each.
    fn filter(self: Box<Self>) -> Vec<std::result::Result<FilteredBytes, UnfilteredChunk>>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn DetachedChunks + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DetachedChunks")
    }
}

/// What a format does with chunks that have owners.
pub trait SharedChunks {
    /// The chunks of a variable whose chunks have owners; `None` for other variables.
    fn grid(&self, var: VarRef) -> Option<SharedGrid>;

    /// All ranks put to a variable: called on all of them.
    fn begin_put(&mut self, var: VarRef);

    /// How many bytes of chunks may wait, on all ranks together.
    fn waiting_limit(&self) -> u64;

    /// The elements of a put that was checked, in the file's form.
    ///
    /// # Errors
    /// `NC_ENOMEM`; `NC_EINVAL` for memory of another length. Values that do not fit are counted.
    fn in_file_form<'v>(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'v>,
    ) -> Result<(Cow<'v, [u8]>, Converted)>;

    /// Appends what of a put lies in some chunks, chunk after chunk.
    ///
    /// # Errors
    /// `NC_ENOMEM`; `NC_EINVAL` for chunks that it has nothing of.
    fn parts_of(
        &self,
        var: VarRef,
        of: &SlabBytes<'_>,
        keys: &[&[u64]],
        out: &mut Vec<u8>,
    ) -> Result<()>;

    /// Puts elements into chunks that this rank holds from now on. `of` has all elements of its hyperslab, or, where `is_packed`, what
    /// [`SharedChunks::parts_of`] gave for these chunks.
    ///
    /// # Errors
    /// Those of reading chunks that the file has; `NC_ENOMEM`.
    fn hold(
        &mut self,
        var: VarRef,
        of: &SlabBytes<'_>,
        chunks: &[HeldChunk<'_>],
        is_packed: bool,
    ) -> Result<()>;

    /// Whether all elements of a chunk were put since this rank holds it.
    fn is_complete(&self, chunk: &SharedChunk) -> bool;

    /// Sends chunks that this rank holds through their filters; `None` for those that it does not hold.
    ///
    /// # Errors
    /// Those of the filters.
    fn filter_held(&mut self, chunks: &[&SharedChunk]) -> Result<Vec<Option<FilteredBytes>>>;

    /// Sends chunks through their filters of which a put has all elements.
    ///
    /// # Errors
    /// Those of the filters.
    fn filter_whole(
        &mut self,
        var: VarRef,
        of: &SlabBytes<'_>,
        keys: &[&[u64]],
    ) -> Result<Vec<FilteredBytes>>;

    /// Takes chunks out, in this order: those of `whole`, of which the put `of` has all elements, and then those of `held`, which this rank holds and
    /// holds no more. After an error it holds them on.
    ///
    /// # Errors
    /// `NC_ENOMEM`; those of reading what does not fit in memory; `NC_EINVAL` for a chunk that this rank does not hold.
    fn detach(
        &mut self,
        var: VarRef,
        whole: Option<(&SlabBytes<'_>, &[&[u64]])>,
        held: &[&[u64]],
    ) -> Result<Box<dyn DetachedChunks>>;

    /// Holds a chunk again, complete, that was taken out. If there is no memory for that, it is lost.
    fn hold_again(&mut self, chunk: &SharedChunk, bytes: Vec<u8>);

    /// Takes space for chunks of such lengths, one after the other: all of it, or none.
    ///
    /// # Errors
    /// Where the file would become too long.
    fn take_places(&mut self, lens: &[u64]) -> Result<Vec<u64>>;

    /// Gives places back, as [`SharedChunks::take_places`] gave them, that nothing has ever referred to: they are the next ones to be taken.
    fn give_places_back(&mut self, places: &[ChunkPlace]);

    /// Writes chunks of this rank to their places.
    ///
    /// # Errors
    /// Those of the storage.
    fn write_filtered(&mut self, chunks: Vec<(FilteredBytes, ChunkPlace)>) -> Result<()>;

    /// Chunks of this rank as they are written, each with its place in the storage.
    ///
    /// # Errors
    /// `NC_ENOMEM`; never for those that come of [`DetachedChunks::filter`].
    fn to_write(&mut self, chunks: Vec<(FilteredBytes, ChunkPlace)>)
    -> Result<Vec<(u64, Vec<u8>)>>;

    /// Enters chunks that are in the storage, and gives back the space that they had before. A chunk that this rank holds it holds on,
    /// unless it `ends`.
    ///
    /// # Errors
    /// Those of the index of chunks.
    fn enter(&mut self, chunks: &[(&SharedChunk, ChunkPlace, bool)]) -> Result<()>;

    /// Whether this rank holds a chunk.
    fn holds(&self, chunk: &SharedChunk) -> bool;

    /// Whether there is memory, or room in a file beside the data, for more chunks that this rank holds.
    fn has_room_to_hold(&mut self) -> bool;

    /// Appends which elements of a chunk were put since this rank holds it, and these elements.
    ///
    /// # Errors
    /// `NC_EINVAL` for a chunk that it does not hold; `NC_ENOMEM`; those of reading what does not fit in memory.
    fn kept_part(&self, chunk: &SharedChunk, out: &mut Vec<u8>) -> Result<()>;

    /// How many of these bytes are what [`SharedChunks::kept_part`] made of one chunk of a variable; `None` where they are not even that.
    fn kept_len(&self, var: VarRef, bytes: &[u8]) -> Option<usize>;

    /// Sends chunks through their filters that this rank holds, with what others put. It holds them on as they are.
    ///
    /// # Errors
    /// Those of the filters; `NC_EINVAL` for parts that are none of their chunks.
    fn filter_merged(&mut self, chunks: &[MergedChunk<'_>]) -> Result<Vec<FilteredBytes>>;

    /// Forgets what this rank holds of a chunk.
    fn forget(&mut self, chunk: &SharedChunk);
}
