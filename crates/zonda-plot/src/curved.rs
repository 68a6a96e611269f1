//! Cells of a curvilinear grid on a map of longitudes and latitudes.

use crate::error::{Error, Result};

/// Where the middles of the cells of a curvilinear grid are, row after row, in degrees. Cells without a place are not drawn.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    /// Degrees to the east, in any turn.
    pub lon: &'a [f64],
    /// Degrees to the north.
    pub lat: &'a [f64],
    /// The corners of the cells, where they are known; else half-way between the middles.
    pub corners: Option<Corners<'a>>,
}

/// Where the corners of cells are: four of each cell one after the other, in their order around it.
#[derive(Clone, Copy, Debug)]
pub struct Corners<'a> {
    /// Degrees to the east, in any turn.
    pub lon: &'a [f64],
    /// Degrees to the north.
    pub lat: &'a [f64],
}

/// A direction from the centre of the Earth.
type Direction = [f64; 3];

/// A cell wider than this is none: its corners were not where cells are.
const WIDEST: f64 = 60.0;
/// Steps of a turn that are looked at to find the part without cells.
const STEPS: usize = 3600;
/// Turns of longitudes that a map may show.
const MOST_TURNS: i32 = 8;
/// A part without cells narrower than this share of a turn does not end a map.
const LEAST_GAP: f64 = 0.06;

/// The cells.
pub(crate) struct Curved {
    columns: usize,
    rows: usize,
    middles: Vec<Direction>,
    /// Corners, a row and a column more than cells; four of each cell where `has_own` is true.
    corners: Vec<Direction>,
    has_own: bool,
    lon: (f64, f64),
    lat: (f64, f64),
}

fn direction(lat: f64, lon: f64) -> Direction {
    let (lat, lon) = (lat.to_radians(), lon.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// The directions of places; none where there is no such place.
fn directions(lat: &[f64], lon: &[f64]) -> Vec<Direction> {
    let one = |(lat, lon): (&f64, &f64)| {
        let is_place = (-90.0..=90.0).contains(lat) && lon.abs() <= 1080.0;
        if is_place { direction(*lat, *lon) } else { [f64::NAN; 3] }
    };
    lat.iter().zip(lon).map(one).collect()
}

fn longitude(of: Direction) -> f64 {
    of[1].atan2(of[0]).to_degrees()
}

fn latitude(of: Direction) -> f64 {
    of[2].atan2(of[0].hypot(of[1])).to_degrees()
}

fn is_one(of: Direction) -> bool {
    of.iter().all(|part| part.is_finite())
}

/// The mean of directions, without those that are none; no direction if there is none.
fn mean(of: &[Direction]) -> Direction {
    let mut sum = [0.0; 3];
    for direction in of.iter().filter(|direction| is_one(**direction)) {
        for (sum, part) in sum.iter_mut().zip(direction) {
            *sum += part;
        }
    }
    let length = sum.iter().map(|part| part * part).sum::<f64>().sqrt();
    sum.map(|part| part / length)
}

fn cross(a: Direction, b: Direction) -> Direction {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: Direction, b: Direction) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The longitude in the turn around another one.
fn beside(longitude: f64, of: f64) -> f64 {
    of + (longitude - of + 180.0).rem_euclid(360.0) - 180.0
}

/// A cell: the planes of its edges through the centre of the Earth, its inside being where all are positive; and where it is.
struct Cell {
    edges: [Direction; 4],
    lon: (f64, f64),
    lat: (f64, f64),
}

impl Cell {
    fn contains(&self, place: Direction) -> bool {
        // Cells that touch leave no gap from rounding.
        self.edges.iter().all(|edge| dot(*edge, place) >= -1e-12)
    }
}

impl Curved {
    pub(crate) fn new(columns: usize, rows: usize, at: &Positions<'_>) -> Result<Curved> {
        let wrong = |values: usize| Error::Shape { columns, rows, values };
        for values in [at.lon.len(), at.lat.len()] {
            if columns.checked_mul(rows) != Some(values) || values == 0 {
                return Err(wrong(values));
            }
        }
        let middles = directions(at.lat, at.lon);
        let mut curved = Curved {
            columns,
            rows,
            middles,
            corners: Vec::new(),
            has_own: at.corners.is_some(),
            lon: (0.0, 0.0),
            lat: (0.0, 0.0),
        };
        curved.corners = match &at.corners {
            Some(corners) => {
                for values in [corners.lon.len(), corners.lat.len()] {
                    if curved.middles.len().checked_mul(4) != Some(values) {
                        return Err(wrong(values));
                    }
                }
                directions(corners.lat, corners.lon)
            }
            None => (0..=rows)
                .flat_map(|row| (0..=columns).map(move |column| (row, column)))
                .map(|(row, column)| curved.corner(row, column))
                .collect(),
        };
        let is_west = at.lon.iter().any(|lon| *lon < 0.0);
        if curved.find_range(is_west) { Ok(curved) } else { Err(Error::Empty) }
    }

    /// The ranges of longitudes and latitudes with cells.
    pub(crate) fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        (self.lon, self.lat)
    }

    /// The middle of a cell, also of one beyond the edge, where the grid goes on as it ended.
    fn middle(&self, row: isize, column: isize) -> Direction {
        let at = |row: usize, column: usize| self.middles[row * self.columns + column];
        let beyond = |index: isize, len: usize| -> (usize, usize, bool) {
            // The cell at the edge, and the one behind it.
            match usize::try_from(index) {
                Err(_) => (0, 1.min(len - 1), true),
                Ok(index) if index >= len => (len - 1, len.saturating_sub(2), true),
                Ok(index) => (index, index, false),
            }
        };
        let (row, behind_row, is_row) = beyond(row, self.rows);
        let (column, behind_column, is_column) = beyond(column, self.columns);
        let (edge, behind) = (at(row, column), at(behind_row, behind_column));
        if !(is_row || is_column) {
            return edge;
        }
        let further = [0, 1, 2].map(|part| 2.0 * edge[part] - behind[part]);
        if is_one(further) { mean(&[further]) } else { [f64::NAN; 3] }
    }

    fn corner(&self, row: usize, column: usize) -> Direction {
        let (row, column) = (row.cast_signed(), column.cast_signed());
        let around = [(-1, -1), (-1, 0), (0, -1), (0, 0)];
        mean(&around.map(|(down, left)| self.middle(row + down, column + left)))
    }

    /// The cell of a number, if it has a place.
    fn cell(&self, number: usize) -> Option<Cell> {
        let middle = self.middles[number];
        let corners = if self.has_own {
            [0, 1, 2, 3].map(|corner| number * 4 + corner)
        } else {
            let (row, column) = (number / self.columns, number % self.columns);
            let first = row * (self.columns + 1) + column;
            let below = first + self.columns + 1;
            [first, first + 1, below + 1, below]
        };
        let corners = corners.map(|corner| self.corners[corner]);
        if !is_one(middle) || !corners.iter().all(|corner| is_one(*corner)) {
            return None;
        }
        let next = |i: usize| corners[(i + 1) % 4];
        let mut edges = [0, 1, 2, 3].map(|i| cross(corners[i], next(i)));
        // Twice the area on the unit sphere, about, positive where corners go round to the left.
        let area: f64 = edges.iter().map(|edge| dot(*edge, middle)).sum();
        if area.abs() < 1e-14 {
            return None;
        }
        if area < 0.0 {
            edges = edges.map(|edge| edge.map(|part| -part));
        }
        let lats = corners.map(latitude);
        let centre = longitude(middle);
        let lons = corners.map(|corner| beside(longitude(corner), centre));
        let (mut west, mut east) = lons
            .into_iter()
            .fold((centre, centre), |(low, high), lon| (low.min(lon), high.max(lon)));
        let (mut south, mut north) = lats
            .into_iter()
            .fold((f64::MAX, f64::MIN), |(low, high), lat| (low.min(lat), high.max(lat)));
        let mut cell = Cell { edges, lon: (west, east), lat: (south, north) };
        let has_pole = |sign: f64| cell.contains([0.0, 0.0, sign]) && sign * middle[2] > 0.0;
        let (has_north, has_south) = (has_pole(1.0), has_pole(-1.0));
        if has_north || has_south {
            (west, east) = (centre - 180.0, centre + 180.0);
            north = if has_north { 90.0 } else { north };
            south = if has_south { -90.0 } else { south };
        } else if east - west > WIDEST.max(cell_width(north.max(-south))) {
            return None;
        } else {
            // Great circles bulge to the poles.
            let bulge = (east - west).to_radians().powi(2).to_degrees() / 8.0;
            (south, north) = ((south - bulge).max(-90.0), (north + bulge).min(90.0));
        }
        (cell.lon, cell.lat) = ((west, east), (south, north));
        Some(cell)
    }

    /// Finds the part of the globe that has cells; whether there is one.
    fn find_range(&mut self, is_west: bool) -> bool {
        let mut filled = vec![false; STEPS];
        let mut lat = (f64::INFINITY, f64::NEG_INFINITY);
        let step = 360.0 / STEPS as f64;
        for cell in (0..self.middles.len()).filter_map(|number| self.cell(number)) {
            lat = (lat.0.min(cell.lat.0), lat.1.max(cell.lat.1));
            let first = (cell.lon.0.rem_euclid(360.0) / step) as usize;
            let n = ((cell.lon.1 - cell.lon.0) / step).ceil() as usize;
            (first..=first + n.min(STEPS)).for_each(|at| filled[at % STEPS] = true);
        }
        if lat.0 > lat.1 {
            return false;
        }
        self.lat = lat;
        // The longest run of steps without cells, around the turn.
        let (mut run, mut longest, mut end) = (0, 0, 0);
        for at in 0..2 * STEPS {
            run = if filled[at % STEPS] { 0 } else { run + 1 };
            if run > longest {
                (longest, end) = (run, at + 1);
            }
        }
        if (longest as f64) < LEAST_GAP * STEPS as f64 {
            self.lon = if is_west { (-180.0, 180.0) } else { (0.0, 360.0) };
            return true;
        }
        let west = end as f64 * step;
        let east = west + (STEPS - longest.min(STEPS - 1)) as f64 * step;
        // In the turn that its middle is in.
        let turns = ((west + east) / 2.0 + 180.0).div_euclid(360.0) * 360.0;
        self.lon = (west - turns, east - turns);
        true
    }

    /// Which cell each pixel shows, [`NOTHING`](super::cells::NOTHING) where there is none: row after row from the north.
    pub(crate) fn pixels(&self, lons: &[f64], lats: &[f64]) -> Vec<u32> {
        let width = lons.len();
        let mut pixels = vec![super::cells::NOTHING; width * lats.len()];
        let ([first_lon, .., last_lon], [first_lat, .., last_lat]) = (lons, lats) else {
            return pixels;
        };
        let step = |first: f64, last: f64, n: usize| (last - first) / (n - 1) as f64;
        let (across, down) =
            (step(*first_lon, *last_lon, width), step(*first_lat, *last_lat, lats.len()));
        // Pixels whose middles are from `low` to `high`.
        let span = |low: f64, high: f64, first: f64, step: f64, n: usize| {
            let (a, b) = ((low - first) / step, (high - first) / step);
            let from = (a.min(b) - 1e-9).ceil().clamp(0.0, n as f64) as usize;
            let to = ((a.max(b) + 1e-9).floor() + 1.0).clamp(0.0, n as f64) as usize;
            from..to.max(from)
        };
        let of_column: Vec<(f64, f64)> =
            lons.iter().map(|lon| lon.to_radians().sin_cos()).collect();
        let of_line: Vec<(f64, f64)> = lats.iter().map(|lat| lat.to_radians().sin_cos()).collect();
        for number in 0..self.middles.len() {
            let Some(cell) = self.cell(number) else { continue };
            let Ok(name) = u32::try_from(number) else { break };
            let lines = span(cell.lat.0, cell.lat.1, *first_lat, down, lats.len());
            if lines.is_empty() {
                continue;
            }
            // The cell in each turn that the map shows.
            let (west, east) = (first_lon.min(*last_lon), first_lon.max(*last_lon));
            let first_turn = ((west - cell.lon.1) / 360.0).ceil() as i32;
            let last_turn = ((east - cell.lon.0) / 360.0).floor() as i32;
            // What spans more is no map of longitudes.
            if last_turn.saturating_sub(first_turn) > MOST_TURNS {
                continue;
            }
            for turn in (first_turn..=last_turn).map(|turn| f64::from(turn) * 360.0) {
                let columns = span(cell.lon.0 + turn, cell.lon.1 + turn, *first_lon, across, width);
                for line in lines.clone() {
                    let (lat_sin, lat_cos) = of_line[line];
                    for column in columns.clone() {
                        let (lon_sin, lon_cos) = of_column[column];
                        if cell.contains([lat_cos * lon_cos, lat_cos * lon_sin, lat_sin]) {
                            pixels[line * width + column] = name;
                        }
                    }
                }
            }
        }
        pixels
    }
}

/// How wide a cell may be at a latitude: near the poles a cell of the usual size has many degrees.
fn cell_width(lat: f64) -> f64 {
    if lat > 80.0 { 359.0 } else { WIDEST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::NOTHING;

    fn middles(from: f64, to: f64, n: usize) -> Vec<f64> {
        (0..n).map(|i| from + (to - from) * (i as f64 + 0.5) / n as f64).collect()
    }

    /// Latitudes and longitudes of a regular grid, as if it were a curvilinear one.
    fn regular(lons: &[f64], lats: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let each = || lats.iter().flat_map(|lat| lons.iter().map(move |lon| (*lon, *lat)));
        (each().map(|at| at.0).collect(), each().map(|at| at.1).collect())
    }

    #[test]
    fn a_regular_grid_is_as_it_was() {
        let (lons, lats) = (middles(170.0, 200.0, 6), middles(-10.0, 10.0, 4));
        let (lon, lat) = regular(&lons, &lats);
        let curved = Curved::new(6, 4, &Positions { lon: &lon, lat: &lat, corners: None }).unwrap();
        let ((west, east), (south, north)) = curved.ranges();
        assert!(
            (east - west - 30.0).abs() < 0.5
                && (south + 10.0).abs() < 0.3
                && (north - 10.0).abs() < 0.3
        );
        assert!((beside(west, 170.0) - 170.0).abs() < 0.5, "{west}");
        // Two pixels for each cell along each direction.
        let pixels = curved.pixels(&middles(170.0, 200.0, 12), &middles(10.0, -10.0, 8));
        for line in 0..8 {
            for column in 0..12 {
                let want = ((7 - line) / 2 * 6 + column / 2) as u32;
                assert_eq!(pixels[line * 12 + column], want, "{line} {column}");
            }
        }
        // The same in another turn, and nothing elsewhere.
        assert_eq!(curved.pixels(&middles(-190.0, -160.0, 12), &middles(10.0, -10.0, 8)), pixels);
        let elsewhere = curved.pixels(&middles(0.0, 30.0, 12), &middles(10.0, -10.0, 8));
        assert!(elsewhere.iter().all(|pixel| *pixel == NOTHING));
    }

    /// A grid around a pole has the pole in it, and no holes around it.
    #[test]
    fn a_pole_within_the_grid() {
        let plane = middles(-20.0, 20.0, 9);
        let each = || plane.iter().flat_map(|y| plane.iter().map(move |x| (*x, *y)));
        let lon: Vec<f64> = each().map(|(x, y)| y.atan2(x).to_degrees()).collect();
        let lat: Vec<f64> = each().map(|(x, y)| 90.0 - x.hypot(y)).collect();
        let curved = Curved::new(9, 9, &Positions { lon: &lon, lat: &lat, corners: None }).unwrap();
        let ((west, east), (south, north)) = curved.ranges();
        assert_eq!((west, east, north), (-180.0, 180.0, 90.0));
        assert!((58.0..64.0).contains(&south), "{south}");
        let pixels = curved.pixels(&middles(-180.0, 180.0, 72), &middles(89.5, 72.5, 17));
        assert!(pixels.iter().all(|pixel| *pixel != NOTHING));
        // The cell at the pole is the one in the middle, all around.
        assert!(pixels[..72].iter().all(|pixel| *pixel == 40));
    }

    /// Cells with corners of their own: two squares and nothing between them, since cells need not touch.
    #[test]
    fn corners_of_their_own() {
        let (lon, lat) = ([0.0, 10.0], [0.0, 0.0]);
        let corner_lon = [-2.0, 2.0, 2.0, -2.0, 8.0, 12.0, 12.0, 8.0];
        let corner_lat = [-2.0, -2.0, 2.0, 2.0, -1.0, -1.0, 1.0, 1.0];
        let corners = Some(Corners { lon: &corner_lon, lat: &corner_lat });
        let curved = Curved::new(2, 1, &Positions { lon: &lon, lat: &lat, corners }).unwrap();
        let pixels = curved.pixels(&middles(-3.0, 13.0, 16), &middles(3.0, -3.0, 6));
        let count = |cell| pixels.iter().filter(|pixel| **pixel == cell).count();
        assert_eq!((count(0), count(1), count(NOTHING)), (16, 8, 96 - 24));
        let corners = Some(Corners { lon: &corner_lon[..4], lat: &corner_lat });
        let short = Curved::new(2, 1, &Positions { lon: &lon, lat: &lat, corners });
        assert!(matches!(short, Err(Error::Shape { values: 4, .. })));
    }

    #[test]
    fn grids_that_are_none() {
        let nowhere = [f64::NAN; 4];
        let places = [10.0; 4];
        for (lon, lat) in [(&nowhere, &places), (&places, &nowhere), (&places, &places)] {
            let found = Curved::new(2, 2, &Positions { lon, lat, corners: None });
            assert!(matches!(found, Err(Error::Empty)));
        }
        let short = Positions { lon: &places[..2], lat: &places, corners: None };
        assert!(matches!(Curved::new(2, 2, &short), Err(Error::Shape { values: 2, .. })));
        // One place is missing: all other cells are drawn.
        let (mut lon, lat) = regular(&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0]);
        lon[4] = f64::NAN;
        let curved = Curved::new(3, 3, &Positions { lon: &lon, lat: &lat, corners: None }).unwrap();
        let pixels = curved.pixels(&middles(-0.5, 2.5, 30), &middles(2.5, -0.5, 30));
        let mut seen: Vec<u32> = pixels.into_iter().filter(|pixel| *pixel != NOTHING).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8]);
    }
}
