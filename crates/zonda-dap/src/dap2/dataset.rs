//! A dataset by DAP2: how it is opened, what is asked of the server for values, and how they are taken out of the response.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dap2::attributes::{Attachments, attach};
use crate::dap2::body::{Body, Visitor};
use crate::dap2::constraint::{Constraint, Projection, Segment, Slice, escape};
use crate::dap2::das::Set;
use crate::dap2::dds::{Dds, Kind};
use crate::dap2::limits::MAX_DOCUMENT_BYTES;
use crate::dap2::mapping::{Axis, Mapping, Source, limit, variables};
use crate::dap2::project::{Matched, Slices, matched};
use crate::dap2::select::{Characters, Select, Wanted};
use crate::error::{DapError, Document};
use crate::model::Model;
use crate::protocol::{Asked, Part, Protocol, Request, Server, Sink};

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

/// Opens a dataset: asks for its documents, and for the number of records of its sequences.
///
/// # Errors
/// What is wrong with the constraint or with a document; what the server or the connection says. That there is no DAS is no error.
pub fn open(server: &Arc<dyn Server>, asked: &Asked) -> Result<Dap2, DapError> {
    let constraint = Constraint::decode(&asked.constraint)?;
    let server = server.as_ref();
    if !server.heeds_constraints() && !constraint.is_empty() {
        let what = "saved responses take no constraint";
        return Err(DapError::malformed(Document::Constraint, 0, what));
    }
    let conditions: String =
        constraint.conditions.iter().map(|condition| format!("&{condition}")).collect();
    let has_functions =
        constraint.projections.iter().any(|of| matches!(of, Projection::Function(_)));
    // What functions return is known by what comes alone.
    let is_sliced = !constraint.projections.is_empty() && !has_functions;
    let query = constraint.to_string();
    let dds = fetch_dds(server, &query)?;
    let full = if is_sliced { fetch_dds(server, "")? } else { dds.clone() };
    let das = fetch_das(server)?;
    let nodes = if is_sliced { matched(&dds, &full)? } else { Matched::same(&dds) };
    let slices =
        if is_sliced { Slices::of(&full, &constraint.projections)? } else { Slices::default() };
    let attachments = match &das {
        Some(das) => attach(das, &dds, &full)?,
        None => Attachments::default(),
    };
    let whole = match (server.heeds_constraints(), has_functions) {
        (false, _) => Some(String::new()),
        (true, true) => Some(query),
        (true, false) => None,
    };
    let (variables, sequences) = variables(&dds, &nodes);
    let takes_no_steps = AtomicBool::new(false);
    let mut dataset =
        Dap2 { model: Model::default(), sources: Vec::new(), conditions, whole, takes_no_steps };
    let sequence_slices = |id: &usize| slices.slice(nodes.full.get(id).copied().unwrap_or(0), 0);
    let mut records = HashMap::new();
    if asked.setting("noseqdims").is_some() {
        records.extend(sequences.iter().map(|id| (*id, 1)));
    } else if dataset.whole.is_some() && !sequences.is_empty() {
        records = dataset.count_all(server, &dds, &sequences)?;
    } else {
        for id in &sequences {
            let most = limit(asked, &dds, *id);
            let n = dataset.count_one(server, &dds, *id, sequence_slices(id), most)?;
            records.insert(*id, n);
        }
    }
    for (id, n) in &mut records {
        if let Some(most) = limit(asked, &dds, *id) {
            *n = most.min(*n);
        }
    }
    let mapping = Mapping {
        dds: &dds,
        matched: &nodes,
        slices: &slices,
        attachments: &attachments,
        asked,
        records: &records,
    };
    (dataset.model, dataset.sources) = mapping.model(&variables)?;
    shown(&mut dataset.model, asked, &dds, das.as_ref(), &records);
    Ok(dataset)
}

/// Attributes that the user asks to see (`show=translate+dds`), as the reference has them.
fn shown(
    model: &mut Model,
    asked: &Asked,
    dds: &Dds,
    das: Option<&Set>,
    records: &HashMap<usize, u64>,
) {
    use crate::model::Att;
    use zonda_format::OwnedValues;
    const NC_CHAR: i32 = 2;
    let shows = |what: &str| {
        let all = asked.settings.iter().filter(|(name, _)| name == "show");
        all.into_iter().any(|(_, value)| value.split(['+', ',', ':', ';']).any(|one| one == what))
    };
    let line = |text: String| text.replace(['\n', '\r', '\t'], " ").into_bytes();
    let mut texts: Vec<(&str, Vec<u8>)> = Vec::new();
    if shows("seqdims") {
        let mut ids: Vec<usize> = records.keys().copied().collect();
        ids.sort_unstable();
        let names: Vec<&str> = ids.iter().map(|id| dds.node(*id).name.as_str()).collect();
        texts.push(("_sequence_dimensions", names.join(", ").into_bytes()));
    }
    if shows("translate") {
        texts.push(("_translate", b"netcdf-3".to_vec()));
    }
    if shows("dds") {
        texts.push(("_dds", line(dds.encode())));
    }
    if let Some(das) = das.filter(|_| shows("das")) {
        texts.push(("_das", line(String::from_utf8_lossy(&das.encode()).into_owned())));
    }
    let atts = model.groups.first_mut().map(|group| &mut group.atts);
    if let Some(atts) = atts {
        texts.retain(|(_, text)| !text.is_empty());
        atts.extend(texts.into_iter().map(|(name, text)| Att {
            name: name.into(),
            nc_type: NC_CHAR,
            len: text.len(),
            values: OwnedValues::plain(text),
        }));
    }
}

fn ask(
    server: &dyn Server,
    document: Document,
    extension: &'static str,
    query: &str,
) -> Result<Box<dyn Read + Send>, DapError> {
    let request = Request { extension, query: escape(query) };
    server.ask(&request).map_err(|error| DapError::Storage { document, error })
}

/// All bytes of a document.
fn whole_document(document: Document, body: Box<dyn Read + Send>) -> Result<Vec<u8>, DapError> {
    let mut bytes = Vec::new();
    let most = (MAX_DOCUMENT_BYTES as u64).saturating_add(1);
    body.take(most).read_to_end(&mut bytes).map_err(|error| DapError::of_io(document, &error))?;
    Ok(bytes)
}

fn fetch_dds(server: &dyn Server, query: &str) -> Result<Dds, DapError> {
    let body = match ask(server, Document::Dds, ".dds", query) {
        // Of saved responses the one with values may be the only one.
        Err(error) if !server.heeds_constraints() => {
            let Ok(mut body) = ask(server, Document::Dods, ".dods", query) else {
                return Err(error);
            };
            return Ok(Body::open(&mut body)?.dds().clone());
        }
        body => body?,
    };
    Dds::decode(&whole_document(Document::Dds, body)?)
}

/// The DAS; `None` where there is none.
fn fetch_das(server: &dyn Server) -> Result<Option<Set>, DapError> {
    /// `ENOENT`.
    const NOT_FOUND: i32 = 2;
    let body = match ask(server, Document::Das, ".das", "") {
        Err(DapError::Storage { error, .. }) if error.raw_os_error() == NOT_FOUND => {
            return Ok(None);
        }
        body => body?,
    };
    match Set::decode(&whole_document(Document::Das, body)?) {
        // The server has the dataset, but no attributes of it.
        Err(DapError::Server { .. }) => Ok(None),
        das => das.map(Some),
    }
}

/// Counts records, and takes nothing.
#[derive(Default)]
struct Count {
    records: HashMap<usize, u64>,
}

impl Visitor for Count {
    fn wants(&self, _node: usize) -> Option<usize> {
        None
    }

    fn count(&mut self, _node: usize, _count: u64) -> Result<(), DapError> {
        Ok(())
    }

    fn numbers(&mut self, _node: usize, _elements: &[u8]) -> Result<(), DapError> {
        Ok(())
    }

    fn text(&mut self, _node: usize, _text: &[u8]) -> Result<(), DapError> {
        Ok(())
    }

    fn record(&mut self, node: usize) -> Result<(), DapError> {
        let records = self.records.entry(node).or_insert(0);
        *records = records.saturating_add(1);
        Ok(())
    }

    fn end(&mut self, node: usize) -> Result<(), DapError> {
        self.records.entry(node).or_insert(0);
        Ok(())
    }
}

/// The field of a sequence that takes the fewest bytes, as the reference chooses it: numbers before texts, scalars before arrays.
fn shortest_field(dds: &Dds, sequence: usize) -> usize {
    let mut at = sequence;
    loop {
        let fields = &dds.node(at).children;
        let cost = |id: &usize| match dds.node(*id).kind {
            Kind::Atomic(atomic) => Some((atomic.is_text(), !dds.node(*id).dims.is_empty())),
            _ => None,
        };
        let best =
            fields.iter().filter_map(|id| Some((cost(id)?, *id))).min_by_key(|(cost, _)| *cost);
        if let Some((_, id)) = best {
            return id;
        }
        let is_container =
            |id: &&usize| matches!(dds.node(**id).kind, Kind::Structure | Kind::Grid);
        match fields.iter().rfind(is_container) {
            Some(id) => at = *id,
            None => return at,
        }
    }
}

impl Dap2 {
    /// Numbers of records of all sequences, from a response with everything.
    fn count_all(
        &self,
        server: &dyn Server,
        dds: &Dds,
        sequences: &[usize],
    ) -> Result<HashMap<usize, u64>, DapError> {
        let query = self.whole.as_deref().unwrap_or_default();
        let mut body = ask(server, Document::Dods, ".dods", query)?;
        let body = Body::open(&mut body)?;
        let theirs = body.dds().clone();
        let mut count = Count::default();
        body.values(&mut count)?;
        let mut records = HashMap::new();
        for id in sequences {
            let path: Vec<&str> =
                dds.path(*id).iter().map(|id| dds.node(*id).name.as_str()).collect();
            let n = find(&theirs, &path).and_then(|id| count.records.get(&id));
            records.insert(*id, *n.ok_or_else(|| lacks(&path))?);
        }
        Ok(records)
    }

    /// The number of records of one sequence.
    fn count_one(
        &self,
        server: &dyn Server,
        dds: &Dds,
        id: usize,
        slice: Option<Slice>,
        most: Option<u64>,
    ) -> Result<u64, DapError> {
        let slice = slice.or_else(|| {
            most.map(|most| Slice { first: 0, stride: 1, last: most.saturating_sub(1) })
        });
        let segment = |node: usize| Segment {
            name: dds.node(node).name.clone(),
            slices: if node == id {
                slice.into_iter().collect()
            } else {
                dds.node(node).dims.iter().map(|_| Slice { first: 0, stride: 1, last: 0 }).collect()
            },
        };
        let path: Vec<Segment> =
            dds.path(shortest_field(dds, id)).into_iter().map(segment).collect();
        let names: Vec<String> =
            dds.path(id).into_iter().map(|id| dds.node(id).name.clone()).collect();
        let query = format!("{}{}", Projection::Path(path), self.conditions);
        let mut body = ask(server, Document::Dods, ".dods", &query)?;
        let body = Body::open(&mut body)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let theirs = find(body.dds(), &names).ok_or_else(|| lacks(&names))?;
        let mut count = Count::default();
        body.values(&mut count)?;
        Ok(count.records.get(&theirs).copied().unwrap_or(0))
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

fn lacks(path: &[&str]) -> DapError {
    DapError::malformed(Document::Dods, 0, format!("the response lacks {}", path.join(".")))
}

/// The node with these names, from the top.
fn find(dds: &Dds, path: &[&str]) -> Option<usize> {
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
