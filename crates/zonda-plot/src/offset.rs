//! Where in a file was read and written, over time: one panel for each recording.

use crate::axis::{Axis, AxisKind};
use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::frame::{self, AXIS, MARGIN, Ranged};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Raster, Rect, Scene, SceneShape};
use crate::text;

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDirection {
    /// Out of the file.
    Read,
    /// Into the file.
    Write,
}

/// A transfer of bytes that lie side by side.
#[derive(Clone, Copy, Debug)]
pub struct FileAccess {
    /// Seconds from the beginning of the recording.
    pub start_s: f64,
    /// Seconds that it took.
    pub took_s: f64,
    /// Byte of the file that it began at.
    pub offset: u64,
    /// Bytes transferred.
    pub len_bytes: u64,
    /// Which way.
    pub direction: AccessDirection,
}

/// A recording.
#[derive(Clone, Debug)]
pub struct OffsetPanel<'a> {
    /// What was recorded.
    pub title: String,
    /// Lines in smaller letters below it.
    pub notes: Vec<String>,
    /// In any order.
    pub accesses: &'a [FileAccess],
}

/// How the chart looks.
#[derive(Clone, Debug)]
pub struct OffsetOptions {
    /// In large letters at the top.
    pub title: String,
    /// Below it.
    pub subtitle: String,
    /// Whether all panels have the same time axis, as they have the same axis of offsets.
    pub same_time: bool,
    /// Pixels.
    pub width: u32,
}

impl Default for OffsetOptions {
    fn default() -> OffsetOptions {
        let (title, subtitle) = (String::new(), String::new());
        OffsetOptions { title, subtitle, same_time: true, width: 1200 }
    }
}

/// Height of a panel's rectangle.
const PANEL_HEIGHT: f64 = 430.0;
/// Where there are several rows of them.
const LOW_PANEL_HEIGHT: f64 = 280.0;
const BETWEEN_PANELS: f64 = 26.0;
const NOTE: f64 = 15.0;
const NOTE_PITCH: f64 = 21.0;

/// Draws file offset over time, panels two in a row. A transfer is as high as it is long and as wide
/// as it took, but never less than a dot; where several fall on one spot it is darker.
///
/// The picture's size does not grow with the number of transfers.
///
/// # Errors
/// [`Error::Empty`] without panels, or where none has a transfer; [`Error::Width`].
pub fn offsets(panels: &[OffsetPanel<'_>], options: &OffsetOptions) -> Result<Chart> {
    check_width(options.width)?;
    let all = || panels.iter().flat_map(|panel| panel.accesses);
    if all().next().is_none() {
        return Err(Error::Empty);
    }
    let y_axis = Axis::new("file offset", AxisKind::Bytes);
    let (low, high) = offset_range(all());
    let y = Ranged { axis: &y_axis, low, high };
    let x_axis = Axis::new("time", AxisKind::Seconds);
    let end = |panel: &OffsetPanel<'_>| {
        let ends = panel.accesses.iter().map(|access| access.start_s + access.took_s);
        ends.filter(|end| end.is_finite()).fold(0.0, f64::max)
    };
    let latest = panels.iter().map(end).fold(0.0, f64::max);

    let width = f64::from(options.width);
    let mut scene = Scene::new(options.width, 0);
    let legend = draw_legend(&mut scene, all);
    let title = text::cut(&options.title, frame::TITLE, width - 2.0 * MARGIN - legend);
    let top = frame::titles(&mut scene, &title, &options.subtitle).max(MARGIN + 24.0);

    let n_columns = panels.len().min(2);
    let n_rows = panels.len().div_ceil(n_columns);
    let panel_height = if n_rows > 1 { LOW_PANEL_HEIGHT } else { PANEL_HEIGHT };
    let y_ticks = y.ticks_of_height(panel_height);
    let left = frame::left_room(&y_ticks, &y_axis.full_title(&y_ticks));
    let column_width =
        (width - 2.0 * MARGIN - BETWEEN_PANELS * (n_columns - 1) as f64) / n_columns as f64;
    let n_notes = panels.iter().map(|panel| panel.notes.len()).max().unwrap_or(0);
    let head = AXIS + NOTE_PITCH * n_notes as f64 + 8.0;
    let row_height = head + panel_height + frame::lower_room("time") + BETWEEN_PANELS;
    for (number, panel) in panels.iter().enumerate() {
        let (column, row) = ((number % n_columns) as f64, (number / n_columns) as f64);
        let x0 = MARGIN + column * (column_width + BETWEEN_PANELS);
        let y0 = top + row * row_height;
        let rect = Rect {
            x0: (x0 + left).round(),
            y0: (y0 + head).round(),
            // Half of the last tick's label may reach over the frame.
            x1: (x0 + column_width - 12.0).round(),
            y1: (y0 + head + panel_height).round(),
        };
        let latest = if options.same_time { latest } else { end(panel) };
        let x = Ranged { axis: &x_axis, low: 0.0, high: (latest * 1.02).max(1e-9) };
        let x_ticks = x.ticks_of_width(rect.width());
        draw_heading(&mut scene, panel, rect, y0);
        frame::grid(&mut scene, rect, (&x, &x_ticks), (&y, &y_ticks));
        scene.shapes.push(SceneShape::Raster(draw(rect, &x, &y, panel.accesses)));
        frame::axes(&mut scene, rect, (&x, &x_ticks), (&y, &y_ticks));
    }
    scene.height = (top + row_height * n_rows as f64 - BETWEEN_PANELS + MARGIN).ceil() as u32;
    Ok(Chart { scene })
}

/// The ends of the axis of offsets.
fn offset_range<'a>(accesses: impl Iterator<Item = &'a FileAccess> + Clone) -> (f64, f64) {
    let first = accesses.clone().map(|access| access.offset).min().unwrap_or(0) as f64;
    let last = accesses.map(|a| a.offset.saturating_add(a.len_bytes)).max().unwrap_or(0) as f64;
    // The axis begins with the file, unless that leaves more than half of it empty.
    let low = if first < last / 2.0 { 0.0 } else { first };
    (low, low + ((last - low) * 1.03).max(1.0))
}

/// Title and notes of a panel, from `top` on, as wide as its rectangle.
fn draw_heading(scene: &mut Scene, panel: &OffsetPanel<'_>, rect: Rect, top: f64) {
    let baseline = top + text::cap_height(AXIS);
    let title = text::cut(&panel.title, AXIS, rect.width());
    scene.label(title, (rect.x0, baseline), AXIS, Colour::INK, Anchor::Start);
    for (line, note) in (1u8..).zip(&panel.notes) {
        let note = text::cut(note, NOTE, rect.width());
        let at = (rect.x0, baseline + NOTE_PITCH * f64::from(line));
        scene.label(note, at, NOTE, Colour::FAINT, Anchor::Start);
    }
}

/// What the colours mean, in the upper right corner; returns its width.
fn draw_legend<'a, I: Iterator<Item = &'a FileAccess>>(
    scene: &mut Scene,
    all: impl Fn() -> I,
) -> f64 {
    const SIDE: f64 = 14.0;
    let right = f64::from(scene.width) - MARGIN;
    let mut x = right;
    for (direction, name) in [(AccessDirection::Write, "write"), (AccessDirection::Read, "read")] {
        if !all().any(|access| access.direction == direction) {
            continue;
        }
        let y = MARGIN + 18.0;
        x -= text::width(name, AXIS);
        scene.label(name, (x, y), AXIS, Colour::INK, Anchor::Start);
        x -= SIDE + 7.0;
        scene.fill(Rect { x0: x, y0: y - SIDE, x1: x + SIDE, y1: y }, colour_of(direction));
        x -= 18.0;
    }
    right - x
}

fn colour_of(direction: AccessDirection) -> Colour {
    match direction {
        AccessDirection::Read => Colour::READ,
        AccessDirection::Write => Colour::WRITE,
    }
}

/// Opacity of a spot that one transfer, a few, some, or many fall on.
const OPACITIES: [u8; 4] = [165, 195, 225, 255];
/// How many different shares of writes have their own colour.
const MIXES: u8 = 5;

/// Colours by mix, then by strength; before them one for no transfer at all.
fn palette() -> Vec<[u8; 4]> {
    let mut palette = vec![[255, 255, 255, 0]];
    for mix in 0..MIXES {
        let share = f64::from(mix) / f64::from(MIXES - 1);
        let Colour(r, g, b) = Colour::READ.mix(Colour::WRITE, share);
        palette.extend(OPACITIES.map(|opacity| [r, g, b, opacity]));
    }
    palette
}

/// The number of the colour for a spot.
fn spot(reads: u32, writes: u32) -> u8 {
    let strength = match reads.saturating_add(writes) {
        0 => return 0,
        1 => 0,
        2..=3 => 1,
        4..=15 => 2,
        _ => 3,
    };
    let share = f64::from(writes) / (f64::from(reads) + f64::from(writes));
    let mix = (share * f64::from(MIXES - 1)).round() as u8;
    1 + mix * OPACITIES.len() as u8 + strength
}

/// Counts transfers on a grid of dots.
fn draw(rect: Rect, x: &Ranged<'_>, y: &Ranged<'_>, accesses: &[FileAccess]) -> Raster {
    let (width, height) = (rect.width() as usize, rect.height() as usize);
    let dot = match accesses.len() {
        0..500 => 4,
        500..50_000 => 3,
        _ => 2,
    };
    let (columns, rows) = (width.div_ceil(dot), height.div_ceil(dot));
    let mut counts = vec![(0u32, 0u32); columns * rows];
    // Columns count from the left, rows from below. Numbers outside of the axes count at their
    // ends.
    let column = |seconds: f64| ((x.share(seconds) * width as f64) as usize / dot).min(columns - 1);
    let row = |byte: u64| ((y.share(byte as f64) * height as f64) as usize / dot).min(rows - 1);
    for access in accesses.iter().filter(|a| a.start_s.is_finite() && a.took_s.is_finite()) {
        let end = access.offset.saturating_add(access.len_bytes.saturating_sub(1));
        for row in row(access.offset)..=row(end) {
            for column in column(access.start_s)..=column(access.start_s + access.took_s) {
                let (reads, writes) = &mut counts[row * columns + column];
                let count = if access.direction == AccessDirection::Read { reads } else { writes };
                *count = count.saturating_add(1);
            }
        }
    }
    let pixels = (0..height).flat_map(|line| {
        let row = (height - 1 - line) / dot;
        let counts = &counts;
        (0..width).map(move |pixel| {
            let (reads, writes) = counts[row * columns + pixel / dot];
            spot(reads, writes)
        })
    });
    Raster {
        at: (rect.x0 as u32, rect.y0 as u32),
        width: width as u32,
        height: height as u32,
        palette: palette(),
        pixels: pixels.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    fn access(start_s: f64, offset: u64, direction: AccessDirection) -> FileAccess {
        FileAccess { start_s, took_s: 0.0, offset, len_bytes: 1000, direction }
    }

    fn panel(accesses: &[FileAccess]) -> OffsetPanel<'_> {
        OffsetPanel {
            title: "a recording".into(),
            notes: vec!["3 reads".into(), "2 writes".into()],
            accesses,
        }
    }

    fn options() -> OffsetOptions {
        OffsetOptions {
            title: "File offset over time".into(),
            subtitle: "of a program".into(),
            ..OffsetOptions::default()
        }
    }

    fn rasters(chart: &Chart) -> Vec<&Raster> {
        let shapes = chart.scene.shapes.iter();
        shapes.filter_map(|s| if let SceneShape::Raster(r) = s { Some(r) } else { None }).collect()
    }

    /// The colour at shares of the way to the right and up.
    fn at(raster: &Raster, x: f64, y: f64) -> [u8; 4] {
        let column = (x * f64::from(raster.width)) as usize;
        let row = raster.height as usize - 1 - (y * f64::from(raster.height)) as usize;
        raster.palette[usize::from(raster.pixels[row * raster.width as usize + column])]
    }

    #[test]
    fn transfers_are_in_their_places() {
        let accesses = [
            access(0.5, 300_000, AccessDirection::Read),
            access(0.25, 900_000, AccessDirection::Write),
            FileAccess {
                len_bytes: 200_000,
                took_s: 0.1,
                ..access(0.9, 800_000, AccessDirection::Write)
            },
        ];
        let chart = offsets(&[panel(&accesses)], &options()).unwrap();
        let rasters = rasters(&chart);
        let raster = rasters[0];
        // The axes end 2 % after the last moment and 3 % above the last byte.
        let (x, y) = (|s: f64| s / 1.02, |byte: f64| byte / 1.03e6);
        let Colour(r, g, b) = Colour::READ;
        assert_eq!(at(raster, x(0.5), y(300_000.0)), [r, g, b, OPACITIES[0]]);
        let Colour(r, g, b) = Colour::WRITE;
        assert_eq!(at(raster, x(0.25), y(900_000.0)), [r, g, b, OPACITIES[0]]);
        assert_eq!(at(raster, x(0.95), y(900_000.0)), [r, g, b, OPACITIES[0]]);
        assert_eq!(at(raster, x(0.7), y(900_000.0))[3], 0);
        let drawn = raster.pixels.iter().filter(|pixel| **pixel != 0).count();
        let long = 0.1 / 1.02 * f64::from(raster.width) * 0.2 / 1.03 * f64::from(raster.height);
        assert!((drawn as f64 - long).abs() < long * 0.2, "{drawn} pixels, about {long} expected");
    }

    #[test]
    fn colours_of_spots() {
        let palette = palette();
        assert!(palette.len() <= 256);
        assert_eq!(spot(0, 0), 0);
        let colour = |reads, writes| palette[usize::from(spot(reads, writes))];
        assert_eq!(colour(1, 0)[..3], [0, 114, 178]);
        assert_eq!(colour(0, 1)[..3], [213, 94, 0]);
        assert!(colour(0, 1)[3] < colour(0, 100)[3]);
        assert_ne!(colour(1, 1)[..3], colour(1, 0)[..3]);
    }

    #[test]
    fn labels_stand_apart() {
        for (end, last) in
            [(0.0, 0), (1e-7, 1), (0.003, 5_000), (2.0, 80_000_000), (86_400.0, 3 << 40)]
        {
            let accesses =
                [access(0.0, 0, AccessDirection::Read), access(end, last, AccessDirection::Write)];
            let panels = vec![panel(&accesses); 5];
            for (n, width) in [(1, 480), (2, 700), (2, 1200), (5, 1200)] {
                let options = OffsetOptions { width, ..options() };
                offsets(&panels[..n], &options).unwrap().scene.assert_legible();
            }
        }
    }

    /// Very many transfers all over the file are no larger a picture than what fits on it.
    #[test]
    fn many_transfers_are_a_small_picture() {
        let mut state = 1u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let accesses: Vec<FileAccess> = (0..200_000)
            .map(|i| {
                let direction =
                    if random() % 3 == 0 { AccessDirection::Read } else { AccessDirection::Write };
                access(f64::from(i) * 1e-6, random() % (1 << 30), direction)
            })
            .collect();
        let panels = [panel(&accesses[..100_000]), panel(&accesses)];
        let svg = offsets(&panels, &options()).unwrap().encode(Format::Svg).unwrap();
        assert!(svg.len() < 500_000, "{} bytes", svg.len());
    }

    #[test]
    fn odd_recordings() {
        assert!(matches!(offsets(&[], &options()), Err(Error::Empty)));
        assert!(matches!(offsets(&[panel(&[])], &options()), Err(Error::Empty)));
        let odd = [
            FileAccess { start_s: f64::NAN, ..access(0.0, 5, AccessDirection::Read) },
            FileAccess { took_s: f64::INFINITY, ..access(0.0, 5, AccessDirection::Read) },
            FileAccess {
                offset: u64::MAX,
                len_bytes: u64::MAX,
                ..access(-1.0, 0, AccessDirection::Write)
            },
            FileAccess { len_bytes: 0, ..access(0.0, 0, AccessDirection::Write) },
        ];
        let chart = offsets(&[panel(&odd), panel(&[])], &options()).unwrap();
        chart.encode(Format::Png).unwrap();
    }
}
