//! Random sequences of calls against a plain model in memory.
//!
//! The model knows what every element must hold after any sequence of definitions, puts, fills,
//! redefinitions and reopenings. Files are held in memory storage and read back through a fresh
//! `ClassicFile`, so that what counts is what was stored.

use std::collections::HashMap;
use std::sync::Arc;

use zonda_classic::{ClassicFile, FillMode, Reserve, Version};
use zonda_format::{
    Access, AttAccess, AttPut, Destination, Dispatch, DispatchWrite, GroupId, Result, Transfer,
    Values,
};
use zonda_model::{DimId, ExtType, Hyperslab, MemType, NcError, VarId};
use zonda_storage::backend::Memory;
use zonda_storage::{Spec, Storage};

/// Whether something happens that does so in `percent` of all cases.
fn chance(random: &mut fastrand::Rng, percent: usize) -> bool {
    random.usize(..100) < percent
}

/// A number from 0 to `n` - 1; 0 if `n` is 0.
fn below(random: &mut fastrand::Rng, n: usize) -> usize {
    random.usize(..n.max(1))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    /// Never written in no-fill mode: may hold anything.
    Undefined,
    Value(f64),
}

struct ModelVar {
    name: String,
    /// Lengths, 0 for records.
    shape: Vec<usize>,
    cells: HashMap<Vec<usize>, Cell>,
    fill: f64,
    no_fill: bool,
}

impl ModelVar {
    fn is_record(&self) -> bool {
        self.shape.first() == Some(&0)
    }
}

struct Model {
    n_records: usize,
    vars: Vec<ModelVar>,
    dims: Vec<usize>,
    atts: HashMap<String, Vec<i32>>,
}

fn default_fill(ty: ExtType) -> f64 {
    match ty {
        ExtType::Byte => -127.0,
        ExtType::Short => -32767.0,
        ExtType::Int => -2_147_483_647.0,
        ExtType::Float => f64::from(f32::from_bits(0x7CF0_0000)),
        ExtType::Double => f64::from_bits(0x479E_0000_0000_0000),
        ExtType::UByte => 255.0,
        ExtType::UShort => 65535.0,
        ExtType::UInt => 4_294_967_295.0,
        ExtType::Int64 => -9_223_372_036_854_775_806.0,
        ExtType::UInt64 => 18_446_744_073_709_551_614.0,
        ExtType::Char => 0.0,
    }
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &len| {
        all.into_iter()
            .flat_map(|at: Vec<usize>| (0..len).map(move |i| [&at[..], &[i]].concat()))
            .collect()
    })
}

struct Run {
    random: fastrand::Rng,
    storage: Arc<dyn Storage>,
    file: ClassicFile,
    model: Model,
    version: Version,
    fill: FillMode,
    n_names: usize,
    log: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = fastrand::Rng::with_seed(seed);
        let version = [Version::Cdf1, Version::Cdf2, Version::Cdf5][below(&mut random, 3)];
        let mut storage: Arc<dyn Storage> = Arc::new(Memory::new());
        if seed % 2 == 1 {
            storage = Spec::parse("cache:1:3").unwrap().build_on(storage).unwrap();
        }
        let file =
            ClassicFile::create(Arc::clone(&storage), None, version, chance(&mut random, 20));
        Run {
            random,
            storage,
            file,
            version,
            model: Model { n_records: 0, vars: vec![], dims: vec![], atts: HashMap::new() },
            fill: FillMode::Fill,
            n_names: 0,
            log: vec![format!("create {version:?}")],
        }
    }

    fn name(&mut self) -> String {
        self.n_names += 1;
        format!("n{}{}", self.n_names, "x".repeat(below(&mut self.random, 9)))
    }

    fn types(&self) -> Vec<ExtType> {
        let all = ExtType::ALL.into_iter().filter(|&ty| ty != ExtType::Char);
        all.filter(|&ty| self.version == Version::Cdf5 || ty <= ExtType::Double).collect()
    }

    fn define(&mut self) {
        for _ in 0..below(&mut self.random, 4) {
            match below(&mut self.random, 4) {
                0 => {
                    let has_record = self.model.dims.contains(&0);
                    let len = if !has_record && chance(&mut self.random, 60) {
                        0
                    } else {
                        1 + below(&mut self.random, 5)
                    };
                    let name = self.name();
                    self.file.def_dim(GroupId::ROOT, name.as_bytes(), len).expect("def_dim");
                    self.log.push(format!("def_dim {name} {len}"));
                    self.model.dims.push(len);
                }
                1 | 2 => self.define_var(),
                _ => {
                    let name = format!("att{}", below(&mut self.random, 4));
                    let values: Vec<i32> =
                        (0..below(&mut self.random, 200)).map(|_| self.random.i32(..)).collect();
                    self.put_att(&name, &values).expect("put_att in define mode");
                    self.model.atts.insert(name, values);
                }
            }
        }
    }

    fn put_att(&mut self, name: &str, values: &[i32]) -> Result<()> {
        self.log.push(format!("put_att {name} of {}", values.len()));
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let (owner, name, n_values) = (VarId::GLOBAL.into(), name.as_bytes(), values.len());
        let att = AttPut { owner, name, nc_type: 4, n_values, mem: Some(MemType::I32) };
        self.file
            .put_att(&att, Values::plain(&bytes))
            .map(|converted| assert_eq!(converted.out_of_range, 0))
    }

    fn define_var(&mut self) {
        let record = self.model.dims.iter().position(|&len| len == 0);
        let mut dims = Vec::new();
        if let Some(record) = record
            && chance(&mut self.random, 60)
        {
            dims.push(record);
        }
        for _ in 0..below(&mut self.random, 3) {
            let dim = below(&mut self.random, self.model.dims.len());
            if self.model.dims.get(dim).is_some_and(|&len| len > 0) {
                dims.push(dim);
            }
        }
        let types = self.types();
        let ty = types[below(&mut self.random, types.len())];
        let name = self.name();
        let ids: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
        let id =
            self.file.def_var(GroupId::ROOT, name.as_bytes(), ty.nc_type(), &ids).expect("def_var");
        assert_eq!(id.0 as usize, self.model.vars.len());
        let mut var = ModelVar {
            name: name.clone(),
            shape: dims.iter().map(|&dim| self.model.dims[dim]).collect(),
            cells: HashMap::new(),
            fill: default_fill(ty),
            no_fill: self.fill == FillMode::NoFill,
        };
        if chance(&mut self.random, 30) {
            var.fill = below(&mut self.random, 100) as f64;
            var.no_fill = false;
            let bytes = native(ty, var.fill);
            self.file
                .def_var_fill(id.into(), false, Some(Values::plain(&bytes)))
                .expect("def_var_fill");
        }
        self.log.push(format!(
            "def_var {name} {ty:?} {:?} fill {} no_fill {}",
            var.shape, var.fill, var.no_fill
        ));
        self.model.vars.push(var);
    }

    /// Space comes into being: the records `from` on of every record variable, and what a new
    /// fixed-size variable holds. Cells that exist keep their value.
    fn make_space(&mut self, first_var: usize, from: usize) {
        let n_records = self.model.n_records;
        for var in self.model.vars.iter_mut().skip(first_var) {
            let mut shape = var.shape.clone();
            let record = var.is_record();
            if record {
                shape[0] = n_records;
            }
            let cell = if var.no_fill { Cell::Undefined } else { Cell::Value(var.fill) };
            for at in indices(&shape) {
                if !record || at[0] >= from {
                    var.cells.entry(at).or_insert(cell);
                }
            }
        }
    }

    fn enddef(&mut self, first_new: usize) {
        let reserve = if chance(&mut self.random, 50) {
            Reserve::Default
        } else {
            Reserve::Explicit {
                h_minfree: below(&mut self.random, 100) as u64,
                v_align: 4 << below(&mut self.random, 6),
                v_minfree: below(&mut self.random, 50) as u64 * 4,
                r_align: 4 << below(&mut self.random, 6),
            }
        };
        self.log.push(format!("enddef {reserve:?}"));
        self.file.enddef(reserve).expect("enddef");
        self.make_space(first_new, 0);
    }

    fn put(&mut self) {
        if self.model.vars.is_empty() {
            return;
        }
        let index = below(&mut self.random, self.model.vars.len());
        let shape = self.model.vars[index].shape.clone();
        let (mut start, mut count, mut stride) = (vec![], vec![], vec![]);
        for &len in &shape {
            let len =
                if len == 0 { self.model.n_records + 1 + below(&mut self.random, 3) } else { len };
            let from = below(&mut self.random, len);
            let step = 1 + below(&mut self.random, 3);
            let most = (len - from).div_ceil(step);
            start.push(from);
            count.push(1 + below(&mut self.random, most));
            stride.push(step as isize);
        }
        if stride.iter().all(|&s| s == 1) || chance(&mut self.random, 50) {
            stride.fill(1);
        }
        let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
        let n = slab.n_elems().expect("small");
        let values: Vec<f64> = (0..n).map(|_| below(&mut self.random, 100) as f64).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        self.log.push(format!("put {index} {start:?} {count:?} {stride:?}"));
        let slab =
            if stride.iter().all(|&s| s == 1) { Hyperslab { stride: None, ..slab } } else { slab };
        let put = Access { var: VarId(index as i32).into(), slab, mem: Some(MemType::F64) };
        let converted =
            self.file.shared_put_now(&mut Transfer::new(put), Values::plain(&bytes)).expect("put");
        assert_eq!(converted.out_of_range, 0);
        if shape.first() == Some(&0) {
            let to = start[0] + (count[0] - 1) * stride[0] as usize + 1;
            if to > self.model.n_records {
                let from = std::mem::replace(&mut self.model.n_records, to);
                self.make_space(0, from);
            }
        }
        for (at, value) in indices(&count).into_iter().zip(values) {
            let at: Vec<usize> =
                (0..at.len()).map(|d| start[d] + at[d] * stride[d] as usize).collect();
            self.model.vars[index].cells.insert(at, Cell::Value(value));
        }
    }

    fn check(&self, file: &ClassicFile) {
        let story = || self.log.join("\n");
        assert_eq!(file.n_records() as usize, self.model.n_records, "records\n{}", story());
        assert_eq!(file.header().vars.len(), self.model.vars.len());
        for (index, var) in self.model.vars.iter().enumerate() {
            let id = file.header().find_var(var.name.as_bytes());
            assert_eq!(id.expect("by name"), VarId(index as i32), "{}", story());
            let mut shape = var.shape.clone();
            if var.is_record() {
                shape[0] = self.model.n_records;
            }
            let start = vec![0; shape.len()];
            let slab = Hyperslab { start: &start, count: &shape, stride: None };
            let mut bytes = vec![0u8; 8 * slab.n_elems().expect("small")];
            let get = Access { var: VarId(index as i32).into(), slab, mem: Some(MemType::F64) };
            let converted = file.get_now(&mut Transfer::new(get), Destination::plain(&mut bytes));
            assert_eq!(converted.expect("get").out_of_range, 0);
            for (at, bytes) in indices(&shape).into_iter().zip(bytes.chunks_exact(8)) {
                let got = f64::from_ne_bytes(bytes.try_into().expect("eight"));
                if let Some(Cell::Value(expected)) = var.cells.get(&at) {
                    assert_eq!(got, *expected, "{} at {at:?}\n{}", var.name, story());
                }
            }
            self.check_strided(file, VarId(index as i32), &shape, &bytes);
        }
        for (name, values) in &self.model.atts {
            let mut bytes = vec![0u8; values.len() * 4];
            let owner = VarId::GLOBAL.into();
            let att = AttAccess { owner, name: name.as_bytes(), mem: None };
            let mut get = Transfer::new(att);
            file.check_get_att(&mut get).expect("check");
            let converted = file.get_att(&get, Destination::plain(&mut bytes));
            assert_eq!(converted.expect("get_att").out_of_range, 0);
            let got: Vec<i32> = bytes
                .chunks_exact(4)
                .map(|b| i32::from_ne_bytes(b.try_into().expect("four")))
                .collect();
            assert_eq!(&got, values, "{name}\n{}", story());
        }
    }

    /// A strided read gives the same elements as the whole.
    fn check_strided(&self, file: &ClassicFile, id: VarId, shape: &[usize], whole: &[u8]) {
        if shape.is_empty() || shape.contains(&0) {
            return;
        }
        let start: Vec<usize> = shape.iter().map(|&len| len / 3).collect();
        let stride: Vec<isize> = (0..shape.len()).map(|d| 1 + (d as isize + 1) % 3).collect();
        // The reference checks start + count as if strides were one.
        let count: Vec<usize> =
            (0..shape.len()).map(|d| (shape[d] - start[d]).div_ceil(stride[d] as usize)).collect();
        let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
        let mut bytes = vec![0u8; 8 * slab.n_elems().expect("small")];
        let get = Access { var: id.into(), slab, mem: Some(MemType::F64) };
        let converted = file.get_now(&mut Transfer::new(get), Destination::plain(&mut bytes));
        assert_eq!(converted.expect("strided get").out_of_range, 0);
        for (at, got) in indices(&count).into_iter().zip(bytes.chunks_exact(8)) {
            let flat = (0..at.len())
                .fold(0, |flat, d| flat * shape[d] + start[d] + at[d] * stride[d] as usize);
            assert_eq!(got, &whole[flat * 8..flat * 8 + 8], "{at:?}\n{}", self.log.join("\n"));
        }
    }

    fn reopened(&self) -> ClassicFile {
        ClassicFile::open(Arc::clone(&self.storage), None, true, false)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.log.join("\n")))
    }

    fn run(mut self) {
        self.define();
        self.enddef(0);
        for _ in 0..30 {
            match below(&mut self.random, 10) {
                0 => {
                    self.log.push("sync, look from outside".into());
                    self.file.sync().expect("sync");
                    self.check(&self.reopened());
                }
                1 | 2 => {
                    let first_new = self.model.vars.len();
                    self.log.push("redef".into());
                    self.file.redef().expect("redef");
                    self.define();
                    self.enddef(first_new);
                }
                3 => {
                    self.log.push("close, open".into());
                    self.file.close().expect("close");
                    self.file = self.reopened();
                    // Whether a variable is filled is not stored in the file.
                    self.fill = FillMode::Fill;
                    self.model.vars.iter_mut().for_each(|var| var.no_fill = false);
                }
                4 => {
                    let fill = if chance(&mut self.random, 50) {
                        FillMode::Fill
                    } else {
                        FillMode::NoFill
                    };
                    self.log.push(format!("set_fill {fill:?}"));
                    assert_eq!(self.file.set_fill(fill).expect("set_fill"), self.fill);
                    self.fill = fill;
                    let no_fill = fill == FillMode::NoFill;
                    self.model.vars.iter_mut().for_each(|var| var.no_fill = no_fill);
                }
                5 => self.edit_att_in_data_mode(),
                6 => {
                    self.log.push("redef, abort, open".into());
                    self.file.redef().expect("redef");
                    let name = self.name();
                    self.file.def_dim(GroupId::ROOT, name.as_bytes(), 7).expect("def_dim");
                    self.file.abort().expect("abort");
                    self.file = self.reopened();
                    self.fill = FillMode::Fill;
                    self.model.vars.iter_mut().for_each(|var| var.no_fill = false);
                }
                _ => self.put(),
            }
            self.check(&self.file);
        }
        self.file.close().expect("close");
        let reopened = self.reopened();
        let full = reopened.header().file_len(reopened.n_records());
        assert!(self.storage.len().expect("len") >= full);
        self.check(&self.reopened());
    }

    fn edit_att_in_data_mode(&mut self) {
        let Some(name) = self.model.atts.keys().min().cloned() else { return };
        let room = self.model.atts[&name].len();
        let shorter: Vec<i32> = (0..below(&mut self.random, room + 1)).map(|i| i as i32).collect();
        self.put_att(&name, &shorter).expect("shorter fits");
        let longer = vec![1; shorter.len() + 1];
        assert!(
            matches!(self.put_att(&name, &longer), Err(error) if error.code() == NcError::NotInDefine)
        );
        self.model.atts.insert(name, shorter);
    }
}

fn native(ty: ExtType, value: f64) -> Vec<u8> {
    match ty {
        ExtType::Byte => (value as i8).to_ne_bytes().to_vec(),
        ExtType::Char | ExtType::UByte => (value as u8).to_ne_bytes().to_vec(),
        ExtType::Short => (value as i16).to_ne_bytes().to_vec(),
        ExtType::UShort => (value as u16).to_ne_bytes().to_vec(),
        ExtType::Int => (value as i32).to_ne_bytes().to_vec(),
        ExtType::UInt => (value as u32).to_ne_bytes().to_vec(),
        ExtType::Int64 => (value as i64).to_ne_bytes().to_vec(),
        ExtType::UInt64 => (value as u64).to_ne_bytes().to_vec(),
        ExtType::Float => (value as f32).to_ne_bytes().to_vec(),
        ExtType::Double => value.to_ne_bytes().to_vec(),
    }
}

#[test]
fn random_sequences_match_the_model() {
    for seed in 0..400 {
        Run::new(seed).run();
    }
}

#[test]
fn dimension_ids_are_positions() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let mut file = ClassicFile::create(storage, None, Version::Cdf1, false);
    for i in 0..100 {
        assert_eq!(
            file.def_dim(GroupId::ROOT, format!("d{i}").as_bytes(), 1).expect("def_dim"),
            DimId(i)
        );
    }
    let again = file.def_dim(GroupId::ROOT, b"d50", 1);
    assert!(matches!(again, Err(error) if error.code() == NcError::NameInUse));
}

#[test]
fn more_records_than_can_be_counted_are_refused_wherever_they_start() {
    let mut file = ClassicFile::create(Arc::new(Memory::new()), None, Version::Cdf5, false);
    let DimId(dim) = file.def_dim(GroupId::ROOT, b"t", 0).expect("def_dim");
    let var = file.def_var(GroupId::ROOT, b"v", ExtType::Byte.nc_type(), &[dim]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    for start in [[0], [5]] {
        let slab = Hyperslab { start: &start, count: &[usize::MAX], stride: None };
        // Memory for as many values cannot be there, so that the check has to refuse it.
        let access = Access { var: var.into(), slab, mem: None };
        let put = file.check_shared_put(&mut Transfer::new(access));
        assert!(
            matches!(&put, Err(error) if error.code() == NcError::InvalidCoords),
            "{start:?}: {put:?}"
        );
    }
}
