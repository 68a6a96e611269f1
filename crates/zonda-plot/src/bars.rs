//! Bar charts: one number, or several side by side, for each of several named categories.

use crate::axis::{Axis, Ticks};
use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::frame::{self, Ranged};
use crate::output::{Chart, check_width};
use crate::scene::{Anchor, Rect, Scene};
use crate::text;

/// Bars of one colour.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// What it is called in the legend, which is there for two series and more.
    pub name: String,
    /// One for each category, not negative; what is not finite has no bar.
    pub values: Vec<f64>,
}

/// How bars look.
#[derive(Clone, Debug)]
pub struct BarOptions {
    /// In large letters at the top.
    pub title: String,
    /// Below it.
    pub subtitle: String,
    /// What the categories are.
    pub x_title: String,
    /// The vertical axis, which begins at zero.
    pub y: Axis,
    /// Pixels.
    pub width: u32,
}

impl Default for BarOptions {
    fn default() -> BarOptions {
        let (title, subtitle, x_title) = (String::new(), String::new(), String::new());
        BarOptions { title, subtitle, x_title, y: Axis::default(), width: 1200 }
    }
}

const HEIGHT_BY_WIDTH: f64 = 0.42;
/// Share of a category's width that its bars take.
const FILLED: f64 = 0.74;
/// Widest bar.
const MOST_BAR: f64 = 90.0;
const SIDE: f64 = 14.0;

/// Draws the numbers of `series` as bars, grouped by the categories that `names` name.
///
/// If there is no space for all names, only every second, third, ... is shown.
///
/// # Errors
/// [`Error::Empty`] without categories, or if no bar has a height; [`Error::Width`].
pub fn bars(names: &[String], series: &[BarSeries], options: &BarOptions) -> Result<Chart> {
    check_width(options.width)?;
    let values = || series.iter().flat_map(|series| series.values.iter().take(names.len()));
    let most = values().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    if names.is_empty() || most <= 0.0 {
        return Err(Error::Empty);
    }
    let y = Ranged { axis: &options.y, low: 0.0, high: most * 1.05 };
    let width = f64::from(options.width);
    let height = (width * HEIGHT_BY_WIDTH).round();
    let mut scene = Scene::new(options.width, height as u32);
    let legend = if series.len() < 2 { 0.0 } else { draw_legend(&mut scene, series) };
    let title = text::cut(&options.title, frame::TITLE, width - 2.0 * frame::MARGIN - legend);
    let top = frame::titles(&mut scene, &title, &options.subtitle).max(frame::MARGIN + 24.0);
    let y1 = (height - frame::lower_room(&options.x_title) - frame::MARGIN).round();
    let y_ticks = y.ticks_of_height(y1 - top);
    let left = frame::MARGIN + frame::left_room(&y_ticks, &options.y.full_title(&y_ticks));
    let rect =
        Rect { x0: left.round(), y0: top.round(), x1: (width - 2.0 * frame::MARGIN).round(), y1 };
    let pitch = rect.width() / names.len() as f64;
    let middle = |category: usize| rect.x0 + pitch * (category as f64 + 0.5);
    let x_axis = Axis::new(options.x_title.clone(), crate::axis::AxisKind::Number);
    let x = Ranged { axis: &x_axis, low: 0.0, high: names.len() as f64 };
    let none = Ticks::default();
    frame::grid(&mut scene, rect, (&x, &none), (&y, &y_ticks));
    let bar = (pitch * FILLED / series.len() as f64).min(MOST_BAR);
    let n_series = series.len() as f64;
    for (number, series) in series.iter().enumerate() {
        let colour = Colour::of_curve(number);
        for (category, value) in series.values.iter().take(names.len()).enumerate() {
            if !value.is_finite() || *value <= 0.0 {
                continue;
            }
            let x0 = middle(category) + bar * (number as f64 - n_series / 2.0);
            // A bar is at least one pixel high, so that small numbers can be seen.
            let y0 = (rect.y1 - y.share(*value) * rect.height()).min(rect.y1 - 1.0);
            scene.fill(Rect { x0, y0, x1: x0 + (bar - 1.0).max(1.0), y1: rect.y1 }, colour);
        }
    }
    frame::axes(&mut scene, rect, (&x, &none), (&y, &y_ticks));
    let widest = names.iter().map(|name| text::width(name, frame::TICK)).fold(0.0, f64::max);
    let every = ((widest + 12.0) / pitch).ceil().max(1.0) as usize;
    for (category, name) in names.iter().enumerate().step_by(every) {
        let baseline = rect.y1 + 13.0 + text::cap_height(frame::TICK);
        let at = middle(category);
        let to_edge = 2.0 * (width - at).min(at) - 6.0;
        let name = text::cut(name, frame::TICK, (pitch * every as f64 - 6.0).min(to_edge));
        scene.label(name, (at, baseline), frame::TICK, Colour::INK, Anchor::Middle);
    }
    Ok(Chart { scene })
}

/// What the colours mean, in the upper right corner; returns its width.
fn draw_legend(scene: &mut Scene, series: &[BarSeries]) -> f64 {
    let right = f64::from(scene.width) - frame::MARGIN;
    let (mut x, y) = (right, frame::MARGIN + 18.0);
    for (number, series) in series.iter().enumerate().rev() {
        let name = text::cut(&series.name, frame::AXIS, f64::from(scene.width) * 0.2);
        x -= text::width(&name, frame::AXIS);
        scene.label(name, (x, y), frame::AXIS, Colour::INK, Anchor::Start);
        x -= SIDE + 7.0;
        let patch = Rect { x0: x, y0: y - SIDE, x1: x + SIDE, y1: y };
        scene.fill(patch, Colour::of_curve(number));
        x -= 18.0;
    }
    right - x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::AxisKind;
    use crate::output::Format;
    use crate::scene::SceneShape;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("{} KiB", 1u64 << i.min(40))).collect()
    }

    fn series(name: &str, values: Vec<f64>) -> BarSeries {
        BarSeries { name: name.to_owned(), values }
    }

    fn options() -> BarOptions {
        BarOptions {
            title: "a title".to_owned(),
            subtitle: "and what is below it".to_owned(),
            x_title: "size".to_owned(),
            y: Axis::new("transfers", AxisKind::Number),
            ..BarOptions::default()
        }
    }

    /// Bars stand on the axis, side by side, as high as their numbers.
    #[test]
    fn bars_are_as_high_as_their_numbers() {
        let both = [series("read", vec![1.0, 4.0]), series("write", vec![f64::NAN, 2.0])];
        let chart = bars(&names(2), &both, &options()).unwrap();
        let of = |number: usize| {
            let shapes = chart.scene.shapes.iter().filter_map(move |shape| match shape {
                SceneShape::Fill { rect, colour } if *colour == Colour::of_curve(number) => {
                    Some(*rect)
                }
                _ => None,
            });
            // Without the one in the legend.
            shapes.skip(1).collect::<Vec<_>>()
        };
        let (read, write) = (of(0), of(1));
        assert_eq!((read.len(), write.len()), (2, 1));
        assert!((read[1].height() / read[0].height() - 4.0).abs() < 0.05, "{read:?}");
        assert!((read[1].height() / write[0].height() - 2.0).abs() < 0.05);
        assert!(read[1].x1 <= write[0].x0 && read[0].x1 < read[1].x0);
        assert_eq!(read[0].y1, write[0].y1);
    }

    #[test]
    fn labels_stand_apart() {
        for n in [1, 2, 7, 31, 200] {
            let values: Vec<f64> = (0..n).map(|i| (i * i) as f64).collect();
            let all = [series("read", values.clone()), series("write", vec![3.0; n])];
            for width in [480, 800, 1200, 2400] {
                let options = BarOptions { width, ..options() };
                bars(&names(n), &all, &options).unwrap().scene.assert_legible();
            }
        }
    }

    #[test]
    fn odd_numbers() {
        let chart = |values: Vec<f64>| bars(&names(3), &[series("", values)], &options());
        for empty in [vec![], vec![0.0; 3], vec![f64::NAN, f64::INFINITY, -1.0]] {
            assert!(matches!(chart(empty), Err(Error::Empty)));
        }
        assert!(matches!(bars(&[], &[series("", vec![1.0])], &options()), Err(Error::Empty)));
        for odd in [vec![1e-300], vec![1e300, 1.0], vec![1.0; 9]] {
            chart(odd).unwrap().encode(Format::Svg).unwrap();
        }
    }
}
