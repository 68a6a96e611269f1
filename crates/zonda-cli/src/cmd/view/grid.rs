//! Curvilinear grids: latitudes and longitudes of two dimensions.

use zonda::{Dataset, Hyperslab};
use zonda_plot::AxisKind;

use super::coordinate::Meaning;
use super::decode::decoder;
use super::variable::{Auxiliary, Variable, read};
use super::words::with_units;
use crate::failure::Result;

/// Latitudes and longitudes of the cells of a variable.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) lat: Auxiliary,
    pub(super) lon: Auxiliary,
    /// The dimensions of the variable that cells are along, by number.
    pub(super) y: usize,
    pub(super) x: usize,
}

impl Grid {
    /// The grid that the attribute `coordinates` names; where there is no such attribute, the one pair of latitudes and
    /// longitudes that have the variable's last dimensions.
    pub(super) fn find(file: &Dataset, variable: &Variable) -> Result<Option<Grid>> {
        if variable.dims.len() < 2 {
            return Ok(None);
        }
        let among = |all: &[Auxiliary]| -> Option<Grid> {
            let of = |kind| {
                let mut found = all
                    .iter()
                    .filter(|of| of.dims.len() >= 2 && Meaning::of(file, of).kind == kind);
                let first = found.next()?;
                found.next().is_none().then(|| first.clone())
            };
            let (lat, lon) = (of(AxisKind::Latitude)?, of(AxisKind::Longitude)?);
            let [.., y, x] = lat.dims[..] else { return None };
            (lat.dims == lon.dims && y < x).then_some(Grid { lat, lon, y, x })
        };
        if let Some(grid) = among(&variable.auxiliary) {
            return Ok(Some(grid));
        }
        let has_axes = |kind| {
            let each = variable.dims.iter().filter_map(|dim| dim.coordinate.as_ref());
            each.into_iter().any(|of| Meaning::of(file, of).kind == kind)
        };
        if has_axes(AxisKind::Latitude) || has_axes(AxisKind::Longitude) {
            return Ok(None);
        }
        Ok(among(&variable.all_beside(file)?))
    }

    /// Which of both a name is.
    pub(super) fn part(&self, name: &str) -> Option<AxisKind> {
        match &*name.to_ascii_lowercase() {
            _ if name == self.lat.name => Some(AxisKind::Latitude),
            _ if name == self.lon.name => Some(AxisKind::Longitude),
            "lat" | "latitude" => Some(AxisKind::Latitude),
            "lon" | "longitude" => Some(AxisKind::Longitude),
            _ => None,
        }
    }

    /// Reads latitudes and longitudes of the cells `start`, `count`, `stride` of the variable, row after row.
    pub(super) fn read(
        &self,
        file: &Dataset,
        (start, count, stride): (&[usize], &[usize], &[isize]),
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let values = |of: &Auxiliary| {
            let pick = |from: &[usize]| of.dims.iter().map(|dim| from[*dim]).collect::<Vec<_>>();
            let stride: Vec<isize> = of.dims.iter().map(|dim| stride[*dim]).collect();
            let slab =
                Hyperslab { start: &pick(start), count: &pick(count), stride: Some(&stride) };
            read(file, of.id, &slab, &decoder(file, of.id, of.ty)?)
        };
        Ok((values(&self.lat)?, values(&self.lon)?))
    }

    /// Reads latitudes and longitudes of the four corners of the same cells, where both have such bounds and no cell is left out.
    pub(super) fn read_corners(
        &self,
        file: &Dataset,
        (start, count, stride): (&[usize], &[usize], &[isize]),
    ) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let (Some(lat), Some(lon)) = (self.lat.bounds(file, 4)?, self.lon.bounds(file, 4)?) else {
            return Ok(None);
        };
        if self.lat.dims.iter().any(|dim| stride[*dim] != 1) {
            return Ok(None);
        }
        let values = |(id, ty)| {
            let of = |from: &[usize], last: usize| {
                self.lat.dims.iter().map(|dim| from[*dim]).chain([last]).collect::<Vec<_>>()
            };
            let slab = Hyperslab { start: &of(start, 0), count: &of(count, 4), stride: None };
            read(file, id, &slab, &decoder(file, id, ty)?)
        };
        Ok(Some((values(lat)?, values(lon)?)))
    }

    /// The cell nearest to a place, by its numbers along both dimensions. Other dimensions are at `fixed`.
    ///
    /// # Errors
    /// The place is farther from all cells than these are from each other.
    pub(super) fn nearest(
        &self,
        file: &Dataset,
        variable: &Variable,
        fixed: &[usize],
        (lat, lon): (f64, f64),
    ) -> Result<(usize, usize)> {
        let mut start = fixed.to_vec();
        let mut count = vec![1; fixed.len()];
        for dim in [self.y, self.x] {
            start[dim] = 0;
            count[dim] = variable.dims[dim].len;
        }
        let columns = variable.dims[self.x].len;
        let (lats, lons) = self.read(file, (&start, &count, &vec![1; fixed.len()]))?;
        let to = direction(lat, lon);
        let cells = lats.iter().zip(&lons).map(|(lat, lon)| apart(to, direction(*lat, *lon)));
        let best = cells
            .enumerate()
            .filter(|(_, angle)| angle.is_finite())
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let place = |lat: f64, lon: f64| {
            format!(
                "{} {}",
                with_units(lat, AxisKind::Latitude, ""),
                with_units(lon, AxisKind::Longitude, "")
            )
        };
        let asked = place(lat, lon);
        let Some((cell, angle)) = best else {
            return Err(variable
                .problem(format!("no cell at {asked}: all latitudes or longitudes are missing")));
        };
        let (row, column) = (cell / columns, cell % columns);
        let rows = variable.dims[self.y].len;
        // The most that a neighbour is away.
        let neighbours = [
            (row > 0).then(|| cell - columns),
            (row + 1 < rows).then_some(cell + columns),
            (column > 0).then(|| cell - 1),
            (column + 1 < columns).then_some(cell + 1),
        ];
        let here = direction(lats[cell], lons[cell]);
        let reach = neighbours
            .into_iter()
            .flatten()
            .map(|other| apart(here, direction(lats[other], lons[other])));
        let reach = reach.filter(|angle| angle.is_finite()).fold(0.0, f64::max).max(1e-3);
        if angle > reach {
            let (nearest, away) = (place(lats[cell], lons[cell]), angle.to_degrees());
            return Err(variable.problem(format!(
                "no cell at {asked}: the nearest one is at {nearest}, {away:.1} degrees away"
            )));
        }
        Ok((row, column))
    }
}

/// The direction from the centre of the Earth.
fn direction(lat: f64, lon: f64) -> [f64; 3] {
    let (lat, lon) = (lat.to_radians(), lon.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// The angle between two directions.
fn apart(a: [f64; 3], b: [f64; 3]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    // Not `min`, which would make a number of what is none.
    2.0 * (square.sqrt() / 2.0).clamp(0.0, 1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles() {
        for (a, b, degrees) in [
            ((0.0, 0.0), (0.0, 90.0), 90.0),
            ((0.0, -180.0), (0.0, 180.0), 0.0),
            ((89.0, 0.0), (89.0, 180.0), 2.0),
            ((-90.0, 10.0), (90.0, 10.0), 180.0),
        ] {
            let found = apart(direction(a.0, a.1), direction(b.0, b.1)).to_degrees();
            assert!((found - degrees).abs() < 1e-9, "{found} and not {degrees}");
        }
        assert!(apart(direction(f64::NAN, 0.0), direction(0.0, 0.0)).is_nan());
    }
}
