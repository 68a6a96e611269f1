//! Maps: numbers on a grid as colours, with a colour bar.

use crate::axis::{Axis, AxisKind, half_unit};
use crate::colour::{Colour, Palette};
use crate::error::{Error, Result};
use crate::frame::{self, Ranged, SUBTITLE, TICK};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Raster, Rect, Scene};
use crate::text;

/// Numbers on a grid.
#[derive(Clone, Debug)]
pub struct MapField<'a> {
    /// Cells along x.
    pub columns: usize,
    /// Cells along y.
    pub rows: usize,
    /// Row after row, `columns` numbers each; one that is not finite is missing.
    pub values: &'a [f64],
    /// The horizontal axis; its spacing is linear.
    pub x: Axis,
    /// Where the middles of the columns are, rising or falling; 0, 1, 2 … by default.
    pub x_centres: Option<&'a [f64]>,
    /// The vertical axis; its spacing is linear.
    pub y: Axis,
    /// Where the middles of the rows are, rising or falling; 0, 1, 2 … by default.
    pub y_centres: Option<&'a [f64]>,
}

/// How a map looks.
#[derive(Clone, Debug)]
pub struct MapOptions {
    /// In large letters at the top.
    pub title: String,
    /// Below it.
    pub subtitle: String,
    /// Beside the colour bar: what the numbers are, and in what unit.
    pub unit: String,
    /// The colours. Diverging ones have their middle at zero.
    pub palette: Palette,
    /// What the ends of the colour bar stand for; by default the least and the greatest value.
    pub range: Option<(f64, f64)>,
    /// Pixels; the height follows from the field.
    pub width: u32,
}

impl Default for MapOptions {
    fn default() -> MapOptions {
        MapOptions {
            title: String::new(),
            subtitle: String::new(),
            unit: String::new(),
            palette: Palette::Sequential,
            range: None,
            width: 1200,
        }
    }
}

/// How many colours of the raster stand for numbers. One more stands for missing numbers.
const LEVELS: u8 = 255;
const MISSING: u8 = LEVELS;

const BAR_WIDTH: f64 = 26.0;
const BAR_GAP: f64 = 26.0;
/// Shapes of maps: width by height, at least and at most.
const ASPECTS: (f64, f64) = (0.5, 3.2);
/// Of maps whose axes cannot be compared with each other.
const PLAIN_ASPECT: f64 = 1.7;
/// No map is higher than this part of its width.
const MOST_HEIGHT: f64 = 0.8;

/// Draws a field as a map. Each cell is as large as the half-way lines to its neighbours make it.
///
/// # Errors
/// [`Error::Shape`], [`Error::Coordinates`], [`Error::NotMonotonic`] for a field that is none,
/// [`Error::Empty`] for one without cells, [`Error::Width`].
pub fn map(field: &MapField<'_>, options: &MapOptions) -> Result<Chart> {
    check_width(options.width)?;
    if field.columns.checked_mul(field.rows) != Some(field.values.len()) {
        let (columns, rows, values) = (field.columns, field.rows, field.values.len());
        return Err(Error::Shape { columns, rows, values });
    }
    if field.values.is_empty() {
        return Err(Error::Empty);
    }
    let x_edges = CellEdges::new(&field.x, field.columns, field.x_centres)?;
    let y_edges = CellEdges::new(&field.y, field.rows, field.y_centres)?;
    let (x, y) = (x_edges.ranged(&field.x), y_edges.ranged(&field.y));
    let colours = Colours::new(field.values, options);

    // The bar's labels depend on its height, and the width of the map depends on the labels.
    let bar_axis = Axis::new(options.unit.clone(), AxisKind::Number);
    let bar = Ranged { axis: &bar_axis, low: colours.low, high: colours.high };
    let width = f64::from(options.width);
    let mut scene = Scene::new(options.width, 0);
    let top = frame::titles(&mut scene, &options.title, &options.subtitle);
    let aspect = aspect(&x, &y, field);
    let mut size = (width * 0.8, width * 0.8 / aspect);
    let mut left = 0.0;
    for _ in 0..3 {
        let y_ticks = y.ticks_of_height(size.1);
        left = frame::MARGIN + frame::left_room(&y_ticks, &y.axis.full_title(&y_ticks));
        let bar_ticks = bar.ticks_of_height(size.1);
        let right = BAR_GAP + BAR_WIDTH + right_room(&bar_ticks, &bar_axis) + frame::MARGIN;
        size.0 = width - left - right;
        size.1 = (size.0 / aspect).min(width * MOST_HEIGHT);
        size.0 = size.0.min(size.1 * aspect);
    }
    let rect = Rect {
        x0: left.round(),
        y0: top.round(),
        x1: (left + size.0).round(),
        y1: (top + size.1).round(),
    };
    let x_ticks = x.ticks_of_width(rect.width());
    let y_ticks = y.ticks_of_height(rect.height());
    let below = frame::lower_room(&x.axis.full_title(&x_ticks));
    // A whole number of pixels, within what `check_width` lets through.
    scene.height = (rect.y1 + below + frame::MARGIN).ceil() as u32;

    let cells = Cells { field, x: &x, y: &y, x_edges: &x_edges, y_edges: &y_edges };
    cells.draw(&mut scene, rect, &colours);
    frame::axes(&mut scene, rect, (&x, &x_ticks), (&y, &y_ticks));
    draw_bar(&mut scene, rect, &bar, &colours);
    if colours.any_missing {
        draw_missing(&mut scene, rect, below);
    }
    Ok(Chart { scene })
}

/// Width by height of the map's own rectangle.
fn aspect(x: &Ranged<'_>, y: &Ranged<'_>, field: &MapField<'_>) -> f64 {
    let degrees = |axis: &Axis| matches!(axis.kind, AxisKind::Longitude | AxisKind::Latitude);
    let aspect = match (degrees(x.axis), degrees(y.axis)) {
        (true, true) => (x.high - x.low) / (y.high - y.low),
        _ if field.x_centres.is_none() && field.y_centres.is_none() => {
            field.columns as f64 / field.rows as f64
        }
        _ => PLAIN_ASPECT,
    };
    aspect.clamp(ASPECTS.0, ASPECTS.1)
}

/// Where cells end, in the order of the cells.
struct CellEdges(Vec<f64>);

impl CellEdges {
    fn new(axis: &Axis, n_cells: usize, centres: Option<&[f64]>) -> Result<CellEdges> {
        let Some(centres) = centres else {
            return Ok(CellEdges((0..=n_cells).map(|i| i as f64 - 0.5).collect()));
        };
        let name = || match axis.title.as_str() {
            "" => "an axis".to_owned(),
            title => title.to_owned(),
        };
        if centres.len() != n_cells {
            let coordinates = centres.len();
            return Err(Error::Coordinates { axis: name(), cells: n_cells, coordinates });
        }
        let one_way = centres.windows(2).all(|pair| pair[0] < pair[1])
            || centres.windows(2).all(|pair| pair[0] > pair[1]);
        if !one_way || centres.iter().any(|centre| !centre.is_finite()) {
            return Err(Error::NotMonotonic { axis: name() });
        }
        let [first, .., last] = centres else {
            let (only, half) = (centres[0], axis.half_unit(centres[0]));
            return Ok(CellEdges(vec![only - half, only + half]));
        };
        let middles = centres.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let mut edges = Vec::with_capacity(n_cells + 1);
        edges.push(first - (centres[1] - first) / 2.0);
        edges.extend(middles);
        edges.push(last + (last - centres[n_cells - 2]) / 2.0);
        if axis.kind == AxisKind::Latitude {
            // Cells at the poles end there.
            for edge in &mut edges {
                *edge = edge.clamp(-90.0, 90.0);
            }
        }
        Ok(CellEdges(edges))
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

/// Which colour stands for a number.
pub(crate) struct Colours {
    pub(crate) palette: Palette,
    pub(crate) low: f64,
    pub(crate) high: f64,
    any_missing: bool,
}

impl Colours {
    pub(crate) fn new(values: &[f64], options: &MapOptions) -> Colours {
        let valid = values.iter().copied().filter(|value| value.is_finite());
        let found = valid.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (mut low, mut high) = options.range.unwrap_or(found);
        if !(low.is_finite() && high.is_finite()) {
            (low, high) = (0.0, 1.0);
        }
        if options.palette == Palette::Diverging && options.range.is_none() {
            high = low.abs().max(high.abs());
            low = -high;
        }
        if low >= high {
            let half = half_unit(low);
            (low, high) = (low - half, low + half);
        }
        let any_missing = values.iter().any(|value| !value.is_finite());
        Colours { palette: options.palette, low, high, any_missing }
    }

    fn index(&self, value: f64) -> u8 {
        match self.share(value) {
            Some(share) => (share * f64::from(LEVELS - 1)).round() as u8,
            None => MISSING,
        }
    }

    /// How far from the lowest to the highest number; `None` where there is none.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        // The numbers are halved, because the difference of huge numbers may be infinite.
        let share = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        value.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// The colour of a number.
    pub(crate) fn colour(&self, value: f64) -> Colour {
        self.share(value).map_or(Colour::MISSING, |share| self.palette.at(share))
    }

    fn table(&self) -> Vec<[u8; 4]> {
        let shares = (0..LEVELS).map(|i| f64::from(i) / f64::from(LEVELS - 1));
        let colours = shares.map(|share| self.palette.at(share));
        colours.chain([Colour::MISSING]).map(|Colour(r, g, b)| [r, g, b, 255]).collect()
    }
}

/// The cells of a map.
struct Cells<'a> {
    field: &'a MapField<'a>,
    x: &'a Ranged<'a>,
    y: &'a Ranged<'a>,
    x_edges: &'a CellEdges,
    y_edges: &'a CellEdges,
}

impl Cells<'_> {
    fn draw(&self, scene: &mut Scene, rect: Rect, colours: &Colours) {
        // Whole pixels by construction.
        let (width, height) = (rect.width() as u32, rect.height() as u32);
        let middle = |pixel: u32, of: u32| (f64::from(pixel) + 0.5) / f64::from(of);
        let columns: Vec<usize> =
            (0..width).map(|column| self.x_edges.cell(self.x.at(middle(column, width)))).collect();
        let mut pixels = Vec::with_capacity(width as usize * height as usize);
        for line in 0..height {
            let row = self.y_edges.cell(self.y.at(1.0 - middle(line, height)));
            let values = &self.field.values[row * self.field.columns..][..self.field.columns];
            pixels.extend(columns.iter().map(|&column| colours.index(values[column])));
        }
        let at = (rect.x0 as u32, rect.y0 as u32);
        let palette = colours.table();
        scene.shapes.push(crate::scene::SceneShape::Raster(Raster {
            at,
            width,
            height,
            palette,
            pixels,
        }));
    }
}

/// Room right of the colour bar.
fn right_room(ticks: &crate::axis::Ticks, axis: &Axis) -> f64 {
    let title = if axis.full_title(ticks).is_empty() { 0.0 } else { frame::AXIS + 12.0 };
    12.0 + frame::widest(ticks) + title
}

fn draw_bar(scene: &mut Scene, map: Rect, bar: &Ranged<'_>, colours: &Colours) {
    let x0 = (map.x1 + BAR_GAP).round();
    let rect = Rect { x0, y0: map.y0, x1: x0 + BAR_WIDTH, y1: map.y1 };
    let (width, height) = (BAR_WIDTH as u32, rect.height() as u32);
    let rows = (0..height).map(|row| 1.0 - (f64::from(row) + 0.5) / f64::from(height));
    let pixels = rows.flat_map(|share| {
        let index = (share * f64::from(LEVELS - 1)).round() as u8;
        std::iter::repeat_n(index, width as usize)
    });
    let at = (rect.x0 as u32, rect.y0 as u32);
    let (palette, pixels) = (colours.table(), pixels.collect());
    scene.shapes.push(crate::scene::SceneShape::Raster(Raster {
        at,
        width,
        height,
        palette,
        pixels,
    }));
    scene.outline(rect, Colour::INK);
    let ticks = bar.ticks_of_height(rect.height());
    for (number, label) in &ticks.at {
        let y = rect.y1 - bar.share(*number) * rect.height();
        scene.horizontal(y, rect.x1, rect.x1 + 6.0, Colour::INK);
        let at = (rect.x1 + 11.0, y + text::cap_height(TICK) / 2.0);
        scene.label(label, at, TICK, Colour::INK, Anchor::Start);
    }
    let title = bar.axis.full_title(&ticks);
    if !title.is_empty() {
        let baseline = rect.x1 + 12.0 + frame::widest(&ticks) + frame::AXIS + 8.0;
        let title = text::cut(&title, frame::AXIS, rect.height());
        let middle = f64::midpoint(rect.y0, rect.y1);
        scene.label_upwards(title, (baseline, middle), frame::AXIS, Colour::INK);
    }
}

/// A grey square and what it means, below the colour bar.
fn draw_missing(scene: &mut Scene, map: Rect, below: f64) {
    let side = 16.0;
    let word = "missing";
    let y1 = (map.y1 + below).round();
    let x0 = (map.x1 + BAR_GAP).round();
    let rect = Rect { x0, y0: y1 - side, x1: x0 + side, y1 };
    scene.fill(rect, Colour::MISSING);
    scene.outline(rect, Colour::INK);
    let room = f64::from(scene.width) - rect.x1 - 8.0;
    let word = text::cut(word, SUBTITLE - 2.0, room);
    scene.label(word, (rect.x1 + 7.0, y1 - 2.0), SUBTITLE - 2.0, Colour::INK, Anchor::Start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    const NONE: f64 = f64::NAN;

    fn field<'a>(values: &'a [f64], x: &'a [f64], y: &'a [f64]) -> MapField<'a> {
        MapField {
            columns: x.len(),
            rows: y.len(),
            values,
            x: Axis::new("longitude", AxisKind::Longitude),
            x_centres: Some(x),
            y: Axis::new("latitude", AxisKind::Latitude),
            y_centres: Some(y),
        }
    }

    fn options() -> MapOptions {
        MapOptions {
            title: "temperature at the surface".to_owned(),
            subtitle: "time = 3 days since 1995-01-01".to_owned(),
            unit: "temperature (K)".to_owned(),
            ..MapOptions::default()
        }
    }

    /// Pixels of a PNG, and how many are in a row.
    fn pixels(bytes: &[u8]) -> (Vec<Colour>, usize) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut buffer).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb);
        let colours = buffer.chunks_exact(3).map(|p| Colour(p[0], p[1], p[2])).collect();
        (colours, info.width as usize)
    }

    /// The place of the map within the picture.
    fn place(chart: &Chart) -> (usize, usize, usize, usize) {
        let raster = chart.scene.shapes.iter().find_map(|shape| match shape {
            crate::scene::SceneShape::Raster(raster) => Some(raster),
            _ => None,
        });
        let r = raster.unwrap();
        (r.at.0 as usize, r.at.1 as usize, r.width as usize, r.height as usize)
    }

    /// Each value's colour is where its coordinates say, also where these fall.
    #[test]
    fn values_are_in_their_places() {
        let rising = [-45.0, 45.0];
        let falling = [45.0, -45.0];
        for (y, values) in [
            (rising, [0.0, 50.0, NONE, 100.0, 25.0, 75.0]),
            (falling, [100.0, 25.0, 75.0, 0.0, 50.0, NONE]),
        ] {
            let chart = map(&field(&values, &[60.0, 180.0, 300.0], &y), &options()).unwrap();
            let (x0, y0, width, height) = place(&chart);
            // Twice as wide as high, as degrees are.
            assert!(width.abs_diff(2 * height) < 3, "{width} x {height}");
            let (colours, row) = pixels(&chart.encode(Format::Png).unwrap());
            let at = |x: usize, y: usize| colours[(y0 + y * height / 4) * row + x0 + x * width / 6];
            for (x, y, share) in [
                (1, 3, Some(0.0)),
                (3, 3, Some(0.5)),
                (5, 3, None),
                (1, 1, Some(1.0)),
                (3, 1, Some(0.25)),
            ] {
                let want = share.map_or(Colour::MISSING, |share| Palette::Sequential.at(share));
                assert_eq!(at(x, y), want, "{x} {y}");
            }
            // The frame is sharp: one row of pixels of its colour.
            let frame: Vec<Colour> =
                (0..4).map(|i| colours[(y0 - 2 + i) * row + x0 + width / 4]).collect();
            assert!(frame.contains(&Colour::INK), "{frame:?}");
        }
    }

    /// Cells are as large as their coordinates are apart.
    #[test]
    fn unequal_cells() {
        let chart = map(&field(&[0.0, 1.0, 2.0], &[0.0, 10.0, 40.0], &[0.0]), &options()).unwrap();
        let (x0, y0, width, height) = place(&chart);
        let (colours, row) = pixels(&chart.encode(Format::Png).unwrap());
        let line = &colours[(y0 + height / 2) * row + x0..][..width];
        // Edges at -5, 5, 25, 55: shares 10, 20, 30 of 60.
        let first = line.iter().filter(|colour| **colour == Palette::Sequential.at(0.0)).count();
        let last = line.iter().filter(|colour| **colour == Palette::Sequential.at(1.0)).count();
        assert!(first.abs_diff(width / 6) <= 2, "{first} of {width}");
        assert!(last.abs_diff(width / 2) <= 2, "{last} of {width}");
    }

    #[test]
    fn diverging_is_white_at_zero() {
        let options = MapOptions { palette: Palette::Diverging, ..options() };
        let colours = Colours::new(&[-1.0, 0.0, 4.0], &options);
        let table = colours.table();
        assert_eq!(table[usize::from(colours.index(0.0))][..3], [0xf7, 0xf7, 0xf7]);
        assert_eq!(table[usize::from(colours.index(4.0))][..3], [0x67, 0x00, 0x1f]);
        assert_eq!((colours.low, colours.high), (-4.0, 4.0));
    }

    #[test]
    fn labels_stand_apart() {
        let lon: Vec<f64> = (0..96).map(|i| f64::from(i) * 3.75).collect();
        let lat: Vec<f64> = (0..48).map(|i| f64::from(i) * 3.75 - 88.125).collect();
        let mut values: Vec<f64> = (0..96 * 48).map(f64::from).collect();
        values[7] = NONE;
        for factor in [1e-12, 1.0, 1e30] {
            let values: Vec<f64> = values.iter().map(|value| value * factor).collect();
            for width in [480, 1200] {
                let options = MapOptions { width, ..options() };
                for (x, y) in [(&lon[..], &lat[..]), (&lon[..48], &lat[..4]), (&lon[..2], &lat[..])]
                {
                    let values = &values[..x.len() * y.len()];
                    let chart = map(&field(values, x, y), &options).unwrap();
                    chart.scene.assert_legible();
                    assert!(f64::from(chart.scene.height) < f64::from(width) * MOST_HEIGHT + 180.0);
                }
            }
        }
    }

    #[test]
    fn odd_fields() {
        for values in [[NONE; 4], [3.0; 4], [f64::MAX, f64::MIN, 0.0, f64::INFINITY], [0.0; 4]] {
            let options = MapOptions { width: 480, ..options() };
            let chart = map(&field(&values, &[0.0, 1.0], &[0.0, 1.0]), &options).unwrap();
            chart.encode(Format::Png).unwrap();
            chart.encode(Format::Svg).unwrap();
        }
        let four = [0.0; 4];
        assert!(matches!(
            map(&field(&four, &[0.0, 1.0], &[0.0]), &options()),
            Err(Error::Shape { columns: 2, rows: 1, values: 4 })
        ));
        for centres in [[0.0, 0.0], [0.0, NONE]] {
            let error = map(&field(&four, &[0.0, 1.0], &centres), &options()).unwrap_err();
            assert!(
                matches!(&error, Error::NotMonotonic { axis } if axis == "latitude"),
                "{error}"
            );
        }
        let short = MapField { x_centres: Some(&[1.0]), ..field(&four, &[0.0, 1.0], &[0.0, 1.0]) };
        assert!(matches!(map(&short, &options()), Err(Error::Coordinates { cells: 2, .. })));
        assert!(matches!(map(&field(&[], &[], &[]), &options()), Err(Error::Empty)));
        let narrow = MapOptions { width: 100, ..options() };
        assert!(matches!(
            map(&field(&four, &[0.0, 1.0], &[0.0, 1.0]), &narrow),
            Err(Error::Width { width: 100, .. })
        ));
    }
}
