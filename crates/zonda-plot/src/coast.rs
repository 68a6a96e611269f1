//! Coastlines of the world at 1:110 million (Natural Earth), which are part of the program.

use std::sync::LazyLock;

use crate::colour::Colour;
use crate::frame::Ranged;
use crate::scene::{Rect, Scene};

/// Longitude and latitude in degrees.
type Place = (f64, f64);

/// What `coast/make.py` wrote, which says how.
static COASTS: LazyLock<Vec<Vec<Place>>> = LazyLock::new(|| {
    read(include_bytes!("../coast/land-110m.bin"))
        .expect("the coastlines are part of the program, and a test reads them")
});

/// Numbers of variable length, as `coast/make.py` writes them.
struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Iterator for Numbers<'_> {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        let mut bits = 0_u32;
        for shift in (0..32).step_by(7) {
            let byte = *self.0.next()?;
            bits |= u32::from(byte & 127) << shift;
            if byte < 128 {
                // The lowest bit is the sign.
                let number = (bits >> 1) as i32;
                return Some(if bits & 1 == 1 { -number - 1 } else { number });
            }
        }
        None
    }
}

fn read(bytes: &[u8]) -> Option<Vec<Vec<Place>>> {
    const STEPS: f64 = 100.0;
    let mut numbers = Numbers(bytes.iter());
    let n_lines = numbers.next()?;
    let mut lines = Vec::new();
    for _ in 0..n_lines {
        let n_points = numbers.next()?;
        let (mut x, mut y) = (0, 0);
        let mut line = Vec::new();
        for _ in 0..n_points {
            x += numbers.next()?;
            y += numbers.next()?;
            line.push((f64::from(x) / STEPS, f64::from(y) / STEPS));
        }
        lines.push(line);
    }
    Some(lines)
}

/// The part of a step from `a` to `b` that is within the ranges, as shares of the way.
fn inside(a: Place, b: Place, (x, y): ((f64, f64), (f64, f64))) -> Option<(f64, f64)> {
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (from, to, (low, high)) in [(a.0, b.0, x), (a.1, b.1, y)] {
        if from == to {
            if from < low || from > high {
                return None;
            }
            continue;
        }
        let (first, second) = ((low - from) / (to - from), (high - from) / (to - from));
        enter = enter.max(first.min(second));
        leave = leave.min(first.max(second));
    }
    (enter < leave).then_some((enter, leave))
}

/// Turns of longitudes that a map may show.
const MOST_TURNS: i32 = 8;

/// The parts of all coastlines that are within ranges of longitudes and latitudes. Longitudes may go on behind a turn.
fn within(x: (f64, f64), y: (f64, f64)) -> Vec<Vec<Place>> {
    let mut parts = Vec::new();
    let turns = ((x.0 - 180.0) / 360.0).ceil() as i32..=((x.1 + 180.0) / 360.0).floor() as i32;
    // Then they are no longitudes, whatever their units say.
    if turns.end().saturating_sub(*turns.start()) > MOST_TURNS {
        return parts;
    }
    for shift in turns.map(|turn| f64::from(turn) * 360.0) {
        for line in COASTS.iter() {
            let mut part: Vec<Place> = Vec::new();
            for pair in line.windows(2) {
                let (a, b) = ((pair[0].0 + shift, pair[0].1), (pair[1].0 + shift, pair[1].1));
                let at = |share: f64| (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share);
                let Some((enter, leave)) = inside(a, b, (x, y)) else { continue };
                if enter > 0.0 || part.is_empty() {
                    parts.push(std::mem::take(&mut part));
                    part.push(at(enter));
                }
                part.push(at(leave));
                if leave < 1.0 {
                    parts.push(std::mem::take(&mut part));
                }
            }
            parts.push(part);
        }
    }
    parts.retain(|part| part.len() > 1);
    parts
}

/// Pixels from one point of a line to the next, at least.
const STEP: f64 = 0.7;

/// Draws coastlines onto a map whose axes are longitude and latitude: dark, with a light edge, so that they can be seen on any
/// colour.
pub(crate) fn draw(scene: &mut Scene, rect: Rect, x: &Ranged<'_>, y: &Ranged<'_>) {
    let lines: Vec<Vec<(f64, f64)>> = within((x.low, x.high), (y.low, y.high))
        .into_iter()
        .map(|line| {
            let mut points: Vec<(f64, f64)> = Vec::new();
            let last = line.len() - 1;
            for (number, (lon, lat)) in line.into_iter().enumerate() {
                let point =
                    (rect.x0 + x.share(lon) * rect.width(), rect.y1 - y.share(lat) * rect.height());
                let is_far =
                    |from: &(f64, f64)| (point.0 - from.0).abs() + (point.1 - from.1).abs() >= STEP;
                if number == last || points.last().is_none_or(is_far) {
                    points.push(point);
                }
            }
            points
        })
        .collect();
    for (colour, width) in [(Colour::COAST_EDGE, 2.0), (Colour::COAST, 1.0)] {
        for line in &lines {
            scene.path(line.clone(), colour, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_is_all_there() {
        let all = read(include_bytes!("../coast/land-110m.bin")).unwrap();
        // No line goes across the map where a polygon was cut.
        let steps = all.iter().flat_map(|line| line.windows(2));
        let longest = steps.map(|p| (p[0].0 - p[1].0).hypot(p[0].1 - p[1].1)).fold(0.0, f64::max);
        assert!(longest < 20.0, "{longest}");
        let places: Vec<Place> = all.into_iter().flatten().collect();
        assert_eq!(places.len(), 5115);
        assert!(places.iter().all(|(lon, lat)| lon.abs() <= 180.0 && (-86.0..84.0).contains(lat)));
        // Near Cape Agulhas, Cape Horn, and Land's End.
        for (lon, lat) in [(20.0, -34.8), (-67.3, -55.9), (-5.7, 50.0)] {
            let near = |(x, y): &Place| (x - lon).abs() < 1.0 && (y - lat).abs() < 1.0;
            assert!(places.iter().any(near), "{lon} {lat}");
        }
        assert!(read(&[2, 2, 0]).is_none());
    }

    /// What is shown lies within the ranges; a whole turn shows each coast once, wherever it begins.
    #[test]
    fn parts_within_ranges() {
        let length = |parts: &[Vec<Place>]| {
            let steps = parts.iter().flat_map(|part| part.windows(2));
            steps.map(|p| (p[0].0 - p[1].0).hypot(p[0].1 - p[1].1)).sum::<f64>()
        };
        let whole = length(&within((-180.0, 180.0), (-90.0, 90.0)));
        for low in [-180.0, 0.0, 17.3, 180.0] {
            let found = length(&within((low, low + 360.0), (-90.0, 90.0)));
            assert!((found / whole - 1.0).abs() < 1e-6, "{low}: {found} of {whole}");
        }
        let few = within((5.0, 20.0), (35.0, 50.0));
        let there = |(x, y): &Place| (5.0..=20.0).contains(x) && (35.0..=50.0).contains(y);
        assert!(few.iter().flatten().all(there) && few.len() > 1, "{few:?}");
        assert!(within((-150.0, -140.0), (-10.0, 10.0)).is_empty());
        assert_eq!(inside((0.0, 0.0), (10.0, 0.0), ((2.0, 5.0), (-1.0, 1.0))), Some((0.2, 0.5)));
        assert_eq!(inside((0.0, 2.0), (10.0, 2.0), ((2.0, 5.0), (-1.0, 1.0))), None);
    }
}
