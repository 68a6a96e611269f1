//! Random lives of files that ranks of simulated teams write together: the same program makes the same bytes for any number of
//! ranks, and every rank reads what a plain model in memory has.

#[path = "common/numbers.rs"]
mod numbers;
#[path = "common/way.rs"]
mod way;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zonda::team::{Step, Team, threads};
use zonda::{
    CreateOptions, Dataset, Destination, DimId, Endianness, FillMode, FilterSpec, Format, GroupId,
    Hyperslab, MemType, OpenOptions, Reserve, StorageRequest, Values, VarId, VarRef, VlenSink,
    VlenSource,
};
use zonda_testkit::{Rng, by};

use numbers::{default_fill, element};
use way::write_behind_of;

const FORMATS: [Format; 5] =
    [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];
const SIZES: [usize; 6] = [1, 2, 3, 5, 8, 16];
/// The longest that a dimension grows.
const MOST_LEN: usize = 14;
const CHAR: i32 = 2;
const STRING: i32 = 12;

#[derive(Clone, Debug)]
struct Dim {
    id: DimId,
    name: String,
    /// 0 for one that can grow.
    fixed: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Number(i32),
    Text,
    /// Elements of so many bytes of a type that the file defines.
    Raw(i32, usize),
}

#[derive(Clone, Debug)]
struct Var {
    of: VarRef,
    name: String,
    kind: Kind,
    dims: Vec<usize>,
    /// Lengths along dimensions that can grow, of netCDF-4 variables.
    extent: Vec<usize>,
    /// What elements have that nobody put, where that is known.
    fill: Option<Vec<u8>>,
    is_compact: bool,
    /// Its chunks go through filters, so that all ranks put together.
    is_filtered: bool,
    is_collective: bool,
    /// What was put; `None` where the model does not know what that became.
    known: BTreeMap<Vec<usize>, Option<Vec<u8>>>,
}

/// The type of an attribute, and its texts.
type Texted = (i32, Vec<Vec<u8>>);

/// What the file is to have, as each rank knows it.
#[derive(Clone, Debug, Default)]
struct Model {
    dims: Vec<Dim>,
    vars: Vec<Var>,
    groups: Vec<GroupId>,
    types: Vec<(i32, usize)>,
    /// By owner and name: the type, and what rank 0 put.
    atts: BTreeMap<(u16, i32, String), Texted>,
    n_names: usize,
    n_puts: u64,
    is_filling: bool,
    /// Attributes got values in data mode that the ranks have not compared yet.
    has_new_values: bool,
}

/// How a life goes on its ranks.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Puts wait in queues of the ranks.
    is_queued: bool,
    /// Ranks sync before they put alone: what others put together may else come after it where puts wait.
    syncs: bool,
}

struct Life<'a> {
    rng: Rng,
    way: Way,
    /// None for one process without a team.
    team: Option<&'a threads::Threads>,
    format: Format,
    file: Dataset,
    model: Model,
}

/// Strings by number, beginning with 1.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl VlenSource for Texts {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address).ok()?.checked_sub(1)?).map(Vec::as_slice)
    }

    fn items(&mut self, _: u64, _: usize) -> &[u8] {
        &[]
    }
}

impl VlenSink for Texts {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

/// A small number that the element of a put gets.
fn value(n_put: u64, at: &[usize]) -> i32 {
    let mix = |sum: u64, n: u64| (sum ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    (at.iter().fold(mix(n_put, 7), |sum, &n| mix(sum, n as u64 + 1)) % 100) as i32
}

fn read_as(kind: Kind, value: i32) -> Vec<u8> {
    match kind {
        Kind::Number(_) => f64::from(value).to_ne_bytes().to_vec(),
        Kind::Text => vec![b'a' + (value % 26) as u8],
        Kind::Raw(_, size) => vec![value as u8; size],
    }
}

/// Of what ranks put along one axis: the places of `n` that are a rank's, as first, step and number.
fn share(n: usize, is_cyclic: bool, rank: usize, size: usize) -> (usize, usize, usize) {
    if is_cyclic {
        return (rank.min(n), size, n.saturating_sub(rank).div_ceil(size));
    }
    let each = n.div_ceil(size).max(1);
    let first = (each * rank).min(n);
    (first, 1, each.min(n - first))
}

/// All places in a box of such lengths.
fn places(count: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &n in count {
        all = all
            .into_iter()
            .flat_map(|at: Vec<usize>| (0..n).map(move |i| [&at[..], &[i]].concat()))
            .collect();
    }
    all
}

impl Life<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn rank(&self) -> usize {
        self.team.map_or(0, Team::rank)
    }

    fn size(&self) -> usize {
        self.team.map_or(1, Team::size)
    }

    fn is_nc4(&self) -> bool {
        self.format.is_hdf5()
    }

    fn is_enhanced(&self) -> bool {
        self.format == Format::NetCdf4
    }

    fn name(&mut self, what: &str) -> String {
        self.model.n_names += 1;
        format!("{what}{:04}", self.model.n_names)
    }

    /// All ranks have come here.
    fn meet(&self) {
        if let Some(team) = self.team {
            team.meet(Step { call: "test", file: "test" }).unwrap();
        }
    }

    fn define(&mut self, n: usize) {
        for _ in 0..n {
            match self.below(12) {
                0 | 1 => self.def_dim(),
                2..=5 => self.def_var(),
                6 => self.put_att(false),
                7 => self.put_att(false),
                8 if self.is_enhanced() => self.def_group(),
                9 if self.is_enhanced() => self.def_type(),
                8 | 9 => self.rename(),
                10 => self.del_att(),
                _ => self.set_fill(),
            }
        }
    }

    fn def_dim(&mut self) {
        let can_grow = match self.format {
            Format::NetCdf4 => self.one_in(3),
            _ => self.model.dims.iter().all(|dim| dim.fixed > 0) && self.one_in(2),
        };
        let fixed = if can_grow { 0 } else { 1 + self.below(9) };
        let name = self.name("d");
        let id = self.file.def_dim(name.as_bytes(), fixed).unwrap();
        self.model.dims.push(Dim { id, name, fixed, len: fixed });
    }

    fn def_group(&mut self) {
        // Under one group they have the same numbers when the file is opened again.
        let parent = GroupId::ROOT;
        let name = self.name("g");
        let group = self.file.def_group(parent, name.as_bytes()).unwrap();
        self.model.groups.push(group);
    }

    fn some_group(&mut self) -> GroupId {
        let n = self.below(self.model.groups.len() + 1);
        n.checked_sub(1).map_or(GroupId::ROOT, |n| self.model.groups[n])
    }

    fn def_type(&mut self) {
        let name = self.name("t");
        let (root, name) = (GroupId::ROOT, name.as_bytes());
        let (ty, size) = match self.below(3) {
            0 => {
                let size = 1 + self.below(9);
                (self.file.def_opaque(root, size, name).unwrap(), size)
            }
            1 => {
                let ty = self.file.def_compound(root, 8, name).unwrap();
                self.file.insert_field((root, ty), b"a", 0, 4, &[]).unwrap();
                self.file.insert_field((root, ty), b"b", 4, 4, &[]).unwrap();
                (ty, 8)
            }
            _ => {
                let ty = self.file.def_enum(root, 3, name).unwrap();
                for n in 0..4_i16 {
                    let member = format!("m{n}");
                    self.file
                        .insert_member((root, ty), member.as_bytes(), &n.to_ne_bytes())
                        .unwrap();
                }
                (ty, 2)
            }
        };
        self.model.types.push((ty, size));
    }

    fn set_fill(&mut self) {
        self.model.is_filling = self.one_in(2);
        let mode = if self.model.is_filling { FillMode::Fill } else { FillMode::NoFill };
        self.file.set_fill(mode).unwrap();
    }

    fn kind(&mut self) -> Kind {
        let n_types = self.model.types.len();
        if n_types > 0 && self.one_in(4) {
            let n = self.below(n_types);
            let (ty, size) = self.model.types[n];
            return Kind::Raw(ty, size);
        }
        let all_numbers = matches!(self.format, Format::Cdf5 | Format::NetCdf4);
        match 1 + self.below(if all_numbers { 11 } else { 6 }) as i32 {
            CHAR => Kind::Text,
            ty => Kind::Number(ty),
        }
    }

    fn def_var(&mut self) {
        let kind = self.kind();
        let mut dims: Vec<usize> = Vec::new();
        for _ in 0..self.below(4).min(self.model.dims.len()) {
            let dim = self.below(self.model.dims.len());
            // Classic records are first, and HDF5 variables have a dimension of the classic model once.
            let can_grow = self.model.dims[dim].fixed == 0;
            if !dims.contains(&dim) && (self.is_enhanced() || !can_grow || dims.is_empty()) {
                dims.push(dim);
            }
        }
        let group = if self.is_enhanced() { self.some_group() } else { GroupId::ROOT };
        let (name, ty) = (
            self.name("v"),
            match kind {
                Kind::Number(ty) | Kind::Raw(ty, _) => ty,
                Kind::Text => CHAR,
            },
        );
        let ids: Vec<i32> = dims.iter().map(|&dim| self.model.dims[dim].id.0).collect();
        let id = self.file.def_var_in(group, name.as_bytes(), ty, &ids).unwrap();
        let of = VarRef { group, var: id };
        let can_grow = dims.iter().any(|&dim| self.model.dims[dim].fixed == 0);
        let (mut is_compact, mut is_filtered) = (false, false);
        if self.is_nc4() {
            match self.below(5) {
                0 if !can_grow => {
                    self.file.def_var_chunking(of, StorageRequest::Contiguous, None).unwrap();
                }
                1 if !can_grow => {
                    is_compact = true;
                    self.file.def_var_chunking(of, StorageRequest::Compact, None).unwrap();
                }
                2 | 3 if !dims.is_empty() => {
                    let sizes: Vec<usize> = dims
                        .iter()
                        .map(|&dim| {
                            let most = self.model.dims[dim].fixed;
                            1 + self.rng.below(if most == 0 { 5 } else { most as u64 }) as usize
                        })
                        .collect();
                    let how = StorageRequest::Chunked;
                    self.file.def_var_chunking(of, how, Some(&sizes)).unwrap();
                    is_filtered = self.one_in(2);
                }
                // Contiguous ones get chunks.
                4 if !dims.is_empty() => is_filtered = self.one_in(4),
                _ => {}
            }
            if is_filtered {
                self.def_filters(of, kind);
            }
            if matches!(kind, Kind::Number(_)) && self.one_in(4) {
                self.file.def_var_endian(of, Endianness::Big).unwrap();
            }
        }
        let is_filled = self.model.is_filling && self.is_nc4();
        let mut fill = match kind {
            Kind::Number(ty) => Some(default_fill(ty).to_ne_bytes().to_vec()),
            Kind::Text => Some(vec![0]),
            Kind::Raw(..) => None,
        };
        fill = fill.filter(|_| is_filled);
        let by = self.rng.below(100) as i32;
        match (self.below(5), kind) {
            (0, Kind::Number(ty)) => {
                let value = element(ty, by);
                self.file.def_var_fill(of, false, Some(&value)).unwrap();
                fill = Some(f64::from(by).to_ne_bytes().to_vec()).filter(|_| self.is_nc4());
            }
            (1, _) => {
                self.file.def_var_fill(of, true, None).unwrap();
                fill = None;
            }
            (2, Kind::Number(ty)) if ty < 7 => {
                // As an attribute, whose value may differ between ranks; that of rank 0 counts.
                let own = by + self.rank() as i32 % 3;
                let bytes = element(ty, own);
                let done = self.file.put_att(of, b"_FillValue", ty, 1, None, &bytes).unwrap();
                assert_eq!(done.out_of_range, 0);
                fill = fill.map(|_| f64::from(by).to_ne_bytes().to_vec());
            }
            _ => {}
        }
        let extent = dims.iter().map(|&dim| self.model.dims[dim].fixed).collect();
        let (is_collective, known) = (is_filtered, BTreeMap::new());
        let var = Var {
            of,
            name,
            kind,
            dims,
            extent,
            fill,
            is_compact,
            is_filtered,
            is_collective,
            known,
        };
        self.model.vars.push(var);
    }

    fn def_filters(&mut self, of: VarRef, kind: Kind) {
        let is_number = matches!(kind, Kind::Number(_));
        for _ in 0..1 + self.below(2) {
            match self.below(7) {
                0 | 1 => {
                    let (shuffle, level) = (self.one_in(2), 1 + self.below(3) as i32);
                    // Not beside szip.
                    if self.file.def_var_deflate(of, shuffle, Some(level)).is_err() {
                        self.file.def_var_fletcher32(of, true).unwrap();
                    }
                }
                2 => self.file.def_var_deflate(of, true, None).unwrap(),
                3 => self.file.def_var_fletcher32(of, true).unwrap(),
                n => {
                    // Zstandard, bzip2; szip, which only numbers go through.
                    let which = if is_number { n - 4 } else { (n - 4) % 2 };
                    let (id, params) =
                        [(32015, vec![3]), (307, vec![1]), (4, vec![32, 4])][which].clone();
                    let filter = FilterSpec { id, name: String::new(), optional: false, params };
                    // Szip may find that it cannot take chunks of this shape.
                    if self.file.def_var_filter(of, filter).is_err() {
                        self.file.def_var_fletcher32(of, true).unwrap();
                    }
                }
            }
        }
    }

    /// An owner of attributes.
    fn owner(&mut self) -> VarRef {
        let n_vars = self.model.vars.len();
        if n_vars > 0 && self.one_in(2) {
            let n = self.below(n_vars);
            return self.model.vars[n].of;
        }
        let group = if self.is_enhanced() { self.some_group() } else { GroupId::ROOT };
        VarRef::group(group)
    }

    fn some_att(&mut self) -> Option<(VarRef, String)> {
        let n = self.model.atts.len();
        let key = self.model.atts.keys().nth(self.rng.below(n as u64) as usize).cloned()?;
        Some((VarRef { group: GroupId(key.0), var: VarId(key.1) }, key.2))
    }

    /// What the attribute gets on a rank: other words on each.
    fn words(n_put: u64, rank: usize, most: usize) -> Vec<u8> {
        let text = format!("put {n_put} of {rank} and more words");
        let len = 1 + value(n_put, &[rank]) as usize % most.min(text.len());
        text.as_bytes()[..len].to_vec()
    }

    fn put_att(&mut self, in_data_mode: bool) {
        if in_data_mode && self.model.has_new_values {
            self.sync();
        }
        self.model.n_puts += 1;
        let n_put = self.model.n_puts;
        let old = if in_data_mode || self.one_in(3) { self.some_att() } else { None };
        if in_data_mode && !self.is_enhanced() && old.is_none() {
            return;
        }
        let (owner, name) = old.unwrap_or_else(|| (self.owner(), self.name("a")));
        let key = (owner.group.0, owner.var.0, name.clone());
        let before = self.model.atts.get(&key).map(|(_, texts)| texts[0].len());
        let most = if in_data_mode && !self.is_enhanced() { before.unwrap_or(1) } else { 24 };
        let is_string = self.is_enhanced() && self.one_in(2);
        let rank = self.rank();
        if is_string {
            let of =
                |rank| vec![Self::words(n_put, rank, 24), Self::words(n_put + 1000, rank + 1, 9)];
            let mut texts = Texts(of(rank));
            let numbers: Vec<u8> = [1_u64, 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
            let values = Values { bytes: &numbers, fetch: Some(&mut texts) };
            let done =
                self.file.put_att_values(owner, name.as_bytes(), (STRING, 2), values).unwrap();
            assert_eq!(done.out_of_range, 0);
            self.model.atts.insert(key, (STRING, of(0)));
        } else {
            let text = Self::words(n_put, rank, most);
            let mem = Some(MemType::Text);
            let done =
                self.file.put_att(owner, name.as_bytes(), CHAR, text.len(), mem, &text).unwrap();
            assert_eq!(done.out_of_range, 0);
            self.model.atts.insert(key, (CHAR, vec![Self::words(n_put, 0, most)]));
        }
        self.model.has_new_values |= in_data_mode;
    }

    fn del_att(&mut self) {
        let Some((owner, name)) = self.some_att() else { return };
        self.file.del_att(owner, name.as_bytes()).unwrap();
        self.model.atts.remove(&(owner.group.0, owner.var.0, name));
    }

    /// Gives something another name that is as long.
    fn rename(&mut self) {
        self.model.n_names += 1;
        let n = self.model.n_names;
        match self.below(3) {
            0 if !self.model.dims.is_empty() => {
                let at = self.below(self.model.dims.len());
                let name = format!("D{n:04}");
                let dim = &mut self.model.dims[at];
                self.file.rename_dim(dim.id, name.as_bytes()).unwrap();
                dim.name = name;
            }
            1 if !self.model.vars.is_empty() => {
                let at = self.below(self.model.vars.len());
                let name = format!("V{n:04}");
                let var = &mut self.model.vars[at];
                self.file.rename_var(var.of, name.as_bytes()).unwrap();
                var.name = name;
            }
            _ => {
                let Some((owner, old)) = self.some_att() else { return };
                let name = format!("A{n:04}");
                self.file.rename_att(owner, old.as_bytes(), name.as_bytes()).unwrap();
                let atts = &mut self.model.atts;
                let what = atts.remove(&(owner.group.0, owner.var.0, old)).unwrap();
                atts.insert((owner.group.0, owner.var.0, name), what);
            }
        }
    }

    fn sync(&mut self) {
        self.file.sync().unwrap();
        self.model.has_new_values = false;
    }

    fn enddef(&mut self) {
        self.file.enddef(Reserve::Default).unwrap();
        self.model.has_new_values = false;
    }

    /// The length of a variable along an axis, for reading.
    fn len(&self, var: &Var, axis: usize) -> usize {
        self.model.dims[var.dims[axis]].len
    }

    fn put(&mut self) {
        if self.model.vars.is_empty() {
            return;
        }
        let at = self.below(self.model.vars.len());
        let mut var = self.model.vars[at].clone();
        let (is_nc4, has_team) = (self.is_nc4(), self.team.is_some());
        if self.one_in(3) && has_team && !var.is_filtered || var.is_filtered && !var.is_collective {
            let is_collective = !var.is_collective;
            if has_team {
                self.file.set_collective(var.of, is_collective).unwrap();
            }
            let same = |other: &Var| !is_nc4 || other.of == var.of;
            self.model.vars.iter_mut().filter(|other| same(other)).for_each(|other| {
                other.is_collective = is_collective;
            });
            var.is_collective = is_collective;
        }
        self.model.n_puts += 1;
        let n_put = self.model.n_puts;
        if !var.is_collective {
            if var.is_compact {
                // Puts into headers are made in the order of ranks when all meet.
                self.sync();
            }
            // No two ranks put to the same place at the same time.
            if self.way.syncs { self.sync() } else { self.meet() }
        }
        let rank = var.dims.len();
        let (mut start, mut count, mut stride) = (vec![0; rank], vec![0; rank], vec![1; rank]);
        for axis in 0..rank {
            let dim = &self.model.dims[var.dims[axis]];
            let len = match dim.fixed {
                0 if is_nc4 && has_team && !var.is_collective => var.extent[axis],
                0 => (dim.len + self.rng.below(4) as usize).clamp(1, MOST_LEN),
                fixed => fixed,
            };
            if len == 0 {
                continue;
            }
            stride[axis] = [1, 1, 1, 2, 3][self.rng.below(5) as usize];
            start[axis] = self.rng.below(len as u64) as usize;
            let most = (len - start[axis]).div_ceil(stride[axis]);
            count[axis] =
                if self.rng.below(3) > 0 { most } else { self.rng.below(most as u64 + 1) as usize };
        }
        // This rank's part.
        let (mut own_start, mut own_count, mut own_stride) =
            (start.clone(), count.clone(), stride.clone());
        let (mut first, mut step, mut split) = (0, 1, None);
        if rank > 0 {
            let axis = self.below(rank);
            let is_cyclic = self.one_in(3);
            let n;
            (first, step, n) = share(count[axis], is_cyclic, self.rank(), self.size());
            split = Some(axis);
            own_count[axis] = n;
            own_start[axis] = if n == 0 { 0 } else { start[axis] + first * stride[axis] };
            own_stride[axis] = stride[axis] * step;
        }
        if own_count.contains(&0) {
            own_start.fill(0);
        }
        let mem = match var.kind {
            Kind::Number(_) => Some([MemType::I32, MemType::F64, MemType::I16][self.below(3)]),
            Kind::Text => Some(MemType::Text),
            Kind::Raw(..) => None,
        };
        let is_too_large = var.kind == Kind::Number(1) && self.one_in(3);
        let more = if is_too_large { 250 } else { 0 };
        let bytes_of = |value: i32| match (mem, var.kind) {
            (Some(MemType::I32), _) => (value + more).to_ne_bytes().to_vec(),
            (Some(MemType::F64), _) => f64::from(value + more).to_ne_bytes().to_vec(),
            (Some(MemType::I16), _) => ((value + more) as i16).to_ne_bytes().to_vec(),
            (_, kind) => read_as(kind, value),
        };
        let own_places = places(&own_count);
        let bytes: Vec<u8> = own_places
            .iter()
            .flat_map(|place| {
                let mut global = place.clone();
                if let Some(axis) = split {
                    global[axis] = first + place[axis] * step;
                }
                bytes_of(value(n_put, &global))
            })
            .collect();
        let strides: Vec<isize> = own_stride.iter().map(|&n| n as isize).collect();
        let is_strided = own_stride.iter().any(|&n| n != 1);
        let slab = Hyperslab {
            start: &own_start,
            count: &own_count,
            stride: is_strided.then_some(&strides[..]),
        };
        let done = match mem {
            Some(_) => self.file.put(var.of, &slab, mem, &bytes),
            None => self.file.put_values(var.of, &slab, Values::plain(&bytes)),
        };
        let done = done.unwrap_or_else(|error| panic!("put {n_put} to {var:?}, {slab:?}: {error}"));
        let n_too_large = if is_too_large { own_places.len() as u64 } else { 0 };
        assert_eq!(done.out_of_range, n_too_large);
        // What all ranks put.
        let all = places(&count);
        let has_elements = !all.is_empty();
        for place in all {
            let put = value(n_put, &place);
            let index = (0..rank).map(|axis| start[axis] + place[axis] * stride[axis]).collect();
            var.known.insert(index, (!is_too_large).then(|| read_as(var.kind, put)));
        }
        for axis in 0..rank {
            if has_elements {
                let end = start[axis] + (count[axis] - 1) * stride[axis] + 1;
                var.extent[axis] = var.extent[axis].max(end);
                let dim = &mut self.model.dims[var.dims[axis]];
                dim.len = dim.len.max(end);
            }
        }
        if !var.is_collective && !is_nc4 {
            // Others learn of records that a rank made alone when all meet.
            self.sync();
        }
        if var.is_filtered && self.one_in(3) {
            // What other ranks have put just now is seen, too, where all get.
            self.check_var(&var, "after a put");
        }
        self.model.vars[at] = var;
    }

    /// Reads a variable, and compares it with the model.
    fn check_var(&self, var: &Var, what: &str) {
        let count: Vec<usize> = (0..var.dims.len()).map(|axis| self.len(var, axis)).collect();
        let start = vec![0; count.len()];
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let n: usize = count.iter().product();
        let size = match var.kind {
            Kind::Number(_) => 8,
            Kind::Text => 1,
            Kind::Raw(_, size) => size,
        };
        let mut bytes = vec![0xA5; n * size];
        let mem = match var.kind {
            Kind::Number(_) => Some(MemType::F64),
            Kind::Text => Some(MemType::Text),
            Kind::Raw(..) => None,
        };
        let done = match mem {
            Some(_) => self.file.get(var.of, &slab, mem, &mut bytes),
            None => self.file.get_values(var.of, &slab, Destination::plain(&mut bytes)),
        };
        let done = done.unwrap_or_else(|error| panic!("{what}: {error}, {var:?}"));
        assert_eq!(done.out_of_range, 0);
        for (place, got) in places(&count).into_iter().zip(bytes.chunks(size)) {
            let expected = match var.known.get(&place) {
                Some(put) => put.as_deref(),
                None => var.fill.as_deref(),
            };
            if let Some(expected) = expected {
                assert_eq!(got, expected, "{what}: rank {} at {place:?} of {var:?}", self.rank());
            }
        }
    }

    fn check_all(&self, what: &str) {
        for dim in &self.model.dims {
            let found = self
                .file
                .meta(|meta| meta.dim(dim.id).map(|found| (found.name.to_vec(), found.len)));
            assert_eq!(found.unwrap(), (dim.name.clone().into_bytes(), dim.len as u64), "{what}");
        }
        for ((group, var, name), (ty, texts)) in &self.model.atts {
            let owner = VarRef { group: GroupId(*group), var: VarId(*var) };
            if *ty == STRING {
                let (mut list, mut parts) = (Vec::new(), Texts::default());
                let mut bytes = vec![0; 8 * texts.len()];
                let room = Destination { bytes: &mut bytes, place: Some(&mut parts) };
                let mut get = zonda::Transfer::new(zonda::AttAccess {
                    owner,
                    name: name.as_bytes(),
                    mem: None,
                });
                let done = self.file.get_att_from(&mut get).unwrap().read(room).unwrap();
                assert_eq!(done.out_of_range, 0);
                list.append(&mut parts.0);
                assert_eq!(list, *texts, "{what}: attribute {name}");
            } else {
                let mut bytes = vec![0; texts[0].len()];
                let mem = Some(MemType::Text);
                let done = self.file.get_att(owner, name.as_bytes(), mem, &mut bytes);
                let done = done.unwrap_or_else(|error| {
                    panic!("{what}: rank {} attribute {name}: {error}", self.rank())
                });
                assert_eq!(done.out_of_range, 0);
                assert_eq!(bytes, texts[0], "{what}: attribute {name}");
            }
        }
        self.model.vars.iter().for_each(|var| self.check_var(var, what));
    }

    /// What a program does between definitions.
    fn use_data(&mut self, path: &Path, n: usize) {
        for _ in 0..n {
            match self.below(20) {
                0..=10 => self.put(),
                11 | 12 => self.put_att(true),
                13 => self.rename(),
                14 => {
                    self.file.redef().unwrap();
                    let n = 1 + self.below(4);
                    self.define(n);
                    self.enddef();
                }
                15 if self.is_enhanced() => {
                    // Definitions in data mode.
                    let n = 1 + self.below(3);
                    self.define(n);
                }
                16 => self.reopen(path),
                17 | 18 => {
                    self.sync();
                    if let Some(var) = self.below(self.model.vars.len().max(1)).into() {
                        let var = self.model.vars.get::<usize>(var).cloned();
                        var.iter().for_each(|var| self.check_var(var, "after a sync"));
                    }
                }
                _ => self.sync(),
            }
        }
    }

    fn reopen(&mut self, path: &Path) {
        self.file.close().unwrap();
        self.file = match self.team {
            Some(team) => opened(team, path, self.way),
            None => {
                Dataset::open(path, &OpenOptions { write: true, ..OpenOptions::default() }).unwrap()
            }
        };
        self.model.has_new_values = false;
        self.model.is_filling = true;
        self.model.vars.iter_mut().for_each(|var| var.is_collective = false);
    }

    fn end(&mut self) {
        self.sync();
        self.check_all("at the end");
        self.file.close().unwrap();
    }
}

fn opened(team: &threads::Threads, path: &Path, way: Way) -> Dataset {
    let write_behind = way.is_queued.then(|| write_behind_of(team.rank()));
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let options = OpenOptions { write: true, write_behind, ..OpenOptions::default() };
    Dataset::open_parallel(team, path, &options).unwrap()
}

/// One process makes a file; elements have no place in it yet.
fn serial(path: &Path, format: Format, seed: u64) -> Model {
    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create(path, &options).unwrap();
    let model = Model { is_filling: true, ..Model::default() };
    let (rng, way) = (Rng::new(seed ^ 0x5E41), Way::default());
    let mut life = Life { rng, way, team: None, format, file, model };
    life.define(14);
    life.enddef();
    life.use_data(path, 4);
    life.end();
    life.model.vars.iter_mut().for_each(|var| var.is_collective = false);
    life.model
}

fn live(
    team: &threads::Threads,
    path: &Path,
    format: Format,
    (seed, n, way): (u64, usize, Way),
    before: Option<Model>,
) -> Model {
    let shared: Arc<dyn Team> = Arc::new(team.clone());
    let write_behind = way.is_queued.then(|| write_behind_of(team.rank()));
    let options = CreateOptions { format, write_behind, ..CreateOptions::default() };
    let is_new = before.is_none();
    let file = match is_new {
        true => Dataset::create_parallel(shared, path, &options).unwrap(),
        false => opened(team, path, way),
    };
    let is_filling = format.is_hdf5() || !is_new;
    let model = before.unwrap_or(Model { is_filling, ..Model::default() });
    let mut life = Life { rng: Rng::new(seed), way, team: Some(team), format, file, model };
    if is_new {
        life.define(14);
        life.enddef();
    }
    life.use_data(path, n);
    life.end();
    life.model
}

/// The same life with any number of ranks.
fn try_seed(folder: &Path, format: Format, seed: u64, n: usize) {
    let what = format!("{format:?}, seed {seed}");
    let start = folder.join("start.nc");
    let before = (seed % 3 == 2).then(|| serial(&start, format, seed));
    let mut first: Option<Vec<u8>> = None;
    // Every other seed is lived with queues, too.
    let syncs = seed.is_multiple_of(2);
    let ways = [false, true].map(|is_queued| Way { is_queued, syncs });
    let ways = if syncs { &ways[..] } else { &ways[..1] };
    for (size, way) in SIZES.into_iter().flat_map(|size| ways.iter().map(move |way| (size, *way))) {
        let path = folder.join(format!("{size}.nc"));
        if before.is_some() {
            std::fs::copy(&start, &path).unwrap();
        }
        let what = format!("{what}, {size} ranks, {way:?}");
        let ends = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            threads::all(size, |team| live(team, &path, format, (seed, n, way), before.clone()))
        }));
        let ends = ends.unwrap_or_else(|_| panic!("{what}"));
        let made = std::fs::read(&path).unwrap();
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let model = ends.into_iter().next().unwrap();
        let life = Life { rng: Rng::new(0), way, team: None, format, file, model };
        life.check_all(&what);
        let expected = first.get_or_insert_with(|| made.clone());
        if made != *expected {
            let at = made.iter().zip(expected.iter()).position(|(a, b)| a != b);
            let kept = std::env::temp_dir().join("zonda-lives");
            std::fs::create_dir_all(&kept).unwrap();
            std::fs::write(kept.join("one.nc"), &*expected).unwrap();
            std::fs::write(kept.join("other.nc"), &made).unwrap();
            panic!(
                "{what}: {} bytes and one {}, first difference {at:?}, in {}",
                made.len(),
                expected.len(),
                kept.display()
            );
        }
    }
}

#[test]
fn random_programs_make_the_same_file_with_any_number_of_ranks() {
    // Memory, where there is a folder of it: what is synced so often is not to wait for a disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    let first = std::env::var("ZONDA_SEED").ok().and_then(|text| text.parse().ok());
    let n_seeds = by(3, 400);
    for seed in first.map_or(0..n_seeds, |seed: u64| seed..seed + 1) {
        for format in FORMATS {
            try_seed(folder.path(), format, seed, by(16, 60));
        }
    }
}
