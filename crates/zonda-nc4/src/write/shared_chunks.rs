//! Chunks through filters of a file that several ranks write: what a rank does with those that it holds, and how they get
//! their places. Who holds which is decided above.

use std::borrow::Cow;

use zonda_chunk::{
    Allocate as _, ArrayId, ChunkAt, ChunkError, ChunkWriter, FilteredChunk, HeldPart, KeptPart,
    NotFiltered, SlabElements, ToFilter, WriteTable as _, with_tails,
};
use zonda_convert::Converted;
use zonda_format::{
    Access, ChunkPlace, DetachedChunks, FilteredBytes, HeldChunk, MergedChunk, Result, SharedChunk,
    SharedChunks, SharedGrid, SlabBytes, Transfer, UnfilteredChunk, Values, VarRef,
};
use zonda_hdf5::FileAddr;
use zonda_model::{ExtType, MemType, NcError, memory};
use zonda_storage::check_place;

use super::quantize::quantized;
use super::store::{ElementStorage, FileSpace, Stores, VarStore};
use super::{Writing, element};
use crate::fault::{Fault, Outcome};
use crate::file::Nc4File;
use crate::get::{is_copy, tolerated};
use crate::tuning::COMMIT_AFTER_BYTES;

const INTERNAL: Fault = Fault::Refused(NcError::Internal);

impl Stores {
    /// The array of a variable's chunks.
    fn array_of(&self, of: VarRef) -> Option<ArrayId> {
        self.get(self.number(of.group, of.var)?)?.array()
    }

    /// Whether the chunks of an array go through filters.
    pub(super) fn is_filtered(&self, array: Option<ArrayId>) -> bool {
        let chunks = array.zip(self.chunks.as_ref());
        chunks.is_some_and(|(array, chunks)| chunks.filtered_grid(array).is_some())
    }
}

impl Nc4File {
    fn array_of(&self, of: VarRef) -> Outcome<(&ChunkWriter, ArrayId)> {
        let stores = self.writing.as_deref().map(|writing| &writing.stores).ok_or(INTERNAL)?;
        let array = stores.array_of(of).ok_or(INTERNAL)?;
        Ok((stores.chunks.as_ref().ok_or(INTERNAL)?, array))
    }

    fn array_of_mut(&mut self, of: VarRef) -> Outcome<(&mut ChunkWriter, ArrayId)> {
        let stores = self.writing.as_deref_mut().map(|writing| &mut writing.stores);
        let stores = stores.ok_or(INTERNAL)?;
        let array = stores.array_of(of).ok_or(INTERNAL)?;
        Ok((stores.chunks.as_mut().ok_or(INTERNAL)?, array))
    }

    fn extent_of(&self, of: VarRef) -> Outcome<Vec<u64>> {
        let var = self.model.get().and_then(|model| model.var(of.group, of.var));
        var.map(|var| var.extent.to_vec()).ok_or(INTERNAL)
    }

    /// The elements of a put in the file's form.
    fn file_form<'v>(
        &mut self,
        put: &Transfer<Access<'_>>,
        bytes: &'v [u8],
    ) -> Outcome<(Cow<'v, [u8]>, Converted)> {
        if bytes.len() != put.n_bytes {
            return Err(Fault::wrong_length());
        }
        let VarRef { group, var: id } = put.of().var;
        let (model, writing) = (self.model.get(), self.writing.as_deref_mut());
        let (Some(model), Some(writing)) = (model, writing) else { return Err(INTERNAL) };
        let number = writing.stores.number(group, id).ok_or(INTERNAL)?;
        let store = writing.stores.get_mut(number).ok_or(INTERNAL)?;
        let Some(mem) = put.mem else { return natural_form(store, bytes) };
        let (form, converted) = number_form(store, mem, bytes)?;
        let nc_type = model.var(group, id).map_or(0, |var| var.nc_type);
        Ok((form, tolerated(model.is_classic, nc_type, Some(mem), converted)))
    }

    fn filter(
        &mut self,
        of: VarRef,
        chunks: &[ToFilter<'_>],
    ) -> Outcome<Vec<Option<FilteredBytes>>> {
        let (writer, _) = self.array_of_mut(of)?;
        let filtered = writer.filter(chunks)?.into_iter();
        let shown = |FilteredChunk { mask, bytes }| FilteredBytes { mask, bytes };
        Ok(filtered.map(|chunk| chunk.map(shown)).collect())
    }

    /// Chunks that this rank holds, with what others put, through their filters.
    fn merged(&mut self, chunks: &[MergedChunk<'_>]) -> Outcome<Vec<FilteredBytes>> {
        let mut merged: Vec<(ArrayId, Option<Vec<u8>>)> = Vec::with_capacity(chunks.len());
        for MergedChunk { chunk, parts } in chunks {
            let (writer, array) = self.array_of(chunk.var)?;
            let parts: Vec<KeptPart<'_>> =
                parts.iter().map(|&(bytes, is_over)| KeptPart { bytes, is_over }).collect();
            // One that nobody else put to is filtered where it is.
            let bytes = match parts.is_empty() {
                true => None,
                false => Some(writer.merged(array, &chunk.key, &parts)?),
            };
            merged.push((array, bytes));
        }
        let of = chunks.first().ok_or(INTERNAL)?.chunk.var;
        let chunks: Vec<ToFilter<'_>> = chunks
            .iter()
            .zip(&merged)
            .map(|(MergedChunk { chunk, .. }, (array, bytes))| match bytes {
                Some(bytes) => ToFilter::Given(*array, &chunk.key, bytes),
                None => ToFilter::Held(*array, &chunk.key),
            })
            .collect();
        // Each of them is held: `None` would shift what comes behind.
        self.filter(of, &chunks)?.into_iter().map(|chunk| chunk.ok_or(INTERNAL)).collect()
    }

    /// Has a function take and give back space.
    fn with_space<T>(&mut self, work: impl FnOnce(&mut FileSpace<'_>) -> Outcome<T>) -> Outcome<T> {
        let Nc4File { files, writing, .. } = self;
        let Writing { stores, space, heap, .. } = writing.as_deref_mut().ok_or(INTERNAL)?;
        let (file, heap) = (files.main(), heap.get_mut());
        work(&mut FileSpace { space, heap, copies: &stores.copies, file })
    }

    fn take_all(&mut self, lens: &[u64]) -> Outcome<Vec<u64>> {
        let total = lens.iter().fold(0u64, |sum, &len| sum.saturating_add(len));
        let end = self.writing.as_deref().map_or(0, |writing| writing.space.end());
        let file = self.files.main();
        check_place(file.position(FileAddr(end)), total, || file.storage().most_len())?;
        self.with_space(|space| {
            let mut places: Vec<u64> = Vec::with_capacity(lens.len());
            for &len in lens {
                match space.allocate(len) {
                    Ok(at) => places.push(at),
                    Err(error) => {
                        space.untake(places.iter().copied().zip(lens.iter().copied()));
                        return Err(ChunkError::Table(error).into());
                    }
                }
            }
            Ok(places)
        })
    }

    /// Chunks with their places, and where the bytes end that belong to these.
    fn placed(&mut self, chunks: Vec<(FilteredBytes, ChunkPlace)>) -> Outcome<PlacedChunks> {
        let placed: Vec<(FilteredChunk, ChunkAt)> = chunks
            .into_iter()
            .map(|(FilteredBytes { mask, bytes }, at)| (FilteredChunk { mask, bytes }, place(at)))
            .collect();
        let behind: Vec<u64> = self.with_space(|space| {
            Ok(placed.iter().map(|(_, at)| space.padded(at.at, at.len)).collect())
        })?;
        Ok((placed, behind))
    }

    fn write_all(&mut self, chunks: Vec<(FilteredBytes, ChunkPlace)>) -> Outcome<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let (mut placed, behind) = self.placed(chunks)?;
        let stores = self.writing.as_deref().map(|writing| &writing.stores).ok_or(INTERNAL)?;
        let writer = stores.chunks.as_ref().ok_or(INTERNAL)?;
        Ok(writer.write_filtered(&mut placed, &behind)?)
    }

    fn all_to_write(
        &mut self,
        chunks: Vec<(FilteredBytes, ChunkPlace)>,
    ) -> Outcome<Vec<(u64, Vec<u8>)>> {
        let (mut placed, behind) = self.placed(chunks)?;
        with_tails(&mut placed, &behind)?;
        Ok(placed.into_iter().map(|(chunk, at)| (at.at, chunk.bytes)).collect())
    }

    fn detached(
        &mut self,
        of: VarRef,
        whole: Option<(&SlabBytes<'_>, &[&[u64]])>,
        held: &[&[u64]],
    ) -> Outcome<Box<dyn DetachedChunks>> {
        let object = self.path_of(of);
        let extent = self.extent_of(of)?;
        let (writer, array) = self.array_of_mut(of)?;
        let elements = whole.map(|(of, _)| elements(&extent, of));
        let mut chunks: Vec<ToFilter<'_>> = Vec::new();
        if let (Some((_, keys)), Some(elements)) = (whole, &elements) {
            chunks.extend(keys.iter().map(|key| ToFilter::Whole(array, key, elements)));
        }
        chunks.extend(held.iter().map(|key| ToFilter::Held(array, key)));
        let chunks = writer.detach(&chunks)?;
        Ok(Box::new(DetachedOfVar { object, chunks }))
    }

    fn enter_all(&mut self, chunks: &[(&SharedChunk, ChunkPlace, bool)]) -> Outcome<()> {
        let mut old = Vec::new();
        for (chunk, at, ends) in chunks {
            let VarRef { group, var } = chunk.var;
            let writing = self.writing.as_deref_mut().ok_or(INTERNAL)?;
            let stores = &mut writing.stores;
            let number = stores.number(group, var).ok_or(INTERNAL)?;
            let store = stores.get_mut(number).ok_or(INTERNAL)?;
            let ElementStorage::Chunked { array, tree, .. } = &store.keep else {
                return Err(INTERNAL);
            };
            let before = tree.insert(&chunk.key, place(*at)).map_err(ChunkError::Table)?;
            old.extend(before.filter(|before| before.at != at.at));
            let array = *array;
            if let Some(writer) = &mut stores.chunks {
                writer.is_stored(array, &chunk.key, *ends);
            }
        }
        self.with_space(|space| {
            old.iter().for_each(|at| space.free(at.at, at.len));
            Ok(())
        })
    }
}

type PlacedChunks = (Vec<(FilteredChunk, ChunkAt)>, Vec<u64>);

/// Chunks that were taken out.
#[derive(Debug)]
struct DetachedOfVar {
    /// How messages name their variable.
    object: String,
    chunks: zonda_chunk::DetachedChunks,
}

impl DetachedChunks for DetachedOfVar {
    fn n_bytes(&self) -> u64 {
        self.chunks.n_bytes()
    }

    fn filter(self: Box<Self>) -> Vec<std::result::Result<FilteredBytes, UnfilteredChunk>> {
        let DetachedOfVar { object, chunks } = *self;
        let refused = |NotFiltered { error, bytes }| {
            let error = Fault::Chunk(error).at(|| object.clone()).into();
            UnfilteredChunk { error, bytes }
        };
        let shown = |FilteredChunk { mask, bytes }| FilteredBytes { mask, bytes };
        chunks.filter().into_iter().map(|chunk| chunk.map(shown).map_err(refused)).collect()
    }
}

fn place(ChunkPlace { at, len, mask }: ChunkPlace) -> ChunkAt {
    ChunkAt { at, len, mask }
}

/// Numbers and text in the file's form.
fn number_form<'v>(
    store: &mut VarStore,
    mem: MemType,
    bytes: &'v [u8],
) -> Outcome<(Cow<'v, [u8]>, Converted)> {
    let Some(how) = store.quantize else {
        let encoder = store.encoder(mem).map_err(Fault::Refused)?;
        return encoded(&encoder, Cow::Borrowed(bytes));
    };
    let (values, converted) = quantized(store, how, mem, bytes)?;
    let (ext, _): (ExtType, _) = store.number().ok_or(INTERNAL)?;
    let encoder = store.encoder(ext.natural_mem()).map_err(Fault::Refused)?;
    let (form, more) = encoded(&encoder, Cow::Owned(values))?;
    Ok((form, converted.and(more)))
}

fn encoded<'v>(
    encoder: &zonda_convert::Encoder,
    values: Cow<'v, [u8]>,
) -> Outcome<(Cow<'v, [u8]>, Converted)> {
    if encoder.is_copy() {
        return Ok((values, Converted::default()));
    }
    let mut form = room(values.len(), encoder.mem_size(), encoder.ext_size())?;
    let converted = encoder.encode(&values, &mut form);
    Ok((form.into(), converted))
}

/// Memory for elements of `to` bytes, of which there are as many as of `from` bytes in `len`.
fn room(len: usize, from: usize, to: usize) -> Outcome<Vec<u8>> {
    let n = len.checked_div(from).ok_or(INTERNAL)?;
    let len = n.checked_mul(to).ok_or(Fault::Refused(NcError::NoMem))?;
    Ok(memory::filled(len, 0)?)
}

/// Elements of the types of the file in its form.
fn natural_form<'v>(store: &VarStore, bytes: &'v [u8]) -> Outcome<(Cow<'v, [u8]>, Converted)> {
    let form = &store.data.form;
    if form.has_pointers() || element::is_fixed_string(form) {
        return Err(Fault::because(NcError::HdfErr, super::team::POINTS));
    }
    if is_copy(form) {
        return Ok((bytes.into(), Converted::default()));
    }
    let mut packed = room(bytes.len(), form.size, form.file_size)?;
    element::plain(form, bytes, &mut packed);
    Ok((packed.into(), Converted::default()))
}

fn elements<'a>(extent: &'a [u64], of: &SlabBytes<'a>) -> SlabElements<'a> {
    SlabElements { extent, slab: of.slab, bytes: of.bytes }
}

impl SharedChunks for Nc4File {
    fn grid(&self, var: VarRef) -> Option<SharedGrid> {
        let (writer, array) = self.array_of(var).ok()?;
        let zonda_chunk::ChunkGrid {
            chunk_dims,
            limits,
            elem_size,
            chunk_bytes,
            waiting_bytes,
            round_bytes,
        } = writer.filtered_grid(array)?;
        Some(SharedGrid {
            chunk_dims,
            limits,
            elem_size,
            chunk_bytes,
            waiting_bytes,
            round_bytes,
            commit_bytes: COMMIT_AFTER_BYTES,
        })
    }

    fn begin_put(&mut self, VarRef { group, var }: VarRef) {
        let stores = self.writing.as_deref_mut().map(|writing| &mut writing.stores);
        if let Some(stores) = stores
            && let Some(number) = stores.number(group, var)
        {
            stores.is_put_to(number);
        }
    }

    fn waiting_limit(&self) -> u64 {
        ChunkWriter::limit_from_env()
    }

    fn in_file_form<'v>(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'v>,
    ) -> Result<(Cow<'v, [u8]>, Converted)> {
        let found = self.file_form(put, values.bytes);
        Ok(found.map_err(|fault| self.put_fault(put.of().var, fault))?)
    }

    fn parts_of(
        &self,
        var: VarRef,
        of: &SlabBytes<'_>,
        keys: &[&[u64]],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let parts = self.extent_of(var).and_then(|extent| {
            let (writer, array) = self.array_of(var)?;
            Ok(writer.parts_of(array, &elements(&extent, of), keys.iter().copied(), out)?)
        });
        Ok(parts.map_err(|fault| self.put_fault(var, fault))?)
    }

    fn hold(
        &mut self,
        var: VarRef,
        of: &SlabBytes<'_>,
        chunks: &[HeldChunk<'_>],
        is_packed: bool,
    ) -> Result<()> {
        let parts: Vec<HeldPart<'_>> = chunks
            .iter()
            .map(|&HeldChunk { key, is_covered }| HeldPart { key, is_covered })
            .collect();
        let held = self.extent_of(var).and_then(|extent| {
            let (writer, array) = self.array_of_mut(var)?;
            Ok(writer.hold(array, &elements(&extent, of), &parts, is_packed)?)
        });
        Ok(held.map_err(|fault| self.put_fault(var, fault))?)
    }

    fn is_complete(&self, chunk: &SharedChunk) -> bool {
        let of = self.array_of(chunk.var);
        of.is_ok_and(|(writer, array)| writer.is_complete(array, &chunk.key))
    }

    fn filter_held(&mut self, chunks: &[&SharedChunk]) -> Result<Vec<Option<FilteredBytes>>> {
        let Some(first) = chunks.first() else { return Ok(Vec::new()) };
        let var = first.var;
        let arrays = chunks.iter().map(|chunk| {
            let (_, array) = self.array_of(chunk.var)?;
            Ok(ToFilter::Held(array, &chunk.key))
        });
        let found = arrays.collect::<Outcome<Vec<_>>>();
        let found = found.and_then(|chunks| self.filter(var, &chunks));
        Ok(found.map_err(|fault| self.put_fault(var, fault))?)
    }

    fn filter_whole(
        &mut self,
        var: VarRef,
        of: &SlabBytes<'_>,
        keys: &[&[u64]],
    ) -> Result<Vec<FilteredBytes>> {
        let found = self.extent_of(var).and_then(|extent| {
            let (of, array) = (elements(&extent, of), self.array_of(var)?.1);
            let chunks: Vec<_> = keys.iter().map(|key| ToFilter::Whole(array, key, &of)).collect();
            self.filter(var, &chunks)
        });
        let found = found.map_err(|fault| self.put_fault(var, fault))?;
        Ok(found.into_iter().flatten().collect())
    }

    fn detach(
        &mut self,
        var: VarRef,
        whole: Option<(&SlabBytes<'_>, &[&[u64]])>,
        held: &[&[u64]],
    ) -> Result<Box<dyn DetachedChunks>> {
        let detached = self.detached(var, whole, held);
        Ok(detached.map_err(|fault| self.put_fault(var, fault))?)
    }

    fn hold_again(&mut self, chunk: &SharedChunk, bytes: Vec<u8>) {
        if let Ok((writer, array)) = self.array_of_mut(chunk.var) {
            writer.hold_again(array, &chunk.key, bytes);
        }
    }

    fn take_places(&mut self, lens: &[u64]) -> Result<Vec<u64>> {
        Ok(self.take_all(lens).map_err(|fault| fault.at(|| String::from("/")))?)
    }

    fn give_places_back(&mut self, places: &[ChunkPlace]) {
        let _no_space_in_a_file_that_is_read = self.with_space(|space| {
            space.untake(places.iter().map(|place| (place.at, place.len)));
            Ok(())
        });
    }

    fn write_filtered(&mut self, chunks: Vec<(FilteredBytes, ChunkPlace)>) -> Result<()> {
        Ok(self.write_all(chunks).map_err(|fault| fault.at(|| String::from("/")))?)
    }

    fn to_write(
        &mut self,
        chunks: Vec<(FilteredBytes, ChunkPlace)>,
    ) -> Result<Vec<(u64, Vec<u8>)>> {
        Ok(self.all_to_write(chunks).map_err(|fault| fault.at(|| String::from("/")))?)
    }

    fn enter(&mut self, chunks: &[(&SharedChunk, ChunkPlace, bool)]) -> Result<()> {
        Ok(self.enter_all(chunks).map_err(|fault| fault.at(|| String::from("/")))?)
    }

    fn holds(&self, chunk: &SharedChunk) -> bool {
        let of = self.array_of(chunk.var);
        of.is_ok_and(|(writer, array)| writer.holds(array, &chunk.key))
    }

    fn has_room_to_hold(&mut self) -> bool {
        let stores = self.writing.as_deref_mut().map(|writing| &mut writing.stores);
        let writer = stores.and_then(|stores| stores.chunks.as_mut());
        writer.is_none_or(|writer| !writer.is_without_room())
    }

    fn kept_part(&self, chunk: &SharedChunk, out: &mut Vec<u8>) -> Result<()> {
        let made = self.array_of(chunk.var).and_then(|(writer, array)| {
            writer.kept_part(array, &chunk.key, out)?;
            Ok(())
        });
        Ok(made.map_err(|fault| self.put_fault(chunk.var, fault))?)
    }

    fn kept_len(&self, var: VarRef, bytes: &[u8]) -> Option<usize> {
        let (writer, array) = self.array_of(var).ok()?;
        writer.kept_len(array, bytes)
    }

    fn filter_merged(&mut self, chunks: &[MergedChunk<'_>]) -> Result<Vec<FilteredBytes>> {
        let Some(first) = chunks.first() else { return Ok(Vec::new()) };
        let var = first.chunk.var;
        let found = self.merged(chunks);
        Ok(found.map_err(|fault| self.put_fault(var, fault))?)
    }

    fn forget(&mut self, chunk: &SharedChunk) {
        if let Ok((writer, array)) = self.array_of_mut(chunk.var) {
            writer.is_stored(array, &chunk.key, true);
        }
    }
}
