//! A netCDF-4 file that several ranks write. Elements without filters get their places when definitions end and when
//! lengths grow, on all ranks the same; then any rank writes alone.

use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, Dispatch as _, DispatchWrite as _, Grown, PieceShape, Reserve, Result,
    SharedChunks, TeamWrite, Transfer, UnfilledRun, Values, VarRef,
};
use zonda_hdf5::message::DataLayout;
use zonda_hdf5::{ChunkLocation, FileAddr};
use zonda_model::{NcError, VarId};
use zonda_slab::grid_difference;
use zonda_storage::{StorageError, check_place};

use super::Writing;
use super::contiguous::{Contiguous, take_run};
use super::store::ElementStorage;
use crate::element_form::ElementForm;
use crate::fault::{Fault, Outcome};
use crate::file::Nc4File;
use crate::model::GroupId;
use crate::tuning::MOST_TEAM_CHUNKS;
use crate::value_target::NoVlens;

/// Why ranks do not write the elements of a variable together.
pub(super) const POINTS: &str =
    "its elements are strings or sequences, which several ranks do not write together, as in HDF5";
const MANY_CHUNKS: &str = "it has more than 4194304 chunks, and each of several ranks that write it keeps all their places in \
                           memory; write it from one rank, or make its chunks larger";
const UNPLACED: &str = "its elements have no place that all ranks know";

/// How many chunks an extent has along each dimension.
fn chunk_counts(extent: &[u64], chunk_dims: &[u64]) -> Vec<u64> {
    extent.iter().zip(chunk_dims).map(|(&len, &dim)| len.div_ceil(dim.max(1))).collect()
}

/// Whether a chunk has places beyond the lengths of its variable.
fn reaches_beyond(key: &[u64], chunk_dims: &[u64], extent: &[u64]) -> bool {
    let ends =
        key.iter().zip(chunk_dims).map(|(&key, &dim)| key.saturating_add(1).saturating_mul(dim));
    ends.zip(extent).any(|(end, &len)| end > len)
}

fn is_too_many(counts: &[u64]) -> bool {
    counts.iter().fold(1_u64, |n, &count| n.saturating_mul(count)) > MOST_TEAM_CHUNKS
}

/// All ranks keep the places of all chunks, and those without filters get them at once, whoever puts to them: an extent of too many would take
/// all memory and time there is.
fn refuse_many(counts: &[u64]) -> Outcome<()> {
    if is_too_many(counts) { Err(Fault::because(NcError::BadChunk, MANY_CHUNKS)) } else { Ok(()) }
}

impl Nc4File {
    /// Why a variable gets no places, if it does not.
    fn unplaceable(&self, group: GroupId, id: VarId) -> Outcome<Option<&'static str>> {
        let (model, var) = self.var(group, id).map_err(super::put::code_of)?;
        let form = match var.draft.as_deref() {
            Some(draft) => Some(super::Typed::of(model, var.nc_type, draft.endianness)?.form),
            None => {
                let details = self.details(var)?;
                let (file, object) = (&details.file, details.object()?);
                let layout = object.layout(file)?;
                let is_own = details.at.file == 0 && object.external_files(file)?.is_none();
                if let DataLayout::Chunked(layout) = &layout
                    && is_too_many(&chunk_counts(&var.extent, &layout.chunk_dims))
                {
                    return Ok(Some(MANY_CHUNKS));
                }
                let is_placed = match layout {
                    DataLayout::Contiguous { .. } | DataLayout::Chunked(_) => is_own,
                    DataLayout::Compact { .. } => true,
                    DataLayout::Virtual { .. } => false,
                };
                if !is_placed {
                    return Ok(Some(UNPLACED));
                }
                ElementForm::of(&object.datatype(file)?)
            }
        };
        let Some(form) = form else { return Ok(Some(UNPLACED)) };
        Ok(match () {
            () if form.has_pointers() => Some(POINTS),
            () => None,
        })
    }

    /// All variables, in the order in which they get places.
    fn all_vars(&self) -> Result<Vec<(GroupId, VarId)>> {
        let model = self.model()?;
        let groups = (0..).map_while(|number| {
            let id = GroupId(number);
            model.group(id).map(|group| (id, group.vars.len()))
        });
        let vars = |(group, n): (GroupId, usize)| {
            (0..i32::try_from(n).unwrap_or(i32::MAX)).map(move |var| (group, VarId(var)))
        };
        Ok(groups.flat_map(vars).collect())
    }

    /// Gives places to the elements of all variables that have none.
    fn place_all(&mut self) -> Result<Vec<UnfilledRun>> {
        for (group, var) in self.all_vars()? {
            let of = VarRef { group, var };
            self.place_var(of, None, None).map_err(|fault| self.put_fault(of, fault))?;
            // Before the header of the next one is read.
            self.lengthen()?;
        }
        Ok(self.take_unfilled().0)
    }

    /// Makes the storage as long as all places need: nobody may have written to the last of them yet, and what is read of the
    /// file's definitions is read up to its length.
    fn lengthen(&self) -> std::result::Result<(), StorageError> {
        let Some(writing) = self.writing.as_deref() else { return Ok(()) };
        let file = self.files.main();
        let end = file.position(FileAddr(writing.space.end()));
        let storage = file.storage();
        if storage.len()? < end {
            storage.set_len(end)?;
        }
        Ok(())
    }

    /// The places that have to be filled, and those of them that are padded.
    fn take_unfilled(&mut self) -> (Vec<UnfilledRun>, Vec<UnfilledRun>) {
        let Some(writing) = self.writing.as_deref_mut() else { return Default::default() };
        (std::mem::take(&mut writing.unfilled), std::mem::take(&mut writing.padded))
    }

    /// Gives places to the elements of a variable that have none: to all, or to those that are new since it had the extent
    /// `before`; where it is to grow, as if it had grown.
    fn place_var(
        &mut self,
        of: VarRef,
        before: Option<&[u64]>,
        grown: Option<&[u64]>,
    ) -> Outcome<()> {
        let VarRef { group, var: id } = of;
        let is_known =
            self.writing.as_deref().is_some_and(|it| it.stores.number(group, id).is_some());
        if !is_known && self.unplaceable(group, id)?.is_some() {
            return Ok(());
        }
        let number = self.storage_of(group, id)?;
        let Nc4File { files, model, writing, .. } = self;
        let internal = || Fault::Refused(NcError::Internal);
        let (Some(model), Some(writing)) = (model.get_mut(), writing.as_deref_mut()) else {
            return Err(internal());
        };
        let var = model.var_mut(group, id).ok_or_else(internal)?;
        if let Some(draft) = &mut var.draft {
            // A fill value that comes later would not be in the places.
            draft.is_written = true;
        }
        let Writing { stores, space, unfilled, padded, .. } = writing;
        let is_filtered = stores.is_filtered(stores.get(number).and_then(super::VarStore::array));
        let (file, store) = (files.main(), stores.get_mut(number).ok_or_else(internal)?);
        let element = store.fill.clone();
        let take = |list: &mut Vec<UnfilledRun>, at: u64, len: u64| match list.last_mut() {
            Some(last) if last.var == of && last.at.saturating_add(last.len) == at => {
                last.len = last.len.saturating_add(len);
            }
            _ => {
                if let Some(element) = element.clone().filter(|_| len > 0) {
                    list.push(UnfilledRun { var: of, at, len, element });
                }
            }
        };
        match &store.keep {
            ElementStorage::Contiguous(Contiguous { addr: None, len, .. }) if *len > 0 => {
                let len = *len;
                let addr = take_run(space, file, len)?;
                store.keep_run(addr, len, len, file);
                take(unfilled, file.position(addr), len);
            }
            ElementStorage::Chunked { tree, layout, .. } => {
                let chunks = |extent: &[u64]| chunk_counts(extent, &layout.chunk_dims);
                let elem = u64::from(layout.elem_size);
                let len = layout.chunk_dims.iter().fold(elem, |n, &dim| n.saturating_mul(dim));
                let extent = grown.unwrap_or(&var.extent);
                let new = chunks(extent);
                refuse_many(&new)?;
                if is_filtered {
                    // They get places when they are stored. What there is has to be in memory on all ranks: one that reads more of
                    // it than another in a common step would go another way.
                    if before.is_none() {
                        let _n_chunks = tree.0.read().len()?;
                    }
                    return Ok(());
                }
                let mut tree = tree.0.write();
                let old = before.map_or_else(|| vec![0; new.len()], chunks);
                // What may fail comes first: then all of them get places, or none.
                let mut n_new = 0_u64;
                grid_difference(&old, &new, |key| {
                    n_new = n_new.saturating_add(u64::from(tree.get(key)?.is_none()));
                    Ok::<(), Fault>(())
                })?;
                let end = file.position(FileAddr(space.end()));
                check_place(end, len.saturating_mul(n_new), || file.storage().most_len())?;
                let place = |key: &[u64]| {
                    if tree.get(key)?.is_some() {
                        return Ok(());
                    }
                    let addr = take_run(space, file, len)?;
                    file.grown_to(addr.0.saturating_add(len));
                    let at = file.position(addr);
                    tree.insert(key, ChunkLocation { at, len, mask: 0 })?;
                    take(unfilled, at, len);
                    if reaches_beyond(key, &layout.chunk_dims, extent) {
                        take(padded, at, len);
                    }
                    Ok::<(), Fault>(())
                };
                grid_difference(&old, &new, place)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes a variable longer, and gives places to what is new.
    fn grow_together(&mut self, of: VarRef, extent: &[u64]) -> Outcome<Grown> {
        let VarRef { group, var: id } = of;
        let internal = || Fault::Refused(NcError::Internal);
        let before = self.var(group, id).map_err(super::put::code_of)?.1.extent.to_vec();
        // Before the variable is longer: where that fails, it is what it was.
        self.place_var(of, Some(&before), Some(extent))?;
        let number = self.storage_of(group, id)?;
        let (Some(model), Some(writing)) = (self.model.get_mut(), self.writing.as_deref_mut())
        else {
            return Err(internal());
        };
        let store = writing.stores.get_mut(number).ok_or_else(internal)?;
        super::grow::to(model, group, id, store, extent);
        let elements = self.new_elements(of, number, &before);
        let (unfilled, padded) = self.take_unfilled();
        Ok(Grown { unfilled, padded, elements })
    }

    /// The elements of the chunks that are new since a variable had the extent `before`, if they are one box.
    fn new_elements(
        &self,
        VarRef { group, var: id }: VarRef,
        number: usize,
        before: &[u64],
    ) -> Option<Vec<(u64, u64)>> {
        let store = self.writing.as_deref()?.stores.get(number)?;
        let ElementStorage::Chunked { layout, .. } = &store.keep else { return None };
        let var = self.model.get()?.var(group, id)?;
        let mut n_grown = 0;
        let mut box_of = Vec::with_capacity(before.len());
        for (axis, (&old, &new)) in before.iter().zip(&var.extent).enumerate() {
            let dim = *layout.chunk_dims.get(axis)?;
            // Chunks that reach beyond the lengths have elements that nobody puts now.
            let is_whole = store.fixed.get(axis)?.is_some() || new.checked_rem(dim)? == 0;
            let first = old.checked_next_multiple_of(dim)?.min(new);
            let grows = old.div_ceil(dim) < new.div_ceil(dim);
            n_grown = usize::from(grows).saturating_add(n_grown);
            box_of.push(if grows { (first, new) } else { (0, new) });
            is_whole.then_some(())?;
        }
        (n_grown == 1).then_some(box_of)
    }

    /// Reads all that a later step may need: then no rank reads more than another.
    fn load_all(&mut self) -> Result<()> {
        let model = self.model()?;
        let groups = (0..).map_while(|number| model.group(GroupId(number)));
        for group in groups {
            // An object that is damaged is found out by who asks for it.
            let _damaged = self.kept(&group.details, group.at);
            for var in &group.vars {
                let _damaged = self.details(var);
            }
        }
        Ok(())
    }
}

impl TeamWrite for Nc4File {
    fn join_team(&mut self) -> Result<()> {
        let Some(writing) = self.writing.as_deref_mut() else { return Ok(()) };
        writing.is_in_team = true;
        let is_new = writing.is_new;
        self.hdf5().forget();
        if is_new { Ok(()) } else { self.load_all() }
    }

    fn give_places(&mut self, _reserve: Reserve) -> Result<Vec<UnfilledRun>> {
        // What ranks have in memory of the file's metadata is not the same everywhere.
        self.hdf5().forget();
        if self.in_define_mode() {
            self.leave_define_mode()?;
            self.settle_fill_values();
        }
        self.settle()?;
        self.place_all()
    }

    fn extent(&self, var: VarRef) -> Vec<u64> {
        self.var(var.group, var.var).map(|(_, var)| var.extent.to_vec()).unwrap_or_default()
    }

    fn grow(&mut self, var: VarRef, extent: &[u64]) -> Result<Grown> {
        Ok(self.grow_together(var, extent).map_err(|fault| self.put_fault(var, fault))?)
    }

    fn grows_in_memory(&self) -> bool {
        // Indexes of chunks are in memory since the places were given.
        true
    }

    fn reach_end(&self) -> Result<()> {
        Ok(self.lengthen()?)
    }

    fn grows_alone(&self) -> bool {
        false
    }

    fn check_put_in_place(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        let of = put.of().var;
        let VarRef { group, var } = of;
        let is_known =
            self.writing.as_deref().is_none_or(|it| it.stores.number(group, var).is_some());
        // In define mode of the classic model the put is refused for that.
        if !is_known && !self.in_define_mode() {
            let found = self.unplaceable(group, var);
            let code = |why| match why {
                POINTS => NcError::HdfErr,
                MANY_CHUNKS => NcError::BadChunk,
                _ => NcError::NotBuilt,
            };
            let why = found.map_err(|fault| self.put_fault(of, fault))?;
            let why = why.unwrap_or(UNPLACED);
            return Err(self.put_fault(of, Fault::because(code(why), why)).into());
        }
        Ok(self.ready(put).map_err(|fault| self.put_fault(of, fault))?)
    }

    fn shared_chunks(&mut self) -> Option<&mut dyn SharedChunks> {
        Some(self)
    }

    fn piece_shape(&self, of: VarRef) -> Option<PieceShape> {
        let stores = &self.writing.as_deref()?.stores;
        let store = stores.get(stores.number(of.group, of.var)?)?;
        let elem_bytes = store.data.form.file_size;
        let dims = match &store.keep {
            ElementStorage::Contiguous(_) => TeamWrite::extent(self, of),
            ElementStorage::Chunked { layout, .. } => layout.chunk_dims.clone(),
            ElementStorage::Compact { .. } => return None,
        };
        Some(PieceShape { dims, elem_bytes })
    }

    fn is_in_definitions(&self, VarRef { group, var }: VarRef) -> bool {
        let stores = self.writing.as_deref().map(|writing| &writing.stores);
        let store = stores.and_then(|stores| stores.get(stores.number(group, var)?));
        store.is_some_and(|store| matches!(store.keep, ElementStorage::Compact { .. }))
    }

    fn take_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<()> {
        // Without the check, which refuses values that are longer in data mode of the classic model.
        self.put_att(att, values).map(drop)
    }

    fn put_in_place(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        let of = put.of().var;
        if values.bytes.len() != put.n_bytes {
            return Err(self.put_fault(of, Fault::wrong_length()).into());
        }
        if put.n_elems == 0 {
            return Ok(Converted::default());
        }
        let done = self.put_ready(put, &mut NoVlens::default(), values.bytes);
        Ok(done.map_err(|fault| self.put_fault(of, fault))?)
    }
}
