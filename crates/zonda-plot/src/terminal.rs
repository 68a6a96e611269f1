//! Charts as text, for terminals: a map in half blocks of colour, a line in blocks of eighths.

use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::map::{Colours, MapField, MapOptions};

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None: shades of blocks stand for numbers.
    None,
    /// The 256 of xterm.
    Indexed,
    /// All.
    True,
}

/// Columns and lines of text that a chart may have, and its colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns.
    pub columns: usize,
    /// Lines, without those below the chart.
    pub lines: usize,
    /// Colours.
    pub depth: Depth,
}

/// The most cells of the field that are averaged along each direction for one cell of text.
const MOST_SAMPLES: usize = 16;
/// Numbers as shades, from low to high; a blank is a missing one.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
/// Heights of a column, in eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the bar that says what colours mean.
const BAR: usize = 24;

/// A map as lines of text, the last of them a bar that says which colour stands for which number. Cells
/// of the field have equal widths and heights, as many together as need be.
///
/// # Errors
/// [`Error::Shape`] for a field that is none, [`Error::Empty`] for one without cells.
pub fn map_text(
    field: &MapField<'_>,
    options: &MapOptions,
    text: TextOptions,
) -> Result<Vec<String>> {
    if field.columns.checked_mul(field.rows) != Some(field.values.len()) {
        let (columns, rows, values) = (field.columns, field.rows, field.values.len());
        return Err(Error::Shape { columns, rows, values });
    }
    if field.values.is_empty() || text.columns == 0 || text.lines == 0 {
        return Err(Error::Empty);
    }
    let colours = Colours::new(field.values, options);
    // Two pixels in a line of text where there are colours.
    let per_line = if text.depth == Depth::None { 1 } else { 2 };
    let width = text.columns.min(field.columns.max(2) * 2);
    let height = (text.lines * per_line).min(field.rows.max(2) * 2);
    // Rows rise upwards, unless their axis or its coordinates go the other way.
    let falls = field.y_centres.is_some_and(|at| at.first() > at.last());
    let upwards = falls == field.y.reversed;
    let leftwards = field.x_centres.is_some_and(|at| at.first() > at.last()) != field.x.reversed;
    let pixel = |line: usize, column: usize| {
        let line = if upwards { height - 1 - line } else { line };
        let column = if leftwards { width - 1 - column } else { column };
        mean(field, (span(line, height, field.rows), span(column, width, field.columns)))
    };
    let mut lines = Vec::new();
    for top in (0..height).step_by(per_line) {
        let mut line = Line::new(text.depth);
        for column in 0..width {
            let upper = pixel(top, column);
            let lower = if top + 1 < height { Some(pixel(top + 1, column)) } else { None };
            match text.depth {
                Depth::None => line.push_shade(colours.share(upper)),
                _ => line.push_pair(
                    colours.colour(upper),
                    lower.filter(|_| per_line == 2).map(|value| colours.colour(value)),
                ),
            }
        }
        lines.push(line.end());
    }
    lines.push(bar(&colours, &options.unit, text.depth));
    Ok(lines)
}

/// A line as columns of text: each column is the mean of the values that fall into it.
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
    let width = text.columns.min(values.len().max(1));
    let steps = text.lines * 8;
    let heights: Vec<usize> = (0..width)
        .map(|column| {
            let (from, to) = span(column, width, values.len());
            let mean = mean_of(values[from..to].iter().copied());
            if !mean.is_finite() {
                return 0;
            }
            let share =
                if high > low { (mean / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.5 };
            // The lowest value is visible, too.
            1 + (share.clamp(0.0, 1.0) * (steps - 1) as f64).round() as usize
        })
        .collect();
    let lines = (0..text.lines).rev().map(|line| {
        let blocks = heights.iter().map(|height| EIGHTHS[height.saturating_sub(line * 8).min(8)]);
        blocks.collect::<String>().trim_end().to_owned()
    });
    Ok(lines.collect())
}

/// Which of `cells` cells fall into pixel `index` of `pixels`: at least one.
fn span(index: usize, pixels: usize, cells: usize) -> (usize, usize) {
    let from = index * cells / pixels;
    (from, ((index + 1) * cells / pixels).clamp(from + 1, cells.max(from + 1)))
}

fn mean(field: &MapField<'_>, (rows, columns): ((usize, usize), (usize, usize))) -> f64 {
    let step = |(from, to): (usize, usize)| (to - from).div_ceil(MOST_SAMPLES);
    let cells = (rows.0..rows.1).step_by(step(rows)).flat_map(|row| {
        (columns.0..columns.1)
            .step_by(step(columns))
            .map(move |column| row * field.columns + column)
    });
    mean_of(cells.map(|cell| field.values[cell]))
}

/// The mean of the finite numbers; NaN if there are none.
fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut mean) = (0.0, f64::NAN);
    for value in values.filter(|value| value.is_finite()) {
        n += 1.0;
        mean = if n == 1.0 { value } else { mean + (value / n - mean / n) };
    }
    mean
}

fn bar(colours: &Colours, unit: &str, depth: Depth) -> String {
    let mut line = Line::new(depth);
    for column in 0..BAR {
        let share = column as f64 / (BAR - 1) as f64;
        match depth {
            Depth::None => line.push_shade(Some(share)),
            _ => line.push_pair(colours.palette.at(share), None),
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
    depth: Depth,
    text: String,
    last: Option<(Colour, Option<Colour>)>,
}

impl Line {
    fn new(depth: Depth) -> Line {
        Line { depth, text: String::new(), last: None }
    }

    fn push_shade(&mut self, share: Option<f64>) {
        let shade = share.map_or(' ', |share| {
            SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
        });
        self.text.push(shade);
    }

    /// Upper and lower half of a cell; without a lower one, the whole cell.
    fn push_pair(&mut self, upper: Colour, lower: Option<Colour>) {
        if self.last != Some((upper, lower)) {
            self.last = Some((upper, lower));
            let below = lower.unwrap_or(upper);
            let code = format!("\x1b[38;{};48;{}m", self.code(upper), self.code(below));
            self.text.push_str(&code);
        }
        self.text.push('▀');
    }

    fn code(&self, Colour(r, g, b): Colour) -> String {
        if self.depth == Depth::True {
            return format!("2;{r};{g};{b}");
        }
        // The cube of 6 by 6 by 6 colours.
        let level = |part: u8| (usize::from(part) * 5 + 127) / 255;
        format!("5;{}", 16 + 36 * level(r) + 6 * level(g) + level(b))
    }

    fn end(mut self) -> String {
        if self.last.is_some() {
            self.text.push_str("\x1b[0m");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    fn field<'a>(values: &'a [f64], columns: usize, y_centres: Option<&'a [f64]>) -> MapField<'a> {
        let (x, y) = (Axis::default(), Axis::default());
        let rows = values.len() / columns;
        MapField { columns, rows, values, x, x_centres: None, y, y_centres }
    }

    fn text(columns: usize, lines: usize, depth: Depth) -> TextOptions {
        TextOptions { columns, lines, depth }
    }

    #[test]
    fn shades_rise_upwards() {
        let values = [0.0, 1.0, f64::NAN, 3.0];
        let plain = text(2, 2, Depth::None);
        let drawn = map_text(&field(&values, 2, None), &MapOptions::default(), plain).unwrap();
        assert_eq!(drawn[..2], [" █", "░▒"]);
        assert_eq!(drawn[2], "0 ░░░░░░▒▒▒▒▒▒▓▓▓▓▓▓██████ 3");
        // From north to south.
        let falling = [45.0, -45.0];
        let falling = field(&values, 2, Some(&falling));
        let drawn = map_text(&falling, &MapOptions::default(), plain).unwrap();
        assert_eq!(drawn[..2], ["░▒", " █"]);
    }

    #[test]
    fn colours_of_both_halves() {
        let values = [0.0, 0.0, 1.0, 1.0];
        let options = MapOptions { unit: "K".to_owned(), ..MapOptions::default() };
        let drawn = map_text(&field(&values, 2, None), &options, text(2, 1, Depth::True)).unwrap();
        assert_eq!(drawn[0], "\x1b[38;2;253;231;37;48;2;68;1;84m▀▀\x1b[0m");
        assert!(drawn[1].ends_with("\x1b[0m 1  K"), "{drawn:?}");
        let drawn =
            map_text(&field(&values, 2, None), &options, text(2, 1, Depth::Indexed)).unwrap();
        assert!(drawn[0].starts_with("\x1b[38;5;227;48;5;54m"), "{drawn:?}");
    }

    #[test]
    fn large_fields_are_averaged_and_odd_ones_refused() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let drawn =
            map_text(&field(&values, 100, None), &MapOptions::default(), text(4, 4, Depth::None));
        assert_eq!(drawn.unwrap()[..4], ["████", "▓▓▓▓", "▒▒▒▒", "░░░░"]);
        let wrong = MapField { rows: 3, ..field(&values, 100, None) };
        let refused = map_text(&wrong, &MapOptions::default(), text(4, 4, Depth::None));
        assert!(matches!(refused, Err(Error::Shape { .. })));
    }

    #[test]
    fn lines_in_eighths() {
        let drawn = line_text(&[0.0, 0.5, 1.0, f64::NAN], text(10, 1, Depth::None)).unwrap();
        assert_eq!(drawn, ["▁▅█"]);
        let drawn = line_text(&[1.0, 2.0], text(2, 2, Depth::None)).unwrap();
        assert_eq!(drawn, [" █", "▁█"]);
        assert!(line_text(&[f64::NAN], text(2, 2, Depth::None)).is_err());
    }
}
