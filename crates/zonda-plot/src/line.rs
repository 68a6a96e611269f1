//! Lines: numbers over numbers, one curve or several.

use crate::axis::Axis;
use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::frame::{self, Ranged};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Rect, Scene};
use crate::text;

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it is called in the legend, which is there for two curves and more.
    pub name: String,
    /// x and y; where one is not finite, or has no logarithm on such an axis, the line is broken.
    pub points: Vec<(f64, f64)>,
}

/// How lines look.
#[derive(Clone, Debug)]
pub struct LineOptions {
    /// In large letters at the top.
    pub title: String,
    /// Below it.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Pixels.
    pub width: u32,
}

impl Default for LineOptions {
    fn default() -> LineOptions {
        LineOptions {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::default(),
            y: Axis::default(),
            width: 1200,
        }
    }
}

const HEIGHT_BY_WIDTH: f64 = 0.52;
/// Of the line.
const STROKE: f64 = 2.0;
/// Points with nothing on either side show as squares of this size.
const DOT: f64 = 5.0;
const LEGEND_LINE: f64 = 26.0;
const LEGEND_PITCH: f64 = 26.0;

/// Draws curves over a common pair of axes.
///
/// # Errors
/// [`Error::Empty`] if no curve has a point that can be shown, [`Error::Width`].
pub fn lines(curves: &[Curve], options: &LineOptions) -> Result<Chart> {
    check_width(options.width)?;
    let shown = |point: &&(f64, f64)| options.x.shows(point.0) && options.y.shows(point.1);
    let mut range: Option<[f64; 4]> = None;
    for &(x, y) in curves.iter().flat_map(|curve| &curve.points).filter(shown) {
        let [x0, x1, y0, y1] = range.unwrap_or([x, x, y, y]);
        range = Some([x0.min(x), x1.max(x), y0.min(y), y1.max(y)]);
    }
    let Some([x0, x1, y0, y1]) = range else { return Err(Error::Empty) };
    let (x_low, x_high) = if x0 < x1 { (x0, x1) } else { options.x.roomy((x0, x1)) };
    let (y_low, y_high) = options.y.roomy((y0, y1));
    let x = Ranged { axis: &options.x, low: x_low, high: x_high };
    let y = Ranged { axis: &options.y, low: y_low, high: y_high };

    let width = f64::from(options.width);
    let height = (width * HEIGHT_BY_WIDTH).round();
    let mut scene = Scene::new(options.width, height as u32);
    let top = frame::titles(&mut scene, &options.title, &options.subtitle);
    let legend = if curves.len() < 2 {
        // Half of a label of the horizontal axis, which may end at the frame.
        frame::MARGIN
    } else {
        let names = curves.iter().map(|curve| text::width(&curve.name, frame::TICK));
        (names.fold(0.0, f64::max) + LEGEND_LINE + 24.0).min(width * 0.4)
    };
    let below = frame::lower_room(&options.x.title);
    let y1 = (height - below - frame::MARGIN).round();
    let y_ticks = y.ticks_of_height(y1 - top);
    let left = frame::MARGIN + frame::left_room(&y_ticks, &options.y.full_title(&y_ticks));
    let rect = Rect {
        x0: left.round(),
        y0: top.round(),
        x1: (width - legend - frame::MARGIN).round(),
        y1,
    };
    let x_ticks = x.ticks_of_width(rect.width());
    frame::grid(&mut scene, rect, (&x, &x_ticks), (&y, &y_ticks));
    for (index, curve) in curves.iter().enumerate() {
        let colour = Colour::of_curves(index, curves.len());
        for part in curve.points.split(|point| !shown(&point)) {
            draw(&mut scene, rect, &x, &y, part, colour);
        }
    }
    frame::axes(&mut scene, rect, (&x, &x_ticks), (&y, &y_ticks));
    if curves.len() >= 2 {
        for (index, curve) in curves.iter().enumerate() {
            let (x, y) = (rect.x1 + 18.0, rect.y0 + 12.0 + LEGEND_PITCH * index as f64);
            if y > rect.y1 {
                break;
            }
            scene.path(
                vec![(x, y), (x + LEGEND_LINE, y)],
                Colour::of_curves(index, curves.len()),
                3.0,
            );
            let at = (x + LEGEND_LINE + 8.0, y + text::cap_height(frame::TICK) / 2.0);
            let name = text::cut(&curve.name, frame::TICK, width - at.0 - 4.0);
            scene.label(name, at, frame::TICK, Colour::INK, Anchor::Start);
        }
    }
    Ok(Chart { scene })
}

/// Draws a part of a curve without gaps.
fn draw(
    scene: &mut Scene,
    rect: Rect,
    x: &Ranged<'_>,
    y: &Ranged<'_>,
    points: &[(f64, f64)],
    colour: Colour,
) {
    let place = |&(px, py): &(f64, f64)| {
        (rect.x0 + x.share(px) * rect.width(), rect.y1 - y.share(py) * rect.height())
    };
    match points {
        [] => {}
        [only] => {
            let (x, y) = place(only);
            let half = DOT / 2.0;
            let dot = Rect { x0: x - half, y0: y - half, x1: x + half, y1: y + half };
            scene.fill(dot, colour);
        }
        many => scene.path(thinned(many.iter().map(place)), colour, STROKE),
    }
}

/// The same line with fewer points: in each column of pixels the first, lowest, highest and last
/// are kept, so that nothing visible is lost.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if column.first().is_some_and(|first| first.0.floor() != point.0.floor()) {
            keep(&mut kept, &mut column);
        }
        match column.as_mut_slice() {
            [_, low, high, last] => {
                if low.1 > high.1 {
                    std::mem::swap(low, high);
                }
                if last.1 < low.1 {
                    *low = *last;
                }
                if last.1 > high.1 {
                    *high = *last;
                }
                *last = point;
            }
            _ => column.push(point),
        }
    }
    keep(&mut kept, &mut column);
    kept
}

fn keep(kept: &mut Vec<(f64, f64)>, column: &mut Vec<(f64, f64)>) {
    // The order of the lowest and the highest point is not known; sorting by x looks right.
    if let [_, low, high, _] = column.as_mut_slice()
        && low.0 > high.0
    {
        std::mem::swap(low, high);
    }
    kept.append(column);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::AxisKind;
    use crate::scene::SceneShape;

    fn curve(name: &str, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.to_owned(), points }
    }

    fn options() -> LineOptions {
        LineOptions {
            title: "a title".to_owned(),
            subtitle: "and what is below it".to_owned(),
            x: Axis::new("block", AxisKind::BinaryBytes).log(),
            y: Axis::new("throughput (GB/s)", AxisKind::Number).log(),
            ..LineOptions::default()
        }
    }

    #[test]
    fn labels_stand_apart() {
        let points = |factor: f64| (6..27).map(move |i| (f64::from(1 << i), factor * f64::from(i)));
        let curves =
            [curve("memcpy", points(1.0).collect()), curve("float", points(0.1).collect())];
        for width in [480, 800, 1200, 2000] {
            let chart = lines(&curves, &LineOptions { width, ..options() }).unwrap();
            chart.scene.assert_legible();
        }
    }

    /// A missing value breaks the line; what has no logarithm is missing; a lone point is a dot.
    #[test]
    fn gaps() {
        let points = vec![
            (1.0, 1.0),
            (2.0, 2.0),
            (3.0, f64::NAN),
            (4.0, 1.0),
            (5.0, -1.0),
            (6.0, 2.0),
            (7.0, 3.0),
        ];
        let chart = lines(&[curve("", points)], &options()).unwrap();
        let colour = Colour::of_curve(0);
        let parts = chart.scene.shapes.iter().filter_map(|shape| match shape {
            SceneShape::Path { points, colour: of, .. } if *of == colour => Some(points.len()),
            SceneShape::Fill { colour: of, .. } if *of == colour => Some(1),
            _ => None,
        });
        assert_eq!(parts.collect::<Vec<_>>(), [2, 1, 2]);
        let none = curve("", vec![(1.0, f64::NAN), (-1.0, 1.0)]);
        assert!(matches!(lines(&[none], &options()), Err(Error::Empty)));
    }

    /// A million points become few, and the one that stands out stays.
    #[test]
    fn thinning_keeps_peaks() {
        for peak in [123_457, 500_000, 999_998] {
            let points = (0..1_000_000).map(|i| {
                let y = if i == peak { -7.0 } else { f64::from(i % 3) };
                (f64::from(i) / 1000.0, y)
            });
            let kept = thinned(points.clone());
            assert!(kept.len() <= 4004, "{}", kept.len());
            assert!(kept.iter().any(|point| point.1 == -7.0), "{peak}");
            assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
        }
        let peaks_first = [(0.0, 1.0), (0.1, 9.0), (0.2, -9.0), (0.3, 1.0), (0.4, 1.0), (0.5, 1.0)];
        let kept = thinned(peaks_first.into_iter());
        assert!(kept.contains(&(0.1, 9.0)) && kept.contains(&(0.2, -9.0)), "{kept:?}");
    }
}
