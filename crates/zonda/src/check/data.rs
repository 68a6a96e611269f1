//! Reading all attributes and data of a file, chunk by chunk where something is wrong.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use zonda_format::{GroupId, StorageKind, VarRef, VlenSink};
use zonda_model::{NcError, VarId};

use super::divided::{BoxOfVar, read_by_ranks};
use super::{Checked, Grade, Notes, Watched};
use crate::copy::Progress;
use crate::copy::box_read::read_box;
use crate::copy::boxes::{BoxWalk, BoxedArray, ChunksPresent, choose, choose_around};
use crate::copy::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ranks::Lead;
use crate::tuning::{
    ABSENT_PER_CHUNK, CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES, CHECK_BOXES_EACH, DAMAGED_INDEX_CHUNKS,
    POINTER_VALUE_BYTES,
};

/// A variable that is to be read.
#[derive(Debug)]
pub(super) struct VarPlace {
    path: String,
    var: VarRef,
    lens: Vec<u64>,
    /// Its elements are contiguous in this file.
    is_run: bool,
    /// Shape of its chunks; `None` where it is contiguous.
    chunks: Option<Vec<u64>>,
    elem: u64,
    /// A dimension along which the variable has fewer or more elements than the dimension: its name, the elements,
    /// and its length.
    odd: Option<(String, u64, u64)>,
}

impl VarPlace {
    /// Looks a variable up.
    ///
    /// # Errors
    /// What reading its definition meets.
    pub(super) fn of(file: &Dataset, var: VarRef) -> Result<VarPlace> {
        let mut odd = None;
        let (path, lens, elem) = file.in_group(var.group, |meta| {
            let view = meta.var(var.var)?;
            let path = [&meta.group_path()[..], b"/", view.name].concat();
            let path = String::from_utf8_lossy(&path).replacen("//", "/", 1);
            let mut lens = Vec::with_capacity(view.dims.len());
            for (d, &dim) in view.dims.iter().enumerate() {
                let extent = meta.extent(var.var).and_then(|extent| extent.get(d).copied());
                let dim = meta.dim(dim).ok();
                let len = dim.as_ref().map(|dim| dim.len);
                // Elements beyond a fixed length cannot be read.
                let fixed = dim.filter(|dim| !dim.is_unlimited);
                if let (Some(dim), Some(has)) = (&fixed, extent.filter(|has| len != Some(*has))) {
                    odd = Some((String::from_utf8_lossy(dim.name).into_owned(), has, dim.len));
                }
                let own = if fixed.is_some() { extent } else { None };
                lens.push(own.or(len).or(extent).unwrap_or(0));
            }
            let size = meta.type_size(view.nc_type)? as u64;
            let is_plain = view.ty().is_some();
            // Elements that refer to strings or sequences are estimated as one string each.
            let elem = if is_plain { size } else { size.max(POINTER_VALUE_BYTES) };
            Ok::<_, crate::Error>((path, lens, elem))
        })??;
        let chunks = file.chunk_shape(var)?;
        let is_run = file.capabilities().storage
            && !file.is_dap()
            && matches!(file.var_info(var)?.storage, StorageKind::Contiguous);
        Ok(VarPlace { path, var, lens, is_run, chunks, elem, odd })
    }

    fn array(&self) -> BoxedArray<'_> {
        let (lens, from) = (&self.lens[..], self.chunks.as_deref());
        BoxedArray { lens, from, plain_run: None, to: None, elem: self.elem }
    }

    /// Notes a dimension along which the variable has fewer or more elements.
    fn note_odd(&self, notes: &mut Notes) {
        if let Some((dim, has, len)) = &self.odd {
            let what = format!("it has {has} elements along {dim}, a dimension of {len}");
            notes.add(Grade::Unrepresentable, Some(&self.path), None, what);
        }
    }

    fn bytes(&self) -> u64 {
        self.lens.iter().fold(self.elem, |bytes, &len| bytes.saturating_mul(len))
    }
}

/// A step of the work on the data of a file, in the order of these.
enum DataStep<'p> {
    /// A variable begins.
    Begin(&'p VarPlace),
    /// Its chunks cannot be found.
    Failed(&'p VarPlace, Error),
    /// A box is read.
    Box(&'p VarPlace, Vec<u64>, Vec<u64>),
}

/// Reads variables one after the other, or has ranks read them.
struct DataReader<'a, 'p> {
    file: &'a Dataset,
    notes: &'a mut Notes,
    progress: &'a mut (dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'p),
    lead: Option<&'a Lead>,
    total: u64,
    done: u64,
    reader: BoxReader,
    /// Path of a variable without chunks of which a box cannot be read: the others cannot be read either.
    lost: Option<String>,
}

impl DataReader<'_, '_> {
    /// Reads variables; gives how many of their chunks are in the file.
    ///
    /// # Errors
    /// `EINTR` where the caller has had enough.
    fn all(&mut self, places: &[VarPlace]) -> Result<u64> {
        let at_once = self.lead.map_or(1, |lead| lead.size().saturating_mul(CHECK_BOXES_EACH));
        let (mut steps, mut n_boxes, mut n_chunks) = (Vec::new(), 0, 0u64);
        for place in places {
            steps.push(DataStep::Begin(place));
            let walk = match self.walk(place) {
                Ok((n, walk)) => {
                    n_chunks = n_chunks.saturating_add(n);
                    walk
                }
                Err(error) => {
                    steps.push(DataStep::Failed(place, error));
                    let chunk = place.chunks.as_deref().unwrap_or_default();
                    let chunks = place.lens.iter().zip(chunk).map(|(len, n)| len.div_ceil(*n));
                    if chunks.fold(1, u64::saturating_mul) > DAMAGED_INDEX_CHUNKS {
                        continue;
                    }
                    let shape = choose(&place.array(), CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES).shape;
                    BoxWalk::new(&place.lens, &shape)
                }
            };
            for (start, count) in walk {
                steps.push(DataStep::Box(place, start, count));
                n_boxes += 1;
                if n_boxes == at_once {
                    self.steps(&std::mem::take(&mut steps))?;
                    n_boxes = 0;
                    if self.is_lost(place) {
                        break;
                    }
                }
            }
        }
        self.steps(&steps)?;
        Ok(n_chunks)
    }

    fn is_lost(&self, place: &VarPlace) -> bool {
        self.lost.as_ref().is_some_and(|path| *path == place.path)
    }

    /// Makes some steps. Boxes are read before anything is noted, since all ranks read at the same time.
    fn steps(&mut self, steps: &[DataStep<'_>]) -> Result<()> {
        let boxes = steps.iter().filter_map(|step| match step {
            DataStep::Box(place, start, count) => Some((*place, &start[..], &count[..])),
            _ => None,
        });
        let mut found = self.read(&boxes.collect::<Vec<_>>())?.into_iter();
        for step in steps {
            match step {
                DataStep::Begin(place) => place.note_odd(self.notes),
                DataStep::Failed(place, error) => {
                    self.notes.error(Some(&place.path), error);
                }
                DataStep::Box(place, _, count) => {
                    let errors = found.next().unwrap_or_default();
                    if self.is_lost(place) {
                        continue;
                    }
                    for error in &errors {
                        self.notes.error(Some(&place.path), error);
                    }
                    if !errors.is_empty() && place.chunks.is_none() {
                        self.lost = Some(place.path.clone());
                        continue;
                    }
                    let bytes = count.iter().fold(place.elem, |bytes, &n| bytes.saturating_mul(n));
                    self.done = self.done.saturating_add(bytes).min(self.total);
                    self.report(place)?;
                }
            }
        }
        Ok(())
    }

    /// Reads boxes; gives the errors of each.
    fn read(&mut self, boxes: &[(&VarPlace, &[u64], &[u64])]) -> Result<Vec<Vec<Error>>> {
        let DataReader { file, progress, lead, total, done, reader, .. } = self;
        let (total_bytes, done_bytes) = (*total, *done);
        let mut read = |place: &VarPlace, part: (&[u64], &[u64])| {
            let var = &*place.path;
            let mut report = || Progress { var, done_bytes, total_bytes }.report(&mut **progress);
            reader.errors(file, place, part, &mut report)
        };
        let Some(lead) = lead.filter(|_| boxes.len() > 1) else {
            return boxes
                .iter()
                .map(|&(place, start, count)| read(place, (start, count)))
                .collect();
        };
        let parts: Vec<BoxOfVar> = boxes
            .iter()
            .enumerate()
            .map(|(number, &(place, start, count))| BoxOfVar {
                rank: (number + 1) % lead.size(),
                var: place.var,
                start: start.to_vec(),
                count: count.to_vec(),
            })
            .collect();
        read_by_ranks(lead, file.path(), &parts, &mut |part| {
            let found = boxes.iter().find(|(place, ..)| place.var == part.var);
            let place = found.ok_or(NcError::Internal)?.0;
            read(place, (&part.start, &part.count))
        })
    }

    fn report(&mut self, place: &VarPlace) -> Result<()> {
        let (done_bytes, total_bytes) = (self.done, self.total);
        Progress { var: &place.path, done_bytes, total_bytes }.report(self.progress)
    }

    /// How many chunks of a variable are in the file, and the boxes that contain any: elements that were never
    /// written are not read.
    fn walk(&self, place: &VarPlace) -> Result<(u64, BoxWalk)> {
        let Some(shape) = &place.chunks else {
            let nothing =
                place.is_run && !place.lens.is_empty() && self.file.stored(place.var)?.bytes == 0;
            let shape = choose(&place.array(), CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES).shape;
            let walk = match nothing {
                true => BoxWalk::over(&[], &[], BTreeSet::new()),
                false => BoxWalk::new(&place.lens, &shape),
            };
            return Ok((0, walk));
        };
        let mut keys = Vec::new();
        self.file.for_each_chunk(place.var, |key, _| keys.push(key.to_vec()))?;
        let there = ChunksPresent { shape, keys: &keys };
        let (_, walk) = choose_around(
            &place.array(),
            (CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES),
            &[there],
            ABSENT_PER_CHUNK,
        );
        Ok((keys.len() as u64, walk))
    }
}

/// Reads boxes of variables.
#[derive(Debug, Default)]
pub(super) struct BoxReader {
    data: Vec<u8>,
}

impl BoxReader {
    /// Reads a box: what is wrong with it, chunk by chunk where it cannot be read as a whole.
    ///
    /// # Errors
    /// Those of `report`, which is called after each chunk.
    pub(super) fn errors(
        &mut self,
        file: &Dataset,
        place: &VarPlace,
        (start, count): (&[u64], &[u64]),
        report: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Error>> {
        let Err(of_box) = self.read(file, place, start, count) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (inner, shape) in place.chunks.iter().flat_map(|chunk| BoxWalk::new(count, chunk)) {
            let at: Vec<u64> = start.iter().zip(&inner).map(|(a, b)| a + b).collect();
            if let Err(error) = self.read(file, place, &at, &shape) {
                // Where a filter is missing for one chunk, it is missing for all.
                let is_over = Grade::of(&error) == Grade::Unchecked;
                found.push(error);
                if is_over {
                    break;
                }
            }
            report()?;
        }
        if found.is_empty() {
            found.push(of_box);
        }
        Ok(found)
    }

    fn read(
        &mut self,
        file: &Dataset,
        place: &VarPlace,
        start: &[u64],
        count: &[u64],
    ) -> Result<()> {
        let to = (&mut self.data, &mut VlenBuffer::default());
        read_box(file, place.var, None, (start, count), to)
    }
}

/// Reads all attributes and values of a file. Objects whose paths are in `reported` were noted before, and are not
/// noted again.
///
/// # Errors
/// `EINTR` where the caller has had enough.
pub(super) fn read_all(
    file: &Dataset,
    reported: &BTreeSet<String>,
    checked: &mut Checked,
    notes: &mut Notes,
    (progress, lead): Watched<'_, '_>,
) -> Result<()> {
    let mut places = Vec::new();
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop() {
        let path = match file.in_group(group, |meta| meta.group_path()) {
            Ok(path) => String::from_utf8_lossy(&path).into_owned(),
            Err(error) => {
                notes.error(None, &error);
                continue;
            }
        };
        attributes(file, VarRef::group(group), &path, notes);
        let (n_vars, children) =
            file.in_group(group, |meta| (meta.n_vars(), meta.groups().to_vec()))?;
        groups.extend(children.into_iter().rev());
        for number in (0..n_vars).map_while(|number| i32::try_from(number).ok()) {
            let var = VarRef { group, var: VarId(number) };
            match VarPlace::of(file, var) {
                Ok(place) => {
                    attributes(file, var, &place.path, notes);
                    places.push(place);
                }
                Err(error) => {
                    let name = file.in_group(group, |meta| {
                        meta.var(var.var)
                            .map(|view| String::from_utf8_lossy(view.name).into_owned())
                    })?;
                    let slash = if path.ends_with('/') { "" } else { "/" };
                    let path = format!("{path}{slash}{}", name.unwrap_or_default());
                    if !reported.contains(&path) {
                        notes.error(Some(&path), &error);
                    }
                }
            }
        }
    }
    checked.n_vars = places.len();
    let total = places.iter().fold(0u64, |sum, place| sum.saturating_add(place.bytes()));
    let (done, reader, lost) = (0, BoxReader::default(), None);
    let mut data = DataReader { file, notes, progress, lead, total, done, reader, lost };
    checked.n_chunks = checked.n_chunks.saturating_add(data.all(&places)?);
    checked.data_bytes = data.done;
    Ok(())
}

/// Reads all attributes of a variable or a group.
fn attributes(file: &Dataset, owner: VarRef, path: &str, notes: &mut Notes) {
    let n = file.in_group(owner.group, |meta| meta.n_atts(owner.var)).and_then(|n| n);
    let n = match n {
        Ok(n) => n,
        Err(error) => {
            notes.error(Some(path), &error);
            return;
        }
    };
    match file.att_faults(owner) {
        Ok(faults) => {
            for error in &faults {
                notes.error(Some(path), error);
            }
        }
        Err(error) => {
            notes.error(Some(path), &error);
        }
    }
    for number in 0..n {
        let read = || {
            let name = file.in_group(owner.group, |meta| {
                Ok::<_, Error>(meta.att(owner.var, number)?.name.into_owned())
            })??;
            let to = (&mut Vec::new(), Some(&mut VlenBuffer::default() as &mut dyn VlenSink));
            // Without conversion nothing is out of range.
            file.get_att_list(owner, &name, None, to).map(drop)
        };
        if let Err(error) = read() {
            notes.error(Some(path), &error);
        }
    }
}
