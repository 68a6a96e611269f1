//! Reading all attributes and data of a file, chunk by chunk where something is wrong.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use zonda_format::{GroupId, StorageKind, VarRef, VlenSink};
use zonda_model::VarId;

use super::{Checked, Grade, Notes};
use crate::copy::Progress;
use crate::copy::box_read::read_box;
use crate::copy::boxes::{BoxWalk, BoxedArray, ChunksPresent, choose, choose_around};
use crate::copy::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::tuning::{
    ABSENT_PER_CHUNK, CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES, DAMAGED_INDEX_CHUNKS,
    POINTER_VALUE_BYTES,
};

/// A variable that is to be read.
#[derive(Debug)]
struct VarPlace {
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
    fn of(file: &Dataset, var: VarRef) -> Result<VarPlace> {
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
            && matches!(file.var_info(var)?.storage, StorageKind::Contiguous);
        Ok(VarPlace { path, var, lens, is_run, chunks, elem, odd })
    }

    fn array(&self) -> BoxedArray<'_> {
        let (lens, from) = (&self.lens[..], self.chunks.as_deref());
        BoxedArray { lens, from, is_plain: false, to: None, elem: self.elem }
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

/// Reads variables one after the other.
struct DataReader<'a> {
    file: &'a Dataset,
    notes: &'a mut Notes,
    progress: &'a mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    total: u64,
    done: u64,
    data: Vec<u8>,
}

impl DataReader<'_> {
    /// Reads a variable; gives how many of its chunks are in the file.
    ///
    /// # Errors
    /// `EINTR` where the caller has had enough.
    fn var(&mut self, place: &VarPlace) -> Result<u64> {
        let (n_chunks, walk) = match self.walk(place) {
            Ok(found) => found,
            Err(error) => {
                self.notes.error(Some(&place.path), &error);
                let chunk = place.chunks.as_deref().unwrap_or_default();
                let chunks = place.lens.iter().zip(chunk).map(|(len, n)| len.div_ceil(*n));
                if chunks.fold(1, u64::saturating_mul) > DAMAGED_INDEX_CHUNKS {
                    return Ok(0);
                }
                (
                    0,
                    BoxWalk::new(
                        &place.lens,
                        &choose(&place.array(), CHECK_BOX_BYTES, CHECK_BOX_MAX_BYTES).shape,
                    ),
                )
            }
        };
        for (start, count) in walk {
            if let Err(error) = self.read(place, &start, &count) {
                if !self.chunk_by_chunk(place, &start, &count)? {
                    self.notes.error(Some(&place.path), &error);
                }
                if place.chunks.is_none() {
                    // The other boxes cannot be read either.
                    break;
                }
            }
            let bytes = count.iter().fold(place.elem, |bytes, &n| bytes.saturating_mul(n));
            self.done = self.done.saturating_add(bytes).min(self.total);
            self.report(place)?;
        }
        Ok(n_chunks)
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

    /// Reads the chunks of a box that cannot be read as a whole. `false` where each of them can be read, so that the
    /// error of the box is still to be noted.
    fn chunk_by_chunk(&mut self, place: &VarPlace, start: &[u64], count: &[u64]) -> Result<bool> {
        let Some(chunk) = &place.chunks else { return Ok(false) };
        let mut found = false;
        for (inner, shape) in BoxWalk::new(count, chunk) {
            let at: Vec<u64> = start.iter().zip(&inner).map(|(a, b)| a + b).collect();
            if let Err(error) = self.read(place, &at, &shape) {
                found = true;
                if self.notes.error(Some(&place.path), &error) == Grade::Unchecked {
                    // Where a filter is missing for one chunk, it is missing for all.
                    return Ok(true);
                }
            }
            self.report(place)?;
        }
        Ok(found)
    }

    fn read(&mut self, place: &VarPlace, start: &[u64], count: &[u64]) -> Result<()> {
        let to = (&mut self.data, &mut VlenBuffer::default());
        read_box(self.file, place.var, None, (start, count), to)
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
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
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
    let mut reader = DataReader { file, notes, progress, total, done: 0, data: Vec::new() };
    for place in &places {
        place.note_odd(reader.notes);
        checked.n_chunks = checked.n_chunks.saturating_add(reader.var(place)?);
    }
    checked.data_bytes = reader.done;
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
