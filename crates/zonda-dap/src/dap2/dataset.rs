//! A dataset by DAP2: what is asked of the server for values, and how they are taken out of the response.

use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dap2::body::{Body, Visitor};
use crate::dap2::constraint::{Constraint, Projection, Segment, Slice, escape};
use crate::dap2::dds::{Dds, Kind};
use crate::dap2::mapping::{Axis, Source};
use crate::dap2::select::{Characters, Select, Wanted};
use crate::error::{DapError, Document};
use crate::model::Model;
use crate::protocol::{Part, Protocol, Request, Sink};

/// A dataset by DAP2.
#[derive(Debug)]
pub struct Dap2 {
    model: Model,
    sources: Vec<Source>,
    /// Conditions of the user's constraint, which go into every request.
    conditions: String,
    /// The query of every request, where nothing of it can be chosen.
    whole: Option<String>,
    /// The server does not understand steps: all elements between are asked for.
    takes_no_steps: AtomicBool,
}

impl Dap2 {
    /// A dataset that was opened.
    pub(super) fn new(
        model: Model,
        sources: Vec<Source>,
        conditions: String,
        whole: Option<String>,
    ) -> Dap2 {
        Dap2 { model, sources, conditions, whole, takes_no_steps: AtomicBool::new(false) }
    }

    fn source(&self, part: &Part<'_>) -> Result<&Source, DapError> {
        let no_such = || {
            DapError::malformed(
                Document::Constraint,
                0,
                format!("there is no variable {}", part.var),
            )
        };
        self.sources.get(part.var).ok_or_else(no_such)
    }
}

/// The error for a response without a variable that was asked for.
pub(super) fn lacks(path: &[&str]) -> DapError {
    DapError::malformed(Document::Dods, 0, format!("the response lacks {}", path.join(".")))
}

/// The node with these names, from the top.
pub(super) fn find(dds: &Dds, path: &[&str]) -> Option<usize> {
    path.iter().try_fold(0, |at, name| dds.child(at, name))
}

/// What a part wants of an axis.
fn along<T: Copy>(list: &[T], at: usize, of: &Source) -> Result<T, DapError> {
    let name = of.levels.last().map_or("", |level| level.name.as_str());
    let few = || {
        DapError::malformed(
            Document::Constraint,
            0,
            format!("too few dimensions are given of {name}"),
        )
    };
    list.get(at).copied().ok_or_else(few)
}

/// The slice of the dataset that `count` elements from `start` on are, of an axis which may be a slice itself.
fn slice_of(axis: &Axis, start: u64, count: u64, stride: u64) -> Option<Slice> {
    let base =
        axis.slice.unwrap_or(Slice { first: 0, stride: 1, last: axis.len.saturating_sub(1) });
    let first = base.first.checked_add(start.checked_mul(base.stride)?)?;
    let stride = if count > 1 { base.stride.checked_mul(stride)? } else { 1 };
    let last = first.checked_add(count.checked_sub(1)?.checked_mul(stride)?)?;
    Some(Slice { first, stride, last })
}

/// Elements from the first to the last of `count`, those between them included.
fn spread(count: u64, stride: u64) -> u64 {
    count.saturating_sub(1).saturating_mul(stride).saturating_add(1)
}

/// The path of a part with the slices that it wants.
fn path_of(source: &Source, part: &Part<'_>, has_steps: bool) -> Result<Vec<Segment>, DapError> {
    let mut at = 0usize;
    let mut path = Vec::new();
    for level in &source.levels {
        let mut slices = Vec::new();
        let mut is_whole = true;
        for axis in &level.axes {
            let (start, count) = (along(part.start, at, source)?, along(part.count, at, source)?);
            let stride = along(part.stride, at, source)?;
            at = at.saturating_add(1);
            if level.is_sequence {
                // All records come, or those that the user chose: servers take no others.
                slices.extend(axis.slice);
                is_whole = axis.slice.is_none();
                continue;
            }
            // Where the user's own constraint has steps, the server was known to understand them.
            let is_spread = !has_steps && axis.slice.is_none_or(|slice| slice.stride == 1);
            let (count, stride) =
                if is_spread { (spread(count, stride), stride.min(1)) } else { (count, stride) };
            let Some(slice) = slice_of(axis, start, count, stride).filter(|_| stride > 0) else {
                let what = format!("{} is asked for beyond all that can be", level.name);
                return Err(DapError::malformed(Document::Constraint, 0, what));
            };
            is_whole = is_whole && axis.slice.is_none() && slice.count() == axis.len;
            slices.push(slice);
        }
        if is_whole {
            slices.clear();
        }
        path.push(Segment { name: level.name.clone(), slices });
    }
    Ok(path)
}

impl Protocol for Dap2 {
    fn model(&self) -> &Model {
        &self.model
    }

    /// Where a response showed that the server does not understand steps, later requests have none: one that failed is worth making once more if it
    /// has changed.
    fn request(&self, parts: &[Part<'_>]) -> Result<Request, DapError> {
        if let Some(whole) = &self.whole {
            return Ok(Request { extension: ".dods", query: escape(whole) });
        }
        let has_steps = !self.takes_no_steps.load(Ordering::Relaxed);
        let mut paths: Vec<Vec<Segment>> = Vec::new();
        for part in parts {
            paths.push(path_of(self.source(part)?, part, has_steps)?);
        }
        // A container has one slice in a constraint: where variables want different ones, all of it comes, and is taken from.
        let mut containers: HashMap<Vec<String>, Option<Vec<Slice>>> = HashMap::new();
        for path in &paths {
            let mut names = Vec::new();
            for segment in path {
                names.push(segment.name.clone());
                let slices =
                    containers.entry(names.clone()).or_insert_with(|| Some(segment.slices.clone()));
                if slices.as_ref() != Some(&segment.slices) {
                    *slices = None;
                }
            }
        }
        for (path, part) in paths.iter_mut().zip(parts) {
            let mut names = Vec::new();
            for (segment, level) in path.iter_mut().zip(&self.source(part)?.levels) {
                names.push(segment.name.clone());
                if containers.get(&names) == Some(&None) {
                    segment.slices = level.axes.iter().filter_map(|axis| axis.slice).collect();
                }
            }
        }
        let projections = paths.into_iter().map(Projection::Path).collect();
        let constraint = Constraint { projections, conditions: Vec::new() };
        Ok(Request {
            extension: ".dods",
            query: escape(&format!("{constraint}{}", self.conditions)),
        })
    }

    fn read(
        &self,
        parts: &[Part<'_>],
        body: &mut dyn Read,
        sink: &mut dyn Sink,
    ) -> Result<(), DapError> {
        let body = Body::open(body)?;
        let mut taking = Taking { sink, of: HashMap::new(), records: HashMap::new() };
        let mut sequences = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let source = self.source(part)?;
            let id = self.node(body.dds(), source)?;
            let select = self.select(body.dds(), id, source, at, part)?;
            taking.of.insert(id, select);
            if let Some(axis) = source.levels.iter().find(|level| level.is_sequence) {
                let sequence = body
                    .dds()
                    .path(id)
                    .into_iter()
                    .find(|id| body.dds().node(*id).kind == Kind::Sequence);
                sequences.push((
                    sequence.unwrap_or(0),
                    axis.axes.first().map_or(0, |axis| axis.len),
                    source,
                ));
            }
        }
        body.values(&mut taking)?;
        for (id, len, source) in sequences {
            let n = taking.records.get(&id).copied().unwrap_or(0);
            if n < len || (n != len && source.limit.is_none()) {
                let name = source
                    .levels
                    .iter()
                    .find(|level| level.is_sequence)
                    .map_or("", |level| level.name.as_str());
                let what =
                    format!("sequence {name} has {n} records, it had {len} when it was opened");
                return Err(DapError::malformed(Document::Dods, 0, what));
            }
        }
        let Taking { sink, of, .. } = taking;
        let mut all: Vec<Select> = of.into_values().collect();
        all.iter_mut().try_for_each(|select| select.finish(sink))
    }

    fn has_pointers(&self, _var: usize) -> bool {
        false
    }
}

impl Dap2 {
    /// The variable in the DDS of a response: by all of its names, or, where a server gives fields of grids without their grid, by all but that of the grid.
    fn node(&self, dds: &Dds, source: &Source) -> Result<usize, DapError> {
        let names: Vec<&str> = source.levels.iter().map(|level| level.name.as_str()).collect();
        let short: Vec<&str> = match &names[..] {
            [around @ .., _grid, own] => around.iter().chain([own]).copied().collect(),
            _ => names.clone(),
        };
        let is_it = |id: &usize| dds.node(*id).kind == Kind::Atomic(source.atomic);
        let found = find(dds, &names).filter(is_it).or_else(|| find(dds, &short).filter(is_it));
        found.ok_or_else(|| lacks(&names))
    }

    /// What is taken of the variable `id` of a response.
    fn select(
        &self,
        dds: &Dds,
        id: usize,
        source: &Source,
        at: usize,
        part: &Part<'_>,
    ) -> Result<Select, DapError> {
        let name = dds.full_name(id);
        let mut theirs = Vec::new();
        for id in dds.path(id) {
            let node = dds.node(id);
            if node.kind == Kind::Sequence {
                theirs.push(None);
            }
            theirs.extend(node.dims.iter().map(|dim| Some(dim.len)));
        }
        let axes: Vec<&Axis> = source.levels.iter().flat_map(|level| &level.axes).collect();
        let differs =
            |what: String| DapError::malformed(Document::Dods, 0, format!("{name} {what}"));
        if theirs.len() != axes.len() {
            return Err(differs(format!(
                "has {} dimensions in the response, {} in the dataset",
                theirs.len(),
                axes.len()
            )));
        }
        let mut dims = Vec::new();
        for (dim, (len, axis)) in theirs.into_iter().zip(axes).enumerate() {
            let (start, count) = (along(part.start, dim, source)?, along(part.count, dim, source)?);
            let stride = along(part.stride, dim, source)?;
            dims.push(match len {
                None => Wanted { len: axis.len, start, count, stride },
                Some(len) => {
                    let asked = Wanted { len: count, start: 0, count, stride: 1 };
                    let all = Wanted { len: axis.len, start, count, stride };
                    // Some servers do not understand steps, and some give everything: what is wanted is in it.
                    let between = Wanted { len: spread(count, stride), start: 0, count, stride };
                    let wanted = match self.whole {
                        Some(_) => all,
                        None => [asked, between, all]
                            .into_iter()
                            .find(|wanted| wanted.len == len)
                            .unwrap_or(asked),
                    };
                    if wanted.len != len {
                        if stride > 1 && count > 1 {
                            self.takes_no_steps.store(true, Ordering::Relaxed);
                        }
                        let what = format!(
                            "has {len} elements along dimension {dim}, {} were asked for",
                            wanted.len
                        );
                        return Err(differs(what));
                    }
                    wanted
                }
            });
        }
        let characters = match source.text_len {
            None => None,
            Some(len) => {
                let last = dims.len();
                let (start, count) =
                    (along(part.start, last, source)?, along(part.count, last, source)?);
                Some(Characters { len, start, count, stride: along(part.stride, last, source)? })
            }
        };
        let size = if source.atomic.is_text() { 1 } else { source.atomic.size() };
        Select::new(at, name, dims, size, characters)
    }
}

/// Takes what is wanted of a response.
struct Taking<'a> {
    sink: &'a mut dyn Sink,
    of: HashMap<usize, Select>,
    records: HashMap<usize, u64>,
}

impl Visitor for Taking<'_> {
    fn wants(&self, node: usize) -> Option<usize> {
        self.of.get(&node).map(Select::text_bytes)
    }

    fn count(&mut self, _node: usize, _count: u64) -> Result<(), DapError> {
        Ok(())
    }

    fn numbers(&mut self, node: usize, elements: &[u8]) -> Result<(), DapError> {
        match self.of.get_mut(&node) {
            Some(select) => select.numbers(elements, self.sink),
            None => Ok(()),
        }
    }

    fn text(&mut self, node: usize, text: &[u8]) -> Result<(), DapError> {
        match self.of.get_mut(&node) {
            Some(select) => select.text(text, self.sink),
            None => Ok(()),
        }
    }

    fn record(&mut self, node: usize) -> Result<(), DapError> {
        let records = self.records.entry(node).or_insert(0);
        *records = records.saturating_add(1);
        Ok(())
    }

    fn end(&mut self, _node: usize) -> Result<(), DapError> {
        Ok(())
    }
}
