//! Charts as text, for terminals: a map in half blocks of colour, a line in blocks of eighths.

use crate::axis::{Axis, AxisKind, Ticks};
use crate::cells::{Cells, NOTHING};
use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::frame::Ranged;
use crate::map::{Colours, MapField, MapOptions, aspect};

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None: shades stand for numbers.
    None,
    /// The 256 of xterm.
    Indexed,
    /// All.
    True,
}

/// Columns and lines of text that a chart may have, and what the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns.
    pub columns: usize,
    /// Lines, without those of the axis and the bar below the chart.
    pub lines: usize,
    /// Colours.
    pub depth: Depth,
    /// Whether there are no other characters than those of ASCII.
    pub is_ascii: bool,
}

/// Along each direction, this many places of a cell of text are looked at and averaged.
const SAMPLES: usize = 4;
/// Numbers as shades, from low to high; a blank is a missing one.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
const ASCII_SHADES: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Heights of a column, in eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_EIGHTHS: [char; 9] = [' ', '.', '.', '.', ':', ':', ':', '#', '#'];
/// Letters of a column that stands for one value, at most.
const WIDEST_COLUMN: usize = 6;
/// Columns of the bar that says what colours mean.
const BAR: usize = 24;
/// Columns from one label of the horizontal axis to the next, about.
const LABEL_PITCH: usize = 16;
/// No chart is narrower; labels are left out before.
const LEAST_COLUMNS: usize = 8;

/// A map as lines of text with its axes, the last of them a bar that says which colour stands for which number. Each half of a cell of
/// text has the colour of the mean of what it covers.
///
/// # Errors
/// Those of [`map`](crate::map); [`Error::Empty`] for no columns or lines.
pub fn map_text(
    field: &MapField<'_>,
    options: &MapOptions,
    text: TextOptions,
) -> Result<Vec<String>> {
    let cells = Cells::new(field)?;
    if text.columns == 0 || text.lines == 0 {
        return Err(Error::Empty);
    }
    let (x, y) = cells.ranged(field);
    let colours = Colours::new(field.values.iter(), options);
    let aspect = aspect(&x, &y, field, options.is_plane);
    // Two pixels in a line of text where there are half blocks of colour.
    let per_line = if text.depth == Depth::None || text.is_ascii { 1 } else { 2 };
    let lines_of = |width: usize| {
        // A cell of text is about twice as high as it is wide.
        let lines = (width as f64 / aspect / 2.0).round() as usize;
        lines.clamp(2.min(text.lines), text.lines)
    };
    // Labels at the left depend on the height, the width on the labels.
    let mut labels = VerticalLabels::new(&y, lines_of(text.columns), text.is_ascii);
    let room = |labels: &VerticalLabels| text.columns.saturating_sub(labels.width);
    if room(&labels) < LEAST_COLUMNS {
        labels = VerticalLabels::default();
    }
    let lines = lines_of(room(&labels));
    if labels.width > 0 {
        labels = VerticalLabels::new(&y, lines, text.is_ascii);
    }
    let most = (lines as f64 * 2.0 * aspect).round() as usize;
    let width = room(&labels).min(most.max(LEAST_COLUMNS)).max(1);
    let height = lines * per_line;

    let shown = cells.pixels(&x, &y, width * SAMPLES, height * SAMPLES);
    let pixel = |line: usize, column: usize| {
        let rows = shown.chunks_exact(width * SAMPLES).skip(line * SAMPLES).take(SAMPLES);
        let found = rows.flat_map(|row| &row[column * SAMPLES..][..SAMPLES]);
        Pixel::mean(found.map(|cell| match *cell {
            NOTHING => None,
            cell => Some(field.values[cell as usize]),
        }))
    };
    let mut drawn = Vec::new();
    for (number, top) in (0..height).step_by(per_line).enumerate() {
        let mut line = Line::new(text);
        for column in 0..width {
            let upper = pixel(top, column);
            match text.depth {
                Depth::None => line.push_shade(upper.number().and_then(|mean| colours.share(mean))),
                _ if per_line == 1 => line.push_pair(upper.colour(&colours), None),
                _ => {
                    let lower = pixel(top + 1, column).colour(&colours);
                    line.push_pair(upper.colour(&colours), Some(lower));
                }
            }
        }
        let line = format!("{}{}", labels.at(number), line.end());
        drawn.push(line.trim_end().to_owned());
    }
    drawn.extend(horizontal_labels(&x, width, labels.width, text.is_ascii));
    drawn.push(bar(&colours, &options.unit, text));
    Ok(drawn)
}

/// A line as columns of text with its vertical axis: each column is the mean of the values that fall into it.
///
/// # Errors
/// [`Error::Empty`] where there are no values that are numbers.
pub fn line_text(values: &[f64], text: TextOptions) -> Result<Vec<String>> {
    let found = values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = found.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high || text.columns == 0 || text.lines == 0 {
        return Err(Error::Empty);
    }
    let (top, bottom) = (short(high), short(low));
    let left = top.len().max(bottom.len()) + 1;
    let left = if text.columns < left + LEAST_COLUMNS || low == high { 0 } else { left };
    // Few values are columns of several letters.
    let (room, n) = (text.columns - left, values.len().max(1));
    let width = if n < room { n * (room / n).min(WIDEST_COLUMN) } else { room };
    let steps = text.lines * 8;
    let heights: Vec<usize> = (0..width)
        .map(|column| {
            let (from, to) = span(column, width, values.len());
            let Some(mean) =
                Pixel::mean(values[from..to].iter().map(|value| Some(*value))).number()
            else {
                return 0;
            };
            let share =
                if high > low { (mean / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.5 };
            // The lowest value is visible, too.
            1 + (share.clamp(0.0, 1.0) * (steps - 1) as f64).round() as usize
        })
        .collect();
    let eighths = if text.is_ascii { ASCII_EIGHTHS } else { EIGHTHS };
    let lines = (0..text.lines).rev().map(|line| {
        let label = match line {
            _ if left == 0 => "",
            line if line + 1 == text.lines => &*top,
            0 => &*bottom,
            _ => "",
        };
        let label =
            if left == 0 { String::new() } else { format!("{label:>width$} ", width = left - 1) };
        let blocks = heights.iter().map(|height| eighths[height.saturating_sub(line * 8).min(8)]);
        format!("{label}{}", blocks.collect::<String>()).trim_end().to_owned()
    });
    Ok(lines.collect())
}

/// Which of `cells` cells fall into pixel `index` of `pixels`: at least one.
fn span(index: usize, pixels: usize, cells: usize) -> (usize, usize) {
    let from = index * cells / pixels;
    (from, ((index + 1) * cells / pixels).clamp(from + 1, cells.max(from + 1)))
}

/// What a part of a cell of text covers.
#[derive(Clone, Copy)]
enum Pixel {
    /// No cells.
    Nothing,
    /// Cells without numbers.
    Missing,
    /// The mean of the numbers.
    Number(f64),
}

impl Pixel {
    /// Of cells with their numbers, `None` where there is no cell.
    fn mean(cells: impl Iterator<Item = Option<f64>>) -> Pixel {
        let (mut n, mut n_missing, mut n_nothing, mut mean) = (0_u32, 0_u32, 0_u32, 0.0);
        for cell in cells {
            match cell {
                None => n_nothing += 1,
                Some(value) if value.is_finite() => {
                    n += 1;
                    mean += value / f64::from(n) - mean / f64::from(n);
                }
                Some(_) => n_missing += 1,
            }
        }
        // What most of it is.
        match n.max(n_missing) {
            _ if n_nothing > n + n_missing => Pixel::Nothing,
            most if n > 0 && most == n => Pixel::Number(mean),
            0 => Pixel::Nothing,
            _ => Pixel::Missing,
        }
    }

    fn number(self) -> Option<f64> {
        if let Pixel::Number(mean) = self { Some(mean) } else { None }
    }

    /// `None` for the terminal's own colour.
    fn colour(self, colours: &Colours) -> Option<Colour> {
        match self {
            Pixel::Nothing => None,
            Pixel::Missing => Some(Colour::MISSING),
            Pixel::Number(mean) => Some(colours.colour(mean)),
        }
    }
}

/// Labels to the left of a map, by line.
#[derive(Default)]
struct VerticalLabels {
    at: Vec<Option<String>>,
    /// Columns of the longest, with a blank behind it.
    width: usize,
}

impl VerticalLabels {
    fn new(y: &Ranged<'_>, lines: usize, is_ascii: bool) -> VerticalLabels {
        let mut at = vec![None; lines];
        let ticks = y.axis.ticks(y.low, y.high, (lines / 3).max(2));
        for (number, label) in worded(&ticks, y.axis, is_ascii) {
            let line = ((1.0 - y.share(number)) * lines as f64) as usize;
            let line = line.min(lines.saturating_sub(1));
            if let Some(place) = at.get_mut(line) {
                *place = Some(label);
            }
        }
        let longest = at.iter().flatten().map(|label| label.chars().count()).max();
        VerticalLabels { at, width: longest.map_or(0, |longest| longest + 1) }
    }

    fn at(&self, line: usize) -> String {
        let Some(room) = self.width.checked_sub(1) else { return String::new() };
        let label = self.at.get(line).and_then(Option::as_deref).unwrap_or_default();
        format!("{label:>room$} ")
    }
}

/// The line below a map: labels below their places, as many as have room.
fn horizontal_labels(x: &Ranged<'_>, width: usize, left: usize, is_ascii: bool) -> Option<String> {
    let ticks = x.axis.ticks(x.low, x.high, (width / LABEL_PITCH).max(2));
    let mut line = vec![' '; left + width];
    let mut places: Vec<(f64, String)> = worded(&ticks, x.axis, is_ascii)
        .map(|(number, label)| (x.share(number) * width as f64 + left as f64, label))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0;
    for (middle, label) in places {
        let len = label.chars().count();
        let start = (middle - len as f64 / 2.0).round().max(0.0) as usize;
        let start = start.min((left + width).saturating_sub(len));
        if start < free || start + len > line.len() {
            continue;
        }
        line[start..start + len]
            .iter_mut()
            .zip(label.chars())
            .for_each(|(at, letter)| *at = letter);
        free = start + len + 2;
    }
    let line: String = line.into_iter().collect();
    let line = line.trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Ticks with their labels and the unit of these.
fn worded<'t>(
    ticks: &'t Ticks,
    axis: &'t Axis,
    is_ascii: bool,
) -> impl Iterator<Item = (f64, String)> + 't {
    ticks.at.iter().map(move |(number, label)| {
        let label = match (ticks.unit.as_str(), axis.kind) {
            // The year that all have in common.
            (unit, AxisKind::Dates(_)) if !unit.is_empty() => format!("{unit}-{label}"),
            (unit, _) => format!("{label}{unit}"),
        };
        (*number, if is_ascii { ascii(&label) } else { label })
    })
}

/// A label in ASCII: `45N` for `45°N`, `3x10^5`.
fn ascii(label: &str) -> String {
    const RAISED: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let mut out = String::new();
    let mut is_raised = false;
    for letter in label.chars() {
        let digit = RAISED.chars().position(|raised| raised == letter);
        let power =
            digit.map(|digit| digit.to_string()).or((letter == '⁻').then(|| "-".to_owned()));
        if let Some(power) = power {
            if !is_raised {
                out.push('^');
            }
            out.push_str(&power);
            is_raised = true;
            continue;
        }
        is_raised = false;
        match letter {
            '−' => out.push('-'),
            '×' => out.push('x'),
            'µ' => out.push('u'),
            letter if letter.is_ascii() => out.push(letter),
            _ => {}
        }
    }
    out
}

fn bar(colours: &Colours, unit: &str, text: TextOptions) -> String {
    let mut line = Line::new(text);
    for column in 0..BAR {
        let share = column as f64 / (BAR - 1) as f64;
        match text.depth {
            Depth::None => line.push_shade(Some(share)),
            _ => line.push_pair(Some(colours.palette.at(share)), None),
        }
    }
    let (low, high) = (short(colours.low), short(colours.high));
    format!("{low} {} {high}  {unit}", line.end()).trim_end().to_owned()
}

/// A number of five digits.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.4e}").parse().unwrap_or(number);
    if rounded != 0.0 && !(1e-4..1e7).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// A line of coloured text. A colour code is written where the colour changes.
struct Line {
    options: TextOptions,
    text: String,
    /// The code of the colours that letters have here, empty for the terminal's own.
    last: String,
}

impl Line {
    fn new(options: TextOptions) -> Line {
        Line { options, text: String::new(), last: String::new() }
    }

    fn push_shade(&mut self, share: Option<f64>) {
        let shades: &[char] = if self.options.is_ascii { &ASCII_SHADES } else { &SHADES };
        let of =
            |share: f64| shades[((share * shades.len() as f64) as usize).min(shades.len() - 1)];
        self.text.push(share.map_or(' ', of));
    }

    /// Upper and lower half of a cell, each in a colour or the terminal's own; without a lower one, the whole cell.
    fn push_pair(&mut self, upper: Option<Colour>, lower: Option<Option<Colour>>) {
        let lower = lower.unwrap_or(upper);
        // A half block is as much of the colour in front as of that behind it.
        let (front, back, letter) = match (upper, lower) {
            _ if self.options.is_ascii => (None, upper, ' '),
            (upper, lower) if upper == lower => (None, upper, ' '),
            (None, lower) => (lower, None, '▄'),
            (upper, lower) => (upper, lower, '▀'),
        };
        let mut code = String::new();
        for (ground, colour) in [(38, front), (48, back)] {
            if let Some(colour) = colour {
                code.push_str(&format!(";{ground};{}", self.code(colour)));
            }
        }
        // Colours that the terminal cannot tell from each other have one code.
        if self.last != code {
            self.text.push_str(&format!("\x1b[0{code}m"));
            self.last = code;
        }
        self.text.push(letter);
    }

    fn code(&self, colour: Colour) -> String {
        let Colour(r, g, b) = colour;
        match self.options.depth {
            Depth::True => format!("2;{r};{g};{b}"),
            _ => format!("5;{}", indexed(colour)),
        }
    }

    fn end(mut self) -> String {
        if !self.last.is_empty() {
            self.text.push_str("\x1b[0m");
        }
        self.text
    }
}

/// The nearest of xterm's 256 colours: a cube of 6 by 6 by 6, and greys.
fn indexed(Colour(r, g, b): Colour) -> u32 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let away = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    let nearest = |part: u8| (0_u32..).zip(LEVELS).min_by_key(|(_, level)| away(part, *level));
    let parts = [r, g, b].map(|part| nearest(part).unwrap_or((0, 0)));
    let of_cube = [r, g, b].iter().zip(parts).map(|(part, (_, level))| away(*part, level)).sum();
    let greys = (0_u32..24).zip((8_u8..).step_by(10));
    let of_grey = |grey: u8| away(r, grey) + away(g, grey) + away(b, grey);
    let grey = greys.min_by_key(|(_, grey)| of_grey(*grey)).unwrap_or((0, 8));
    match of_grey(grey.1) < of_cube {
        true => 232 + grey.0,
        false => parts.iter().fold(0, |all, (level, _)| all * 6 + level) + 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curved::Positions;

    fn field<'a>(values: &'a [f64], columns: usize, y_centres: Option<&'a [f64]>) -> MapField<'a> {
        let (x, y) = (Axis::default(), Axis::default());
        let rows = values.len() / columns;
        MapField {
            columns,
            rows,
            values,
            x,
            x_centres: None,
            y,
            y_centres,
            x_edges: None,
            y_edges: None,
            positions: None,
        }
    }

    fn text(columns: usize, lines: usize, depth: Depth) -> TextOptions {
        TextOptions { columns, lines, depth, is_ascii: false }
    }

    #[test]
    fn shades_rise_upwards() {
        let values = [0.0, 1.0, f64::NAN, 3.0];
        let plain = text(4, 2, Depth::None);
        let drawn = map_text(&field(&values, 2, None), &MapOptions::default(), plain).unwrap();
        assert_eq!(drawn[..2], ["  ██", "░░▒▒"]);
        assert_eq!(drawn.last().unwrap(), "0 ░░░░░░▒▒▒▒▒▒▓▓▓▓▓▓██████ 3");
        // From north to south.
        let falling = [45.0, -45.0];
        let falling = field(&values, 2, Some(&falling));
        let drawn = map_text(&falling, &MapOptions::default(), plain).unwrap();
        assert_eq!(drawn[..2], ["░░▒▒", "  ██"]);
        let ascii = TextOptions { is_ascii: true, ..plain };
        let drawn = map_text(&field(&values, 2, None), &MapOptions::default(), ascii).unwrap();
        assert_eq!(drawn[..2], ["  @@", "..=="]);
        assert!(drawn.iter().all(|line| line.is_ascii()), "{drawn:?}");
    }

    #[test]
    fn colours_of_both_halves() {
        let values = [0.0, 0.0, 1.0, 1.0];
        let options = MapOptions { unit: "K".to_owned(), ..MapOptions::default() };
        let one = field(&values, 2, None);
        let drawn = map_text(&one, &options, text(2, 1, Depth::True)).unwrap();
        assert_eq!(drawn[0], "\x1b[0;38;2;253;231;37;48;2;68;1;84m▀▀\x1b[0m");
        assert!(drawn.last().unwrap().ends_with("\x1b[0m 1  K"), "{drawn:?}");
        let drawn = map_text(&one, &options, text(2, 1, Depth::Indexed)).unwrap();
        assert!(drawn[0].starts_with("\x1b[0;38;5;220;48;5;53m▀"), "{drawn:?}");
        // Colours without half blocks: blanks.
        let plain = TextOptions { is_ascii: true, ..text(2, 2, Depth::Indexed) };
        let drawn = map_text(&one, &options, plain).unwrap();
        assert_eq!(drawn[..2], ["\x1b[0;48;5;220m  \x1b[0m", "\x1b[0;48;5;53m  \x1b[0m"]);
    }

    #[test]
    fn colours_of_xterm() {
        for (colour, number) in [
            (Colour(0, 0, 0), 16),
            (Colour(255, 255, 255), 231),
            (Colour(95, 135, 175), 67),
            (Colour(176, 176, 176), 145),
            (Colour(20, 17, 18), 233),
            (Colour(250, 20, 20), 196),
        ] {
            assert_eq!(indexed(colour), number, "{colour:?}");
        }
    }

    /// A map of the globe is twice as wide as high, with its degrees beside it, whatever the terminal's shape.
    #[test]
    fn axes_and_shape() {
        let lon: Vec<f64> = (0..36).map(|i| f64::from(i) * 10.0 + 5.0).collect();
        let lat: Vec<f64> = (0..18).map(|i| f64::from(i) * 10.0 - 85.0).collect();
        let values: Vec<f64> = (0..36 * 18).map(f64::from).collect();
        let globe = MapField {
            columns: 36,
            rows: 18,
            values: &values,
            x: Axis::new("", AxisKind::Longitude),
            x_centres: Some(&lon),
            y: Axis::new("", AxisKind::Latitude),
            y_centres: Some(&lat),
            x_edges: None,
            y_edges: None,
            positions: None,
        };
        for (columns, lines, width, height) in
            [(86, 40, 80, 20), (200, 20, 80, 20), (46, 40, 40, 10)]
        {
            let drawn = map_text(&globe, &MapOptions::default(), text(columns, lines, Depth::None))
                .unwrap();
            assert_eq!(drawn.len(), height + 2, "{drawn:?}");
            let longest = drawn[..height].iter().map(|line| line.chars().count()).max().unwrap();
            assert!(
                longest <= columns && longest.abs_diff(width + 5) <= 2,
                "{longest} for {columns}"
            );
            assert!(
                drawn[..height].iter().any(|line| line.trim_start().starts_with("0°")),
                "{drawn:?}"
            );
            assert!(drawn[height].contains("180°"), "{drawn:?}");
        }
        let ascii = TextOptions { is_ascii: true, ..text(80, 20, Depth::None) };
        let drawn = map_text(&globe, &MapOptions::default(), ascii).unwrap();
        assert!(
            drawn.iter().all(|line| line.is_ascii())
                && drawn.iter().any(|line| line.contains("60N"))
        );
    }

    /// Where a curvilinear grid has no cells the terminal's own colour is seen.
    #[test]
    fn nothing_beside_a_turned_grid() {
        let (lon, lat) = ([0.0, 10.0, -10.0, 0.0], [-10.0, 0.0, 0.0, 10.0]);
        let values = [1.0, 2.0, 3.0, 4.0];
        let turned = MapField {
            x: Axis::new("", AxisKind::Longitude),
            y: Axis::new("", AxisKind::Latitude),
            positions: Some(Positions { lon: &lon, lat: &lat, corners: None }),
            ..field(&values, 2, None)
        };
        let drawn = map_text(&turned, &MapOptions::default(), text(40, 20, Depth::None)).unwrap();
        let first = drawn[0]
            .trim_start_matches(|letter: char| letter.is_ascii_digit() || "°NS".contains(letter));
        assert!(first.starts_with("     ") && first.trim().chars().count() < 10, "{drawn:#?}");
        let drawn = map_text(&turned, &MapOptions::default(), text(40, 20, Depth::True)).unwrap();
        assert!(drawn[0].starts_with("20°N          "), "{drawn:?}");
    }

    #[test]
    fn large_fields_are_averaged_and_odd_ones_refused() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let drawn =
            map_text(&field(&values, 100, None), &MapOptions::default(), text(8, 4, Depth::None));
        assert_eq!(drawn.unwrap()[..4], ["████████", "▓▓▓▓▓▓▓▓", "▒▒▒▒▒▒▒▒", "░░░░░░░░"]);
        let wrong = MapField { rows: 3, ..field(&values, 100, None) };
        let refused = map_text(&wrong, &MapOptions::default(), text(4, 4, Depth::None));
        assert!(matches!(refused, Err(Error::Shape { .. })));
        for none in [text(0, 4, Depth::None), text(4, 0, Depth::None)] {
            assert!(matches!(
                map_text(&field(&values, 100, None), &MapOptions::default(), none),
                Err(Error::Empty)
            ));
        }
    }

    #[test]
    fn lines_in_eighths() {
        let drawn = line_text(&[0.0, 0.5, 1.0, f64::NAN], text(9, 1, Depth::None)).unwrap();
        assert_eq!(drawn, ["▁▁▅▅██"]);
        let drawn = line_text(&[0.0, 0.5, 1.0, f64::NAN], text(4, 1, Depth::None)).unwrap();
        assert_eq!(drawn, ["▁▅█"]);
        let drawn = line_text(&[1.0, 2.0], text(2, 2, Depth::None)).unwrap();
        assert_eq!(drawn, [" █", "▁█"]);
        let drawn = line_text(&[-1.0, 2.5], text(20, 3, Depth::None)).unwrap();
        assert_eq!(drawn, ["2.5       ██████", "          ██████", " -1 ▁▁▁▁▁▁██████"]);
        let ascii = TextOptions { is_ascii: true, ..text(2, 2, Depth::None) };
        assert_eq!(line_text(&[1.0, 2.0], ascii).unwrap(), [" #", ".#"]);
        assert!(line_text(&[f64::NAN], text(2, 2, Depth::None)).is_err());
    }

    #[test]
    fn labels_in_ascii() {
        for (label, want) in [("45°N", "45N"), ("−3×10⁻¹²", "-3x10^-12"), ("5 µs", "5 us")]
        {
            assert_eq!(ascii(label), want);
        }
    }
}
