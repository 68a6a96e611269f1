//! Throughput over the size of a block: where the cost of a call stops to matter, and where the
//! caches end.

use std::error::Error;
use std::fs;
use std::io::{self, Write};

use zonda_model::{ExtType, MemType};
use zonda_plot::{Axis, AxisKind, Format, LineOptions, lines};

use crate::{Case, memcpy};

const SMALLEST: usize = 64;
const LARGEST: usize = 64 << 20;

/// One line of the plot: MB/s at each block size in bytes.
pub(crate) struct Curve {
    name: String,
    points: Vec<(usize, f64)>,
}

fn block_sizes() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(SMALLEST), |size| Some(size * 2)).take_while(|size| *size <= LARGEST)
}

/// Measures a handful of pairs that stand for the kinds of kernels, and memcpy.
pub(crate) fn measure() -> Vec<Curve> {
    let memcpy = block_sizes().map(|bytes| (bytes, memcpy(bytes)));
    let mut curves = vec![Curve { name: "memcpy".to_owned(), points: memcpy.collect() }];
    let makers: [fn(usize) -> Case; 5] = [
        |bytes| Case::decode(ExtType::Float, MemType::F32, bytes, 0),
        |bytes| Case::decode(ExtType::Float, MemType::F64, bytes, 0),
        |bytes| Case::encode(ExtType::Float, MemType::F64, bytes, 0),
        |bytes| Case::encode(ExtType::Short, MemType::F32, bytes, 0),
        |bytes| Case::decode(ExtType::Int, MemType::I16, bytes, 0),
    ];
    for make in makers {
        let name = make(SMALLEST).name;
        let points = block_sizes().map(|bytes| (bytes, make(bytes).measure(bytes))).collect();
        curves.push(Curve { name, points });
    }
    curves
}

/// One row per block size, one column per curve.
pub(crate) fn write_tsv(path: &str, curves: &[Curve]) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    writeln!(file, "block_bytes\t{}", names.join("\t"))?;
    for (i, size) in block_sizes().enumerate() {
        let cells: Vec<String> =
            curves.iter().map(|curve| format!("{:.0}", curve.points[i].1)).collect();
        writeln!(file, "{size}\t{}", cells.join("\t"))?;
    }
    file.flush()
}

/// Both axes logarithmic; GB/s over block bytes. PNG or SVG, by the name.
pub(crate) fn plot(path: &str, curves: &[Curve]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let format = Format::of(path.as_ref())?;
    let curves: Vec<zonda_plot::Curve> = curves
        .iter()
        .map(|curve| zonda_plot::Curve {
            name: curve.name.clone(),
            points: curve.points.iter().map(|(size, rate)| (*size as f64, rate / 1e3)).collect(),
        })
        .collect();
    let options = LineOptions {
        title: "Conversion throughput over block size".to_owned(),
        x: Axis::new("block, the larger side", AxisKind::BinaryBytes).log(),
        y: Axis::new("GB/s, bytes read plus written", AxisKind::Number).log(),
        ..LineOptions::default()
    };
    fs::write(path, lines(&curves, &options)?.encode(format)?)?;
    Ok(())
}
