//! Chunks that are copied as they are stored: no filter is undone and none applied.

use zonda_chunk::{ChunkAt, StoredChunks};
use zonda_format::{StorageKind, VarRef};
use zonda_nc4::Nc4File;

use super::ahead;
use super::boxes::ChunksPresent;
use super::define::TargetVar;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::tuning::{STORED_BATCH_BYTES, STORED_BATCH_CHUNKS, STORED_BATCHES};

/// Whether bytes of elements mean the same in two variables of HDF5 files. Those of strings and
/// sequences only say where these are.
pub(super) fn same_type(source: &Dataset, made: &TargetVar<'_>, target: &Dataset) -> Result<bool> {
    if made.var.has_pointers {
        return Ok(false);
    }
    let (from, to) = (made.var.source, made.target);
    let old = source.hdf5(|file| Ok(file.stored_type(from.group, from.var)?))?;
    let new = target.hdf5(|file| Ok(file.stored_type(to.group, to.var)?))?;
    Ok(old == new)
}

/// The chunks of a variable that are in an HDF5 file.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Shape of a chunk.
    pub shape: Vec<u64>,
    /// Their coordinates, counted in chunks, in ascending order.
    keys: Vec<Vec<u64>>,
    /// Their lengths in the file, in bytes.
    lens: Vec<u64>,
    /// Chunks along each dimension.
    grid: Vec<u64>,
}

impl Chunks {
    /// The chunks of a variable; `None` where it is not stored in chunks.
    pub(super) fn of(file: &Nc4File, var: VarRef) -> Result<Option<Chunks>> {
        let info = file.var_info(var.group, var.var)?;
        let StorageKind::Chunked(dims) = &info.storage else { return Ok(None) };
        let shape: Vec<u64> = dims.iter().map(|&dim| (dim as u64).max(1)).collect();
        let extent = file.extent(var.group, var.var)?;
        let grid: Vec<u64> = extent.iter().zip(&shape).map(|(len, n)| len.div_ceil(*n)).collect();
        let mut there = Vec::new();
        file.for_each_chunk(var.group, var.var, &mut |key, ChunkAt { len, .. }| {
            // A chunk beyond the extent was cut off and cannot be read.
            if key.iter().zip(&grid).all(|(k, n)| k < n) {
                there.push((key.to_vec(), len));
            }
        })?;
        zonda_runtime::sort::sort(&mut there);
        let (keys, lens) = there.into_iter().unzip();
        Ok(Some(Chunks { shape, keys, lens, grid }))
    }

    /// The chunks in the file, in batches.
    fn batches(&self) -> impl Iterator<Item = &[Vec<u64>]> {
        let mut begin = 0;
        std::iter::from_fn(move || {
            let lens = self.lens.get(begin..).filter(|lens| !lens.is_empty())?;
            let mut bytes = 0u64;
            let more = lens.iter().take(STORED_BATCH_CHUNKS).take_while(|len| {
                let is_first = bytes == 0;
                bytes = bytes.saturating_add(**len);
                is_first || bytes <= STORED_BATCH_BYTES
            });
            let end = begin + more.count();
            let batch = &self.keys[begin..end];
            begin = end;
            Some(batch)
        })
    }

    /// The chunks in the file, in the form that [`choose_around`](super::boxes::choose_around) takes.
    pub(super) fn there(&self) -> ChunksPresent<'_> {
        ChunksPresent { shape: &self.shape, keys: &self.keys }
    }

    /// Whether all chunks of the grid are in the file.
    pub(super) fn is_complete(&self) -> bool {
        let all = self.grid.iter().fold(1u64, |n, &along| n.saturating_mul(along));
        self.keys.len() as u64 == all
    }

    /// Coordinates of the chunks that are not in the file.
    pub(super) fn missing(&self) -> impl Iterator<Item = Vec<u64>> {
        let all = super::boxes::BoxWalk::new(&self.grid, &vec![1; self.grid.len()]);
        let mut there = self.keys.iter().peekable();
        all.map(|(key, _)| key).filter(move |key| {
            let is_there = there.peek() == Some(&key);
            if is_there {
                there.next();
            }
            !is_there
        })
    }
}

/// Whether chunks can be copied as they are: same shape, type and filters, and the variable has all
/// elements that its dimensions have.
pub(super) fn fits(source: &Dataset, made: &TargetVar<'_>, target: &Dataset) -> Result<bool> {
    let (from, to) = (made.var.source, made.target);
    if made.is_quantized || !source.is_hdf5() || !target.is_hdf5() {
        return Ok(false);
    }
    let stored = |file: &Nc4File, var: VarRef| {
        let storage = file.var_info(var.group, var.var)?.storage.clone();
        let pipeline = file.pipeline(var.group, var.var)?;
        let parts = pipeline.into_iter().map(|filter| (filter.id, filter.optional, filter.params));
        Ok::<_, zonda_nc4::Nc4Error>((storage, parts.collect::<Vec<_>>()))
    };
    // The locks of the two files are taken one after the other, never both.
    let new = target.hdf5(|file| Ok(stored(file, to)?))?;
    let (old, is_complete) = source.hdf5(|file| {
        let is_complete = *file.extent(from.group, from.var)? == made.var.lens()[..];
        Ok((stored(file, from)?, is_complete))
    })?;
    if !matches!(old.0, StorageKind::Chunked(_)) || old != new || !is_complete {
        return Ok(false);
    }
    same_type(source, made, target)
}

/// Copies the chunks that are in the source. `step` is called with the bytes of elements that were copied.
///
/// # Errors
/// What reading and writing meet, and the error of `step`.
pub(super) fn copy(
    source: &Dataset,
    made: &TargetVar<'_>,
    target: &Dataset,
    chunks: &Chunks,
    step: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let (from, to) = (made.var.source, made.target);
    let chunk_bytes =
        chunks.shape.iter().fold(made.var.elem as u64, |n, &len| n.saturating_mul(len));
    let mut batches = chunks.batches();
    let read = |stored: &mut StoredChunks| {
        let Some(keys) = batches.next() else { return Ok(false) };
        source.hdf5(|file| Ok(file.stored_chunks(from.group, from.var, keys, stored)?))?;
        Ok(true)
    };
    let write = |stored: &mut StoredChunks| {
        target.change_hdf5(|file| file.put_stored_chunks(to.group, to.var, stored))?;
        step(chunk_bytes.saturating_mul(stored.iter().count() as u64))
    };
    let mut buffers: [StoredChunks; STORED_BATCHES] = Default::default();
    ahead::run(&mut buffers, read, write)
}
