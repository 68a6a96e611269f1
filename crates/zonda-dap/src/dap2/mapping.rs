//! The definitions of netCDF for a DDS, as the reference has them.
//!
//! - Variables are the values in the DDS: those at the top first, then arrays of grids, then all others. Maps of grids are none: servers give them at the
//!   top, too. A field is called by the names of its containers, with dots; a grid's array as the grid.
//! - A variable has the dimensions of its containers and its own. A sequence is a dimension called as it is, as long as it has records; one in a container
//!   with dimensions, or in another sequence, has no form, and its fields are left out.
//! - Dimensions of the same name and length are one; of the same name and different lengths, the later ones get numbers. One without a name gets that of the
//!   variable with its place; in a grid, that of the map.
//! - A text is an array of characters, 64 long unless something else is said, and longer texts are cut off.

use std::collections::{HashMap, HashSet};

use crate::dap2::attributes::{Attachments, converted, nc_type};
use crate::dap2::constraint::Slice;
use crate::dap2::dds::{Atomic, Dds, Kind};
use crate::dap2::limits::MAX_RANK;
use crate::dap2::project::{Matched, Slices};
use crate::error::{DapError, Document};
use crate::model::{Dim, Group, Model, Var};
use crate::protocol::Asked;

/// Characters of a text where nothing else is said.
const TEXT_LEN: u64 = 64;

/// A dimension of a container or of a variable, as values are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Its length in the model.
    pub(crate) len: u64,
    /// Which elements of the dataset these are; `None` for all.
    pub(crate) slice: Option<Slice>,
}

/// A name on the way to a variable.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) name: String,
    /// Whether it is a sequence: it has one axis then, its records.
    pub(crate) is_sequence: bool,
    pub(crate) axes: Vec<Axis>,
}

/// How the values of a variable of the model are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The way to it; its own name is the last.
    pub(crate) levels: Vec<Level>,
    pub(crate) atomic: Atomic,
    /// Characters of a text: the length of the last dimension.
    pub(crate) text_len: Option<u64>,
    /// Records of its sequence that are there at most, as the user limited them.
    pub(crate) limit: Option<u64>,
}

/// What the mapping is made from.
pub(crate) struct Mapping<'a> {
    /// The DDS, constrained.
    pub(crate) dds: &'a Dds,
    /// Its nodes in the whole one.
    pub(crate) matched: &'a Matched,
    pub(crate) slices: &'a Slices,
    pub(crate) attachments: &'a Attachments<'a>,
    pub(crate) asked: &'a Asked,
    /// Records of sequences that have a form.
    pub(crate) records: &'a HashMap<usize, u64>,
}

/// A number in a setting that is at least 1.
pub(crate) fn number(asked: &Asked, name: &str) -> Option<u64> {
    asked.setting(name)?.trim().parse().ok().filter(|number| *number > 0)
}

/// How many records the user wants at most of a sequence.
pub(crate) fn limit(asked: &Asked, dds: &Dds, id: usize) -> Option<u64> {
    let path = dds.full_name(id).to_lowercase();
    if let Some(limit) = number(asked, &format!("limit_{path}")) {
        return Some(limit);
    }
    if asked.setting(&format!("nolimit_{path}")).is_some() {
        return None;
    }
    number(asked, "limit")
}

/// Variables in the order of the model, but those of sequences without a form; and the sequences with a form that they need.
pub(crate) fn variables(dds: &Dds, matched: &Matched) -> (Vec<usize>, Vec<usize>) {
    let is_value = |id: &usize| matches!(dds.node(*id).kind, Kind::Atomic(_));
    let parent = |id: usize| dds.node(id).parent.unwrap_or(0);
    let place = |id: usize| {
        let kind = dds.node(parent(id)).kind;
        match kind {
            Kind::Dataset if !matched.grids.contains_key(&id) => Some(0),
            Kind::Grid if dds.node(parent(id)).children.first() == Some(&id) => Some(1),
            Kind::Grid => None,
            _ => Some(2),
        }
    };
    let mut sequences = Vec::new();
    let mut variables = Vec::new();
    for id in dds.ids().filter(is_value) {
        let Some(place) = place(id) else { continue };
        let path = dds.path(id);
        let mut in_sequence =
            path.iter().copied().filter(|id| dds.node(*id).kind == Kind::Sequence);
        if let Some(sequence) = in_sequence.next() {
            // None of what is around it may have several of it.
            let around = dds.path(sequence);
            let is_single = around.iter().all(|id| dds.node(*id).dims.is_empty());
            if in_sequence.next().is_some() || !is_single {
                continue;
            }
            if sequences.last() != Some(&sequence) {
                sequences.push(sequence);
            }
        }
        variables.push((place, id));
    }
    zonda_runtime::sort::sort_by_key(&mut variables, |(place, _)| *place);
    (variables.into_iter().map(|(_, id)| id).collect(), sequences)
}

/// A name that netCDF takes where one of DAP2 has slashes.
fn legal(name: &str) -> String {
    name.strip_prefix('/').unwrap_or(name).replace('/', "%2f")
}

/// A dimension of a variable before it has its place in the model.
struct Wanted {
    name: Option<String>,
    len: u64,
    /// It may be 0 long, and is then unlimited.
    is_sequence: bool,
}

impl Mapping<'_> {
    /// The definitions, and how the values of each variable are asked for.
    pub(crate) fn model(&self, variables: &[usize]) -> Result<(Model, Vec<Source>), DapError> {
        let global = Group {
            name: "/".into(),
            parent: None,
            atts: converted(&self.attachments.global, None)?,
        };
        let mut model = Model { groups: vec![global], ..Model::default() };
        let mut dims = Dims::default();
        let mut sources = Vec::new();
        let names = self.grid_dims();
        let may_differ = self.asked.setting("nofillmismatch").is_none()
            || self.asked.setting("fillmismatch").is_some();
        for id in variables {
            let (source, wanted) = self.source(*id, &names)?;
            // Where there is nothing there is no variable, but a sequence may come to have records.
            let is_empty =
                wanted.iter().filter(|dim| dim.len == 0).any(|dim| !dims.may_be_empty(dim));
            let full = self.full_name(*id);
            let ids = dims.add(&full, wanted);
            if is_empty {
                continue;
            }
            let name = self.name(*id);
            let attached = self.attachments.of.get(id).map_or(&[][..], Vec::as_slice);
            let atts = converted(attached, Some((&name, source.atomic, may_differ)))?;
            model.vars.push(Var {
                group: 0,
                name,
                nc_type: nc_type(source.atomic),
                dims: ids,
                atts,
            });
            sources.push(source);
        }
        let order = dims.finish(self.record_dim().as_deref(), &mut model);
        for var in &mut model.vars {
            for dim in &mut var.dims {
                *dim = order.get(*dim).copied().unwrap_or(0);
            }
        }
        distinct(&model)?;
        Ok((model, sources))
    }

    /// Names of nodes on the way to a variable.
    fn names(&self, id: usize) -> Vec<(usize, String)> {
        let mut names: Vec<(usize, String)> =
            self.dds.path(id).into_iter().map(|id| (id, legal(&self.dds.node(id).name))).collect();
        if let Some(grid) = self.matched.grids.get(&id) {
            let at = names.len().saturating_sub(1);
            names.insert(at, (0, legal(grid)));
        }
        names
    }

    fn full_name(&self, id: usize) -> String {
        let names: Vec<String> = self.names(id).into_iter().map(|(_, name)| name).collect();
        names.join(".")
    }

    /// The name of a variable: grids are left out, and their arrays have their names.
    fn name(&self, id: usize) -> String {
        let in_grid = self.dds.node(id).parent.filter(|id| self.dds.node(*id).kind == Kind::Grid);
        let mut names: Vec<String> = self
            .names(id)
            .into_iter()
            .filter(|(node, _)| self.dds.node(*node).kind != Kind::Grid)
            .map(|(_, name)| name)
            .collect();
        if let (Some(grid), Some(last)) = (in_grid, names.last_mut()) {
            *last = legal(&self.dds.node(grid).name);
        }
        names.join(".")
    }

    /// Names that dimensions of arrays in grids get from their maps: those up to the first that does not fit.
    fn grid_dims(&self) -> HashMap<(usize, usize), String> {
        let mut names = HashMap::new();
        for id in self.dds.ids().filter(|id| self.dds.node(*id).kind == Kind::Grid) {
            let Some((array, maps)) = self.dds.node(id).children.split_first() else { continue };
            let dims = &self.dds.node(*array).dims;
            if dims.len() != maps.len() {
                continue;
            }
            for (at, (dim, map)) in dims.iter().zip(maps).enumerate() {
                let map = self.dds.node(*map);
                let fits =
                    |name: &Option<String>| name.as_ref().is_none_or(|name| *name == map.name);
                let [own] = &map.dims[..] else { break };
                if !fits(&dim.name) || !fits(&own.name) {
                    break;
                }
                names.insert((*array, at), map.name.clone());
            }
        }
        names
    }

    /// The dimension that can grow, as attributes say.
    fn record_dim(&self) -> Option<String> {
        let own = self.dds.ids().filter_map(|id| self.attachments.of.get(&id)).flatten();
        let mut all = self.attachments.global.iter().chain(own);
        let named = |name: &str| {
            name == "DODS.Unlimited_Dimension" || name == "DODS_EXTRA.Unlimited_Dimension"
        };
        let value = all.find(|attached| named(&attached.name))?.attribute.values.first()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// What a special attribute (`DODS.strlen`, `DODS.dimName`) of a variable says.
    fn special(&self, id: usize, what: &str) -> Option<String> {
        let list = self.attachments.of.get(&id)?;
        let is_it = |name: &str| {
            name.strip_prefix("DODS.").or(name.strip_prefix("DODS_EXTRA.")) == Some(what)
        };
        let value =
            list.iter().rfind(|attached| is_it(&attached.name))?.attribute.values.first()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The name and length of the dimension of the characters of texts.
    fn text_dim(&self, id: usize) -> (String, u64) {
        let path = self.full_name(id).to_lowercase();
        let own = self
            .special(id, "strlen")
            .and_then(|len| len.trim().parse().ok().filter(|len| *len > 0))
            .or_else(|| number(self.asked, &format!("stringlength_{path}")))
            .or_else(|| number(self.asked, &format!("maxstrlen_{path}")));
        let all = || number(self.asked, "stringlength").or_else(|| number(self.asked, "maxstrlen"));
        let len = own.or_else(all).unwrap_or(TEXT_LEN).min(u64::from(u32::MAX >> 1));
        let name = own.and_then(|_| self.special(id, "dimName"));
        (name.unwrap_or_else(|| format!("maxStrlen{len}")), len)
    }

    fn source(
        &self,
        id: usize,
        names: &HashMap<(usize, usize), String>,
    ) -> Result<(Source, Vec<Wanted>), DapError> {
        let mut levels = Vec::new();
        let mut wanted = Vec::new();
        let mut limited = None;
        let mut atomic = Atomic::Byte;
        for node_id in self.dds.path(id) {
            let node = self.dds.node(node_id);
            let full = self.matched.full.get(&node_id).copied().unwrap_or(0);
            let mut axes = Vec::new();
            if let Some(len) =
                self.records.get(&node_id).copied().filter(|_| node.kind == Kind::Sequence)
            {
                limited = limit(self.asked, self.dds, node_id);
                axes.push(Axis { len, slice: self.slices.slice(full, 0) });
                wanted.push(Wanted { name: Some(node.name.clone()), len, is_sequence: true });
            }
            for (at, dim) in node.dims.iter().enumerate() {
                let slice = self.slices.slice(full, at);
                if slice.is_some_and(|slice| slice.count() != dim.len) {
                    let what = format!(
                        "{} has {} elements, others were asked for",
                        self.dds.full_name(node_id),
                        dim.len
                    );
                    return Err(DapError::malformed(Document::Dds, 0, what));
                }
                axes.push(Axis { len: dim.len, slice });
                let name = dim.name.clone().or_else(|| names.get(&(node_id, at)).cloned());
                wanted.push(Wanted { name, len: dim.len, is_sequence: false });
            }
            if let (true, Some(grid)) = (node_id == id, self.matched.grids.get(&id)) {
                levels.push(Level { name: grid.clone(), is_sequence: false, axes: Vec::new() });
            }
            levels.push(Level {
                name: node.name.clone(),
                is_sequence: node.kind == Kind::Sequence,
                axes,
            });
            if let Kind::Atomic(found) = node.kind {
                atomic = found;
            }
        }
        let mut text_len = None;
        if atomic.is_text() {
            let (name, len) = self.text_dim(id);
            text_len = Some(len);
            wanted.push(Wanted { name: Some(name), len, is_sequence: false });
        }
        if wanted.len() > MAX_RANK {
            let what = format!("{} has more than {MAX_RANK} dimensions", self.dds.full_name(id));
            return Err(DapError::unrepresentable(Document::Dds, what));
        }
        Ok((Source { levels, atomic, text_len, limit: limited }, wanted))
    }
}

/// Dimensions in the order in which variables have them.
#[derive(Default)]
struct Dims {
    /// Name, length, and the name in the DDS.
    all: Vec<(String, u64, Option<String>)>,
    named: HashMap<(String, u64), usize>,
    /// How many lengths a name has.
    lengths: HashMap<String, u64>,
    /// The name in the DDS of the first dimension without elements, which becomes one that can grow: in the classic model one can.
    empty: Option<Option<String>>,
    /// That one is of a sequence, whose variables have it.
    has_empty_sequence: bool,
}

impl Dims {
    /// Whether a dimension of length 0 has a form: variables of a sequence that has no records yet have one.
    fn may_be_empty(&mut self, dim: &Wanted) -> bool {
        if self.empty.is_none() {
            self.empty = Some(dim.name.clone());
        }
        let has_form = dim.is_sequence && self.empty.as_ref() == Some(&dim.name);
        self.has_empty_sequence |= has_form;
        has_form
    }

    /// Numbers of the dimensions of a variable, its full name being `of`.
    fn add(&mut self, of: &str, wanted: Vec<Wanted>) -> Vec<usize> {
        let mut ids = Vec::new();
        for (at, dim) in wanted.into_iter().enumerate() {
            let id = self.all.len();
            let Some(name) = dim.name else {
                self.all.push((legal(&format!("{of}_{at}")), dim.len, None));
                ids.push(id);
                continue;
            };
            let key = (name.clone(), dim.len);
            if let Some(id) = self.named.get(&key) {
                ids.push(*id);
                continue;
            }
            let n = self.lengths.entry(name.clone()).or_insert(0);
            let shown = if *n == 0 { legal(&name) } else { format!("{}_{n}", legal(&name)) };
            *n = n.saturating_add(1);
            self.all.push((shown, dim.len, Some(name)));
            self.named.insert(key, id);
            ids.push(id);
        }
        ids
    }

    /// Defines them: the one that can grow first, the others by their names. The place in the model of each number.
    fn finish(self, record: Option<&str>, model: &mut Model) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        let unlimited = record.and_then(|record| {
            let at = self.all.iter().position(|(_, _, name)| name.as_deref() == Some(record))?;
            // Only a first dimension can grow.
            let is_first =
                model.vars.iter().all(|var| var.dims.iter().skip(1).all(|dim| *dim != at));
            (is_first && !self.has_empty_sequence).then_some(at)
        });
        let name = |at: &usize| self.all.get(*at).map(|(name, ..)| name.clone());
        zonda_runtime::sort::sort_by_key(&mut order, |at| (Some(*at) != unlimited, name(at)));
        let mut places = vec![0; self.all.len()];
        let (mut taken, mut n_doubles) = (HashSet::new(), 0u64);
        for at in order {
            let Some((name, len, shown)) = self.all.get(at) else { continue };
            // Nothing can be as long as nothing but what can grow.
            let can_grow = match unlimited {
                Some(unlimited) => at == unlimited,
                None => *len == 0 && self.empty.as_ref() == Some(shown),
            };
            if *len == 0 && !can_grow {
                continue;
            }
            let mut own = name.clone();
            while !taken.insert(own.clone()) {
                n_doubles = n_doubles.saturating_add(1);
                own = format!("{name}_{n_doubles}");
            }
            if let Some(place) = places.get_mut(at) {
                *place = model.dims.len();
            }
            model.dims.push(Dim { group: 0, name: own, len: *len, is_unlimited: can_grow });
        }
        places
    }
}

/// No two variables have one name.
fn distinct(model: &Model) -> Result<(), DapError> {
    let mut names = HashSet::new();
    match model.vars.iter().find(|var| !names.insert(var.name.as_str())) {
        None => Ok(()),
        Some(var) => {
            let what = format!("two variables would be called {}", var.name);
            Err(DapError::unrepresentable(Document::Dds, what))
        }
    }
}
