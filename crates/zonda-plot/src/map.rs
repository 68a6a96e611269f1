//! Maps: numbers on a grid as colours, with a colour bar.

use crate::axis::{Axis, AxisKind, half_unit};
use crate::cells::{Cells, NOTHING};
use crate::coast;
use crate::colour::{Colour, Palette};
use crate::curved::Positions;
use crate::error::{Error, Result};
use crate::frame::{self, Ranged, SUBTITLE, TICK};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Raster, Rect, Scene, SceneShape};
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
    /// The horizontal axis. On a logarithmic one, the middles are above zero.
    pub x: Axis,
    /// Where the middles of the columns are, rising or falling; 0, 1, 2 … by default.
    pub x_centres: Option<&'a [f64]>,
    /// The vertical axis.
    pub y: Axis,
    /// Where the middles of the rows are, rising or falling; 0, 1, 2 … by default.
    pub y_centres: Option<&'a [f64]>,
    /// Where the columns end, one more than columns; half-way between the middles by default.
    pub x_edges: Option<&'a [f64]>,
    /// Where the rows end.
    pub y_edges: Option<&'a [f64]>,
    /// Where the cells of a curvilinear grid are, instead of `x_centres` and `y_centres`; x is longitude then, and y latitude.
    pub positions: Option<Positions<'a>>,
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
    /// Whether both axes are in one unit, so that a step along one is as long as along the other.
    pub is_plane: bool,
    /// Whether coastlines are drawn where the axes are longitude and latitude.
    pub has_coasts: bool,
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
            is_plane: false,
            has_coasts: true,
            width: 1200,
        }
    }
}

/// How many colours of the raster stand for numbers; an odd number, so that there is one in the middle. One more stands for missing numbers, and one for places without cells.
const LEVELS: u8 = 253;
const MISSING: u8 = LEVELS;
const BARE: u8 = LEVELS + 1;

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
/// [`Error::Shape`], [`Error::Coordinates`], [`Error::NotMonotonic`], [`Error::NoLogarithm`] for a field that is none,
/// [`Error::Empty`] for one without cells, [`Error::Width`].
///
/// [`Error::Shape`]: crate::Error::Shape
/// [`Error::Coordinates`]: crate::Error::Coordinates
/// [`Error::NotMonotonic`]: crate::Error::NotMonotonic
/// [`Error::NoLogarithm`]: crate::Error::NoLogarithm
/// [`Error::Empty`]: crate::Error::Empty
/// [`Error::Width`]: crate::Error::Width
pub fn map(field: &MapField<'_>, options: &MapOptions) -> Result<Chart> {
    maps(&[MapPanel { title: String::new(), field: field.clone() }], options)
}

/// One of several maps.
#[derive(Clone, Debug)]
pub struct MapPanel<'a> {
    /// Above it; where it differs from the others.
    pub title: String,
    /// Its numbers.
    pub field: MapField<'a>,
}

/// Room that a panel takes at least, in pixels.
const LEAST_PANEL: f64 = 380.0;
const BETWEEN_PANELS: f64 = 24.0;

/// Draws fields as maps side by side, with the same colours for the same numbers in all of them, and one colour bar.
///
/// # Errors
/// Those of [`map`]; [`Error::Empty`] without panels.
///
/// [`Error::Empty`]: crate::Error::Empty
pub fn maps(panels: &[MapPanel<'_>], options: &MapOptions) -> Result<Chart> {
    check_width(options.width)?;
    let each = panels.iter().map(|panel| PreparedMap::new(panel, options));
    let each = each.collect::<Result<Vec<_>>>()?;
    if each.is_empty() {
        return Err(Error::Empty);
    }
    let colours = Colours::new(panels.iter().flat_map(|panel| panel.field.values), options);

    let bar_axis = Axis::new(options.unit.clone(), AxisKind::Number);
    let bar = Ranged { axis: &bar_axis, low: colours.low, high: colours.high };
    let width = f64::from(options.width);
    let mut scene = Scene::new(options.width, 0);
    let top = frame::titles(&mut scene, &options.title, &options.subtitle);
    let columns = (((width - 120.0) / LEAST_PANEL) as usize).clamp(1, each.len());
    // As many in each row as the number of rows asks for: four are two rows of two.
    let columns = each.len().div_ceil(each.len().div_ceil(columns));

    // The bar's labels depend on its height, and the width of the maps depends on the labels.
    let mut right = BAR_GAP + BAR_WIDTH + frame::MARGIN;
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let gaps = BETWEEN_PANELS * (columns - 1) as f64;
        let room = (width - frame::MARGIN - right - gaps) / columns as f64;
        sizes = each.iter().map(|map| map.size(room, width * MOST_HEIGHT)).collect();
        let bar_ticks = bar.ticks_of_height(sizes.first().map_or(0.0, |size| size.height));
        right = BAR_GAP + BAR_WIDTH + right_room(&bar_ticks, &bar_axis) + frame::MARGIN;
    }
    let (mut y, mut last, mut below) = (top, 0.0_f64, 0.0);
    // What all maps are in, which the bar is as high as.
    let mut around: Option<Rect> = None;
    let widest = sizes.iter().map(|size| size.left + size.width).fold(0.0, f64::max);
    for (row, sizes) in each.chunks(columns).zip(sizes.chunks(columns)) {
        let mut x = frame::MARGIN;
        let titles = if row.iter().any(|map| !map.title.is_empty()) { SUBTITLE * 1.5 } else { 0.0 };
        let mut lowest = y;
        for (map, size) in row.iter().zip(sizes) {
            let rect = Rect {
                x0: (x + size.left).round(),
                y0: (y + titles).round(),
                x1: (x + size.left + size.width).round(),
                y1: (y + titles + size.height).round(),
            };
            below = map.draw(&mut scene, rect, &colours, options);
            lowest = lowest.max(rect.y1 + below);
            x += widest + BETWEEN_PANELS;
            let all = around.get_or_insert(rect);
            (all.x1, all.y1) = (all.x1.max(rect.x1), all.y1.max(rect.y1));
        }
        last = lowest;
        y = lowest + BETWEEN_PANELS;
    }
    // A whole number of pixels, within what `check_width` lets through.
    scene.height = (last + frame::MARGIN).ceil() as u32;
    if let Some(rect) = around {
        draw_bar(&mut scene, rect, &bar, &colours);
        if colours.any_missing {
            draw_missing(&mut scene, rect, below);
        }
    }
    Ok(Chart { scene })
}

/// A map whose cells are known, and what it takes around it.
struct PreparedMap<'a> {
    title: &'a str,
    field: &'a MapField<'a>,
    cells: Cells,
    x: Ranged<'a>,
    y: Ranged<'a>,
    aspect: f64,
}

/// Pixels of a map's own rectangle, and left of it.
struct MapSize {
    left: f64,
    width: f64,
    height: f64,
}

impl<'a> PreparedMap<'a> {
    fn new(panel: &'a MapPanel<'a>, options: &MapOptions) -> Result<PreparedMap<'a>> {
        let field = &panel.field;
        let cells = Cells::new(field)?;
        let (x, y) = cells.ranged(field);
        let aspect = aspect(&x, &y, field, options.is_plane);
        Ok(PreparedMap { title: &panel.title, field, cells, x, y, aspect })
    }

    /// The size in a room that is so wide, labels included.
    fn size(&self, room: f64, most_height: f64) -> MapSize {
        let mut size = MapSize { left: 0.0, width: room, height: room / self.aspect };
        // The labels depend on the height, and the width depends on the labels.
        for _ in 0..3 {
            let ticks = self.y.ticks_of_height(size.height);
            size.left = frame::left_room(&ticks, &self.y.axis.full_title(&ticks));
            size.width = room - size.left;
            size.height = (size.width / self.aspect).min(most_height);
            size.width = size.width.min(size.height * self.aspect);
        }
        size
    }

    /// Draws it, and returns the room that its axis takes below.
    fn draw(&self, scene: &mut Scene, rect: Rect, colours: &Colours, options: &MapOptions) -> f64 {
        let (x, y) = (&self.x, &self.y);
        let x_ticks = x.ticks_of_width(rect.width());
        let y_ticks = y.ticks_of_height(rect.height());
        draw_cells(scene, rect, (x, y), (&self.cells, self.field.values), colours);
        if options.has_coasts && is_globe(x, y) {
            coast::draw(scene, rect, x, y);
        }
        frame::axes(scene, rect, (x, &x_ticks), (y, &y_ticks));
        if !self.title.is_empty() {
            let title = text::cut(self.title, SUBTITLE, rect.width());
            scene.label(title, (rect.x0, rect.y0 - 8.0), SUBTITLE, Colour::INK, Anchor::Start);
        }
        frame::lower_room(&x.axis.full_title(&x_ticks))
    }
}

/// Whether axes are longitude and latitude.
fn is_globe(x: &Ranged<'_>, y: &Ranged<'_>) -> bool {
    (x.axis.kind, y.axis.kind) == (AxisKind::Longitude, AxisKind::Latitude)
}

/// Width by height of the map's own rectangle.
pub(crate) fn aspect(x: &Ranged<'_>, y: &Ranged<'_>, field: &MapField<'_>, is_plane: bool) -> f64 {
    let degrees = |axis: &Axis| matches!(axis.kind, AxisKind::Longitude | AxisKind::Latitude);
    let aspect = match (degrees(x.axis), degrees(y.axis)) {
        (true, true) => {
            // Degrees of longitude get shorter to the poles. A map of more than half of the globe has no latitude that all
            // of it is at.
            let is_part = x.high - x.low <= 180.0 && is_globe(x, y);
            let middle = f64::midpoint(y.low, y.high).to_radians();
            let length = if is_part { middle.cos().max(0.3) } else { 1.0 };
            (x.high - x.low) * length / (y.high - y.low)
        }
        _ if is_plane => (x.high - x.low) / (y.high - y.low),
        _ if (x.axis.kind, y.axis.kind) == (AxisKind::Index, AxisKind::Index) => {
            (x.high - x.low) / (y.high - y.low)
        }
        _ if field.x_centres.is_none() && field.y_centres.is_none() => {
            field.columns as f64 / field.rows as f64
        }
        _ => PLAIN_ASPECT,
    };
    aspect.clamp(ASPECTS.0, ASPECTS.1)
}

/// Which colour stands for a number.
pub(crate) struct Colours {
    pub(crate) palette: Palette,
    pub(crate) low: f64,
    pub(crate) high: f64,
    any_missing: bool,
}

impl Colours {
    pub(crate) fn new<'v>(
        values: impl Iterator<Item = &'v f64> + Clone,
        options: &MapOptions,
    ) -> Colours {
        let valid = values.clone().copied().filter(|value| value.is_finite());
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
        let any_missing = values.into_iter().any(|value| !value.is_finite());
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
        colours
            .chain([Colour::MISSING, Colour::PAPER])
            .map(|Colour(r, g, b)| [r, g, b, 255])
            .collect()
    }
}

/// Draws the cells.
fn draw_cells(
    scene: &mut Scene,
    rect: Rect,
    (x, y): (&Ranged<'_>, &Ranged<'_>),
    (cells, values): (&Cells, &[f64]),
    colours: &Colours,
) {
    // Whole pixels by construction.
    let (width, height) = (rect.width() as u32, rect.height() as u32);
    let shown = cells.pixels(x, y, width as usize, height as usize);
    let colour = |cell: u32| match cell {
        NOTHING => BARE,
        cell => colours.index(values[cell as usize]),
    };
    scene.shapes.push(SceneShape::Raster(Raster {
        at: (rect.x0 as u32, rect.y0 as u32),
        width,
        height,
        palette: colours.table(),
        pixels: shown.into_iter().map(colour).collect(),
    }));
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
    scene.shapes.push(SceneShape::Raster(Raster { at, width, height, palette, pixels }));
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
        let title = text::cut_title(&title, frame::AXIS, rect.height());
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
            x_edges: None,
            y_edges: None,
            positions: None,
        }
    }

    fn options() -> MapOptions {
        MapOptions {
            title: "temperature at the surface".to_owned(),
            subtitle: "time = 3 days since 1995-01-01".to_owned(),
            unit: "temperature (K)".to_owned(),
            has_coasts: false,
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

    /// Coastlines lie over a map of the globe, and nowhere else.
    #[test]
    fn coasts_where_the_globe_is() {
        let paths = |chart: &Chart| {
            let is_path = |shape: &&SceneShape| matches!(shape, SceneShape::Path { .. });
            chart.scene.shapes.iter().filter(is_path).count()
        };
        let options = MapOptions { has_coasts: true, ..options() };
        let globe = field(&[1.0, 2.0, 3.0, 4.0], &[90.0, 270.0], &[-45.0, 45.0]);
        assert!(paths(&map(&globe, &options).unwrap()) > 100);
        let none = MapOptions { has_coasts: false, ..options.clone() };
        assert_eq!(paths(&map(&globe, &none).unwrap()), 0);
        let section = MapField { y: Axis::new("pressure", AxisKind::Number), ..globe };
        assert_eq!(paths(&map(&section, &options).unwrap()), 0);
    }

    /// Panels have the same colours for the same numbers, one bar, and stand apart.
    #[test]
    fn panels_side_by_side() {
        let all = [[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 100.0], [NONE; 4], [5.0; 4], [6.0; 4]];
        let panels: Vec<MapPanel<'_>> = all
            .iter()
            .enumerate()
            .map(|(number, values)| MapPanel {
                title: format!("time = 2004-0{number}-01"),
                field: field(values, &[90.0, 270.0], &[-45.0, 45.0]),
            })
            .collect();
        for (n, width, rows) in
            [(1, 480, 1), (2, 1200, 1), (4, 1200, 2), (5, 1200, 3), (5, 480, 5), (3, 1400, 1)]
        {
            let options = MapOptions { width, ..options() };
            let chart = maps(&panels[..n], &options).unwrap();
            chart.scene.assert_legible();
            let rasters: Vec<&Raster> = chart
                .scene
                .shapes
                .iter()
                .filter_map(|shape| match shape {
                    SceneShape::Raster(raster) => Some(raster),
                    _ => None,
                })
                .collect();
            assert_eq!(rasters.len(), n + 1, "one bar");
            let mut tops: Vec<u32> = rasters[..n].iter().map(|raster| raster.at.1).collect();
            tops.dedup();
            assert_eq!(tops.len(), rows, "{n} in {width}");
            if n >= 2 {
                // 3 in the first panel, 2 and 3 in the second: one colour for both threes.
                let (first, second) = (rasters[0], rasters[1]);
                let corner = |of: &Raster| of.pixels[of.width as usize - 1];
                let lower_right = |of: &Raster| of.pixels[of.pixels.len() - 1];
                assert_eq!(corner(first), lower_right(second));
                assert_ne!(corner(first), corner(second));
            }
        }
        assert!(matches!(maps(&[], &options()), Err(Error::Empty)));
    }

    /// A grid that is turned by 45 degrees has its corners on the axes, and nothing beside them.
    #[test]
    fn a_turned_grid_in_its_places() {
        let lon = [0.0, 10.0, -10.0, 0.0];
        let lat = [-10.0, 0.0, 0.0, 10.0];
        let values = [0.0, NONE, 50.0, 100.0];
        let positions = Some(Positions { lon: &lon, lat: &lat, corners: None });
        let turned = MapField { positions, ..field(&values, &[0.0, 1.0], &[0.0, 1.0]) };
        let chart = map(&turned, &options()).unwrap();
        let (x0, y0, width, height) = place(&chart);
        assert!(width.abs_diff(height) < height / 20, "{width} x {height}");
        let (colours, row) = pixels(&chart.encode(Format::Png).unwrap());
        let at = |x: usize, y: usize| colours[(y0 + y * height / 8) * row + x0 + x * width / 8];
        let share = |share| Palette::Sequential.at(share);
        assert_eq!(
            (at(4, 6), at(6, 4), at(2, 4), at(4, 2)),
            (share(0.0), Colour::MISSING, share(0.5), share(1.0))
        );
        for (x, y) in [(1, 1), (7, 1), (1, 7), (7, 7)] {
            assert_eq!(at(x, y), Colour::PAPER, "{x} {y}");
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

    /// Where edges are known, middles are not asked.
    #[test]
    fn cells_with_edges() {
        let values = [0.0, 1.0];
        let edges = [0.0, 30.0, 40.0];
        let field = MapField { x_edges: Some(&edges), ..field(&values, &[10.0, 35.0], &[0.0]) };
        let chart = map(&field, &options()).unwrap();
        let (x0, y0, width, height) = place(&chart);
        let (colours, row) = pixels(&chart.encode(Format::Png).unwrap());
        let line = &colours[(y0 + height / 2) * row + x0..][..width];
        let first = line.iter().filter(|colour| **colour == Palette::Sequential.at(0.0)).count();
        assert!(first.abs_diff(width * 3 / 4) <= 2, "{first} of {width}");
        // No edge is beyond a pole.
        let (values, beyond) = ([0.0, 1.0], [-120.0, 0.0, 90.0]);
        let poles = MapField {
            columns: 1,
            rows: 2,
            x_centres: Some(&[0.0]),
            y_centres: Some(&[-45.0, 45.0]),
            y_edges: Some(&beyond),
            x_edges: None,
            values: &values,
            ..field.clone()
        };
        let texts = map(&poles, &options()).unwrap().scene;
        assert!(!texts.labels().iter().any(|label| label.text.starts_with("120")));
        for wrong in [&[0.0, 30.0][..], &[0.0, 30.0, 20.0]] {
            let field = MapField { x_edges: Some(wrong), ..field.clone() };
            let refused = map(&field, &options());
            let is_right =
                matches!(refused, Err(Error::Coordinates { .. } | Error::NotMonotonic { .. }));
            assert!(is_right, "{wrong:?}");
        }
    }

    #[test]
    fn diverging_is_white_at_zero() {
        let options = MapOptions { palette: Palette::Diverging, ..options() };
        let colours = Colours::new([-1.0, 0.0, 4.0].iter(), &options);
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
