//! Throughput over the size of a block: where the cost of a call stops to matter, and where the
//! caches end.

use std::error::Error;
use std::fs;
use std::io::{self, Write};

use plotters::prelude::*;
use zonda_model::{ExtType, MemType};

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

/// Both axes logarithmic; GB/s over block bytes.
pub(crate) fn plot(path: &str, curves: &[Curve]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let root = SVGBackend::new(path, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let all = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1 / 1e3);
    let (low, high) = all.fold((f64::MAX, 0.0_f64), |(l, h), y| (l.min(y), h.max(y)));
    let mut chart = ChartBuilder::on(&root)
        .caption("Conversion throughput over block size", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (SMALLEST as f64..LARGEST as f64).log_scale().base(2.0),
            (low / 1.2..high * 1.2).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("block, bytes of the larger side")
        .y_desc("GB/s, bytes read plus written")
        .x_label_formatter(&|x| size_label(*x as usize))
        .light_line_style(WHITE)
        .draw()?;
    for (i, curve) in curves.iter().enumerate() {
        let colour = if i == 0 { BLACK.to_rgba() } else { Palette99::pick(i).to_rgba() };
        let points = curve.points.iter().map(|(size, rate)| (*size as f64, rate / 1e3));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 20, y)], colour.stroke_width(2))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}

fn size_label(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes}"),
        1024..1_048_576 => format!("{}K", bytes >> 10),
        _ => format!("{}M", bytes >> 20),
    }
}
