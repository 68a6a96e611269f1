//! `read4 --op read` and `--op open` by other Rust readers of HDF5: the same options, result lines and
//! digests. `peers LIBRARY --file F --list L [--var V]`; the type of the values is float or short.

use std::collections::HashMap;
use std::time::Instant;

use hidefix::extent::{Extent, Extents};
use hidefix::idx::DatasetExt;
use hidefix::prelude::*;

type Failure = Box<dyn std::error::Error>;

struct Slab {
    start: Vec<u64>,
    count: Vec<u64>,
    stride: Vec<u64>,
}

/// The library, opened: reads a hyperslab as numbers of two or four bytes.
trait Peer {
    fn read(&mut self, slab: &Slab) -> Result<Values, Failure>;
}

enum Values {
    Two(Vec<i16>),
    Four(Vec<f32>),
}

impl Values {
    fn bytes(&self) -> usize {
        match self {
            Values::Two(v) => 2 * v.len(),
            Values::Four(v) => 4 * v.len(),
        }
    }

    fn digest(&self) -> u64 {
        let place = |i: usize| (i % 1021 + 1) as u64;
        let sum = |words: &mut dyn Iterator<Item = u64>| {
            words.enumerate().fold(0u64, |sum, (i, w)| sum.wrapping_add(w.wrapping_mul(place(i))))
        };
        match self {
            Values::Two(v) => sum(&mut v.iter().map(|&x| u64::from(x.cast_unsigned()))),
            Values::Four(v) => sum(&mut v.iter().map(|x| u64::from(x.to_bits()))),
        }
    }
}

struct Hidefix {
    index: hidefix::idx::Index<'static>,
    path: String,
    var: String,
}

impl Peer for Hidefix {
    fn read(&mut self, slab: &Slab) -> Result<Values, Failure> {
        if slab.stride.iter().any(|&s| s != 1) {
            return Err("no strides".into());
        }
        let dims = slab.start.iter().zip(&slab.count);
        let extents: Vec<Extent> =
            dims.map(|(&start, &count)| Extent::SliceCount { start, count }).collect();
        let dataset = self.index.dataset(&self.var).ok_or("no such variable")?;
        let reader = dataset.as_par_reader(&self.path)?;
        match reader.dsize() {
            2 => Ok(Values::Two(reader.values_par::<i16, _>(Extents::from(extents))?)),
            4 => Ok(Values::Four(reader.values_par::<f32, _>(Extents::from(extents))?)),
            _ => Err("type".into()),
        }
    }
}

struct NetcdfReader {
    file: netcdf_reader::NcFile,
    var: String,
    short: bool,
}

impl Peer for NetcdfReader {
    fn read(&mut self, slab: &Slab) -> Result<Values, Failure> {
        let dims = slab.start.iter().zip(&slab.count).zip(&slab.stride);
        let selections = dims
            .map(|((&start, &count), &step)| netcdf_reader::NcSliceInfoElem::Slice {
                start,
                end: start + (count - 1) * step + 1,
                step,
            })
            .collect();
        let slice = netcdf_reader::NcSliceInfo { selections };
        if self.short {
            let values = self.file.read_variable_slice_parallel::<i16>(&self.var, &slice)?;
            return Ok(Values::Two(values.into_raw_vec_and_offset().0));
        }
        let values = self.file.read_variable_slice_parallel::<f32>(&self.var, &slice)?;
        Ok(Values::Four(values.into_raw_vec_and_offset().0))
    }
}

struct RustHdf5 {
    _file: rust_hdf5::H5File,
    dataset: rust_hdf5::H5Dataset,
    short: bool,
}

impl Peer for RustHdf5 {
    fn read(&mut self, slab: &Slab) -> Result<Values, Failure> {
        let wide = |v: &[u64]| v.iter().map(|&x| x as usize).collect::<Vec<_>>();
        let (start, count, stride) = (wide(&slab.start), wide(&slab.count), wide(&slab.stride));
        let unit = stride.iter().all(|&s| s == 1);
        let block = vec![1; start.len()];
        Ok(match (self.short, unit) {
            (true, true) => Values::Two(self.dataset.read_slice(&start, &count)?),
            (true, false) => Values::Two(self.dataset.read_hyperslab(&start, &stride, &count, &block)?),
            (false, true) => Values::Four(self.dataset.read_slice(&start, &count)?),
            (false, false) => Values::Four(self.dataset.read_hyperslab(&start, &stride, &count, &block)?),
        })
    }
}

fn open(library: &str, path: &str, var: &str) -> Result<Box<dyn Peer>, Failure> {
    Ok(match library {
        "hidefix" => Box::new(Hidefix {
            index: hidefix::idx::Index::index(path)?,
            path: path.to_owned(),
            var: var.to_owned(),
        }),
        "netcdf-reader" => {
            let file = netcdf_reader::NcFile::open(path)?;
            let short = file.variable(var)?.dtype().size()? == 2;
            Box::new(NetcdfReader { file, var: var.to_owned(), short })
        }
        "rust-hdf5" => {
            let file = rust_hdf5::H5File::open(path)?;
            let dataset = file.dataset(var)?;
            let short = dataset.element_size() == 2;
            Box::new(RustHdf5 { _file: file, dataset, short })
        }
        other => return Err(format!("no library {other}").into()),
    })
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let library = args.next().ok_or("peers LIBRARY --file F ...")?;
    let mut options = HashMap::new();
    while let (Some(name), Some(value)) = (args.next(), args.next()) {
        options.insert(name, value);
    }
    let path = options.get("--file").ok_or("--file is missing")?;
    let var = options.get("--var").map_or("v0", String::as_str);
    if options.get("--op").is_some_and(|op| op == "open") {
        let cycles: usize = options.get("--cycles").map_or(Ok(1), |n| n.parse())?;
        let from = Instant::now();
        for _ in 0..cycles {
            match library.as_str() {
                "hidefix" => drop(hidefix::idx::Index::index(path)?),
                "netcdf-reader" => drop(netcdf_reader::NcFile::open(path)?),
                _ => drop(rust_hdf5::H5File::open(path)?),
            }
        }
        let seconds = from.elapsed().as_secs_f64();
        println!(
            "{{\"workload\": \"open\", \"params\": {{}}, \"seconds\": {seconds:.9}, \"bytes\": 0, \"calls\": {cycles}, \"digest\": null}}"
        );
        return Ok(());
    }
    let list = std::fs::read_to_string(options.get("--list").ok_or("--list is missing")?)?;
    let slabs: Vec<Slab> = list
        .lines()
        .map(|line| {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
            let rank = numbers.len() / 3;
            let part = |i: usize| numbers[i * rank..(i + 1) * rank].to_vec();
            Slab { start: part(0), count: part(1), stride: part(2) }
        })
        .collect();
    let (mut digest, mut bytes, mut first) = (0u64, 0, 0.0);
    let from = Instant::now();
    let mut peer = open(&library, path, var)?;
    let mut seconds = from.elapsed().as_secs_f64();
    for (number, slab) in slabs.iter().enumerate() {
        let from = Instant::now();
        let values = peer.read(slab)?;
        seconds += from.elapsed().as_secs_f64();
        if number == 0 {
            first = seconds;
        }
        bytes += values.bytes();
        digest = digest.wrapping_add(values.digest().wrapping_mul(number as u64 + 1));
    }
    let calls = slabs.len();
    println!(
        "{{\"workload\": \"read\", \"params\": {{\"first\": {first:.9}}}, \"seconds\": {seconds:.9}, \"bytes\": {bytes}, \"calls\": {calls}, \"digest\": \"{digest:016x}\"}}"
    );
    Ok(())
}
