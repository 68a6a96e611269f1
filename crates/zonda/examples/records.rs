//! Writes records of a compressed variable one by one, and reads a part of them again.
//!
//!     cargo run --example records -- /tmp/records.nc
//!
//! `docs/reference/rust-comparison.md` shows the same with other libraries.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use ndarray::Array2;
use zonda::typed::{File, Result};

const STEPS: usize = 10;
const LATS: usize = 18;
const LONS: usize = 36;

/// The temperatures of one step, row by row.
fn record(step: usize) -> Array2<f32> {
    Array2::from_shape_fn((LATS, LONS), |(i, j)| {
        280.0 + step as f32 + (i * LONS + j) as f32 / 100.0
    })
}

fn write(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    file.add_unlimited_dimension("time")?;
    file.add_dimension("lat", LATS)?;
    file.add_dimension("lon", LONS)?;
    let t = file.add_variable::<f32>("t", &["time", "lat", "lon"])?;
    let t = t.chunked(&[1, LATS, LONS])?.deflated(4)?;
    t.put_attribute("units", "K")?;
    t.put_attribute("_FillValue", -999.0f32)?;
    for step in 0..STEPS {
        t.put_array((step, .., ..), &record(step))?;
    }
    file.close()
}

fn read(path: &Path) -> std::result::Result<String, Box<dyn Error>> {
    let file = File::open(path)?;
    let t = file.variable("t")?;
    let values = t.get_array::<f64>((2..5, 4..8, ..10))?;
    let units: String = t.attribute("units")?;
    let mean = values.mean().ok_or("no values")?;
    Ok(format!("mean of {} values: {mean:.3} {units}", values.len()))
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("records FILE")?;
    write(path.as_ref())?;
    writeln!(io::stdout(), "{}", read(path.as_ref())?)?;
    Ok(())
}
