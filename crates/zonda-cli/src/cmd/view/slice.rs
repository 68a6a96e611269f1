//! Reads the part of a variable that is shown: up to two dimensions, at one index along each of the
//! others.

use std::io::Write;

use zonda::{Dataset, Hyperslab, memory};
use zonda_cf::values::Unused;
use zonda_plot::AxisKind;

use super::coordinate::{Coordinate, Meaning, position};
use super::decode::{decoder, text};
use super::grid::Grid;
use super::variable::{Variable, read};
use super::words::{short, titled, with_units};
use crate::failure::Result;
use crate::tuning::LINE_ELEMS;

/// Values of a variable, with what describes them.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) name: String,
    long_name: Option<String>,
    units: Option<String>,
    /// Position along dimensions that are not shown: `lev = 983.3 hPa`.
    pub(super) at: Vec<String>,
    pub(super) axes: ShownDims,
    /// Where the cells of a curvilinear grid are.
    pub(super) places: Option<CellPlaces>,
    /// Decoded values, NaN where missing. The last axis is the fastest.
    pub(super) values: Vec<f64>,
    /// Attributes that have no meaning and were not used.
    pub(super) notes: Vec<String>,
}

/// The dimensions that are shown.
#[derive(Debug)]
pub(super) enum ShownDims {
    One(Box<Coordinate>),
    Two { y: Box<Coordinate>, x: Box<Coordinate> },
}

/// Latitudes and longitudes of the cells that are shown, row after row.
#[derive(Debug)]
pub(super) struct CellPlaces {
    pub(super) lat: Vec<f64>,
    pub(super) lon: Vec<f64>,
    /// Latitudes and longitudes of their corners, four of each, where the file has them.
    pub(super) corners: Option<(Vec<f64>, Vec<f64>)>,
    /// Titles of the axes.
    pub(super) lat_title: String,
    pub(super) lon_title: String,
}

impl Slice {
    /// Reads what is at these indices. Two of the other dimensions are shown, of each at
    /// most `map_elems` elements.
    pub(super) fn read(
        file: &Dataset,
        variable: &Variable,
        grid: Option<&Grid>,
        at: &[Option<usize>],
        map_elems: usize,
    ) -> Result<Slice> {
        let dims = &variable.dims;
        if let Some(empty) = dims.iter().find(|dim| dim.len == 0) {
            return Err(variable.problem(format!("no values, {} is empty", empty.name)));
        }
        let shown = shown(file, variable, grid, at);
        let most = if shown.len() == 2 { map_elems } else { LINE_ELEMS };

        let mut start = vec![0; dims.len()];
        let mut count = vec![1; dims.len()];
        let mut stride = vec![1; dims.len()];
        let mut axes = Vec::new();
        let mut rest = Vec::new();
        for (i, dim) in dims.iter().enumerate() {
            if shown.contains(&i) {
                let step = dim.len.div_ceil(most);
                count[i] = dim.len.div_ceil(step);
                // The list is no longer than the dimension.
                stride[i] = isize::try_from(step).unwrap_or(isize::MAX);
                axes.push(Coordinate::read(file, dim, count[i], step)?);
            } else {
                start[i] = at[i].unwrap_or(0);
                rest.extend(position(file, dim, start[i])?);
            }
        }
        if let Some(grid) = grid.filter(|grid| !shown.contains(&grid.y) && !shown.contains(&grid.x))
        {
            let one = vec![1; dims.len()];
            let (lat, lon) = grid.read(file, (&start, &one, &stride))?;
            for (of, value) in [(&grid.lat, lat.first()), (&grid.lon, lon.first())] {
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    rest.push(format!("{} = {}", of.name, Meaning::of(file, of).words(*value)));
                }
            }
        }
        let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
        let decoder = decoder(file, variable.id, variable.ty)?;
        let mut values = read(file, variable.id, &slab, &decoder)?;
        let x = axes.pop().unwrap_or_else(Coordinate::of_nothing);
        let shown_grid = grid.filter(|grid| shown == [grid.y, grid.x]);
        let places = match shown_grid {
            Some(grid) => CellPlaces::read(file, grid, (&start, &count, &stride))?,
            None => None,
        };
        let axes = match axes.pop() {
            Some(y) if places.is_none() && lies(&y, &x) => {
                values = transposed(&values, y.len, x.len)?;
                ShownDims::Two { y: Box::new(x), x: Box::new(y) }
            }
            Some(y) => ShownDims::Two { y: Box::new(y), x: Box::new(x) },
            None => ShownDims::One(Box::new(x)),
        };
        let id = variable.id;
        Ok(Slice {
            name: variable.name.clone(),
            long_name: text(file, id, "long_name").or_else(|| text(file, id, "standard_name")),
            units: text(file, id, "units").filter(|units| units != "1"),
            at: rest,
            axes,
            places,
            values,
            notes: decoder.unused().iter().map(Unused::to_string).collect(),
        })
    }

    /// `temperature (T)`
    pub(super) fn title(&self) -> String {
        match &self.long_name {
            Some(long) if *long != self.name => format!("{long} ({})", self.name),
            _ => self.name.clone(),
        }
    }

    /// Of which dimensions only some elements are shown.
    fn left_out(&self) -> Vec<String> {
        let words =
            |axis: &Coordinate| format!("{} of {} elements along {}", axis.len, axis.of, axis.dim);
        self.coordinates().filter(|axis| axis.of > axis.len).map(words).collect()
    }

    /// Positions along dimensions that are not shown, and what else there is to know.
    pub(super) fn subtitle(&self, at: &[String]) -> String {
        let mut parts = at.to_vec();
        parts.extend(self.left_out());
        if self.values.iter().all(|value| !value.is_finite()) {
            parts.push("no value is there, all are missing".to_owned());
        }
        parts.join(",  ")
    }

    /// `temperature (K)`
    pub(super) fn named_unit(&self) -> String {
        titled(self.long_name.as_ref().unwrap_or(&self.name), self.units.as_deref())
    }

    /// The axes, the horizontal one last.
    pub(super) fn coordinates(&self) -> impl Iterator<Item = &Coordinate> {
        let (y, x) = match &self.axes {
            ShownDims::One(x) => (None, &**x),
            ShownDims::Two { y, x } => (Some(&**y), &**x),
        };
        y.into_iter().chain([x])
    }

    /// Describes in words what would be drawn.
    pub(super) fn describe(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", self.title())?;
        let mut line = |label: &str, text: &str| writeln!(out, "  {label:<8} {text}");
        if !self.at.is_empty() {
            line("at", &self.at.join(", "))?;
        }
        let named = self.coordinates().filter(|axis| !axis.dim.is_empty());
        let shape: Vec<String> = named.map(|axis| format!("{}={}", axis.dim, axis.len)).collect();
        if !shape.is_empty() {
            line("shape", &shape.join(", "))?;
        }
        let left_out = self.left_out();
        if !left_out.is_empty() {
            line("shown", &format!("{}; range and mean are of these", left_out.join(", ")))?;
        }
        for axis in self.coordinates().filter(|_| self.places.is_none()) {
            if let Some((first, last)) = &axis.ends {
                line(&axis.dim, &format!("{first} to {last}"))?;
            }
        }
        for (name, range) in self.places.iter().flat_map(CellPlaces::words) {
            line(name, &range)?;
        }
        let mut found = Statistics::default();
        self.values.iter().filter(|value| value.is_finite()).for_each(|value| found.add(*value));
        let missing = self.values.len() - found.n;
        line("values", &format!("{}, {missing} missing", self.values.len()))?;
        if found.n > 0 {
            let units = self.units.as_ref().map_or(String::new(), |units| format!(" {units}"));
            let (low, high) = (short(found.low), short(found.high));
            line("range", &format!("{low} to {high}{units}"))?;
            line("mean", &format!("{}{units}, each value counted once", short(found.mean)))?;
        }
        Ok(())
    }
}

impl CellPlaces {
    /// Reads the places of cells. None where no cell has one.
    fn read(
        file: &Dataset,
        grid: &Grid,
        slab: (&[usize], &[usize], &[isize]),
    ) -> Result<Option<CellPlaces>> {
        let (lat, lon) = grid.read(file, slab)?;
        let is_somewhere =
            lat.iter().zip(&lon).any(|(lat, lon)| lat.is_finite() && lon.is_finite());
        let corners = grid.read_corners(file, slab)?;
        let title = |of| Meaning::of(file, of).title;
        let (lat_title, lon_title) = (title(&grid.lat), title(&grid.lon));
        Ok(is_somewhere.then_some(CellPlaces { lat, lon, corners, lat_title, lon_title }))
    }

    /// The ranges in words.
    fn words(&self) -> [(&'static str, String); 2] {
        let range = |of: &[f64], placed: fn(f64) -> f64| {
            let found = of.iter().filter(|value| value.is_finite()).map(|value| placed(*value));
            found.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        let lat = range(&self.lat, |lat| lat);
        // In the turn in which they are closer together.
        let from_0 = range(&self.lon, |lon| lon.rem_euclid(360.0));
        let from_west = range(&self.lon, |lon| (lon + 180.0).rem_euclid(360.0) - 180.0);
        let is_west = from_west.1 - from_west.0 < from_0.1 - from_0.0;
        let lon = if is_west { from_west } else { from_0 };
        let words = |(low, high), kind| {
            format!("{} to {}", with_units(low, kind, ""), with_units(high, kind, ""))
        };
        [("lat", words(lat, AxisKind::Latitude)), ("lon", words(lon, AxisKind::Longitude))]
    }
}

/// Statistics of values that are printed.
struct Statistics {
    n: usize,
    low: f64,
    high: f64,
    mean: f64,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { n: 0, low: f64::INFINITY, high: f64::NEG_INFINITY, mean: 0.0 }
    }
}

impl Statistics {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        // The mean is updated step by step, because the sum of huge numbers may be infinite.
        let n = self.n as f64;
        self.mean += value / n - self.mean / n;
    }
}

/// Which dimensions are shown, of those that have no index: those of latitude and longitude, else the last two of more than one
/// element.
fn shown(
    file: &Dataset,
    variable: &Variable,
    grid: Option<&Grid>,
    at: &[Option<usize>],
) -> Vec<usize> {
    let dims = &variable.dims;
    let free: Vec<usize> =
        (0..dims.len()).filter(|i| at[*i].is_none() && dims[*i].len > 1).collect();
    if free.is_empty() {
        // A single value is drawn as a line of one point, along the last dimension without an index.
        return at.iter().rposition(Option::is_none).into_iter().collect();
    }
    if let Some(grid) = grid.filter(|grid| free.contains(&grid.y) && free.contains(&grid.x)) {
        return vec![grid.y, grid.x];
    }
    let of = |kind| {
        let is_kind = |i: &&usize| {
            let coordinate = dims[**i].coordinate.as_ref();
            coordinate.is_some_and(|of| Meaning::of(file, of).kind == kind)
        };
        free.iter().find(is_kind).copied()
    };
    match (of(AxisKind::Latitude), of(AxisKind::Longitude)) {
        (Some(lat), Some(lon)) => vec![lat.min(lon), lat.max(lon)],
        _ => free[free.len().saturating_sub(2)..].to_vec(),
    }
}

/// Whether a map has to be turned so that heights go up and longitudes to the right.
fn lies(y: &Coordinate, x: &Coordinate) -> bool {
    x.is_vertical && !y.is_vertical || (y.kind, x.kind) == (AxisKind::Longitude, AxisKind::Latitude)
}

/// Rows become columns.
fn transposed(values: &[f64], rows: usize, columns: usize) -> Result<Vec<f64>> {
    let mut turned = memory::room(values.len())?;
    turned.extend((0..columns).flat_map(|x| (0..rows).map(move |y| values[y * columns + x])));
    Ok(turned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns() {
        assert_eq!(
            transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3).unwrap(),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
    }

    #[test]
    fn mean_of_huge_values() {
        let mut found = Statistics::default();
        [f64::MAX, f64::MAX, -f64::MAX, -f64::MAX].into_iter().for_each(|value| found.add(value));
        assert!(found.mean.abs() < f64::MAX / 1e10, "{}", found.mean);
    }
}
