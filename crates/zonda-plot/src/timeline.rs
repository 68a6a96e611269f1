//! What several processes did at the same time: a row for each, with one axis of time.

use crate::axis::{Axis, AxisKind};
use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::frame::{self, AXIS, MARGIN, Ranged, TICK};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Raster, Rect, Scene, SceneShape};
use crate::text;

/// A piece of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelinePart {
    /// What was done in it: a number of [`TimelineOptions::kinds`].
    pub kind: usize,
    /// Seconds on the common axis.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// How much of the time, 0 to 1.
    pub share: f64,
}

/// A process.
#[derive(Clone, Debug)]
pub struct TimelineRow {
    /// What it is called.
    pub name: String,
    /// When it was there.
    pub begin_s: f64,
    /// Until when.
    pub end_s: f64,
    /// In any order.
    pub parts: Vec<TimelinePart>,
}

/// How the chart looks.
#[derive(Clone, Debug)]
pub struct TimelineOptions {
    /// In large letters at the top.
    pub title: String,
    /// What the colours mean.
    pub kinds: Vec<String>,
    /// Pixels.
    pub width: u32,
}

/// Between two rows.
const BETWEEN_ROWS: u32 = 3;
/// Pixels from row to row where there are few, and where there are many.
const MOST_PITCH: u32 = 30;
const LEAST_PITCH: u32 = 8;
/// Height that rows may take before they become lower.
const ROWS_HEIGHT: u32 = 900;
/// The most rows that are drawn.
const MOST_ROWS: usize = 2000;
/// Of the square beside the name of a kind.
const SIDE: f64 = 14.0;

/// Draws a row for each process. The higher a colour in the row, the more of the time went there; where it was there and did nothing of these,
/// the row is grey. Of more than 2000 rows the first are drawn.
///
/// # Errors
/// [`Error::Empty`] without rows; [`Error::Width`].
pub fn timeline(rows: &[TimelineRow], options: &TimelineOptions) -> Result<Chart> {
    check_width(options.width)?;
    let rows = &rows[..rows.len().min(MOST_ROWS)];
    let n_rows = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    if n_rows == 0 {
        return Err(Error::Empty);
    }
    let pitch = (ROWS_HEIGHT / n_rows).clamp(LEAST_PITCH, MOST_PITCH);
    let mut scene = Scene::new(options.width, 0);
    let width = f64::from(options.width);
    let top = frame::titles(&mut scene, &options.title, "");
    let top = draw_legend(&mut scene, &options.kinds, top);

    let names: Vec<String> =
        rows.iter().map(|row| text::cut(&row.name, TICK, width * 0.25)).collect();
    let left = names.iter().map(|name| text::width(name, TICK)).fold(0.0, f64::max);
    let rect = Rect {
        x0: (MARGIN + left + 10.0).round(),
        y0: top.round(),
        x1: (width - MARGIN - 12.0).round(),
        y1: top.round() + f64::from(pitch.saturating_mul(n_rows).saturating_add(BETWEEN_ROWS)),
    };
    let latest = rows.iter().map(|row| row.end_s).filter(|end| end.is_finite()).fold(0.0, f64::max);
    let axis = Axis::new("time", AxisKind::Seconds);
    let x = Ranged { axis: &axis, low: 0.0, high: (latest * 1.01).max(1e-9) };
    let x_ticks = x.ticks_of_width(rect.width());
    let no_ticks = crate::axis::Ticks { at: Vec::new(), unit: String::new() };
    let y_axis = Axis::default();
    let y = Ranged { axis: &y_axis, low: 0.0, high: 1.0 };
    frame::grid(&mut scene, rect, (&x, &x_ticks), (&y, &no_ticks));
    scene.shapes.push(SceneShape::Raster(draw(rect, pitch, &x, rows, options.kinds.len())));
    frame::axes(&mut scene, rect, (&x, &x_ticks), (&y, &no_ticks));
    // Where rows are low, every second name or fewer.
    let every = (TICK / f64::from(pitch) * 1.2).ceil().max(1.0) as usize;
    for (number, name) in names.iter().enumerate().step_by(every) {
        let middle = rect.y0 + f64::from(pitch) * (number as f64 + 0.5) + 1.0;
        let at = (rect.x0 - 10.0, middle + text::cap_height(TICK) / 2.0);
        scene.label(name, at, TICK, Colour::INK, Anchor::End);
    }
    scene.height = (rect.y1 + frame::lower_room("time") + MARGIN).ceil() as u32;
    Ok(Chart { scene })
}

/// What the colours mean, in lines below `top`; returns where the chart may begin.
fn draw_legend(scene: &mut Scene, kinds: &[String], top: f64) -> f64 {
    let right = f64::from(scene.width) - MARGIN;
    let (mut x, mut y) = (MARGIN, top + SIDE);
    for (index, kind) in kinds.iter().enumerate() {
        let name = text::cut(kind, AXIS, right - MARGIN - SIDE - 7.0);
        let wide = SIDE + 7.0 + text::width(&name, AXIS);
        if x > MARGIN && x + wide > right {
            (x, y) = (MARGIN, y + AXIS + 8.0);
        }
        let square = Rect { x0: x, y0: y - SIDE, x1: x + SIDE, y1: y };
        scene.fill(square, Colour::of_curve(index));
        scene.label(name, (x + SIDE + 7.0, y), AXIS, Colour::INK, Anchor::Start);
        x += wide + 22.0;
    }
    y + 14.0
}

fn draw(rect: Rect, pitch: u32, x: &Ranged<'_>, rows: &[TimelineRow], n_kinds: usize) -> Raster {
    let (width, height) = (rect.width() as usize, rect.height() as usize);
    let mut palette = vec![[255, 255, 255, 0], [128, 128, 128, 60]];
    for index in 0..n_kinds.min(200) {
        let Colour(r, g, b) = Colour::of_curve(index);
        palette.push([r, g, b, 255]);
    }
    let mut pixels = vec![0u8; width * height];
    let bar = pitch.saturating_sub(BETWEEN_ROWS) as usize;
    let place = |seconds: f64| (x.share(seconds) * width as f64).clamp(0.0, width as f64);
    for (number, row) in rows.iter().enumerate() {
        let mut shares = vec![vec![0.0f64; width]; n_kinds.min(200)];
        for part in &row.parts {
            let Some(shares) = shares.get_mut(part.kind) else { continue };
            let (from, to) = (place(part.start_s), place(part.end_s));
            let last = (to as usize).min(width.saturating_sub(1));
            for (column, share) in shares.iter_mut().enumerate().take(last + 1).skip(from as usize)
            {
                let inside = to.min(column as f64 + 1.0) - from.max(column as f64);
                if inside > 0.0 && part.share.is_finite() {
                    *share += inside * part.share.max(0.0);
                }
            }
        }
        let (first, last) = (place(row.begin_s) as usize, place(row.end_s).ceil() as usize);
        let top = number * pitch as usize + BETWEEN_ROWS as usize;
        for column in 0..width {
            let sum: f64 = shares.iter().map(|shares| shares[column]).sum();
            // Several threads may have been at it.
            let scale = bar as f64 / sum.max(1.0);
            let mut below = 0.0;
            for line in 0..bar {
                let at = (top + bar - 1 - line) * width + column;
                let is_there = (first..last.max(first + 1)).contains(&column);
                if let Some(pixel) = pixels.get_mut(at) {
                    *pixel = u8::from(is_there);
                }
            }
            for (kind, shares) in shares.iter().enumerate() {
                let to = below + shares[column] * scale;
                for line in (below.round() as usize..to.round() as usize).take(bar) {
                    let at = (top + bar).saturating_sub(1 + line) * width + column;
                    if let Some(pixel) = pixels.get_mut(at) {
                        // No more than 202 colours.
                        *pixel = kind as u8 + 2;
                    }
                }
                below = to;
            }
        }
    }
    Raster {
        at: (rect.x0 as u32, rect.y0 as u32),
        width: width as u32,
        height: height as u32,
        palette,
        pixels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: usize, start_s: f64, end_s: f64, share: f64) -> TimelinePart {
        TimelinePart { kind, start_s, end_s, share }
    }

    fn options() -> TimelineOptions {
        let kinds = ["in calls", "waits", "carries out"].map(str::to_owned).to_vec();
        TimelineOptions { title: "What processes did".into(), kinds, width: 1000 }
    }

    /// How many pixels of a column of a row have which colour, from 0 on.
    fn column(chart: &Chart, row: usize, share: f64) -> Vec<usize> {
        let raster = chart.scene.shapes.iter().find_map(|shape| match shape {
            SceneShape::Raster(raster) => Some(raster),
            _ => None,
        });
        let raster = raster.unwrap();
        let column = (share * f64::from(raster.width)) as usize;
        let mut counts = vec![0; raster.palette.len()];
        let (first, bar) = (row * 30 + 3, 27);
        for line in first..first + bar {
            counts[usize::from(raster.pixels[line * raster.width as usize + column])] += 1;
        }
        counts
    }

    #[test]
    fn rows_show_what_was_done_when() {
        let row = |name: &str, begin_s, parts: &[TimelinePart]| TimelineRow {
            name: name.into(),
            begin_s,
            end_s: 10.0,
            parts: parts.to_vec(),
        };
        let rows = [
            row("rank 0", 0.0, &[part(0, 0.0, 5.0, 0.5), part(1, 0.0, 5.0, 0.5)]),
            // Three threads at work count as one.
            row("server1", 2.0, &[part(2, 5.0, 10.0, 3.0)]),
        ];
        let chart = timeline(&rows, &options()).unwrap();
        let at = |seconds: f64| seconds / 10.1;
        let half = column(&chart, 0, at(2.0));
        assert!((12..=15).contains(&half[2]) && half[2] + half[3] == 27, "{half:?}");
        assert_eq!(column(&chart, 0, at(8.0)), [0, 27, 0, 0, 0]);
        assert_eq!(column(&chart, 1, at(1.0)), [27, 0, 0, 0, 0]);
        assert_eq!(column(&chart, 1, at(3.0)), [0, 27, 0, 0, 0]);
        assert_eq!(column(&chart, 1, at(7.0)), [0, 0, 0, 0, 27]);
        chart.scene.assert_legible();
        let many: Vec<_> = (0..300).map(|i| row(&format!("rank {i}"), 0.0, &[])).collect();
        timeline(&many, &options()).unwrap().scene.assert_legible();
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let parts = vec![
            part(9, 0.0, 1.0, 1.0),
            part(0, f64::NAN, f64::INFINITY, f64::NAN),
            part(1, 5.0, -5.0, -1.0),
            part(0, -1e300, 1e300, 1e300),
        ];
        let row = TimelineRow { name: String::new(), begin_s: f64::NAN, end_s: -1.0, parts };
        assert!(timeline(&[row], &options()).is_ok());
        assert!(matches!(timeline(&[], &options()), Err(Error::Empty)));
    }
}
