//! Served files beside ordinary ones: the same calls give the same answers and the same bytes.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use zonda::served_files::local;
use zonda::{
    AttPut, CreateOptions, Dataset, Endianness, FillMode, FilterSpec, Format, GroupId, Hyperslab,
    MemType, OpenOptions, Reserve, StorageRequest, Values, VarRef, VlenSink, VlenSource,
};
use zonda_testkit::{Rng, TempFolder, by};

const FORMATS: [Format; 5] =
    [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];
const STRING: i32 = 12;
const CHAR: i32 = 2;

/// Strings and items by number, beginning with 1.
#[derive(Default)]
struct Parts(Vec<Vec<u8>>);

impl VlenSource for Parts {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address).ok()?.checked_sub(1)?).map(Vec::as_slice)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.text(address).map_or(&[], |bytes| &bytes[..len])
    }
}

impl VlenSink for Parts {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

/// A program of random calls, right and wrong ones, and what they answered.
struct Program<'a> {
    rng: Rng,
    file: &'a Dataset,
    format: Format,
    answers: Vec<String>,
    dims: Vec<(i32, usize)>,
    /// A variable, its type, and bytes of an element in memory.
    vars: Vec<(VarRef, i32, usize, Vec<usize>)>,
    groups: Vec<GroupId>,
    /// Number, bytes in memory.
    types: Vec<(i32, usize)>,
    n_names: usize,
}

fn shown<T: std::fmt::Debug>(done: Result<T, zonda::Error>) -> String {
    match done {
        Ok(got) => format!("{got:?}"),
        Err(error) => format!("{}", error.code().code()),
    }
}

impl Program<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn note<T: std::fmt::Debug>(&mut self, what: &str, done: Result<T, zonda::Error>) {
        self.answers.push(format!("{what}: {}", shown(done)));
    }

    fn name(&mut self, what: &str) -> Vec<u8> {
        self.n_names += 1;
        // Some names are taken, or none.
        match self.below(25) {
            0 => b"v1".to_vec(),
            1 => b"a/b".to_vec(),
            _ => format!("{what}{}", self.n_names).into_bytes(),
        }
    }

    fn group(&mut self) -> GroupId {
        let n = self.below(self.groups.len() + 1);
        n.checked_sub(1).map_or(GroupId::ROOT, |n| self.groups[n])
    }

    fn var(&mut self) -> Option<(VarRef, i32, usize, Vec<usize>)> {
        let n = self.below(self.vars.len());
        self.vars.get(n).cloned()
    }

    fn define(&mut self) {
        match self.below(14) {
            0..=2 => {
                let (name, group) = (self.name("d"), self.group());
                let len = if self.one_in(3) { 0 } else { 1 + self.below(6) };
                let done = self.file.def_dim_in(group, &name, len);
                if let Ok(dim) = &done {
                    self.dims.push((dim.0, len));
                }
                self.note("def_dim", done);
            }
            3..=6 => self.def_var(),
            7 | 8 => self.put_att(),
            9 => {
                let (name, parent) = (self.name("g"), self.group());
                let done = self.file.def_group(parent, &name);
                self.groups.extend(done.as_ref().ok());
                self.note("def_group", done);
            }
            10 => self.def_type(),
            11 => self.rename(),
            12 => {
                let mode = if self.one_in(2) { FillMode::Fill } else { FillMode::NoFill };
                let done = self.file.set_fill(mode);
                self.note("set_fill", done);
            }
            _ => {
                let owner = self.owner();
                let done = self.file.del_att(owner, b"att");
                self.note("del_att", done);
            }
        }
    }

    fn owner(&mut self) -> VarRef {
        match self.var() {
            Some((var, ..)) if self.one_in(2) => var,
            _ => VarRef::group(self.group()),
        }
    }

    fn rename(&mut self) {
        let name = self.name("r");
        let done = match (self.below(3), self.var(), self.dims.first().copied()) {
            (0, Some((var, ..)), _) => self.file.rename_var(var, &name),
            (1, _, Some((dim, _))) => self.file.rename_dim(zonda::DimId(dim), &name),
            _ => {
                let owner = self.owner();
                self.file.rename_att(owner, b"att", &name)
            }
        };
        self.note("rename", done);
    }

    fn def_type(&mut self) {
        let name = self.name("t");
        let root = GroupId::ROOT;
        let done = match self.below(4) {
            0 => self.file.def_opaque(root, 5, &name).map(|ty| (ty, 5)),
            1 => self.file.def_vlen(root, &name, 4).map(|ty| (ty, 16)),
            2 => self.file.def_enum(root, 3, &name).map(|ty| {
                let _ = self.file.insert_member((root, ty), b"one", &1i16.to_ne_bytes());
                (ty, 2)
            }),
            _ => self.file.def_compound(root, 24, &name).map(|ty| {
                let _ = self.file.insert_field((root, ty), b"n", 0, 4, &[2]);
                let _ = self.file.insert_field((root, ty), b"s", 8, STRING, &[2]);
                (ty, 24)
            }),
        };
        self.types.extend(done.as_ref().ok());
        self.note("def_type", done);
    }

    fn def_var(&mut self) {
        let (name, group) = (self.name("v"), self.group());
        let (ty, size) = match self.below(14) {
            0 if !self.types.is_empty() => {
                let n = self.below(self.types.len());
                self.types[n]
            }
            1 => (STRING, 8),
            n => {
                let ty = 1 + (n % 11) as i32;
                (ty, zonda::ExtType::from_nc_type(ty).unwrap().size())
            }
        };
        let rank = self.below(4).min(self.dims.len());
        let mut dims: Vec<(i32, usize)> = Vec::new();
        for _ in 0..rank {
            let n = self.below(self.dims.len());
            dims.push(self.dims[n]);
        }
        let ids: Vec<i32> = dims.iter().map(|(id, _)| *id).collect();
        let done = self.file.def_var_in(group, &name, ty, &ids);
        if let Ok(id) = &done {
            let var = VarRef { group, var: *id };
            self.vars.push((var, ty, size, dims.iter().map(|(_, len)| *len).collect()));
            self.store(var, &dims, size);
        }
        self.note("def_var", done);
    }

    fn store(&mut self, var: VarRef, dims: &[(i32, usize)], size: usize) {
        let sizes: Vec<usize> = dims.iter().map(|(_, len)| 1 + len / 2).collect();
        let done = match self.below(9) {
            0 => self.file.def_var_chunking(var, StorageRequest::Chunked, Some(&sizes)),
            1 => self.file.def_var_chunking(var, StorageRequest::Contiguous, None),
            2 => self.file.def_var_chunking(var, StorageRequest::Compact, None),
            3 => self.file.def_var_deflate(var, true, Some(2)),
            4 => self.file.def_var_fletcher32(var, true),
            5 => {
                let (optional, name, params) = (true, String::new(), vec![3]);
                self.file.def_var_filter(var, FilterSpec { id: 32015, optional, name, params })
            }
            6 => self.file.def_var_endian(var, Endianness::Big),
            7 => self.file.def_var_quantize(var, 1, 3),
            _ => {
                let value = vec![7; size];
                self.file.def_var_fill(var, false, Some(&value))
            }
        };
        self.note("store", done);
    }

    fn put_att(&mut self) {
        let (owner, n) = (self.owner(), self.below(4));
        let (nc_type, size, mem) = match self.below(5) {
            0 => (CHAR, 1, Some(MemType::Text)),
            1 => (4, 8, Some(MemType::F64)),
            2 => (STRING, 8, None),
            3 => (1, 4, Some(MemType::I32)),
            _ => (6, 8, None),
        };
        let mut parts = Parts(vec![b"one".to_vec(), Vec::new(), b"three".to_vec()]);
        let mut bytes = self.rng.bytes(n * size);
        if nc_type == STRING {
            bytes = (0..n as u64).flat_map(|n| (n % 4).to_ne_bytes()).collect();
        }
        let att = AttPut { owner, name: b"att", nc_type, n_values: n, mem };
        let values = Values { bytes: &bytes, fetch: Some(&mut parts) };
        let values = if nc_type == STRING { values } else { Values::plain(&bytes) };
        let done = self.file.put_att_to(&att).and_then(|att| att.write(values));
        self.note("put_att", done);
    }

    fn slab(&mut self, fixed: &[usize]) -> (Vec<usize>, Vec<usize>, Option<Vec<isize>>) {
        let strides = self.one_in(4).then(|| vec![2; fixed.len()]);
        let mut start = Vec::new();
        let mut count = Vec::new();
        for &len in fixed {
            let most = if len == 0 { 9 } else { len };
            let (first, n) = (self.below(most), self.below(most + 1));
            let n = if strides.is_some() { n / 2 } else { n };
            start.push(first);
            // Most fit, some do not.
            count.push(if self.one_in(9) { n } else { n.min(most - first) });
        }
        (start, count, strides)
    }

    fn put(&mut self) {
        let Some((var, ty, size, fixed)) = self.var() else { return };
        let (start, count, stride) = self.slab(&fixed);
        let slab = Hyperslab { start: &start, count: &count, stride: stride.as_deref() };
        let n: usize = count.iter().product();
        if ty >= STRING {
            let mut parts = Parts(vec![b"text".to_vec(), Vec::new(), self.rng.bytes(40)]);
            let bytes = self.elements(ty, size, n);
            let values = Values { bytes: &bytes, fetch: Some(&mut parts) };
            let done = self.file.put_values(var, &slab, values);
            return self.note("put", done);
        }
        let (mem, size) = match self.below(4) {
            _ if ty == CHAR => (Some(MemType::Text), 1),
            0 => (Some(MemType::F64), 8),
            1 => (Some(MemType::I32), 4),
            2 => (Some(MemType::U8), 1),
            _ => (None, size),
        };
        let mut bytes = self.rng.bytes(n * size);
        if mem == Some(MemType::F64) {
            let number = |n: &[u8]| f64::from(n[0] as i8) * f64::from(n[1] % 9);
            bytes = bytes.chunks(8).flat_map(|n| number(n).to_ne_bytes()).collect();
        }
        let done = self.file.put(var, &slab, mem, &bytes);
        self.note("put", done);
    }

    /// Elements of a type that points to others, or of one that the file defines.
    fn elements(&mut self, ty: i32, size: usize, n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..n {
            match (ty, size) {
                (STRING, _) => bytes.extend((self.rng.below(4)).to_ne_bytes()),
                (_, 16) => {
                    let len = self.rng.below(4);
                    bytes.extend(len.to_ne_bytes());
                    bytes.extend((if len == 0 { 0u64 } else { 3 }).to_ne_bytes());
                }
                (_, 24) => {
                    bytes.extend(self.rng.bytes(8));
                    bytes.extend(self.rng.below(4).to_ne_bytes());
                    bytes.extend(self.rng.below(4).to_ne_bytes());
                }
                _ => bytes.extend(self.rng.bytes(size)),
            }
        }
        bytes
    }

    fn get(&mut self) {
        let Some((var, ty, _, fixed)) = self.var() else { return };
        let (start, count, stride) = self.slab(&fixed);
        let slab = Hyperslab { start: &start, count: &count, stride: stride.as_deref() };
        let mem = if ty == CHAR { Some(MemType::Text) } else { Some(MemType::F64) };
        let mem = mem.filter(|_| ty < STRING && self.one_in(2));
        let (mut bytes, mut parts) = (Vec::new(), Parts::default());
        let done = self.file.get_list(var, &slab, mem, (&mut bytes, Some(&mut parts)));
        let got = done.map(|converted| (converted, bytes, parts.0));
        self.note("get", got);
    }

    fn inquire(&mut self) {
        for (dim, _) in self.dims.clone() {
            let len = self.file.meta(|meta| meta.dim(zonda::DimId(dim)).map(|dim| dim.len));
            self.note("dim", len);
        }
        if let Some((var, ..)) = self.var() {
            let named = self.file.in_group(var.group, |meta| {
                meta.var(var.var).map(|var| (var.name.to_vec(), var.nc_type))
            });
            self.note("var", named.and_then(|found| found));
        }
    }

    fn change_mode(&mut self) {
        match self.below(6) {
            0 | 1 => {
                let done = self.file.redef();
                self.note("redef", done);
                for _ in 0..self.below(4) {
                    self.define();
                }
                let done = self.file.enddef(Reserve::Default);
                self.note("enddef", done);
            }
            2 => {
                let room =
                    Reserve::Explicit { h_minfree: 100, v_align: 8, v_minfree: 3, r_align: 4 };
                let done = self.file.enddef(room);
                self.note("enddef", done);
            }
            3 => self.define(),
            _ => {
                let done = self.file.sync();
                self.note("sync", done);
            }
        }
    }

    fn run(mut self) -> Run {
        for _ in 0..4 + self.below(20) {
            self.define();
        }
        if self.format != Format::NetCdf4 || self.one_in(2) {
            let done = self.file.enddef(Reserve::Default);
            self.note("enddef", done);
        }
        for _ in 0..self.below(60) {
            match self.below(10) {
                0..=5 => self.put(),
                6 => self.get(),
                7 => self.inquire(),
                8 => self.put_att(),
                _ => self.change_mode(),
            }
        }
        let done = if self.one_in(20) { self.file.abort() } else { self.file.close() };
        self.note("close", done);
        Run { answers: self.answers, vars: self.vars }
    }
}

/// What a program leaves.
struct Run {
    answers: Vec<String>,
    vars: Vec<(VarRef, i32, usize, Vec<usize>)>,
}

fn run(file: &Dataset, format: Format, seed: u64) -> Vec<String> {
    life(file, format, seed).answers
}

fn life(file: &Dataset, format: Format, seed: u64) -> Run {
    let (rng, answers, n_names) = (Rng::new(seed), Vec::new(), 0);
    let (dims, vars, groups, types) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Program { rng, file, format, answers, dims, vars, groups, types, n_names }.run()
}

fn options(format: Format) -> CreateOptions {
    CreateOptions { format, ..CreateOptions::default() }
}

/// Runs a program whose file a server in another thread writes.
fn served(path: &Path, format: Format, seed: u64) -> Vec<String> {
    let (line, server) = local::line(4);
    thread::scope(|scope| {
        scope.spawn(move || {
            let file = Dataset::create(path, &options(format)).unwrap();
            server.serve(|told, values| file.carry_out(told, values));
        });
        let file = Dataset::create_served(Arc::new(line), path, &options(format)).unwrap();
        run(&file, format, seed)
    })
}

#[test]
fn calls_give_the_same_answers_and_bytes() {
    let folder = TempFolder::new("served");
    let mut n_files = 0;
    for seed in 0..by(150, 5000) {
        for format in FORMATS {
            let (one, other) = (folder.path().join("direct.nc"), folder.path().join("served.nc"));
            let file = Dataset::create(&one, &options(format)).unwrap();
            let direct = run(&file, format, seed);
            drop(file);
            let answers = served(&other, format, seed);
            let differs = direct.iter().zip(&answers).position(|(one, other)| one != other);
            let context = differs.map(|at| (&direct[..=at], &answers[at]));
            assert_eq!(context, None, "seed {seed} {format:?}");
            assert_eq!(direct.len(), answers.len());
            let bytes = [&one, &other].map(|path| std::fs::read(path).ok());
            assert!(bytes[0] == bytes[1], "bytes of seed {seed} {format:?}");
            n_files += usize::from(bytes[0].is_some());
            for path in [one, other] {
                let _ = std::fs::remove_file(path);
            }
        }
    }
    assert!(n_files > 100, "{n_files}");
}

/// Random gets, right and wrong ones, of a file that is only read.
fn gets(file: &Dataset, format: Format, seed: u64, run: &Run) -> Vec<String> {
    let (rng, answers, n_names, vars) = (Rng::new(seed), Vec::new(), 0, run.vars.clone());
    let (dims, groups, types) = (Vec::new(), Vec::new(), Vec::new());
    let mut program = Program { rng, file, format, answers, dims, vars, groups, types, n_names };
    for n in 0..60 {
        program.get();
        if n % 20 == 19 {
            program.inquire();
        }
    }
    let done = file.sync();
    program.note("sync", done);
    program.get();
    program.answers
}

#[test]
fn gets_of_a_file_that_a_server_reads_are_those_of_the_file() {
    let folder = TempFolder::new("served-reading");
    let path = folder.path().join("x.nc");
    let mut n_served = 0;
    for seed in 0..by(60, 3000) {
        for format in FORMATS {
            let made = life(&Dataset::create(&path, &options(format)).unwrap(), format, seed);
            let Ok(direct) = Dataset::open(&path, &OpenOptions::default()) else { continue };
            let answers = gets(&direct, format, seed, &made);
            let (line, server) = local::line(1);
            let server_file = Dataset::open(&path, &OpenOptions::default()).unwrap();
            let by_server = thread::scope(|scope| {
                let by = &server_file;
                let serve = scope.spawn(move || {
                    let mut n_done = 0;
                    server.serve(|told, values| {
                        let done = by.carry_out(told, values);
                        n_done += usize::from(done.is_ok());
                        done
                    });
                    n_done
                });
                let file = Dataset::open_read_by(Arc::new(line), &path).unwrap();
                let by_server = gets(&file, format, seed, &made);
                drop(file);
                n_served += serve.join().unwrap();
                by_server
            });
            assert_eq!(answers, by_server, "seed {seed} {format:?}");
            let _ = std::fs::remove_file(&path);
        }
    }
    assert!(n_served > 1000, "{n_served}");
}
