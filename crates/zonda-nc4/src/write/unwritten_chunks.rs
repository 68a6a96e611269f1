//! Storing chunks of strings and sequences that nobody put to.
//!
//! libhdf5 makes an element that nobody wrote from the fill value. If that points into the global heap, libhdf5 writes a
//! copy of the object there; in a file that is open for reading it cannot, and the read fails. So a commit
//! stores such chunks, each element with a copy of its own.

use hashbrown::HashSet;
use zonda_chunk::{Allocate, ChunkWriter, ElementEncoding};
use zonda_hdf5::ChunkTree;
use zonda_model::{Hyperslab, NcError};

use super::ObjectKey;
use super::linear::repeated;
use super::store::{ElementStorage, FileSpace, VarStore};
use crate::fault::{Fault, Outcome};
use crate::model::Model;
use crate::tuning::UNWRITTEN_CHUNKS_BYTES;

/// Stores the chunks that a variable does not have, if libhdf5 could not read the variable without them.
pub(super) fn store(
    key: ObjectKey,
    store: &VarStore,
    model: &Model,
    chunks: &mut ChunkWriter,
    room: &mut FileSpace<'_>,
) -> Outcome<()> {
    let (ElementStorage::Chunked { array, tree, layout }, Some(element)) =
        (&store.keep, store.fill())
    else {
        return Ok(());
    };
    let ObjectKey::Var(group, var) = key else { return Ok(()) };
    if !store.data.form.has_pointers() || element.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    let extent = model.var(group, var).map_or(&[][..], |var| &var.extent);
    let dims = &layout.chunk_dims;
    let grid: Vec<u64> =
        extent.iter().zip(dims).map(|(&len, &dim)| len.div_ceil(dim.max(1))).collect();
    let wanted = grid.iter().try_fold(1u64, |n, &along| n.checked_mul(along));
    let Some(wanted) = wanted.filter(|&n| n > 0) else { return Ok(()) };
    let stored = {
        let tree = tree.0.read();
        // Without a change there is nothing new that could be missing.
        if !tree.is_dirty() {
            return Ok(());
        }
        stored_chunks(&tree, &grid)?
    };
    let chunk_elems = dims.iter().fold(1u64, |n, &dim| n.saturating_mul(dim));
    let chunk_bytes = chunk_elems.saturating_mul(element.len() as u64);
    let missing = wanted.saturating_sub(stored.len() as u64);
    if missing == 0 || missing.saturating_mul(chunk_bytes) > UNWRITTEN_CHUNKS_BYTES {
        return Ok(());
    }
    let mut at = vec![0u64; grid.len()];
    loop {
        if !stored.contains(&at) {
            put(store, &at, dims, extent, element, |slab, src| {
                let encode = ElementEncoding::Raw { elem_size: element.len() };
                let mut elements = src.to_vec();
                room.before_store(*array, &mut elements).map_err(zonda_chunk::ChunkError::Table)?;
                chunks.put(*array, extent, slab, encode, &elements, &mut *room).map(|_| ())
            })?;
        }
        if !step(&mut at, &grid) {
            break;
        }
    }
    Ok(chunks.flush(room)?)
}

/// Which chunks of a grid are stored.
fn stored_chunks(tree: &ChunkTree, grid: &[u64]) -> Outcome<HashSet<Vec<u64>>> {
    let last: Vec<u64> = grid.iter().map(|along| along.saturating_sub(1)).collect();
    let mut stored = HashSet::new();
    let found = &mut |key: &[u64], _| {
        stored.insert(key.to_vec());
    };
    tree.for_each_in(&vec![0; grid.len()], &last, found)?;
    Ok(stored)
}

/// Goes to the next chunk of a grid, the last dimension fastest; `false` behind the last chunk.
fn step(at: &mut [u64], grid: &[u64]) -> bool {
    at.iter_mut().zip(grid).rev().any(|(index, &along)| {
        *index = index.saturating_add(1);
        let is_in = *index < along;
        if !is_in {
            *index = 0;
        }
        is_in
    })
}

/// Calls `put` with the fill value for the elements of a chunk that are in the extent.
fn put(
    store: &VarStore,
    at: &[u64],
    dims: &[u64],
    extent: &[u64],
    element: &[u8],
    put: impl FnOnce(&Hyperslab<'_>, &[u8]) -> Result<(), zonda_chunk::ChunkError>,
) -> Outcome<()> {
    let too_large = || Fault::Refused(NcError::NoMem);
    let (mut start, mut count) = (Vec::new(), Vec::new());
    for ((&at, &dim), (&len, fixed)) in at.iter().zip(dims).zip(extent.iter().zip(&store.fixed)) {
        let first = at.saturating_mul(dim);
        let here = fixed.unwrap_or(len).saturating_sub(first).min(dim);
        start.push(usize::try_from(first).map_err(|_| too_large())?);
        count.push(usize::try_from(here).map_err(|_| too_large())?);
    }
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    let n = slab.n_elems().ok_or_else(too_large)?;
    put(&slab, &repeated(element, n)?)?;
    Ok(())
}
