//! Puts: from the caller's memory into the storage of a variable.

use std::sync::Arc;

use zonda_chunk::ElementEncoding;
use zonda_convert::Converted;
use zonda_format::{Access, StoreVars as _, Transfer, VarRef};
use zonda_hdf5::FileAddr;
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};
use zonda_slab::{Rows, Span};

use super::contiguous::{Contiguous, take_run};
use super::fill_copies::FillCopies;
use super::linear;
use super::store::{ElementStorage, FileSpace, Stores, VarStore};
use super::{Writing, element, grow, quantize};
use crate::element_form::{ElementForm, NC_STRING};
use crate::fault::{Fault, Outcome};
use crate::get::{bytes_of, is_copy, tolerated};
use crate::model::{GroupId, Model};
use crate::{Nc4Error, Nc4File};

impl Nc4File {
    #[cold]
    pub(super) fn put_fault(&self, var: VarRef, fault: Fault) -> Nc4Error {
        fault.at(|| self.path_of(var))
    }

    /// Checks the arguments, and makes the variable's storage where it is not there.
    pub(super) fn ready(&mut self, put: &mut Transfer<Access<'_>>) -> Outcome<()> {
        let Access { var: VarRef { group, var: id }, slab, mem: given } = *put.of();
        if self.writing.is_none() {
            return Err(self.read_only(put.of()));
        }
        let known = self.writing.as_deref().filter(|writing| !writing.mode.is_defining);
        let known = known.and_then(|writing| writing.stores.number(group, id));
        let number = match known {
            Some(number) => number,
            None => self.begin_put(group, id, given)?,
        };
        let Nc4File { model, writing, .. } = self;
        let (Some(model), Some(writing)) = (model.get(), writing.as_deref_mut()) else {
            return Err(refused(NcError::Internal));
        };
        let var = model.var(group, id).ok_or_else(|| refused(NcError::NotVar))?;
        let store = writing.stores.get_mut(number).ok_or_else(|| refused(NcError::Internal))?;
        if let Some(spec) = &store.data.missing {
            return Err(Fault::missing(spec));
        }
        if let Some(mem) = given {
            check_text(var.nc_type, mem)?;
        }
        let slab = grow::check(&store.fixed, &slab)?;
        if !element::can_encode(&store.data.form) {
            return Err(Fault::Unwritable(element::NOT_WRITTEN));
        }
        let (elem, mem) = match given {
            Some(mem) => {
                store.encoder(mem).map_err(refused)?;
                (mem.size(), Some(mem))
            }
            None => {
                let form = &store.data.form;
                let ext = store.number().map(|(ext, _)| ext.natural_mem());
                let is_string = form.atomic() == Some(NC_STRING);
                (if is_string { 8 } else { form.size }, ext)
            }
        };
        let n_elems = slab.n_elems();
        let sizes = n_elems.and_then(|n_elems| Some((n_elems, bytes_of(n_elems, elem)?)));
        let (n_elems, n_bytes) = sizes.ok_or_else(|| refused(NcError::NoMem))?;
        put.note(n_bytes, n_elems, mem, [number as u64, 0]);
        Ok(())
    }

    /// The error of a put into a file that is open for reading: the one that the reference finds first.
    #[cold]
    fn read_only(&self, put: &Access<'_>) -> Fault {
        let (model, var) = match self.var(put.var.group, put.var.var) {
            Ok(found) => found,
            Err(error) => return code_of(error),
        };
        if let Some(mem) = put.mem
            && let Err(fault) = check_text(var.nc_type, mem)
        {
            return fault;
        }
        let fixed = super::store::fixed(model, var);
        let checked = grow::check(&fixed, &put.slab);
        match checked {
            Err(misfit) => misfit.into(),
            Ok(_) => {
                let why = "the file was opened for reading only";
                Fault::because(NcError::HdfErr, why)
            }
        }
    }

    /// Prepares the first put to a variable, or the first put in define mode. Gives the number of the storage.
    #[cold]
    pub(super) fn begin_put(
        &mut self,
        group: GroupId,
        id: VarId,
        mem: Option<MemType>,
    ) -> Outcome<usize> {
        let (model, var) = self.var(group, id).map_err(code_of)?;
        let Some(writing) = self.writing.as_deref() else {
            return Err(refused(NcError::Perm));
        };
        if let Some(mem) = mem {
            check_text(var.nc_type, mem)?;
        }
        if writing.mode.is_defining {
            if model.is_classic {
                return Err(refused(NcError::InDefine));
            }
            self.leave_define_mode().map_err(code_of)?;
            self.settle().map_err(code_of)?;
        }
        self.settle_var(VarRef { group, var: id }).map_err(code_of)?;
        let draft = self.model.get_mut().and_then(|model| model.var_mut(group, id)?.draft.as_mut());
        if let Some(draft) = draft {
            draft.is_written = true;
        }
        self.storage_of(group, id)
    }

    /// The number of a variable's storage, which is made where there is none.
    pub(crate) fn storage_of(&mut self, group: GroupId, id: VarId) -> Outcome<usize> {
        let (_, var) = self.var(group, id).map_err(code_of)?;
        let is_there = var.draft.is_none();
        let mut stored = None;
        if is_there {
            stored = Some(Arc::clone(self.details_arc(var)?));
        }
        let precision = if is_there {
            self.var_quantize(VarRef { group, var: id }).unwrap_or(None)
        } else {
            None
        };
        let Nc4File { files, how, model, writing, .. } = self;
        let (Some(model), Some(writing)) = (model.get(), writing.as_deref_mut()) else {
            return Err(refused(NcError::Perm));
        };
        let details = stored.as_deref();
        let file = files.main();
        let number = writing.store_of(file, &how.find_filter, model, (group, id), details)?;
        if let Some(store) = writing.stores.get_mut(number).filter(|_| precision.is_some()) {
            store.quantize = precision;
        }
        let cache = model.var(group, id).and_then(|var| var.details.get());
        let cache = cache.and_then(|of| *of.cache.lock());
        // A size of all ones stands for the default.
        let cache = cache.filter(|set| set.0 != usize::MAX);
        let array = writing.stores.get(number).and_then(VarStore::array);
        let chunks = writing.stores.chunks.as_ref();
        if let (Some((bytes, ..)), Some(array)) =
            (cache, array.and_then(|array| chunks?.array(array)))
        {
            array.set_cache_floor(bytes as u64);
        }
        Ok(number)
    }

    /// Puts elements.
    pub(super) fn put_ready(
        &mut self,
        put: &Transfer<Access<'_>>,
        fetch: &mut dyn super::VlenSource,
        data: &[u8],
    ) -> Outcome<Converted> {
        let Nc4File { files, model, writing, .. } = self;
        let (Some(model), Some(writing)) = (model.get_mut(), writing.as_deref_mut()) else {
            return Err(refused(NcError::Internal));
        };
        let file = files.main();
        let Access { var: VarRef { group, var: id }, slab, .. } = *put.of();
        let Transfer { n_elems, mem, found: [number, _], .. } = *put;
        let number = usize::try_from(number).map_err(|_| refused(NcError::Internal))?;
        let no_store = || refused(NcError::Internal);
        let store = writing.stores.get_mut(number).ok_or_else(no_store)?;
        let packed_bytes = (n_elems as u64).saturating_mul(store.data.form.file_size as u64);
        let Writing { stores, space, heap, .. } = writing;
        stores.put_bytes = stores.put_bytes.saturating_add(packed_bytes);
        let store = stores.get_mut(number).ok_or_else(no_store)?;
        let slab = &slab.ranked(store.fixed.len()).ok_or_else(no_store)?;
        grow::grow(model, group, id, store, slab);
        let extent = model.var(group, id).map_or(&[][..], |var| &var.extent);
        let heap = heap.get_mut();
        let mut to = Destination { number, extent, slab, stores, space, heap, file };
        match mem {
            Some(mem) => {
                let store = to.store()?;
                let converted = match store.quantize {
                    Some(how) => {
                        let (values, converted) = quantize::quantized(store, how, mem, data)?;
                        let (ext, _) = to.store()?.number().ok_or_else(no_store)?;
                        let encoder = to.store()?.encoder(ext.natural_mem()).map_err(refused)?;
                        to.put(ElementEncoding::Convert(encoder), &values)?.and(converted)
                    }
                    None => {
                        let encoder = store.encoder(mem).map_err(refused)?;
                        to.put(ElementEncoding::Convert(encoder), data)?
                    }
                };
                let nc_type = model.var(group, id).map_or(0, |var| var.nc_type);
                Ok(tolerated(model.is_classic, nc_type, Some(mem), converted))
            }
            None => to.put_natural(fetch, data),
        }
    }
}

/// The variable that a put writes to, and what of the file it needs.
struct Destination<'a> {
    number: usize,
    extent: &'a [u64],
    slab: &'a Hyperslab<'a>,
    stores: &'a mut Stores,
    space: &'a mut zonda_hdf5::Space,
    heap: &'a mut zonda_hdf5::HeapWriter,
    file: &'a Arc<zonda_hdf5::File>,
}

impl Destination<'_> {
    fn store(&mut self) -> Outcome<&mut VarStore> {
        self.stores.get_mut(self.number).ok_or_else(|| refused(NcError::Internal))
    }

    /// Puts packed elements.
    fn put(&mut self, encode: ElementEncoding<'_>, src: &[u8]) -> Outcome<Converted> {
        let Destination { number, extent, slab, stores, space, heap, file } = self;
        let array = stores.get(*number).and_then(VarStore::array);
        let Stores { chunks, copies, .. } = &mut **stores;
        if let (Some(array), Some(chunks)) = (array, chunks) {
            let mut room = FileSpace { space, heap, copies, file };
            return Ok(chunks.put(array, extent, slab, encode, src, &mut room)?);
        }
        if self.takes_space() {
            self.store_complete()?;
        }
        let store = self.stores.get_mut(self.number).ok_or_else(|| refused(NcError::Internal))?;
        let (space, heap) = (&mut *self.space, &mut *self.heap);
        put_linear(store, self.extent, self.slab, &encode, src, space, heap, self.file)
    }

    /// Whether the next put takes space for a contiguous variable.
    fn takes_space(&self) -> bool {
        let store = self.stores.get(self.number);
        store.is_some_and(|store| match &store.keep {
            ElementStorage::Contiguous(run) => {
                run.addr.is_none() || (run.is_referred && store.data.form.has_pointers())
            }
            _ => false,
        })
    }

    /// Stores deferred chunks, before space is taken for something else.
    fn store_complete(&mut self) -> Outcome<()> {
        let Destination { stores, space, heap, file, .. } = self;
        stores.store_complete(space, heap, file)
    }

    /// Puts elements of user-defined types and strings, and numbers that no kernel converts.
    fn put_natural(&mut self, fetch: &mut dyn super::VlenSource, src: &[u8]) -> Outcome<Converted> {
        let form = self.store()?.data.form.clone();
        let (file_size, mem_size) = (form.file_size, form.size);
        if element::is_fixed_string(&form) {
            let mut values = Vec::new();
            element::fixed_strings(&form, fetch, src, &mut values);
            return self.put(ElementEncoding::Raw { elem_size: file_size }, &values);
        }
        if is_copy(&form) {
            return self.put(ElementEncoding::Raw { elem_size: file_size }, src);
        }
        if form.has_pointers() {
            let values = self.stored_with_heap(&form, fetch, src)?;
            return self.put(ElementEncoding::Raw { elem_size: file_size }, &values);
        }
        let run = |src: &[u8], dst: &mut [u8]| {
            element::plain(&form, src, dst);
            Converted::default()
        };
        self.put(ElementEncoding::Custom { mem_size, file_size, run: &run }, src)
    }

    /// Encodes elements: puts what they point to into the heap, and gives them in file form.
    fn stored_with_heap(
        &mut self,
        form: &ElementForm,
        fetch: &mut dyn super::VlenSource,
        src: &[u8],
    ) -> Outcome<Vec<u8>> {
        let n = src.len().checked_div(form.size.max(1)).unwrap_or(0);
        let no_memory = || refused(NcError::NoMem);
        let len = n.checked_mul(form.file_size).ok_or_else(no_memory)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| no_memory())?;
        values.resize(len, 0);
        self.store_complete()?;
        let (heap, space) = (&mut *self.heap, &mut *self.space);
        element::encode(form, heap, space, fetch, src, &mut values)?;
        Ok(values)
    }
}

/// Puts elements that are not in chunks.
fn put_linear(
    store: &mut VarStore,
    extent: &[u64],
    slab: &Hyperslab<'_>,
    encode: &ElementEncoding<'_>,
    src: &[u8],
    space: &mut zonda_hdf5::Space,
    heap: &mut zonda_hdf5::HeapWriter,
    file: &zonda_hdf5::File,
) -> Outcome<Converted> {
    let elem = store.data.form.file_size;
    let storage = file.storage();
    match &mut store.keep {
        ElementStorage::Contiguous(Contiguous { addr, len, is_referred, .. }) => {
            let (len, before) = (*len, *addr);
            // What elements point to is in the file only after the next commit. So elements of the last commit are not
            // written over: the variable gets a new run.
            let stays = !*is_referred || !store.data.form.has_pointers();
            let kept = before.filter(|_| stays);
            let at = match kept {
                Some(at) => at,
                None => take_run(space, file, len)?,
            };
            let position = file.position(at);
            if kept.is_none() {
                let covers = Rows::of(extent, slab, elem).is_some_and(|run| run.bytes(elem) == len);
                let new = NewRun { addr: at, len, before, is_covered: covers };
                prepare_run(store, &new, space, heap, file)?;
            }
            let span = Span::of(extent, slab, elem);
            let filled = match (&store.keep, store.fill(), span) {
                (ElementStorage::Contiguous(run), Some(fill), Some(span)) => {
                    let filled = run.make_way(&**storage, position, fill, span);
                    Some((run, filled?))
                }
                _ => None,
            };
            let converted = linear::put(&**storage, position, extent, slab, elem, encode, src)?;
            if let Some((run, filled)) = filled {
                run.has(filled);
            }
            Ok(converted)
        }
        ElementStorage::Compact { bytes } => {
            if Arc::get_mut(bytes).is_none() {
                *bytes = bytes.to_vec().into();
            }
            let own = Arc::get_mut(bytes).ok_or_else(|| refused(NcError::Internal))?;
            let converted = linear::put_here(own, extent, slab, elem, encode, src)?;
            store.is_changed = true;
            Ok(converted)
        }
        ElementStorage::Chunked { .. } => Err(refused(NcError::Internal)),
    }
}

/// A place that the elements of a contiguous variable get with a put.
struct NewRun {
    addr: FileAddr,
    len: u64,
    /// Where they were before, if anywhere.
    before: Option<FileAddr>,
    /// The put gives a value to each element.
    is_covered: bool,
}

/// Makes a new place ready for the first put, so that a failure of the put leaves nothing undefined: the
/// elements that it does not cover are copied from where they were, or filled.
#[cold]
fn prepare_run(
    store: &mut VarStore,
    run: &NewRun,
    space: &mut zonda_hdf5::Space,
    heap: &mut zonda_hdf5::HeapWriter,
    file: &zonda_hdf5::File,
) -> Outcome<()> {
    let &NewRun { addr, len, before, is_covered } = run;
    let (storage, position) = (file.storage(), file.position(addr));
    let mut filled = len;
    if let Some(before) = before {
        if !is_covered {
            linear::copy(&**storage, file.position(before), position, len)?;
        }
        space.free(before, len);
    } else if !is_covered && let Some(fill) = store.fill().map(Box::<[u8]>::from) {
        match FillCopies::of(&store.data.form, Some(&fill)) {
            Some(copies) => {
                let own =
                    &mut |elements: &mut [u8]| Ok(copies.copy_fills(elements, heap, space, file)?);
                linear::fill_each(&**storage, position, len, &fill, own)?;
            }
            None => filled = 0,
        }
    }
    store.keep_run(addr, len, filled, file);
    Ok(())
}

fn refused(code: NcError) -> Fault {
    Fault::Refused(code)
}

/// The error without the name of its object.
pub(super) fn code_of(error: Nc4Error) -> Fault {
    match error {
        Nc4Error::Hdf { error, .. } => Fault::Hdf(error),
        Nc4Error::Chunk { error, .. } => Fault::Chunk(error),
        Nc4Error::Unrepresentable { code, .. } | Nc4Error::Refused { code, .. } => refused(code),
        Nc4Error::Explained { code, why, .. } => Fault::Explained(code, why),
    }
}

/// Refuses text for numbers, and numbers for text.
fn check_text(nc_type: i32, mem: MemType) -> Outcome<()> {
    let is_text = nc_type == ExtType::Char.nc_type();
    if is_text == (mem == MemType::Text) { Ok(()) } else { Err(refused(NcError::Char)) }
}

impl Model {
    /// The dimension of an axis of a variable, to let it grow.
    pub(super) fn dim_of_axis(
        &mut self,
        group: GroupId,
        var: VarId,
        axis: usize,
    ) -> Option<&mut crate::model::Dim> {
        let id = *self.var(group, var)?.dims.get(axis)?;
        self.dims.get_mut(usize::try_from(id.0).ok()?)?.as_mut()
    }
}

#[cfg(test)]
mod tests;
