//! Virtual datasets: which elements of which other datasets stand for the elements of this one.
//! Spec: HDF5 File Format, "Appendix B: Virtual Dataset Mapping" (the object in the global heap that
//! a layout message of class 3 names). Versions 0 and 1.
//! Source selection and target selection have equally many elements, and pair up in their orders.
//! Watch: a selection without end has as many elements as the source has at the time.
//! Watch: `%b` in a name stands for the number of a block of the target selection; each block then
//! has a source of its own, and the source selection is that of one block.

use smallvec::SmallVec;

use crate::guard::verified;
use crate::selection::{HyperslabDim, Numbers, Selection};
use crate::{HdfError, Reader, Result};

const NAME: &str = "virtual dataset mapping";

/// Version 1: the file's name is that of an earlier entry, whose number follows.
const SAME_FILE_NAME: u8 = 1;
/// Version 1: the same for the dataset's name.
const SAME_DATASET_NAME: u8 = 2;
/// Version 1: the source is in the virtual dataset's file.
const THIS_FILE: u8 = 4;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualSource {
    /// Name of the file, relative to the folder of the virtual dataset's; `None` for that file
    /// itself.
    pub file: Option<Box<[u8]>>,
    /// Path of the dataset in it.
    pub dataset: Box<[u8]>,
    /// Its elements.
    pub source: Selection,
    /// Elements of the virtual dataset.
    pub target: Selection,
}

/// All mappings of a virtual dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualMapping {
    /// In the order of the file; where targets overlap, the later one holds.
    pub sources: Vec<VirtualSource>,
}

impl VirtualMapping {
    /// Decodes the object in the global heap.
    ///
    /// # Errors
    /// A wrong checksum; names that refer to later entries; selections of impossible form.
    pub fn decode(whole: Reader<'_>) -> Result<VirtualMapping> {
        let mut reader = verified(whole.named(NAME))?;
        let version = reader.version(0..=1)?;
        let n = reader.length()?;
        // Two selections of 16 bytes, and at least a flag or two NULs.
        let n = reader.count(n, 33)?;
        let mut sources: Vec<VirtualSource> = Vec::with_capacity(n);
        for _ in 0..n {
            let flags = if version == 0 { 0 } else { reader.u8()? };
            if flags & !(SAME_FILE_NAME | SAME_DATASET_NAME | THIS_FILE) != 0 {
                return Err(reader.bad("the flags of an entry", u64::from(flags)));
            }
            let file = if flags & THIS_FILE != 0 {
                None
            } else if flags & SAME_FILE_NAME != 0 {
                earlier(&mut reader, &sources)?.file.clone()
            } else {
                let name = reader.until_nul()?;
                (name != b".").then(|| name.into())
            };
            let dataset = if flags & SAME_DATASET_NAME != 0 {
                earlier(&mut reader, &sources)?.dataset.clone()
            } else {
                reader.until_nul()?.into()
            };
            let source = Selection::decode(&mut reader)?;
            let target = Selection::decode(&mut reader)?;
            sources.push(VirtualSource { file, dataset, source, target });
        }
        // Entries refer to names as they are stored, so these are read only now.
        for one in sources.iter_mut().filter(|one| !one.is_numbered()) {
            one.file = one.file.as_deref().map(without_doubled);
            one.dataset = without_doubled(&one.dataset);
        }
        Ok(VirtualMapping { sources })
    }

    /// The extent of the virtual dataset, whose dataspace says `dims`: in unlimited dimensions it
    /// follows from what the sources have. `extent_of` gives the extent of a source dataset, `None`
    /// where there is no such source.
    ///
    /// A numbered mapping is asked for block after block, until one is missing.
    pub fn extent(
        &self,
        dims: &[u64],
        extent_of: &mut dyn FnMut(&VirtualSource) -> Option<Vec<u64>>,
    ) -> Vec<u64> {
        let mut out = dims.to_vec();
        for (place, here) in out.iter_mut().enumerate() {
            let mut grown: Option<u64> = None;
            let mut fixed = 0;
            for source in &self.sources {
                if source.unlimited_dim() != Some(place) {
                    fixed = source.target.end(place).unwrap_or(0).max(fixed);
                    continue;
                }
                let end = if source.is_numbered() {
                    let mut number = 0u64;
                    while extent_of(&source.block(number)).is_some() {
                        number = number.saturating_add(1);
                    }
                    number.checked_sub(1).and_then(|last| source.extent(&[], last))
                } else {
                    extent_of(source).and_then(|dims| source.extent(&dims, 0))
                };
                grown = grown.max(Some(end.unwrap_or(0)));
            }
            if let Some(grown) = grown {
                *here = grown.max(fixed);
            }
        }
        out
    }
}

fn earlier<'a>(reader: &mut Reader<'_>, sources: &'a [VirtualSource]) -> Result<&'a VirtualSource> {
    let number = reader.length()?;
    let source = usize::try_from(number).ok().and_then(|number| sources.get(number));
    source.ok_or_else(|| reader.bad("the number of an earlier entry", number))
}

/// Elements at equal steps in each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// The first element.
    pub start: Numbers,
    /// Elements from one to the next, at least 1.
    pub step: Numbers,
    /// How many.
    pub count: Numbers,
}

/// Elements of a source and where they go, equally many, in row-major order on both sides. The
/// counts differ only by dimensions of one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// In the source, in its elements.
    pub source: Slab,
    /// In the request, in elements of its result: element `i` of a dimension is the virtual
    /// dataset's element `start + i * stride`.
    pub target: Slab,
}

/// A hyperslab of the virtual dataset.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// First element.
    pub start: &'a [u64],
    /// Elements wanted.
    pub count: &'a [u64],
    /// From one to the next, at least 1.
    pub stride: &'a [u64],
}

impl Request<'_> {
    fn dim(&self, dim: usize) -> Wanted {
        let get = |numbers: &[u64]| numbers.get(dim).copied().unwrap_or(0);
        Wanted { start: get(self.start), count: get(self.count), stride: get(self.stride).max(1) }
    }
}

/// One dimension of a request.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    start: u64,
    count: u64,
    stride: u64,
}

impl Wanted {
    /// The first coordinate after the last that is wanted.
    fn end(&self) -> u64 {
        let Some(last) = self.count.checked_sub(1) else { return self.start };
        self.start.saturating_add(last.saturating_mul(self.stride)).saturating_add(1)
    }

    /// The first that is wanted at or after `at`.
    fn next(&self, at: u64) -> u64 {
        let past = at.saturating_sub(self.start);
        self.start.saturating_add(past.div_ceil(self.stride).saturating_mul(self.stride))
    }

    /// Place in the result, where the coordinate is wanted.
    fn place(&self, at: u64) -> Option<u64> {
        let past = at.checked_sub(self.start)?;
        let place = past.checked_div(self.stride)?;
        (place.checked_mul(self.stride) == Some(past) && place < self.count).then_some(place)
    }
}

/// A run of one dimension that has equal steps on both sides.
#[derive(Clone, Copy, Debug)]
struct Segment {
    source: u64,
    source_step: u64,
    target: u64,
    target_step: u64,
    count: u64,
}

/// A selection as what it is in each dimension, and how much of each takes part.
struct Regular {
    dims: SmallVec<[HyperslabDim; 3]>,
    lens: Numbers,
}

impl Regular {
    fn of(selection: &Selection, extent: &[u64]) -> Option<Regular> {
        let dims: SmallVec<[HyperslabDim; 3]> = match selection {
            Selection::All => extent.iter().map(|&dim| HyperslabDim::run(0, dim)).collect(),
            Selection::Hyperslab(dims) if dims.len() == extent.len() => dims.clone(),
            _ => return None,
        };
        let lens = dims.iter().map(HyperslabDim::len).collect();
        Some(Regular { dims, lens })
    }

    /// Where element `ordinal` is, and how many follow it along the last dimension.
    fn at(&self, ordinal: u64) -> Option<(Numbers, u64)> {
        let mut rest = ordinal;
        let mut run = 1;
        let mut at = Numbers::new();
        for (place, (dim, &len)) in self.dims.iter().zip(&self.lens).enumerate().rev() {
            let i = rest.checked_rem(len)?;
            rest = rest.checked_div(len)?;
            if place.saturating_add(1) == self.dims.len() {
                run = dim.contiguous(i).min(len.saturating_sub(i));
            }
            at.push(dim.at(i));
        }
        at.reverse();
        (rest == 0).then_some((at, run))
    }
}

impl VirtualSource {
    /// The dimension of the virtual dataset in which this mapping has no end.
    #[must_use]
    pub fn unlimited_dim(&self) -> Option<usize> {
        self.target.unlimited_dim()
    }

    /// Whether each block of the target has a source of its own, with its number in a name.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        let numbered = |name: &[u8]| is_numbered(name);
        self.unlimited_dim().is_some()
            && (self.file.as_deref().is_some_and(numbered) || numbered(&self.dataset))
    }

    /// The mapping of one block of a numbered one, its names filled in.
    #[must_use]
    pub fn block(&self, number: u64) -> VirtualSource {
        let mut target = self.target.clone();
        if let (Selection::Hyperslab(dims), Some(dim)) = (&mut target, self.unlimited_dim())
            && let Some(dim) = dims.get_mut(dim)
        {
            dim.start = dim.start.saturating_add(number.saturating_mul(dim.stride));
            dim.count = 1;
        }
        VirtualSource {
            file: self.file.as_deref().map(|name| with_number(name, number)),
            dataset: with_number(&self.dataset, number),
            source: self.source.clone(),
            target,
        }
    }

    /// The blocks of a numbered mapping that a request needs: from the first up to the second, not
    /// included.
    #[must_use]
    pub fn blocks(&self, request: &Request<'_>) -> (u64, u64) {
        let (Selection::Hyperslab(dims), Some(dim)) = (&self.target, self.unlimited_dim()) else {
            return (0, 0);
        };
        let (wanted, Some(dim)) = (request.dim(dim), dims.get(dim)) else { return (0, 0) };
        let (stride, end) = (dim.stride.max(1), wanted.end());
        if end <= dim.start || wanted.count == 0 {
            return (0, 0);
        }
        let number = |at: u64| at.saturating_sub(dim.start).checked_div(stride).unwrap_or(0);
        (number(wanted.start), number(end.saturating_sub(1)).saturating_add(1))
    }

    /// What a mapping without end makes the extent of the virtual dataset in its unlimited
    /// dimension, the source having the extent `source_dims`; of a numbered mapping, its block
    /// `number` being the last that exists. `None` for a mapping with an end.
    #[must_use]
    pub fn extent(&self, source_dims: &[u64], number: u64) -> Option<u64> {
        let dim = self.unlimited_dim()?;
        let Selection::Hyperslab(target) = &self.target else { return None };
        let target = target.get(dim)?;
        if self.is_numbered() {
            let begin = target.start.saturating_add(number.saturating_mul(target.stride));
            return Some(begin.saturating_add(target.block));
        }
        let slices = self.slices(source_dims)?;
        match slices.checked_sub(1) {
            None => Some(0),
            Some(last) => Some(target.at(last).saturating_add(1)),
        }
    }

    /// Elements of the unlimited dimension that the source has.
    fn slices(&self, source_dims: &[u64]) -> Option<u64> {
        let dim = self.source.unlimited_dim()?;
        let Selection::Hyperslab(source) = &self.source else { return None };
        Some(source.get(dim)?.before(*source_dims.get(dim)?))
    }

    /// Whether any element of a request is mapped here, whatever the source has; `dims` is the extent of
    /// the virtual dataset.
    #[must_use]
    pub fn touches(&self, dims: &[u64], request: &Request<'_>) -> bool {
        let meets = |regular: &Regular| {
            regular.dims.iter().zip(&regular.lens).enumerate().all(|(dim, (slab, &len))| {
                !segments(slab, slab, len, u64::MAX, request.dim(dim)).is_empty()
            })
        };
        match &self.target {
            Selection::None => false,
            Selection::All | Selection::Hyperslab(_) => {
                Regular::of(&self.target, dims).is_none_or(|target| meets(&target))
            }
            Selection::Points { rank, coords } => {
                coords.chunks_exact((*rank).max(1)).any(|point| {
                    point.iter().enumerate().all(|(dim, &at)| request.dim(dim).place(at).is_some())
                })
            }
            Selection::Blocks(blocks) => blocks.iter().any(|(first, last)| {
                let run = |(&a, &b): (&u64, &u64)| {
                    HyperslabDim::run(a, b.saturating_sub(a).saturating_add(1))
                };
                let dims: SmallVec<[HyperslabDim; 3]> = first.iter().zip(last).map(run).collect();
                let lens = dims.iter().map(HyperslabDim::len).collect();
                meets(&Regular { dims, lens })
            }),
        }
    }

    /// Tells `found` of the pieces of a request that this mapping gives. Elements that are outside
    /// the source's extent are left out. Of a numbered mapping, ask [`block`](VirtualSource::block)
    /// for each of its blocks instead.
    ///
    /// `dims` is the extent of the virtual dataset, `source_dims` that of the source. The number of
    /// pieces is not larger than that of elements in the box around the request.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where selections do not fit the extents or each other.
    pub fn pieces(
        &self,
        dims: &[u64],
        source_dims: &[u64],
        request: &Request<'_>,
        found: &mut dyn FnMut(&Piece) -> Result<()>,
    ) -> Result<()> {
        let bad = |what, value| Err(HdfError::BadValue { structure: NAME, at: 0, what, value });
        for (selection, dims) in [(&self.target, dims), (&self.source, source_dims)] {
            if selection.rank().is_some_and(|rank| rank != dims.len()) {
                let rank = selection.rank().unwrap_or(0) as u64;
                return bad("the number of dimensions of a selection", rank);
            }
        }
        if [request.start, request.count, request.stride].iter().any(|n| n.len() != dims.len()) {
            return bad("the number of dimensions of a request", request.count.len() as u64);
        }
        let mut target = Regular::of(&self.target, dims);
        let mut source = Regular::of(&self.source, source_dims);
        if let Some(dim) = self.target.unlimited_dim() {
            let Some(slices) = self.slices(source_dims) else {
                return bad("a source with an end for a target without", dim as u64);
            };
            let ends = [(&mut target, Some(dim)), (&mut source, self.source.unlimited_dim())];
            for (side, dim) in ends {
                let lens = side.as_mut().map(|side| &mut side.lens);
                if let Some(len) = lens.zip(dim).and_then(|(lens, dim)| lens.get_mut(dim)) {
                    *len = slices;
                }
            }
        } else if self.source.unlimited_dim().is_some() {
            return bad("a target with an end for a source without", 0);
        }
        if let (Some(target), Some(source)) = (&target, &source)
            && let Some(pairs) = pair(target, source)
        {
            return paired(target, source, &pairs, source_dims, request, found);
        }
        self.by_number(target.as_ref(), source.as_ref(), source_dims, request, found)
    }

    /// Pieces by the numbers of elements in the order of their selections: for all selections that
    /// do not have the same form on both sides.
    fn by_number(
        &self,
        target: Option<&Regular>,
        source: Option<&Regular>,
        source_dims: &[u64],
        request: &Request<'_>,
        found: &mut dyn FnMut(&Piece) -> Result<()>,
    ) -> Result<()> {
        let source_at = |ordinal: u64| -> Option<(Numbers, u64)> {
            match (source, &self.source) {
                (Some(source), _) => source.at(ordinal),
                (None, Selection::Points { rank, coords }) => {
                    let i = usize::try_from(ordinal).ok()?.checked_mul(*rank)?;
                    Some((coords.get(i..i.checked_add(*rank)?)?.into(), 1))
                }
                (None, Selection::Blocks(blocks)) => blocks.at(ordinal),
                _ => None,
            }
        };
        // A run of the target along its last dimension, and the number of its first element.
        let mut run = |at: &[u64], len: u64, ordinal: u64| -> Result<()> {
            let mut place = Numbers::new();
            for (dim, &at) in at.iter().enumerate().take(at.len().saturating_sub(1)) {
                match request.dim(dim).place(at) {
                    Some(here) => place.push(here),
                    None => return Ok(()),
                }
            }
            let last = at.len().saturating_sub(1);
            let wanted = request.dim(last);
            let begin = at.last().copied().unwrap_or(0);
            let end = begin.saturating_add(len).min(wanted.end());
            let mut here = wanted.next(begin);
            while here < end {
                let Some((from, n)) = source_at(ordinal.saturating_add(here.saturating_sub(begin)))
                else {
                    return Ok(());
                };
                // Elements side by side in both; of those, every `stride`-th.
                let n = n.min(end.saturating_sub(here)).max(1);
                let count = n.div_ceil(wanted.stride);
                let next = here.saturating_add(count.saturating_mul(wanted.stride));
                let inside = from.last().zip(source_dims.last()).map_or(0, |(from, dim)| {
                    dim.saturating_sub(*from).div_ceil(wanted.stride).min(count)
                });
                let outside = from.iter().zip(source_dims).any(|(from, dim)| from >= dim);
                if let Some(begins) = wanted.place(here).filter(|_| inside > 0 && !outside) {
                    let mut to = place.clone();
                    to.push(begins);
                    found(&Piece {
                        source: line(from, wanted.stride, inside),
                        target: line(to, 1, inside),
                    })?;
                }
                here = next;
            }
            Ok(())
        };
        match (target, &self.target) {
            (Some(target), _) => target_runs(target, request, &mut run),
            (None, Selection::Points { rank, coords }) => {
                for (ordinal, at) in (0..).zip(coords.chunks_exact(*rank)) {
                    run(at, 1, ordinal)?;
                }
                Ok(())
            }
            (None, Selection::Blocks(blocks)) => {
                for (first, last) in blocks.iter() {
                    let dims: SmallVec<[HyperslabDim; 3]> = first
                        .iter()
                        .zip(last)
                        .map(|(a, b)| HyperslabDim::run(*a, b.saturating_sub(*a).saturating_add(1)))
                        .collect();
                    let lens = dims.iter().map(HyperslabDim::len).collect();
                    target_runs(&Regular { dims, lens }, request, &mut |at, len, _| {
                        run(at, len, blocks.before(at))
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// One row of elements.
fn line(start: Numbers, step: u64, count: u64) -> Slab {
    let mut slab = Slab {
        step: Numbers::from_elem(1, start.len()),
        count: Numbers::from_elem(1, start.len()),
        start,
    };
    if let (Some(last_step), Some(last_count)) = (slab.step.last_mut(), slab.count.last_mut()) {
        (*last_step, *last_count) = (step, count);
    }
    slab
}

/// The dimensions of target and source that belong together, where those of more than one element
/// do one by one.
fn pair(target: &Regular, source: &Regular) -> Option<SmallVec<[(usize, usize); 4]>> {
    let long = |side: &Regular| -> SmallVec<[(usize, u64); 4]> {
        side.lens.iter().copied().enumerate().filter(|&(_, len)| len != 1).collect()
    };
    let (target, source) = (long(target), long(source));
    let same = target.len() == source.len() && target.iter().zip(&source).all(|(a, b)| a.1 == b.1);
    same.then(|| target.iter().zip(&source).map(|(a, b)| (a.0, b.0)).collect())
}

/// Pieces of a mapping whose dimensions belong together: boxes.
fn paired(
    target: &Regular,
    source: &Regular,
    pairs: &[(usize, usize)],
    source_dims: &[u64],
    request: &Request<'_>,
    found: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    // Dimensions of one element.
    let mut base = Piece { source: line(Numbers::new(), 1, 1), target: line(Numbers::new(), 1, 1) };
    for dim in &source.dims {
        base.source.start.push(dim.at(0));
    }
    for (dim, slab) in target.dims.iter().enumerate() {
        let at = slab.at(0);
        let is_long = pairs.iter().any(|pair| pair.0 == dim);
        match request.dim(dim).place(at) {
            Some(place) if !is_long => base.target.start.push(place),
            None if !is_long => return Ok(()),
            _ => base.target.start.push(0),
        }
    }
    for (dim, (slab, extent)) in source.dims.iter().zip(source_dims).enumerate() {
        if slab.at(0) >= *extent && !pairs.iter().any(|pair| pair.1 == dim) {
            return Ok(());
        }
    }
    for side in [&mut base.source, &mut base.target] {
        side.step = Numbers::from_elem(1, side.start.len());
        side.count = Numbers::from_elem(1, side.start.len());
    }
    let mut all: SmallVec<[Vec<Segment>; 4]> = SmallVec::new();
    for &(t, s) in pairs {
        let (Some(a), Some(b), Some(&len), Some(&extent)) =
            (target.dims.get(t), source.dims.get(s), target.lens.get(t), source_dims.get(s))
        else {
            return Ok(());
        };
        let segments = segments(a, b, len, extent, request.dim(t));
        if segments.is_empty() {
            return Ok(());
        }
        all.push(segments);
    }
    // All combinations, the last dimension fastest.
    let mut i: SmallVec<[usize; 4]> = SmallVec::from_elem(0, all.len());
    loop {
        let mut piece = base.clone();
        for ((&(t, s), segments), &i) in pairs.iter().zip(&all).zip(&i) {
            let Some(segment) = segments.get(i) else { return Ok(()) };
            set(&mut piece.source, s, segment.source, segment.source_step, segment.count);
            set(&mut piece.target, t, segment.target, segment.target_step, segment.count);
        }
        found(&piece)?;
        let mut dim = all.len();
        loop {
            let Some(outer) = dim.checked_sub(1) else { return Ok(()) };
            dim = outer;
            let (Some(i), Some(segments)) = (i.get_mut(dim), all.get(dim)) else { return Ok(()) };
            *i = i.saturating_add(1);
            if *i < segments.len() {
                break;
            }
            *i = 0;
        }
    }
}

fn set(slab: &mut Slab, dim: usize, start: u64, step: u64, count: u64) {
    for (numbers, value) in
        [(&mut slab.start, start), (&mut slab.step, step), (&mut slab.count, count)]
    {
        if let Some(place) = numbers.get_mut(dim) {
            *place = value;
        }
    }
}

/// What of one dimension is wanted, cut where steps change.
fn segments(
    target: &HyperslabDim,
    source: &HyperslabDim,
    len: u64,
    source_extent: u64,
    wanted: Wanted,
) -> Vec<Segment> {
    let mut out = Vec::new();
    let end = len.min(target.before(wanted.end())).min(source.before(source_extent));
    let mut i = target.before(wanted.start);
    while i < end {
        // `count` elements from `i` on have these steps.
        let left = end.saturating_sub(i);
        let (count, target_step, source_step) = match (target.step(), source.step()) {
            (Some(target_step), Some(source_step)) => (left, target_step, source_step),
            _ => (target.contiguous(i).min(source.contiguous(i)).clamp(1, left), 1, 1),
        };
        let (at, from) = (target.at(i), source.at(i));
        let last = at.saturating_add(count.saturating_sub(1).saturating_mul(target_step));
        // Only some of these are wanted, at equal steps again.
        let mut first = wanted.next(at);
        if first > last {
            i = i.saturating_add(count).max(target.before(first));
            continue;
        }
        let target_step = target_step.max(1);
        // The first one that is both selected and wanted, of which there is one in each `period`.
        let common = gcd(target_step, wanted.stride);
        let period = target_step.checked_div(common).unwrap_or(1);
        let stride = wanted.stride.saturating_mul(period);
        let mut tries = 0u64;
        while tries < period && first <= last {
            if first.saturating_sub(at).checked_rem(target_step) == Some(0) {
                let n = last.saturating_sub(first).checked_div(stride).unwrap_or(0);
                let steps = first.saturating_sub(at).checked_div(target_step).unwrap_or(0);
                let jump = stride.checked_div(target_step).unwrap_or(1);
                if let Some(place) = wanted.place(first) {
                    out.push(Segment {
                        source: from.saturating_add(steps.saturating_mul(source_step)),
                        source_step: jump.saturating_mul(source_step),
                        target: place,
                        target_step: period,
                        count: n.saturating_add(1),
                    });
                }
                break;
            }
            first = first.saturating_add(wanted.stride);
            tries = tries.saturating_add(1);
        }
        i = i.saturating_add(count);
    }
    out
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a.max(1)
}

/// Takes a run along the last dimension: where it begins, its elements, the number of the first.
type Run<'a> = dyn FnMut(&[u64], u64, u64) -> Result<()> + 'a;

/// The runs of a regular selection in the box around a request, with the number of the first element
/// of each.
fn target_runs(target: &Regular, request: &Request<'_>, run: &mut Run<'_>) -> Result<()> {
    let bounds: SmallVec<[(u64, u64); 4]> = target
        .dims
        .iter()
        .zip(&target.lens)
        .enumerate()
        .map(|(dim, (slab, &len))| {
            let wanted = request.dim(dim);
            (slab.before(wanted.start), slab.before(wanted.end()).min(len))
        })
        .collect();
    if bounds.iter().any(|(low, high)| low >= high) {
        return Ok(());
    }
    let mut i: Numbers = bounds.iter().map(|bound| bound.0).collect();
    loop {
        let at: Numbers = i.iter().zip(&target.dims).map(|(&i, slab)| slab.at(i)).collect();
        let ordinal = i
            .iter()
            .zip(&target.lens)
            .fold(0u64, |n, (&i, &len)| n.saturating_mul(len).saturating_add(i));
        let (Some(inner), Some(slab), Some(bound)) =
            (i.last_mut(), target.dims.last(), bounds.last())
        else {
            return Ok(());
        };
        let n = slab.contiguous(*inner).min(bound.1.saturating_sub(*inner)).max(1);
        run(&at, n, ordinal)?;
        *inner = inner.saturating_add(n);
        let mut dim = i.len();
        loop {
            dim = match dim.checked_sub(1) {
                Some(dim) => dim,
                None => return Ok(()),
            };
            let (Some(here), Some(bound)) = (i.get_mut(dim), bounds.get(dim)) else {
                return Ok(());
            };
            if *here < bound.1 {
                break;
            }
            *here = bound.0;
            if let Some(outer) = dim.checked_sub(1).and_then(|outer| i.get_mut(outer)) {
                *outer = outer.saturating_add(1);
            }
        }
    }
}

/// Whether a name has a place for a number. `%%` is a percent sign.
fn is_numbered(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' && bytes.next() == Some(&b'b') {
            return true;
        }
    }
    false
}

/// A name without a place for a number: `%%` is a percent sign in it, too.
fn without_doubled(name: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.iter().peekable();
    while let Some(byte) = rest.next() {
        out.push(*byte);
        if *byte == b'%' {
            let _second = rest.next_if_eq(&&b'%');
        }
    }
    out.into()
}

/// A name with `%b` replaced by a number and `%%` by a percent sign; anything else stays.
fn with_number(name: &[u8], number: u64) -> Box<[u8]> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'%', Some(b'b')) => {
                out.extend_from_slice(number.to_string().as_bytes());
                rest = after.get(1..).unwrap_or_default();
            }
            (b'%', Some(b'%')) => {
                out.push(b'%');
                rest = after.get(1..).unwrap_or_default();
            }
            _ => out.push(byte),
        }
    }
    out.into()
}
