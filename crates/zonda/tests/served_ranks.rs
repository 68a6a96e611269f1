//! Files of several ranks that a server writes: clients that say nothing to each other, and one rank of a team for each of them in the
//! server. Bytes and answers are those of ranks that write the file themselves.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use zonda::served_files::{Line, local};
use zonda::team::{Team, threads};
use zonda::{CreateOptions, Dataset, Format, GroupId, Hyperslab, MemType, Reserve, VarRef};
use zonda_testkit::{Rng, TempFolder, by};

const FORMATS: [Format; 4] = [Format::Cdf1, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];

fn options(format: Format) -> CreateOptions {
    CreateOptions { format, ..CreateOptions::default() }
}

/// The program of one rank. Random choices that ranks share come from the same numbers.
struct Rank<'a> {
    rank: usize,
    size: usize,
    rng: Rng,
    format: Format,
    file: &'a Dataset,
    dims: Vec<(i32, usize)>,
    vars: Vec<(VarRef, Vec<usize>)>,
    answers: Vec<String>,
}

impl Rank<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn define(&mut self, n: usize) {
        for _ in 0..n {
            let number = self.dims.len() + self.vars.len();
            if self.dims.len() < 2 || self.below(3) == 0 {
                let has_one = self.dims.iter().any(|(_, len)| *len == 0);
                let is_free = self.format == Format::NetCdf4 || !has_one;
                let len = if is_free && self.below(2) == 0 { 0 } else { 1 + self.below(7) };
                let dim = self.file.def_dim(format!("d{number}").as_bytes(), len).unwrap();
                self.dims.push((dim.0, len));
                continue;
            }
            let mut dims: Vec<(i32, usize)> = Vec::new();
            for _ in 0..1 + self.below(3) {
                let n = self.below(self.dims.len());
                let (dim, len) = self.dims[n];
                let is_free = self.format == Format::NetCdf4 || len > 0 || dims.is_empty();
                if is_free && !dims.contains(&(dim, len)) {
                    dims.push((dim, len));
                }
            }
            let ids: Vec<i32> = dims.iter().map(|(dim, _)| *dim).collect();
            let ty = [1, 3, 4, 5, 6][self.below(5)];
            let var = self.file.def_var(format!("v{number}").as_bytes(), ty, &ids).unwrap();
            let var = VarRef { group: GroupId::ROOT, var };
            if self.format.is_hdf5() && self.below(3) == 0 {
                self.file.def_var_deflate(var, true, Some(1)).unwrap();
            }
            self.file.set_collective(var, true).unwrap();
            self.vars.push((var, dims.into_iter().map(|(_, len)| len).collect()));
        }
    }

    /// A put of all ranks: each has a part along the first dimension of a box; some have nothing, or an error.
    fn put(&mut self) {
        if self.vars.is_empty() {
            return;
        }
        let n = self.below(self.vars.len());
        let (var, fixed) = self.vars[n].clone();
        let (mut start, mut count) = (Vec::new(), Vec::new());
        for &len in &fixed {
            let most = if len == 0 { 9 } else { len };
            let first = self.below(most);
            start.push(first);
            count.push(1 + self.below(most - first));
        }
        let value = self.below(100);
        let who_fails = self.below(40);
        let each = count[0].div_ceil(self.size);
        let from = (each * self.rank).min(count[0]);
        (start[0], count[0]) = (start[0] + from, each.min(count[0] - from));
        if who_fails == self.rank && fixed[0] > 0 {
            count[0] = 99;
        }
        let n: usize = count.iter().product();
        let values: Vec<u8> =
            (0..n).flat_map(|n| ((value + n + self.rank) as i32).to_ne_bytes()).collect();
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let put = || self.file.put(var, &slab, Some(MemType::I32), &values);
        let done = self.file.put_with_ranks(var, put);
        self.answers.push(match done {
            Ok(converted) => format!("{converted:?}"),
            Err(error) => format!("{}", error.code().code()),
        });
    }

    fn look(&mut self) {
        for (dim, _) in self.dims.clone() {
            let len = self.file.meta(|meta| meta.dim(zonda::DimId(dim)).map(|dim| dim.len));
            self.answers.push(format!("{}", len.unwrap()));
        }
    }

    fn run(mut self) -> Vec<String> {
        let n = 3 + self.below(9);
        self.define(n);
        self.file.enddef(Reserve::Default).unwrap();
        for _ in 0..self.below(25) {
            match self.below(9) {
                0 => self.look(),
                1 => self.file.sync().unwrap(),
                2 if self.below(3) == 0 => {
                    self.file.redef().unwrap();
                    let n = self.below(4);
                    self.define(n);
                    self.file.enddef(Reserve::Default).unwrap();
                }
                _ => self.put(),
            }
        }
        self.look();
        self.file.close().unwrap();
        self.answers
    }
}

fn run(file: &Dataset, (rank, size): (usize, usize), format: Format, seed: u64) -> Vec<String> {
    let (dims, vars, answers) = (Vec::new(), Vec::new(), Vec::new());
    Rank { rank, size, rng: Rng::new(seed), format, file, dims, vars, answers }.run()
}

fn created(team: &threads::Threads, path: &Path, format: Format) -> Dataset {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    Dataset::create_parallel(team, path, &options(format)).unwrap()
}

/// What each rank is answered where a server writes the file.
fn served(path: &Path, size: usize, format: Format, seed: u64) -> Vec<Vec<String>> {
    let (lines, servers): (Vec<_>, Vec<_>) = (0..size).map(|_| local::line(3)).unzip();
    let servers: Vec<_> = servers.into_iter().map(|server| Mutex::new(Some(server))).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            threads::all(size, |team| {
                let server = servers[team.rank()].lock().unwrap().take().unwrap();
                let file = created(team, path, format);
                server.serve(|told, values| file.carry_out(told, values));
            })
        });
        let client = |(rank, line)| {
            scope.spawn(move || {
                let line: Arc<dyn Line> = Arc::new(line);
                let file = Dataset::create_served_parallel(line, path, &options(format)).unwrap();
                run(&file, (rank, size), format, seed)
            })
        };
        let clients: Vec<_> = lines.into_iter().enumerate().map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn ranks_get_the_same_answers_and_bytes() {
    let folder = TempFolder::new("served-ranks");
    let (one, other) = (folder.path().join("direct.nc"), folder.path().join("served.nc"));
    for seed in 0..by(60, 3000) {
        let size = [1, 2, 3, 4, 6][seed as usize % 5];
        for format in FORMATS {
            let direct = threads::all(size, |team| {
                let file = created(team, &one, format);
                run(&file, (team.rank(), size), format, seed)
            });
            let answers = served(&other, size, format, seed);
            assert_eq!(direct, answers, "seed {seed} {format:?} {size} ranks");
            let bytes = [&one, &other].map(|path| std::fs::read(path).unwrap());
            assert!(bytes[0] == bytes[1], "bytes of seed {seed} {format:?} {size} ranks");
        }
    }
}
