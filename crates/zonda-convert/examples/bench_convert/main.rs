//! Throughput of every conversion, beside memcpy, a plain swap loop and the reference library.
//!
//!     cargo run --release -p zonda-convert --example bench_convert -- [knee.tsv [knee.svg]]
//!
//! All figures are MB/s (10^6) of bytes read plus bytes written, so that memcpy of the same size is
//! the limit of each. The first table is on stdout; with arguments, throughput over block size goes
//! to a TSV file and a plot.

mod knee;
mod reference;

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use zonda_convert::{ByteOrder, Decoder, Encoder, RangeRule};
use zonda_model::{ExtType, MemType};

/// Sizes of the larger side: one in the second-level cache, one far beyond the third.
const SIZES: [usize; 2] = [1 << 20, 64 << 20];

/// Bytes per call for sizes beyond the cache: what a caller that works in blocks would pass.
const CALL_BYTES: usize = 256 << 10;

/// MB/s of `moved_bytes`, by the best of several timed runs of about 10 ms.
fn mb_per_s(moved_bytes: usize, mut run: impl FnMut()) -> f64 {
    run();
    let start = Instant::now();
    run();
    let once = start.elapsed().max(Duration::from_nanos(20));
    let repeats = (Duration::from_millis(10).as_nanos() / once.as_nanos()).max(1) as u32;
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        let start = Instant::now();
        for _ in 0..repeats {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(repeats));
    }
    moved_bytes as f64 / best / 1e6
}

/// `len` elements between 0 and 100, so that they fit every type; one in `unfit_every` is the
/// largest of its type instead (0: none).
fn source(ty: MemType, len: usize, unfit_every: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len * ty.size());
    for i in 0..len {
        let x = (i % 101) as u8;
        let large = unfit_every != 0 && i % unfit_every == 0;
        match ty {
            MemType::F32 if large => bytes.extend_from_slice(&1e30_f32.to_ne_bytes()),
            MemType::F64 if large => bytes.extend_from_slice(&1e300_f64.to_ne_bytes()),
            MemType::F32 => bytes.extend_from_slice(&f32::from(x).to_ne_bytes()),
            MemType::F64 => bytes.extend_from_slice(&f64::from(x).to_ne_bytes()),
            _ if large => bytes.extend_from_slice(&(u64::MAX / 2).to_ne_bytes()[..ty.size()]),
            _ => bytes.extend_from_slice(&u64::from(x).to_ne_bytes()[..ty.size()]),
        }
    }
    bytes
}

/// Source bytes to destination bytes.
type Convert = Box<dyn Fn(&[u8], &mut [u8])>;

/// One conversion with its buffers.
struct Case {
    name: String,
    src: Vec<u8>,
    src_size: usize,
    dst: Vec<u8>,
    dst_size: usize,
    run: Convert,
    reference: Option<reference::Function>,
}

impl Case {
    fn decode(ext: ExtType, mem: MemType, larger_side_bytes: usize, unfit_every: usize) -> Case {
        let len = larger_side_bytes / ext.size().max(mem.size());
        let mut src = source(ext.natural_mem(), len, unfit_every);
        if ByteOrder::NATIVE != ByteOrder::Big {
            zonda_convert::swap_in_place(&mut src, ext.size());
        }
        let decoder = Decoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict).expect("numbers");
        Case {
            name: format!("get {} -> {mem:?}", ext.name()),
            src,
            src_size: ext.size(),
            dst: vec![0; len * mem.size()],
            dst_size: mem.size(),
            run: Box::new(move |src, dst| {
                let _ = black_box(decoder.decode(src, dst));
            }),
            reference: reference::Function::get(ext, mem),
        }
    }

    fn encode(ext: ExtType, mem: MemType, larger_side_bytes: usize, unfit_every: usize) -> Case {
        let len = larger_side_bytes / ext.size().max(mem.size());
        let encoder = Encoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict).expect("numbers");
        Case {
            name: format!("put {mem:?} -> {}", ext.name()),
            src: source(mem, len, unfit_every),
            src_size: mem.size(),
            dst: vec![0; len * ext.size()],
            dst_size: ext.size(),
            run: Box::new(move |src, dst| {
                let _ = black_box(encoder.encode(src, dst));
            }),
            reference: reference::Function::put(ext, mem),
        }
    }

    fn moved_bytes(&self) -> usize {
        self.src.len() + self.dst.len()
    }

    /// MB/s in calls of at most `call_bytes` (of the larger side).
    fn measure(&mut self, call_bytes: usize) -> f64 {
        let elems = call_bytes / self.src_size.max(self.dst_size);
        let (src_len, dst_len) = (elems * self.src_size, elems * self.dst_size);
        let moved = self.moved_bytes();
        let (src, dst, run) = (&self.src, &mut self.dst, &self.run);
        mb_per_s(moved, || {
            for (src, dst) in src.chunks(src_len).zip(dst.chunks_mut(dst_len)) {
                run(black_box(src), dst);
            }
        })
    }

    fn measure_reference(&mut self) -> Option<f64> {
        let function = self.reference?;
        let (moved, elems) = (self.moved_bytes(), self.src.len() / self.src_size);
        let (src, dst) = (&self.src, &mut self.dst);
        Some(mb_per_s(moved, || function.call(black_box(src), dst, elems)))
    }
}

/// memcpy of `bytes`, in MB/s of bytes read plus written.
fn memcpy(bytes: usize) -> f64 {
    let (src, mut dst) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    mb_per_s(2 * bytes, || {
        dst.copy_from_slice(black_box(&src));
        black_box(&mut dst);
    })
}

/// A swap of 4-byte elements that the compiler is kept from vectorising.
fn plain_swap(bytes: usize) -> f64 {
    let (src, mut dst) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    mb_per_s(2 * bytes, || {
        for (from, to) in src.as_chunks::<4>().0.iter().zip(dst.as_chunks_mut::<4>().0) {
            *to = black_box(u32::from_ne_bytes(*from)).swap_bytes().to_ne_bytes();
        }
    })
}

fn numeric_exts() -> impl Iterator<Item = ExtType> {
    ExtType::ALL.into_iter().filter(|ext| *ext != ExtType::Char)
}

fn numeric_mems() -> impl Iterator<Item = MemType> {
    MemType::ALL.into_iter().filter(|mem| *mem != MemType::Text)
}

type Make = fn(ExtType, MemType, usize, usize) -> Case;

/// One row of the table: this crate and the reference at both sizes.
fn row(out: &mut impl Write, make: Make, ext: ExtType, mem: MemType) -> io::Result<()> {
    let mut cells = Vec::new();
    let mut name = String::new();
    for size in SIZES {
        let mut case = make(ext, mem, size, 0);
        cells.push(format!("{:>8.0}", case.measure(CALL_BYTES)));
        let reference = case.measure_reference().map(|x| format!("{x:.0}"));
        cells.push(format!("{:>8}", reference.unwrap_or_else(|| "-".to_owned())));
        name = case.name;
    }
    let mut unfit = make(ext, mem, SIZES[0], 10);
    cells.push(format!("{:>8.0}", unfit.measure(CALL_BYTES)));
    writeln!(out, "{name:<20} {}", cells.join(" "))
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut out = io::stdout().lock();
    writeln!(out, "MB/s of bytes read plus written\n")?;
    writeln!(out, "{:<20} {:>8} {:>8}", "", "1 MiB", "64 MiB")?;
    writeln!(out, "{:<20} {:>8.0} {:>8.0}", "memcpy", memcpy(SIZES[0]), memcpy(SIZES[1]))?;
    let swaps = (plain_swap(SIZES[0]), plain_swap(SIZES[1]));
    writeln!(out, "{:<20} {:>8.0} {:>8.0}\n", "plain 4-byte swap", swaps.0, swaps.1)?;
    writeln!(out, "unfit: 1 MiB with every tenth element out of range")?;
    writeln!(out, "reference: the conversion function of the distribution's libnetcdf\n")?;
    writeln!(
        out,
        "{:<20} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "1 MiB", "refer.", "64 MiB", "refer.", "unfit"
    )?;
    for make in [Case::decode as Make, Case::encode] {
        for ext in numeric_exts() {
            for mem in numeric_mems() {
                row(&mut out, make, ext, mem)?;
            }
        }
    }
    if let Some(tsv) = arguments.next() {
        let curves = knee::measure();
        knee::write_tsv(&tsv, &curves)?;
        if let Some(svg) = arguments.next() {
            knee::plot(&svg, &curves).map_err(io::Error::other)?;
        }
    }
    Ok(())
}
