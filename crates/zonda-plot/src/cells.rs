//! Where the cells of a map are.

use crate::axis::{Axis, AxisKind, Spacing};
use crate::curved::Curved;
use crate::error::{Error, Result};
use crate::frame::Ranged;
use crate::map::MapField;

/// The number that stands for no cell.
pub(crate) const NOTHING: u32 = u32::MAX;

/// The cells of a map.
pub(crate) enum Cells {
    /// In columns and rows along the axes.
    Straight { columns: usize, x: CellEdges, y: CellEdges },
    /// Each in a place of its own.
    Curved(Curved),
}

impl Cells {
    pub(crate) fn new(field: &MapField<'_>) -> Result<Cells> {
        let (columns, rows) = (field.columns, field.rows);
        if columns.checked_mul(rows) != Some(field.values.len()) {
            return Err(Error::Shape { columns, rows, values: field.values.len() });
        }
        if field.values.is_empty() || u32::try_from(field.values.len()).is_err() {
            return Err(Error::Empty);
        }
        Ok(match &field.positions {
            Some(positions) => Cells::Curved(Curved::new(columns, rows, positions)?),
            None => Cells::Straight {
                columns,
                x: CellEdges::new(&field.x, columns, field.x_centres, field.x_edges)?,
                y: CellEdges::new(&field.y, rows, field.y_centres, field.y_edges)?,
            },
        })
    }

    /// The axes with the ranges that cells are in.
    pub(crate) fn ranged<'a>(&self, field: &'a MapField<'_>) -> (Ranged<'a>, Ranged<'a>) {
        match self {
            Cells::Straight { x, y, .. } => (x.ranged(&field.x), y.ranged(&field.y)),
            Cells::Curved(curved) => {
                let ranged = |axis, (low, high)| Ranged { axis, low, high };
                let (lon, lat) = curved.ranges();
                (ranged(&field.x, lon), ranged(&field.y, lat))
            }
        }
    }

    /// Which cell is in the middle of each pixel, or [`NOTHING`]: row after row from the top.
    pub(crate) fn pixels(
        &self,
        x: &Ranged<'_>,
        y: &Ranged<'_>,
        width: usize,
        height: usize,
    ) -> Vec<u32> {
        let middle = |pixel: usize, of: usize| (pixel as f64 + 0.5) / of as f64;
        let across = (0..width).map(|column| x.at(middle(column, width)));
        let down = (0..height).map(|line| y.at(1.0 - middle(line, height)));
        match self {
            Cells::Straight { columns, x, y } => {
                let of_column: Vec<usize> = across.map(|at| x.cell(at)).collect();
                let mut pixels = Vec::with_capacity(width * height);
                for at in down {
                    let first = y.cell(at) * columns;
                    // The number of cells was found to fit.
                    pixels.extend(of_column.iter().map(|column| (first + column) as u32));
                }
                pixels
            }
            Cells::Curved(curved) => {
                curved.pixels(&across.collect::<Vec<_>>(), &down.collect::<Vec<_>>())
            }
        }
    }
}

/// Where cells end, in the order of the cells.
pub(crate) struct CellEdges(Vec<f64>);

impl CellEdges {
    fn new(
        axis: &Axis,
        n_cells: usize,
        centres: Option<&[f64]>,
        edges: Option<&[f64]>,
    ) -> Result<CellEdges> {
        let name = || match axis.title.as_str() {
            "" => "an axis".to_owned(),
            title => title.to_owned(),
        };
        let check = |numbers: &[f64], n: usize| {
            if numbers.len() != n {
                let coordinates = numbers.len();
                return Err(Error::Coordinates { axis: name(), cells: n_cells, coordinates });
            }
            let one_way = numbers.windows(2).all(|pair| pair[0] < pair[1])
                || numbers.windows(2).all(|pair| pair[0] > pair[1]);
            match one_way && numbers.iter().all(|number| number.is_finite()) {
                true => Ok(()),
                false => Err(Error::NotMonotonic { axis: name() }),
            }
        };
        if let Some(edges) = edges {
            check(edges, n_cells + 1)?;
            return Ok(CellEdges(edges.to_vec()).on_globe(axis).with_logarithms(axis, centres));
        }
        let Some(centres) = centres else {
            return Ok(CellEdges((0..=n_cells).map(|i| i as f64 - 0.5).collect()));
        };
        check(centres, n_cells)?;
        let [first, .., last] = centres else {
            let (only, half) = (centres[0], axis.half_unit(centres[0]));
            return Ok(CellEdges(vec![only - half, only + half]));
        };
        if axis.spacing == Spacing::Log {
            return match centres.iter().all(|centre| axis.shows(*centre)) {
                true => Ok(CellEdges(by_ratios(centres))),
                false => Err(Error::NoLogarithm { axis: name() }),
            };
        }
        let middles = centres.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let mut edges = Vec::with_capacity(n_cells + 1);
        edges.push(first - (centres[1] - first) / 2.0);
        edges.extend(middles);
        edges.push(last + (last - centres[n_cells - 2]) / 2.0);
        Ok(CellEdges(edges).on_globe(axis))
    }

    /// Cells at the poles end there.
    fn on_globe(mut self, axis: &Axis) -> CellEdges {
        let is_latitude = axis.kind == AxisKind::Latitude;
        if is_latitude && self.0.iter().any(|edge| edge.abs() < 90.0) {
            self.0.iter_mut().for_each(|edge| *edge = edge.clamp(-90.0, 90.0));
        }
        self
    }

    /// On a logarithmic axis, an outer edge without a logarithm, such as the top of the atmosphere, is as far from its cell's middle as the other one is.
    fn with_logarithms(mut self, axis: &Axis, centres: Option<&[f64]>) -> CellEdges {
        let (Spacing::Log, Some(centres)) = (axis.spacing, centres) else { return self };
        let last = self.0.len() - 1;
        for (edge, inner, centre) in [(0, 1, 0), (last, last - 1, centres.len() - 1)] {
            if !axis.shows(self.0[edge]) {
                self.0[edge] = centres[centre] * (centres[centre] / self.0[inner]);
            }
        }
        self
    }

    fn ranged<'a>(&self, axis: &'a Axis) -> Ranged<'a> {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        Ranged { axis, low: first.min(last), high: first.max(last) }
    }

    /// The cell that a number lies in.
    fn cell(&self, number: f64) -> usize {
        let rising = self.0[0] <= self.0[self.0.len() - 1];
        let before =
            self.0.partition_point(|edge| if rising { *edge <= number } else { *edge > number });
        before.saturating_sub(1).min(self.0.len() - 2)
    }
}

/// Where cells end whose middles these are, by equal ratios to both sides.
fn by_ratios(centres: &[f64]) -> Vec<f64> {
    let [first, .., last] = centres else {
        return centres.iter().flat_map(|only| [only / 2.0, only * 2.0]).collect();
    };
    // Of roots: products of huge or tiny numbers may be none.
    let between = |a: f64, b: f64| a.sqrt() * b.sqrt();
    let (second, before) = (centres[1], centres[centres.len() - 2]);
    let mut edges = vec![first * (first / second).sqrt()];
    edges.extend(centres.windows(2).map(|pair| between(pair[0], pair[1])));
    edges.push(last * (last / before).sqrt());
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(centres: &[f64], bounds: Option<&[f64]>) -> Result<Vec<f64>> {
        let axis = Axis::new("pressure", AxisKind::Number).log();
        Ok(CellEdges::new(&axis, centres.len(), Some(centres), bounds)?.0)
    }

    #[test]
    fn cells_on_a_logarithmic_axis_end_by_ratios() {
        let close = |found: Vec<f64>, wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
            }
        };
        close(edges(&[1.0, 4.0, 16.0], None).unwrap(), &[0.5, 2.0, 8.0, 32.0]);
        close(edges(&[900.0, 100.0], None).unwrap(), &[2700.0, 300.0, 100.0 / 3.0]);
        // The top of the atmosphere is at 0.
        close(edges(&[10.0, 50.0], Some(&[0.0, 20.0, 80.0])).unwrap(), &[5.0, 20.0, 80.0]);
        close(edges(&[50.0, 10.0], Some(&[80.0, 20.0, 0.0])).unwrap(), &[80.0, 20.0, 5.0]);
        assert!(matches!(edges(&[0.0, 1.0], None), Err(Error::NoLogarithm { .. })));
    }
}
