//! The data of a copy, variable by variable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use zonda_format::{StorageKind, Values};
use zonda_model::{Hyperslab, NcError, memory};
use zonda_nc4::UnwrittenElements;

use super::ahead;
use super::box_read::{indices, read_box, to_len};
use super::boxes::{BoxWalk, BoxedArray, Boxes, choose, choose_around};
use super::define::{TargetVar, fault};
use super::divided::{BoxToCopy, Division};
use super::raw::{self, Chunks};
use super::resume::CompleteVars;
use super::salvage::{Loss, is_ours};
use super::spill::Spill;
use super::tree::shown;
use super::vlen_buffer::VlenBuffer;
use super::{Copied, CopiedVar, CopyMethod, CopyOptions, Progress};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::tuning::{
    COPY_ABSENT_PER_CHUNK, COPY_BOX_BYTES, COPY_FAR_PLAIN_BOX_BYTES, COPY_HEAP_BYTES,
    COPY_PLAIN_BOX_BYTES, COPY_RUN_BYTES, COPY_SPARSE_BOX_BYTES, DAMAGED_INDEX_CHUNKS,
    LONG_FAR_PLAIN_RUN_BYTES, LONG_PLAIN_RUN_BYTES, POINTER_VALUE_BYTES, SPILL_DECODES,
};

/// Chunks of an array.
fn n_chunks(lens: &[u64], shape: Option<Vec<u64>>) -> u64 {
    let shape = shape.unwrap_or_default();
    let along = lens.iter().zip(shape).map(|(len, n)| len.div_ceil(n.max(1)));
    along.fold(1, u64::saturating_mul)
}

fn copied_var(made: &TargetVar<'_>, way: CopyMethod, reads: f64) -> CopiedVar {
    CopiedVar {
        path: shown(&made.var.path),
        bytes: made.var.bytes(),
        way,
        reads,
        n_elems: made.var.lens().iter().fold(1, |n, &len| n.saturating_mul(len)),
        n_lost: 0,
    }
}

/// The data of a copy that is under way.
pub(super) struct DataCopy<'a> {
    pub source: &'a Dataset,
    pub target: &'a Dataset,
    pub options: &'a CopyOptions,
    /// Where the target is being written.
    pub path: &'a Path,
    pub progress: &'a mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    pub total: u64,
    pub done: u64,
    /// Memory for a box, and for the one that is read while the first is written.
    pub data: Vec<u8>,
    pub ahead: Vec<u8>,
    pub pieces: VlenBuffer,
    /// Bytes of strings and sequences that wait in the target.
    pub in_heap: usize,
    /// What could not be read, in a salvaged copy.
    pub lost: Vec<Loss>,
    pub n_lost: u64,
    /// Elements that are lost of each variable, by its path.
    pub lost_elems: BTreeMap<String, u64>,
    /// Reads of parts of one variable that failed.
    pub tries: u64,
    /// Which variables are complete, in a copy that may be completed later.
    pub complete: Option<&'a mut CompleteVars>,
}

/// Boxes, the walk over those that are to be copied, and whether some are left out.
type ChosenBoxes = (Boxes, BoxWalk, bool);

/// A variable that is copied in boxes.
struct BoxedVar<'m> {
    made: &'m TargetVar<'m>,
    boxes: Boxes,
    /// The boxes that have elements. Boxes that were never written stay so where both files read them as the same.
    walk: BoxWalk,
    is_sparse: bool,
    index: usize,
    /// How ranks divide it, if they do.
    division: Option<Division>,
}

impl BoxedVar<'_> {
    fn part(&self, (start, count): (Vec<u64>, Vec<u64>)) -> BoxToCopy<'_> {
        BoxToCopy { made: self.made, division: self.division.as_ref(), start, count }
    }
}

impl DataCopy<'_> {
    /// Copies the data of all variables.
    ///
    /// # Errors
    /// What reading and writing meet, with the name of the variable; `EINTR` where the caller has
    /// had enough.
    pub(super) fn run(&mut self, made: &[TargetVar<'_>], copied: &mut Copied) -> Result<()> {
        let mut together: Vec<BoxedVar<'_>> = Vec::new();
        let n_records = made.iter().filter(|made| made.has_data && made.var.is_record()).count();
        // Where a classic file has records side by side, all variables go record by record.
        let interleaves = n_records > 1 && !(self.source.is_hdf5() && self.target.is_hdf5());
        for made in made.iter().filter(|made| made.has_data) {
            let at = |error| fault("variable", &made.var.path, error);
            let index = copied.vars.len();
            if self.complete.as_deref().is_some_and(|complete| complete.has(&made.var.path)) {
                copied.vars.push(copied_var(made, CopyMethod::Before, 1.0));
                self.step(made, made.var.bytes())?;
                continue;
            }
            let begun = self.begin(made, interleaves, n_records as u64);
            let (way, boxes) = match begun {
                Err(error) if self.options.salvage && !is_ours(&error) => {
                    self.fill_all(made, &error).map_err(at)?;
                    (CopyMethod::Nothing, None)
                }
                begun => begun.map_err(at)?,
            };
            let reads = boxes.as_ref().map_or(1.0, |(boxes, ..)| boxes.reads);
            copied.vars.push(copied_var(made, way, reads));
            let Some((boxes, walk, is_sparse)) = boxes else {
                self.is_complete(made)?;
                continue;
            };
            let division = self.division(made).map_err(at)?;
            let job = BoxedVar { made, boxes, walk, is_sparse, index, division };
            if interleaves && made.var.is_record() && way == CopyMethod::Values {
                together.push(job);
                continue;
            }
            let options = self.options;
            if let Some(lead) = options.lead.as_deref()
                && job.division.is_some()
                && !self.goes_by_file(&job)
            {
                self.divided(lead, job.walk.clone().map(|part| job.part(part)))?;
                continue;
            }
            let way = self.one(job).map_err(at)?;
            copied.vars[index].way = way;
            if way == CopyMethod::Spilled {
                copied.vars[index].reads = 1.0;
            }
            self.is_complete(made)?;
        }
        let done: Vec<&TargetVar<'_>> = together.iter().map(|job| job.made).collect();
        self.side_by_side(together)?;
        done.into_iter().try_for_each(|made| self.is_complete(made))
    }

    /// Notes a variable of which all has been put.
    fn is_complete(&mut self, made: &TargetVar<'_>) -> Result<()> {
        let target = self.target;
        self.complete.as_deref_mut().map_or(Ok(()), |complete| complete.add(target, &made.var.path))
    }

    /// Begins with a variable. Copies it at once where its chunks can be copied as they are stored; for others
    /// chooses the boxes, and leaves out those that were never written.
    fn begin(
        &mut self,
        made: &TargetVar<'_>,
        interleaves: bool,
        n_records: u64,
    ) -> Result<(CopyMethod, Option<ChosenBoxes>)> {
        let (var, lens) = (made.var, made.var.lens());
        if lens.contains(&0) {
            return Ok((CopyMethod::Nothing, None));
        }
        if self.target.is_hdf5() && var.axes.iter().any(|axis| axis.is_unlimited) {
            // Extends the target to all records at once, so that they are not committed one by one.
            let (group, id) = (made.target.group, made.target.var);
            self.target.change_hdf5(|file| file.extend(group, id, &lens))?;
        }
        // A salvaged copy decodes chunks, where their filters are available, to find damage.
        let looks_inside = self.options.salvage && self.is_decodable(made);
        if !looks_inside && raw::fits(self.source, made, self.target)? {
            self.pass_through(made)?;
            return Ok((CopyMethod::Stored, None));
        }
        if self.is_unwritten(made)? {
            self.step(made, var.bytes())?;
            return Ok((CopyMethod::Nothing, None));
        }
        let elem = if var.has_pointers { POINTER_VALUE_BYTES } else { var.elem as u64 };
        let from = self.source.chunk_shape(var.source)?;
        let to = self.target.chunk_shape(made.target)?;
        let is_plain = from.is_some() && {
            let (group, var) = (var.source.group, var.source.var);
            self.source.hdf5(|file| Ok(file.pipeline(group, var)?.is_empty()))?
        };
        let to_plain = to.is_some() && {
            let (group, var) = (made.target.group, made.target.var);
            self.target.hdf5(|file| Ok(file.pipeline(group, var)?.is_empty()))?
        };
        // What lies far away costs more to find than to fetch.
        let (plain_box, plain_run) = match self.source.is_remote() {
            true => (COPY_FAR_PLAIN_BOX_BYTES, LONG_FAR_PLAIN_RUN_BYTES),
            false => (COPY_PLAIN_BOX_BYTES, LONG_PLAIN_RUN_BYTES),
        };
        let array = BoxedArray {
            lens: &lens,
            from: from.as_deref(),
            plain_run: is_plain.then_some(plain_run),
            to: to.as_deref(),
            elem,
        };
        let sparse = self.sparse(made)?;
        if sparse.is_none() && self.target.is_hdf5() && !self.options.salvage {
            // Each element is put, so fill values would be overwritten.
            let (group, id) = (made.target.group, made.target.var);
            self.target.change_hdf5(|file| file.place_unfilled(group, id))?;
        }
        let most = self.most();
        if let Some(chunks) = sparse {
            // Absent chunks in a box are written, too.
            let sizes = (COPY_SPARSE_BOX_BYTES, most);
            let (boxes, walk) =
                choose_around(&array, sizes, &[chunks.there()], COPY_ABSENT_PER_CHUNK);
            return Ok((CopyMethod::Values, Some((boxes, walk, true))));
        }
        let goal = match () {
            () if from.is_none() && to.is_none() => COPY_RUN_BYTES,
            () if interleaves && var.is_record() => COPY_BOX_BYTES / n_records.max(1),
            () if (is_plain || from.is_none()) && (to_plain || to.is_none()) => plain_box,
            () => COPY_BOX_BYTES,
        };
        let boxes = choose(&array, goal.min(most), most);
        let walk = BoxWalk::new(&lens, &boxes.shape);
        Ok((CopyMethod::Values, Some((boxes, walk, false))))
    }

    /// Bytes of memory for boxes: half of all, the other half is for chunks that are decoded and filtered.
    pub(super) fn most(&self) -> u64 {
        self.options.memory_bytes / 2
    }

    /// The chunks that the source has, where some are absent and may stay absent in the target.
    fn sparse(&self, made: &TargetVar<'_>) -> Result<Option<Chunks>> {
        if !(self.source.is_hdf5() && self.target.is_hdf5() && self.same_fill(made)?) {
            return Ok(None);
        }
        let var = made.var.source;
        let chunks = self.source.hdf5(|file| {
            let is_whole = *file.extent(var.group, var.var)? == made.var.lens()[..];
            Ok(is_whole.then(|| Chunks::of(file, var)))
        })?;
        let Some(chunks) = chunks else { return Ok(None) };
        match chunks {
            // Then the boxes are read one by one to find what is there.
            Err(error) if self.options.salvage && !is_ours(&error) => {
                let n_chunks =
                    n_chunks(&made.var.lens(), self.source.chunk_shape(made.var.source)?);
                if n_chunks > DAMAGED_INDEX_CHUNKS { Err(error) } else { Ok(None) }
            }
            chunks => Ok(chunks?.filter(|chunks| !chunks.is_complete())),
        }
    }

    /// Whether elements that were never written read as the same fill value in both files.
    fn same_fill(&self, made: &TargetVar<'_>) -> Result<bool> {
        let (from, to) = (made.var.source, made.target);
        if made.var.has_pointers {
            return Ok(false);
        }
        let old = self.source.hdf5(|file| Ok(file.never_written(from.group, from.var)?))?;
        let new = self.target.hdf5(|file| Ok(file.never_written(to.group, to.var)?))?;
        let mut a = memory::filled(made.var.elem, 0)?;
        let mut b = a.clone();
        match (old, new) {
            (UnwrittenElements::Undefined, _) | (_, UnwrittenElements::Undefined) => {
                return Ok(old == new);
            }
            (UnwrittenElements::Value, _) => {
                self.source.fill_value(from, &mut VlenBuffer::default(), &mut a)?
            }
            (UnwrittenElements::Zeros, _) => {}
        }
        self.target.fill_value(to, &mut VlenBuffer::default(), &mut b)?;
        Ok(a == b)
    }

    /// Whether the source stores no element of the variable, and the target needs none, since both read as the same
    /// fill value.
    fn is_unwritten(&self, made: &TargetVar<'_>) -> Result<bool> {
        if !(self.source.is_hdf5() && self.target.is_hdf5()) || made.var.axes.is_empty() {
            return Ok(false);
        }
        let info = self.source.var_info(made.var.source)?;
        let is_run = matches!(info.storage, StorageKind::Contiguous);
        Ok(is_run && self.source.stored(made.var.source)?.bytes == 0 && self.same_fill(made)?)
    }

    fn pass_through(&mut self, made: &TargetVar<'_>) -> Result<()> {
        let chunks = self.source.hdf5(|file| Chunks::of(file, made.var.source))?;
        let Some(chunks) = chunks else { return Err(NcError::Internal.into()) };
        let (source, target) = (self.source, self.target);
        raw::copy(source, made, target, &chunks, &mut |bytes| self.step(made, bytes))?;
        if chunks.is_complete() || self.same_fill(made)? {
            return Ok(());
        }
        let lens = made.var.lens();
        for key in chunks.missing() {
            let start: Vec<u64> = key.iter().zip(&chunks.shape).map(|(k, n)| k * n).collect();
            let count: Vec<u64> =
                (0..lens.len()).map(|d| chunks.shape[d].min(lens[d] - start[d])).collect();
            self.read(made, &start, &count)?;
            self.write(made, &start, &count)?;
        }
        Ok(())
    }

    /// Whether a variable goes by way of a temporary file.
    fn goes_by_file(&self, job: &BoxedVar<'_>) -> bool {
        job.boxes.reads > SPILL_DECODES
            && job.made.var.bytes() > self.most()
            && !job.made.var.has_pointers
            && !job.is_sparse
            && !self.options.salvage
    }

    /// Copies a variable by itself.
    fn one(&mut self, mut job: BoxedVar<'_>) -> Result<CopyMethod> {
        let made = job.made;
        if self.goes_by_file(&job) {
            self.by_file(made)?;
            return Ok(CopyMethod::Spilled);
        }
        let box_bytes = bytes_of(made, &job.boxes.shape);
        if box_bytes < made.var.bytes() && !made.var.has_pointers && !self.options.salvage {
            let source = self.source;
            let read = |part: &mut BoxInMemory| part.read(source, made, &mut VlenBuffer::default());
            let walk = job.walk.clone();
            self.by_parts(made, &job.boxes.shape, walk, read, |transfer, part| {
                transfer.write_box(made, part)?;
                transfer.step(made, bytes_of(made, &part.count))
            })?;
            return Ok(CopyMethod::Values);
        }
        while job.walk.peek().is_some() {
            self.next_box(&mut job)?;
        }
        Ok(CopyMethod::Values)
    }

    /// Goes through a variable in boxes of one shape. Each is read while the one before is written, where there is
    /// memory for both.
    fn by_parts(
        &mut self,
        made: &TargetVar<'_>,
        shape: &[u64],
        mut walk: BoxWalk,
        mut read: impl FnMut(&mut BoxInMemory) -> Result<()> + Send,
        mut write: impl FnMut(&mut Self, &BoxInMemory) -> Result<()>,
    ) -> Result<()> {
        let n_buffers = match bytes_of(made, shape).saturating_mul(2) <= self.most() {
            true => 2,
            false => 1,
        };
        let mut buffers = [&mut self.data, &mut self.ahead]
            .map(|data| BoxInMemory::in_memory(std::mem::take(data)));
        let fill = |part: &mut BoxInMemory| {
            let Some((start, count)) = walk.next() else { return Ok(false) };
            (part.start, part.count) = (start, count);
            read(part).map(|()| true)
        };
        let done = ahead::run(&mut buffers[..n_buffers], fill, |part| write(self, part));
        [self.data, self.ahead] = buffers.map(|part| part.data);
        done
    }

    fn next_box(&mut self, job: &mut BoxedVar<'_>) -> Result<()> {
        let Some((start, count)) = job.walk.next() else { return Ok(()) };
        let made = job.made;
        match self.read(made, &start, &count) {
            Err(error) if self.options.salvage && !is_ours(&error) => {
                self.piecemeal(made, (&start, &count), &error)?;
            }
            read => {
                read?;
                self.write(made, &start, &count)?;
            }
        }
        self.step(made, bytes_of(made, &count))
    }

    /// Copies variables whose records are interleaved in a file.
    fn side_by_side(&mut self, mut jobs: Vec<BoxedVar<'_>>) -> Result<()> {
        let options = self.options;
        if let Some(lead) = options.lead.as_deref()
            && jobs.iter().any(|job| job.division.is_some())
        {
            let mut walks: Vec<BoxWalk> = jobs.iter().map(|job| job.walk.clone()).collect();
            let in_order = std::iter::from_fn(|| {
                let next = walks.iter_mut().zip(&jobs).filter(|(walk, _)| walk.peek().is_some());
                let record = |(walk, job): &(&mut BoxWalk, &BoxedVar<'_>)| {
                    Some((*walk.peek()?.first()?, job.index))
                };
                let (walk, job) = next.min_by_key(record)?;
                Some(job.part(walk.next()?))
            });
            return self.divided(lead, in_order);
        }
        loop {
            let record = |job: &BoxedVar<'_>| Some((*job.walk.peek()?.first()?, job.index));
            let next = jobs.iter_mut().filter(|job| job.walk.peek().is_some());
            let Some(job) = next.min_by_key(|job| record(job)) else { return Ok(()) };
            let made = job.made;
            self.next_box(job).map_err(|error| fault("variable", &made.var.path, error))?;
        }
    }

    /// Copies a variable by way of a temporary file.
    fn by_file(&mut self, made: &TargetVar<'_>) -> Result<()> {
        let (lens, elem) = (made.var.lens(), made.var.elem);
        let from = self.source.chunk_shape(made.var.source)?;
        let to = self.target.chunk_shape(made.target)?;
        // Whole chunks of the target, and pieces of the file that are long on both sides.
        let most = self.most() / 2;
        let array = BoxedArray {
            lens: &lens,
            from: None,
            plain_run: None,
            to: to.as_deref(),
            elem: elem as u64,
        };
        let last = choose(&array, COPY_BOX_BYTES.min(most), most).shape;
        // Boxes of whole chunks of the source that as few boxes of the target as possible cut.
        let array = BoxedArray { from: Some(&last), to: from.as_deref(), ..array };
        let first = choose(&array, most, most).shape;
        let spill = Spill::new(self.path, &lens, &first, &last, elem)?;
        let source = self.source;
        let read = |part: &mut BoxInMemory| part.read(source, made, &mut VlenBuffer::default());
        self.by_parts(made, &first, BoxWalk::new(&lens, &first), read, |transfer, part| {
            spill.put((&part.start, &part.count), &part.data)?;
            transfer.step(made, bytes_of(made, &part.count) / 2)
        })?;
        let get = |part: &mut BoxInMemory| {
            memory::resize(&mut part.data, to_len(bytes_of(made, &part.count))?, 0)?;
            spill.get((&part.start, &part.count), &mut part.data)
        };
        self.by_parts(made, &last, BoxWalk::new(&lens, &last), get, |transfer, part| {
            transfer.write_box(made, part)?;
            let bytes = bytes_of(made, &part.count);
            transfer.step(made, bytes - bytes / 2)
        })
    }

    pub(super) fn read(
        &mut self,
        made: &TargetVar<'_>,
        start: &[u64],
        count: &[u64],
    ) -> Result<()> {
        if self.options.salvage {
            self.check_end(made, start, count)?;
        }
        let data = std::mem::take(&mut self.data);
        let mut part = BoxInMemory { start: start.to_vec(), count: count.to_vec(), data };
        let read = part.read(self.source, made, &mut self.pieces);
        self.data = part.data;
        read
    }

    pub(super) fn write(
        &mut self,
        made: &TargetVar<'_>,
        start: &[u64],
        count: &[u64],
    ) -> Result<()> {
        let data = std::mem::take(&mut self.data);
        let part = BoxInMemory { start: start.to_vec(), count: count.to_vec(), data };
        let written = self.write_box(made, &part);
        self.data = part.data;
        written
    }

    fn write_box(&mut self, made: &TargetVar<'_>, part: &BoxInMemory) -> Result<()> {
        let (start, count) = (indices(&part.start)?, indices(&part.count)?);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let values = Values { bytes: &part.data, fetch: Some(&mut self.pieces) };
        let _ = self.target.put_values(made.target, &slab, values)?;
        self.in_heap += self.pieces.len();
        if self.in_heap > COPY_HEAP_BYTES {
            self.in_heap = 0;
            self.target.sync()?;
        }
        Ok(())
    }

    /// Reports bytes that were copied to the caller.
    pub(super) fn step(&mut self, made: &TargetVar<'_>, bytes: u64) -> Result<()> {
        self.done = self.done.saturating_add(bytes).min(self.total);
        let path = shown(&made.var.path);
        Progress { var: &path, done_bytes: self.done, total_bytes: self.total }
            .report(self.progress)
    }
}

/// A box of elements in memory.
struct BoxInMemory {
    start: Vec<u64>,
    count: Vec<u64>,
    data: Vec<u8>,
}

impl BoxInMemory {
    fn in_memory(data: Vec<u8>) -> BoxInMemory {
        BoxInMemory { start: Vec::new(), count: Vec::new(), data }
    }

    /// Reads its elements, and what they point to.
    fn read(
        &mut self,
        source: &Dataset,
        made: &TargetVar<'_>,
        pieces: &mut VlenBuffer,
    ) -> Result<()> {
        read_box(
            source,
            made.var.source,
            None,
            (&self.start, &self.count),
            (&mut self.data, pieces),
        )
    }
}

pub(super) fn bytes_of(made: &TargetVar<'_>, count: &[u64]) -> u64 {
    count.iter().fold(made.var.elem as u64, |bytes, &n| bytes.saturating_mul(n))
}
